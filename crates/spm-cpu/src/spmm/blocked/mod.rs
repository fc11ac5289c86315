//! CSR SpMM with whole rows of X and Y in vector registers, up to 64 columns at a time:
//! y_i = sum_j a_ij x_j.
//!
//! A column-major X is first copied row by row, so that A is read once for 64 columns.
//!
//! The merge path of rows and entries is divided into equal partitions (Merrill and Garland, SC
//! 2016), so that several threads share a long row. The partial sum of a row that a partition ends
//! in is added afterwards, in the order of the partitions.

pub(super) mod bsr;
mod bsr_kernel;
mod columns;
mod groups;
mod kernel;
mod pack;
mod sink;
mod sorted;

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_formats::partition::{self, MergePoint};
use spm_formats::{CsrSource, CsrView, DenseShape, Layout, NewValues, Scalar};

use self::columns::{Columns, Lists, Narrow, Wide};
use self::kernel::{Dense, Part};
use self::pack::Packed;
use self::sink::{Output, stage_len};
use self::sorted::{InOrder, Order, Sorted};
use super::plan::{Memory, Product, boxed};
use super::vector;
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::plan::check_leading;
use crate::pool::{Pool, Taken};
use crate::scaled::Update;
use crate::simd::{LANES, Machine};
use crate::spmm::KERNEL;
use crate::spmv;
use crate::workspace::Workspace;
use crate::{Threads, scaled, values};

const PREFETCH: ParameterSpec = ParameterSpec {
    name: "prefetch",
    meaning: "prefetch distance for rows of X, in entries; 0: none",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(32), Value::Count(96)],
};

const NARROW: ParameterSpec = ParameterSpec {
    name: "narrow",
    meaning: "columns as 16-bit distances from the first one of a row, one list for all rows with \
              the same distances, if no row spans more than 65536 columns",
    default: Value::Switch(false),
    studied: &[Value::Switch(false), Value::Switch(true)],
};

pub(super) const SORTED: ParameterSpec = ParameterSpec {
    name: "sorted",
    meaning: "a copy of the matrix with the rows of a tile, up to 256, sorted by length, so that branches at their ends \
              are predicted",
    default: Value::Switch(false),
    studied: &[Value::Switch(false), Value::Switch(true)],
};

pub(super) const STREAM: ParameterSpec = ParameterSpec {
    name: "stream",
    meaning: "write a row-major Y past the caches, for a Y that is larger than they are",
    default: Value::Switch(false),
    studied: &[Value::Switch(false), Value::Switch(true)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-blocked",
    source: "own",
    summary: "rows of X and Y in vector registers, 64 columns at a time; long rows split",
    parameters: &[NARROW, PREFETCH, SORTED, STREAM],
    ..KERNEL
};

/// Mean row length below which the entries of a row are summed in one chain.
const SHORT: usize = 8;
/// Rows for each entry from which on only rows with entries are multiplied: Y is made 0 before.
const MOSTLY_EMPTY: usize = 16;
/// Bytes of finished rows that a thread writes to memory together, and of those that are sorted.
const STAGE: usize = 8 << 10;
const SORTED_STAGE: usize = 32 << 10;
/// Rows of a tile at most.
const MOST_ROWS: usize = 256;

struct Blocked<'a, T> {
    a: CsrSource<'a, T>,
    dense: DenseShape,
    threads: Threads,
    machine: Machine,
    prefetch: usize,
    stream: bool,
    /// Compressed column indices, used instead of those of CSR.
    lists: Option<Lists>,
    /// Used instead of the matrix.
    sorted: Option<Sorted<T>>,
    /// Pieces of thread t: `shares[t]..shares[t + 1]`.
    shares: Vec<usize>,
    /// Piece p is between points p and p + 1.
    points: Vec<MergePoint>,
    tile: usize,
    /// Elements of a staging buffer. Without one, the first product that needs it allocates it.
    stage: usize,
    workspaces: Pool<Buffers<T>>,
}

/// The workspace of a product.
struct Buffers<T> {
    /// A row-major copy of a column-major X.
    packed: Option<Packed<T>>,
    /// For each thread the staging buffer of its sink and, where rows are split, the partial sums of the
    /// row that its partition ends in.
    stages: Workspace<T>,
    carries: Workspace<T>,
}

impl<T: Scalar> Buffers<T> {
    /// `stages` and `carries`: elements for all threads.
    fn new(cols: usize, dense: DenseShape, stages: usize, carries: usize) -> Self {
        let columns = dense.layout == Layout::ColumnMajor;
        Self {
            packed: columns.then(|| Packed::new(cols, dense.k)),
            stages: Workspace::zeros(stages),
            carries: Workspace::zeros(carries),
        }
    }

    fn elements(&self) -> usize {
        let packed = self.packed.as_ref().map_or(0, |packed| packed.elements.len());
        packed + self.stages.len() + self.carries.len()
    }
}

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, dense, parameters, options, .. } = problem;
    if dense.k == 1 {
        return vector::plan(a, dense, spmv::csr_merge(), &[], options);
    }
    let (view, threads) = (a.view(), options.threads.clone());
    let columns = dense.layout == Layout::ColumnMajor;
    let (narrow, sorted) = (parameters.switch(NARROW.name), parameters.switch(SORTED.name));
    let tile = if sorted { SORTED_STAGE } else { STAGE } / (dense.k.max(1) * T::BYTES);
    let tile = tile.clamp(8, MOST_ROWS);
    let of_x = if columns { Packed::<T>::elements(view.cols(), dense.k) } else { 0 };
    let staged = columns || parameters.switch(STREAM.name);
    let stage = if staged { stage_len(tile, dense.k) } else { 0 };
    let shares = threads.shares(work(view.nnz(), dense.k));
    let pieces = shares[threads.count()];
    let of_workspace = (threads.count() * stage + pieces * dense.k) * T::BYTES;
    let of_lists = if narrow { Lists::most_bytes(&view) } else { 0 };
    let of_copy = if sorted { Sorted::most_bytes(&view) } else { 0 };
    let of_rows = (of_workspace + of_lists + of_copy) as u128;
    options.budget.check_bytes(INFO.id, of_x * T::BYTES as u128 + of_rows)?;
    let points = partition::by_merge_path(view.row_ptr(), pieces);
    let sorted = sorted.then(|| Sorted::new(&view, &points, tile, &threads));
    let multiplied = sorted.as_ref().map_or(view, Sorted::view);
    Ok(boxed(
        Blocked {
            machine: Machine::without_gathers(),
            // As far as A goes is far enough, and places further on need not be computed.
            prefetch: parameters.count(PREFETCH.name).min(view.nnz()),
            stream: parameters.switch(STREAM.name),
            lists: narrow.then(|| Lists::new(&multiplied)).flatten(),
            sorted,
            shares,
            points,
            tile,
            stage,
            workspaces: Pool::new(Buffers::new(
                view.cols(),
                dense,
                threads.count() * stage,
                pieces * dense.k,
            )),
            a,
            dense,
            threads,
        },
        dense,
    ))
}

/// Entries of a product with one column that take as long as those of one with `k`, about.
fn work(entries: usize, k: usize) -> usize {
    entries.saturating_mul(k.div_ceil(LANES))
}

impl<T: Scalar> Product<T> for Blocked<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        let (a, workspace) = (self.a.view(), self.workspace().elements());
        let lists = self.lists.as_ref().map_or(0, Lists::bytes);
        let copy = self.sorted.as_ref().map_or(0, Sorted::bytes);
        let bounds = size_of_val(&*self.points) + size_of_val(&*self.shares);
        let plan = lists + copy + workspace * T::BYTES + bounds;
        let columns = size_of_val(a.col_ind());
        let columns = if self.lists.is_some() { columns as u64 } else { 0 };
        let matrix = if copy > 0 { copy as u64 } else { a.memory_bytes() };
        Memory { matrix: matrix - columns + lists as u64, plan: plan as u64 }
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (rows, cols) = self.shape();
        let leading = match self.dense.layout {
            Layout::RowMajor => [self.dense.k; 2],
            Layout::ColumnMajor => [cols, rows],
        };
        self.multiply_leading(scaling, x, y, leading);
    }

    fn multiply_leading(
        &self,
        scaling: Option<Update<'_, T>>,
        x: &[T],
        y: &mut [T],
        leading: [usize; 2],
    ) -> bool {
        let product = Operands { scaling, x, y, leading };
        let a = self.sorted.as_ref().map_or(self.a.view(), Sorted::view);
        match (&self.lists, self.sorted.as_ref().map(Sorted::places)) {
            (Some(lists), Some(order)) => self.multiply_by(a, Narrow(lists), order, product),
            (Some(lists), None) => self.multiply_by(a, Narrow(lists), InOrder, product),
            (None, Some(order)) => self.multiply_by(a, Wide(a.col_ind()), order, product),
            (None, None) => self.multiply_by(a, Wide(a.col_ind()), InOrder, product),
        }
        true
    }

    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        assert_eq!(threads.count(), self.shares.len() - 1, "threads of the plan");
        self.prefetch = parameters.count(PREFETCH.name).min(self.a.view().nnz());
        self.stream = parameters.switch(STREAM.name);
        self.threads = threads.clone();
        true
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let Self { a, sorted: Some(sorted), threads, .. } = self else {
            return values::set(&mut self.a, new, Some(&self.threads));
        };
        a.set_values(new, |a, own| {
            sorted.set_values(&a, threads);
            if let Some(own) = own {
                values::copy(threads, a.values(), own);
            }
        })
    }
}

/// What a product is given.
struct Operands<'a, T> {
    scaling: Option<Update<'a, T>>,
    x: &'a [T],
    y: &'a mut [T],
    /// See [`Product::multiply_leading`].
    leading: [usize; 2],
}

impl<T: Scalar> Blocked<'_, T> {
    fn workspace(&self) -> Taken<'_, Buffers<T>> {
        let (cols, threads) = (self.a.view().cols(), self.threads.count());
        let pieces = self.points.len() - 1;
        self.workspaces
            .take(|| Buffers::new(cols, self.dense, threads * self.stage, pieces * self.dense.k))
    }

    /// The product by a matrix with these columns, whose rows go to Y in `order`.
    fn multiply_by(
        &self,
        a: CsrView<'_, T>,
        columns: impl Columns,
        order: impl Order,
        Operands { scaling, x, y, leading: [of_x, of_y] }: Operands<'_, T>,
    ) {
        let DenseShape { k, layout } = self.dense;
        if k == 0 || a.rows() == 0 {
            return;
        }
        // What the invariants of `Part` ask of X, and its sinks of Y; those of A and of the points are their
        // types'.
        check_leading("X", a.cols(), self.dense, of_x, x.len()).expect("an X of the plan's shape");
        check_leading("Y", a.rows(), self.dense, of_y, y.len()).expect("a Y of the plan's shape");
        let mut workspace = self.workspace();
        let Buffers { packed, stages, carries } = &mut *workspace;
        if (scaling.is_some() || self.stream) && stages.is_empty() {
            *stages = Workspace::zeros(self.threads.count() * stage_len(self.tile, k));
        }
        let x = match packed {
            Some(packed) => {
                packed.fill(x, (a.cols(), k), of_x, &self.threads);
                Dense { elements: &packed.elements, pitch: packed.pitch }
            }
            None => Dense { elements: x, pitch: of_x },
        };
        let (points, tile, rows) = (&self.points, self.tile, a.rows());
        let stage_len = stages.len() / self.threads.count();
        let (stages, all_carries) = (Disjoint::new(stages), Disjoint::new(&mut *carries));
        let output = Output {
            length: y.len(),
            y: Disjoint::new(&mut *y),
            layout,
            k,
            leading: of_y,
            stream: self.stream,
            scaling,
        };
        self.threads.share(&self.shares, |thread, piece| {
            let (from, to) = (points[piece], points[piece + 1]);
            // SAFETY: one stage for each thread, of which no two calls run at the same time, and one carry for each piece.
            let (stage, carry) = unsafe {
                (
                    stages.range(thread * stage_len..(thread + 1) * stage_len),
                    all_carries.range(piece * k..(piece + 1) * k),
                )
            };
            // SAFETY: the points ascend, so the rows that end in different pieces differ.
            let sink = unsafe { output.rows(from.row..to.row, stage) };
            self.machine.run(Part {
                a,
                columns,
                order,
                first_row: from.row,
                first_entry: from.entry,
                ends: &a.row_ptr()[from.row + 1..to.row + 1],
                last_entry: to.entry,
                x,
                k,
                tile,
                short: a.nnz() < SHORT * rows,
                mostly_empty: MOSTLY_EMPTY * a.nnz() <= rows,
                prefetch: self.prefetch,
                sink,
                carry,
            });
        });
        // A row that is cut belongs to the piece where it ends; the pieces before it carry theirs.
        let in_y = super::rows::Strides::leading(of_y, layout);
        for (carry, point) in carries.chunks_exact(k).zip(&points[1..]) {
            if point.row < rows {
                for (c, &carried) in carry.iter().enumerate() {
                    scaled::add(scaling, carried, &mut y[point.row * in_y.down + c * in_y.across]);
                }
            }
        }
    }
}

//! BSR SpMM with the rows of a block row in vector registers, up to 32 columns at a time:
//! Y_I = sum_J A_IJ X_J.
//!
//! Each load of a row of X serves all rows of a block. X and Y are packed and written as by `csr-blocked`.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_formats::{
    Bsr, CsrSource, CsrView, DenseShape, Layout, NewValues, Scalar, convert, partition,
};

use super::bsr_kernel::Part;
use super::kernel::Dense;
use super::pack::Packed;
use super::sink::{Output, stage_len};
use super::{Buffers, STAGE, STREAM, work};
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::plan::check_leading;
use crate::pool::Pool;
use crate::scaled::Update;
use crate::simd::Machine;
use crate::spmm::KERNEL;
use crate::spmm::plan::{Memory, Product, boxed};
use crate::spmm::vector;
use crate::spmv;
use crate::spmv::bsr_rows::BLOCK;
use crate::workspace::Workspace;
use crate::{Threads, values};

/// The parameter prefetch.
pub(in crate::spmm) const PREFETCH: ParameterSpec = ParameterSpec {
    name: "prefetch",
    meaning: "prefetch distance for rows of X, in blocks; 0: none",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(8)],
};

pub(in crate::spmm) const INFO: KernelInfo = KernelInfo {
    id: "bsr-blocked",
    source: "own",
    summary: "dense square blocks, the rows of a block row in vector registers",
    parameters: &[BLOCK, PREFETCH, STREAM],
    ..KERNEL
};

struct BsrBlocked<'a, T> {
    /// For rows whose padding meets an infinite or NaN x.
    a: CsrSource<'a, T>,
    bsr: Bsr<T>,
    dense: DenseShape,
    threads: Threads,
    machine: Machine,
    prefetch: usize,
    stream: bool,
    /// Shares of thread t: `shares[t]..shares[t + 1]`.
    shares: Vec<usize>,
    /// Block rows of share s: `bounds[s]..bounds[s + 1]`.
    bounds: Vec<usize>,
    /// Block rows that are passed to the sink together.
    tile: usize,
    /// Elements of a staging buffer. Without one, the first scaled product allocates it.
    stage: usize,
    workspaces: Pool<Buffers<T>>,
}

pub(in crate::spmm) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, dense, parameters, options, .. } = problem;
    let size = match parameters.count(BLOCK.name) {
        0 => convert::detect_blocks(a.view()).map(|blocks| blocks.size),
        size => Some(size),
    };
    let Some(size) = size else {
        let reason = "its entries do not form dense square blocks".to_owned();
        return Err(PlanError::Unsupported { kernel: INFO.id, reason });
    };
    if dense.k == 1 {
        let set = [(BLOCK.name, Value::Count(size))];
        return vector::plan(a, dense, spmv::bsr_rows(), &set, options);
    }
    let (view, threads) = (a.view(), options.threads.clone());
    let columns = dense.layout == Layout::ColumnMajor;
    let row = (dense.k.max(1)).saturating_mul(T::BYTES);
    let tile = (STAGE / row / size).clamp(1, 256);
    let staged = columns || parameters.switch(STREAM.name);
    let stage = if staged { stage_len(tile_rows(&view, tile, size), dense.k) } else { 0 };
    let of_x = if columns { Packed::<T>::elements(view.cols(), dense.k) } else { 0 };
    let bytes = of_x * T::BYTES as u128 + (threads.count() * stage * T::BYTES) as u128;
    options.budget.check_bytes(INFO.id, bytes)?;
    let left = options.budget.beside(u64::try_from(bytes).unwrap_or(u64::MAX));
    let bsr = convert::csr_to_bsr(view, (size, size), &left)?;
    let shares = threads.shares(work(view.nnz(), dense.k));
    Ok(boxed(
        BsrBlocked {
            machine: Machine::without_gathers(),
            prefetch: parameters.count(PREFETCH.name).min(bsr.block_col().len()),
            stream: parameters.switch(STREAM.name),
            bounds: partition::by_entries(bsr.block_ptr(), shares[threads.count()]),
            shares,
            tile,
            stage,
            workspaces: Pool::new(Buffers::new(view.cols(), dense, threads.count() * stage, 0)),
            a,
            bsr,
            dense,
            threads,
        },
        dense,
    ))
}

/// Rows of `tile` block rows, at most.
fn tile_rows<T: Scalar>(a: &CsrView<'_, T>, tile: usize, size: usize) -> usize {
    tile.saturating_mul(size).min(a.rows())
}

impl<T: Scalar> BsrBlocked<'_, T> {
    fn new_buffers(&self) -> Buffers<T> {
        Buffers::new(self.bsr.cols(), self.dense, self.threads.count() * self.stage, 0)
    }
}

impl<T: Scalar> Product<T> for BsrBlocked<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        let padding = size_of_val(self.bsr.padding());
        let read = self.bsr.memory_bytes() as usize - padding;
        let workspace = self.workspaces.take(|| self.new_buffers()).elements() * T::BYTES;
        let bounds = size_of_val(&*self.bounds) + size_of_val(&*self.shares);
        Memory::owned(read, padding + workspace + bounds)
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
        [of_x, of_y]: [usize; 2],
    ) -> bool {
        let (a, k, layout) = (self.a.view(), self.dense.k, self.dense.layout);
        if k == 0 || a.rows() == 0 {
            return true;
        }
        // What the invariants of `Part` ask of X, and its sinks of Y.
        check_leading("X", a.cols(), self.dense, of_x, x.len()).expect("an X of the plan's shape");
        check_leading("Y", a.rows(), self.dense, of_y, y.len()).expect("a Y of the plan's shape");
        let mut workspace = self.workspaces.take(|| self.new_buffers());
        let Buffers { packed, stages, .. } = &mut *workspace;
        let (size, threads) = (self.bsr.block().0, self.threads.count());
        if (scaling.is_some() || self.stream) && stages.is_empty() {
            *stages = Workspace::zeros(threads * stage_len(tile_rows(&a, self.tile, size), k));
        }
        let x = match packed {
            Some(packed) => {
                packed.fill(x, (a.cols(), k), of_x, &self.threads);
                Dense { elements: &packed.elements, pitch: packed.pitch }
            }
            None => Dense { elements: x, pitch: of_x },
        };
        let output = Output {
            length: y.len(),
            y: Disjoint::new(y),
            layout,
            k,
            leading: of_y,
            stream: self.stream,
            scaling,
        };
        let stage_len = stages.len() / threads;
        let stages = Disjoint::new(stages);
        self.threads.share(&self.shares, |thread, share| {
            let block_rows = self.bounds[share]..self.bounds[share + 1];
            let row = |block_row: usize| a.rows().min(block_row * size);
            // SAFETY: one stage for each thread, of which no two calls run at the same time; the block rows of shares, and
            // so their rows, do not overlap.
            let sink = unsafe {
                let stage = stages.range(thread * stage_len..(thread + 1) * stage_len);
                output.rows(row(block_rows.start)..row(block_rows.end), stage)
            };
            let (bsr, tile, prefetch) = (&self.bsr, self.tile, self.prefetch);
            self.machine.run(Part { a, bsr, block_rows, x, k, tile, prefetch, sink });
        });
        true
    }

    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        assert_eq!(threads.count(), self.shares.len() - 1, "threads of the plan");
        self.prefetch = parameters.count(PREFETCH.name).min(self.bsr.block_col().len());
        self.stream = parameters.switch(STREAM.name);
        self.threads = threads.clone();
        true
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let of_threads = (&self.threads, &self.shares[..]);
        values::set_blocks(&mut self.a, &mut self.bsr, new, of_threads, &self.bounds)
    }
}

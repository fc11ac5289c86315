//! CSR SpMV with compressed column indices: y_i = sum_j a_ij x_j.
//!
//! Consecutive rows with the same columns (the unknowns of one node of a finite-element mesh) share
//! one column list, and an element of x is loaded once for all of them. Column indices take 16 bits
//! where they fit. The values are those of the CSR matrix.

use spm_formats::kernel::{KernelInfo, Parameters, PlanError};
use spm_formats::{CsrSource, CsrView, FormatError, NewValues, RealScalar, Scalar, partition};
use std::ops::Range;

use super::KERNEL;
use super::plan::{Memory, Product, boxed};
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::scaled::Update;
use crate::simd::{self, AHEAD, GATHER, Isa, Job, LANES, Machine, PREFETCH};
use crate::{PlanOptions, Threads, scaled, values};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-compact",
    source: "own",
    summary: "rows with equal columns share one column list, in 16 bits where they fit",
    parameters: &[GATHER, PREFETCH],
    ..KERNEL
};

/// Maximum number of rows that share a list, so that their sums fit the registers beside x and the
/// columns.
const MOST_ROWS: usize = 6;
/// Elements of a group of rows up to which the group behind it is prefetched while it is read.
const MOST_AHEAD: usize = 8192;
/// Elements of a group of rows up to which the first-level cache holds it and the one behind it.
const NEAR: usize = 1024;
/// Pieces for each core that planning is divided into.
const PIECES: usize = 4;

/// Consecutive rows with the same columns.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// The column that 16-bit offsets count from.
    base: u32,
    /// Position of its first column in the narrow or the wide list of the piece.
    start: u32,
    rows: u8,
    narrow: bool,
}

/// The groups of a range of rows. A column list is padded to a multiple of [`LANES`].
struct Piece {
    rows: Range<usize>,
    groups: Box<[Group]>,
    narrow: Box<[u16]>,
    wide: Box<[u32]>,
}

struct CsrCompact<'a, T> {
    a: CsrSource<'a, T>,
    pieces: Vec<Piece>,
    threads: Threads,
    /// Pieces of thread t: `bounds[t]..bounds[t + 1]`.
    bounds: Vec<usize>,
    machine: Machine,
    prefetch: bool,
}

pub(super) fn plan<'a, T: RealScalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let (view, threads) = (a.view(), options.threads.clone());
    let mut bounds = threads.shares(view.nnz());
    if bounds[1] < PIECES {
        bounds.iter_mut().for_each(|bound| *bound *= PIECES);
    }
    let count = bounds[threads.count()];
    let rows = partition::by_entries(view.row_ptr(), count);
    let grown = check_lists(&view, &rows, options)?;
    let pieces = threads.map(count, |p| Piece::new(&view, rows[p]..rows[p + 1], grown));
    let Some(pieces) = pieces.into_iter().collect::<Option<Vec<_>>>() else {
        let reason = "lists of columns of one piece would have 2^32 places or more".to_owned();
        return Err(PlanError::Unsupported { kernel: INFO.id, reason });
    };
    let machine = Machine::for_gathers(parameters, view.cols());
    let prefetch = parameters.switch(PREFETCH.name);
    Ok(boxed(CsrCompact { a, pieces, threads, bounds, machine, prefetch }))
}

/// Consecutive rows with the same columns, before they are stored.
struct EqualRows<'a> {
    cols: &'a [u32],
    /// How many rows.
    count: usize,
    /// The least column.
    base: u32,
    /// Whether 16 bits hold the distances from it.
    narrow: bool,
}

/// The groups that `rows` fall into.
fn equal_rows<'a, T: Scalar>(
    a: &CsrView<'a, T>,
    rows: Range<usize>,
) -> impl Iterator<Item = EqualRows<'a>> {
    let (row_ptr, all_cols) = (a.row_ptr(), a.col_ind());
    let columns = move |row: usize| &all_cols[row_ptr[row] as usize..row_ptr[row + 1] as usize];
    let mut row = rows.start;
    std::iter::from_fn(move || {
        if row >= rows.end {
            return None;
        }
        let cols = columns(row);
        let most = MOST_ROWS.min(rows.end - row);
        let count = 1 + (1..most).take_while(|&next| columns(row + next) == cols).count();
        let base = cols.iter().min().copied().unwrap_or(0);
        let narrow = cols.iter().all(|&col| col - base <= u32::from(u16::MAX));
        row += count;
        Some(EqualRows { cols, count, base, narrow })
    })
}

/// Elements of the arrays of a [`Piece`].
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    groups: usize,
    narrow: usize,
    wide: usize,
}

impl Sizes {
    fn of<T: Scalar>(a: &CsrView<'_, T>, rows: Range<usize>) -> Self {
        equal_rows(a, rows).fold(Self::default(), |mut sizes, group| {
            let list = if group.narrow { &mut sizes.narrow } else { &mut sizes.wide };
            *list += group.cols.len().next_multiple_of(LANES);
            sizes.groups += 1;
            sizes
        })
    }

    fn bytes(self) -> usize {
        let lists = self.narrow * size_of::<u16>() + self.wide * size_of::<u32>();
        self.groups * size_of::<Group>() + lists
    }
}

/// Whether the budget allows arrays that grow in pieces of `rows`, whatever the columns are; if
/// not, the groups are counted, and their lists must fit.
fn check_lists<T: Scalar>(
    a: &CsrView<'_, T>,
    rows: &[usize],
    options: &PlanOptions,
) -> Result<bool, FormatError> {
    let wide = a.nnz() + a.rows() * (LANES - 1);
    // An array that doubles is there twice for a moment.
    let most = 3 * Sizes { groups: a.rows(), narrow: 0, wide }.bytes();
    if options.budget.check_bytes(INFO.id, most as u128).is_ok() {
        return Ok(true);
    }
    let bytes = |piece: usize| Sizes::of(a, rows[piece]..rows[piece + 1]).bytes();
    let bytes: usize = options.threads.map(rows.len() - 1, bytes).into_iter().sum();
    options.budget.check_bytes(INFO.id, bytes as u128)?;
    Ok(false)
}

impl Piece {
    /// Nothing where the lists are too long for a [`Group`] to say where its own starts. Arrays
    /// that are not `grown` are allocated once, at their final size.
    fn new<T: Scalar>(a: &CsrView<'_, T>, rows: Range<usize>, grown: bool) -> Option<Self> {
        let sizes = if grown { Sizes::default() } else { Sizes::of(a, rows.clone()) };
        let mut groups = Vec::with_capacity(sizes.groups);
        let mut narrow_lists = Vec::with_capacity(sizes.narrow);
        let mut wide_lists = Vec::with_capacity(sizes.wide);
        for EqualRows { cols, count, base, narrow } in equal_rows(a, rows.clone()) {
            let filled = cols.len().next_multiple_of(LANES);
            let start = if narrow {
                let start = narrow_lists.len();
                narrow_lists.extend(cols.iter().map(|&col| (col - base) as u16));
                narrow_lists.resize(start + filled, 0);
                start
            } else {
                let start = wide_lists.len();
                wide_lists.extend(cols);
                wide_lists.resize(start + filled, base);
                start
            };
            let start = u32::try_from(start).ok()?;
            groups.push(Group { base, start, rows: count as u8, narrow });
        }
        let (narrow, wide) = (narrow_lists.into(), wide_lists.into());
        Some(Self { rows, groups: groups.into(), narrow, wide })
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.groups) + size_of_val(&*self.narrow) + size_of_val(&*self.wide)
    }
}

impl<T: Scalar> Product<T> for CsrCompact<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        self.machine = Machine::for_gathers(parameters, self.a.view().cols());
        self.prefetch = parameters.switch(PREFETCH.name);
        self.threads = threads.clone();
        true
    }

    fn memory(&self) -> Memory {
        let columns: usize = self.pieces.iter().map(Piece::bytes).sum();
        let a = self.a.view();
        let kept = size_of_val(a.values()) + size_of_val(a.row_ptr());
        Memory {
            matrix: (columns + kept) as u64,
            plan: (columns + size_of_val(&*self.bounds)) as u64,
        }
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        // The jobs index x by the columns of A.
        let (a, prefetch) = (self.a.view(), self.prefetch);
        assert!(x.len() >= a.cols(), "x has {} elements", x.len());
        let y = Disjoint::new(y);
        self.threads.share(&self.bounds, |_, index| {
            let piece = &self.pieces[index];
            // SAFETY: the rows of pieces do not overlap.
            let y = unsafe { y.range(piece.rows.clone()) };
            self.machine.run(Run { a, piece, prefetch, scaling, x, y });
        });
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        values::set(&mut self.a, new, Some(&self.threads))
    }
}

/// The product of one piece.
struct Run<'a, T> {
    a: CsrView<'a, T>,
    piece: &'a Piece,
    prefetch: bool,
    scaling: Option<Update<'a, T>>,
    x: &'a [T],
    /// The rows of the piece.
    y: &'a mut [T],
}

// SAFETY: `As<T>` is `Run<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Run<'a, T> {
    type As<U: Scalar> = Run<'a, U>;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        let row_ptr = self.a.row_ptr();
        let mut row = self.piece.rows.start;
        let mut y = self.y.as_mut_ptr();
        for group in &self.piece.groups {
            let entries = row_ptr[row] as usize..row_ptr[row + 1] as usize;
            let length = entries.len();
            // SAFETY: the group's rows have `length` entries each, one row after the other, in
            // columns that `Piece::new` has copied; columns are below those of A, which x has; y
            // has the rows of the piece. `I` by the caller's promise.
            unsafe {
                let first = self.a.values().as_ptr().add(entries.start);
                let start = group.start as usize;
                let (x, narrow) = (self.x.as_ptr(), self.piece.narrow.as_ptr());
                let wide = self.piece.wide.as_ptr();
                let prefetch = self.prefetch;
                macro_rules! sum {
                    ($rows:literal) => {{
                        let values = Values { first, length, prefetch };
                        if group.narrow {
                            let (x, columns) = (x.add(group.base as usize), narrow.add(start));
                            let fetch = |at| I::gather_u16(x, columns.add(at));
                            sum_rows::<T, I, $rows>(values, fetch, self.scaling, y);
                        } else {
                            let columns = wide.add(start);
                            let fetch = |at| I::gather_u32(x, columns.add(at));
                            sum_rows::<T, I, $rows>(values, fetch, self.scaling, y);
                        }
                    }};
                }
                match group.rows {
                    1 => sum!(1),
                    2 => sum!(2),
                    3 => sum!(3),
                    4 => sum!(4),
                    5 => sum!(5),
                    _ => sum!(6),
                }
                y = y.add(usize::from(group.rows));
            }
            row += usize::from(group.rows);
        }
    }
}

/// Branches of [`sum_rows`] that a processor gets wrong: those that go another way for a row of `length` entries than for the
/// row before. They depend on the pairs of vectors, on the one behind them and on the entries behind that.
pub(super) fn mispredictions(before: usize, length: usize) -> usize {
    let differ = |of: fn(usize) -> usize| usize::from(of(before) != of(length));
    differ(|of| of / (2 * LANES))
        + differ(|of| of % (2 * LANES) / LANES)
        + differ(|of| usize::from(of % LANES > 0))
}

/// The values of consecutive rows of one length.
#[derive(Clone, Copy)]
struct Values<T, const ROWS: usize> {
    first: *const T,
    length: usize,
    prefetch: bool,
}

impl<T: Scalar, const ROWS: usize> Values<T, ROWS> {
    /// The values of row `row` from `at` on.
    ///
    /// # Safety
    /// They are inside the array.
    #[inline(always)]
    unsafe fn of(&self, row: usize, at: usize) -> *const T {
        // SAFETY: the caller's promise.
        let from = unsafe { self.first.add(row * self.length + at) };
        if self.prefetch {
            let group = ROWS * self.length;
            if ROWS == 1 || group > MOST_AHEAD {
                simd::prefetch(from.wrapping_add(AHEAD));
            } else {
                // Lines of the next group one after the other, while the rows of this one are read side by side: memory is
                // slow where it is read in several places at once, a short way in each.
                let line = self.first.wrapping_add(group.max(AHEAD) + ROWS * at + LANES * row);
                if group <= NEAR { simd::prefetch(line) } else { simd::prefetch_far(line) }
            }
        }
        from
    }
}

/// Sums `ROWS` consecutive rows that share their elements of x. `fetch` returns eight elements of x at a
/// time; the last eight are padded with arbitrary elements.
///
/// # Safety
/// As many values and results as said; the instructions of `I`.
#[inline(always)]
unsafe fn sum_rows<T: Scalar, I: Isa<T>, const ROWS: usize>(
    values: Values<T, ROWS>,
    fetch: impl Fn(usize) -> I::Vector,
    scaling: Option<Update<'_, T>>,
    y: *mut T,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let (zero, length) = (I::splat(T::ZERO), values.length);
        // A row alone has two sums, so that one addition need not wait for the other.
        let (mut sums, mut second) = ([zero; ROWS], zero);
        let mut at = 0;
        if ROWS == 1 {
            while at + 2 * LANES <= length {
                let (near, far) = (fetch(at), fetch(at + LANES));
                sums[0] = I::mul_add(I::load(values.of(0, at)), near, sums[0]);
                second = I::mul_add(I::load(values.of(0, at + LANES)), far, second);
                at += 2 * LANES;
            }
        }
        while at + LANES <= length {
            let x = fetch(at);
            for (row, sum) in sums.iter_mut().enumerate() {
                *sum = I::mul_add(I::load(values.of(row, at)), x, *sum);
            }
            at += LANES;
        }
        if at < length {
            let rest = length - at;
            let x = I::keep(((1_u32 << rest) - 1) as u8, fetch(at));
            for (row, sum) in sums.iter_mut().enumerate() {
                *sum = I::mul_add(I::load_first(rest, values.of(row, at)), x, *sum);
            }
        }
        sums[0] = I::add(sums[0], second);
        for (row, sum) in sums.into_iter().enumerate() {
            scaled::store(scaling, I::sum(sum), &mut *y.add(row));
        }
    }
}

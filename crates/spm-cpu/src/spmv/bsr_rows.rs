//! SpMV of BSR, one block row after the other: y_I = sum_J A_IJ x_J.
//!
//! A column of a block is one vector, which is multiplied by one element of x. The lanes beyond the rows
//! of the block hold elements of the next column; their sums are not stored.

use std::ops::Range;

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_formats::{Bsr, CsrSource, CsrView, NewValues, Scalar, convert, partition};

use super::plan::{Memory, Product, boxed};
use super::{KERNEL, row};
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::scaled::{self, Update};
use crate::simd::{self, AHEAD, HALF, Isa, Job, LANES, Machine, PREFETCH};
use crate::workspace::CACHE_LINE;
use crate::{Threads, values};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "bsr-rows",
    source: "own",
    summary: "dense square blocks, a vector for each column of a block",
    parameters: &[BLOCK, PREFETCH],
    ..KERNEL
};

/// The parameter block: rows and columns of a block.
pub(crate) const BLOCK: ParameterSpec = ParameterSpec {
    name: "block",
    meaning: "rows and columns of a block; 0: the size, up to 8, in which the matrix takes the fewest bytes",
    default: Value::Count(0),
    studied: &[
        Value::Count(0),
        Value::Count(2),
        Value::Count(3),
        Value::Count(4),
        Value::Count(5),
        Value::Count(6),
        Value::Count(8),
    ],
};

struct BsrRows<'a, T> {
    /// For rows whose padding meets an infinite or NaN x.
    a: CsrSource<'a, T>,
    bsr: Bsr<T>,
    threads: Threads,
    /// Shares of thread t: `shares[t]..shares[t + 1]`.
    shares: Vec<usize>,
    /// Block rows of share s: `bounds[s]..bounds[s + 1]`.
    bounds: Vec<usize>,
    machine: Machine,
    prefetch: bool,
}

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let view = a.view();
    let size = match parameters.count(BLOCK.name) {
        0 => detected(view)?,
        size => size,
    };
    let bsr = convert::csr_to_bsr(view, (size, size), &options.budget)?;
    let threads = options.threads.clone();
    let shares = threads.shares(view.nnz());
    let bounds = partition::by_entries(bsr.block_ptr(), shares[threads.count()]);
    let machine = Machine::without_gathers();
    let prefetch = parameters.switch(PREFETCH.name);
    Ok(boxed(BsrRows { a, bsr, threads, shares, bounds, machine, prefetch }))
}

/// The size of the blocks that the matrix seems to consist of.
fn detected<T: Scalar>(a: CsrView<'_, T>) -> Result<usize, PlanError> {
    let unsupported = || {
        let reason = "its entries do not form dense square blocks".to_owned();
        PlanError::Unsupported { kernel: INFO.id, reason }
    };
    convert::detect_blocks(a).map(|blocks| blocks.size).ok_or_else(unsupported)
}

impl<T: Scalar> Product<T> for BsrRows<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        self.prefetch = parameters.switch(PREFETCH.name);
        self.threads = threads.clone();
        true
    }

    fn memory(&self) -> Memory {
        let padding = size_of_val(self.bsr.padding());
        let read = self.bsr.memory_bytes() as usize - padding;
        let bounds = size_of_val(&*self.bounds) + size_of_val(&*self.shares);
        Memory::owned(read, padding + bounds)
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, bsr, prefetch) = (self.a.view(), &self.bsr, self.prefetch);
        // The jobs index x by the columns of blocks.
        assert!(x.len() >= bsr.cols(), "x has {} elements", x.len());
        let y = Disjoint::new(y);
        self.threads.share(&self.shares, |_, share| {
            let block_rows = self.bounds[share]..self.bounds[share + 1];
            let row = |block_row: usize| bsr.rows().min(block_row * bsr.block().0);
            // SAFETY: the block rows of shares, and so their rows, do not overlap.
            let y = unsafe { y.range(row(block_rows.start)..row(block_rows.end)) };
            self.machine.run(Run { a, bsr, block_rows, prefetch, scaling, x, y });
        });
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let of_threads = (&self.threads, &self.shares[..]);
        values::set_blocks(&mut self.a, &mut self.bsr, new, of_threads, &self.bounds)
    }
}

/// The product of some block rows.
struct Run<'a, T> {
    a: CsrView<'a, T>,
    bsr: &'a Bsr<T>,
    block_rows: Range<usize>,
    prefetch: bool,
    scaling: Option<Update<'a, T>>,
    x: &'a [T],
    /// The rows of the block rows.
    y: &'a mut [T],
}

// SAFETY: `As<T>` is `Run<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Run<'a, T> {
    type As<U: Scalar> = Run<'a, U>;
    const GATHERS: bool = false;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        // SAFETY: `multiply` has checked x and cut y; `I` by the caller's promise.
        unsafe {
            match self.bsr.block().0 {
                2 => self.rows::<I, Half, 2>(),
                3 => self.rows::<I, Half, 3>(),
                4 => self.rows::<I, Half, 4>(),
                5 => self.rows::<I, Whole, 5>(),
                6 => self.rows::<I, Whole, 6>(),
                8 => self.rows::<I, Whole, 8>(),
                _ => self.rows_of_any::<I>(),
            }
        }
    }
}

/// Vectors that hold a column of a block.
///
/// # Safety
/// Of every function: as those of [`Isa`]. Loads and stores are of `LANES` elements.
trait Vectors<T: Scalar, I: Isa<T>> {
    const LANES: usize;
    type Vector: Copy;

    unsafe fn splat(value: T) -> Self::Vector;
    unsafe fn load(from: *const T) -> Self::Vector;
    unsafe fn store(to: *mut T, vector: Self::Vector);
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn mul_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
}

/// [`Vectors`] of functions of [`Isa`].
macro_rules! vectors {
    ($(#[$meta:meta])* $name:ident, $lanes:expr, $vector:ident:
        $splat:ident $load:ident $store:ident $add:ident $mul_add:ident) => {
        $(#[$meta])*
        struct $name;

        // SAFETY of the blocks: the caller's promise.
        #[expect(clippy::undocumented_unsafe_blocks, reason = "each is one call; see above")]
        impl<T: Scalar, I: Isa<T>> Vectors<T, I> for $name {
            const LANES: usize = $lanes;
            type Vector = I::$vector;

            #[inline(always)]
            unsafe fn splat(value: T) -> I::$vector {
                unsafe { I::$splat(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const T) -> I::$vector {
                unsafe { I::$load(from) }
            }
            #[inline(always)]
            unsafe fn store(to: *mut T, vector: I::$vector) {
                unsafe { I::$store(to, vector) }
            }
            #[inline(always)]
            unsafe fn add(a: I::$vector, b: I::$vector) -> I::$vector {
                unsafe { I::$add(a, b) }
            }
            #[inline(always)]
            unsafe fn mul_add(a: I::$vector, b: I::$vector, c: I::$vector) -> I::$vector {
                unsafe { I::$mul_add(a, b, c) }
            }
        }
    };
}

vectors!(
    /// Whole vectors.
    Whole, LANES, Vector: splat load store add mul_add
);
vectors!(
    /// Halves of vectors.
    Half, HALF, Half: splat_half load_half store_half add_half mul_add_half
);

impl<T: Scalar> Run<'_, T> {
    /// # Safety
    /// Blocks of `N` x `N`, which is at most the lanes of `V`; x has an element for each column of A, y the
    /// rows of the block rows, the processor the instructions of `I`.
    #[inline(always)]
    unsafe fn rows<I: Isa<T>, V: Vectors<T, I>, const N: usize>(self) {
        let Self { a, bsr, block_rows, prefetch, scaling, x, y } = self;
        let values = bsr.values();
        // Without padding no sum has a term that A does not have.
        let exact = bsr.padding().is_empty();
        let block_ptr = &bsr.block_ptr()[block_rows.start..=block_rows.end];
        let first_row = block_rows.start * N;
        for ((index, y), ends) in y.chunks_mut(N).enumerate().zip(block_ptr.windows(2)) {
            let blocks = ends[0] as usize..ends[1] as usize;
            let mut sums = [T::ZERO; LANES];
            // SAFETY: a `Bsr` has `N` x `N` values for each block, and a column of A for the first column
            // of each. `I` by the caller's promise.
            unsafe {
                // The vector of the last column ends inside the values, and the last block inside A.
                let block_cols = bsr.block_col().get_unchecked(blocks.clone());
                let end_col = block_cols.last().map_or(0, |&last| (last as usize + 1) * N);
                let end = blocks.end * N * N + V::LANES - N;
                if end <= values.len() && end_col <= bsr.cols() {
                    let mut block = blocks.start;
                    let mut even = [V::splat(T::ZERO); N];
                    if N < HALF {
                        // A second sum for each column: an addition need not wait for the one before.
                        let mut odd = even;
                        while block + 2 <= blocks.end {
                            add_block::<T, I, V, N>(bsr, block, prefetch, x, &mut even);
                            add_block::<T, I, V, N>(bsr, block + 1, prefetch, x, &mut odd);
                            block += 2;
                        }
                        for (even, odd) in even.iter_mut().zip(odd) {
                            *even = V::add(*even, odd);
                        }
                    }
                    while block < blocks.end {
                        add_block::<T, I, V, N>(bsr, block, prefetch, x, &mut even);
                        block += 1;
                    }
                    let mut rest = N;
                    while rest > 1 {
                        let half = rest.div_ceil(2);
                        for col in half..rest {
                            even[col - half] = V::add(even[col - half], even[col]);
                        }
                        rest = half;
                    }
                    V::store(sums.as_mut_ptr(), even[0]);
                } else {
                    sums_of_any::<T, I>(bsr, blocks, 0..N, x, &mut sums);
                }
            }
            if exact {
                y.iter_mut().zip(sums).for_each(|(y, sum)| scaled::store(scaling, sum, y));
            } else {
                store(&a, first_row + index * N, &sums, scaling, x, y);
            }
        }
    }

    /// # Safety
    /// x has an element for each column of A, y the rows of the block rows, the processor the instructions
    /// of `I`.
    #[inline(always)]
    unsafe fn rows_of_any<I: Isa<T>>(self) {
        let Self { a, bsr, block_rows, scaling, x, y, .. } = self;
        let size = bsr.block().0;
        let mut row = block_rows.start * size;
        let block_ptr = &bsr.block_ptr()[block_rows.start..=block_rows.end];
        for (y, ends) in y.chunks_mut(size).zip(block_ptr.windows(2)) {
            for (group, y) in y.chunks_mut(LANES).enumerate() {
                let blocks = ends[0] as usize..ends[1] as usize;
                let rows = group * LANES..group * LANES + y.len();
                let mut sums = [T::ZERO; LANES];
                // SAFETY: the caller's promise; a block has at least the rows that y has.
                unsafe { sums_of_any::<T, I>(bsr, blocks, rows, x, &mut sums) };
                store(&a, row, &sums, scaling, x, y);
                row += y.len();
            }
        }
    }
}

/// Adds the product of each column of a block with its element of x to the sum of the column.
///
/// # Safety
/// The block has `N` x `N` elements and no column beyond those of A; as many elements of x as A has
/// columns; the vector from the last column on ends inside the values; the instructions of `I`.
#[inline(always)]
unsafe fn add_block<T: Scalar, I: Isa<T>, V: Vectors<T, I>, const N: usize>(
    bsr: &Bsr<T>,
    block: usize,
    prefetch: bool,
    x: &[T],
    sums: &mut [V::Vector; N],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let from = bsr.values().as_ptr().add(block * N * N);
        if prefetch {
            for line in 0..(N * N * T::BYTES).div_ceil(CACHE_LINE) {
                simd::prefetch(from.wrapping_add(AHEAD + line * CACHE_LINE / T::BYTES));
            }
        }
        let x = x.as_ptr().add(*bsr.block_col().get_unchecked(block) as usize * N);
        for (col, sum) in sums.iter_mut().enumerate() {
            *sum = V::mul_add(V::load(from.add(col * N)), V::splat(*x.add(col)), *sum);
        }
    }
}

/// The sums of some rows of a block row, at most [`LANES`], for square blocks of any size.
///
/// # Safety
/// The rows and the blocks are there; as many elements of x as A has columns; the instructions of `I`.
#[inline(always)]
unsafe fn sums_of_any<T: Scalar, I: Isa<T>>(
    bsr: &Bsr<T>,
    blocks: Range<usize>,
    rows: Range<usize>,
    x: &[T],
    sums: &mut [T; LANES],
) {
    let size = bsr.block().0;
    // SAFETY: a `Bsr` has `size` x `size` values for each block, and a column of A for the first column of
    // each; the rest by the caller's promise.
    unsafe {
        let mut sum = I::splat(T::ZERO);
        for block in blocks {
            let first_col = *bsr.block_col().get_unchecked(block) as usize * size;
            for col in 0..size.min(bsr.cols() - first_col) {
                let from = bsr.values().as_ptr().add((block * size + col) * size + rows.start);
                let value = I::load_first(rows.len(), from);
                sum = I::mul_add(value, I::splat(*x.as_ptr().add(first_col + col)), sum);
            }
        }
        I::store(sums.as_mut_ptr(), sum);
    }
}

/// Stores the sums of the rows of `y`, from row `first_row` of A on.
#[inline(always)]
fn store<T: Scalar>(
    a: &CsrView<'_, T>,
    first_row: usize,
    sums: &[T; LANES],
    scaling: Option<Update<'_, T>>,
    x: &[T],
    y: &mut [T],
) {
    for ((row, &sum), y) in (first_row..).zip(sums).zip(y) {
        // Padding may have met an infinite x; 0 x inf is NaN.
        let sum = if sum.is_finite() { sum } else { row::dot_row(a, row, x) };
        scaled::store(scaling, sum, y);
    }
}

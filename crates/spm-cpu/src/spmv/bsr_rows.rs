//! SpMV of BSR, one block row after the other: y_I = sum_J A_IJ x_J.
//!
//! A column of a block is one vector, which is multiplied by one element of x. The lanes beyond the rows
//! of the block hold elements of the next column; their sums are not stored.

use std::ops::Range;

use spm_formats::kernel::{KernelInfo, ParameterSpec, PlanError, Value};
use spm_formats::{Bsr, CsrSource, CsrView, NewValues, Scalar, convert, partition};

use super::plan::{Memory, Product, boxed};
use super::{KERNEL, row};
use crate::Threads;
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::scaled::{self, Update};
use crate::simd::{self, AHEAD, Isa, Job, LANES, Machine, PREFETCH};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "bsr-rows",
    source: "own",
    summary: "dense square blocks, a vector for each column of a block",
    parameters: &[BLOCK, PREFETCH],
    ..KERNEL
};

/// The parameter block: rows and columns of a block.
pub(super) const BLOCK: ParameterSpec = ParameterSpec {
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

/// Sums of a block row, enough to hide the latency of a multiply-add.
const SUMS: usize = 4;

struct BsrRows<'a, T> {
    /// For rows whose padding meets an infinite or NaN x.
    a: CsrSource<'a, T>,
    bsr: Bsr<T>,
    threads: Threads,
    /// Block rows of thread t: `bounds[t]..bounds[t + 1]`.
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
    let bounds = partition::by_entries(bsr.block_ptr(), threads.count());
    let machine = Machine::without_gathers();
    let prefetch = parameters.switch(PREFETCH.name);
    Ok(boxed(BsrRows { a, bsr, threads, bounds, machine, prefetch }))
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

    fn memory(&self) -> Memory {
        let padding = size_of_val(self.bsr.padding());
        let read = self.bsr.memory_bytes() as usize - padding;
        Memory::owned(read, padding + size_of_val(&*self.bounds))
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, bsr, prefetch) = (self.a.view(), &self.bsr, self.prefetch);
        // The jobs index x by the columns of blocks.
        assert!(x.len() >= bsr.cols(), "x has {} elements", x.len());
        let y = Disjoint::new(y);
        self.threads.run(|part| {
            let block_rows = self.bounds[part]..self.bounds[part + 1];
            let row = |block_row: usize| bsr.rows().min(block_row * bsr.block().0);
            // SAFETY: the block rows of parts, and so their rows, do not overlap.
            let y = unsafe { y.range(row(block_rows.start)..row(block_rows.end)) };
            self.machine.run(Run { a, bsr, block_rows, prefetch, scaling, x, y });
        });
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        self.bsr.set_values(self.a.view_with(&new)?.values())?;
        self.a.set_values(new)
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
                2 => self.rows::<I, 2>(),
                3 => self.rows::<I, 3>(),
                4 => self.rows::<I, 4>(),
                5 => self.rows::<I, 5>(),
                6 => self.rows::<I, 6>(),
                8 => self.rows::<I, 8>(),
                _ => self.rows_of_any::<I>(),
            }
        }
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

impl<T: Scalar> Run<'_, T> {
    /// # Safety
    /// Blocks of `N` x `N`, at most [`LANES`]; x has an element for each column of A, y the rows of the block
    /// rows, the processor the instructions of `I`.
    #[inline(always)]
    unsafe fn rows<I: Isa<T>, const N: usize>(self) {
        let Self { a, bsr, block_rows, prefetch, scaling, x, y } = self;
        let (values, block_col) = (bsr.values(), bsr.block_col());
        let block_ptr = &bsr.block_ptr()[block_rows.start..=block_rows.end];
        let first_row = block_rows.start * N;
        for ((index, y), ends) in y.chunks_mut(N).enumerate().zip(block_ptr.windows(2)) {
            let blocks = ends[0] as usize..ends[1] as usize;
            // SAFETY: a `Bsr` has `N` x `N` values for each block, and a column of A for the first
            // column of each; loads of whole vectors end inside the values. `I` by the caller's
            // promise.
            let sums = unsafe {
                let mut sums = [I::splat(T::ZERO); SUMS];
                let from = values.as_ptr();
                macro_rules! add_blocks {
                    ($load:expr) => {
                        for block in blocks {
                            let from = from.add(block * N * N);
                            if prefetch {
                                for line in 0..(N * N * T::BYTES).div_ceil(LINE) {
                                    let ahead = AHEAD + line * LINE / T::BYTES;
                                    simd::prefetch(from.wrapping_add(ahead));
                                }
                            }
                            let first_col = *block_col.get_unchecked(block) as usize * N;
                            let x = x.as_ptr().add(first_col);
                            macro_rules! add_cols {
                                ($count:expr) => {
                                    for col in 0..$count {
                                        let value = $load(from.add(col * N));
                                        let sum = &mut sums[col % SUMS];
                                        *sum = I::mul_add(value, I::splat(*x.add(col)), *sum);
                                    }
                                };
                            }
                            if first_col + N <= bsr.cols() {
                                add_cols!(N);
                            } else {
                                add_cols!(bsr.cols() - first_col);
                            }
                        }
                    };
                }
                if blocks.end * N * N + LANES - N <= values.len() {
                    add_blocks!(|from: *const T| I::load(from));
                } else {
                    add_blocks!(|from| I::load_first(N, from));
                }
                let mut lanes = [T::ZERO; LANES];
                let [first, second, third, fourth] = sums;
                I::store(lanes.as_mut_ptr(), I::add(I::add(first, third), I::add(second, fourth)));
                lanes
            };
            store(&a, first_row + index * N, &sums, scaling, x, y);
        }
    }

    /// # Safety
    /// x has an element for each column of A, y the rows of the block rows, the processor the instructions
    /// of `I`.
    #[inline(always)]
    unsafe fn rows_of_any<I: Isa<T>>(self) {
        let Self { a, bsr, block_rows, scaling, x, y, .. } = self;
        let (size, values, block_col) = (bsr.block().0, bsr.values(), bsr.block_col());
        let mut row = block_rows.start * size;
        let block_ptr = &bsr.block_ptr()[block_rows.start..=block_rows.end];
        for (y, ends) in y.chunks_mut(size).zip(block_ptr.windows(2)) {
            for (group, y) in y.chunks_mut(LANES).enumerate() {
                let count = y.len();
                let mut sums = [T::ZERO; LANES];
                // SAFETY: a `Bsr` has `size` x `size` values for each block, and a column of A for the
                // first column of each. `I` by the caller's promise.
                unsafe {
                    let mut sum = I::splat(T::ZERO);
                    for block in ends[0] as usize..ends[1] as usize {
                        let first_col = *block_col.get_unchecked(block) as usize * size;
                        for col in 0..size.min(bsr.cols() - first_col) {
                            let at = (block * size + col) * size + group * LANES;
                            let value = I::load_first(count, values.as_ptr().add(at));
                            let x = I::splat(*x.as_ptr().add(first_col + col));
                            sum = I::mul_add(value, x, sum);
                        }
                    }
                    I::store(sums.as_mut_ptr(), sum);
                }
                store(&a, row, &sums, scaling, x, y);
                row += count;
            }
        }
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

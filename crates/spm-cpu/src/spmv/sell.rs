//! SELL-C-sigma SpMV: y_i = sum_s value(i, s) x_column(i, s), C rows at once (Kreutzer, Hager,
//! Wellein, Fehske and Bishop, SIAM J. Sci. Comput. 36(5), 2014).

use spm_formats::convert::csr_to_sell;
use spm_formats::kernel::{KernelInfo, ParameterSpec, PlanError, Value};
use spm_formats::{CsrSource, CsrView, RealScalar, Scalar, Sell, partition};

use super::KERNEL;
use super::plan::{Memory, Product, boxed};
use super::row;
use super::sell_compact::SIGMA;
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::scaled::Update;
use crate::simd::{GATHER, Isa, Job, LANES, Machine};
use crate::{Threads, scaled};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell",
    source: "own; SELL-C-sigma (Kreutzer et al. 2014)",
    summary: "SELL-C-sigma: chunks of C rows, sorted by length inside windows of sigma rows",
    parameters: &[CHUNK, SIGMA, GATHER],
    ..KERNEL
};

/// The parameter C: rows of a chunk.
const CHUNK: ParameterSpec = ParameterSpec {
    name: "chunk",
    meaning: "rows of a chunk, a multiple of 8",
    default: Value::Count(8),
    studied: &[Value::Count(8), Value::Count(16), Value::Count(32)],
};

struct SellRows<'a, T> {
    /// For rows that are recomputed because padding made their sum infinite or NaN.
    a: CsrSource<'a, T>,
    sell: Sell<T>,
    threads: Threads,
    /// Chunks of thread t: `bounds[t]..bounds[t + 1]`.
    bounds: Vec<usize>,
    machine: Machine,
}

pub(super) fn plan<'a, T: RealScalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let chunk = parameters.count(CHUNK.name);
    if !chunk.is_multiple_of(LANES) {
        let reason = format!("chunk {chunk} is not a multiple of {LANES}");
        return Err(PlanError::Unsupported { kernel: INFO.id, reason });
    }
    let sell = csr_to_sell(a.view(), chunk, parameters.count(SIGMA.name), &options.budget)?;
    let threads = options.threads.clone();
    let bounds = partition::by_weight(sell.chunk_offsets(), threads.count());
    let machine = Machine::for_gathers(parameters, a.view().cols());
    Ok(boxed(SellRows { a, sell, threads, bounds, machine }))
}

impl<T: Scalar> Product<T> for SellRows<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        let all = self.sell.memory_bytes();
        // Row lengths are not read.
        let read = all - size_of_val(self.sell.row_lengths()) as u64;
        Memory { matrix: read, plan: all + size_of_val(&*self.bounds) as u64 }
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        // The jobs index x by the columns of A.
        let a = self.a.view();
        assert!(x.len() >= a.cols(), "x has {} elements", x.len());
        let y = Disjoint::new(y);
        self.threads.run(|part| {
            let chunks = self.bounds[part]..self.bounds[part + 1];
            self.machine.run(Chunks { a: &a, sell: &self.sell, chunks, scaling, x, y });
        });
    }
}

/// The product of some chunks.
struct Chunks<'a, T> {
    a: &'a CsrView<'a, T>,
    sell: &'a Sell<T>,
    chunks: std::ops::Range<usize>,
    scaling: Option<Update<'a, T>>,
    x: &'a [T],
    /// All rows of y. These chunks write the rows that the permutation assigns to them.
    y: Disjoint<'a, T>,
}

// SAFETY: `As<T>` is `Chunks<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Chunks<'a, T> {
    type As<U: Scalar> = Chunks<'a, U>;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        let (sell, height) = (self.sell, self.sell.chunk());
        let (cols, values) = (sell.col_ind(), sell.values());
        let mut lanes = [T::ZERO; LANES];
        for chunk in self.chunks.clone() {
            let elements = sell.chunk_offsets()[chunk]..sell.chunk_offsets()[chunk + 1];
            let rows = &sell.permutation()[chunk * height..];
            let rows = &rows[..rows.len().min(height)];
            // Groups of lanes beyond the last row are padding only.
            for (group, rows) in (0..height).step_by(LANES).zip(rows.chunks(LANES)) {
                // SAFETY: every stored element of a chunk has `height` elements in both arrays, columns
                // below those of A, which x has; `I` by the caller's promise.
                unsafe {
                    let mut sums = I::splat(T::ZERO);
                    for at in elements.clone().step_by(height).map(|element| element + group) {
                        let x = I::gather_u32(self.x.as_ptr(), cols.as_ptr().add(at));
                        sums = I::mul_add(I::load(values.as_ptr().add(at)), x, sums);
                    }
                    I::store(lanes.as_mut_ptr(), sums);
                }
                for (&row, &sum) in rows.iter().zip(&lanes) {
                    let row = row as usize;
                    // SAFETY: the permutation has each row once, and each chunk has one thread.
                    let y = unsafe { &mut self.y.range(row..row + 1)[0] };
                    // Padding may have met an infinite x; 0 x inf is NaN.
                    let sum = if sum.is_finite() { sum } else { row::dot_row(self.a, row, self.x) };
                    scaled::store(self.scaling, sum, y);
                }
            }
        }
    }
}

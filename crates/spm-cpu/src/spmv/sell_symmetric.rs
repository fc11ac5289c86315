//! y = (U + D + U^T) x from the upper half of a symmetric matrix whose neighbouring rows repeat a
//! pattern shifted by one (stencils, bands): half the values, and no gathers.
//!
//! Slot s of a chunk of eight rows i..i + 8 holds their entries in columns c..c + 8. It is used
//! twice: y[i..i + 8] += v x[c..c + 8], and y[c..c + 8] += v x[i..i + 8]. What a thread adds beyond
//! its own rows goes to a spill of its own first, so that the order of additions never depends on
//! timing.

use std::ops::Range;

use rayon::prelude::*;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrArrays, CsrView, Scalar, partition};

use super::BoxedPlan;
use super::plan::{Memory, Product, boxed};
use super::repair::{any_not_finite, repair};
use crate::aligned::Aligned;
use crate::disjoint::Disjoint;
use crate::simd::{Isa, Job, LANES, Machine};
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell-symmetric",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "own",
    summary: "upper half of a symmetric matrix with constant diagonals, eight rows side by side",
    parameters: &[],
};

/// Slots per upper entry beyond which the half is no gain.
const MOST_PADDING: f64 = 1.4;

/// The rows of one thread: whole chunks of eight, but for the last of the matrix.
struct Part<T> {
    rows: Range<usize>,
    /// Slots of each chunk.
    widths: Vec<u16>,
    /// First column of each slot, ascending inside a chunk; the diagonal comes first and is
    /// always there.
    firsts: Vec<u32>,
    values: Aligned<T>,
    /// What is added to rows from `rows.end - LANES` on by slots that reach beyond `rows.end`.
    spill: Vec<T>,
    /// Whether the last product left only finite numbers in its rows.
    finite: bool,
}

struct SellSymmetric<'a, T> {
    /// For the rows that padding may spoil, and those after the last whole chunk.
    a: CsrArrays<'a, T>,
    parts: Vec<Part<T>>,
    threads: Threads,
    machine: Machine,
}

pub(super) fn plan<'a, T: Scalar>(
    a: &CsrView<'a, T>,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let a = CsrArrays::new(a)?;
    let unsupported = |reason| PlanError::Unsupported { kernel: INFO.id, reason };
    if let Some(reason) = asymmetry(&a) {
        return Err(unsupported(reason));
    }
    let threads = options.threads.clone();
    let bounds = partition::by_entries(a.pointers(), threads.count());
    let chunks: Vec<_> = bounds.iter().map(|row| row / LANES * LANES).collect();
    let parts = (0..threads.count()).into_par_iter().map(|part| {
        let end = if part + 1 == threads.count() { a.rows() } else { chunks[part + 1] };
        Part::new(&a, chunks[part]..end)
    });
    let parts: Vec<_> = parts.collect();
    let upper = (a.entries() + a.rows()) / 2;
    let slots: usize = parts.iter().map(|part| part.values.len()).sum();
    if slots as f64 > MOST_PADDING * upper as f64 + (LANES * LANES) as f64 {
        let reason = format!("{slots} slots for {upper} entries: rows do not repeat a pattern");
        return Err(unsupported(reason));
    }
    let machine = Machine::detect("vector", a.cols());
    Ok(boxed(SellSymmetric { a, parts, threads, machine }))
}

/// Why the matrix is not symmetric, pattern and values; `None` if it is.
fn asymmetry<T: Scalar>(a: &CsrArrays<'_, T>) -> Option<String> {
    if a.rows() != a.cols() {
        return Some(format!("{} x {} is not square", a.rows(), a.cols()));
    }
    // Row i's entry in column j < i must be the next one of row j beyond its diagonal that no row
    // before i has asked for.
    let mut next: Vec<u32> = Vec::with_capacity(a.rows());
    for (row, ends) in a.pointers().windows(2).enumerate() {
        let cols = &a.col_indices()[ends[0] as usize..ends[1] as usize];
        if !cols.is_sorted_by(|a, b| a < b) {
            return Some(format!("row {row} has columns that do not ascend"));
        }
        let lower = cols.partition_point(|&col| (col as usize) < row);
        for entry in ends[0] as usize..ends[0] as usize + lower {
            let col = a.col_indices()[entry] as usize;
            let mirror = next[col] as usize;
            next[col] += 1;
            let same = mirror < a.pointers()[col + 1] as usize
                && a.col_indices()[mirror] as usize == row
                && a.values()[mirror].to_bits64() == a.values()[entry].to_bits64();
            if !same {
                return Some(format!("entry ({row}, {col}) has no equal at ({col}, {row})"));
            }
        }
        let diagonal = cols.get(lower).is_some_and(|&col| col as usize == row);
        next.push(ends[0] + lower as u32 + u32::from(diagonal));
    }
    let left = (0..a.rows()).find(|&row| next[row] != a.pointers()[row + 1]);
    left.map(|row| format!("row {row} has an entry without an equal below the diagonal"))
}

impl<T: Scalar> Part<T> {
    fn new(a: &CsrArrays<'_, T>, rows: Range<usize>) -> Self {
        let (mut widths, mut all_firsts, mut values) = (vec![], vec![], vec![]);
        let mut reach = rows.end;
        let whole = rows.start + rows.len() / LANES * LANES;
        for start in (rows.start..whole).step_by(LANES) {
            let upper = |lane: usize| {
                let row = start + lane;
                let entries = a.pointers()[row] as usize..a.pointers()[row + 1] as usize;
                let cols = &a.col_indices()[entries.clone()];
                entries.start + cols.partition_point(|&col| (col as usize) < row)..entries.end
            };
            let mut firsts = vec![start as u32];
            for lane in 0..LANES {
                firsts.extend(a.col_indices()[upper(lane)].iter().map(|&col| col - lane as u32));
            }
            firsts.sort_unstable();
            firsts.dedup();
            let offset = values.len();
            values.resize(offset + firsts.len() * LANES, T::ZERO);
            for lane in 0..LANES {
                let mut slot = 0;
                for entry in upper(lane) {
                    let first = a.col_indices()[entry] - lane as u32;
                    slot += firsts[slot..].iter().take_while(|&&f| f < first).count();
                    values[offset + slot * LANES + lane] = a.values()[entry];
                }
            }
            let last = firsts.last().map_or(0, |&first| first as usize + LANES);
            reach = reach.max(last);
            widths.push(firsts.len() as u16);
            all_firsts.extend(firsts);
        }
        let spill = vec![T::ZERO; reach + LANES - rows.end];
        Self { rows, widths, firsts: all_firsts, values: values.into(), spill, finite: true }
    }
}

impl<T: Scalar> Product<T> for SellSymmetric<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.a.rows(), self.a.cols())
    }

    fn memory(&self) -> Memory {
        let bytes = |part: &Part<T>| {
            size_of_val(&*part.widths) + size_of_val(&*part.firsts) + size_of_val(&*part.values)
        };
        let spills = self.parts.iter().map(|part| size_of_val(&*part.spill)).sum();
        Memory::owned(self.parts.iter().map(bytes).sum(), spills)
    }

    fn multiply(&mut self, x: &[T], y: &mut [T]) {
        let (a, machine) = (self.a, self.machine);
        let all_rows = Disjoint::new(y);
        let parts = Disjoint::new(&mut self.parts);
        self.threads.run(|part| {
            // SAFETY: each thread has its own part, and the rows of parts do not overlap.
            let part = unsafe { &mut parts.range(part..part + 1)[0] };
            // SAFETY: as above.
            let y = unsafe { all_rows.range(part.rows.clone()) };
            machine.run(Upper { part, x, y });
            part.finish_last_rows(&a, x, y);
        });
        let parts = &self.parts;
        self.threads.run(|part| {
            let rows = parts[part].rows.clone();
            // SAFETY: the rows of parts do not overlap.
            let y = unsafe { all_rows.range(rows.clone()) };
            let mut finite = parts[part].finite;
            for from in &parts[..=part] {
                // Spills of parts before, and of the own part onto its last rows.
                let spilt = (from.rows.end.max(LANES) - LANES).max(rows.start);
                let end = (from.rows.end + from.spill.len() - LANES).min(rows.end);
                if spilt < end {
                    let y = &mut y[spilt - rows.start..end - rows.start];
                    let spill = &from.spill[spilt + LANES - from.rows.end..];
                    y.iter_mut().zip(spill).for_each(|(y, &spill)| *y += spill);
                    finite &= !any_not_finite(y);
                }
            }
            if !finite {
                repair(&a, rows, x, y);
            }
        });
    }
}

impl<T: Scalar> Part<T> {
    /// Adds the rows after the last whole chunk, entry by entry.
    fn finish_last_rows(&mut self, a: &CsrArrays<'_, T>, x: &[T], y: &mut [T]) {
        let start = self.rows.start;
        for row in start + self.widths.len() * LANES..self.rows.end {
            for entry in a.pointers()[row] as usize..a.pointers()[row + 1] as usize {
                let (col, value) = (a.col_indices()[entry] as usize, a.values()[entry]);
                if col >= row {
                    y[row - start] += value * x[col];
                }
                if col > row {
                    y[col - start] += value * x[row];
                }
            }
            self.finite &= y[row - start].is_finite();
        }
    }
}

/// The whole chunks of one part.
struct Upper<'a, T> {
    part: &'a mut Part<T>,
    x: &'a [T],
    /// The rows of the part.
    y: &'a mut [T],
}

// SAFETY: `As<T>` is `Upper<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Upper<'a, T> {
    type As<U: Scalar> = Upper<'a, U>;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        let Self { part, x, y } = self;
        let (start, end) = (part.rows.start, part.rows.end);
        part.spill.fill(T::ZERO);
        let (mut firsts, mut values) = (part.firsts.as_ptr(), part.values.as_ptr());
        // Rows below this one hold sums already.
        let mut cleared = start;
        // SAFETY: `Part::new` has put into the arrays what the chunks consume. A slot starts at or
        // after its chunk; one that ends inside the part is inside x and y; one that does not is
        // inside the spill, and is read of x only as far as x goes. `I` by the caller's promise.
        unsafe {
            let zero = I::splat(T::ZERO);
            let mut spoilt = zero;
            for (chunk, &width) in part.widths.iter().enumerate() {
                let (row, width) = (start + chunk * LANES, usize::from(width));
                let reach = *firsts.add(width - 1) as usize + LANES;
                if cleared < reach.min(end) {
                    // Clear in steps, so that the loop does not do this for every chunk.
                    let next = (reach + 16 * LANES).min(end);
                    y[cleared - start..next - start].fill(T::ZERO);
                    cleared = next;
                }
                let own_x = I::load(x.as_ptr().add(row));
                let own_y = y.as_mut_ptr().add(row - start);
                let mut even = I::mul_add(I::load(values), own_x, zero);
                let mut odd = zero;
                let y_of_row_0 = y.as_mut_ptr().wrapping_sub(start);
                macro_rules! both_ways {
                    ($slot:expr, $sum:ident) => {{
                        let first = *firsts.add($slot) as usize;
                        let value = I::load(values.add($slot * LANES));
                        $sum = I::mul_add(value, I::load(x.as_ptr().add(first)), $sum);
                        let target = y_of_row_0.wrapping_add(first);
                        I::store(target, I::mul_add(value, own_x, I::load(target)));
                    }};
                }
                if reach <= end {
                    for slot in (2..width).step_by(2) {
                        both_ways!(slot - 1, odd);
                        both_ways!(slot, even);
                    }
                    if width % 2 == 0 {
                        both_ways!(width - 1, odd);
                    }
                } else {
                    for slot in 1..width {
                        let first = *firsts.add(slot) as usize;
                        if first + LANES <= end {
                            both_ways!(slot, odd);
                            continue;
                        }
                        let value = I::load(values.add(slot * LANES));
                        let there = (x.len() - first).min(LANES);
                        let other_x = I::load_first(there, x.as_ptr().add(first));
                        even = I::mul_add(value, other_x, even);
                        let target = part.spill.as_mut_ptr().add(first + LANES - end);
                        I::store(target, I::mul_add(value, own_x, I::load(target)));
                    }
                }
                let sums = I::add(I::add(even, odd), I::load(own_y));
                spoilt = I::mul_add(sums, zero, spoilt);
                I::store(own_y, sums);
                firsts = firsts.add(width);
                values = values.add(width * LANES);
            }
            part.finite = I::sum(spoilt) == T::ZERO;
        }
        y[cleared - start..].fill(T::ZERO);
    }
}

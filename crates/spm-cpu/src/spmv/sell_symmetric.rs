//! Symmetric SpMV from the upper half of the matrix: y = (U + D + U^T) x.
//!
//! The kernel suits matrices whose neighbouring rows have the same pattern shifted by one
//! (stencils, bands). It reads half of the values and needs no gathers.
//!
//! Chunk column s of a chunk of rows i..i + 8 holds their entries in columns c..c + 8. It is
//! used twice: y[i..i + 8] += v x[c..c + 8], and y[c..c + 8] += v x[i..i + 8]. Additions beyond a
//! thread's own rows go to a buffer of the thread first, so that their order never depends on
//! timing.
//!
//! alpha is multiplied in with x[i..i + 8] and the sums of a chunk, and rows are multiplied by beta
//! before the first addition to them. Padding multiplies elements of x by 0, so a chunk is computed
//! only after the elements of x that it reads have been found finite. From the first chunk on where
//! they are not, rows are computed entry by entry.
//!
//! Up to three chunk columns with c, c + 1, c + 2 make a run, which is added to y[c..c + 8] and
//! y[c + 8..c + 16] at once. Adding each one separately would load, at an offset of eight bytes, what
//! has just been stored, and that load waits until the store has left the store queue.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use spm_formats::kernel::{KernelInfo, Parameters, PlanError};
use spm_formats::{CsrSource, CsrView, FormatError, NewValues, RealScalar, Scalar, partition};

mod values;

use super::KERNEL;
use super::plan::{Memory, Product, boxed};
use super::sell_compact::builder::{each_element, merge};
use crate::aligned::Aligned;
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::pool::Pool;
use crate::scaled::Update;
use crate::simd::{self, AHEAD, Isa, Job, LANES, Machine, PREFETCH};
use crate::symmetry::{asymmetry, is_symmetric};
use crate::values::Stores;
use crate::{PlanOptions, Threads, aligned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell-symmetric",
    source: "own",
    summary: "SELL-8 of the upper half of a symmetric stencil or band matrix",
    parameters: &[PREFETCH],
    ..KERNEL
};

/// Stored elements for each upper entry beyond which storing the half does not pay.
const MOST_PADDING: f64 = 1.6;

/// Share of the entries of a part that may be stored beyond [`MOST_PADDING`] on the way.
const EARLY: usize = 16;

/// Stored elements of a part that are counted together: threads that count one by one wait for each other.
const UNCOUNTED: usize = 1024;

/// Maximum chunk columns of a run.
const LONGEST_RUN: usize = 3;

/// Chunk columns whose first columns are consecutive.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// First column of the first chunk column.
    first: u32,
    count: u32,
}

/// The rows of one thread: whole chunks of eight rows, except at the end of the matrix.
struct Part<T> {
    rows: Range<usize>,
    /// Number of runs of each chunk.
    run_counts: Box<[u16]>,
    /// The runs, ascending inside a chunk; the first begins with the diagonal, which is always
    /// stored.
    runs: Box<[Run]>,
    /// Of each chunk, whether it has no padding.
    full: Box<[bool]>,
    /// Of chunks with padding, for each chunk column a bit for each row that has an entry, for new values.
    masks: Box<[u8]>,
    /// Entries of each row below the diagonal.
    lower: Box<[u32]>,
    /// The values, eight for each chunk column.
    values: Aligned<T>,
    /// Elements of the part's spill.
    spill_len: usize,
}

/// For each part the sums for rows from `rows.end - LANES` on, from chunk columns that extend beyond
/// `rows.end`.
type Spills<T> = Vec<Vec<T>>;

struct SellSymmetric<'a, T> {
    /// For rows after the last chunk, and rows whose padding would meet an infinite or NaN x.
    a: CsrSource<'a, T>,
    parts: Vec<Part<T>>,
    spills: Pool<Spills<T>>,
    threads: Threads,
    machine: Machine,
    prefetch: bool,
}

pub(super) fn plan<'a, T: RealScalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let unsupported = |reason| PlanError::Unsupported { kernel: INFO.id, reason };
    let (source, a) = (a.clone(), a.view());
    let threads = options.threads.clone();
    let words = threads.count() as u128 * a.rows() as u128;
    options.budget.check_bytes(INFO.id, words * size_of::<u32>() as u128)?;
    if let Some(reason) = asymmetry(&a, &threads, have_equal_bits(&a)) {
        return Err(unsupported(reason));
    }
    let (upper, most) = (upper_entries(&a), most_elements(&a));
    let bounds = partition::by_entries(a.row_ptr(), threads.count());
    let start = |part: usize| {
        if part == threads.count() { a.rows() } else { bounds[part] / LANES * LANES }
    };
    let rows: Vec<_> = (0..threads.count()).map(|part| start(part)..start(part + 1)).collect();
    let costs = Costs::of(&a, &rows, &threads);
    costs.check(upper, options)?;
    let affordable = costs.affordable(options);
    let room = Room { most: most.min(affordable), taken: AtomicUsize::new(0) };
    let parts = threads.map(rows.len(), |part| Part::new(&a, rows[part].clone(), &room));
    let parts: Option<Vec<_>> = parts.into_iter().collect();
    let Some(parts) = parts else {
        if room.is_short() && affordable < most {
            costs.check(affordable + LANES, options)?;
        }
        let reason = format!(
            "{upper} entries in more than {most} elements, or eight rows in more than {} runs of \
             elements: rows do not repeat a pattern",
            u16::MAX
        );
        return Err(unsupported(reason));
    };
    let machine = Machine::without_gathers();
    let prefetch = parameters.switch(PREFETCH.name);
    let spills = Pool::new(spills(&parts));
    Ok(boxed(SellSymmetric { a: source, parts, spills, threads, machine, prefetch }))
}

/// Whether entries have the same value.
fn have_equal_bits<'a, T: RealScalar>(
    a: &CsrView<'a, T>,
) -> impl Fn(usize, usize) -> bool + Sync + use<'a, T> {
    let values = a.values();
    move |entry, other| values[entry].to_bits64() == values[other].to_bits64()
}

/// Entries on the diagonal and above it of a symmetric matrix with a whole diagonal.
fn upper_entries<T: Scalar>(a: &CsrView<'_, T>) -> usize {
    (a.nnz() + a.rows()) / 2
}

/// Stored elements up to which a symmetric matrix is not refused.
pub(super) fn most_elements<T: Scalar>(a: &CsrView<'_, T>) -> usize {
    (MOST_PADDING * upper_entries(a) as f64) as usize + LANES * LANES
}

/// The spills of a product.
fn spills<T: Scalar>(parts: &[Part<T>]) -> Spills<T> {
    parts.iter().map(|part| vec![T::ZERO; part.spill_len]).collect()
}

/// The values that all parts together may take, and those that they have taken.
struct Room {
    most: usize,
    taken: AtomicUsize,
}

impl Room {
    /// Nothing where that is more than there is room for.
    fn take(&self, count: usize) -> Option<()> {
        (self.taken.fetch_add(count, Ordering::Relaxed) + count <= self.most).then_some(())
    }

    /// Whether there were too few.
    fn is_short(&self) -> bool {
        self.taken.load(Ordering::Relaxed) > self.most
    }
}

/// Bytes that are allocated to make the parts.
struct Costs {
    entries: usize,
    fixed: usize,
    of_element: usize,
}

impl Costs {
    /// Of parts with these rows, whose columns ascend.
    fn of<T: Scalar>(a: &CsrView<'_, T>, parts: &[Range<usize>], threads: &Threads) -> Self {
        // The elements of its spill, and the entries of its longest row.
        let of_part = |part: usize| {
            let rows = parts[part].clone();
            let (mut last, mut longest) = (0, 0);
            for row in rows.clone() {
                let entries = a.row_range(row);
                longest = longest.max(entries.len());
                last = a.col_ind()[entries].last().copied().unwrap_or(0).max(last);
            }
            let reach = last as usize + 2 * LANES;
            (reach.max(rows.end) + LANES - rows.end, longest)
        };
        let of_parts = threads.map(parts.len(), of_part);
        let longest = of_parts.iter().map(|of| of.1).max().unwrap_or(0);
        // Arrays that double are there twice for a moment.
        let of_chunk = 3 * LANES * (longest + 1) * size_of::<u32>();
        let spills = of_parts.iter().map(|of| of.0).sum::<usize>() * T::BYTES;
        let of_rows = a.rows() * (size_of::<u32>() + size_of::<bool>());
        let of_element = 3 * (T::BYTES + 1) + 2;
        let of_part = size_of::<Part<T>>() + of_chunk + UNCOUNTED * of_element;
        let gaps = aligned::gaps(parts.len(), a.nnz() * T::BYTES);
        let fixed = spills + of_rows + parts.len() * of_part + gaps;
        Self { entries: a.nnz(), fixed, of_element }
    }

    fn check(&self, elements: usize, options: &PlanOptions) -> Result<(), FormatError> {
        let Self { entries, fixed, of_element } = *self;
        options.budget.check(INFO.id, entries, elements as u128, of_element, fixed)
    }

    /// Stored elements that the budget allows.
    fn affordable(&self, options: &PlanOptions) -> usize {
        let left = usize::try_from(options.budget.left()).unwrap_or(usize::MAX);
        left.saturating_sub(self.fixed) / self.of_element
    }
}

/// The entries of a row on the diagonal and above it.
fn upper<T: Scalar>(a: &CsrView<'_, T>, row: usize) -> Range<usize> {
    let entries = a.row_range(row);
    let cols = &a.col_ind()[entries.clone()];
    entries.start + cols.partition_point(|&col| (col as usize) < row)..entries.end
}

impl<T: Scalar> Part<T> {
    /// Nothing where there is no more room for values, far more have been stored than that allows for the rows so
    /// far, or a chunk has more runs than its count can say.
    fn new(a: &CsrView<'_, T>, rows: Range<usize>, room: &Room) -> Option<Self> {
        let (mut run_counts, mut runs, mut full) = (vec![], Vec::<Run>::new(), vec![]);
        let entries = (a.row_ptr()[rows.end] - a.row_ptr()[rows.start]) as usize;
        // Half of the entries and the diagonal, and a little padding.
        let (mut values, mut masks) =
            (Aligned::with_capacity(entries / 16 * 9 + rows.len()), vec![]);
        let (mut firsts, mut merged) = (vec![], vec![]);
        let (mut taken, mut stored, mut uncounted) = (0, 0, 0);
        let mut reach = rows.end;
        let mut lower = Vec::with_capacity(rows.len());
        let below =
            |row: usize, upper: &Range<usize>| (upper.start - a.row_range(row).start) as u32;
        let whole = rows.start + rows.len() / LANES * LANES;
        for start in (rows.start..whole).step_by(LANES) {
            let lanes: [_; LANES] = std::array::from_fn(|lane| upper(a, start + lane));
            lower.extend((start..).zip(&lanes).map(|(row, upper)| below(row, upper)));
            firsts.clear();
            firsts.push(start as u32);
            for (lane, entries) in (0..).zip(&lanes) {
                let of_row = a.col_ind()[entries.clone()].iter().map(|&col| col - lane);
                merge(of_row, &mut firsts, &mut merged);
            }
            let of_chunk: usize = lanes.iter().map(Range::len).sum();
            let is_full = of_chunk == firsts.len() * LANES;
            full.push(is_full);
            uncounted += firsts.len() * LANES;
            if uncounted > UNCOUNTED {
                room.take(std::mem::take(&mut uncounted))?;
            }
            (taken, stored) = (taken + of_chunk, stored + firsts.len() * LANES);
            // The rest would have to make up for too much.
            if stored as f64
                > MOST_PADDING * taken as f64 + (entries / EARLY + LANES * LANES) as f64
            {
                return None;
            }
            let (first_value, first_mask) = (values.len(), masks.len());
            values.grow(first_value + firsts.len() * LANES, T::ZERO);
            masks.resize(first_mask + if is_full { 0 } else { firsts.len() }, 0_u8);
            let (of_values, of_masks) = (&mut values[first_value..], &mut masks[first_mask..]);
            each_element(a, &lanes, &firsts, |element, lane, entry| {
                of_values[element * LANES + lane] = a.values()[entry];
                if let Some(mask) = of_masks.get_mut(element) {
                    *mask |= 1 << lane;
                }
            });
            let before = runs.len();
            for &first in &firsts {
                match runs[before..].last_mut() {
                    Some(run)
                        if run.first + run.count == first && run.count < LONGEST_RUN as u32 =>
                    {
                        run.count += 1;
                    }
                    _ => runs.push(Run { first, count: 1 }),
                }
            }
            run_counts.push(u16::try_from(runs.len() - before).ok()?);
            reach = reach.max(runs[runs.len() - 1].first as usize + 2 * LANES);
        }
        room.take(uncounted)?;
        let spill_len = reach + LANES - rows.end;
        lower.extend((whole..rows.end).map(|row| below(row, &upper(a, row))));
        let (lower, full, masks) = (lower.into(), full.into(), masks.into());
        let (run_counts, runs, values) = (run_counts.into(), runs.into(), values.shrunk());
        Some(Self { rows, run_counts, runs, full, masks, lower, values, spill_len })
    }
}

impl<T: RealScalar> Product<T> for SellSymmetric<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        self.prefetch = parameters.switch(PREFETCH.name);
        self.threads = threads.clone();
        true
    }

    fn memory(&self) -> Memory {
        let bytes = |part: &Part<T>| {
            size_of_val(&*part.run_counts) + size_of_val(&*part.runs) + size_of_val(&*part.values)
        };
        let rest = |part: &Part<T>| {
            part.spill_len * T::BYTES
                + size_of_val(&*part.full)
                + size_of_val(&*part.masks)
                + size_of_val(&*part.lower)
        };
        Memory::owned(self.parts.iter().map(bytes).sum(), self.parts.iter().map(rest).sum())
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, scaling) = (self.a.view(), scaling.unwrap_or(Update::OVERWRITE));
        // The jobs index x by the columns of A.
        assert!(x.len() >= a.cols(), "x has {} elements", x.len());
        let all_rows = Disjoint::new(y);
        let mut all_spills = self.spills.take(|| spills(&self.parts));
        let spills = Disjoint::new(&mut all_spills);
        self.threads.run(|index| {
            let part = &self.parts[index];
            // SAFETY: each thread has its own part, and the rows of parts do not overlap.
            let (y, spill) = unsafe {
                (all_rows.range(part.rows.clone()), &mut spills.range(index..index + 1)[0])
            };
            let mut sums = Sums { part, scaling, x, y, spill };
            let mut chunks = 0;
            let (prefetch, finished) = (self.prefetch, &mut chunks);
            self.machine.run(Upper { sums: sums.reborrow(), prefetch, finished });
            sums.add_rows(&a, part.rows.start + chunks * LANES);
        });
        let (parts, spills) = (&self.parts, &*all_spills);
        self.threads.run(|index| {
            let rows = parts[index].rows.clone();
            // SAFETY: the rows of parts do not overlap.
            let y = unsafe { all_rows.range(rows.clone()) };
            for (from, spill) in parts[..=index].iter().zip(spills) {
                // Spills of parts before, and of the own part onto its last rows.
                let spilt = (from.rows.end.max(LANES) - LANES).max(rows.start);
                let end = (from.rows.end + spill.len() - LANES).min(rows.end);
                if spilt < end {
                    let y = &mut y[spilt - rows.start..end - rows.start];
                    let spill = &spill[spilt + LANES - from.rows.end..];
                    y.iter_mut().zip(spill).for_each(|(y, &spill)| *y += spill);
                }
            }
        });
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let Self { a, parts, threads, .. } = self;
        let view = a.view_with(&new)?;
        if !is_symmetric(&view, threads, have_equal_bits(&view)) {
            return Err(PlanError::Values("they are not symmetric, as the old ones are"));
        }
        let stored: usize = parts.iter().map(|part| size_of_val(&*part.values)).sum();
        let stores = Stores::for_new(&new, stored, threads);
        let parts = Disjoint::new(parts);
        a.set_values(new, |a, own| {
            let own = own.map(Disjoint::new);
            stores.run(threads, |index| {
                // SAFETY: each thread has its own part.
                let part = unsafe { &mut parts.range(index..index + 1)[0] };
                part.set_values(&a, stores, &mut |rows| {
                    if let Some(own) = own {
                        // SAFETY: the rows of parts do not overlap.
                        unsafe { stores.copy_rows(&a, rows, own) };
                    }
                });
            });
        })
    }
}

/// What a part reads and adds to.
struct Sums<'a, T> {
    part: &'a Part<T>,
    scaling: Update<'a, T>,
    x: &'a [T],
    /// The rows of the part.
    y: &'a mut [T],
    spill: &'a mut [T],
}

impl<T: Scalar> Sums<'_, T> {
    fn reborrow(&mut self) -> Sums<'_, T> {
        let Self { part, scaling, x, y, spill } = self;
        Sums { part, scaling: *scaling, x, y, spill }
    }

    /// Adds the rows from `first` on, entry by entry.
    fn add_rows(&mut self, a: &CsrView<'_, T>, first: usize) {
        let (start, end, alpha) = (self.part.rows.start, self.part.rows.end, self.scaling.alpha());
        for row in first..end {
            for entry in a.row_range(row) {
                let (col, value) = (a.col_ind()[entry] as usize, a.values()[entry]);
                if col >= row {
                    self.y[row - start] += alpha * (value * self.x[col]);
                }
                if col > row {
                    let sum = if col < end {
                        &mut self.y[col - start]
                    } else {
                        &mut self.spill[col + LANES - end]
                    };
                    *sum += alpha * (value * self.x[row]);
                }
            }
        }
    }
}

/// The product of the whole chunks of one part.
struct Upper<'a, T> {
    sums: Sums<'a, T>,
    prefetch: bool,
    /// Takes the number of chunks before the first one that would multiply padding by an element of
    /// x that is not finite.
    finished: &'a mut usize,
}

// SAFETY: `As<T>` is `Upper<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Upper<'a, T> {
    type As<U: Scalar> = Upper<'a, U>;
    const GATHERS: bool = false;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        // SAFETY: `multiply` has checked x and cut y; `I` by the caller's promise.
        unsafe { if self.prefetch { self.add::<I, true>() } else { self.add::<I, false>() } }
    }
}

impl<T: Scalar> Upper<'_, T> {
    /// # Safety
    /// x has an element for each column of A, y the rows of the part, the spill what the part says,
    /// the processor the instructions of `I`.
    #[inline(always)]
    unsafe fn add<I: Isa<T>, const PREFETCH: bool>(self) {
        let Self { sums: Sums { part, scaling, x, y, spill }, finished, .. } = self;
        let (start, end) = (part.rows.start, part.rows.end);
        spill.fill(T::ZERO);
        *finished = part.run_counts.len();
        let (mut runs, mut values) = (part.runs.as_ptr(), part.values.as_ptr());
        // Rows before this one have been multiplied by beta, and are finite in x.
        let mut ready = start;
        // SAFETY: `Part::new` has put into the arrays what the chunks consume. A run begins at or
        // after its chunk. A stored element is read of x only as far as x goes; what is added eight
        // rows at a time is inside y if it ends before the part does, and inside the spill if not. `I`
        // by the caller's promise.
        unsafe {
            let (zero, alpha) = (I::splat(T::ZERO), I::splat(scaling.alpha()));
            let y_of_row_0 = y.as_mut_ptr().wrapping_sub(start);
            let spill = spill.as_mut_ptr();
            let x_at = x.as_ptr();
            for (chunk, &count) in part.run_counts.iter().enumerate() {
                let row = start + chunk * LANES;
                let chunk_runs = std::slice::from_raw_parts(runs, usize::from(count));
                runs = runs.add(chunk_runs.len());
                let reach = chunk_runs[chunk_runs.len() - 1].first as usize + 2 * LANES;
                if ready < reach {
                    // Some rows more, so that not every chunk has to do this.
                    let next = reach + 16 * LANES;
                    scaling.scale(&mut y[ready.min(end) - start..next.min(end) - start]);
                    let read = ready.min(x.len())..next.min(x.len());
                    ready = next;
                    if !all_finite::<T, I>(&x[read]) {
                        *finished = chunk;
                        break;
                    }
                }
                let own_x = I::load(x_at.add(row));
                let scaled_x = I::mul(alpha, own_x);
                let own_y = y_of_row_0.wrapping_add(row);
                let inside = reach <= end;
                let load_x = |first: usize| {
                    if inside || first + LANES <= x.len() {
                        I::load(x_at.add(first))
                    } else {
                        I::load_first(x.len() - first, x_at.add(first))
                    }
                };
                let add = |at: usize, addend: I::Vector| {
                    let target = if inside || at + LANES <= end {
                        y_of_row_0.wrapping_add(at)
                    } else {
                        spill.add(at + LANES - end)
                    };
                    I::store(target, I::add(I::load(target), addend));
                };
                let (diagonal, others) = (chunk_runs[0].count, &chunk_runs[1..]);
                let mut even = I::mul_add(I::load(values), own_x, zero);
                let mut odd = zero;
                // What the diagonal's run adds to the rows of the chunk stays in a register.
                if diagonal >= 2 {
                    let value = I::load(values.add(LANES));
                    odd = I::mul_add(value, load_x(row + 1), odd);
                    let (mut low, mut high) = I::shift_up::<1>(I::mul_add(value, own_x, zero));
                    if diagonal >= 3 {
                        let value = I::load(values.add(2 * LANES));
                        even = I::mul_add(value, load_x(row + 2), even);
                        let more = I::shift_up::<2>(I::mul_add(value, own_x, zero));
                        (low, high) = (I::add(low, more.0), I::add(high, more.1));
                    }
                    odd = I::add(odd, low);
                    add(row + LANES, I::mul(alpha, high));
                }
                values = values.add(diagonal as usize * LANES);
                for run in others {
                    let first = run.first as usize;
                    if PREFETCH {
                        for element in 0..run.count as usize {
                            simd::prefetch(values.wrapping_add(element * LANES + AHEAD));
                        }
                    }
                    let value = I::load(values);
                    even = I::mul_add(value, load_x(first), even);
                    let mut here = I::mul_add(value, scaled_x, zero);
                    if run.count >= 2 {
                        let value = I::load(values.add(LANES));
                        odd = I::mul_add(value, load_x(first + 1), odd);
                        let (low, mut high) = I::shift_up::<1>(I::mul_add(value, scaled_x, zero));
                        here = I::add(here, low);
                        if run.count >= 3 {
                            let value = I::load(values.add(2 * LANES));
                            even = I::mul_add(value, load_x(first + 2), even);
                            let more = I::shift_up::<2>(I::mul_add(value, scaled_x, zero));
                            here = I::add(here, more.0);
                            high = I::add(high, more.1);
                        }
                        add(first + LANES, high);
                    }
                    add(first, here);
                    values = values.add(run.count as usize * LANES);
                }
                let sums = I::mul(alpha, I::add(even, odd));
                I::store(own_y, I::add(sums, I::load(own_y)));
            }
        }
        scaling.scale(&mut y[ready.min(end) - start..]);
    }
}

/// Whether no element is infinite or NaN.
///
/// # Safety
/// The processor has the instructions of `I`.
#[inline(always)]
unsafe fn all_finite<T: Scalar, I: Isa<T>>(x: &[T]) -> bool {
    let (vectors, rest) = x.as_chunks::<LANES>();
    // SAFETY: the caller's promise.
    unsafe {
        // 0 x v is NaN for these and no others.
        let zero = I::splat(T::ZERO);
        let last = I::mul_add(I::load_first(rest.len(), rest.as_ptr()), zero, zero);
        let add = |sum, vector: &[T; LANES]| I::mul_add(I::load(vector.as_ptr()), zero, sum);
        I::sum(vectors.iter().fold(last, add)) == T::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_take_no_more_room_than_there_is() {
        let room = Room { most: 10, taken: AtomicUsize::new(0) };
        assert_eq!((room.take(6), room.take(4), room.is_short()), (Some(()), Some(()), false));
        assert_eq!((room.take(1), room.is_short()), (None, true));
    }
}

//! SELL-8-sigma SpMV with compressed storage: y_i = sum_j a_ij x_j, eight rows at once.
//!
//! If all values are equal, none are stored; if there are at most 256 distinct ones, an entry takes a
//! byte that is its value's position in a table. Column indices take 16 bits where they fit. Where
//! neighbouring rows have the same pattern shifted by one (stencils, bands), one column index is
//! stored for eight entries; where rows and columns come in pairs (two unknowns a node), one for four.

pub(super) mod builder;
mod coding;
mod run;
mod segment;

use std::ops::Range;

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_formats::{CsrSource, CsrView, FormatError, NewValues, RealScalar, Scalar, partition};

pub(super) use self::coding::CODES;
use self::coding::{Coding, most_codes};
use self::run::{Combined, Run};
use self::segment::{MOST_ROWS, Places, Segment, Values};
use super::long_rows::{self, LongRows};
use super::plan::{Memory, Product, boxed};
use super::repair::repair;
use super::row::Summing;
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::scaled::{Buffers, Staged, Update};
use crate::simd::{GATHER, LANES, Machine, PREFETCH};
use crate::spmv::KERNEL;
use crate::values::Stores;
use crate::{PlanOptions, Threads, aligned, scaled};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell-compact",
    source: "own; after SELL-C-sigma (Kreutzer et al. 2014)",
    summary: "SELL-8-sigma; columns in 16 bits or one for eight entries, equal values stored once, few distinct ones in a byte",
    parameters: &[SIGMA, CODES, GATHER, PREFETCH],
    ..KERNEL
};

/// The parameter sigma: rows of a window that is sorted by length.
pub(super) const SIGMA: ParameterSpec = ParameterSpec {
    name: "sigma",
    meaning: "rows in a window that is sorted by length, a multiple of 8 up to 65536, fewer where each thread would have few windows; 1: none",
    default: Value::Count(4096),
    studied: &[Value::Count(1), Value::Count(256), Value::Count(4096)],
};

/// Segments for each thread, enough to balance the load.
const SEGMENTS: usize = 16;
/// Windows for each of several threads, enough to balance the load, if these have so many rows.
const WINDOWS: usize = 4;
const LEAST_WINDOW: usize = 64;
/// Arrays for each thread of rayon where it makes them, enough to balance the load.
const ARRAYS: usize = 4;
/// Entries of a segment, enough to amortise its start, where the processor begins new streams.
const SEGMENT_ENTRIES: std::ops::RangeInclusive<usize> = 1 << 12..=1 << 16;
/// Rows whose new values are copied and then placed: these of short rows stay in the second-level cache.
const COPIED_ROWS: usize = 512;

struct SellCompact<'a, T> {
    /// For long rows, and for rows that are recomputed because their sum is infinite or NaN.
    a: CsrSource<'a, T>,
    segments: Vec<Segment>,
    /// Of the segments that a thread has made.
    values: Vec<Values<T>>,
    coding: Coding<T>,
    most_codes: usize,
    long: LongRows<T>,
    staged: Staged<T>,
    /// Rows that are copied together: whole windows.
    copied_rows: usize,
    threads: Threads,
    /// Segments of thread t: `bounds[t]..bounds[t + 1]`.
    bounds: Vec<usize>,
    machine: Machine,
    prefetch: bool,
}

pub(super) fn plan<'a, T: RealScalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let sigma = parameters.count(SIGMA.name);
    if sigma != 1 && (!sigma.is_multiple_of(LANES) || sigma > MOST_ROWS) {
        let reason = format!("sigma {sigma} is neither 1 nor a multiple of 8 up to 65536");
        return Err(PlanError::Unsupported { kernel: INFO.id, reason });
    }
    let view = a.view();
    let machine = Machine::for_gathers(parameters, view.cols());
    let most_codes = most_codes::<T>(parameters, machine);
    let coding = Coding::of(view.values(), most_codes, &options.threads);
    let threads = options.threads.count();
    let entries = segment_entries(view.nnz(), threads);
    let sigma = window(sigma, view.rows(), threads);
    let rows_of_segments = segment_rows(&view, sigma.max(LANES), entries);
    let longest = long_rows::longest_in_windows(view.row_ptr(), threads, sigma);
    check_segments(&view, &rows_of_segments, (sigma, longest), coding.value_bytes(), options)?;
    let arrays = arrays(&options.threads).min(rows_of_segments.len());
    let made = options.threads.map(arrays, |array| {
        let of_array = partition::even(rows_of_segments.len(), arrays, array);
        let rows = &rows_of_segments[of_array];
        make_array(&view, rows, array, (sigma, longest), (&coding, machine))
    });
    let (mut segments, mut values) = (Vec::with_capacity(rows_of_segments.len()), vec![]);
    for (of_array, array) in made {
        segments.extend(of_array);
        values.push(array);
    }
    let mut weights = vec![0_usize];
    for segment in &segments {
        // A chunk costs about as much as two stored elements, besides its stored elements.
        let elements: usize = segment.chunks.iter().map(|chunk| usize::from(chunk.width) + 2).sum();
        weights.push(weights.last().copied().unwrap_or(0) + elements);
    }
    let threads = options.threads.clone();
    let bounds = partition::by_weight(&weights, threads.count());
    let long = LongRows::new(&view, longest, &threads);
    let sorted = segments.iter().filter(|segment| !segment.positions.is_empty());
    let most_rows = sorted.map(|segment| segment.rows.len()).max().unwrap_or(0);
    let staged = Staged::new(threads.count(), most_rows);
    let prefetch = parameters.switch(PREFETCH.name);
    Ok(boxed(SellCompact {
        a,
        segments,
        values,
        coding,
        most_codes,
        long,
        staged,
        copied_rows: COPIED_ROWS.next_multiple_of(sigma),
        threads,
        bounds,
        machine,
        prefetch,
    }))
}

/// Refuses segments beyond the budget, and what is allocated for a while to make them.
fn check_segments<T: Scalar>(
    a: &CsrView<'_, T>,
    segments: &[Range<usize>],
    (sigma, longest): (usize, usize),
    value_bytes: usize,
    options: &PlanOptions,
) -> Result<(), FormatError> {
    // A value, a column, and a mask where there are no values; contiguous columns add a tenth.
    let of_elements = |elements: usize| 11 * elements * (value_bytes + size_of::<u32>() + 1) / 10;
    let entries = |rows: &Range<usize>| (a.row_ptr()[rows.end] - a.row_ptr()[rows.start]) as usize;
    let most_entries = segments.iter().map(entries).max().unwrap_or(0);
    let most_rows = segments.iter().map(Range::len).max().unwrap_or(0);
    let long = (a.nnz() / longest.max(1)) * (size_of::<u32>() + options.threads.count() * T::BYTES);
    let kept = segment::row_bytes(segments.len(), a.rows()) + 3 * long;
    let arrays = arrays(&options.threads).min(segments.len());
    let order = size_of::<usize>() * most_rows;
    // Arrays that double are there twice for a moment, in as many segments as there are threads.
    let busy = rayon::current_num_threads().max(options.threads.count()).min(segments.len());
    let check = |all: usize, largest: usize| {
        let made = busy * (2 * (of_elements(largest) + segment::row_bytes(1, most_rows)) + order);
        let fixed = kept + made + aligned::gaps(arrays, all * value_bytes);
        options.budget.check(INFO.id, a.nnz(), all as u128, 0, of_elements(all) + fixed)
    };
    // Counting is left out where the worst that padding can do, eight stored elements for each entry,
    // fits.
    check(LANES * a.nnz(), LANES * most_entries).or_else(|_| {
        options.budget.check_bytes(INFO.id, (busy * order) as u128)?;
        let elements = |rows: &Range<usize>| segment::elements(a, rows, sigma, longest);
        let elements = options.threads.map(segments.len(), |index| elements(&segments[index]));
        check(elements.iter().sum(), elements.iter().copied().max().unwrap_or(0))
    })
}

/// The segments of these rows, and the array of their values.
fn make_array<T: Scalar>(
    a: &CsrView<'_, T>,
    rows: &[Range<usize>],
    array: usize,
    sorting: (usize, usize),
    (coding, machine): (&Coding<T>, Machine),
) -> (Vec<Segment>, Values<T>) {
    // Codes do not count: chunks are those without them.
    let value_bytes = if matches!(coding, Coding::Equal(_)) { 0 } else { T::BYTES };
    let mut elements = 0;
    let segments = rows.iter().map(|rows| {
        let mut segment = Segment::new(a, rows.clone(), sorting, value_bytes);
        segment.array = array;
        segment.elements = elements..elements + segment.elements.len();
        elements = segment.elements.end;
        segment
    });
    let segments: Vec<_> = segments.collect();
    let set = |places: Places<'_, T>| {
        for segment in &segments {
            let (to, by) = ((&places, coding), (machine, Stores::THROUGH_CACHES));
            // SAFETY: nothing else knows the array.
            unsafe { segment.set_values(a, to, by, MOST_ROWS, &mut |_| {}) };
        }
    };
    // SAFETY: these are the elements of the segments, which write all of them.
    let values = unsafe { Values::written(coding, elements, set) };
    (segments, values)
}

/// Arrays of values of a matrix that has at least as many segments: one of each thread that makes segments, or
/// [`ARRAYS`].
fn arrays(threads: &Threads) -> usize {
    match threads.count() {
        1 => ARRAYS * rayon::current_num_threads(),
        count => count,
    }
}

/// Entries of a segment, such that each thread has as many segments.
fn segment_entries(nnz: usize, threads: usize) -> usize {
    let entries = nnz / (SEGMENTS * threads);
    let entries = entries.clamp(*SEGMENT_ENTRIES.start(), *SEGMENT_ENTRIES.end());
    let of_thread = nnz.div_ceil(threads);
    of_thread.div_ceil(of_thread.div_ceil(entries).max(1))
}

/// Rows of a window that is sorted for so many threads: fewer than `sigma` where each thread would have few windows.
pub(super) fn window(sigma: usize, rows: usize, threads: usize) -> usize {
    let mut window = sigma;
    while threads > 1
        && rows / window < WINDOWS * threads
        && window >= 2 * LEAST_WINDOW
        && window.is_multiple_of(2 * LANES)
    {
        window /= 2;
    }
    window
}

/// Divides the rows into segments of about this many entries, at multiples of `step` rows.
fn segment_rows<T: Scalar>(
    a: &CsrView<'_, T>,
    step: usize,
    least: usize,
) -> Vec<std::ops::Range<usize>> {
    let (mut all, mut start) = (Vec::new(), 0);
    while start < a.rows() {
        let mut end = (start + step).min(a.rows());
        let entries = |end: usize| (a.row_ptr()[end] - a.row_ptr()[start]) as usize;
        while end < a.rows() && end + step - start <= MOST_ROWS && entries(end) < least {
            end = (end + step).min(a.rows());
        }
        all.push(start..end);
        start = end;
    }
    all
}

impl<T: RealScalar> Product<T> for SellCompact<'_, T> {
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
        let segments: usize = self.segments.iter().map(Segment::bytes).sum();
        let masks: usize = self.segments.iter().map(|segment| size_of_val(&*segment.masks)).sum();
        // Products read the masks where there are no values.
        let are_equal = matches!(self.coding, Coding::Equal(_));
        let (masks, rest_of_masks) = if are_equal { (masks, 0) } else { (0, masks) };
        let values: usize = self.values.iter().map(Values::bytes).sum();
        let (table, rest) = self.coding.bytes();
        let rest = rest + rest_of_masks + self.long.bytes() + size_of_val(&*self.bounds);
        Memory::owned(segments + masks + values + table, rest)
            .and_borrowed(self.long.csr_bytes(&self.a.view()))
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, prefetch) = (self.a.view(), self.prefetch);
        let coding = &self.coding;
        let summing = Summing::interleaved(prefetch);
        // The jobs index x by the columns of A.
        assert!(x.len() >= a.cols(), "x has {} elements", x.len());
        let mut long = self.long.begin(y);
        let pieces = self.long.pieces(&mut long);
        let all_rows = Disjoint::new(&mut *y);
        // Rows in order are combined with z at once.
        let in_order = self.segments.iter().all(|segment| segment.positions.is_empty());
        let mut buffers = self.staged.buffers(scaling.filter(|_| !in_order));
        let buffers = buffers.as_mut().map(Buffers::parts);
        let of_long = |part| pieces.sum(&a, part, x, summing);
        self.threads.share_after(of_long, &self.bounds, |thread, index| {
            let segment = &self.segments[index];
            // SAFETY: the rows of segments do not overlap.
            let y = unsafe { all_rows.range(segment.rows.clone()) };
            let multiply = |y: &mut [T], combined: Option<Combined<'_, T>>| {
                let mut is_finite = true;
                let (values, finite) = (&self.values[segment.array], &mut is_finite);
                let run = Run { segment, values, coding, prefetch, x, y, combined, finite };
                self.machine.run(run);
                if !is_finite {
                    repair(&a, segment.rows.clone(), x, y);
                }
            };
            if let Some(update) = scaling.filter(|_| segment.positions.is_empty()) {
                return multiply(y, Some(Combined { a, update }));
            }
            // SAFETY: no two calls with this thread run at the same time.
            unsafe { scaled::through(buffers, thread, y, |y| multiply(y, None)) };
        });
        self.long.finish(&long, scaling, y);
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let Self { a, segments, values, coding, threads, bounds, .. } = self;
        let (copied_rows, machine) = (self.copied_rows, self.machine);
        let view = a.view_with(&new)?;
        *coding = coding.of_new(view.values(), self.most_codes, threads)?;
        let stores = Stores::for_new(&new, view.nnz() * coding.value_bytes(), threads);
        let places: Vec<_> = values.iter_mut().map(Values::places).collect();
        a.set_values(new, |a, own| {
            let own = own.map(Disjoint::new);
            stores.run(threads, |part| {
                for segment in &segments[bounds[part]..bounds[part + 1]] {
                    let mut copy = |rows| {
                        if let Some(own) = own {
                            // SAFETY: the rows of segments do not overlap.
                            unsafe { stores.copy_rows(&a, rows, own) };
                        }
                    };
                    let to = (&places[segment.array], &*coding);
                    let by = (machine, stores);
                    // SAFETY: each part has its own segments, and they their own elements.
                    unsafe { segment.set_values(&a, to, by, copied_rows, &mut copy) };
                }
            });
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_threads_have_several_windows_each() {
        assert_eq!((window(4096, 100, 1), window(4096, 40_000, 2)), (4096, 4096));
        assert_eq!((window(4096, 20_000, 2), window(4096, 1100, 2)), (2048, 128));
        assert_eq!((window(4096, 1100, 16), window(256, 0, 2), window(24, 100, 2)), (64, 64, 24));
        assert_eq!((window(1, 100, 2), window(8, 100, 2)), (1, 8));
    }

    #[test]
    fn threads_have_as_many_segments() {
        // Three for each of two threads, not five of 4096 entries.
        assert_eq!(segment_entries(20_800, 2), 3467);
        assert_eq!(segment_entries(3000, 2), 1500);
        // So many that the last one does not matter.
        assert_eq!(segment_entries(1 << 20, 2), 1 << 15);
        assert_eq!(segment_entries(1 << 30, 2), 1 << 16);
        assert_eq!(segment_entries(0, 3), 0);
    }
}

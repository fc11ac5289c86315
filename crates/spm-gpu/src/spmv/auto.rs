//! `auto` for SpMV: times the kernels that suit the structure of the matrix.

mod blocked;
mod complex;
mod reduced;
mod sliced;

use std::time::Duration;

use spm_formats::MemoryBudget;
use spm_formats::convert::DetectedBlocks;
use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_gpu_kernels::spmv::MOST_DIAGONALS;

use self::blocked::{Blocked, OF_BEST};
pub(crate) use self::complex::{COMPLEX, complex};
use self::reduced::reduced;
use self::sliced::{Orders, Sliced, sliced};
use super::parameters::{CODES, SINGLE_VALUES, fitting_lanes};
use super::sellp::DIAGONALS;
use super::{
    KERNEL, bsr_subwarp_per_row, csr_ell_columns, csr_segmented_sum, csr_subwarp_per_row,
    dia_thread_per_row,
};
use crate::blocks::{SIZE, is_as_estimated};
use crate::convert::Survey;
use crate::launch::WARP;
use crate::matrix::DeviceCsr;
use crate::plan::{BoxedPlan, DeviceReal, DeviceScalar};
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::operand_bytes;
use crate::race::{Candidate, Chosen, Race, Timed};
use crate::source::Source;
use crate::timing::Batches;

pub(crate) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    source: "own",
    summary: "the fastest of the kernels that suit the structure, found by timing them in planning",
    parameters: &[COMPACT, SINGLE_VALUES],
    ..KERNEL
};

const COMPACT: ParameterSpec = ParameterSpec::on(
    "compact",
    "allow lossless compression: equal values stored once, shorter column indices",
);

/// Bytes of SELL-P per byte of CSR up to which it is the fastest outside the cache; beyond, up to which it may be, of rows
/// of about one length that have values: the segmented sum takes the time of CSR's bytes.
const SHORTER: f64 = 0.9;
const AS_LONG: f64 = 1.0;
/// The same inside the cache, where bytes count less. Rows of very different lengths, and those without values, are timed up to
/// the second one.
const LONGER_CACHED: f64 = 1.18;
const LONGER_TIMED: f64 = 1.25;
/// Stored elements per entry up to which rows count as equally long.
const REGULAR_PADDING: f64 = 1.1;
/// Stored elements per entry up to which DIA is the fastest where the second-level cache holds it with x and y.
const MOST_PLACES: f64 = 2.0;
/// Stored elements of dense blocks per entry up to which BSR moves fewer bytes than SELL-P does with columns of
/// 16 bits.
const FULL_BLOCKS: f64 = 1.05;
/// Rows of a block of which a thread has too few elements to wait for at once: SELL-P is as fast or faster.
const PAIRS: usize = 2;
/// Bytes of blocks with holes per byte of SELL-P up to which they may be faster.
const OF_SLICED: f64 = 0.93;
/// Longest row over mean row up to which BSR is not timed, nor the segmented sum of columns alone.
const EVEN: f64 = 2.0;
/// Stored columns per entry up to which `csr-ell-columns` is faster than reading row pointers, and for each thread that the
/// device runs at once.
const MOST_ELEMENTS: f64 = 6.0;
const ELEMENTS_AT_ONCE: f64 = 4.5;
/// Entries of a row up to which a thread for each row still finds its values in lines that others read.
const NEAR_ENTRIES: usize = 6;
/// Longest row over mean row from which a matrix counts as skewed, and up to which gathers all over x take as long in the
/// segmented sum.
const SKEWED: f64 = 8.0;
const MILDLY_UNEVEN: f64 = 4.0;
/// A launch of at most one thread for this many that the device runs at once leaves much of it idle: twice as many wait
/// for half of the loads, and begin at once.
const FEW_THREADS: usize = 3;
/// A product that takes this many times what the bytes and a launch take is bound by latency, for
/// example of gathers from x or of one long row.
const FAR_FROM_BANDWIDTH: f64 = 2.0;
/// Steps of a thread, each of which waits for loads, that take no longer than a launch. As many threads as the device runs
/// at once take as long to begin.
const STEPS_OF_A_LAUNCH: f64 = 16.0;
/// What the segmented sum of a small matrix takes more than a launch, in launches: if all rows have entries, and if those
/// that have are listed.
const FULL_SUM: f64 = 1.15;
const LISTED_SUM: f64 = 1.75;
/// Times what the bytes and a launch take from which on a long row decides.
const HELD_UP: f64 = 4.0;
/// Entries for each thread that the device runs at once below which the launch takes most of the time.
const FEW_ENTRIES: usize = 2;
/// Bytes of CSR for each of these threads below which SELL-P in the cache loses more by stored elements without an entry than it
/// gains by its order.
const FEW_BYTES: u64 = 34;
/// Rows for each entry from which on the segmented sum is faster than a thread for each row, which reads two row pointers,
/// outside the near half of the cache.
const HYPERSPARSE: usize = 4;
/// Entries of a thread from which on two share them: where few threads have a row, or x is read far from where the neighbours do.
const ENTRIES_TO_SHARE: usize = 3;
/// Entries of a row up to which one load per thread covers it.
const SHORT_ROW: usize = 4;
/// Timing of a candidate: slower candidates need fewer runs.
const TIMING: Batches =
    Batches { runs: 3, most: 2, min_time: Duration::from_micros(15), held: false };
/// The same for a matrix whose product takes little more than a launch.
const TIMING_OF_SMALL: Batches = Batches { most: 1, held: true, ..TIMING };

/// The compression that a plan may use.
#[derive(Debug, Clone, Copy)]
struct Forms {
    /// Equal values stored once, and compressed column indices.
    compact: bool,
    /// Few distinct values stored by number.
    codes: bool,
    /// Values stored in single precision if that is exact.
    single: bool,
}

impl Forms {
    /// The defaults of a kernel, with its switches set by the allowed compression. Storage by
    /// diagonal has no column indices to compress.
    fn of(self, info: &KernelInfo) -> Parameters {
        let switches = info
            .parameters
            .iter()
            .filter(|p| p.default == Value::Switch(true) && p.name != DIAGONALS.name);
        switches.fold(info.defaults(), |set, p| {
            let on = match p.name {
                name if name == SINGLE_VALUES.name => self.single,
                name if name == CODES.name => self.codes,
                _ => self.compact,
            };
            set.with(p.name, Value::Switch(on))
        })
    }

    /// A kernel with these parameters.
    fn candidate<T: DeviceReal>(
        self,
        info: &'static KernelInfo,
        plan: fn(DeviceProblem<'_, T>) -> Planned<T>,
    ) -> Candidate<T> {
        Candidate::new(info, self.of(info), plan)
    }
}

/// Whether the launch takes little of the time.
fn is_large<T: DeviceScalar>(a: &DeviceCsr<T>) -> bool {
    a.entries() >= FEW_ENTRIES * a.device().info().resident_threads()
}

/// Whether a few rows have far more entries than the others.
fn is_skewed<T: DeviceScalar>(a: &Source<T>) -> bool {
    let mean = a.csr.entries() as f64 / a.csr.rows().max(1) as f64;
    a.stats.longest_row as f64 > SKEWED * mean.max(4.0)
}

/// What [`on_device`] asks for first.
pub(crate) fn look<T: DeviceReal>(
    a: &DeviceCsr<T>,
    new_values: bool,
) -> Result<Survey<T>, PlanError> {
    Survey::of(a, !new_values, is_large(a))
}

pub(crate) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { a, parameters, .. } = problem;
    let (rows, cols) = (a.csr.rows(), a.csr.cols());
    // Bytes count where the second-level cache does not hold the matrix, of which a half is near a multiprocessor;
    // inside it, looking values up and sorting rows cost more than they save.
    let cached = a.csr.bytes() <= problem.device.info().l2_bytes / 2;
    let compact = parameters.switch(COMPACT.name);
    let equal = a.values()?.equal;
    let codes = compact && !cached && equal.is_none() && a.dictionary()?.is_some();
    let forms = Forms { compact, codes, single: parameters.switch(SINGLE_VALUES.name) };
    let longest = a.stats.longest_row as f64;
    let skewed = is_skewed(a);
    let large = is_large(&a.csr);
    let lanes = fitting_lanes(a.mean_row());
    let l2_bytes = problem.device.info().l2_bytes;
    let vectors = operand_bytes::<T>((rows, cols), problem.dense);
    let segmented_sum = || forms.candidate(&csr_segmented_sum::INFO, csr_segmented_sum::on_device);
    let of_elements = || forms.candidate(&csr_ell_columns::INFO, csr_ell_columns::on_device);
    let elements = || {
        let fit = fits_elements(a, compact && equal.is_some());
        fit.then(|| of_elements().chosen(problem).ok()).flatten()
    };
    // Most rows have no entry, and what is done for each of them takes the time.
    if !skewed && a.csr.entries() < rows && a.csr.bytes() + vectors > l2_bytes / 2 {
        if a.csr.entries() <= rows / HYPERSPARSE
            && let Ok(plan) = segmented_sum().chosen(problem)
        {
            return Ok(plan);
        }
        return subwarp(lanes, forms).chosen(problem);
    }
    if !skewed && !large {
        // Every format takes the same time but for the clock's noise: the launch, and three loads
        // that depend on each other. Only the number of threads tells.
        if let Some(plan) = elements() {
            return Ok(plan);
        }
        return subwarp(small_lanes(a, lanes), forms).chosen(problem);
    }

    let mut race = Race::new(problem, Timed::Alike(if large { TIMING } else { TIMING_OF_SMALL }));
    let mut padding = f64::INFINITY;
    // A matrix of equal or few values has no need of an array of them, which these formats have.
    let valued = !compact || (equal.is_none() && !codes);
    // Outside the cache columns are all that is read of such a matrix.
    let columns_alone = !cached && compact && equal.is_some();
    let even = longest <= EVEN * a.mean_row() as f64;
    let few_diagonals = longest <= f64::from(MOST_DIAGONALS)
        && rows as f64 * longest <= MOST_PLACES * a.csr.entries() as f64;
    let narrowed = forms.single && a.values()?.single;
    let value_bytes = if narrowed { size_of::<f32>() } else { T::BYTES } as u64;
    let csr_value_bytes = if compact && equal.is_some() { 0 } else { value_bytes };
    let entries = a.csr.entries() as u64;
    let suits = |places| suits_diagonals(places, entries, value_bytes, (vectors, l2_bytes), valued);
    // An element for each entry at least.
    if large && few_diagonals && suits(entries) {
        let set = forms.of(&dia_thread_per_row::INFO);
        let of_dia = problem.with_kernel(&dia_thread_per_row::INFO, &set);
        let dia = dia_thread_per_row::with_places(of_dia, |places| Ok(suits(places)));
        // There are no column indices to wait for.
        if let Ok(Some(plan)) = dia {
            return Ok(Chosen::boxed(plan, dia_thread_per_row::INFO.label(&set)));
        }
    }
    let is_reduced = codes || columns_alone;
    if is_reduced
        && large
        && let Some(plan) = reduced(problem, forms, (csr_value_bytes, skewed))
    {
        return Ok(plan);
    }
    // Dense blocks hold values at full width only.
    let blocks = if large && valued && !narrowed && !skewed { a.blocks()? } else { None };
    let blocks = blocks.filter(|blocks| blocks.size > PAIRS);
    if let Some(blocks) = blocks.filter(|blocks| blocks.padding_ratio <= FULL_BLOCKS) {
        // Nothing moves fewer bytes, and x is read a block at a time.
        match in_blocks(problem, blocks) {
            Some((plan, label)) if even => {
                return Ok(Chosen::boxed(plan, label));
            }
            Some((plan, label)) => race.enter_plan(label, Ok(plan)),
            None => {}
        }
        if !is_far_from_bandwidth(&mut race, problem.budget) {
            return race.winner();
        }
    }
    let scattered = large && a.pattern()?.is_scattered;
    let lanes = if cached { cached_lanes(a, lanes, scattered) } else { lanes };
    if cached && !skewed && race.is_empty() {
        // As in smaller matrices, loads that depend on each other take much of the time.
        if let Some(plan) = elements() {
            return Ok(plan);
        }
        if a.csr.bytes() < FEW_BYTES * problem.device.info().resident_threads() as u64 {
            return subwarp(lanes, forms).chosen(problem);
        }
    }
    let least = match equal {
        Some(_) if compact => a.csr.bytes() - a.csr.values.bytes() as u64,
        _ => a.csr.bytes(),
    };
    let holds_up = |lanes| skewed && long_row_holds_up(problem, lanes, HELD_UP);
    let orders = match () {
        () if cached => Orders::InOrder,
        () if is_reduced => Orders::SortedIfRefused,
        () => Orders::Both,
    };
    // Of even rows `reduced` has found none, and in the cache its order saves less than gathers all over x take.
    let is_slower = is_reduced || cached && scattered;
    let is_sought = large && !holds_up(lanes) && (skewed || !is_slower);
    let mut sliced = if is_sought { sliced(problem, forms, orders) } else { Vec::new() };
    // Nothing moves fewer bytes, and x does not wait.
    let fewest = sliced.iter().map(Sliced::bytes).min();
    let at = sliced.iter().position(|of| of.is_regular() && Some(of.bytes()) == fewest);
    if let Some(at) = at.filter(|&at| sliced[at].bytes() <= least && !(cached && skewed)) {
        let (label, plan) = sliced.swap_remove(at).plan(problem);
        match plan {
            Ok(plan) => return Ok(Chosen::boxed(plan, label)),
            // Too little memory.
            Err(_) => sliced.clear(),
        }
    }
    let of_csr = fewest.map_or(f64::INFINITY, |bytes| bytes as f64 / least as f64);
    let by_bytes = cached && !skewed && valued;
    let longer = match () {
        () if by_bytes => LONGER_CACHED,
        () if cached => LONGER_TIMED,
        () if skewed => SHORTER,
        () => AS_LONG,
    };
    let shorter = |blocks: &DetectedBlocks| {
        let bytes = fewest.unwrap_or(least) as f64;
        block_bytes::<T>(blocks, a.csr.entries()) < OF_SLICED * bytes
    };
    let holed = blocks.filter(|of| of.padding_ratio > FULL_BLOCKS && shorter(of));
    for of in sliced {
        padding = padding.min(of.padding);
        if of_csr <= longer {
            let (label, plan) = of.plan(problem);
            match plan {
                Ok(plan) if by_bytes && holed.is_none() => {
                    return Ok(Chosen::boxed(plan, label));
                }
                plan => race.enter_plan(label, plan),
            }
        }
    }
    if let Some((plan, label)) = holed.and_then(|blocks| in_blocks(problem, blocks)) {
        race.enter_plan(label, Ok(plan));
    }
    let best_known =
        if cached { padding <= REGULAR_PADDING && of_csr <= 1.0 } else { of_csr <= SHORTER };
    if best_known && !is_far_from_bandwidth(&mut race, problem.budget) {
        return race.winner();
    }

    let blocked =
        if compact { Blocked::of(problem, csr_value_bytes, (cached, skewed)) } else { None };
    if cached && !skewed {
        // Outside the cache the segmented sum reads the same bytes, without waiting for row pointers.
        race.enter(subwarp(lanes, forms));
    }
    if blocked.as_ref().is_some_and(|of| of.ends_gathers(&mut race, problem)) {
        race.enter(Blocked::candidate(forms));
        // Long rows anywhere in x: without blocks every gather goes to L2.
        if !race.is_empty() {
            return race.winner();
        }
    }

    // Of a small matrix here a row is long: threads for it on all rows run at once, and wait for no row pointers.
    let resident = problem.device.info().resident_threads();
    if !large && csr_ell_columns::threads(a) <= resident {
        let steps = longest / WARP as f64;
        let threads = csr_ell_columns::threads(a) as f64 / resident as f64;
        let of_sum = if a.stats.empty_rows == 0 { FULL_SUM } else { LISTED_SUM };
        if steps / STEPS_OF_A_LAUNCH + threads <= of_sum
            && let Ok(plan) = of_elements().chosen(problem)
        {
            return Ok(plan);
        }
    } else if !large && !holds_up(lanes) {
        // One long row among short ones holds up a launch that has a thread or a warp for it.
        race.enter(subwarp(lanes, forms));
    }
    let beats_best =
        |race: &mut Race<'_, T>| blocked.as_ref().is_some_and(|of| of.beats_best(race));
    let parts_first = beats_best(&mut race);
    if parts_first {
        let seconds = |race: &mut Race<'_, T>| race.best().map_or(0.0, |(seconds, _)| seconds);
        let before = seconds(&mut race);
        race.enter(Blocked::candidate(forms));
        // The segmented sum reads the bytes of the best before, and waits for the same gathers.
        if seconds(&mut race) < OF_BEST * before {
            return race.winner();
        }
    }
    let only_gathers = scattered && longest <= MILDLY_UNEVEN * a.mean_row() as f64;
    let far = |race: &mut Race<'_, T>| {
        padding > REGULAR_PADDING && !only_gathers && is_far_from_bandwidth(race, problem.budget)
    };
    if skewed || !cached || far(&mut race) {
        race.enter(segmented_sum());
    }
    if !parts_first && beats_best(&mut race) {
        race.enter(Blocked::candidate(forms));
    }
    if race.is_empty() {
        // More entries than the others number, or too little memory for one more format.
        race.enter(subwarp(lanes, forms));
    }
    race.winner()
}

/// Bytes of a matrix in dense blocks.
fn block_bytes<T: DeviceScalar>(blocks: &DetectedBlocks, entries: usize) -> f64 {
    let of_block = blocks.size * blocks.size;
    let element = T::BYTES as f64 + size_of::<u32>() as f64 / of_block as f64;
    blocks.padding_ratio * entries as f64 * element
}

/// BSR with these blocks and its label, if the whole matrix has about as many of them as was estimated. Without
/// memory for it there are the other kernels.
fn in_blocks<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
    blocks: DetectedBlocks,
) -> Option<(BoxedPlan<T>, String)> {
    let info = &bsr_subwarp_per_row::INFO;
    let set = info.defaults().with(SIZE.name, Value::Count(blocks.size));
    let of_blocks = problem.with_kernel(info, &set);
    let accept = |elements| is_as_estimated(blocks, elements, problem.a.csr.entries());
    let plan = bsr_subwarp_per_row::with_blocks(of_blocks, blocks.size, accept).ok()??;
    Some((plan, info.label(&set)))
}

/// Whether the best so far leaves much of the device's bandwidth unused, as far as its rates are known.
fn is_far_from_bandwidth<T: DeviceReal>(race: &mut Race<'_, T>, budget: &MemoryBudget) -> bool {
    let Some((seconds, plan)) = race.best() else { return true };
    let (device, bytes) = (plan.device(), plan.footprint().bytes_moved);
    let rates = device.rates(budget);
    let expected = rates.and_then(|rates| rates.time(bytes, device.info().l2_bytes));
    expected.is_none_or(|expected| seconds > FAR_FROM_BANDWIDTH * expected.as_secs_f64())
}

/// Whether DIA with so many stored elements is the fastest: in the cache with the vectors if it is not mostly empty, and
/// outside, where bytes count, if it takes no more of them than CSR with the same values, all of which are stored. Where other
/// formats have no array of values, half of the cache counts, which is near a multiprocessor.
fn suits_diagonals(
    places: u64,
    entries: u64,
    value_bytes: u64,
    (vectors, l2_bytes): (u64, u64),
    valued: bool,
) -> bool {
    let bytes = places * value_bytes;
    if bytes + vectors <= if valued { l2_bytes } else { l2_bytes / 2 } {
        return places as f64 <= MOST_PLACES * entries as f64;
    }
    valued && bytes <= entries * (value_bytes + size_of::<u32>() as u64)
}

/// Whether the longest row, of which each of `lanes` threads takes a part, takes more than `times` what the bytes and a
/// launch take.
fn long_row_holds_up<T: DeviceReal>(
    problem: DeviceProblem<'_, T>,
    lanes: usize,
    times: f64,
) -> bool {
    let Problem { device, a, budget, .. } = problem;
    let Some(rates) = device.rates(budget) else { return false };
    let steps = a.stats.longest_row as f64 / lanes as f64;
    let expected = rates.time(a.csr.bytes(), device.info().l2_bytes);
    let limit = expected.map_or(f64::INFINITY, |time| times * time.as_secs_f64());
    steps * rates.launch_s / STEPS_OF_A_LAUNCH > limit
}

/// Whether `csr-ell-columns` suits a matrix that the cache holds. A thread that has a row of CSR for itself reads values far
/// from its neighbours'; with `no_values` there are none.
fn fits_elements<T: DeviceReal>(a: &Source<T>, no_values: bool) -> bool {
    let near = csr_ell_columns::fitting_lanes(a) > 1 || a.mean_row() <= NEAR_ENTRIES;
    let elements = csr_ell_columns::elements(a) as f64;
    let (entries, resident) = (a.csr.entries(), a.csr.device().info().resident_threads());
    let few = elements <= MOST_ELEMENTS * entries as f64;
    few && elements <= ELEMENTS_AT_ONCE * resident as f64 && (near || no_values)
}

/// `csr-subwarp-per-row` with this number of threads per row.
fn subwarp<T: DeviceReal>(lanes: usize, forms: Forms) -> Candidate<T> {
    let lanes = Value::Choice(LANE_CHOICES[lanes.ilog2() as usize]);
    let set = forms.of(&csr_subwarp_per_row::INFO).with("threads-per-row", lanes);
    Candidate::new(&csr_subwarp_per_row::INFO, set, csr_subwarp_per_row::on_device)
}

/// Threads per row for a matrix whose product takes little more than a launch: twice the fitting
/// number while there are few threads, but one for a row that a single step of loads covers, and at
/// most 16.
fn small_lanes<T: DeviceReal>(a: &Source<T>, fitting: usize) -> usize {
    let lanes = fitting.min(WARP / 2);
    let doubles = a.mean_row() > SHORT_ROW && lanes < WARP / 2 && are_few_threads(a, lanes);
    if doubles { 2 * lanes } else { lanes }
}

/// The same for a larger matrix in the cache: twice the fitting number also where x is read all over, or where one thread for
/// each row leaves some of the device idle.
fn cached_lanes<T: DeviceReal>(a: &Source<T>, fitting: usize, scattered: bool) -> usize {
    let shares = fitting < WARP && a.mean_row() >= ENTRIES_TO_SHARE * fitting;
    let idle = fitting == 1 && a.csr.rows() < a.csr.device().info().resident_threads();
    let doubles = shares && (scattered || idle || are_few_threads(a, fitting));
    if doubles { 2 * fitting } else { fitting }
}

/// Whether so many threads for each row leave much of the device idle.
fn are_few_threads<T: DeviceReal>(a: &Source<T>, lanes: usize) -> bool {
    FEW_THREADS * a.csr.rows() * lanes <= a.csr.device().info().resident_threads()
}

/// Powers of two as values of the parameter `lanes`.
const LANE_CHOICES: [&str; 6] = ["1", "2", "4", "8", "16", "32"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagonals_have_holes_in_the_cache_and_save_bytes_outside() {
        let suits = |places, value_bytes, l2_bytes, valued| {
            suits_diagonals(places, 1000, value_bytes, (16_000, l2_bytes), valued)
        };
        let (large, none) = (1 << 20, 0);
        assert!(suits(2000, 8, large, true) && !suits(2001, 8, large, true));
        assert!(suits(2000, 4, large, false));
        // At the size of the cache, and at half of it.
        assert!(suits(2000, 8, 32_000, true) && !suits(2000, 8, 31_999, true));
        assert!(suits(2000, 8, 64_000, false) && !suits(2000, 8, 63_999, false));
        // 12 bytes an entry, and 8.
        assert!(suits(1500, 8, none, true) && !suits(1501, 8, none, true));
        assert!(suits(2000, 4, none, true) && !suits(2001, 4, none, true));
        assert!(!suits(1000, 8, none, false));
    }
}

//! Measuring the rates of this machine.

use std::hint::black_box;
use std::time::Instant;

use spm_formats::kernel::TransposeOutput;
use spm_formats::{Csr, partition, stats};

use super::{Cost, Family, MemoryRates, Rates, SIZES};
use crate::disjoint::Disjoint;
use crate::simd::LANES;
use crate::spmv::{self, BoxedPlan, Walk, mispredictions};
use crate::values::Stores;
use crate::{PlanOptions, Threads, transpose, transposed};

/// Elements that a thread loads for one rate, from front to back and at random places.
const READ: usize = 1 << 18;
const GATHERED: usize = 1 << 16;
/// Elements that a thread writes at a time.
const WRITTEN: usize = 1 << 9;
/// Rounds of a measurement, of which the fastest counts: what disturbs only ever makes slower.
const ROUNDS: usize = 3;
/// The same of random accesses, the first of which has to bring the list of the places.
const GATHER_ROUNDS: usize = ROUNDS + 1;
/// Rounds of reading at most.
const MOST_ROUNDS: usize = 16;
/// What a round takes, at most, of the fastest before it while rounds become faster.
const FASTER: f64 = 0.97;
/// Entries of the matrices whose products are timed: they stay in the second-level cache.
const ENTRIES: usize = 1 << 14;
/// How many times as many the matrices have that are planned: twice the number of threads that plan, in this range.
const PLANNED: std::ops::RangeInclusive<usize> = 4..=16;
/// Distinct values of these matrices: codes are looked up in a table beyond the registers.
const DISTINCT: usize = 97;
/// Seconds of products of one kernel and matrix, and the least of these products.
const PRODUCTS: f64 = 3e-4;
const LEAST_PRODUCTS: usize = 8;

impl Rates {
    /// Measures the rates on 1 thread and on the threads of a pool, in less than half a second.
    pub fn measure(threads: &Threads) -> Self {
        let typical = Self::typical();
        let alone = Threads::new(1);
        let bytes = SIZES[SIZES.len() - 1];
        let (mut x, fresh) = touched((bytes / 8.0) as usize, threads);
        let one = MemoryRates::measure(&mut x, &alone);
        let all = if threads.count() > 1 { MemoryRates::measure(&mut x, threads) } else { one };
        drop(x);
        let start = fastest(ROUNDS * ROUNDS, || {
            let jobs = 32;
            (0..jobs).for_each(|_| {
                threads.run(|part| {
                    black_box(part);
                })
            });
            1.0 / f64::from(jobs)
        });
        let start = if threads.count() > 1 { start } else { typical.start };
        let costs = costs(threads.count());
        let of_csr = &costs[Family::Csr as usize];
        let (misprediction, short) = (branching(of_csr, 4), branching(of_csr, 2));
        let sorted = sorted(&costs[Family::SellGathered as usize]);
        let threads = threads.count();
        Self { threads, one, all, start, misprediction, short, sorted, fresh, costs }
    }
}

/// So many elements that the threads have written for the first time, and the bytes per second of that: the most of
/// [`ROUNDS`] arrays.
fn touched(elements: usize, threads: &Threads) -> (Vec<f64>, f64) {
    let (mut x, mut fresh) = (Vec::new(), 0.0_f64);
    for _ in 0..ROUNDS {
        drop(x);
        // The system gives zeroed memory when it is touched.
        x = vec![0.0; elements];
        let (count, start) = (threads.count(), Instant::now());
        let parts = Disjoint::new(&mut x);
        threads.run(|part| {
            // SAFETY: the parts do not overlap.
            unsafe { parts.range(partition::even(elements, count, part)) }.fill(1.0);
        });
        fresh = fresh.max(size_of_val(&*x) as f64 / start.elapsed().as_secs_f64());
    }
    (x, fresh)
}

/// Seconds that `work` takes for one of what it returns the reciprocal number of: the least of `rounds`.
fn fastest(rounds: usize, mut work: impl FnMut() -> f64) -> f64 {
    let mut once = || {
        let start = Instant::now();
        let share = work();
        start.elapsed().as_secs_f64() * share
    };
    (0..rounds).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// The least of the seconds of some rounds, `most` at most: until so many in a row are no faster than one before, or one
/// takes more than `long`. A cache that several cores share keeps what is read again and again.
pub(crate) fn settled(
    (most, no_faster): (usize, usize),
    long: f64,
    mut seconds: impl FnMut() -> f64,
) -> f64 {
    let (mut least, mut since) = (f64::INFINITY, 0);
    for _ in 0..most {
        let seconds = seconds();
        since = if seconds < FASTER * least { 0 } else { since + 1 };
        least = least.min(seconds);
        if since == no_faster || seconds > long {
            break;
        }
    }
    least
}

impl MemoryRates {
    fn measure(x: &mut [f64], threads: &Threads) -> Self {
        let write = write(x, threads);
        let x = &*x;
        let mut rates = Self { read: [0.0; SIZES.len()], gather: [0.0; SIZES.len()], write };
        let count = threads.count();
        let places = random(GATHERED);
        for (index, size) in SIZES.into_iter().enumerate() {
            let elements = (size / 8.0) as usize;
            let x = &x[..elements];
            let read = || {
                let times = (READ * count / elements).max(1);
                threads.run(|part| {
                    let share = &x[partition::even(elements, count, part)];
                    (0..times).for_each(|_| {
                        black_box(sum(black_box(share)));
                    });
                });
                1.0 / times as f64
            };
            let seconds = settled((MOST_ROUNDS, ROUNDS), f64::INFINITY, || fastest(1, read));
            rates.read[index] = size / seconds;
            // Each round and thread has other places: what a round has left in a cache is of no use to the next.
            let mut salts = random(GATHER_ROUNDS * count).into_iter();
            rates.gather[index] = fastest(GATHER_ROUNDS, || {
                let salts: Vec<u32> = salts.by_ref().take(count).collect();
                threads.run(|part| {
                    black_box(gather(x, &places, salts[part]));
                });
                1.0 / GATHERED as f64
            });
        }
        rates
    }
}

/// Bytes per second that the threads write to `x` past the caches.
fn write(x: &mut [f64], threads: &Threads) -> f64 {
    let (count, elements) = (threads.count(), x.len());
    // Of a first-level cache.
    let from = [1.0; WRITTEN];
    let seconds = fastest(ROUNDS, || {
        let x = Disjoint::new(&mut *x);
        Stores::PAST_CACHES.run(threads, |part| {
            // SAFETY: the parts do not overlap.
            let part = unsafe { x.range(partition::even(elements, count, part)) };
            for to in part.chunks_exact_mut(WRITTEN) {
                Stores::PAST_CACHES.copy(&from, to);
            }
        });
        1.0
    });
    size_of_val(x) as f64 / seconds
}

/// The sum in several accumulators, so that memory limits it and not the latency of additions.
fn sum(x: &[f64]) -> f64 {
    let (blocks, rest) = x.as_chunks::<16>();
    let mut sums = [0.0; 16];
    for block in blocks {
        sums.iter_mut().zip(block).for_each(|(sum, x)| *sum += x);
    }
    sums.iter().chain(rest).sum()
}

/// The sum of elements of `x`, whose length is a power of 2, at random places, which another `salt` changes.
fn gather(x: &[f64], places: &[u32], salt: u32) -> f64 {
    let (mut sums, last) = ([0.0; LANES], x.len() - 1);
    for places in places.as_chunks::<LANES>().0 {
        for (sum, &place) in sums.iter_mut().zip(places) {
            *sum += x[(place ^ salt) as usize & last];
        }
    }
    sums.iter().sum()
}

/// Random numbers (xorshift; Marsaglia, "Xorshift RNGs", 2003).
fn random(count: usize) -> Vec<u32> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    (0..count).map(|_| next()).collect()
}

/// A matrix of rows of `length` entries; `count` consecutive rows have the same columns.
fn scattered(entries: usize, length: usize, count: usize) -> Csr<f64> {
    let rows = entries / length;
    // Around the diagonal, seven columns apart on the average.
    let reach = 7 * length;
    let col = move |row: usize, entry: usize| {
        let group = row / count;
        let first = (group * count).min(rows.saturating_sub(reach));
        first + entry * 7 + (group * 5 + entry * entry * 3) % 7
    };
    matrix(rows, reach.max(rows), length, col)
}

/// Rows and columns of the blocks of [`blocks`].
const BLOCK: usize = 4;

/// A matrix of dense blocks of [`BLOCK`] x [`BLOCK`], `count` in each block row, every second one of a band.
fn blocks(entries: usize, count: usize) -> Csr<f64> {
    let length = BLOCK * count;
    let block_rows = entries / (BLOCK * length);
    let first = |row: usize| (row / BLOCK).min(block_rows.saturating_sub(2 * count)) * BLOCK;
    let col = |row: usize, entry: usize| first(row) + entry / BLOCK * 2 * BLOCK + entry % BLOCK;
    matrix(block_rows * BLOCK, (block_rows.max(2 * count)) * BLOCK, length, col)
}

/// A symmetric matrix of `runs` (odd) runs of three columns in each row, each row shifted by one.
fn shifted(entries: usize, runs: usize) -> Csr<f64> {
    let rows = entries / (3 * runs);
    let distance = (rows / (2 * runs)).max(4);
    let offsets = move |entry: usize| {
        let run = (entry / 3) as isize - (runs / 2) as isize;
        run * distance as isize + (entry % 3) as isize - 1
    };
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows {
        let cols = (0..3 * runs).filter_map(|entry| row.checked_add_signed(offsets(entry)));
        for col in cols.filter(|&col| col < rows) {
            col_ind.push(col as u32);
            values.push(1.0 + (row + col) as f64);
        }
        row_ptr.push(col_ind.len() as u32);
    }
    Csr::new((rows, rows), row_ptr, col_ind, values).expect("columns that ascend")
}

fn matrix(
    rows: usize,
    cols: usize,
    length: usize,
    col: impl Fn(usize, usize) -> usize,
) -> Csr<f64> {
    let entries = || (0..rows).flat_map(|row| (0..length).map(move |entry| (row, entry)));
    let col_ind: Vec<u32> = entries().map(|(row, entry)| col(row, entry) as u32).collect();
    let values =
        entries().map(|(row, entry)| 1.0 + ((row * length + entry) % DISTINCT) as f64).collect();
    let row_ptr = (0..=rows).map(|row| (row * length) as u32).collect();
    Csr::new((rows, cols), row_ptr, col_ind, values).expect("columns that ascend")
}

/// A matrix whose product is timed, and what of it a family's costs are multiplied with.
struct Sample {
    a: Csr<f64>,
    /// Rows, stored elements, stored indices.
    counts: [f64; 3],
}

/// The samples of a family, as many as it has costs.
fn samples(family: Family, entries: usize) -> Vec<Sample> {
    let sample = |a: Csr<f64>, elements: f64, indices: f64| {
        let counts = [a.rows() as f64, elements * a.nnz() as f64, indices * a.nnz() as f64];
        Sample { a, counts }
    };
    match family {
        // An index for each element: the cost of both is that of the element.
        Family::Csr
        | Family::SellGathered
        | Family::SellCodes
        | Family::SellTiles
        | Family::Scatter => {
            [4, 32].map(|length| sample(scattered(entries, length, 1), 1.0, 0.0)).into()
        }
        Family::CsrCompact => [(8, 1), (32, 1), (32, 4)]
            .map(|(length, count)| {
                sample(scattered(entries, length, count), 1.0, 1.0 / count as f64)
            })
            .into(),
        Family::Bsr => [2, 16]
            .map(|count| {
                let a = blocks(entries, count);
                let counts = [(a.rows() / BLOCK) as f64, (a.nnz() / BLOCK) as f64, 0.0];
                Sample { a, counts }
            })
            .into(),
        Family::SellContiguous => {
            [1, 9].map(|runs| sample(shifted(entries, runs), 1.0, 0.0)).into()
        }
        Family::SellSymmetric => [1, 9].map(|runs| sample(shifted(entries, runs), 0.5, 0.0)).into(),
    }
}

/// The kernel of a family and its parameters without the way to gather, in which `sell-compact` keeps the
/// order of the rows. The product with the transpose has none.
fn kernel(family: Family) -> Option<(&'static str, &'static str)> {
    match family {
        Family::Csr => Some(("csr-nnz-balanced", "")),
        Family::CsrCompact => Some(("csr-compact", "")),
        Family::Bsr => Some(("bsr-rows", "block=4")),
        Family::SellGathered | Family::SellContiguous => {
            Some(("sell-compact", "sigma=1,codes=off"))
        }
        Family::SellCodes => Some(("sell-compact", "sigma=1,codes=table")),
        Family::SellSymmetric => Some(("sell-symmetric", "")),
        Family::SellTiles => Some(("sell-tiles", "")),
        Family::Scatter => None,
    }
}

/// The ways to gather that a family's kernel has, as parameters.
fn gathers(family: Family) -> &'static [(&'static str, bool)] {
    match family {
        Family::Csr | Family::Bsr | Family::SellSymmetric | Family::Scatter => &[("", true)],
        _ => &[("gather=vector", true), ("gather=scalar", false)],
    }
}

/// A plan of a family's product.
fn plan<'a>(
    family: Family,
    gather: &str,
    a: &'a Csr<f64>,
    options: &PlanOptions,
) -> BoxedPlan<'a, f64> {
    let planned = match kernel(family) {
        None => transposed::plan(a, options),
        Some((id, parameters)) => {
            let kernel = spmv::find::<f64>(id).expect("a registered kernel");
            let parameters = kernel.info.parse_parameters(&format!("{parameters},{gather}"));
            kernel.plan(a, &parameters.expect("parameters of the kernel"), options)
        }
    };
    planned.expect("a matrix for the kernel")
}

/// The costs of the families on one thread, and of planning with a rayon pool of so many.
fn costs(threads: usize) -> [Cost; Family::ALL.len()] {
    let options = PlanOptions::with_threads(1);
    Family::ALL.map(|family| {
        let all = samples(family, ENTRIES);
        let ways = gathers(family).iter().map(|&(gather, vector_gather)| {
            let of = |sample: &Sample| product(&plan(family, gather, &sample.a, &options));
            (all.iter().map(of).collect(), vector_gather)
        });
        let total = |(seconds, _): &(Vec<f64>, bool)| seconds.iter().sum::<f64>();
        let best = ways.min_by(|a, b| total(a).total_cmp(&total(b)));
        let (seconds, vector_gather) = best.expect("each family has a way to gather");
        let counts: Vec<[f64; 3]> = all.iter().map(|sample| sample.counts).collect();
        let [row, element, index] = solve(&counts, &seconds);
        let planning = |Sample { a, .. }: Sample| {
            let seconds = fastest(ROUNDS, || {
                match family {
                    // Straight from CSR is a partition.
                    Family::Csr => return 0.0,
                    Family::Scatter => transpose_copy(&a, &options),
                    _ => drop(black_box(plan(family, gathers(family)[0].0, &a, &options))),
                }
                1.0
            });
            ([a.rows() as f64, a.nnz() as f64, 0.0], seconds)
        };
        let threads = if family.plans_in_parts() { 1 } else { threads };
        let times = (2 * threads).clamp(*PLANNED.start(), *PLANNED.end());
        let large = samples(family, times * ENTRIES).into_iter().take(2).map(planning);
        let (counts, mut seconds): (Vec<_>, Vec<_>) = large.unzip();
        // The same rows, but fewer.
        let (fewer, small) = planning(samples(family, ENTRIES).swap_remove(0));
        let plan_start = intercept((fewer[1], small), (counts[0][1], seconds[0]));
        seconds.iter_mut().for_each(|seconds| *seconds -= plan_start);
        let [plan_row, plan, _] = solve(&counts, &seconds);
        Cost { row, element, index, plan_start, plan_row, plan, vector_gather }
    })
}

/// A matrix of rows of 1 to 2^`bits` entries.
fn irregular(bits: u32) -> Csr<f64> {
    // Many, as processors learn the order of a few.
    let rows = ENTRIES;
    // In an order that no processor learns.
    let length = |row: usize| {
        let mixed = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        1 + (mixed >> (64 - bits)) as usize
    };
    let row_ptr: Vec<u32> = std::iter::once(0)
        .chain((0..rows).scan(0, |end, row| {
            *end += length(row) as u32;
            Some(*end)
        }))
        .collect();
    let entries = (0..rows).flat_map(|row| (0..length(row)).map(move |entry| row + 5 * entry));
    let col_ind: Vec<u32> = entries.map(|col| col as u32).collect();
    // Not all equal.
    let values = (0..col_ind.len()).map(|entry| 1.0 + (entry % DISTINCT) as f64).collect();
    Csr::new((rows, rows + (5 << bits)), row_ptr, col_ind, values).expect("columns that ascend")
}

/// What rows of 1 to 2^`bits` entries cost more than `cost` says: a branch that goes another way than in the row before, or a
/// row where no branch depends on its length.
fn branching(cost: &Cost, bits: u32) -> f64 {
    let a = irregular(bits);
    let counted = match Walk::fitting(a.row_ptr()) {
        Walk::Loops => {
            let lengths = a.row_ptr().windows(2).map(|at| (at[1] - at[0]) as usize);
            lengths
                .clone()
                .zip(lengths.skip(1))
                .map(|(before, length)| mispredictions(before, length))
                .sum()
        }
        Walk::UpTo4 | Walk::UpTo7 => a.rows(),
    };
    let seconds = product(&plan(Family::Csr, "", &a, &PlanOptions::with_threads(1)));
    let known = cost.row * a.rows() as f64 + cost.element * a.nnz() as f64;
    ((seconds - known) / counted as f64).max(0.0)
}

/// What a row costs more than `cost` says if rows are sorted by length.
fn sorted(cost: &Cost) -> f64 {
    let a = irregular(3);
    let gather = gathers(Family::SellGathered).iter().find(|way| way.1 == cost.vector_gather);
    let (gather, _) = gather.expect("a way to gather");
    let kernel = spmv::find::<f64>("sell-compact").expect("a registered kernel");
    let parameters = kernel.info.parse_parameters(&format!("sigma=256,codes=off,{gather}"));
    let parameters = parameters.expect("parameters of the kernel");
    let plan = kernel.plan(&a, &parameters, &PlanOptions::with_threads(1));
    let seconds = product(&plan.expect("a matrix for the kernel"));
    let elements = stats::sell_stored_elements(a.row_ptr(), LANES, 256) as f64;
    let known = cost.row * a.rows() as f64 + cost.element * elements;
    ((seconds - known) / a.rows() as f64).max(0.0)
}

/// Makes a transposed copy.
fn transpose_copy(a: &Csr<f64>, options: &PlanOptions) {
    let kernel = transpose::find::<f64>("counting").expect("a registered kernel");
    let plan = kernel.plan(a.view(), &kernel.info.defaults(), options);
    let mut output = TransposeOutput::new(a.cols(), a.nnz());
    plan.expect("a valid matrix").run(&mut output).expect("arrays of the right lengths");
    black_box(output);
}

/// Seconds of a product.
fn product(plan: &BoxedPlan<'_, f64>) -> f64 {
    let (rows, cols) = plan.shape();
    let (x, mut y) = (vec![1.0; cols], vec![0.0; rows]);
    let (mut least, start) = (f64::INFINITY, Instant::now());
    // What disturbs may take the time of all.
    while start.elapsed().as_secs_f64() < PRODUCTS {
        least = least.min(fastest(LEAST_PRODUCTS, || {
            plan.run(black_box(&x), black_box(&mut y)).expect("vectors of the plan's shape");
            1.0
        }));
    }
    least
}

/// The costs of a row, an element and an index, none below 0, from the times of products with two
/// matrices, or with three of which the first two differ in the rows.
fn solve(counts: &[[f64; 3]], seconds: &[f64]) -> [f64; 3] {
    let [short, long] = [counts[0], counts[1]];
    // The third matrix tells elements and indices apart, for rows that cost what those of the second do.
    let of_long = |row: f64| (seconds[1] - row * long[0]).max(0.0);
    let (short_total, long_total) = (short[1] + short[2], long[1] + long[2]);
    // Of elements and indices together; as many as elements where there are both.
    let both = seconds[0] / short_total;
    let per_row = short[0] / short_total - long[0] / long_total;
    let row = if per_row > 0.0 { (both - seconds[1] / long_total) / per_row } else { 0.0 };
    let row = row.clamp(0.0, seconds[0] / short[0]);
    match (counts.get(2), seconds.get(2)) {
        (Some(third), Some(&third_seconds)) => {
            // elements + indices = of_long / long; elements + share indices = rest / third.
            let sum = of_long(row) / long[1];
            let rest = (third_seconds - row * third[0]).max(0.0) / third[1];
            let share = third[2] / third[1];
            let index = ((sum - rest) / (1.0 - share)).clamp(0.0, sum);
            [row, sum - index, index]
        }
        _ => [row, of_long(row) / long[1], 0.0],
    }
}

/// What of the seconds of two works does not grow with their sizes, the smaller one first: at most half of the larger
/// one's, whatever has disturbed the clock.
fn intercept((size, seconds): (f64, f64), (large, of_large): (f64, f64)) -> f64 {
    ((seconds * large - of_large * size) / (large - size)).clamp(0.0, of_large / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_that_the_times_were_made_of() {
        let near = |found: [f64; 3], expected: [f64; 3]| {
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6)
        };
        let two = [[100.0, 400.0, 0.0], [20.0, 640.0, 0.0]];
        assert!(near(solve(&two, &[100.0 * 3.0 + 800.0, 60.0 + 1280.0]), [3.0, 2.0, 0.0]));
        // A row cannot cost less than nothing.
        assert!(near(solve(&two, &[400.0, 1280.0]), [0.0, 2.0, 0.0]));
        let three = [[100.0, 400.0, 400.0], [20.0, 640.0, 640.0], [20.0, 640.0, 160.0]];
        let seconds =
            three.map(|[rows, elements, indices]| 3.0 * rows + 2.0 * elements + 5.0 * indices);
        assert!(near(solve(&three, &seconds), [3.0, 2.0, 5.0]), "{:?}", solve(&three, &seconds));
        // 3 and 2 for each; one that is not below 0, one that leaves something for the sizes.
        assert!((intercept((10.0, 23.0), (40.0, 83.0)) - 3.0).abs() < 1e-9);
        assert_eq!(intercept((10.0, 20.0), (40.0, 90.0)), 0.0);
        assert_eq!(intercept((10.0, 20.0), (40.0, 10.0)), 5.0);
    }

    #[test]
    fn samples_are_what_they_say() {
        for family in Family::ALL {
            for Sample { a, counts } in samples(family, ENTRIES) {
                assert!(a.nnz() > ENTRIES / 2 && a.nnz() <= ENTRIES, "{family:?}: {}", a.nnz());
                let height = if family == Family::Bsr { BLOCK } else { 1 };
                assert_eq!(counts[0], (a.rows() / height) as f64);
            }
        }
    }

    #[test]
    fn irregular_rows_are_of_both_kinds() {
        assert_eq!(Walk::fitting(irregular(3).row_ptr()), Walk::Loops);
        assert_eq!(Walk::fitting(irregular(4).row_ptr()), Walk::Loops);
        assert_eq!(Walk::fitting(irregular(2).row_ptr()), Walk::UpTo4);
    }

    #[test]
    fn every_rate_is_measured() {
        let rates = Rates::measure(&Threads::new(2));
        assert_eq!(rates.threads, 2);
        for of in [rates.one, rates.all] {
            assert!(of.read.iter().all(|&rate| rate.is_finite() && rate > 0.0), "{of:?}");
            assert!(of.gather.iter().all(|&rate| rate > 0.0 && rate < 1.0), "{of:?}");
            assert!(of.write.is_finite() && of.write > 0.0, "{of:?}");
        }
        assert!(rates.start > 0.0 && rates.start < 1.0);
        assert!(rates.fresh.is_finite() && rates.fresh > 0.0);
        assert!(rates.misprediction >= 0.0 && rates.misprediction < 1.0);
        assert!(rates.short >= 0.0 && rates.short < 1.0);
        assert!(rates.sorted >= 0.0 && rates.sorted < 1.0);
        for family in Family::ALL {
            let Cost { element, row, plan_row, plan, .. } = rates.cost(family);
            assert!(element + row > 0.0, "{family:?}");
            assert_eq!(plan_row + plan > 0.0, family != Family::Csr, "{family:?}");
        }
        assert_eq!(rates.to_string().parse(), Ok(rates));
    }
}

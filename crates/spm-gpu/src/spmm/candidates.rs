//! The kernels that may be the fastest for a matrix and a dense shape on a device, by the statistics alone.

use spm_formats::kernel::Value;
use spm_formats::{DenseShape, Layout, MemoryBudget};

use super::{
    bsr_row_split, csr_nonzero_split, csr_row_split, csr_segmented_sum, csr_stream, csr_vector,
    sell_row_split, sell_thread_per_row,
};
use crate::blocks::{SIZE, is_as_estimated};
use crate::device::Device;
use crate::launch::WARP;
use crate::plan::DeviceReal;
use crate::race::Candidate;
use crate::source::Source;

/// Stored elements that are nothing, however much of them is padding.
const FEW_ELEMENTS: f64 = 65536.0;
/// Padding beyond which SELL is not looked at; sorted, and where sorting is worth it.
const LARGEST_PADDING: f64 = 3.0;
const LARGEST_SORTED_PADDING: f64 = 1.5;
const SMALL_PADDING: f64 = 1.05;
/// Rows that are sorted together.
const SIGMA: usize = 1024;
/// A longest row of so many means stands out.
const SKEWED: f64 = 8.0;
/// Threads that the device runs at once for each row and column of a matrix that takes little more than a
/// launch, at least.
const FEW_ROWS: usize = 16;
/// Its entries for each of these threads, at most.
const FEW_ENTRIES: usize = 2;
/// Entries for each thread that the device runs at once from which on some microseconds more of planning
/// are nothing.
const MANY_ENTRIES: usize = 4;
/// The same, from which on the device is full whatever the block.
const MOST_ENTRIES: usize = 64;
/// Entries of rows from which on threads share them, with 4 columns of X, or more.
const SHORT_ROW: usize = 3;
const LONG_ROW: usize = 12;
const LONGER_ROW: usize = 20;
/// Entries for each row below which rows end so often that what is done at their end counts.
const SHORT_ROWS: usize = 4;
/// Entries that a thread of `csr-row-split` loads at once.
const QUAD: usize = 4;
/// How often a launch fills the device from which on fewer threads, of four columns each, leave none of it idle.
const FULL_ROUNDS: usize = 4;
/// The same, below which SELL, whose loads do not wait for row pointers, is faster than CSR if rows are not long.
const FEW_ROUNDS: usize = 2;
/// Products for each thread that the device runs at once below which launch and latency take the time.
const FEW_PRODUCTS: usize = 16;
/// Columns of X from which on four for each thread are faster than two, where that leaves no thread idle or rows end often,
/// and from which on they are the default.
const FOURS: std::ops::Range<usize> = 16..32;
/// The same, of rows in their order that leave none of the device idle.
const UNSORTED_FOURS: std::ops::Range<usize> = 8..FOURS.start;
/// Columns of X from which on the second-level cache is the limit, and CSR, whose quads take fewer loads than
/// elements of SELL, has the more of the first, unless all rows are of about one length.
const WIDE: usize = 64;
/// Threads for each entry of a row, with a thread for a row and four columns, from which on they
/// keep the device busy: one for so many that it runs at once.
const THREADS_FOR_ENTRY: usize = 256;

/// Kernels that may be the fastest for this matrix, none of which is told by the statistics to be slower than another.
pub(super) fn candidates<T: DeviceReal>(
    a: &Source<T>,
    dense: DenseShape,
    budget: &MemoryBudget,
) -> Vec<Candidate<T>> {
    let formats = Formats {
        sells: &|sigma, most| sells(a, sigma, most, budget),
        blocks: &|| blocks(a, budget),
    };
    chosen(Structure::of(a), Sizes::of(a.csr.device()), dense, formats)
}

/// What the candidates are chosen by.
#[derive(Debug, Clone, Copy)]
struct Structure {
    rows: usize,
    cols: usize,
    entries: usize,
    /// Entries of a row that has some.
    mean_row: usize,
    longest_row: usize,
}

impl Structure {
    fn of<T: DeviceReal>(a: &Source<T>) -> Self {
        Self {
            rows: a.csr.rows(),
            cols: a.csr.cols(),
            entries: a.csr.entries(),
            mean_row: a.mean_row(),
            longest_row: a.stats.longest_row,
        }
    }
}

/// What matrices are compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Threads that the device runs at once.
    resident: usize,
    l2_bytes: usize,
}

impl Sizes {
    pub(super) fn of(device: &Device) -> Self {
        let info = device.info();
        let l2_bytes = usize::try_from(info.l2_bytes).unwrap_or(usize::MAX);
        Self { resident: info.resident_threads(), l2_bytes }
    }

    /// Entries below which the launch takes most of the time.
    pub(super) fn few_entries(self) -> usize {
        FEW_ENTRIES * self.resident
    }
}

/// What a matrix can be made to.
#[derive(Clone, Copy)]
struct Formats<'a> {
    /// Makes SELL with rows sorted in windows of its first argument, if that takes no more stored elements for each
    /// entry than the second.
    sells: &'a dyn Fn(usize, f64) -> bool,
    /// Makes BSR, if the matrix has dense blocks, and returns their size.
    blocks: &'a dyn Fn() -> Option<usize>,
}

fn chosen<T: DeviceReal>(
    a: Structure,
    device: Sizes,
    dense: DenseShape,
    Formats { sells, blocks }: Formats<'_>,
) -> Vec<Candidate<T>> {
    let DenseShape { k, layout } = dense;
    let Structure { rows, cols, entries, mean_row: mean, longest_row } = a;
    let skewed = longest_row as f64 > SKEWED * (entries as f64 / rows as f64).max(4.0);
    let few_rows = device.resident / FEW_ROWS;
    let small = rows <= few_rows && cols <= few_rows && entries < device.few_entries();
    let even = k.is_multiple_of(2);
    // L2 holds the rest, too.
    let large_x = cols * k * T::BYTES > device.l2_bytes / 5 * 2;

    let fours = even && FOURS.contains(&k);
    let short_rows = entries < SHORT_ROWS * rows;
    let threads_of_four = rows.saturating_mul(k / 4);
    let few_rounds = mean < LONGER_ROW && threads_of_four < FEW_ROUNDS * device.resident;
    let nonzero_split = |tile: Option<&'static str>| {
        let columns = Value::Choice(match even {
            true if fours && short_rows => "4",
            true => "2",
            false => "1",
        });
        let tile = tile.map(|tile| ("tile", Value::Choice(tile)));
        let set: Vec<_> = [("columns", columns)].into_iter().chain(tile).collect();
        Candidate::with(&csr_nonzero_split::INFO, &set, csr_nonzero_split::on_device)
    };
    let row_split = || Candidate::with(&csr_row_split::INFO, &[], csr_row_split::on_device);
    let stream_of = |block: Option<usize>| {
        let block = block.map(|block| ("block", Value::Count(block)));
        Candidate::with(&csr_stream::INFO, block.as_slice(), csr_stream::on_device)
    };
    // Threads for many columns leave few for the entries of a long row.
    let stream = || stream_of((small && even && k >= WIDE).then_some(256));
    // Long rows whose entries threads share. Threads for the columns leave the others of a warp to do so in
    // `csr-row-split`, which needs no barrier while each has no more of them than it loads at once.
    let sharing = || {
        let column_threads = k.div_ceil(2).next_power_of_two().min(WARP);
        if mean * column_threads <= QUAD * WARP {
            vec![row_split()]
        } else if k <= 32 {
            vec![row_split(), stream()]
        } else {
            vec![stream()]
        }
    };
    let vector = || Candidate::with(&csr_vector::INFO, &[], csr_vector::on_device);
    let segmented_sum =
        || Candidate::with(&csr_segmented_sum::INFO, &[], csr_segmented_sum::on_device);
    let sell_thread = |columns| {
        let set = [("columns", Value::Choice(columns)), ("sigma", Value::Count(1))];
        Candidate::with(&sell_thread_per_row::INFO, &set, sell_thread_per_row::on_device)
    };
    let sell_row_split = |set: &[_], sigma: usize| {
        let set = [set, &[("sigma", Value::Count(sigma))]].concat();
        Candidate::with(&sell_row_split::INFO, &set, sell_row_split::on_device)
    };
    // Of a large X 16 columns at a time stay in L2: of SELL, where there is one, with this window.
    let tiled = k > 16 && large_x;
    let nonzero_splits = |sigma: Option<usize>| {
        let in_tiles = || match sigma {
            Some(sigma) => sell_row_split(&[("tile", Value::Choice("16"))], sigma),
            None => nonzero_split(Some("16")),
        };
        [nonzero_split(None)].into_iter().chain(tiled.then(in_tiles)).collect::<Vec<_>>()
    };
    // A row of X is read once for all rows of a block.
    let block_row_splits = || {
        let size = blocks()?;
        let block_threads_of_four = rows.div_ceil(size).saturating_mul(k / 4);
        let columns: &[_] = if !even || k < 4 {
            &[None]
        } else if small {
            &[Some("2")]
        } else if block_threads_of_four >= FULL_ROUNDS * device.resident {
            &[Some("4")]
        } else {
            &[Some("2"), Some("4")]
        };
        let candidate = |&columns: &Option<_>| {
            let columns = columns.map(|columns| ("columns", Value::Choice(columns)));
            let size = (SIZE.name, Value::Count(size));
            let set: Vec<_> = columns.into_iter().chain([size]).collect();
            Candidate::with(&bsr_row_split::INFO, &set, bsr_row_split::on_device)
        };
        Some(columns.iter().map(candidate).collect::<Vec<_>>())
    };
    // Not [a, b].concat(): candidates are not cloned.
    let before = |first: Candidate<T>, mut others: Vec<Candidate<T>>| {
        others.insert(0, first);
        others
    };
    match layout {
        // A thread or a warp for a row would wait for the longest one.
        Layout::ColumnMajor if skewed && k <= 16 => {
            vec![stream(), segmented_sum()]
        }
        // X is read for each entry, whatever else is done: the matrix in whole lines, and one launch.
        _ if skewed && (small || k <= 8) => vec![stream()],
        _ if skewed => before(stream(), nonzero_splits(None)),
        Layout::ColumnMajor => {
            let long = mean >= if k <= 4 { SHORT_ROW } else { LONG_ROW };
            let enough = (THREADS_FOR_ENTRY * rows).saturating_mul(k.div_ceil(4))
                >= device.resident.saturating_mul(mean);
            if small && if k <= 8 { long } else { !enough } {
                return vec![vector()];
            }
            if !sells(1, LARGEST_PADDING) {
                return before(vector(), before(row_split(), nonzero_splits(None)));
            }
            let few = sell_thread(if k <= 2 { "2" } else { "4" });
            if small {
                return vec![few];
            }
            // Rows with columns all over X are better off with a row-major copy.
            let mut candidates = block_row_splits().unwrap_or_else(|| {
                let others = if k <= 8 { vec![vector()] } else { nonzero_splits(None) };
                before(sell_row_split(&[], 1), others)
            });
            if k > 4 && entries >= MANY_ENTRIES * device.resident {
                candidates.push(sell_thread("8"));
            }
            candidates.push(few);
            candidates
        }
        Layout::RowMajor => {
            let long = |few_columns| mean >= if k <= few_columns { LONG_ROW } else { LONGER_ROW };
            if small && long(8) && k <= 16 {
                let mut candidates = sharing();
                if k > 8 {
                    candidates.extend(block_row_splits().unwrap_or_default());
                }
                return candidates;
            }
            // Rows without entries cost a store, not a search; behind stores small blocks leave the multiprocessor sooner.
            if !small && entries < rows {
                return vec![stream_of(Some(64))];
            }
            if !small && even && k >= WIDE && !few_rounds {
                // Rows of one length: no load waits for a row pointer.
                let equal = sells(1, SMALL_PADDING);
                let sell = equal.then(|| sell_row_split(&[], 1));
                let others = block_row_splits().unwrap_or_else(|| {
                    let sorted = || tiled && sells(SIGMA, LARGEST_SORTED_PADDING);
                    nonzero_splits(if equal { Some(1) } else { sorted().then_some(SIGMA) })
                });
                return [row_split()].into_iter().chain(sell).chain(others).collect();
            }
            // Sorting costs more than it gains while rows are few.
            let sorted = entries >= MANY_ENTRIES * device.resident;
            let most = if sorted { SMALL_PADDING } else { LARGEST_PADDING };
            let sigma = if sells(1, most) {
                Some(1)
            } else if sorted && sells(SIGMA, LARGEST_SORTED_PADDING) {
                Some(SIGMA)
            } else {
                None
            };
            // Threads for the columns leave a part of the device idle, which shares the entries of the rows.
            let few_threads = 2 * rows.saturating_mul(k.div_ceil(4)) < device.resident;
            let few_products = small && entries.saturating_mul(k) < FEW_PRODUCTS * device.resident;
            let mut candidates = vec![];
            match sigma {
                None => candidates.push(stream()),
                Some(sigma) => {
                    let pairs = (small || few_rounds) && even && k > 16;
                    // With four columns for each thread three quarters of the device would be idle.
                    if !pairs || rows * k >= device.resident {
                        let rounds = match sigma {
                            1 if UNSORTED_FOURS.contains(&k) && even => FULL_ROUNDS,
                            _ if fours => 1,
                            _ => usize::MAX,
                        };
                        let full = threads_of_four >= device.resident.saturating_mul(rounds);
                        let enough = full && mean < LONGER_ROW;
                        let four = enough.then_some(("columns", Value::Choice("4")));
                        candidates.push(sell_row_split(four.as_slice(), sigma));
                    }
                    if pairs {
                        let set = [("columns", Value::Choice("2"))];
                        candidates.push(sell_row_split(&set, sigma));
                    }
                    if long(4) && few_threads && !few_products {
                        candidates.extend(sharing());
                    }
                }
            }
            if (!small || k > 16)
                && !few_products
                && let Some(in_blocks) = block_row_splits()
            {
                candidates.extend(in_blocks);
                return candidates;
            }
            let Some(sigma) = sigma else {
                if k > 16 {
                    candidates.extend(nonzero_splits(None));
                } else {
                    candidates.push(row_split());
                }
                return candidates;
            };
            if !small && k > 8 && k <= 16 && short_rows {
                candidates.push(if fours { nonzero_split(None) } else { stream() });
            }
            if !small && k > 16 && (!few_rounds || large_x) {
                candidates.extend((even && k > FOURS.end).then(row_split));
                candidates.extend(nonzero_splits(Some(sigma)));
            }
            if even && k <= 16 && entries >= MOST_ENTRIES * device.resident {
                let set = [("block", Value::Count(64)), ("columns", Value::Choice("4"))];
                candidates.push(sell_row_split(&set, sigma));
            }
            candidates
        }
    }
}

/// Makes SELL of the matrix, unless it would have more than so many stored elements for each entry or
/// take more memory than there is.
fn sells<T: DeviceReal>(a: &Source<T>, sigma: usize, most: f64, budget: &MemoryBudget) -> bool {
    let few = |padding: f64| padding * a.csr.entries() as f64 <= FEW_ELEMENTS;
    matches!(a.sell_if(sigma, budget, |padding| padding <= most || few(padding)), Ok(Some(_)))
}

/// Makes BSR of the matrix if it has dense blocks, and returns their size. Without memory for it there are the other
/// kernels.
fn blocks<T: DeviceReal>(a: &Source<T>, budget: &MemoryBudget) -> Option<usize> {
    let blocks = a.blocks().ok()??;
    let accept = |elements| is_as_estimated(blocks, elements, a.csr.entries());
    a.bsr_if(blocks.size, budget, accept).ok()??;
    Some(blocks.size)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spm_formats::{Csr, convert};
    use spm_testing::{edge_cases, generate};

    use super::*;
    use crate::convert::Survey;
    use crate::matrix::DeviceCsr;
    use crate::problem::Problem;
    use crate::spmm::auto;

    /// Something like an H200.
    const LARGE_DEVICE: Sizes = Sizes { resident: 1 << 18, l2_bytes: 60 << 20 };

    fn source(name: &str) -> Source<f64> {
        of_matrix(&generate::named(name).unwrap().generate::<f64>().unwrap())
    }

    fn of_matrix(a: &Csr<f64>) -> Source<f64> {
        let device = Device::emulated(Default::default());
        let a = DeviceCsr::new(&device, a.view()).unwrap();
        Source::shared(Arc::new(a), false, |a, _| Survey::of_rows(a)).unwrap()
    }

    fn of(a: &Source<f64>, k: usize, layout: Layout) -> Vec<Candidate<f64>> {
        let budget = &MemoryBudget::default();
        let formats = Formats {
            sells: &|sigma, most| sells(a, sigma, most, budget),
            blocks: &|| blocks(a, budget),
        };
        chosen(Structure::of(a), LARGE_DEVICE, DenseShape { k, layout }, formats)
    }

    fn labels(a: &Source<f64>, k: usize, layout: Layout) -> Vec<String> {
        of(a, k, layout).into_iter().map(|candidate| candidate.label).collect()
    }

    #[test]
    fn every_candidate_is_planned_on_the_device_and_takes_its_parameters() {
        for name in [
            "stencil5[n=9]",
            "banded[n=700,lower=20,upper=20]",
            "powerlaw[rows=900,cols=900,entries=2500,longest=400]",
            "mesh2[n=12,unknowns=3]",
            "uniform[rows=20000,cols=20000,entries=60000]",
        ] {
            let a = source(name);
            for (k, layout) in [2, 3, 4, 8, 32, 33, 64]
                .into_iter()
                .flat_map(|k| [(k, Layout::RowMajor), (k, Layout::ColumnMajor)])
            {
                let candidates = of(&a, k, layout);
                assert!((1..=4).contains(&candidates.len()), "{name}, {k}");
                for candidate in candidates {
                    let (dense, device) = (DenseShape { k, layout }, a.csr.device());
                    let (parameters, budget) = (&auto::INFO.defaults(), &MemoryBudget::default());
                    let info = &auto::INFO;
                    let problem = Problem {
                        info,
                        device,
                        a: &a,
                        dense,
                        parameters,
                        budget,
                        new_values: false,
                    };
                    let plan = candidate.plan(problem);
                    assert!(plan.is_ok(), "{}, {dense:?}", candidate.label);
                }
            }
        }
    }

    #[test]
    fn statistics_decide_where_a_launch_takes_the_time() {
        let long = source("banded[n=700,lower=20,upper=20]");
        for (k, layout, expected) in [
            (4, Layout::RowMajor, "csr-row-split"),
            (8, Layout::ColumnMajor, "csr-vector"),
            (32, Layout::ColumnMajor, "csr-vector"),
        ] {
            assert_eq!(labels(&long, k, layout), [expected], "{k}");
        }
        let short = source("stencil5[n=20]");
        assert_eq!(labels(&short, 4, Layout::RowMajor), ["sell-row-split[sigma=1]"]);
    }

    /// Structure, k, layout, stored elements of SELL for each entry, unsorted and sorted; candidates.
    type Case<'a> = (Structure, usize, Layout, (f64, f64), &'a [&'a str]);

    /// Every branch, with matrices of all sizes.
    #[test]
    fn structure_width_and_layout_decide() {
        const SMALL: Structure =
            Structure { rows: 1000, cols: 1000, entries: 5000, mean_row: 5, longest_row: 9 };
        const LARGE: Structure = Structure {
            rows: 1 << 18,
            cols: 1 << 18,
            entries: 1 << 20,
            mean_row: 4,
            longest_row: 9,
        };
        let skewed = Structure { longest_row: 9000, ..LARGE };
        let skewed_short = Structure { longest_row: 9000, mean_row: 3, ..LARGE };
        let long = Structure { rows: 30_000, entries: 600_000, mean_row: 20, ..LARGE };
        let huge = Structure { entries: 1 << 24, mean_row: 64, longest_row: 64, ..LARGE };
        let middle = Structure { rows: 30_000, cols: 30_000, entries: 300_000, ..LARGE };
        let small_long = Structure { mean_row: 30, entries: 30_000, ..SMALL };
        let small_longer = Structure { mean_row: 200, entries: 200_000, ..SMALL };
        let (rows, columns) = (Layout::RowMajor, Layout::ColumnMajor);
        let (even, odd) = ("csr-nonzero-split[columns=2]", "csr-nonzero-split[columns=1]");
        let (lanes, entry_lanes) = ("csr-row-split", "csr-vector");
        let thread = |columns: usize| format!("sell-thread-per-row[columns={columns},sigma=1]");
        let [thread_2, thread_4, thread_8] = [2, 4, 8].map(thread);
        let (sell, sorted) = ("sell-row-split[sigma=1]", "sell-row-split[sigma=1024]");
        let wide = "sell-row-split[columns=2,sigma=1]";
        let (sell_four, even_four) =
            ("sell-row-split[columns=4,sigma=1]", "csr-nonzero-split[columns=4]");
        let most = "sell-row-split[block=64,columns=4,sigma=1]";
        let tiled = "csr-nonzero-split[columns=2,tile=16]";
        let tiled_odd = "csr-nonzero-split[columns=1,tile=16]";
        let sell_tiled = "sell-row-split[tile=16,sigma=1]";
        let sorted_tiled = "sell-row-split[tile=16,sigma=1024]";
        let [stream, small_stream, large_stream] =
            ["csr-stream", "csr-stream[block=64]", "csr-stream[block=256]"];
        let cases: &[Case] = &[
            (skewed, 8, columns, (9.0, 9.0), &[stream, "csr-segmented-sum"]),
            (skewed_short, 8, rows, (9.0, 9.0), &[stream]),
            (skewed_short, 33, rows, (9.0, 9.0), &[stream, odd, tiled_odd]),
            (Structure { longest_row: 900, ..SMALL }, 16, rows, (9.0, 9.0), &[stream]),
            (Structure { longest_row: 900, ..SMALL }, 64, rows, (9.0, 9.0), &[large_stream]),
            (Structure { longest_row: 900, ..SMALL }, 65, rows, (9.0, 9.0), &[stream]),
            (skewed, 32, columns, (9.0, 9.0), &[stream, even, tiled]),
            (skewed, 16, rows, (9.0, 9.0), &[stream, even]),
            // Column-major.
            (small_long, 8, columns, (1.0, 1.0), &[entry_lanes]),
            (small_long, 16, columns, (1.0, 1.0), &[entry_lanes]),
            (SMALL, 8, columns, (9.0, 9.0), &[entry_lanes, lanes, even]),
            (SMALL, 8, columns, (1.2, 1.0), &[&thread_4]),
            (Structure { mean_row: 2, ..SMALL }, 2, columns, (1.2, 1.0), &[&thread_2]),
            (long, 2, columns, (1.2, 1.0), &[sell, entry_lanes, &thread_2]),
            (long, 3, columns, (1.2, 1.0), &[sell, entry_lanes, &thread_4]),
            (long, 9, columns, (1.2, 1.0), &[sell, odd, &thread_4]),
            (LARGE, 8, columns, (1.2, 1.0), &[sell, entry_lanes, &thread_8, &thread_4]),
            // Row-major.
            (small_long, 8, rows, (1.0, 1.0), &[lanes]),
            (small_long, 16, rows, (1.0, 1.0), &[lanes, stream]),
            (Structure { mean_row: 12, ..SMALL }, 8, rows, (1.0, 1.0), &[lanes]),
            (Structure { mean_row: 11, ..SMALL }, 8, rows, (1.0, 1.0), &[sell]),
            (Structure { mean_row: 12, ..SMALL }, 16, rows, (1.0, 1.0), &[sell]),
            (Structure { mean_row: 64, ..small_long }, 4, rows, (1.0, 1.0), &[lanes]),
            (Structure { mean_row: 65, ..small_long }, 4, rows, (1.0, 1.0), &[lanes, stream]),
            (Structure { entries: 1 << 17, ..LARGE }, 8, rows, (1.0, 1.0), &[small_stream]),
            (Structure { entries: 1 << 17, ..LARGE }, 32, rows, (1.0, 1.0), &[small_stream]),
            (
                Structure { entries: 1 << 17, ..skewed },
                32,
                rows,
                (9.0, 9.0),
                &[stream, even, tiled],
            ),
            (Structure { entries: 1 << 19, ..LARGE }, 8, rows, (1.0, 1.0), &[sell]),
            (Structure { entries: 1 << 19, ..LARGE }, 12, rows, (1.0, 1.0), &[sell, stream]),
            (
                Structure { entries: 1 << 19, ..LARGE },
                16,
                rows,
                (1.0, 1.0),
                &[sell_four, even_four],
            ),
            (
                Structure { entries: 1 << 19, ..LARGE },
                32,
                rows,
                (1.0, 1.0),
                &[sell, even, sell_tiled],
            ),
            (Structure { entries: 1 << 19, ..skewed }, 16, rows, (9.0, 9.0), &[stream, even_four]),
            (LARGE, 16, rows, (1.0, 1.0), &[sell_four]),
            (Structure { rows: 1 << 19, ..LARGE }, 8, rows, (1.0, 1.0), &[sell_four]),
            (Structure { rows: 1 << 19, ..LARGE }, 9, rows, (1.0, 1.0), &[sell, stream]),
            (Structure { rows: 1 << 19, ..LARGE }, 6, rows, (1.0, 1.0), &[sell]),
            (Structure { rows: (1 << 19) - 1, ..LARGE }, 8, rows, (1.0, 1.0), &[sell]),
            (Structure { rows: 1 << 19, ..LARGE }, 8, rows, (1.2, 1.0), &[sorted]),
            (Structure { rows: 1 << 19, mean_row: 20, ..LARGE }, 8, rows, (1.0, 1.0), &[sell]),
            (LARGE, 24, rows, (1.0, 1.0), &[sell_four, even, sell_tiled]),
            (LARGE, 31, rows, (1.0, 1.0), &[sell, odd, sell_tiled]),
            (long, 16, rows, (1.2, 1.0), &[sell, lanes, stream]),
            (SMALL, 8, rows, (1.2, 1.0), &[sell]),
            (Structure { entries: 900, ..SMALL }, 8, rows, (1.2, 1.0), &[sell]),
            (SMALL, 32, rows, (1.2, 1.0), &[wide]),
            (
                Structure { rows: 1 << 13, entries: 40_000, ..SMALL },
                32,
                rows,
                (1.2, 1.0),
                &[sell, wide],
            ),
            (SMALL, 33, rows, (1.2, 1.0), &[sell]),
            (small_long, 32, rows, (1.0, 1.0), &[wide]),
            (small_longer, 32, rows, (1.0, 1.0), &[wide, lanes, stream]),
            (small_longer, 64, rows, (1.0, 1.0), &[wide, large_stream]),
            (long, 8, rows, (1.2, 1.0), &[sell, lanes]),
            (Structure { mean_row: 33, ..long }, 8, rows, (1.2, 1.0), &[sell, lanes, stream]),
            (Structure { rows: 70_000, ..long }, 8, rows, (1.2, 1.0), &[sell]),
            (long, 8, rows, (9.0, 1.0), &[stream, lanes]),
            (LARGE, 8, rows, (1.2, 1.2), &[sorted]),
            (LARGE, 8, rows, (1.2, 1.6), &[stream, lanes]),
            (LARGE, 32, rows, (1.2, 1.6), &[stream, even, tiled]),
            (LARGE, 32, rows, (1.0, 1.0), &[sell, even, sell_tiled]),
            (LARGE, 32, rows, (1.2, 1.5), &[sorted, even, sorted_tiled]),
            (LARGE, 34, rows, (1.0, 1.0), &[sell, lanes, even, sell_tiled]),
            (LARGE, 33, rows, (1.0, 1.0), &[sell, odd, sell_tiled]),
            (LARGE, 64, rows, (1.0, 1.0), &[lanes, sell, even, sell_tiled]),
            (LARGE, 64, rows, (1.1, 1.0), &[lanes, even, sorted_tiled]),
            (LARGE, 64, rows, (1.1, 1.6), &[lanes, even, tiled]),
            (LARGE, 65, rows, (1.0, 1.0), &[sell, odd, sell_tiled]),
            (middle, 32, rows, (1.0, 1.0), &[sell, wide]),
            (middle, 64, rows, (1.0, 1.0), &[sell, wide]),
            (Structure { rows: 40_000, ..middle }, 64, rows, (1.1, 1.0), &[lanes, even]),
            (Structure { mean_row: 20, ..middle }, 64, rows, (1.0, 1.0), &[lanes, sell, even]),
            (
                Structure { cols: 1 << 20, ..middle },
                64,
                rows,
                (1.0, 1.0),
                &[sell, wide, lanes, even, sell_tiled],
            ),
            (huge, 32, rows, (1.0, 1.0), &[sell, even, sell_tiled]),
            (huge, 8, rows, (1.0, 1.0), &[sell, most]),
            (huge, 7, rows, (1.0, 1.0), &[sell]),
        ];
        for (number, &(a, k, layout, (unsorted, sorted), expected)) in cases.iter().enumerate() {
            let padded = |sigma: usize, most: f64| {
                assert!(sigma == 1 || sigma == SIGMA);
                (if sigma == 1 { unsorted } else { sorted }) <= most
            };
            let formats = Formats { sells: &padded, blocks: &|| None };
            let candidates = chosen::<f64>(a, LARGE_DEVICE, DenseShape { k, layout }, formats);
            let labels: Vec<_> = candidates.iter().map(|candidate| &candidate.label).collect();
            assert_eq!(labels, expected, "case {number}: {a:?}, {k} {layout:?}");
        }
    }

    /// Dense blocks: after SELL or CSR for a row-major X, in its place for a column-major one; not looked for where rows are
    /// skewed, and where the launch takes the time.
    #[test]
    fn dense_blocks_decide() {
        const SMALL: Structure =
            Structure { rows: 999, cols: 999, entries: 40_000, mean_row: 40, longest_row: 60 };
        const LARGE: Structure =
            Structure { rows: 192_000, cols: 192_000, entries: 8_000_000, ..SMALL };
        let small_longer = Structure { entries: 200_000, mean_row: 200, ..SMALL };
        let huge = Structure { rows: 3_000_000, cols: 3_000_000, entries: 1 << 27, ..LARGE };
        let skewed = Structure { longest_row: 9000, ..LARGE };
        let (rows, columns) = (Layout::RowMajor, Layout::ColumnMajor);
        let in_blocks = |columns: &str| format!("bsr-row-split[{columns}size=3]");
        let [any, two, four] = ["", "columns=2,", "columns=4,"].map(in_blocks);
        let (sell, wide) = ("sell-row-split[sigma=1]", "sell-row-split[columns=2,sigma=1]");
        let thread = |columns: usize| format!("sell-thread-per-row[columns={columns},sigma=1]");
        let [thread_2, thread_4, thread_8] = [2, 4, 8].map(thread);
        let cases: &[(Structure, usize, Layout, bool, &[&str])] = &[
            (LARGE, 2, rows, true, &[sell, &any]),
            (LARGE, 7, rows, true, &[sell, &any]),
            (LARGE, 8, rows, true, &[sell, &two, &four]),
            (LARGE, 32, rows, true, &[sell, &two, &four]),
            (LARGE, 32, rows, false, &["csr-stream", &two, &four]),
            (huge, 2, rows, true, &[sell, &any]),
            (huge, 32, rows, true, &[sell, &four]),
            (SMALL, 16, rows, true, &["csr-row-split", "csr-stream", &two]),
            (LARGE, 64, rows, true, &["csr-row-split", sell, &two, &four]),
            (LARGE, 64, rows, false, &["csr-row-split", &two, &four]),
            (small_longer, 32, rows, true, &[wide, "csr-row-split", "csr-stream", &two]),
            (Structure { mean_row: 5, ..small_longer }, 32, rows, true, &[wide, &two]),
            (LARGE, 2, columns, true, &[&any, &thread_2]),
            (LARGE, 32, columns, true, &[&two, &four, &thread_8, &thread_4]),
            (huge, 32, columns, true, &[&four, &thread_8, &thread_4]),
        ];
        for (number, &(a, k, layout, padded_little, expected)) in cases.iter().enumerate() {
            let formats = Formats { sells: &|_, _| padded_little, blocks: &|| Some(3) };
            let candidates = chosen::<f64>(a, LARGE_DEVICE, DenseShape { k, layout }, formats);
            let labels: Vec<_> = candidates.iter().map(|candidate| &candidate.label).collect();
            assert_eq!(labels, expected, "case {number}: {a:?}, {k} {layout:?}");
        }
        let short = Structure { mean_row: 5, ..SMALL };
        for (a, k, layout) in [
            (SMALL, 8, rows),
            (SMALL, 32, rows),
            (short, 16, rows),
            (short, 16, columns),
            (skewed, 32, rows),
        ] {
            let formats = Formats { sells: &|_, _| true, blocks: &|| panic!("looked for blocks") };
            chosen::<f64>(a, LARGE_DEVICE, DenseShape { k, layout }, formats);
        }
    }

    /// A matrix is made to blocks where it has about as many as a sample says.
    #[test]
    fn blocks_are_found_and_counted() {
        let (budget, little) = (MemoryBudget::default(), MemoryBudget::bytes(100));
        assert_eq!(blocks(&source("stencil5[n=20]"), &budget), None);
        let mesh = source("mesh2[n=12,unknowns=3]");
        assert_eq!(blocks(&mesh, &little), None);
        assert_eq!(blocks(&mesh, &budget), Some(3));
        // Once for all plans.
        assert!(mesh.bsr_if(3, &little, |_| panic!("made again")).unwrap().is_some());
        // A sample has every second block row: whole blocks in those, an entry of each in the others.
        let rows = 0..64 * 3;
        let entries = rows.flat_map(|row: u32| {
            let whole = row / 3 % 2 != 1;
            let cols = (0..60).filter(move |col| whole || (row % 3 == 1 && col % 3 == 1));
            cols.map(move |col| (row, col))
        });
        let a = edge_cases::with_entries::<f64>((64 * 3, 60), entries);
        let a = of_matrix(&convert::coo_to_csr(&a));
        assert_eq!(a.blocks().unwrap().unwrap().size, 3);
        assert_eq!(blocks(&a, &budget), None);
    }
}

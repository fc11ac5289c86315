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
mod tests;

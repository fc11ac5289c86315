//! The structure of a matrix as estimated from some of its rows, the ways to store it, and the time of a
//! product with each.

use spm_formats::convert::{self, DetectedBlocks};
use spm_formats::kernel::{Value, split_label};
use spm_formats::{CsrView, Scalar, partition};

use super::lengths::{LARGEST_WINDOW, Lengths, WINDOW};
use super::{MARGIN, Prediction};
use crate::machine::{Family, Rates};
use crate::simd::{FEW, GATHER, LANES};
use crate::spmv::bsr_rows::{self, BLOCK};
use crate::spmv::dictionary::Dictionary;
use crate::spmv::long_rows::{self, LONG};
use crate::spmv::row::{SampledRows, Walk};
use crate::spmv::sell_compact::builder::in_pairs;
use crate::spmv::sell_compact::{CODES, SIGMA};
use crate::spmv::{
    csr_compact, csr_nnz_balanced, dcsr_rows, sell_compact, sell_symmetric, sell_tiles,
};
use crate::workspace::CACHE_LINE;

/// Blocks of [`LANES`] rows whose columns are read.
const BLOCKS: usize = 32;
/// Values of a block that are looked at.
const VALUES: usize = 256;
/// The most rows of a thread over the mean from which on threads that share one window may be slower than bands of tiles,
/// and elements for each entry of rows sorted in small windows from which on those are no better.
const UNEVEN: f64 = 1.1;
const PADDED: f64 = 1.1;
/// Columns of a tile of `sell-tiles`.
const TILE: u32 = 1 << 16;

/// A way to store the matrix: what its product reads and computes.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) label: String,
    pub(super) family: Family,
    pub(super) rows: f64,
    /// Mispredicted branches: those that go another way than in the row or the chunk of rows before.
    pub(super) mispredictions: f64,
    /// Rows whose sums have no branch that depends on their length.
    pub(super) short: f64,
    /// Rows that are sorted by length.
    pub(super) sorted: f64,
    pub(super) elements: f64,
    pub(super) indices: f64,
    /// Bytes of the matrix, and of what planning allocates.
    pub(super) bytes: f64,
    pub(super) made: f64,
    /// Bytes that the elements of x for consecutive entries are spread over.
    pub(super) reach: f64,
    /// Whether codes stand for the values.
    pub(super) coded: bool,
    /// Elements, of those above, whose values are loaded from a table.
    pub(super) looked_up: f64,
    /// Elements, of those above, that belong to another family.
    pub(super) rest: Option<(Family, f64)>,
    /// Rows of a window of sorted rows, which threads do not divide.
    pub(super) window: Option<usize>,
}

/// The structure of a matrix as estimated from some of its rows. Numbers are per entry unless they say
/// otherwise.
#[derive(Debug, Default)]
pub(super) struct Structure {
    /// The share of rows without entries.
    empty: f64,
    /// Cache lines of x that the row before has not used.
    lines: f64,
    /// Mispredicted branches of a row: of the sums of CSR, and of `csr-compact`.
    mispredictions: [f64; 2],
    /// The share of chunks of rows of `sell-compact` of another width than one elsewhere.
    width_changes: f64,
    /// Bytes of x between the first and the last column of a row.
    reach: f64,
    /// Column indices that `csr-compact` stores, and its groups of rows for each row.
    listed: f64,
    groups: f64,
    /// Bytes of a column index where 16 bits may suffice.
    index_bytes: f64,
    /// Elements of `sell-compact` in the order of the rows, with an index each or for eight.
    gathered: f64,
    contiguous: f64,
    /// Elements of `sell-compact` by sorting window: in order, 256 rows, 4096 rows.
    sorted: [f64; 3],
    /// Elements of `sell-symmetric`; nothing where the sample is not symmetric.
    upper: Option<f64>,
    /// Rows of tiles.
    runs: f64,
    /// Whether all values seem equal.
    equal: bool,
    /// Values in the table of codes, where there seem to be few enough.
    table: Option<usize>,
    /// Dense square blocks.
    blocks: Option<DetectedBlocks>,
}

/// Sums over the sampled blocks.
#[derive(Debug, Default)]
struct Sums {
    /// Entries of the longest row that is in a chunk at most.
    longest: usize,
    /// Blocks, and those that have entries.
    seen: usize,
    blocks: usize,
    entries: usize,
    /// Of rows that have a row before them in their block.
    followers: usize,
    lines: usize,
    /// Chunk columns of the block before, and blocks that have another number.
    width: Option<usize>,
    width_changes: usize,
    reach: f64,
    /// Entries of rows padded to whole vectors, and those of them that `csr-compact` stores.
    padded: usize,
    listed: usize,
    groups: usize,
    narrow: usize,
    gathered: usize,
    contiguous: usize,
    paired: usize,
    upper: usize,
    runs: usize,
    symmetric: bool,
    equal: bool,
    /// Values that have been looked for in the table.
    values: usize,
}

impl Structure {
    /// Of a matrix whose products so many threads compute.
    pub(super) fn sample<T: Scalar>(a: &CsrView<'_, T>, threads: usize) -> Self {
        let longest = long_rows::longest_whole(a.row_ptr(), threads);
        let is_square = a.rows() == a.cols();
        let mut sums = Sums { longest, symmetric: is_square, equal: true, ..Sums::default() };
        let all = a.rows() / LANES;
        let (mut firsts, mut table) = (Vec::new(), Some(Dictionary::new()));
        for block in partition::sampled(all, (all / BLOCKS).max(1)) {
            sums.add(a, block * LANES, &mut firsts);
            let values = &a.values()[a.row_range(block * LANES).start..];
            let values = &values[..values.len().min(VALUES)];
            sums.values += values.len();
            table = table.and_then(|table| table.with(values));
        }
        // Where each value has occurred several times, hardly any is missing.
        let seems_whole = |table: &Dictionary<T>| 4 * table.table().len() < sums.values;
        let table = table.filter(|table| seems_whole(table) && table.pays(a.nnz()));
        let of = |count: usize| count as f64 / sums.entries.max(1) as f64;
        // Without values there are no pairs.
        let equal = sums.equal && sums.entries > 0;
        // Windows of lengths are a better sample of short and long rows than blocks are.
        let in_windows = [WINDOW, LARGEST_WINDOW].map(|window| {
            let window = sell_compact::window(window, a.rows(), threads);
            long_rows::longest_in_windows(a.row_ptr(), threads, window)
        });
        let lengths = Lengths::sample(a.row_ptr(), [longest, in_windows[0], in_windows[1]]);
        let listed = sums.listed as f64 / sums.padded.max(1) as f64;
        let (more_gathered, more_contiguous) =
            if equal { (sums.paired, 0) } else { (0, sums.paired) };
        Self {
            empty: SampledRows::of(a.row_ptr()).empty(),
            lines: sums.lines as f64 / sums.followers.max(1) as f64,
            mispredictions: lengths.mispredictions,
            width_changes: sums.width_changes as f64 / sums.blocks.saturating_sub(1).max(1) as f64,
            reach: sums.reach / sums.entries.max(1) as f64,
            listed: lengths.padded * listed,
            groups: sums.groups as f64 / (sums.seen * LANES).max(1) as f64,
            index_bytes: if 2 * sums.narrow > sums.blocks { 2.0 } else { 4.0 },
            gathered: of(sums.gathered + more_gathered),
            contiguous: of(sums.contiguous + more_contiguous),
            sorted: lengths.sorted,
            upper: (sums.symmetric && sums.entries > 0).then(|| of(sums.upper)),
            runs: of(sums.runs),
            equal,
            table: table.map(|table| table.table().len()),
            blocks: convert::detect_blocks(*a),
        }
    }

    /// All ways for so many threads, the one straight from CSR first.
    pub(super) fn ways<T: Scalar>(&self, a: &CsrView<'_, T>, threads: usize) -> Vec<Way> {
        let (rows, nnz) = (a.rows() as f64, a.nnz() as f64);
        let value = T::BYTES as f64;
        let pointers = 4.0 * (rows + 1.0);
        let without_branches = Walk::fitting(a.row_ptr()) != Walk::Loops;
        let (mispredictions, short) =
            if without_branches { (0.0, rows) } else { (rows * self.mispredictions[0], 0.0) };
        // What most ways have in common.
        let common = Way {
            label: String::new(),
            family: Family::Csr,
            rows,
            mispredictions: 0.0,
            short: 0.0,
            sorted: 0.0,
            elements: nnz,
            indices: 0.0,
            bytes: 0.0,
            made: 0.0,
            reach: self.reach,
            coded: false,
            looked_up: 0.0,
            rest: None,
            window: None,
        };
        let direct = Way {
            label: csr_nnz_balanced::INFO.label(&csr_nnz_balanced::INFO.defaults()),
            mispredictions,
            short,
            bytes: nnz * (value + 4.0) + pointers,
            ..common.clone()
        };
        let mut ways = vec![direct];
        // A list of the rows that have entries, where it is shorter than the pointers of all rows.
        let filled = rows * (1.0 - self.empty);
        let list = filled * dcsr_rows::ROW_BYTES as f64;
        if list < pointers {
            ways.push(Way {
                label: dcsr_rows::INFO.id.to_owned(),
                rows: filled,
                mispredictions: mispredictions.min(filled * self.mispredictions[0]),
                short: short.min(filled),
                bytes: nnz * (value + 4.0) + list,
                // The pointers are read once.
                made: list + pointers,
                ..ways[0].clone()
            });
        }
        let (listed, groups) = (nnz * self.listed, rows * self.groups);
        ways.push(Way {
            label: csr_compact::INFO.id.to_owned(),
            family: Family::CsrCompact,
            mispredictions: groups * self.mispredictions[1],
            indices: listed,
            bytes: nnz * value + 12.0 * groups + listed * self.index_bytes + pointers,
            made: 12.0 * groups + listed * self.index_bytes,
            ..common.clone()
        });
        if let Some(DetectedBlocks { size, padding_ratio, .. }) = self.blocks {
            let stored = nnz * padding_ratio;
            let index = 4.0 / (size * size) as f64;
            let bytes = stored * (value + index) + 4.0 * rows / size as f64;
            ways.push(Way {
                label: format!("{}[{}={size}]", bsr_rows::INFO.id, BLOCK.name),
                family: Family::Bsr,
                rows: rows / size as f64,
                mispredictions: rows / size as f64 * self.mispredictions[1],
                // Each column of a block is one vector.
                elements: stored / size as f64,
                bytes,
                made: bytes + (stored - nnz) * size_of::<usize>() as f64,
                ..common.clone()
            });
        }
        let chunks = 12.0 * rows / LANES as f64;
        let [unsorted, near, far] = self.sorted;
        let changes = rows * self.width_changes / LANES as f64;
        let sell = |sigma: usize, elements: f64, contiguous: f64, table: Option<usize>| {
            // Bytes of a value.
            let stored = match table {
                _ if self.equal => 0.0,
                Some(_) => 1.0,
                None => value,
            };
            let bytes = nnz * elements * (stored + self.index_bytes)
                + nnz * contiguous * (stored + 4.0 / LANES as f64)
                + chunks
                + table.unwrap_or(0) as f64 * value
                + if sigma > 1 { 2.0 * rows } else { 0.0 };
            let (gathered, whole) = (Family::SellGathered, Family::SellContiguous);
            let (family, rest) = if contiguous > elements {
                (whole, (gathered, nnz * elements))
            } else {
                (gathered, (whole, nnz * contiguous))
            };
            Way {
                label: format!(
                    "{}[{}={sigma},{}={}]",
                    sell_compact::INFO.id,
                    SIGMA.name,
                    CODES.name,
                    if looks_up(table) { "table" } else { "registers" }
                ),
                family,
                mispredictions: if sigma > 1 { 0.0 } else { changes },
                sorted: if sigma > 1 { rows } else { 0.0 },
                elements: nnz * (elements + contiguous),
                bytes,
                made: bytes,
                coded: table.is_some(),
                looked_up: if looks_up(table) { nnz * (elements + contiguous) } else { 0.0 },
                rest: Some(rest),
                window: (sigma > 1).then_some(sigma),
                ..common.clone()
            }
        };
        // Blocks are a poorer sample of padding than windows of row lengths are.
        let padding = unsorted / (self.gathered + self.contiguous).max(1.0);
        let padding = if self.contiguous > 0.0 { 1.0 } else { padding.max(1.0) };
        // Where codes are looked up, values as they are may be faster: in cache.
        let mut tables = vec![self.table.filter(|_| !self.equal)];
        if looks_up(tables[0]) {
            tables.push(None);
        }
        for table in tables {
            ways.push(sell(1, padding * self.gathered, self.contiguous, table));
            if near < MARGIN * unsorted {
                ways.push(sell(WINDOW, near, 0.0, table));
            }
            if far < MARGIN * near {
                ways.push(sell(LARGEST_WINDOW, far, 0.0, table));
            }
        }
        let most = sell_symmetric::most_elements(a) as f64;
        if let Some(upper) = self.upper.filter(|&upper| nnz * upper < most) {
            let bytes = nnz * upper * (value + 8.0 / LANES as f64 / 2.0);
            ways.push(Way {
                label: sell_symmetric::INFO.id.to_owned(),
                family: Family::SellSymmetric,
                mispredictions: changes,
                elements: nnz * upper,
                bytes,
                made: bytes,
                ..common.clone()
            });
        }
        let tile = tile_bytes::<T>();
        // A band of tiles sorts all of its rows, and each thread has one.
        let uneven = share_of_windows(a.rows(), LARGEST_WINDOW, threads) > UNEVEN && near > PADDED;
        if self.reach > tile || uneven {
            let padded = far.max(1.0);
            let bytes = nnz * (padded * (value + 2.0) + 4.0 * self.runs);
            ways.push(Way {
                label: sell_tiles::INFO.id.to_owned(),
                family: Family::SellTiles,
                rows: nnz * self.runs,
                elements: nnz * padded,
                bytes,
                made: bytes,
                reach: self.reach.min(tile),
                ..common
            });
        }
        ways
    }

    pub(super) fn predict<T: Scalar>(
        &self,
        a: &CsrView<'_, T>,
        way: &Way,
        threads: usize,
        balance: f64,
        rates: &Rates,
    ) -> Prediction {
        let vectors = ((a.rows() + a.cols()) * T::BYTES) as f64;
        let bytes = way.bytes + vectors;
        let cost = rates.cost(way.family);
        let (rest_cost, rest) =
            way.rest.map_or((0.0, 0.0), |(family, rest)| (rates.cost(family).element, rest));
        let computing = way.rows * cost.row
            + way.mispredictions * rates.misprediction()
            + way.short * rates.short()
            + way.sorted * rates.sorted()
            + (way.elements - rest) * cost.element
            + rest * rest_cost
            + way.looked_up * rates.lookup()
            + way.indices * cost.index;
        let waiting = self.waiting(a, way, threads, rates);
        let of_windows =
            way.window.map_or(1.0, |window| share_of_windows(a.rows(), window, threads));
        let of_rows = if way.family.splits_long_rows() { 1.0 } else { balance };
        // More threads than the machine has are no faster.
        let parallel = threads.min(rates.threads().max(1));
        let share = of_rows.max(of_windows) / parallel as f64;
        let reading = of_windows * bytes / rates.read(bytes, threads);
        let planned = if way.coded { Family::SellCodes } else { way.family };
        let gathers = if way.looked_up > 0.0 { rates.cost(planned) } else { cost };
        // A vector gather keeps more loads of a sum in flight, whatever it costs where x is near.
        let waits = way.family == Family::SellGathered && waiting > computing;
        let vector_gather = gathers.vector_gather || waits;
        let parts = match way.family {
            Family::SellTiles => sell_tiles::bands(a.row_ptr(), threads),
            family if family.plans_in_parts() => threads,
            _ => 1,
        };
        let parts = parts.clamp(1, parallel);
        let rows = way.rows.max(a.rows() as f64);
        // Of rows with equal columns one list is written.
        let entries = if planned == Family::CsrCompact { way.indices } else { a.nnz() as f64 };
        let converting = rates.planning(planned, rows, entries, parts);
        Prediction {
            label: label::<T>(way, vector_gather),
            threads,
            seconds: rates.start(threads) + reading.hypot(computing * share) + waiting * share,
            planning: converting + way.made / rates.fresh(),
            bytes,
        }
    }

    /// Seconds in which one thread waits for elements of x.
    pub(super) fn waiting<T: Scalar>(
        &self,
        a: &CsrView<'_, T>,
        way: &Way,
        threads: usize,
        rates: &Rates,
    ) -> f64 {
        let elements = a.nnz() as f64 * self.lines;
        let x = (a.cols() * T::BYTES) as f64;
        let far = |reach: f64| {
            let reach = touched(reach.min(x), elements / threads as f64);
            (rates.gather(reach, threads) - rates.near(threads)).max(0.0)
        };
        // A tile's part of x comes from where the whole of it is, once for each band.
        let first = if way.family == Family::SellTiles {
            let part = tile_bytes::<T>();
            let tiles = sell_tiles::bands(a.row_ptr(), threads) as f64 * (x / part).ceil();
            let lines = tiles * touched(part.min(x), elements / tiles) / CACHE_LINE as f64;
            lines.min(elements)
        } else {
            0.0
        };
        first * far(self.reach) + (elements - first) * far(way.reach)
    }
}

/// Bytes of x in a tile.
fn tile_bytes<T: Scalar>() -> f64 {
    f64::from(TILE) * T::BYTES as f64
}

/// Bytes of the cache lines among `bytes` bytes that so many accesses at random places touch: what one product leaves in a
/// cache for the next.
fn touched(bytes: f64, accesses: f64) -> f64 {
    let lines = (bytes / CACHE_LINE as f64).max(1.0);
    bytes * (1.0 - (-accesses / lines).exp())
}

/// The most rows of a thread over the mean in the windows that `sell-compact` sorts.
fn share_of_windows(rows: usize, sigma: usize, threads: usize) -> f64 {
    largest_share(rows, sell_compact::window(sigma, rows, threads), threads)
}

/// The most rows of a thread over the mean, if windows of rows are not divided: the last thread reads and computes alone.
fn largest_share(rows: usize, window: usize, threads: usize) -> f64 {
    let windows = rows.div_ceil(window).div_ceil(threads);
    (windows * window).min(rows) as f64 * threads as f64 / rows.max(1) as f64
}

/// Whether a table of so many values is beyond the registers.
fn looks_up(table: Option<usize>) -> bool {
    table.is_some_and(|len| len > FEW)
}

/// The kernel of a way with its parameters.
fn label<T: Scalar>(way: &Way, vector_gather: bool) -> String {
    let (id, text) = split_label(&way.label);
    let kernel = crate::spmv::find::<T>(id).expect("a registered kernel");
    let parameters = kernel.info.parse_parameters(text).expect("parameters of the kernel");
    let gather = Value::Choice(if vector_gather { "vector" } else { "scalar" });
    let parameters = match parameters.get(GATHER.name) {
        Some(_) => parameters.with(GATHER.name, gather),
        None => parameters,
    };
    kernel.info.label(&parameters)
}

impl Sums {
    /// Adds the block of rows from `start` on.
    fn add<T: Scalar>(&mut self, a: &CsrView<'_, T>, start: usize, firsts: &mut Vec<u32>) {
        // Of a long row the first ones.
        let cols = |lane: usize| {
            let cols = a.row(start + lane).0;
            &cols[..cols.len().min(LONG)]
        };
        // Long rows are not in chunks.
        let is_long = |lane: usize| a.row_range(start + lane).len() > self.longest;
        let in_chunk = |lane: usize| if is_long(lane) { &[][..] } else { cols(lane) };
        let lengths: [usize; LANES] = std::array::from_fn(|lane| cols(lane).len());
        let entries: usize = lengths.iter().sum();
        self.seen += 1;
        if entries == 0 {
            return;
        }
        self.blocks += 1;
        self.entries += entries;
        let (mut low, mut high, mut before) = (u32::MAX, 0, None);
        let per_line = (CACHE_LINE / T::BYTES) as u32;
        for lane in 0..LANES {
            let here = cols(lane);
            if let [first, .., last] | [first @ last] = here {
                (low, high) = (low.min(*first), high.max(*last));
                let span = f64::from(last - first);
                // Two of places that are anywhere in a range are a third of it from each other.
                let jump = before.replace(*first).map_or(0, |at| first.abs_diff(at));
                let to_first = span.max(3.0 * f64::from(jump));
                self.reach += T::BYTES as f64 * ((here.len() - 1) as f64 * span + to_first);
                self.runs += here.chunk_by(|a, b| a / TILE == b / TILE).count();
            }
            let same = lane > 0 && here == cols(lane - 1);
            self.groups += usize::from(!same);
            let padded = here.len().next_multiple_of(LANES);
            self.padded += padded;
            self.listed += if same { 0 } else { padded };
            if lane > 0 {
                self.followers += here.len();
                let mut before = cols(lane - 1).iter().map(|col| col / per_line).peekable();
                for line in here.chunk_by(|a, b| a / per_line == b / per_line) {
                    let line = line[0] / per_line;
                    while before.next_if(|&other| other < line).is_some() {}
                    self.lines += usize::from(before.peek() != Some(&line));
                }
            }
        }
        let narrow = high - low <= u32::from(u16::MAX);
        self.narrow += usize::from(narrow);
        // As the builders of `sell-compact` and `sell-symmetric` do.
        let chunk: [&[u32]; LANES] = std::array::from_fn(in_chunk);
        let longest = chunk.iter().map(|row| row.len()).max().unwrap_or(0);
        let gathered = LANES * longest;
        let alone: usize = (0..LANES).map(|lane| lengths[lane] - in_chunk(lane).len()).sum();
        firsts.clear();
        let lanes = (0..LANES as u32).flat_map(|lane| {
            in_chunk(lane as usize)
                .iter()
                .map(move |&col| col.checked_sub(lane).unwrap_or(u32::MAX))
        });
        firsts.extend(lanes);
        firsts.sort_unstable();
        firsts.dedup();
        let bytes = T::BYTES * LANES;
        let of_gathered = gathered * (T::BYTES + if narrow { 2 } else { 4 });
        let fits = firsts.len() * (bytes + 4) <= of_gathered * 11 / 10;
        let mut width = longest;
        if narrow && in_pairs(&chunk) {
            self.paired += gathered;
        } else if firsts.last() != Some(&u32::MAX) && fits {
            width = firsts.len();
            self.contiguous += LANES * width;
        } else {
            self.gathered += gathered;
        }
        self.width_changes +=
            usize::from(self.width.replace(width).is_some_and(|last| last != width));
        self.gathered += alone;
        if self.symmetric {
            firsts.clear();
            for lane in 0..LANES as u32 {
                let row = start as u32 + lane;
                let upper = cols(lane as usize).iter().filter(|&&col| col >= row);
                firsts.extend(upper.map(|col| col - lane));
            }
            firsts.push(start as u32);
            firsts.sort_unstable();
            firsts.dedup();
            self.upper += LANES * firsts.len();
            let lane = self.blocks % LANES;
            let (row_cols, values) = a.row(start + lane);
            let mirrored = |(&col, value): (&u32, &T)| {
                let mirror = a.get(col as usize, start + lane);
                mirror.is_some_and(|other| other.to_bits128() == value.to_bits128())
            };
            let step = (row_cols.len() / 4).max(1);
            self.symmetric = row_cols.iter().zip(values).step_by(step).all(mirrored);
        }
        let values = &a.values()[a.row_range(start)];
        let first = a.values()[0].to_bits128();
        self.equal &= values.iter().all(|value| value.to_bits128() == first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_accesses_touch_a_line_each_and_many_all_lines() {
        let bytes = |accesses| touched(64e6, accesses);
        assert!((bytes(1e3) / 64e3 - 1.0).abs() < 1e-3, "{}", bytes(1e3));
        assert!((bytes(1e6) / 64e6 - 0.632).abs() < 1e-3, "{}", bytes(1e6));
        assert!((bytes(1e8) / 64e6 - 1.0).abs() < 1e-9, "{}", bytes(1e8));
        assert_eq!((touched(0.0, 9.0), bytes(0.0)), (0.0, 0.0));
    }

    #[test]
    fn threads_do_not_divide_windows() {
        assert_eq!(largest_share(8192, 4096, 2), 1.0);
        assert_eq!(largest_share(5000, 4096, 2), 4096.0 / 2500.0);
        assert_eq!(largest_share(700, 4096, 2), 2.0);
        // Two of three windows.
        assert_eq!(largest_share(600, 256, 2), 512.0 / 300.0);
        assert_eq!([largest_share(700, 4096, 1), largest_share(0, 256, 2)], [1.0, 0.0]);
    }
}

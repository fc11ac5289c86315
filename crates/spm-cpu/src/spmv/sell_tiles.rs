//! SpMV by tiles of 2^16 x 2^16 for matrices whose columns have no locality: y_I = sum_J A_IJ x_J.
//!
//! The parts of x and y that a tile uses stay in the second-level cache. Row and column indices
//! inside a tile take 16 bits. A tile stores only the rows that have entries in it, eight at a
//! time, sorted by their number of entries in the tile. A row with many entries in a tile is stored by
//! itself, eight entries at a time: beside shorter rows it would be padding for the most part.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_formats::{CsrSource, CsrView, FormatError, NewValues, RealScalar, Scalar, partition};
use std::ops::Range;

use super::KERNEL;
use super::plan::{Memory, Product, boxed};
use super::repair::{any_not_finite, repair};
use crate::aligned::Aligned;
use crate::counting_sort::counting_sort;
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::scaled::{Buffers, Staged, Update};
use crate::simd::{self, AHEAD, GATHER, Isa, Job, LANES, Machine, PREFETCH};
use crate::values::{Lanes, Stores};
use crate::{PlanOptions, Threads, aligned, scaled};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell-tiles",
    source: "own",
    summary: "tiles of 2^16 columns, SELL-8 inside a tile, 16-bit indices",
    parameters: &[WIDTH, GATHER, PREFETCH],
    ..KERNEL
};

/// Columns of a tile.
const WIDTH: ParameterSpec = ParameterSpec {
    name: "width",
    meaning: "columns of a tile, up to 65536",
    default: Value::Count(65536),
    studied: &[Value::Count(16384), Value::Count(32768), Value::Count(65536)],
};

/// Maximum rows of a tile, so that row indices inside it fit 16 bits.
const MOST_ROWS: usize = 1 << 16;
/// Rows of a window that is sorted by the number of entries in a tile.
const SIGMA: usize = 1024;
/// A row with more entries in a tile is a chunk by itself. A constant, so that each row is summed in the same
/// order whatever rows are beside it.
const TOGETHER: usize = 64;

/// Up to eight rows of a tile, or one row.
///
/// With fewer than eight rows, the leading lanes repeat the row of the last lane; a scatter writes
/// the last lane last. The entries of one row are distributed over all lanes in turn.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    /// Row indices relative to the first row of the band.
    rows: [u16; LANES],
    /// Stored elements of each lane: of a row up to [`TOGETHER`], or an eighth of 65536.
    width: u16,
    /// Whether the entries of one row are in all lanes.
    is_one_row: bool,
}

/// A tile: consecutive columns of a band of rows.
struct Tile {
    first_col: usize,
    /// The first column after the tile.
    end_col: usize,
    chunks: Box<[Chunk]>,
    /// Which stored elements of the band these are.
    elements: Range<usize>,
}

/// A band: all tiles of consecutive rows.
struct Band<T> {
    rows: Range<usize>,
    tiles: Vec<Tile>,
    /// The stored elements of the tiles, one tile after the other. Long arrays, so that huge pages hold them.
    elements: Elements<T>,
}

/// Stored elements: columns inside a tile, and values.
struct Elements<T> {
    cols: Aligned<u16>,
    values: Aligned<T>,
}

struct SellTiles<'a, T> {
    /// For rows that are recomputed because padding made their sum infinite or NaN.
    a: CsrSource<'a, T>,
    bands: Vec<Band<T>>,
    staged: Staged<T>,
    threads: Threads,
    /// Bands of thread t: `bounds[t]..bounds[t + 1]`.
    bounds: Vec<usize>,
    machine: Machine,
    prefetch: bool,
}

pub(super) fn plan<'a, T: RealScalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let unsupported = |reason| Err(PlanError::Unsupported { kernel: INFO.id, reason });
    let width = parameters.count(WIDTH.name);
    if width > 1 << 16 {
        return unsupported(format!("a tile of {width} columns does not fit 16-bit columns"));
    }
    let threads = options.threads.clone();
    let view = a.view();
    let (mut bands, mut bounds) = (Vec::new(), vec![0]);
    for share in shares(view.row_ptr(), threads.count()) {
        bands.extend(share);
        bounds.push(bands.len());
    }
    check_bands(&view, &bands, width, options)?;
    let most_rows = bands.iter().map(Range::len).max().unwrap_or(0);
    let staged = Staged::new(threads.count(), most_rows);
    let bands = threads.map(bands.len(), |band| Band::new(&view, bands[band].clone(), width));
    // Rows and columns inside a tile fit 16 bits.
    let machine = Machine::for_gathers(parameters, MOST_ROWS);
    let prefetch = parameters.switch(PREFETCH.name);
    Ok(boxed(SellTiles { a, bands, staged, threads, bounds, machine, prefetch }))
}

/// The bands of each thread: rows with about the same number of entries, as many bands as they take.
fn shares(
    row_ptr: &[u32],
    threads: usize,
) -> impl Iterator<Item = impl Iterator<Item = Range<usize>>> {
    let shares = partition::by_entries(row_ptr, threads);
    (0..threads).map(move |thread| {
        let (start, rows) = (shares[thread], shares[thread + 1] - shares[thread]);
        let count = rows.div_ceil(MOST_ROWS);
        (0..count).map(move |band| {
            let band = partition::even(rows, count, band);
            start + band.start..start + band.end
        })
    })
}

/// Number of bands on `threads` threads.
pub(super) fn bands(row_ptr: &[u32], threads: usize) -> usize {
    shares(row_ptr, threads).map(Iterator::count).sum()
}

/// Refuses tiles beyond the budget, and what is allocated for a while to make them.
fn check_bands<T: Scalar>(
    a: &CsrView<'_, T>,
    bands: &[Range<usize>],
    width: usize,
    options: &PlanOptions,
) -> Result<(), FormatError> {
    let element_bytes = size_of::<u16>() + T::BYTES;
    let tiles = bands.len() * a.cols().div_ceil(width);
    let of_tile = size_of::<Vec<Run>>() + size_of::<Tile>();
    // Arrays that double are there twice for a moment.
    let of_run = 3 * (size_of::<Run>() + size_of::<Chunk>());
    let check = |elements: usize, runs: usize| {
        let of_bands = bands.len() * size_of::<Band<T>>();
        let gaps = aligned::gaps(2 * bands.len(), elements * element_bytes);
        let fixed = of_bands + gaps + tiles * of_tile + runs * of_run;
        options.budget.check(INFO.id, a.nnz(), elements as u128, element_bytes, fixed)
    };
    // Counting is left out where the worst that padding can do, eight stored elements for each entry,
    // fits.
    check(LANES * a.nnz(), a.nnz()).or_else(|_| {
        let of_bands = |of: &(dyn Fn(&Range<usize>) -> usize + Sync)| -> usize {
            options.threads.map(bands.len(), |band| of(&bands[band])).into_iter().sum()
        };
        let count = of_bands(&|rows| count_runs(a, rows, width));
        check(a.nnz(), count)?;
        let of_band = |rows: &Range<usize>| -> usize {
            runs(a, rows, width).iter_mut().flat_map(|runs| chunks(runs)).map(elements).sum()
        };
        check(of_bands(&of_band), count)
    })
}

impl<T: Scalar> Band<T> {
    fn new(a: &CsrView<'_, T>, rows: Range<usize>, width: usize) -> Self {
        let mut runs = runs(a, &rows, width);
        // Arrays of their final size: ones that grow would take three times as much for a moment.
        let count = runs.iter_mut().flat_map(|runs| chunks(runs)).map(elements).sum();
        let (cols, values) = (Aligned::with_capacity(count), Aligned::with_capacity(count));
        let mut elements = Elements { cols, values };
        let used = runs.iter_mut().enumerate().filter(|(_, runs)| !runs.is_empty());
        let cols = |tile: usize| tile * width..((tile + 1) * width).min(a.cols());
        let tile =
            |(tile, runs): (usize, &mut Vec<Run>)| Tile::new(a, cols(tile), runs, &mut elements);
        let tiles = used.map(tile).collect();
        Self { rows, tiles, elements }
    }

    fn bytes(&self) -> usize {
        let chunks: usize = self.tiles.iter().map(|tile| size_of_val(&*tile.chunks)).sum();
        chunks + size_of_val(&*self.elements.cols) + self.value_bytes()
    }

    fn value_bytes(&self) -> usize {
        size_of_val(&*self.elements.values)
    }

    /// Takes the values of `a`, whose pattern is that of the band's matrix. `copy` is called with the rows of
    /// each window before its values are read here, so that they have come from memory in their order.
    fn set_values(
        &mut self,
        a: &CsrView<'_, T>,
        machine: Machine,
        stores: Stores,
        mut copy: impl FnMut(Range<usize>),
    ) {
        let machine = machine.within(a.nnz());
        let first_row = self.rows.start;
        // Of each row the first entry that no tile has had yet.
        let mut next = a.row_ptr()[self.rows.clone()].to_vec();
        let (mut values, _) = self.elements.values.as_chunks_mut();
        let all_of = |tile| Unset::all(tile, &mut values);
        let mut tiles: Vec<_> = self.tiles.iter().map(all_of).collect();
        for window in self.rows.clone().step_by(SIGMA) {
            let end = (window + SIGMA).min(self.rows.end);
            copy(window..end);
            // Their rows are read in another order.
            let entries = a.row_ptr()[window] as usize..a.row_ptr()[end] as usize;
            let lines = a.col_ind()[entries].chunks(COLUMNS_OF_LINE);
            lines.for_each(|line| simd::prefetch(line.as_ptr()));
            for tile in &mut tiles {
                machine.run(Replace { tile, a: *a, first_row, end, next: &mut next, stores });
            }
        }
    }
}

/// Column indices of a cache line.
const COLUMNS_OF_LINE: usize = 16;

/// What has not got its new values yet of a tile.
struct Unset<'a, T> {
    end_col: usize,
    chunks: &'a [Chunk],
    values: &'a mut [[T; LANES]],
}

impl<'a, T: Scalar> Unset<'a, T> {
    /// A tile, whose values are the first of `values`, and are taken from there.
    fn all(tile: &'a Tile, values: &mut &'a mut [[T; LANES]]) -> Self {
        let values = values.split_off_mut(..tile.elements.len() / LANES);
        let values = values.expect("the band has the elements of its tiles");
        Self { end_col: tile.end_col, chunks: &tile.chunks, values }
    }

    /// The chunks of rows before `end`, where `first_row` is the band's first row, and their elements; the others
    /// are left.
    fn before(
        &mut self,
        first_row: usize,
        end: usize,
    ) -> impl Iterator<Item = (&'a Chunk, &'a mut [[T; LANES]])> {
        let is_before = |chunk: &&Chunk| first_row + usize::from(chunk.rows[0]) < end;
        let count = self.chunks.iter().take_while(is_before).count();
        let (chunks, left) = self.chunks.split_at(count);
        self.chunks = left;
        chunks.iter().map(|chunk| {
            let values = std::mem::take(&mut self.values);
            let (elements, left) = values.split_at_mut(usize::from(chunk.width));
            self.values = left;
            (chunk, elements)
        })
    }
}

/// Has a tile take the values of the rows of a window.
struct Replace<'a, 'u, T> {
    tile: &'a mut Unset<'u, T>,
    a: CsrView<'a, T>,
    /// The first row of the band.
    first_row: usize,
    /// The first row behind the window.
    end: usize,
    /// Of each row of the band the first entry that no tile has had yet.
    next: &'a mut [u32],
    stores: Stores,
}

// SAFETY: `As<T>` is `Replace<T>`.
unsafe impl<'a, 'u, T: Scalar> Job<T> for Replace<'a, 'u, T> {
    type As<U: Scalar> = Replace<'a, 'u, U>;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        let Self { tile, a, first_row, end, next, stores } = self;
        let end_col = tile.end_col;
        // The entries of a row in this tile, of which there are at most so many.
        let mut entries = |row: u16, most: usize| {
            let row = usize::from(row);
            let start = next[row];
            let most = most.min((a.row_ptr()[first_row + row + 1] - start) as usize);
            let cols = &a.col_ind()[start as usize..start as usize + most];
            // Without a branch for each column.
            let length: u32 = cols.iter().map(|&col| u32::from((col as usize) < end_col)).sum();
            next[row] = start + length;
            start..start + length
        };
        for (chunk, elements) in tile.before(first_row, end) {
            let width = elements.len();
            if chunk.is_one_row {
                let row = entries(chunk.rows[0], LANES * width);
                let values = &a.values()[row.start as usize..row.end as usize];
                for (to, new) in elements.iter_mut().zip(values.chunks(LANES)) {
                    // SAFETY: so many elements; the caller's promise.
                    unsafe {
                        let new = I::load_first(new.len(), new.as_ptr());
                        stores.put::<T, I>(new, to.as_mut_ptr());
                    }
                }
                continue;
            }
            let lanes = Lanes::new(std::array::from_fn(|lane| {
                // A lane that repeats the last one's row has padding only.
                if lane + 1 < LANES && chunk.rows[lane] == chunk.rows[LANES - 1] {
                    return 0..0;
                }
                entries(chunk.rows[lane], width)
            }));
            // SAFETY: entries of `a`, for whose number `Band::set_values` has asked for a machine; the caller's
            // promise.
            unsafe {
                lanes.each::<T, I>(a.values(), width, None, |at, new| {
                    stores.put::<T, I>(new, elements[at].as_mut_ptr());
                });
            }
        }
    }
}

/// The entries of one row in one tile.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    row: u16,
    start: u32,
    length: u32,
}

/// Calls `visit` with the tile of each run of some rows, row after row.
fn each_run<T: Scalar>(
    a: &CsrView<'_, T>,
    rows: &Range<usize>,
    width: usize,
    mut visit: impl FnMut(usize, Run),
) {
    // There are fewer columns than u32::MAX.
    let width = u32::try_from(width).unwrap_or(u32::MAX);
    for row in rows.clone() {
        let (mut start, mut rest) = (a.row_ptr()[row], a.row(row).0);
        while let [first, ..] = rest {
            let tile = first / width;
            let after = u64::from(tile) * u64::from(width) + u64::from(width);
            let length = count_below(rest, after);
            let run = Run { row: (row - rows.start) as u16, start, length: length as u32 };
            visit(tile as usize, run);
            (start, rest) = (start + run.length, &rest[length..]);
        }
    }
}

/// How many of ascending columns, the first of which is, are below `after`. Most runs of a matrix without locality are short.
fn count_below(cols: &[u32], after: u64) -> usize {
    let is_below = |&col: &u32| u64::from(col) < after;
    let mut end = 1;
    while cols.get(end).is_some_and(is_below) {
        end *= 2;
    }
    let start = end.div_ceil(2);
    start + cols[start..end.min(cols.len())].partition_point(is_below)
}

/// The runs of some rows in each tile, row after row.
fn runs<T: Scalar>(a: &CsrView<'_, T>, rows: &Range<usize>, width: usize) -> Vec<Vec<Run>> {
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); a.cols().div_ceil(width)];
    each_run(a, rows, width, |tile, run| runs[tile].push(run));
    runs
}

/// How many runs these are.
fn count_runs<T: Scalar>(a: &CsrView<'_, T>, rows: &Range<usize>, width: usize) -> usize {
    let mut count = 0;
    each_run(a, rows, width, |_, _| count += 1);
    count
}

/// The runs of a tile in the chunks that store them, in each chunk the longest last.
fn chunks(runs: &mut [Run]) -> impl Iterator<Item = &[Run]> {
    let window = |run: &Run| usize::from(run.row) / SIGMA;
    let mut sorted = [Run::default(); SIGMA];
    runs.chunk_by_mut(move |a, b| window(a) == window(b)).flat_map(move |window| {
        sort_by_length(window, &mut sorted);
        let together = window.partition_point(|run| run.length as usize <= TOGETHER);
        let (together, alone) = window.split_at(together);
        together.chunks(LANES).chain(alone.chunks(1))
    })
}

/// Sorts the runs of a window by length; those that are chunks by themselves are behind all others, in order.
fn sort_by_length(window: &mut [Run], sorted: &mut [Run; SIGMA]) {
    let length = |run: &Run| (run.length as usize).min(TOGETHER + 1);
    if window.is_sorted_by_key(length) {
        return;
    }
    counting_sort::<{ TOGETHER + 2 }>(
        window.len(),
        |run| length(&window[run]),
        |place, run| sorted[place] = window[run],
    );
    window.copy_from_slice(&sorted[..window.len()]);
}

/// Whether the entries of a chunk's only row are in all lanes.
fn is_one_row(chunk: &[Run]) -> bool {
    chunk[0].length as usize > TOGETHER
}

/// Stored elements of each lane of a chunk.
fn width(chunk: &[Run]) -> usize {
    let longest = chunk[chunk.len() - 1].length as usize;
    if is_one_row(chunk) { longest.div_ceil(LANES) } else { longest }
}

/// Stored elements of a chunk.
fn elements(chunk: &[Run]) -> usize {
    LANES * width(chunk)
}

impl Tile {
    /// Appends the stored elements of a tile, whose columns are `span`, to `to`.
    fn new<T: Scalar>(
        a: &CsrView<'_, T>,
        span: Range<usize>,
        runs: &mut [Run],
        to: &mut Elements<T>,
    ) -> Self {
        let (first_col, end_col) = (span.start, span.end);
        let (first, mut all_chunks) = (to.values.len(), Vec::new());
        for lanes in chunks(runs) {
            let last = lanes[lanes.len() - 1];
            let missing = LANES - lanes.len();
            let lane = |lane: usize| (lane >= missing).then(|| lanes[lane - missing]);
            let (width, is_one_row) = (width(lanes), is_one_row(lanes));
            all_chunks.push(Chunk {
                rows: std::array::from_fn(|l| lane(l).unwrap_or(last).row),
                width: width as u16,
                is_one_row,
            });
            // The entries of each lane: of its run, or every eighth one of the only run.
            let step = if is_one_row { LANES } else { 1 };
            let entries: [Range<usize>; LANES] = std::array::from_fn(|l| {
                let run = if is_one_row { Some(last) } else { lane(l) };
                let from = if is_one_row { l } else { 0 };
                run.map_or(0..0, |run| run.start as usize + from..(run.start + run.length) as usize)
            });
            for element in 0..width {
                // Padding repeats a column of the longest row, which is in cache.
                let padding = last.start as usize + element;
                let entry = |l: usize| {
                    let at = entries[l].start + element * step;
                    (at < entries[l].end).then_some(at)
                };
                let cols: [u16; LANES] = std::array::from_fn(|l| {
                    let col = a.col_ind()[entry(l).unwrap_or(padding)] as usize;
                    (col - first_col) as u16
                });
                let values: [T; LANES] =
                    std::array::from_fn(|l| entry(l).map_or(T::ZERO, |at| a.values()[at]));
                to.cols.extend(&cols);
                to.values.extend(&values);
            }
        }
        let elements = first..to.values.len();
        Self { first_col, end_col, chunks: all_chunks.into(), elements }
    }
}

impl<T: Scalar> Product<T> for SellTiles<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        self.machine = Machine::for_gathers(parameters, MOST_ROWS);
        self.prefetch = parameters.switch(PREFETCH.name);
        self.threads = threads.clone();
        true
    }

    fn memory(&self) -> Memory {
        let bands = self.bands.iter().map(Band::bytes);
        Memory::owned(bands.sum(), size_of_val(&*self.bounds))
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, y) = (self.a.view(), Disjoint::new(y));
        // The jobs index x by the columns of A.
        assert!(x.len() >= a.cols(), "x has {} elements", x.len());
        let mut buffers = self.staged.buffers(scaling);
        let buffers = buffers.as_mut().map(Buffers::parts);
        self.threads.share(&self.bounds, |thread, index| {
            let band = &self.bands[index];
            // SAFETY: the rows of bands do not overlap.
            let y = unsafe { y.range(band.rows.clone()) };
            let multiply = |y: &mut [T]| {
                y.fill(T::ZERO);
                for tile in &band.tiles {
                    let (elements, prefetch) = (&band.elements, self.prefetch);
                    self.machine.run(AddTile { tile, elements, prefetch, x, y });
                }
                if any_not_finite(y) {
                    repair(&a, band.rows.clone(), x, y);
                }
            };
            // SAFETY: no two calls with this thread run at the same time.
            unsafe { scaled::through(buffers, thread, y, multiply) };
        });
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let Self { a, bands, threads, bounds, machine, .. } = self;
        let stored: usize = bands.iter().map(Band::value_bytes).sum();
        let stores = Stores::for_new(&new, stored, threads);
        let bands = Disjoint::new(bands);
        a.set_values(new, |a, own| {
            let own = own.map(Disjoint::new);
            stores.run(threads, |part| {
                // SAFETY: each part has its own bands.
                for band in unsafe { bands.range(bounds[part]..bounds[part + 1]) } {
                    band.set_values(&a, *machine, stores, |rows| {
                        if let Some(own) = own {
                            // SAFETY: the rows of bands do not overlap.
                            unsafe { stores.copy_rows(&a, rows, own) };
                        }
                    });
                }
            });
        })
    }
}

/// y += A x for one tile.
struct AddTile<'a, T> {
    tile: &'a Tile,
    /// Those of the band.
    elements: &'a Elements<T>,
    /// Whether values and columns are prefetched, [`AHEAD`] elements before their use.
    prefetch: bool,
    x: &'a [T],
    /// The rows of the band.
    y: &'a mut [T],
}

// SAFETY: `As<T>` is `AddTile<T>`.
unsafe impl<'a, T: Scalar> Job<T> for AddTile<'a, T> {
    type As<U: Scalar> = AddTile<'a, U>;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        let elements = self.tile.elements.clone();
        let mut cols = self.elements.cols[elements.clone()].as_ptr();
        let mut values = self.elements.values[elements].as_ptr();
        // SAFETY: `Tile::new` has put into the arrays what its chunks consume, with columns below
        // those of A, which x has, and rows of the band, which y has. `I` by the caller's promise.
        unsafe {
            let (x, y) = (self.x.as_ptr().add(self.tile.first_col), self.y.as_mut_ptr());
            for chunk in &self.tile.chunks {
                let mut sums = if chunk.is_one_row {
                    I::splat(T::ZERO)
                } else {
                    I::gather_u16(y, chunk.rows.as_ptr())
                };
                for _ in 0..chunk.width {
                    if self.prefetch {
                        simd::prefetch(values.wrapping_add(AHEAD));
                        simd::prefetch(cols.wrapping_add(AHEAD));
                    }
                    sums = I::mul_add(I::load(values), I::gather_u16(x, cols), sums);
                    cols = cols.add(LANES);
                    values = values.add(LANES);
                }
                if chunk.is_one_row {
                    *y.add(usize::from(chunk.rows[0])) += I::sum(sums);
                } else {
                    I::scatter_u16(y, chunk.rows.as_ptr(), sums);
                }
            }
        }
    }
}

//! Plan of `gpu-kernels/src/spmm/csr_stream.rs`.

use spm_formats::Layout;
use spm_formats::kernel::{KernelInfo, ParameterSpec, Value};
use spm_gpu_kernels::spmm::{CsrStream1, CsrStream2, CsrStream4, STREAM_AT_ONCE, csr_stream_bytes};

use super::KERNEL;
use super::columns::{COLUMNS, ColumnShape, SMALL_BLOCK, TILE};
use super::long_rows::SPLIT;
use super::rearrange::{Ordered, strides};
use super::row_blocks::{self, parts_of_row, run_end};
use crate::matrix::PlanCsr;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};

const ENTRIES: ParameterSpec = ParameterSpec {
    name: "entries",
    meaning: "entries whose products a thread writes to shared memory, at most, for each of its columns",
    default: Value::Choice("auto"),
    studied: &[Value::Choice("auto"), Value::Choice("4"), Value::Choice("8"), Value::Choice("16")],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-stream",
    source: "own; after Greathouse and Daga, SC'14",
    summary: "CSR-Stream: products of all columns of X in shared memory, added by rows; blocks share long rows, in one launch; X row-major, rearranged in the run if it is not",
    parameters: &[
        ParameterSpec {
            studied: &[Value::Count(64), Value::Count(128), Value::Count(256)],
            ..SMALL_BLOCK
        },
        COLUMNS,
        ENTRIES,
        SPLIT,
        TILE,
    ],
    ..KERNEL
};

/// Entries of a row that one group still adds alone, at most.
const LONGEST: usize = 128;
/// Entries of a row for each group of the block up to which it is one part, and those of a part of a longer one, about:
/// where the device has little else to do, and in a larger matrix, where more parts would mean more sums to wait for.
const SMALL_PARTS: (usize, usize) = (8, 4);
const PARTS: (usize, usize) = (32, 32);
/// Entries and threads for their columns, for each thread that the device runs at once, from which on the matrix is not
/// small in this sense; and from which on the tiles of a few rows cost more than a smaller first-level cache.
const LARGE: usize = 8;
const LARGER: usize = 64;
/// Entries of a tile below which it has few rows.
const SMALL_TILE: usize = 128;
/// Times that threads for four columns each of every entry must fill the device, or a thread has two.
const FULL_ROUNDS: usize = 4;

/// What blocks do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Items {
    /// First the parts of long rows: first entry and end, and which of them. Then tiles, runs of other rows: first
    /// entry and end, first row and end.
    items: Vec<[u32; 4]>,
    /// How many of them are parts.
    parts: usize,
    /// The long rows: number, first part and end of the parts.
    long_rows: Vec<[u32; 4]>,
}

impl Items {
    /// Rows of more than `longest` entries are long. One of up to `whole` entries is one part; the parts of a longer one have
    /// `part` entries, or more where there would be more parts than a part has entries. A tile has at most `tile` entries,
    /// which is `longest` or more, and as many rows.
    fn new(row_ptr: &[u32], longest: usize, (whole, part): (usize, usize), tile: usize) -> Self {
        let (mut parts, mut tiles, mut long_rows) = (vec![], vec![], vec![]);
        let rows = row_ptr.len() - 1;
        let mut first = 0;
        let mut until = |row: usize| {
            while first < row {
                let end = run_end(row_ptr, first..row, tile, tile);
                tiles.push([row_ptr[first], row_ptr[end], first as u32, end as u32]);
                first = end;
            }
            first = row + 1;
        };
        for row in row_blocks::long_rows(row_ptr, longest) {
            until(row as usize);
            let (before, long) = (parts.len(), long_rows.len() as u32);
            let count = |length: usize| match length {
                length if length <= whole => 1,
                length => length.div_ceil(part.max(length.isqrt())),
            };
            let bounds = parts_of_row(row_ptr, row, count);
            parts.extend(bounds.map(|[start, end]| [start, end, long, 0]));
            long_rows.push([row, before as u32, parts.len() as u32, 0]);
        }
        until(rows);
        let count = parts.len();
        Self { items: [parts, tiles].concat(), parts: count, long_rows }
    }
}

/// Whether so many threads for each entry fill a device that runs `resident` at once so many times.
fn fills(entries: usize, threads: usize, times: usize, resident: usize) -> bool {
    entries.saturating_mul(threads) >= resident.saturating_mul(times)
}

/// The parameter [`COLUMNS`]: where four columns for each thread would leave the device idle, a thread that has two waits
/// less.
fn columns(asked: &'static str, k: usize, entries: usize, resident: usize) -> &'static str {
    let pairs = k > 0 && k.is_multiple_of(2) && !fills(entries, k / 4, FULL_ROUNDS, resident);
    if asked == "auto" && pairs { "2" } else { asked }
}

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, dense, parameters, .. } = problem;
    let resident = device.info().resident_threads();
    let columns = columns(parameters.choice(COLUMNS.name), dense.k, a.csr.entries(), resident);
    let parameters = &parameters.clone().with(COLUMNS.name, Value::Choice(columns));
    let shape = ColumnShape::new(INFO.id, dense.k, parameters)?;
    let at_least = |times: usize| fills(a.csr.entries(), shape.lanes, times, resident);
    let block = problem.block();
    let groups = block / shape.lanes;
    let bytes = |plane: usize| {
        let plane = u32::try_from(plane).unwrap_or(u32::MAX / 64);
        csr_stream_bytes::<T>(shape.columns as u32, plane)
    };
    let at_once = STREAM_AT_ONCE as usize;
    let entries = parameters.choice(ENTRIES.name).parse().unwrap_or_else(|_| {
        // More take the first-level cache from X.
        let few_rows = at_once * groups < SMALL_TILE && shape.columns <= 2 && shape.lanes <= 8;
        if few_rows && at_least(LARGER) { 2 * at_once } else { at_once }
    });
    let (whole, part) = if at_least(LARGE) { PARTS } else { SMALL_PARTS };
    let parts_of = (groups * whole, groups * part);
    let (plane, tile) = (entries * block, entries * groups);
    let longest = parameters.choice(SPLIT.name).parse().unwrap_or(LONGEST).min(tile);
    let Items { items, parts, long_rows } = Items::new(a.host_pointers()?, longest, parts_of, tile);
    let launch = shape.launch(&problem, items.len() * groups, shape.lanes)?;
    let launch = launch.with_shared_bytes(bytes(plane));
    launch.check(INFO.id, &device.info().limits)?;
    let a = PlanCsr::new(a)?;
    let items = DeviceBuffer::from_slice(device, &items)?;
    let mut partial = DeviceBuffer::<T>::uninitialized(device, parts * dense.k)?;
    let mut arrivals = DeviceBuffer::<u32>::zeroed(device, long_rows.len() * shape.passes)?;
    let long_rows = DeviceBuffer::from_slice(device, &long_rows)?;
    let mut ordered = Ordered::new(device, a.cols(), dense, Layout::RowMajor)?;
    let of_rows = items.bytes() + long_rows.bytes() + partial.bytes() + arrivals.bytes();
    let workspace = ordered.bytes() + of_rows as u64;
    let alignment = shape.alignment::<T>();
    Ok(problem.product_aligned(alignment, a, workspace, move |a, x, y, stream| {
        let x = ordered.load(x, stream)?;
        macro_rules! launch {
            ($kernel:ident) => {{
                let args = $kernel {
                    rows: a.rows() as u32,
                    entries: a.entries() as u32,
                    k: dense.k as u32,
                    lanes: shape.lanes as u32,
                    plane: plane as u32,
                    parts: parts as u32,
                    items: items.ptr(),
                    long_rows: long_rows.ptr(),
                    partial: partial.ptr_mut(),
                    arrivals: arrivals.ptr_mut(),
                    row_ptr: a.row_ptr(),
                    col_ind: a.col_ind(),
                    values: a.values(),
                    x,
                    y: y.output(),
                    y_strides: strides(a.rows(), dense),
                };
                // SAFETY: verified CSR arrays, X row-major and Y of their shape and k > 0 columns, even for more than
                // one column for each thread; items of the matrix, with room for the products of each tile, k sums of
                // each part, and a counter for each long row and pass, which is 0 between launches.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match shape.columns {
            1 => launch!(CsrStream1),
            2 => launch!(CsrStream2),
            _ => launch!(CsrStream4),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_runs_of_whole_rows_between_long_ones() {
        let row_ptr = [0, 2, 4, 5, 9, 9, 19, 20];
        let Items { items, parts, long_rows } = Items::new(&row_ptr, 4, (4, 4), 4);
        let expected = [
            // Ten entries in parts of up to four.
            [9, 12, 0, 0],
            [12, 15, 0, 0],
            [15, 19, 0, 0],
            [0, 4, 0, 2],
            [4, 5, 2, 3],
            [5, 9, 3, 5],
            [19, 20, 6, 7],
        ];
        assert_eq!((items.as_slice(), parts), (&expected[..], 3));
        assert_eq!(long_rows, [[5, 0, 3, 0]]);
    }

    #[test]
    fn no_more_parts_than_a_part_has_entries() {
        let Items { parts, long_rows, .. } = Items::new(&[0, 10_000, 10_008], 4, (4, 4), 4);
        assert_eq!((parts, long_rows), (102, vec![[0, 0, 100, 0], [1, 100, 102, 0]]));
    }

    #[test]
    fn threads_have_two_columns_until_four_fill_the_device() {
        let of = |k: usize, entries: usize| columns("auto", k, entries, 1000);
        assert_eq!(
            [of(32, 499), of(32, 500), of(64, 249), of(64, 250)],
            ["2", "auto", "2", "auto"]
        );
        assert_eq!([of(0, 10), of(33, 10), of(2, 10)], ["auto", "auto", "2"]);
        assert_eq!(columns("4", 32, 10, 1000), "4");
    }

    #[test]
    fn rows_that_are_not_very_long_are_one_part() {
        let Items { parts, long_rows, .. } = Items::new(&[0, 8, 17], 4, (8, 4), 4);
        assert_eq!((parts, long_rows), (4, vec![[0, 0, 1, 0], [1, 1, 4, 0]]));
    }

    #[test]
    fn empty_rows_are_shared_out() {
        let expected = [[0, 0, 0, 4], [0, 0, 4, 7]];
        assert_eq!(Items::new(&[0; 8], 4, (4, 4), 4).items, expected);
        assert_eq!(Items::new(&[0], 4, (4, 4), 4), Items::default());
    }
}

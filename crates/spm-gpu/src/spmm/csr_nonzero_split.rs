//! Plan of `gpu-kernels/src/spmm/csr_nonzero_split.rs`.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Value};
use spm_formats::{DenseShape, Layout};
use spm_gpu_kernels::spmm::{CsrNonzeroSplit1, CsrNonzeroSplit2, CsrNonzeroSplit4};

use super::KERNEL;
use super::columns::{COLUMNS, ColumnShape, SMALL_BLOCK, TILE};
use super::long_rows::{LongRows, Parts, SPLIT, busy_threads, longest};
use super::rearrange::Ordered;
use super::row_blocks::run_end;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::matrix::PlanCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceReal, DeviceScalar};
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::stream::Stream;

const ENTRIES: ParameterSpec = ParameterSpec {
    name: "entries",
    meaning: "entries of a group of rows, about",
    default: Value::Choice("auto"),
    studied: &[
        Value::Choice("auto"),
        Value::Choice("16"),
        Value::Choice("32"),
        Value::Choice("64"),
        Value::Choice("128"),
    ],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-nonzero-split",
    source: "own",
    summary: "CSR by nonzero split: threads across the columns of X in vector loads, groups of rows with about the same number of entries, long rows split; X and Y row-major, rearranged in the run if they are not",
    parameters: &[SMALL_BLOCK, COLUMNS, ENTRIES, SPLIT, TILE],
    ..KERNEL
};

/// Of a complex matrix, with one column of X for each thread.
pub(super) const COMPLEX: KernelInfo =
    KernelInfo { parameters: &[SMALL_BLOCK, ENTRIES, SPLIT, TILE], ..INFO };

/// Maximum rows of an item, for runs of empty rows.
const MOST_ROWS: usize = 64;

/// The items of the kernel: first entry and end, first row and end. First the parts of long rows,
/// in the rows behind those of the matrix; then runs of rows with no more than `entries` entries
/// together, or one row.
fn items(row_ptr: &[u32], parts: &Parts, entries: usize) -> Vec<[u32; 4]> {
    let rows = row_ptr.len() - 1;
    let part = |(i, &[start, end]): (usize, &[u32; 2])| {
        [start, end, (rows + i) as u32, (rows + i + 1) as u32]
    };
    let mut items: Vec<_> = parts.bounds.iter().enumerate().map(part).collect();
    let mut first = 0;
    for row in parts.rows.iter().map(|&row| row as usize).chain([rows]) {
        while first < row {
            let end = run_end(row_ptr, first..row, entries, MOST_ROWS);
            items.push([row_ptr[first], row_ptr[end], first as u32, end as u32]);
            first = end;
        }
        // Nothing of a long row is left to do.
        first = row + 1;
    }
    items
}

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    product(problem, |columns, args, launch, stream| {
        macro_rules! launch {
            ($kernel:ident) => {{
                let args = $kernel {
                    rows: args.rows,
                    entries: args.entries,
                    k: args.k,
                    lanes: args.lanes,
                    item_count: args.item_count,
                    items: args.items,
                    row_ptr: args.row_ptr,
                    col_ind: args.col_ind,
                    values: args.values,
                    x: args.x,
                    partial: args.partial,
                    y: args.y,
                };
                // SAFETY: the arguments of `product`, which are those of all three; k is even.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match columns {
            1 => launch!(CsrNonzeroSplit1),
            2 => launch!(CsrNonzeroSplit2),
            _ => launch!(CsrNonzeroSplit4),
        }
    })
}

/// The plan for [`COMPLEX`].
pub(super) fn complex<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    product(problem, |_, args, launch, stream| {
        // SAFETY: the arguments of `product`.
        unsafe { stream.device().launch::<CsrNonzeroSplit1<T>>(launch, stream, args) }
    })
}

/// The plan whose kernel `enqueue` launches, given the columns for each thread and the arguments.
fn product<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
    enqueue: impl Fn(usize, CsrNonzeroSplit1<T>, Launch, &Stream) -> Result<(), GpuError>
    + Send
    + 'static,
) -> Planned<T> {
    let Problem { device, a, dense, parameters, .. } = problem;
    let shape = ColumnShape::new(INFO.id, dense.k, parameters)?;
    let longest = longest(a, shape.lanes, parameters);
    let parts = Parts::of(a, longest)?;
    let (row_ptr, busy) = (a.host_pointers()?, busy_threads(device));
    let a = PlanCsr::new(a)?;
    if u32::try_from(a.rows() + parts.bounds.len()).is_err() {
        let reason = format!("{} rows and {} parts of rows", a.rows(), parts.bounds.len());
        return Err(problem.unsupported(reason));
    }
    let entries = parameters.choice(ENTRIES.name).parse().unwrap_or_else(|_| {
        // Twice as many groups as run at once, at least.
        (a.entries() * shape.lanes / (2 * busy)).clamp(16, 64)
    });
    let items = items(row_ptr, &parts, entries);
    let launch = shape.launch(&problem, items.len(), shape.lanes)?;
    let items = DeviceBuffer::from_slice(device, &items)?;
    let mut long = LongRows::new(device, &parts, dense.k)?;
    let mut ordered = Ordered::new(device, a.cols(), dense, Layout::RowMajor)?;
    let mut ordered_y = Ordered::new(device, a.rows(), dense, Layout::RowMajor)?;
    let workspace = ordered.bytes() + ordered_y.bytes() + items.bytes() as u64 + long.bytes();
    let row_major = DenseShape { layout: Layout::RowMajor, ..dense };
    let alignment = shape.alignment::<T>();
    Ok(problem.product_aligned(alignment, a, workspace, move |a, x, y, stream| {
        let x = ordered.load(x, stream)?;
        let mut row_major_y = ordered_y.target(y);
        // Verified CSR arrays, X and Y row-major of their shape and k > 0 columns, even for more than
        // one column for each thread; items of the matrix, with room for k sums of each part.
        let args = CsrNonzeroSplit1 {
            rows: a.rows() as u32,
            entries: a.entries() as u32,
            k: dense.k as u32,
            lanes: shape.lanes as u32,
            item_count: items.len() as u32,
            items: items.ptr(),
            row_ptr: a.row_ptr(),
            col_ind: a.col_ind(),
            values: a.values(),
            x,
            partial: long.sums(),
            y: row_major_y.output(),
        };
        enqueue(shape.columns, args, launch, stream)?;
        long.enqueue(row_major, a.rows(), &mut row_major_y, stream)?;
        ordered_y.store(y, stream)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(row_ptr: &[u32], longest: usize, entries: usize) -> Vec<[u32; 4]> {
        items(row_ptr, &Parts::new(row_ptr, longest), entries)
    }

    #[test]
    fn rows_are_gathered_until_the_group_is_full() {
        let row_ptr = [0, 2, 4, 5, 9, 9, 10];
        let expected = [[0, 4, 0, 2], [4, 5, 2, 3], [5, 9, 3, 5], [9, 10, 5, 6]];
        assert_eq!(of(&row_ptr, 9, 4), expected);
    }

    #[test]
    fn a_long_row_is_parts_behind_the_matrix() {
        let expected = [[1, 4, 3, 4], [4, 7, 4, 5], [0, 1, 0, 1], [7, 8, 2, 3]];
        assert_eq!(of(&[0, 1, 7, 8], 4, 8), expected);
    }

    #[test]
    fn a_row_without_company_is_an_item() {
        assert_eq!(of(&[0, 7, 8], 9, 4), [[0, 7, 0, 1], [7, 8, 1, 2]]);
        assert_eq!(of(&[0], 9, 4), [[0_u32; 4]; 0]);
    }

    #[test]
    fn empty_rows_are_shared_out() {
        let row_ptr = vec![0; MOST_ROWS + 3];
        let last = (MOST_ROWS + 2) as u32;
        let expected = [[0, 0, 0, MOST_ROWS as u32], [0, 0, MOST_ROWS as u32, last]];
        assert_eq!(of(&row_ptr, 9, 4), expected);
    }
}

//! Plan of `radix`: radix sort into buckets of columns, each then sorted in shared memory.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};

use super::KERNEL;
use super::buckets::{ColumnSort, Entries};
use super::cut::{Cut, Wish};
use super::parameters::{CHUNKS, block};
use crate::device::Device;
use crate::error::GpuError;
use crate::matrix::DeviceCsr;
use crate::plan::{DeviceCsc, DeviceReal};
use crate::procedure::{Planned, Procedure, boxed};
use crate::stream::Stream;

const BLOCK: ParameterSpec = ParameterSpec {
    name: "block",
    meaning: "threads of a block, a multiple of 32; it sorts up to 12 entries for each of them",
    default: Value::Count(512),
    studied: &[Value::Count(256), Value::Count(512), Value::Count(1024)],
};

const WIDTH: ParameterSpec = ParameterSpec {
    name: "width",
    meaning: "columns of a bucket; 0 fills the block",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(16), Value::Count(2048)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "radix",
    source: "own",
    summary: "radix sort of entries into column buckets, each then sorted in shared memory",
    parameters: &[BLOCK, WIDTH, CHUNKS],
    ..KERNEL
};

/// Buckets of a chunk up to which blocks of 256 threads were fastest, and from which blocks of 1024
/// were (docs/tuning-log-gpu-transpose.md).
const FEW_DIGITS: usize = 256;
const MANY_DIGITS: usize = 1024;
const SMALL_BLOCK: usize = 128;
const MEDIUM_BLOCK: usize = 512;

/// A matrix and the sort of its entries.
pub(super) struct Sorted<T> {
    a: DeviceCsr<T>,
    /// `None` for a matrix without entries.
    sort: Option<ColumnSort<T>>,
}

impl<T: DeviceReal> Sorted<T> {
    pub(super) fn new(id: &'static str, a: DeviceCsr<T>, wish: &Wish) -> Result<Self, PlanError> {
        let sort = if a.entries() == 0 {
            None
        } else {
            let sizes = (a.rows(), a.cols());
            Some(ColumnSort::new(id, a.device(), sizes, &entries(&a), wish)?)
        };
        Ok(Self { a, sort })
    }

    /// The division into chunks and buckets; `None` for a matrix without entries.
    pub(super) fn cut(&self) -> Option<&Cut> {
        self.sort.as_ref().map(ColumnSort::cut)
    }

    /// A plan with a block size that suits the matrix instead of the requested one.
    pub(super) fn fitted(
        id: &'static str,
        a: DeviceCsr<T>,
        wish: &Wish,
    ) -> Result<Self, PlanError> {
        let sort = match a.entries() {
            0 => None,
            _ => Some(fitted_sort(id, a.device(), (a.rows(), a.cols()), &entries(&a), wish)?),
        };
        Ok(Self { a, sort })
    }
}

/// A sort with a block size that suits the matrix of `sizes` (rows, columns) with these `entries`,
/// instead of the requested one.
pub(super) fn fitted_sort<T: DeviceReal>(
    id: &'static str,
    device: &Device,
    sizes: (usize, usize),
    entries: &Entries<'_, T>,
    wish: &Wish,
) -> Result<ColumnSort<T>, PlanError> {
    // One and a half entries for each thread that the device runs at once: up to then blocks of 128
    // threads were fastest.
    let small = 2 * entries.length() <= 3 * device.info().resident_threads();
    let new = |block| ColumnSort::new(id, device, sizes, entries, &Wish { block, ..*wish });
    let sort = new(if small { SMALL_BLOCK } else { MEDIUM_BLOCK })?;
    // Small blocks overlap best. A tile that goes to many buckets has to be long, for what it
    // writes to one of them to fill whole sectors.
    let block = match sort.cut().widest_digits {
        digits if !small && digits <= FEW_DIGITS => 256,
        digits if !small && digits > MANY_DIGITS => 1024,
        _ => return Ok(sort),
    };
    // The old workspace is given back first.
    drop(sort);
    new(block)
}

fn entries<T: DeviceReal>(a: &DeviceCsr<T>) -> Entries<'_, T> {
    let values = (!a.is_pattern()).then_some(&a.values);
    Entries::Csr { row_ptr: &a.row_ptr, columns: &a.col_ind, values }
}

/// The tuning parameters that the kernel's parameters give.
pub(super) fn wish(kernel: &'static str, parameters: &Parameters) -> Result<Wish, PlanError> {
    Ok(Wish {
        block: block(kernel, parameters)?,
        width: parameters.count(WIDTH.name),
        chunks: parameters.count(CHUNKS.name),
        sort_buckets: true,
    })
}

/// The default tuning parameters.
pub(super) fn default_wish() -> Wish {
    Wish { block: MEDIUM_BLOCK, width: 0, chunks: 0, sort_buckets: true }
}

pub(super) fn plan<T: DeviceReal>(a: DeviceCsr<T>, parameters: &Parameters) -> Planned<T> {
    Ok(boxed(Sorted::new(INFO.id, a, &wish(INFO.id, parameters)?)?))
}

impl<T: DeviceReal> Procedure<T> for Sorted<T> {
    fn matrix(&self) -> &DeviceCsr<T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        self.sort.as_ref().map_or(0, ColumnSort::workspace_bytes)
    }

    fn enqueue(&mut self, output: &mut DeviceCsc<T>, stream: &Stream) -> Result<(), GpuError> {
        match &mut self.sort {
            Some(sort) => sort.enqueue(&entries(&self.a), output, stream),
            None => output.col_ptr.enqueue_zero(stream),
        }
    }
}

//! X in the order that a kernel wants.

use spm_formats::{DenseShape, Layout};
use spm_gpu_kernels::device::DevicePtr;
use spm_gpu_kernels::spmm::{Rearrange, Strides, TILE_COLUMNS, TILE_ROWS, rearrange_bytes};

use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::stream::Stream;

/// Threads of a block of the copying kernel.
const BLOCK: u32 = 256;

/// The strides of a matrix of `rows` rows in this shape.
pub(super) fn strides(rows: usize, dense: DenseShape) -> Strides {
    match dense.layout {
        Layout::RowMajor => Strides { row: dense.k as u64, column: 1 },
        Layout::ColumnMajor => Strides { row: 1, column: rows as u64 },
    }
}

/// A copy of X in another order, made in each run; none where X has the order already.
pub(super) struct OrderedX<T> {
    rows: usize,
    dense: DenseShape,
    copy: Option<DeviceBuffer<T>>,
}

impl<T: DeviceScalar> OrderedX<T> {
    /// Room for X of `rows` rows in the order of `layout`.
    pub(super) fn new(
        device: &Device,
        rows: usize,
        dense: DenseShape,
        layout: Layout,
    ) -> Result<Self, GpuError> {
        // One column, or one row, is the same in both orders.
        let same = dense.layout == layout || dense.k <= 1 || rows <= 1;
        let copy =
            (!same).then(|| DeviceBuffer::uninitialized(device, rows * dense.k)).transpose()?;
        Ok(Self { rows, dense, copy })
    }

    /// Bytes of the copy.
    pub(super) fn bytes(&self) -> u64 {
        self.copy.as_ref().map_or(0, |copy| copy.bytes() as u64)
    }

    /// Puts the copying of `x` into the stream.
    pub(super) fn enqueue(
        &mut self,
        x: &DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<DevicePtr<T>, GpuError> {
        let Some(copy) = &mut self.copy else { return Ok(x.ptr()) };
        let (rows, k) = (self.rows as u32, self.dense.k as u32);
        let launch = Launch::new((rows.div_ceil(TILE_ROWS), k.div_ceil(TILE_COLUMNS)), BLOCK);
        let launch = launch.with_shared_bytes(rearrange_bytes::<T>());
        let args = Rearrange {
            rows,
            k,
            from_row_major: u32::from(self.dense.layout == Layout::RowMajor),
            source: x.ptr(),
            target: copy.ptr_mut(),
        };
        // SAFETY: both have rows x k elements, and the grid covers them.
        unsafe { stream.device().launch::<Rearrange<T>>(launch, stream, args)? };
        Ok(copy.ptr())
    }
}

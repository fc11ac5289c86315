//! Copies of X and Y in the layout that a kernel needs.

use spm_formats::kernel::Scaling;
use spm_formats::{DenseShape, Layout};
use spm_gpu_kernels::device::{DevicePtr, Output};
use spm_gpu_kernels::spmm::{
    Rearrange, Strides, TILE_COLUMNS, rearrange_bytes, rearrange_tile_rows,
};

use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::product::Target;
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

/// X or Y in another layout, copied in each run; without a copy if the layout is already right.
pub(super) struct Ordered<T> {
    rows: usize,
    dense: DenseShape,
    copy: Option<DeviceBuffer<T>>,
}

impl<T: DeviceScalar> Ordered<T> {
    /// A buffer for a matrix of `rows` rows in `layout`.
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

    /// Enqueues the copy from the layout `from` in the stream.
    fn copy(
        &self,
        from: Layout,
        source: DevicePtr<T>,
        target: Output<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let (rows, k) = (self.rows as u32, self.dense.k as u32);
        let tile_rows = rearrange_tile_rows(k);
        let launch = Launch::new((rows.div_ceil(tile_rows), k.div_ceil(TILE_COLUMNS)), BLOCK);
        let launch = launch.with_shared_bytes(rearrange_bytes::<T>(k));
        let from_row_major = u32::from(from == Layout::RowMajor);
        let args = Rearrange { rows, k, tile_rows, from_row_major, source, target };
        // SAFETY: all have rows x k elements, and the grid covers them.
        unsafe { stream.device().launch::<Rearrange<T>>(launch, stream, args) }
    }

    /// Enqueues the copy of `x` in the stream; returns X in the right layout.
    pub(super) fn load(
        &mut self,
        x: &DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<DevicePtr<T>, GpuError> {
        let Some(copy) = &mut self.copy else { return Ok(x.ptr()) };
        let (source, target) = (copy.ptr(), copy.ptr_mut().into());
        self.copy(self.dense.layout, x.ptr(), target, stream)?;
        Ok(source)
    }

    /// A Y in the right layout for a kernel to write: the copy, which it overwrites with A X, or `y`.
    pub(super) fn target<'a>(&'a mut self, y: &'a mut Target<'_, T>) -> Target<'a, T> {
        match &mut self.copy {
            Some(copy) => Target::new(Scaling::OVERWRITE, copy),
            None => y.reborrow(),
        }
    }

    /// Enqueues the copy of what a kernel has written to `y` in the stream, with alpha and beta.
    pub(super) fn store(&self, y: &mut Target<'_, T>, stream: &Stream) -> Result<(), GpuError> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let from = match self.dense.layout {
            Layout::RowMajor => Layout::ColumnMajor,
            Layout::ColumnMajor => Layout::RowMajor,
        };
        self.copy(from, copy.ptr(), y.output(), stream)
    }
}

//! Lossless compression of values: one value if all are equal, or single precision if exact; and new
//! values in the places of the old ones.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{Numbers, PlacedValues, Positions};
use spm_gpu_kernels::device::DevicePtr;

use super::{MatrixStats, threads};
use crate::error::GpuError;
use crate::launch::stride_over;
use crate::matrix::DeviceCsr;
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::DeviceScalar;
use crate::stream::Stream;

/// How the values of a matrix are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ValueKind<T> {
    /// At full width.
    Stored,
    /// In single precision, which holds each of them exactly.
    Single,
    /// One value that all entries have.
    Equal(T),
}

impl<T: DeviceScalar> ValueKind<T> {
    /// The smallest storage that is allowed.
    pub(crate) fn choose(stats: &MatrixStats<T>, drop_equal: bool, single: bool) -> Self {
        match stats.equal {
            Some(value) if drop_equal => Self::Equal(value),
            _ if single && stats.single => Self::Single,
            _ => Self::Stored,
        }
    }
}

/// The values of a matrix.
#[derive(Debug)]
pub(crate) enum DeviceReducedValues<T> {
    Stored(DeviceBuffer<T>),
    Single(DeviceBuffer<f32>),
    Equal(T),
}

impl<T: DeviceScalar> DeviceReducedValues<T> {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Stored(values) => values.bytes(),
            Self::Single(values) => values.bytes(),
            Self::Equal(_) => 0,
        }
    }
}

/// Where the stored elements of a format have their values in CSR.
#[derive(Debug)]
pub(crate) struct ValuePositions {
    entries: usize,
    positions: DeviceBuffer<u32>,
}

impl ValuePositions {
    /// Converts the values of `a` with `convert`, which gets values of entries and writes those of
    /// `elements` stored elements. With `keep` the values can be replaced later.
    pub(crate) fn convert<T: DeviceScalar>(
        a: &DeviceCsr<T>,
        elements: usize,
        keep: bool,
        stream: &Stream,
        convert: impl FnOnce(DevicePtr<T>, &mut DeviceBuffer<T>) -> Result<(), PlanError>,
    ) -> Result<(DeviceBuffer<T>, Option<Self>), PlanError> {
        let device = a.device();
        let mut values = DeviceBuffer::uninitialized(device, elements)?;
        if !keep {
            convert(a.values.ptr(), &mut values)?;
            return Ok((values, None));
        }
        let mut numbers = DeviceBuffer::<T>::uninitialized(device, a.entries())?;
        let args = Numbers { entries: a.entries() as u32, numbers: numbers.ptr_mut() };
        // SAFETY: a number for each entry.
        unsafe { device.launch::<Numbers<T>>(threads(device, a.entries())?, stream, args)? };
        convert(numbers.ptr(), &mut values)?;
        let mut positions = DeviceBuffer::uninitialized(device, elements)?;
        let args = Positions {
            elements: elements as u64,
            numbers: values.ptr(),
            positions: positions.ptr_mut(),
        };
        // SAFETY: as many stored elements in both arrays.
        unsafe { device.launch::<Positions<T>>(stride_over(elements), stream, args)? };
        let kept = Self { entries: a.entries(), positions };
        kept.set(&a.values, &mut values, stream)?;
        // The numbers are needed until then.
        stream.synchronize()?;
        Ok((values, Some(kept)))
    }

    /// Enqueues the values of the stored elements, from `new` ones in CSR order.
    pub(crate) fn set<T: DeviceScalar>(
        &self,
        new: &DeviceBuffer<T>,
        values: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let device = stream.device();
        check_operand(NEW_VALUES, device, new, self.entries)?;
        let elements = self.positions.len();
        let args = PlacedValues {
            elements: elements as u64,
            positions: self.positions.ptr(),
            values: new.ptr(),
            to_values: values.ptr_mut(),
        };
        // SAFETY: each position is that of an entry or of none, and there is one for each element.
        unsafe { device.launch::<PlacedValues<T>>(stride_over(elements), stream, args) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.positions.bytes()
    }
}

/// What errors call new values.
pub(crate) const NEW_VALUES: &str = "values";

/// Why a plan takes no new values.
pub(crate) const COMPRESSED: GpuError = GpuError::Values(
    "the plan has equal values once or in single precision; plan with `new_values`",
);
pub(crate) const NOT_PLANNED: GpuError =
    GpuError::Values("the plan does not know their places; plan with `new_values`");

impl<T: DeviceScalar> DeviceReducedValues<T> {
    /// Enqueues new values in the places of the old ones.
    pub(crate) fn set(
        &mut self,
        positions: Option<&ValuePositions>,
        new: &DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        match (self, positions) {
            (Self::Stored(values), Some(positions)) => positions.set(new, values, stream),
            (Self::Stored(_), None) => Err(NOT_PLANNED),
            (Self::Single(_) | Self::Equal(_), _) => Err(COMPRESSED),
        }
    }
}

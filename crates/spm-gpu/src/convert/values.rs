//! Lossless compression of values: one value if all are equal, or single precision if exact; and new
//! values in the places of the old ones.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{Numbers, PlacedValues, Positions};
use spm_gpu_kernels::device::DevicePtr;

use super::{ValueStats, threads};
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::stride_over;
use crate::matrix::DeviceCsr;
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::{DeviceReal, DeviceScalar};
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

impl<T: DeviceReal> ValueKind<T> {
    /// The smallest storage that is allowed.
    pub(crate) fn choose(stats: ValueStats<T>, drop_equal: bool, single: bool) -> Self {
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
        let numbers = entry_numbers::<T>(a.entries(), stream)?;
        convert(numbers.ptr(), &mut values)?;
        let mut kept = Self::unknown(device, a.entries(), elements)?;
        kept.find(&values, stream)?;
        kept.set(&a.values, &mut values, stream)?;
        // The numbers are needed until then.
        stream.synchronize()?;
        Ok((values, Some(kept)))
    }

    /// Room for the positions of `elements` stored elements; [`ValuePositions::find`] fills it.
    pub(crate) fn unknown(
        device: &Device,
        entries: usize,
        elements: usize,
    ) -> Result<Self, GpuError> {
        Ok(Self { entries, positions: DeviceBuffer::uninitialized(device, elements)? })
    }

    /// Enqueues the positions, from what became of [`entry_numbers`] in the place of the values.
    pub(crate) fn find<T: DeviceScalar>(
        &mut self,
        numbers: &DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let elements = self.positions.len();
        check_operand(NEW_VALUES, stream.device(), numbers, elements)?;
        let args = Positions {
            elements: elements as u64,
            numbers: numbers.ptr(),
            positions: self.positions.ptr_mut(),
        };
        // SAFETY: as many stored elements in both arrays.
        unsafe { stream.device().launch::<Positions<T>>(stride_over(elements), stream, args) }
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

/// Enqueues the numbers of `entries` entries, as bits in the place of values.
pub(crate) fn entry_numbers<T: DeviceScalar>(
    entries: usize,
    stream: &Stream,
) -> Result<DeviceBuffer<T>, PlanError> {
    let device = stream.device();
    let mut numbers = DeviceBuffer::<T>::uninitialized(device, entries)?;
    let args = Numbers { entries: entries as u32, numbers: numbers.ptr_mut() };
    // SAFETY: a number for each entry.
    unsafe { device.launch::<Numbers<T>>(threads(device, entries)?, stream, args)? };
    Ok(numbers)
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

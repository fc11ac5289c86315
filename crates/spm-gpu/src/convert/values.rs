//! Lossless compression of values: one value if all are equal, or single precision if exact.

use super::MatrixStats;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;

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

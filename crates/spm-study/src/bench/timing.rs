//! What a measurement encloses.

pub use spm_formats::timing::{Sampling, Timing, sample};

/// What the clock encloses.
///
/// It matters for kernels of a device. A CPU kernel has its operands in place and nobody to wait
/// for: its time is always that of the product alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The kernel alone, by events of the device.
    #[default]
    Kernel,
    /// Launch and synchronization, by the host's clock; operands in place.
    Launch,
    /// From a CSR matrix and x in host memory to y there, by the host's clock: conversion of the
    /// format, allocation, copies both ways, freeing.
    Call,
}

impl Scope {
    /// All three, from the narrowest to the widest.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Launch, Self::Call];

    /// Whether a row's column says this one.
    pub fn is(self, column: &str) -> bool {
        column == self.name() || (column.is_empty() && self == Self::default())
    }

    /// Name in `results.csv` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Launch => "launch",
            Self::Call => "call",
        }
    }
}

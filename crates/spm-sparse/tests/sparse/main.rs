//! A matrix and what it does, on CPU cores and on emulated devices.

mod common;
mod constructors;
#[cfg(feature = "gpu")]
mod devices;
#[cfg(feature = "gpu")]
mod errors;
#[cfg(feature = "gpu")]
mod examples;
mod products;
mod recipes;
mod scalars;
mod sharing;
mod values;
#[cfg(feature = "gpu")]
mod vectors;

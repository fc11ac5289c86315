//! The formats, their conversions and files. One program, whose tests share the cores; what counts allocations is
//! a program of its own.

#[cfg(feature = "io")]
mod cache;
#[cfg(feature = "io")]
mod common;
mod compressed;
mod conversions_by_hand;
#[cfg(feature = "io")]
mod examples;
mod limits;
#[cfg(feature = "io")]
mod matrix_market_cases;
#[cfg(feature = "io")]
mod matrix_market_collection;
#[cfg(feature = "io")]
mod matrix_market_complex;
#[cfg(feature = "io")]
mod matrix_market_files;
#[cfg(feature = "io")]
mod send_sync;

//! Every registered kernel against the reference, and what holds of devices, on the emulator; `gpu.rs` is
//! the same on a GPU.

mod auto;
mod bsr;
mod budget;
#[path = "../common/mod.rs"]
mod common;
mod complex;
mod device;
mod devices;
mod limits;
mod properties;
mod scaled;
mod spmm;
mod spmv;
mod streams;
mod transpose;
mod values;
mod vectors;

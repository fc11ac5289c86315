//! Every registered kernel against the reference, and what holds of plans. One program, whose tests share the
//! cores; those that count allocations are programs of their own.

mod bsr;
#[path = "../common/mod.rs"]
mod common;
mod direct;
mod examples;
mod limits;
mod parameters;
mod properties;
mod scaled;
mod send_sync;
mod shared;
mod shares;
mod spmm;
mod spmv;
mod sprs;
mod transpose;
mod transposed;
mod values;

//! Every registered kernel against the reference: one test body, run on the emulator always and on a
//! GPU where there is one.

mod budget;
mod cases;
mod devices;
mod limits;
mod properties;
mod spmm;
mod spmv;
mod streams;
mod transpose;

//! The study of spm: the experiments of five published reports, measured with spm's kernels.
//!
//! The crate has the catalogue of the reports' matrices and their synthetic analogues, the
//! experiments with their runner and results, the published figures, the report page, and the
//! downloads. `cargo xtask` is a command line over this crate.

pub mod analogue;
pub mod bench;
pub mod browser;
pub mod catalogue;
pub mod download;
pub mod files;
pub mod hash;
pub mod input;
mod interrupt;
pub mod kernels;
pub mod matrix;
pub mod output;
mod progress;
pub mod recipe;
pub mod report;
pub mod results;
pub mod scaling;
pub mod structure;
pub mod suite;
pub mod verify;
pub mod wide;

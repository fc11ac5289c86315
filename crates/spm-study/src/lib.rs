//! The study of spm: everything that exists because of the five reports and of measuring.
//!
//! The catalogue of their matrices and the synthetic analogues of these, the experiments with their
//! runner and results, what the reports published, the page that shows both, and the downloads.
//! `cargo xtask` is a command line over this crate.

pub mod analogue;
pub mod bench;
pub mod catalogue;
pub mod download;
pub mod files;
pub mod hash;
pub mod input;
pub mod kernels;
pub mod matrix;
pub mod output;
mod progress;
pub mod recipe;
pub mod report;
pub mod results;
pub mod structure;
pub mod suite;
pub mod verify;

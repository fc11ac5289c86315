//! SpMV, SpMM and transposition on CPU cores.
//!
//! Inspector-executor: planning converts the matrix, cuts the work and allocates; a run allocates
//! nothing.
//!
//! ```
//! use spm_cpu::{PlanOptions, spmv};
//! use spm_formats::Csr;
//!
//! // | 1 0 2 |
//! // | 0 3 0 |
//! let a = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
//! let kernel = spmv::find("csr-nnz-balanced").expect("a registered kernel");
//! let mut plan = kernel.plan(a.view(), &kernel.info.defaults(), &PlanOptions::default())?;
//! let mut y = [0.0; 2];
//! plan.run(&[1.0, 10.0, 100.0], &mut y)?;
//! assert_eq!(y, [201.0, 30.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads
//! A plan runs on the team of its [`PlanOptions`], from any thread: plans are `Send`, kernels and
//! teams `Send` and `Sync`. Plans may share a team: a run that finds it at work does all parts by
//! itself. Planning uses the current rayon pool too. There are no feature flags: vector
//! instructions are chosen at run time.

mod aligned;
mod disjoint;
mod memory;
mod options;
mod race;
mod simd;
pub mod spmm;
pub mod spmv;
mod threads;
pub mod transpose;
mod workspace;

pub use options::PlanOptions;
pub use threads::Threads;
pub use workspace::prefer_huge_pages;

/// Compiles and runs the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadmeExample;

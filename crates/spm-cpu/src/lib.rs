//! SpMV, SpMM, SpMV with the transpose, and transposition on CPU cores, for real and complex matrices.
//!
//! A plan (inspector-executor) is made once for a matrix: it converts the format, partitions the
//! work and allocates. A run of the plan allocates nothing.
//!
//! ```
//! use spm_cpu::{PlanOptions, spmv};
//! use spm_formats::Csr;
//!
//! // | 1 0 2 |
//! // | 0 3 0 |
//! let a = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
//! let kernel = spmv::find("csr-nnz-balanced").expect("a registered kernel");
//! let plan = kernel.plan(a.view(), &kernel.info.defaults(), &PlanOptions::default())?;
//! let mut y = [0.0; 2];
//! plan.run(&[1.0, 10.0, 100.0], &mut y)?;
//! assert_eq!(y, [201.0, 30.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Scalars
//! The registries of [`spmv`], [`spmm`] and [`transpose`] have the kernels of a scalar type: for complex
//! numbers those without vector instructions of their own, straight from CSR. [`transposed`],
//! [`conjugate`] and [`mixed`] are further products straight from CSR; [`elements`] has those of other
//! element types.
//!
//! # Threads
//! A plan runs on the thread pool of its [`PlanOptions`]. Plans of products, kernels and thread pools
//! are `Send` and `Sync`: any number of threads may run one plan at the same time. Plans of
//! transpositions are `Send`. Several plans may share a thread pool; a run that finds the pool busy
//! does all its work on the calling thread. Planning also uses
//! the current rayon pool. There are no feature flags: vector instructions are chosen at run time.

mod aligned;
pub mod conjugate;
mod cores;
mod counting_sort;
pub mod elements;
mod kernel;
pub mod machine;
mod memory;
pub mod mixed;
mod options;
mod plan;
mod pool;
mod race;
mod scaled;
mod simd;
pub mod spmm;
pub mod spmv;
mod symmetry;
mod threads;
pub mod transpose;
pub mod transposed;
mod values;
mod workspace;

pub use kernel::ProductKernel;
pub use options::PlanOptions;
use spm_formats::disjoint;
pub use spm_formats::huge_pages::prefer as prefer_huge_pages;
pub use threads::Threads;

/// Compiles and runs the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadmeExample;

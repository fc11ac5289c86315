//! Sparse matrix products distributed over ranks: y = A x, where the rows of A, and x and y, are divided
//! over threads of one process or over processes.
//!
//! A [`Partition`] divides rows and columns. Each rank gives its [`Rows`] to a [`DistCsr`], which finds
//! out with one exchange which elements of x the rank needs of others: its [`Halo`]. A [`DistOperator`]
//! plans the products. [`npz::read`] reads the rows of a rank from a file. [`Rows::from_triplets`],
//! [`matrix_market::read`] and [`DistCsr::transposed`] make rows of entries that other ranks have. The README of the crate has an example.
//!
//! # Collective calls
//! Functions that take a [`Communicator`], and all products, are collective: every rank calls them, in
//! the same order. A rank that returns an error, panics or makes another call ends those that wait for
//! it; errors of building are the same on every rank ([`DistError::Rank`]).
//!
//! # Reproducibility
//! A product has the same bits in each run with the same number of ranks and the same kernel. With a
//! kernel that sums each row independently of other rows they are those of one device ([`DistCsr`] says
//! why). What adds entries of other ranks (assembly, the product with the transpose, reductions) depends
//! on the number of ranks. The product with the transpose adds the sums of the ranks in their order.
//!
//! # Features
//! - `io` (on by default): [`matrix_market::read`] and [`npz::read`].
//! - `gpu`: products on NVIDIA GPUs, for ranks over any communicator (module `gpu`).
//! - `metis`: [`Permutation::from_metis`], by the C library METIS, which is compiled with the crate.
//! - `mpi`: ranks as processes over MPI, which needs an MPI library with headers (README).

mod assemble;
mod bytes;
mod cg;
mod comm;
mod error;
#[cfg(feature = "gpu")]
pub mod gpu;
mod grid;
mod halo;
mod matrix;
#[cfg(feature = "io")]
pub mod matrix_market;
#[cfg(feature = "metis")]
mod metis;
pub mod model;
#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(feature = "io")]
pub mod npz;
mod operator;
mod partition;
mod permutation;
mod rows;
pub mod threads;

pub use cg::{CgOptions, Convergence, conjugate_gradients};
pub use comm::{Channel, Communicator, Reduction, Shared, agree, largest, same_everywhere};
pub use error::{CommError, DistError, PartitionError};
pub use grid::Boxes;
pub use halo::Halo;
pub use matrix::DistCsr;
pub use operator::{DistOperator, Kernel, Options, Times};
pub use partition::Partition;
pub use permutation::Permutation;
pub use rows::Rows;

/// Compiles and runs the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadmeExample;

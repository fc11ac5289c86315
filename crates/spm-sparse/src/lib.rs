//! Sparse matrix products behind one type, the [`Operator`]: y = Ax, y = alpha Ax + beta y, the same
//! with the transpose and with many right-hand sides, on CPU cores or, with the feature `gpu`, on an
//! NVIDIA GPU.
//!
//! ```
//! use spm::Operator;
//!
//! // |  4 -1  0 |
//! // | -1  4 -1 |  in compressed rows, with indices of any integer type
//! // |  0 -1  4 |
//! let a = spm::from_csr(
//!     (3, 3),
//!     &[0, 2, 5, 7],
//!     &[0, 1, 0, 1, 2, 1, 2],
//!     &[4.0, -1.0, -1.0, 4.0, -1.0, -1.0, 4.0],
//! )?;
//! let op = Operator::new(a)?;
//! let (x, b) = ([1.0, 2.0, 3.0], [2.0, 4.0, 11.0]);
//! let (mut y, mut r) = ([0.0; 3], [0.0; 3]);
//! op.apply(&x, &mut y)?; // y = A x
//! assert_eq!(y, [2.0, 4.0, 10.0]);
//! op.residual(&b, &x, &mut r)?; // r = b - A x
//! assert_eq!(r, [0.0, 0.0, 1.0]);
//! op.apply_scaled(2.0, &x, -1.0, &mut y)?; // y = 2 A x - y
//! assert_eq!(y, [2.0, 4.0, 10.0]);
//! op.apply_transpose(&x, &mut y)?; // y = A^T x
//! assert_eq!(y, [2.0, 4.0, 10.0]);
//! # Ok::<(), spm::Error>(())
//! ```
//!
//! # Ownership and threads
//! An operator owns its matrix or shares it (`Arc<Csr<T>>`). It borrows nothing, so it can be a field of
//! a struct. It is `Send` and `Sync`, its clones share everything, and products take `&self`:
//!
//! ```
//! use std::thread;
//! use spm::Operator;
//!
//! struct Solver {
//!     op: Operator<f64>,
//! }
//!
//! let a = spm::from_triplets((2, 2), [(0_usize, 0_usize, 2.0), (1, 1, 3.0)])?;
//! let solver = Solver { op: Operator::new(a)? };
//! let op = solver.op.clone();
//! let product = thread::spawn(move || {
//!     let mut y = [0.0; 2];
//!     op.apply(&[1.0, 1.0], &mut y).map(|()| y)
//! });
//! assert_eq!(product.join().unwrap()?, [2.0, 3.0]);
//! # Ok::<(), spm::Error>(())
//! ```
//!
//! One product uses all cores by default. All operators of a process share one thread pool; its threads
//! start with the first operator that needs them. [`Builder::threads`] and [`Builder::pool`] choose
//! another number of threads or another pool. A product that finds the pool busy with the product of
//! another thread runs on its own thread, with the same bits. A product that takes less time than
//! waking another thread (a few thousand entries) always runs on the calling thread.
//!
//! # Scalars
//! An operator has elements of `f32`, `f64`, `Complex<f32>` or `Complex<f64>`; complex numbers are those of
//! `num_complex`. [`Operator::apply_conj_transpose`] is the product with the conjugate transpose. Complex
//! matrices are multiplied straight from CSR on CPU cores: the formats with vector instructions are for real
//! ones. On a GPU they have SELL, too.
//!
//! | type | matrix | x and y |
//! | --- | --- | --- |
//! | [`Operator<T>`](Operator) | one of the four scalars | the same |
//! | [`MixedOperator<f32, f64>`](MixedOperator) | single precision, real or complex | double precision |
//! | [`ElementOperator<T>`](ElementOperator) | any type with [`Element`]: integers, finite fields | the same |
//!
//! # Matrices
//! [`Operator::new`] takes everything that implements [`IntoCsr`]:
//!
//! | matrix | what is copied or converted |
//! | --- | --- |
//! | [`Csr`] | nothing: moved |
//! | `Arc<Csr<T>>` | nothing: shared |
//! | [`CsrView`] | all arrays |
//! | [`Csc`], [`CscView`] | the entries are regrouped by row |
//! | [`Coo`] | the entries are sorted, equal positions summed |
//! | `sprs::CsMatI<T, u32>` by value | nothing: moved |
//! | `sprs::CsMat<T>` and other index types, by value | indices become `u32`, values are moved |
//! | `sprs` views and references | all arrays |
//! | `sprs` in column storage | as above, then regrouped by row |
//! | `sprs::TriMatI` | the triplets are sorted, equal positions summed |
//! | [`from_csr`], [`from_csc`]: slices of u16 to u64, usize, i16 to i64, isize | all arrays; unsorted rows are sorted, equal positions summed |
//! | [`from_triplets`]: an iterator of (row, column, value) | the triplets are sorted, equal positions summed |
//! | `faer::sparse::SparseRowMat`, `SparseRowMatRef` (feature `faer`) | indices become `u32`, values are copied |
//! | `faer::sparse::SparseColMat`, `SparseColMatRef` (feature `faer`) | as above, then regrouped by row |
//! | `nalgebra_sparse::CsrMatrix` (feature `nalgebra`) | indices become `u32`; values are moved from a matrix, copied from a reference |
//! | `nalgebra_sparse::CscMatrix`, `CooMatrix` (feature `nalgebra`) | as above, then regrouped or sorted by row |
//! | `read` of a Matrix Market file (feature `io`) | |
//!
//! Every way costs O(entries) time, sorting aside. All structures are checked. Up to 2^32 - 2 rows and
//! columns and 2^32 - 1 entries are accepted. More are [`Error::TooLarge`]: the crate `spm-dist`
//! distributes such a matrix over several operators.
//!
//! # Planning
//! A model of the machine predicts the time of a product and of a conversion for each kernel, from the
//! structure of the matrix (estimated from some of its rows) and from the rates of the machine: memory
//! bandwidth and random accesses by working set, the start of the thread pool, and what the kernels cost
//! in cache. The rates are measured in less than half a second, by three processes at most, and kept in a file
//! ([`Builder::rates_file`]).
//!
//! | the builder's call | choice | when |
//! | --- | --- | --- |
//! | none | straight from the CSR arrays; converted as soon as a conversion pays in as many products as there have been | after 8, 16, 32, ... products |
//! | [`expected_products(1)`](Builder::expected_products) | straight from the CSR arrays, on all threads; the model is not asked | at once |
//! | [`expected_products(n)`](Builder::expected_products) | the least predicted time of planning and n products: straight from CSR, a conversion (from 200 products on checked by the clock), or a race of kernels by the clock | in [`Builder::build`] |
//! | [`deterministic`](Builder::deterministic) | the same for n products (100 by default), without the clock | in [`Builder::build`] |
//! | [`recipe`](Builder::recipe) | the kernel of the recipe | in [`Builder::build`] |
//!
//! [`Operator::describe`] says what was chosen and why. [`Operator::recipe`] is the choice as text, for
//! another process or another matrix with the same structure.
//!
//! # GPUs
//! With the feature `gpu` `Builder::device` chooses where the products run: `Device::auto()` is the first
//! GPU, or CPU cores where there is none, `Device::cpu()`, `Device::gpu(ordinal)`. One program runs with and
//! without a GPU: the driver is opened at run time. All products of the operator run on the GPU, from any
//! threads.
//!
//! A product with slices copies x to the GPU and y back. `Operator::vector_from` and
//! `Operator::vector_zeros` make a `Vector` where the operator runs, in device memory or in host memory. It
//! has the operations of a solver (`axpy`, `dot`, ...), so that a solver written with `Operator::apply_vector`
//! copies nothing on either device; the example `jacobi_cg` is one. `Operator::apply_in_stream` takes
//! arrays and a stream of the program's own.
//!
//! | | on CPU cores | on a GPU |
//! | --- | --- | --- |
//! | planning | the model of the machine, and the clock | straight from CSR for fewer than 20 expected products, else the fastest of the kernels that suit the structure |
//! | [`deterministic`](Builder::deterministic) | by the model | by the lengths of the rows |
//! | y = A^T x | from CSR, later from a transposed copy | from a transposed copy, made on the GPU at the first product |
//! | several threads at once | one product on the pool, the others each on its own thread | each product in a stream of its own |
//!
//! `cust`, over which the GPU is driven, needs a CUDA toolkit or one line of configuration to build; the
//! README of `spm-gpu` has the line.
//!
//! # Features
//! - `gpu`: products and vectors on NVIDIA GPUs (see above).
//! - `io` (on by default): `read` and `write` for Matrix Market files.
//! - `faer`: matrices of faer, and its traits `LinOp`, `BiLinOp`, `Precond` and `BiPrecond` for
//!   [`Operator`], so that its conjugate gradients, BiCGSTAB and LSMR run on the operator's products.
//! - `nalgebra`: matrices of nalgebra-sparse. Slices of its vectors (`as_slice`) are x and y.
//! - `ndarray`: `Operator::apply_array1` and `Operator::apply_array2` for arrays of ndarray.
//! - `serde`: `Serialize` and `Deserialize` for [`Recipe`].
//!
//! Without features the crate needs `spm-cpu` and `spm-formats`, and through these `rayon`, `sprs`,
//! `num-complex` and, on Linux, `libc`, with what they need.
//!
//! # Errors
//! All errors are one enum, [`Error`]; its `source` is the error of the crate below. Arguments of wrong
//! sizes are errors, not panics.

mod builder;
mod cpu;
mod dense;
mod describe;
#[cfg(feature = "gpu")]
mod device;
mod elements;
mod engine;
mod error;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(feature = "gpu")]
mod in_stream;
mod interop;
#[cfg(feature = "io")]
mod io;
mod many;
mod matrix;
mod mixed;
mod operator;
mod planning;
mod pools;
mod recipe;
mod transposed;
#[cfg(feature = "gpu")]
mod vector;

pub use builder::Builder;
pub use dense::{DenseMut, DenseRef};
pub use describe::{Description, Reason};
#[cfg(feature = "gpu")]
pub use device::Device;
pub use elements::ElementOperator;
pub use error::Error;
#[cfg(feature = "gpu")]
pub use gpu::Form;
#[cfg(feature = "io")]
pub use io::{read, write};
pub use matrix::{IntoCsr, from_csc, from_csr, from_triplets};
pub use mixed::MixedOperator;
pub use operator::Operator;
pub use recipe::{ParseRecipeError, Recipe};
pub use spm_cpu::Threads;
pub use spm_cpu::elements::Element;
pub use spm_cpu::machine::{Rates, RatesFile};
#[cfg(feature = "io")]
pub use spm_formats::matrix_market;
pub use spm_formats::{
    Complex, Coo, Csc, CscView, Csr, CsrView, DenseShape, Layout, RealScalar, Scalar, WidensTo,
    num_complex, sprs,
};
#[cfg(feature = "gpu")]
pub use spm_gpu::{self, DeviceScalar, DeviceVector, GpuError};
#[cfg(feature = "gpu")]
pub use vector::Vector;

/// Compiles and runs the examples of the crate's README.
#[cfg(all(doctest, feature = "gpu", feature = "io"))]
#[doc = include_str!("../README.md")]
struct CrateReadmeExample;

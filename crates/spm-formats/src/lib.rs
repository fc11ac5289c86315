//! Sparse matrix formats: COO, CSR, CSC, ELLPACK, HLL, SELL-C-sigma and BSR, conversions between them, row
//! partitions, statistics, and Matrix Market files.
//!
//! ```
//! # #[cfg(feature = "io")] {
//! use spm_formats::matrix_market::{self, ReadOptions};
//! use spm_formats::stats::MatrixStats;
//! use spm_formats::{MemoryBudget, convert};
//!
//! // A file is read with `matrix_market::read(path, ...)`; this one is here already.
//! let text = b"%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 1\n1 3 2\n2 2 3\n";
//! let coo = matrix_market::read_bytes::<f64>("small.mtx", text, &ReadOptions::default())?.coo;
//! let csr = convert::coo_to_csr(&coo);
//! assert_eq!((csr.rows(), csr.cols(), csr.nnz()), (2, 3, 3));
//!
//! // Another format, within a memory budget, and back.
//! let hll = convert::csr_to_hll(csr.view(), 2, &MemoryBudget::default())?;
//! assert_eq!(hll.stored_elements(), 4);
//! assert_eq!(convert::hll_to_csr(&hll), csr);
//! assert_eq!(MatrixStats::of(csr.view()).row_lengths.max, 2);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads
//! Every type is `Send` and `Sync`; so are the plans of products, which many threads may run at once.
//! Plans of transpositions are `Send`. Parallel functions run on the
//! current rayon pool.
//!
//! # Dependencies in the interface
//! The interface uses types of two other crates, which are re-exported: the matrices of [`sprs`] convert
//! to [`Csr`] and [`Csc`] and back, and complex numbers are those of [`num_complex`].
//!
//! # Features
//! - `io` (on by default): Matrix Market files, the binary cache beside them, and files that are replaced
//!   whole. Without it the crate needs neither zip, tar and gzip nor a parser.
//! - `serde`: `Serialize` and `Deserialize` for the statistics.
//!
//! `docs/formats.md` of the repository draws every format.

mod bsr;
mod budget;
#[cfg(feature = "io")]
pub mod cache;
mod check;
pub mod convert;
mod coo;
mod csc;
pub mod csr;
#[doc(hidden)]
pub mod disjoint;
mod ell;
mod error;
mod hll;
#[doc(hidden)]
pub mod huge_pages;
mod indices;
mod interop;
pub mod kernel;
#[cfg(feature = "io")]
pub mod matrix_market;
mod padding;
#[doc(hidden)]
pub mod parallel;
pub mod partition;
#[cfg(feature = "io")]
mod replace;
mod scalar;
mod sell;
mod shared_slice;
mod source;
pub mod stats;
pub mod timing;

pub use bsr::Bsr;
pub use budget::MemoryBudget;
pub use coo::Coo;
pub use csc::{Csc, CscView};
pub use csr::{Csr, CsrView};
pub use ell::{Ell, Layout, UnpaddedEll, UnpaddedRow};
pub use error::FormatError;
pub use hll::Hll;
pub use kernel::DenseShape;
pub use num_complex;
pub use num_complex::Complex;
#[cfg(feature = "io")]
pub use replace::replace_file;
pub use scalar::{ByField, RealScalar, Scalar, WidensTo};
pub use sell::Sell;
pub use shared_slice::SharedSlice;
pub use source::{CsrSource, NewValues, Replacement, Together};
pub use sprs;

/// Readers and conversions for both types, compiled into this crate: without optimisation, or with
/// little, the compiler shares generic code, and programs and tests do not compile them once more.
#[cfg(all(feature = "io", debug_assertions, not(any(test, fuzzing))))]
mod shared {
    use std::path::Path;

    use crate::convert::{self, ConversionKernel};
    use crate::matrix_market::{self, MatrixFile, MatrixMarketError, ReadOptions};

    type Shared<T> = (
        fn() -> Vec<ConversionKernel<T>>,
        fn(&'static Path, &ReadOptions) -> Result<MatrixFile<T>, MatrixMarketError>,
        fn(&str, &[u8], &ReadOptions) -> Result<MatrixFile<T>, MatrixMarketError>,
    );

    #[used]
    static SINGLE: Shared<f32> =
        (convert::registry, matrix_market::read, matrix_market::read_bytes);
    #[used]
    static DOUBLE: Shared<f64> =
        (convert::registry, matrix_market::read, matrix_market::read_bytes);
}

/// Compiles the example of the crate's README.
#[cfg(all(doctest, feature = "io"))]
#[doc = include_str!("../README.md")]
struct CrateReadmeExample;

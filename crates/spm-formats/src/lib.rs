//! What a sparse matrix is: formats, conversions, Matrix Market, generators, statistics, and the
//! oracle that every kernel of spm is checked against.

mod budget;
pub mod cache;
pub mod catalogue;
pub mod convert;
mod coo;
pub mod csr;
mod ell;
mod error;
pub mod generate;
mod hll;
mod huge_pages;
pub mod kernel;
pub mod matrix_market;
mod padding;
pub mod partition;
pub mod reference;
mod replace;
mod scalar;
mod sell;
pub mod stats;

pub use budget::MemoryBudget;
pub use coo::Coo;
pub use csr::{Csc, CscView, Csr, CsrArrays, CsrView};
pub use ell::{Ell, Layout, UnpaddedEll, UnpaddedRow};
pub use error::FormatError;
pub use hll::Hll;
pub use kernel::DenseShape;
pub use replace::replace_file;
pub use scalar::Scalar;
pub use sell::Sell;
pub use sprs;

//! The errors of the crate.

use std::error;
use std::fmt;

use spm_formats::FormatError;
use spm_formats::kernel::{PlanError, RunError};
#[cfg(feature = "io")]
use spm_formats::matrix_market::MatrixMarketError;

use crate::ParseRecipeError;
#[cfg(feature = "gpu")]
use spm_gpu::GpuError;

/// Why an operator was not made or a product was not computed.
///
/// [`source`](error::Error::source) is the error of the crate below, where there is one.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A vector, a dense matrix or an array of values has the wrong number of elements, or a
    /// leading dimension is too small.
    Shape {
        /// What has the wrong size: `"x"`, `"y"`, `"columns of X"`, `"values"`, ...
        what: &'static str,
        /// The size that the operator needs.
        expected: usize,
        /// The size given.
        found: usize,
    },
    /// The matrix has more rows, columns or entries than one operator can number. The crate
    /// `spm-dist` distributes such a matrix over several operators.
    TooLarge(FormatError),
    /// The matrix is not valid: an index outside, arrays of different lengths, ...
    Matrix(FormatError),
    /// The new matrix of [`Operator::set_matrix`](crate::Operator::set_matrix) has its entries at
    /// other places.
    Pattern,
    /// A recipe names a kernel or a parameter that this version does not have.
    Recipe(ParseRecipeError),
    /// The kernel of a recipe does not apply to this matrix, or a plan takes more memory than the
    /// budget.
    Plan(PlanError),
    /// A kernel failed.
    Run(RunError),
    /// There is no such GPU, or it failed, or has too little memory.
    #[cfg(feature = "gpu")]
    Gpu(GpuError),
    /// A [`Vector`](crate::Vector) is in host memory and the other operand, or the operator, on a GPU, or
    /// the other way round.
    #[cfg(feature = "gpu")]
    Place {
        /// `"x"`, `"y"`, ...
        what: &'static str,
    },
    /// A file could not be read or written.
    #[cfg(feature = "io")]
    File(MatrixMarketError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { what, expected, found } => {
                write!(f, "{what}: expected {expected}, found {found}")
            }
            Self::TooLarge(_) => f.write_str(
                "the matrix is too large for one operator; the crate spm-dist distributes it over \
                 several",
            ),
            Self::Matrix(_) => f.write_str("the matrix is not valid"),
            Self::Pattern => f.write_str("the new matrix has its entries at other places"),
            Self::Recipe(_) => f.write_str("the recipe is not one of this version"),
            Self::Plan(_) => f.write_str("the product cannot be planned"),
            Self::Run(_) => f.write_str("the product failed"),
            #[cfg(feature = "gpu")]
            Self::Gpu(_) => f.write_str("the GPU cannot be used"),
            #[cfg(feature = "gpu")]
            Self::Place { what } => write!(
                f,
                "{what} is in host memory and what it is used with on a GPU, or the other way round"
            ),
            #[cfg(feature = "io")]
            Self::File(_) => f.write_str("the file cannot be read or written"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Shape { .. } | Self::Pattern => None,
            #[cfg(feature = "gpu")]
            Self::Place { .. } => None,
            #[cfg(feature = "gpu")]
            Self::Gpu(cause) => Some(cause),
            Self::TooLarge(cause) | Self::Matrix(cause) => Some(cause),
            Self::Recipe(cause) => Some(cause),
            Self::Plan(cause) => Some(cause),
            Self::Run(cause) => Some(cause),
            #[cfg(feature = "io")]
            Self::File(cause) => Some(cause),
        }
    }
}

impl From<FormatError> for Error {
    fn from(cause: FormatError) -> Self {
        match cause {
            FormatError::TooLarge { .. } => Self::TooLarge(cause),
            _ => Self::Matrix(cause),
        }
    }
}

impl From<PlanError> for Error {
    fn from(cause: PlanError) -> Self {
        #[cfg(feature = "gpu")]
        if let PlanError::Device(error) = &cause
            && let Some(error) = error.downcast_ref::<GpuError>()
        {
            return error.clone().into();
        }
        Self::Plan(cause)
    }
}

#[cfg(feature = "gpu")]
impl From<GpuError> for Error {
    fn from(cause: GpuError) -> Self {
        match cause {
            GpuError::Shape { what, expected, found } => Self::Shape { what, expected, found },
            _ => Self::Gpu(cause),
        }
    }
}

impl From<RunError> for Error {
    fn from(cause: RunError) -> Self {
        match cause {
            RunError::Shape { what, expected, found } => Self::Shape { what, expected, found },
            _ => Self::Run(cause),
        }
    }
}

#[cfg(feature = "io")]
impl From<MatrixMarketError> for Error {
    fn from(cause: MatrixMarketError) -> Self {
        Self::File(cause)
    }
}

/// Checks a size.
pub(crate) fn check(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
}

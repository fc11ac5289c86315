//! Plan traits, and the errors of planning and running.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::Scaling;
use crate::{FormatError, Layout, NewValues, huge_pages};

/// Why a plan could not be made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// The matrix does not go into the format of the kernel.
    Format(FormatError),
    /// The kernel does not apply to this matrix or with these parameters; the reason says why.
    Unsupported {
        /// Kernel id.
        kernel: &'static str,
        /// The reason, with the sizes involved.
        reason: String,
    },
    /// A plan cannot take new values for its pattern; the reason says why. It keeps the old ones.
    /// Planning anew is the way.
    Values(&'static str),
    /// The device failed or has not enough memory.
    Device(DeviceError),
}

/// Why a planned product was not computed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunError {
    /// A vector or a dense matrix has the wrong number of elements.
    Shape {
        /// `"x"`, `"y"`, ...
        what: &'static str,
        /// Elements that the plan needs.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// The device failed.
    Device(DeviceError),
}

/// The error of the crate that drives a device, as it is.
///
/// Its text and its [source](Error::source) are those of that error. Two are equal if their texts are.
#[derive(Debug, Clone)]
pub struct DeviceError(Arc<dyn Error + Send + Sync>);

impl DeviceError {
    /// An error of any type, or a text.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(error.into()))
    }

    /// The error, if it is of type `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl PartialEq for DeviceError {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for DeviceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl PlanError {
    /// What a device reported: an error of any type, or a text.
    pub fn device(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Device(DeviceError::new(error))
    }
}

impl RunError {
    /// As [`PlanError::device`].
    pub fn device(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Device(DeviceError::new(error))
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => error.fmt(f),
            Self::Unsupported { kernel, reason } => write!(f, "{kernel}: {reason}"),
            Self::Values(reason) => write!(f, "new values: {reason}"),
            Self::Device(error) => error.fmt(f),
        }
    }
}

impl Error for PlanError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Device(error) => error.source(),
            _ => None,
        }
    }
}

impl From<FormatError> for PlanError {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { what, expected, found } => {
                write!(f, "{what}: expected {expected} elements, found {found}")
            }
            Self::Device(error) => error.fmt(f),
        }
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Device(error) => error.source(),
            Self::Shape { .. } => None,
        }
    }
}

/// Checks the length of an argument of a product.
///
/// # Errors
/// [`RunError::Shape`].
pub fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), RunError> {
    if expected == found { Ok(()) } else { Err(RunError::Shape { what, expected, found }) }
}

/// Minimum memory traffic per run, and the size of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// The minimum memory traffic of the format, in bytes per run: each stored array once, x once,
    /// y once. For SpMM: X and Y once.
    pub bytes_moved: u64,
    /// Memory that the plan itself holds, in bytes: converted matrix, partition and workspace,
    /// without the caller's matrix.
    pub plan_bytes: u64,
    /// Bytes of the matrix in the format that the kernel reads, owned by the plan or not.
    pub matrix_bytes: u64,
}

/// The dense operands of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DenseShape {
    /// Columns of X and Y.
    pub k: usize,
    /// Row-major: element (i, j) at `i * k + j`. Column-major: at `j * rows + i`, where `rows` is
    /// that of X (columns of A) or of Y (rows of A).
    pub layout: Layout,
}

impl DenseShape {
    /// The vectors of y = A x.
    pub const VECTOR: Self = Self { k: 1, layout: Layout::RowMajor };

    /// Checks that the numbers of elements and bytes of X and Y, for an A of `shape` = (rows,
    /// columns), do not overflow.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`](crate::FormatError::TooLarge) for 2^32 columns and more, and for
    /// more bytes than an address has.
    pub fn check<T: crate::Scalar>(self, shape: (usize, usize)) -> Result<(), crate::FormatError> {
        let elements = (shape.0 as u64).saturating_add(shape.1 as u64);
        let most = (isize::MAX as u64 / T::BYTES as u64) / elements.max(1);
        let limit = most.min(u64::from(u32::MAX));
        let size = self.k as u64;
        if size > limit {
            let what = "number of columns of X";
            return Err(crate::FormatError::TooLarge { what, size, limit });
        }
        Ok(())
    }
}

/// A planned product: Y = A X or Y = alpha A X + beta Y; for one column y = A x.
///
/// Planning converts, partitions and allocates. Any number of threads may run one plan at the same
/// time; no lock is held during a product. A workspace serves one caller at a time: planning
/// allocates the first one, and a run that finds all of them in use allocates another, which the plan
/// keeps. The first scaled run may allocate too. All other runs allocate nothing.
pub trait ProductPlan<T>: Send + Sync {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Columns and layout of X and Y; [`DenseShape::VECTOR`] for y = A x.
    fn dense(&self) -> DenseShape {
        DenseShape::VECTOR
    }

    /// Traffic and memory.
    fn footprint(&self) -> Footprint;

    /// Overwrites `y` (rows x k elements) with A `x` (columns x k elements).
    ///
    /// # Errors
    /// Wrong lengths; a device that fails.
    fn run(&self, x: &[T], y: &mut [T]) -> Result<(), RunError>;

    /// `y` = alpha A `x` + beta `y`, with the lengths of [`ProductPlan::run`].
    ///
    /// With [`Scaling::OVERWRITE`] the result has the bits of [`ProductPlan::run`].
    ///
    /// # Errors
    /// As [`ProductPlan::run`].
    fn run_scaled(&self, scaling: Scaling<T>, x: &[T], y: &mut [T]) -> Result<(), RunError>;

    /// `y` = alpha A `x` + beta `z`, with as many elements in `z` as in `y`. `y` is overwritten; with
    /// beta = 0 `z` is not read. The result has the bits that [`ProductPlan::run_scaled`] gives for a `y`
    /// that is `z`.
    ///
    /// # Errors
    /// As [`ProductPlan::run`].
    fn run_adding(
        &self,
        scaling: Scaling<T>,
        x: &[T],
        z: &[T],
        y: &mut [T],
    ) -> Result<(), RunError>;

    /// `Y` = alpha A `X` + beta `Y` for an X and a Y with gaps between their rows (row-major) or columns
    /// (column-major): `leading` elements of X and of Y from one to the next, at least as many as one
    /// has. The slices may be longer than needed. What is in the gaps is neither read nor written.
    ///
    /// `None` if the plan cannot do this without a copy, which is then the caller's.
    ///
    /// # Errors
    /// As [`ProductPlan::run`].
    fn run_leading(
        &self,
        scaling: Scaling<T>,
        x: &[T],
        y: &mut [T],
        leading: [usize; 2],
    ) -> Option<Result<(), RunError>> {
        let _ = (scaling, x, y, leading);
        None
    }

    /// Replaces the values of A, whose pattern stays. The products are then those of a new plan of the
    /// same kernel, bit by bit. A plan that reads the values in CSR order reads the new array; others
    /// copy it into their own order, on the threads of the plan.
    ///
    /// # Errors
    /// A wrong number of values; [`PlanError::Values`] where the plan depends on the old ones (equal
    /// values that are stored once, symmetry), does not keep their order, or does not share the matrix
    /// that they are written into. After an error plan and matrix have their old values.
    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let _ = new;
        Err(PlanError::Values("the plan does not keep their order"))
    }

    /// For a plan of `auto`, the label of the kernel that it has chosen; `None` for other kernels.
    fn choice(&self) -> Option<String> {
        None
    }
}

/// The output of a transposition: the CSC of A, which is the CSR of its transpose.
#[derive(Debug, Clone, PartialEq)]
pub struct TransposeOutput<T> {
    /// Columns + 1 pointers.
    pub col_ptr: Vec<u32>,
    /// Row index of each entry, ascending inside a column.
    pub row_ind: Vec<u32>,
    /// Value of each entry.
    pub values: Vec<T>,
}

impl<T: crate::Scalar> TransposeOutput<T> {
    /// Arrays for a matrix with `cols` columns and `entries` entries, which are written out of order: large ones
    /// are on huge pages where the system has them.
    pub fn new(cols: usize, entries: usize) -> Self {
        let mut output = Self {
            col_ptr: vec![0; cols.saturating_add(1)],
            row_ind: vec![0; entries],
            values: vec![T::ZERO; entries],
        };
        huge_pages::prefer(&mut output.col_ptr);
        huge_pages::prefer(&mut output.row_ind);
        huge_pages::prefer(&mut output.values);
        output
    }

    /// Checks that the arrays have the sizes for `cols` columns and `entries` entries.
    ///
    /// # Errors
    /// [`RunError::Shape`].
    pub fn check(&self, cols: usize, entries: usize) -> Result<(), RunError> {
        check_length("column pointers", cols.saturating_add(1), self.col_ptr.len())?;
        check_length("row indices", entries, self.row_ind.len())?;
        check_length("values", entries, self.values.len())
    }
}

/// A planned transposition of one CSR matrix.
pub trait TransposePlan<T>: Send {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Stored entries of A.
    fn entries(&self) -> usize;

    /// Traffic and memory.
    fn footprint(&self) -> Footprint;

    /// Overwrites all three arrays of `output`.
    ///
    /// # Errors
    /// Wrong lengths; a device that fails.
    fn run(&mut self, output: &mut TransposeOutput<T>) -> Result<(), RunError>;

    /// See [`ProductPlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

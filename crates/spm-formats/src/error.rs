//! Errors of building and converting matrices.

use std::error::Error;
use std::fmt;

/// Why a matrix could not be built or converted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// Arrays that belong together have different lengths.
    LengthMismatch {
        /// The array at fault.
        what: &'static str,
        /// The length that the other arguments imply.
        expected: usize,
        /// The length given.
        found: usize,
    },
    /// An index is outside the matrix.
    IndexOutOfBounds {
        /// Position of the entry in its array.
        entry: usize,
        /// `"row"` or `"column"`.
        axis: &'static str,
        /// The index found.
        index: u32,
        /// Number of rows or columns.
        bound: usize,
    },
    /// An index or a pointer of another type does not fit 32 bits.
    NotU32 {
        /// The array at fault.
        what: &'static str,
        /// The position in the array.
        position: usize,
        /// What stands there.
        found: String,
    },
    /// The indices of a row (CSR) or of a column (CSC) do not ascend, or one of them repeats.
    Unsorted {
        /// `"row"` or `"column"`.
        axis: &'static str,
        /// The row or column.
        line: usize,
        /// Position of the first index at fault in its array.
        entry: usize,
        /// The index before it.
        previous: u32,
        /// The index.
        index: u32,
    },
    /// A size does not fit the 32-bit indices and pointers that all formats use.
    TooLarge {
        /// `"number of rows"`, `"number of columns"`, `"number of entries"` or `"number of columns
        /// of X"`.
        what: &'static str,
        /// The size asked for.
        size: u64,
        /// The largest supported.
        limit: u64,
    },
    /// A plan or a conversion would take more memory than the caller allowed.
    OverBudget {
        /// The format or the kernel, as it is named in tables: `"ell"`, `"hll"`, `"counting"`.
        format: &'static str,
        /// Name of the matrix, from the budget.
        matrix: String,
        /// Bytes that would be allocated, what is allocated already included; saturates at
        /// `u64::MAX`.
        required: u64,
        /// Bytes allowed.
        budget: u64,
        /// Stored elements per entry, times ten.
        padding_tenths: u64,
    },
    /// A parameter of a format has no meaning (hack size 0, chunk 0, ...).
    InvalidParameter {
        /// The parameter.
        what: &'static str,
        /// What it has to be.
        expected: &'static str,
        /// What was given.
        found: usize,
    },
    /// The arrays of a format contradict one of its invariants.
    InvalidStructure {
        /// The array at fault.
        what: &'static str,
        /// The position in the array.
        position: usize,
        /// The invariant.
        expected: &'static str,
    },
    /// A compressed matrix of `sprs` has the other orientation.
    WrongStorage {
        /// `"CSR"` or `"CSC"`.
        expected: &'static str,
        /// `"CSR"` or `"CSC"`.
        found: &'static str,
    },
}

// By hand, here and in `kernel`: the derive macro would bring six crates to a product that needs none.
impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LengthMismatch { what, expected, found } => {
                write!(f, "{what}: expected length {expected}, found {found}")
            }
            Self::IndexOutOfBounds { entry, axis, index, bound } => {
                write!(f, "entry {entry}: {axis} index {index} is outside 0..{bound}")
            }
            Self::NotU32 { what, position, found } => {
                write!(f, "{what} at position {position}: {found} is outside 0..2^32")
            }
            Self::Unsorted { axis, line, entry, previous, index } => write!(
                f,
                "{axis} {line}: index {index} of entry {entry} comes after {previous}; indices \
                 must ascend without duplicates (`from_unsorted` sorts and sums)"
            ),
            Self::TooLarge { what, size, limit } => {
                write!(f, "{what} is {size}; at most {limit} fits 32-bit indices")
            }
            Self::OverBudget { format, matrix, required, budget, padding_tenths } => write!(
                f,
                "{format} of {matrix} would take {required} bytes; the memory budget is {budget} \
                 bytes (padding {:.1} times the stored entries)",
                *padding_tenths as f64 / 10.0
            ),
            Self::InvalidParameter { what, expected, found } => {
                write!(f, "{what} must be {expected}, found {found}")
            }
            Self::InvalidStructure { what, position, expected } => {
                write!(f, "{what} at position {position}: must be {expected}")
            }
            Self::WrongStorage { expected, found } => write!(
                f,
                "expected a matrix of sprs in {expected} storage, found {found}: convert it to the \
                 type for {found}, or call its `to_{}` first",
                expected.to_lowercase()
            ),
        }
    }
}

impl Error for FormatError {}

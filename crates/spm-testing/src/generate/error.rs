//! Why a matrix cannot be generated.

use spm_formats::FormatError;
use thiserror::Error;

/// Why a matrix could not be generated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A name that is not a kind.
    #[error("{name} is not a kind of generated matrix; kinds: {kinds}")]
    Unknown {
        /// The name.
        name: String,
        /// The kinds there are.
        kinds: String,
    },
    /// A label that is not `kind[name=value,...]`.
    #[error("{label}: {problem}")]
    Label {
        /// The label.
        label: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A parameter whose value makes no matrix.
    #[error("{what} {problem}")]
    Parameter {
        /// The parameter.
        what: &'static str,
        /// What is wrong with its value.
        problem: String,
    },
    /// Row lengths cannot have this sum.
    #[error("{rows} rows of {min} to {max} entries cannot hold {entries} entries")]
    Impossible {
        /// Number of rows.
        rows: usize,
        /// Number of entries.
        entries: usize,
        /// Shortest row.
        min: usize,
        /// Longest row.
        max: usize,
    },
    /// No symmetric pattern with the wanted row lengths was found.
    #[error(
        "found no symmetric pattern of {rows} rows with the wanted lengths ({entries} entries)"
    )]
    Unrealisable {
        /// Number of rows.
        rows: usize,
        /// Number of entries.
        entries: usize,
    },
    /// Sizes beyond the formats' limits.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Checks a parameter that has a largest value.
pub(super) fn at_most(what: &'static str, value: usize, limit: usize) -> Result<(), GenerateError> {
    if value <= limit {
        Ok(())
    } else {
        let problem = format!("is {value}; at most {limit} is possible");
        Err(GenerateError::Parameter { what, problem })
    }
}

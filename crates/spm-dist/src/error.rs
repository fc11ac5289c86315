//! Errors of distributed products, and of the communication below them.

use std::error::Error;
use std::fmt;

use spm_formats::FormatError;
use spm_formats::kernel::{PlanError, RunError};

/// Why a communicator did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommError {
    /// A rank has ended while this one waited for it.
    Lost {
        /// The rank.
        rank: usize,
        /// How it ended.
        reason: String,
    },
    /// A rank did not make the same collective call as this one.
    Disagreement {
        /// The rank.
        rank: usize,
        /// The two calls.
        what: String,
    },
    /// A message is longer than the transport allows.
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most bytes of a message.
        limit: usize,
    },
    /// The transport failed or could not be started.
    Transport(String),
}

impl fmt::Display for CommError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { rank, reason } => write!(f, "rank {rank} has ended: {reason}"),
            Self::Disagreement { rank, what } => write!(f, "rank {rank} disagrees: {what}"),
            Self::TooLarge { bytes, limit } => {
                write!(f, "a message of {bytes} bytes; at most {limit} are possible")
            }
            Self::Transport(reason) => f.write_str(reason),
        }
    }
}

impl Error for CommError {}

/// Why a [`Partition`](crate::Partition) is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionError {
    /// The bounds do not ascend from 0 to the number of rows or columns.
    Bounds {
        /// Position in the bounds.
        position: usize,
        /// What stands there; `None` behind the end.
        found: Option<u64>,
        /// What has to stand there.
        expected: String,
    },
    /// The partition is for another number of ranks.
    Ranks {
        /// Ranks of the communicator.
        expected: usize,
        /// Ranks of the partition.
        found: usize,
    },
    /// The partition gives a rank another number of rows or columns than there are.
    Size {
        /// `"rows"` or `"columns"`.
        what: &'static str,
        /// Those that there are.
        expected: u64,
        /// Those of the partition.
        found: u64,
    },
    /// An owner that is no rank.
    Owner {
        /// The owner.
        found: u32,
        /// Ranks of the communicator.
        ranks: usize,
    },
    /// A partitioner of graphs did not divide the rows.
    Partitioner {
        /// Its name.
        name: &'static str,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for PartitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bounds { position, found, expected } => {
                write!(f, "partition bound {position}: expected {expected}, found ")?;
                match found {
                    Some(bound) => write!(f, "{bound}"),
                    None => f.write_str("no more bounds"),
                }
            }
            Self::Ranks { expected, found } => {
                write!(f, "the partition is for {found} ranks; the communicator has {expected}")
            }
            Self::Size { what, expected, found } => {
                write!(f, "the partition covers {found} {what}; there are {expected}")
            }
            Self::Owner { found, ranks } => write!(f, "owner {found} is not one of {ranks} ranks"),
            Self::Partitioner { name, reason } => write!(f, "{name}: {reason}"),
        }
    }
}

impl Error for PartitionError {}

/// Why a distributed matrix or operator could not be made or used.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DistError {
    /// A partition that does not fit.
    Partition(PartitionError),
    /// The communication failed.
    Comm(CommError),
    /// A rank could not go on, and every rank knows: each of them has this error.
    Rank {
        /// The first rank that failed.
        rank: usize,
        /// Its error, in words.
        message: String,
        /// Its error; on that rank only.
        cause: Option<Box<DistError>>,
    },
    /// Arrays that are no valid matrix.
    Format(FormatError),
    /// A product could not be planned.
    Plan(PlanError),
    /// A product was not computed.
    Run(RunError),
    /// An entry is outside of the matrix.
    Entry {
        /// Its row and column.
        found: String,
        /// (rows, columns) of the matrix.
        shape: (u64, u64),
    },
    /// The operator was not asked to prepare this.
    Unprepared(&'static str),
    /// A file could not be read.
    File(String),
}

impl DistError {
    /// Whether every rank has the same error, so that one of them may report it for all.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Rank { .. })
    }
}

impl fmt::Display for DistError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partition(error) => error.fmt(f),
            Self::Comm(error) => error.fmt(f),
            Self::Rank { rank, message, .. } => write!(f, "rank {rank}: {message}"),
            Self::Format(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Entry { found, shape: (rows, cols) } => {
                write!(f, "entry {found} is outside of a {rows} x {cols} matrix")
            }
            Self::Unprepared(what) => f.write_str(what),
            Self::File(message) => f.write_str(message),
        }
    }
}

impl Error for DistError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Rank { cause: Some(cause), .. } => Some(&**cause),
            Self::Plan(error) => error.source(),
            Self::Run(error) => error.source(),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($variant:ident: $type:ty),+) => {$(
        impl From<$type> for DistError {
            fn from(error: $type) -> Self {
                Self::$variant(error)
            }
        }
    )+};
}

from!(Partition: PartitionError, Comm: CommError, Format: FormatError, Plan: PlanError, Run: RunError);

#[cfg(feature = "gpu")]
impl From<spm_gpu::GpuError> for DistError {
    fn from(error: spm_gpu::GpuError) -> Self {
        Self::Run(error.into())
    }
}

/// The error of an operator's product. After it some ranks have taken part in an exchange and others have
/// not, so that no further product is possible.
#[derive(Debug, Default)]
pub(crate) struct Failure(Option<DistError>);

impl Failure {
    /// Before a product.
    ///
    /// # Errors
    /// That of an earlier product.
    pub(crate) fn check(&self) -> Result<(), DistError> {
        self.0.clone().map_or(Ok(()), Err)
    }

    /// Remembers the error of a product.
    pub(crate) fn keep<R>(&mut self, result: Result<R, DistError>) -> Result<R, DistError> {
        self.0 = result.as_ref().err().cloned();
        result
    }
}

//! What an operator says of itself.

use std::fmt;
use std::time::Duration;

use crate::Recipe;

/// Why an operator multiplies as it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The matrix is so small that waking another thread takes longer than the product.
    Small,
    /// Straight from CSR for now, as nobody has said how many products there will be.
    First,
    /// The products so far made it likely that a conversion pays.
    Later {
        /// Products before the conversion.
        after: u64,
    },
    /// So few products are expected that planning would not pay: straight from CSR.
    Few {
        /// Products expected.
        expected: u64,
        /// Products from which a conversion pays by the model of the machine; nothing where none does, or
        /// the model was not asked.
        pays_from: Option<u64>,
    },
    /// The model of the machine says that a conversion for this kernel pays.
    Converted {
        /// Products expected.
        expected: u64,
    },
    /// The model of the machine says that a conversion pays, but by the clock the product straight from
    /// CSR was faster.
    Slower {
        /// Products expected.
        expected: u64,
    },
    /// So many products are expected that a race of kernels pays.
    Raced {
        /// Products expected.
        expected: u64,
    },
    /// The caller's recipe.
    Recipe,
    /// The kernel that was chosen before does not suit the values of
    /// [`Operator::set_values`](crate::Operator::set_values): straight from CSR.
    NewValues,
    /// The fastest of the kernels for a GPU that suit the structure of the matrix.
    FastestOnGpu,
    /// By the lengths of the rows, for a [deterministic](crate::Builder::deterministic) operator on a GPU.
    RowLengths,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small => f.write_str(
                "straight from CSR on the calling thread: waking another one takes longer than \
                 the product",
            ),
            Self::First => f.write_str(
                "straight from CSR until the products so far make it likely that a conversion pays",
            ),
            Self::Later { after } => write!(f, "converted after {after} products, as it would pay"),
            Self::Few { expected, pays_from } => {
                write!(f, "straight from CSR: {expected} products are expected")?;
                match pays_from {
                    Some(count) => write!(f, ", a conversion pays from about {count}"),
                    None => Ok(()),
                }
            }
            Self::Converted { expected } => {
                write!(f, "a conversion pays in {expected} products by the model of the machine")
            }
            Self::Slower { expected } => write!(
                f,
                "straight from CSR: for {expected} products a conversion was tried, and was slower"
            ),
            Self::Raced { expected } => {
                write!(f, "the fastest of a race of kernels, which pays in {expected} products")
            }
            Self::Recipe => f.write_str("by the caller's recipe"),
            Self::NewValues => {
                f.write_str("straight from CSR: the kernel before does not suit the new values")
            }
            Self::FastestOnGpu => {
                f.write_str("the fastest of the kernels for a GPU that suit the structure")
            }
            Self::RowLengths => f.write_str("straight from CSR, by the lengths of the rows"),
        }
    }
}

/// How an operator multiplies, and why: [`Operator::describe`](crate::Operator::describe).
///
/// `Display` prints a few lines of text, which may change from version to version.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// (rows, columns).
    pub shape: (usize, usize),
    /// Stored entries, explicit zeros included.
    pub nnz: usize,
    /// Element type: `"f32"`, `"f64"`, `"c32"` or `"c64"`.
    pub scalar: &'static str,
    /// `"CPU cores"`, with the reason where there was to be a GPU, or the name of the GPU.
    pub device: String,
    /// Kernel, parameters and threads.
    pub recipe: Recipe,
    /// Why this kernel.
    pub reason: Reason,
    /// Time of planning, without reading or converting the caller's matrix.
    pub planning: Duration,
    /// Time of a product with a vector by the model of the machine.
    ///
    /// On CPU cores with the rates of the machine if they are known and typical ones if not; nothing for a
    /// kernel that the model does not know.
    ///
    /// On a GPU a launch, and `bytes_per_product` at the rate of L2 if it holds so many and else at that of
    /// device memory. The rates are measured once for an opened GPU, by the first description of an operator:
    /// that takes some milliseconds and, meanwhile, device memory of four times L2, at least 64 MiB; nothing
    /// where the [budget](crate::Builder::budget) or half of the free memory is less. The time is a lower
    /// bound for a matrix whose rows gather elements of x far apart: more bytes move then than are counted,
    /// and their latency shows.
    pub expected: Option<Duration>,
    /// Time of a product by the clock, if planning or [`Operator::measure`](crate::Operator::measure) has
    /// asked it.
    pub measured: Option<Duration>,
    /// Least memory traffic of a product in bytes: the matrix in the kernel's format, x and y once
    /// each.
    pub bytes_per_product: u64,
    /// Bytes of the matrix and of everything that the operator holds, on a GPU too.
    pub memory_bytes: u64,
    /// Products with the transpose so far.
    pub transposed_products: u64,
    /// Kernel, parameters and threads of the product with the transpose, once it has a plan of its
    /// own.
    pub transposed_recipe: Option<Recipe>,
}

impl Description {
    /// What every operator knows of itself.
    pub(crate) fn new(
        shape: (usize, usize),
        nnz: usize,
        scalar: &'static str,
        memory_bytes: u64,
        recipe: Recipe,
    ) -> Self {
        Self {
            shape,
            nnz,
            scalar,
            device: String::new(),
            recipe,
            reason: Reason::First,
            planning: Duration::ZERO,
            expected: None,
            measured: None,
            bytes_per_product: 0,
            memory_bytes,
            transposed_products: 0,
            transposed_recipe: None,
        }
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, cols) = self.shape;
        writeln!(f, "{rows} x {cols}, {} entries, {}", self.nnz, self.scalar)?;
        writeln!(f, "device: {}", self.device)?;
        writeln!(f, "product: {}", self.recipe)?;
        writeln!(f, "reason: {}", self.reason)?;
        writeln!(f, "planning: {:.3} ms", self.planning.as_secs_f64() * 1e3)?;
        writeln!(f, "traffic: at least {} bytes a product", self.bytes_per_product)?;
        let time = |time: Option<Duration>| match time {
            Some(time) => format!("{:.2} us", time.as_secs_f64() * 1e6),
            None => "unknown".to_owned(),
        };
        let (expected, measured) = (time(self.expected), time(self.measured));
        writeln!(f, "time of a product: {expected} by the model, {measured} by the clock")?;
        writeln!(f, "memory: {} bytes with the matrix", self.memory_bytes)?;
        match &self.transposed_recipe {
            Some(recipe) => write!(f, "transpose: {recipe}, from a transposed copy"),
            None => write!(f, "transpose: straight from CSR, without a transposed copy"),
        }
    }
}

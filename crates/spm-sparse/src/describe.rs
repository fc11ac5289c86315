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
    /// So few products are expected that planning would not pay: straight from CSR.
    Few {
        /// Products expected.
        expected: u64,
        /// Products from which the race pays.
        pays_from: u64,
    },
    /// So many products are expected that a race of kernels pays.
    Raced {
        /// Products expected.
        expected: u64,
        /// Products from which the race pays.
        pays_from: u64,
    },
    /// The choice is by the structure alone, without the clock.
    Deterministic,
    /// The caller's recipe.
    Recipe,
    /// The kernel that was chosen before does not suit the values of
    /// [`Operator::set_values`](crate::Operator::set_values): straight from CSR.
    NewValues,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small => f.write_str(
                "straight from CSR on the calling thread: waking another one takes longer than \
                 the product",
            ),
            Self::Few { expected, pays_from } => write!(
                f,
                "straight from CSR: {expected} products are expected, a race of kernels pays from \
                 about {pays_from}"
            ),
            Self::Raced { expected, pays_from } => write!(
                f,
                "the fastest of a race of kernels: {expected} products are expected, the race pays \
                 from about {pays_from}"
            ),
            Self::Deterministic => {
                f.write_str("straight from CSR: deterministic, chosen without the clock")
            }
            Self::Recipe => f.write_str("by the caller's recipe"),
            Self::NewValues => {
                f.write_str("straight from CSR: the kernel before does not suit the new values")
            }
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
    /// Element type: `"f32"` or `"f64"`.
    pub scalar: &'static str,
    /// Kernel, parameters and threads.
    pub recipe: Recipe,
    /// Why this kernel.
    pub reason: Reason,
    /// Time of planning, without reading or converting the caller's matrix.
    pub planning: Duration,
    /// Least memory traffic of a product in bytes: the matrix in the kernel's format, x and y once
    /// each.
    pub bytes_per_product: u64,
    /// Bytes of the matrix and of everything that the operator holds.
    pub memory_bytes: u64,
    /// Products with the transpose so far.
    pub transposed_products: u64,
    /// Kernel, parameters and threads of the product with the transpose, once it has a plan of its
    /// own.
    pub transposed_recipe: Option<Recipe>,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, cols) = self.shape;
        writeln!(f, "{rows} x {cols}, {} entries, {}", self.nnz, self.scalar)?;
        writeln!(f, "product: {}", self.recipe)?;
        writeln!(f, "reason: {}", self.reason)?;
        writeln!(f, "planning: {:.3} ms", self.planning.as_secs_f64() * 1e3)?;
        writeln!(f, "traffic: at least {} bytes a product", self.bytes_per_product)?;
        writeln!(f, "memory: {} bytes with the matrix", self.memory_bytes)?;
        match &self.transposed_recipe {
            Some(recipe) => write!(f, "transpose: {recipe}, from a transposed copy"),
            None => write!(f, "transpose: straight from CSR, without a transposed copy"),
        }
    }
}

//! Recipes: the choice of an operator as text.

use std::error;
use std::fmt;
use std::str::FromStr;

/// The kernel, its parameters and the number of threads that an operator multiplies with.
///
/// A recipe makes another operator choose alike: for another matrix, or in another process. It
/// prints as `cpu KERNEL on N threads` or `gpu KERNEL`, parses from the same text, and with the feature
/// `serde` is serialised as that text.
///
/// ```
/// use spm::{Operator, Recipe};
///
/// let a = spm::from_triplets((2, 2), [(0_usize, 0_usize, 2.0), (1, 1, 3.0)])?;
/// let op = Operator::new(a.clone())?;
/// let text = op.recipe().to_string();
/// let same = Operator::builder(a).recipe(text.parse::<Recipe>()?).build()?;
/// assert_eq!(same.recipe(), op.recipe());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub struct Recipe {
    kernel: String,
    /// On CPU cores; nothing on a GPU.
    threads: Option<usize>,
}

impl Recipe {
    pub(crate) fn new(kernel: String, threads: usize) -> Self {
        Self { kernel, threads: Some(threads) }
    }

    /// A kernel for GPUs.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "recipes of others are parsed"))]
    pub(crate) fn gpu(kernel: String) -> Self {
        Self { kernel, threads: None }
    }

    /// Whether the kernel is for a GPU.
    pub fn is_gpu(&self) -> bool {
        self.threads.is_none()
    }

    /// Kernel and parameters, as `cargo xtask kernels` of the repository lists them.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// Number of threads, the calling thread included; 1 for a kernel on a GPU.
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or(1)
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(threads) = self.threads else { return write!(f, "gpu {}", self.kernel) };
        let plural = if threads == 1 { "" } else { "s" };
        write!(f, "cpu {} on {threads} thread{plural}", self.kernel)
    }
}

impl FromStr for Recipe {
    type Err = ParseRecipeError;

    fn from_str(text: &str) -> Result<Self, ParseRecipeError> {
        let parsed = || {
            if let Some(kernel) = text.trim().strip_prefix("gpu ") {
                let one_word = !kernel.is_empty() && !kernel.contains(' ');
                return one_word.then(|| Self::gpu(kernel.to_owned()));
            }
            let (kernel, threads) = text.trim().strip_prefix("cpu ")?.rsplit_once(" on ")?;
            let threads = threads.strip_suffix('s').unwrap_or(threads).strip_suffix(" thread")?;
            let threads = threads.parse().ok().filter(|&count| count > 0)?;
            (!kernel.is_empty()).then(|| Self::new(kernel.to_owned(), threads))
        };
        parsed().ok_or_else(|| {
            let expected = "\"cpu KERNEL on N threads\" or \"gpu KERNEL\"";
            ParseRecipeError::new(format!("expected {expected}, found {text:?}"))
        })
    }
}

impl From<Recipe> for String {
    fn from(recipe: Recipe) -> Self {
        recipe.to_string()
    }
}

impl TryFrom<String> for Recipe {
    type Error = ParseRecipeError;

    fn try_from(text: String) -> Result<Self, ParseRecipeError> {
        text.parse()
    }
}

/// Why a text is no recipe, or names a kernel that this version does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseRecipeError {
    reason: String,
}

impl ParseRecipeError {
    pub(crate) fn new(reason: String) -> Self {
        Self { reason }
    }
}

impl fmt::Display for ParseRecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl error::Error for ParseRecipeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_back() {
        let on_cpu = ["cpu csr-serial on 1 thread", "cpu sell[chunk=8,sigma=1] on 2 threads"];
        for text in on_cpu.into_iter().chain(["gpu sellp[block=128]"]) {
            let recipe: Recipe = text.parse().unwrap();
            assert_eq!(recipe.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_errors() {
        for text in
            ["", "cpu", "gpu csr on 1 thread", "gpu ", "cpu csr on 0 threads", "cpu  on 1 thread"]
        {
            let error = text.parse::<Recipe>().unwrap_err().to_string();
            assert!(error.starts_with("expected \"cpu KERNEL on N threads\""), "{error}");
        }
    }
}

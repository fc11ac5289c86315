//! The memory budget of plans and conversions.

use crate::FormatError;

/// The memory that one plan or one conversion may allocate.
///
/// The budget covers the host memory that is allocated at any one time from the beginning of planning
/// to the end of the plan: the converted matrix, partitions, workspaces, and what planning itself
/// needs for a while. The result of a conversion is covered too. The caller's own arrays (matrix,
/// vectors, the output of a transposition) are not.
///
/// Not covered is the workspace of runs of one plan at the same time beyond the first, and the buffers
/// of a scaled product: for each thread the rows that it computes together, up to 2^16.
///
/// For a plan on a device the budget covers device memory. The device may hold as many bytes as the
/// caller's matrix has beside the budget: the copy that a kernel reads. The host memory in which the
/// plan prepares its arrays is not counted, padded formats apart.
///
/// [`MemoryBudget::ALLOWANCE`] bytes on either side are not counted, so that a budget of 0 still has
/// the plans that need no memory which grows with the matrix.
///
/// R1 4.1 refused ELLPACK above 6 x 2^27 stored elements. At 12 bytes each that is the default
/// here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBudget {
    bytes: u64,
    /// Bytes that are in use already.
    held: u64,
    matrix: String,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::bytes(6 * (1 << 27) * 12)
    }
}

impl MemoryBudget {
    /// Bytes for headers and bounds of threads, which do not grow with the matrix.
    pub const ALLOWANCE: u64 = 64 << 10;

    /// At most `bytes` bytes for one plan or one conversion.
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes, held: 0, matrix: "the matrix".to_owned() }
    }

    /// No limit.
    pub fn unlimited() -> Self {
        Self::bytes(u64::MAX)
    }

    /// Sets the matrix name used in error messages.
    #[must_use]
    pub fn for_matrix(mut self, name: impl Into<String>) -> Self {
        self.matrix = name.into();
        self
    }

    /// The rest of the budget after `held` bytes that are allocated already.
    #[must_use]
    pub fn beside(&self, held: u64) -> Self {
        Self { held: self.held.saturating_add(held), ..self.clone() }
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.held)
    }

    /// Checks the size of `elements` stored elements of `element_bytes` bytes each, plus `fixed` bytes.
    ///
    /// # Errors
    /// [`FormatError::OverBudget`] with the size that the matrix would have taken.
    pub fn check(
        &self,
        format: &'static str,
        entries: usize,
        elements: u128,
        element_bytes: usize,
        fixed: usize,
    ) -> Result<(), FormatError> {
        let required = elements.saturating_mul(element_bytes as u128).saturating_add(fixed as u128);
        let padding_tenths = elements.saturating_mul(10) / (entries.max(1) as u128);
        self.require(format, required, u64::try_from(padding_tenths).unwrap_or(u64::MAX))
    }

    /// Accepts or refuses `bytes` bytes without padding, for `what`.
    ///
    /// # Errors
    /// [`FormatError::OverBudget`] with the size that `what` would have taken.
    pub fn check_bytes(&self, what: &'static str, bytes: u128) -> Result<(), FormatError> {
        self.require(what, bytes, 10)
    }

    fn require(
        &self,
        format: &'static str,
        bytes: u128,
        padding_tenths: u64,
    ) -> Result<(), FormatError> {
        let required = u64::try_from(bytes.saturating_add(self.held.into())).unwrap_or(u64::MAX);
        // No allocation can be larger than isize::MAX.
        if bytes == 0 || (required <= self.bytes && isize::try_from(required).is_ok()) {
            return Ok(());
        }
        let (matrix, budget) = (self.matrix.clone(), self.bytes);
        Err(FormatError::OverBudget { format, matrix, required, budget, padding_tenths })
    }
}

//! How much memory a padded format may take.

use crate::FormatError;

/// The one place where hopeless padding is refused, before anything is allocated.
///
/// R1 4.1 refused ELLPACK above 6 x 2^27 padded entries; with 12 bytes a slot that is the default
/// here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBudget {
    bytes: u64,
    matrix: String,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::bytes(6 * (1 << 27) * 12)
    }
}

impl MemoryBudget {
    /// At most `bytes` bytes for one converted matrix.
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes, matrix: "the matrix".to_owned() }
    }

    /// No limit but the machine's own.
    pub fn unlimited() -> Self {
        Self::bytes(u64::MAX)
    }

    /// Names the matrix that errors speak of.
    #[must_use]
    pub fn for_matrix(mut self, name: impl Into<String>) -> Self {
        self.matrix = name.into();
        self
    }

    /// Accepts or refuses `slots` padded slots of `slot_bytes` bytes each, plus `fixed` bytes.
    ///
    /// # Errors
    /// [`FormatError::OverBudget`] with the size that the matrix would have taken.
    pub fn check(
        &self,
        format: &'static str,
        entries: usize,
        slots: u128,
        slot_bytes: usize,
        fixed: usize,
    ) -> Result<(), FormatError> {
        let required = slots.saturating_mul(slot_bytes as u128).saturating_add(fixed as u128);
        let required = u64::try_from(required).unwrap_or(u64::MAX);
        // No allocation can be larger than isize::MAX.
        if required <= self.bytes && isize::try_from(required).is_ok() {
            return Ok(());
        }
        let padding_tenths = u64::try_from(slots.saturating_mul(10) / (entries.max(1) as u128));
        Err(FormatError::OverBudget {
            format,
            matrix: self.matrix.clone(),
            required,
            budget: self.bytes,
            padding_tenths: padding_tenths.unwrap_or(u64::MAX),
        })
    }
}

//! Strides of the dense matrices X and Y.

/// Element (i, j) of a dense matrix lies at i `row` + j `column`: `row` is k and `column` is 1 in
/// row-major order, 1 and the number of rows in column-major order.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// From a row to the next, in elements.
    pub row: u64,
    /// From a column to the next, in elements.
    pub column: u64,
}

impl Strides {
    /// Position of element (`i`, `j`).
    #[inline(always)]
    pub(crate) fn index(self, i: u32, j: u32) -> u64 {
        u64::from(i) * self.row + u64::from(j) * self.column
    }
}

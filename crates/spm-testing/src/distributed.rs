//! Values, operands and a check for matrices that no process has as a whole: each follows from global indices.

/// The value of an entry; it needs all 53 bits.
pub fn value(row: u64, col: u64) -> f64 {
    let bits = (row.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ col).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    0.1 + (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// The value of an entry of a symmetric positive definite matrix with at most 27 entries a row, the diagonal among
/// them: the entries beside the diagonal of a row sum to less than the one on it.
pub fn definite(row: u64, col: u64) -> f64 {
    if row == col { 30.0 } else { -value(row.min(col), row.max(col)) }
}

/// The element of x with this global index.
pub fn element(index: u64) -> f64 {
    0.5 + (index % 17) as f64 / 17.0
}

/// The largest |y - ref| / ((k + 2) u sum |a||x|) of some rows of k entries, for the x of [`element`], where ref
/// is the sum in the order of the columns; more than 1 is wrong. An element that is NaN, or that should be zero,
/// is infinitely wrong.
///
/// The rows are the ends of their entries, global columns and values, as of a CSR matrix.
///
/// # Panics
/// When the arrays do not fit each other.
pub fn error_of((row_ptr, col_ind, values): (&[usize], &[u64], &[f64]), y: &[f64]) -> f64 {
    assert_eq!(row_ptr.len(), y.len() + 1, "rows");
    let of_row = |(ends, &y): (&[usize], &f64)| {
        let range = ends[0]..ends[1];
        let terms = || {
            let cols = col_ind[range.clone()].iter();
            cols.zip(&values[range.clone()]).map(|(&col, value)| value * element(col))
        };
        // Of no terms 0, where `sum` has -0.
        let size = terms().fold(0.0, |sum, term| sum + term.abs());
        let bound = (range.len() + 2) as f64 * f64::EPSILON / 2.0 * size;
        let error = (y - terms().sum::<f64>()).abs();
        let multiple = if error == 0.0 { 0.0 } else { error / bound };
        if multiple.is_nan() { f64::INFINITY } else { multiple }
    };
    row_ptr.windows(2).zip(y).map(of_row).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definite_matrices_are_symmetric_and_dominated_by_the_diagonal() {
        for row in 0..100 {
            let others = (0..100).filter(|&col| col != row).map(|col| definite(row, col));
            let largest = others.fold(0.0, |largest: f64, value| largest.max(value.abs()));
            assert!(26.0 * largest < definite(row, row), "{row}");
            assert_eq!(definite(row, 7), definite(7, row));
        }
    }

    #[test]
    fn errors_of_any_kind_are_found() {
        let rows: (&[usize], &[u64], &[f64]) = (&[0, 1, 1], &[1], &[3.0]);
        let right = 3.0 * element(1);
        assert_eq!(error_of(rows, &[right, 0.0]), 0.0);
        assert!(error_of(rows, &[right * (1.0 + 1e-14), 0.0]) > 1.0);
        assert_eq!(error_of(rows, &[f64::NAN, 0.0]), f64::INFINITY);
        assert_eq!(error_of(rows, &[right, 1e-300]), f64::INFINITY);
    }
}

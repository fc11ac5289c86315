//! The bucket of a column, by a multiplication instead of a division.

/// What a number is multiplied by, for the high word of the product to be the number divided by
/// `width`: 2^32 / width, rounded up; 0 stands for 2^32, of width 1.
pub fn bucket_inverse(width: u32) -> u32 {
    (1_u64 << 32).div_ceil(u64::from(width)) as u32
}

/// Whether [`bucket_inverse`] gives the right bucket for every column below `cols`; it does for every
/// power of two.
///
/// With e = inverse x width - 2^32, the high word of column x inverse is column / width, rounded down,
/// as long as column x e < 2^32 (Granlund and Montgomery, "Division by invariant integers using
/// multiplication", 1994).
pub fn bucket_inverse_is_exact(cols: usize, width: u32) -> bool {
    let (whole, width) = (1_u64 << 32, u64::from(width));
    let excess = whole.div_ceil(width) * width - whole;
    (cols as u64).saturating_sub(1).saturating_mul(excess) < whole
}

/// Columns of a bucket.
#[derive(Clone, Copy)]
pub(crate) struct Width {
    pub(crate) width: u32,
    pub(crate) inverse: u32,
}

impl Width {
    /// The bucket of a column.
    #[inline(always)]
    pub(crate) fn bucket(self, column: u32) -> u32 {
        let product = u64::from(column) * u64::from(self.inverse);
        if self.inverse == 0 { column } else { (product >> 32) as u32 }
    }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn an_exact_inverse_divides_every_column() {
        for width in (1..300).chain([1000, 1024, 4097, 65_535, 65_536]) {
            let divisor = Width { width, inverse: bucket_inverse(width) };
            for cols in [1, 100_000, 1 << 20, u32::MAX as usize] {
                if !bucket_inverse_is_exact(cols, width) {
                    assert!(!width.is_power_of_two());
                    continue;
                }
                let last = cols as u32 - 1;
                let near = (0..=last / width).step_by((last / width / 97 + 1) as usize);
                for column in near.flat_map(|b| [b * width, (b * width).saturating_sub(1), last]) {
                    assert_eq!(divisor.bucket(column), column / width, "{column} / {width}");
                }
            }
        }
    }
}

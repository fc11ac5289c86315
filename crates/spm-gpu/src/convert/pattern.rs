//! A sample of the pattern of a matrix: `gpu-kernels/src/convert/pattern.rs`.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{PATTERN_PAIRS, SAMPLED_ROWS};

use super::DiagonalSample;
use super::stats::Parts;
use crate::matrix::DeviceCsr;
use crate::plan::DeviceScalar;

/// What some rows of a matrix say of its pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternSample {
    /// Their diagonals; `None` for a matrix with too many, or too large a size.
    pub(crate) diagonals: Option<DiagonalSample>,
    /// Whether most rows read x far from where the row a warp further does, as those of a mesh in random order.
    pub(crate) is_scattered: bool,
}

impl PatternSample {
    pub(super) const PAIRS: usize = PATTERN_PAIRS as usize;

    pub(crate) fn of<T: DeviceScalar>(a: &DeviceCsr<T>) -> Result<Self, PlanError> {
        let seen = Parts { pattern: true, ..Parts::default() }.look_at_pattern(a)?;
        Ok(Self::from_pairs(a, seen.pattern()))
    }

    /// Of what the kernel has written.
    pub(super) fn from_pairs<T: DeviceScalar>(a: &DeviceCsr<T>, seen: &[[u32; 2]]) -> Self {
        let (table, rest) = seen.as_flattened().split_first_chunk().expect("pairs of the sample");
        let &[is_full, far_rows] = rest else { unreachable!("a pair behind the table") };
        let sampled = a.rows().min(SAMPLED_ROWS as usize);
        Self {
            diagonals: (is_full == 0).then(|| DiagonalSample::from_table(a, *table)).flatten(),
            is_scattered: 2 * far_rows as usize > sampled,
        }
    }
}

#[cfg(test)]
mod tests {
    use spm_testing::generate;

    use super::*;
    use crate::device::Device;

    fn sample(name: &str) -> PatternSample {
        let device = Device::emulated(Default::default());
        let a = generate::named(name).unwrap().generate::<f64>().unwrap();
        PatternSample::of(&DeviceCsr::new(&device, a.view()).unwrap()).unwrap()
    }

    /// 2560 rows of 5 unknowns a node: the first rows of 256 equal parts are all the first of their nodes.
    #[test]
    fn sampled_rows_are_not_all_the_same_unknown() {
        let diagonals = sample("stencil7[n=8,unknowns=5]").diagonals;
        assert_eq!(diagonals.map(|of| of.distances().len()), Some(55));
    }

    #[test]
    fn rows_are_scattered_that_read_x_far_from_their_neighbours() {
        let of_mesh = |options: &str| sample(&format!("mesh2[n=110{options}]")).is_scattered;
        assert!(of_mesh(",order=random") && !of_mesh("") && !of_mesh(",order=rcm"));
        // The rows of a node are near each other.
        assert!(sample("mesh2[n=70,unknowns=2,order=random]").is_scattered);
        // Most of a short x is near, and where there is no row a warp further nothing is far.
        assert!(!sample("uniform[rows=2000,cols=2000,entries=9000]").is_scattered);
        assert!(!sample("uniform[rows=30,cols=90000,entries=900]").is_scattered);
    }
}

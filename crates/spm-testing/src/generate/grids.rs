//! Patterns that follow from a grid: diagonal, banded, stencils, and dense node blocks.

use super::GenerateError;
use super::pattern::Pattern;

/// Neighbours of a grid point in a stencil, the point included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Points {
    /// 2-D, the four nearest.
    Five,
    /// 2-D, all of the 3 x 3 square.
    Nine,
    /// 3-D, the six nearest.
    Seven,
    /// 3-D, all of the 3 x 3 x 3 cube.
    TwentySeven,
}

impl Points {
    /// How many points, itself included.
    pub fn count(self) -> usize {
        match self {
            Self::Five => 5,
            Self::Nine => 9,
            Self::Seven => 7,
            Self::TwentySeven => 27,
        }
    }

    fn dimensions(self) -> u32 {
        match self {
            Self::Five | Self::Nine => 2,
            Self::Seven | Self::TwentySeven => 3,
        }
    }

    fn is_star(self) -> bool {
        matches!(self, Self::Five | Self::Seven)
    }
}

fn too_large(what: &'static str) -> GenerateError {
    GenerateError::Parameter { what, problem: "makes the matrix too large".to_owned() }
}

pub(super) fn diagonal(n: usize) -> Result<Pattern, GenerateError> {
    banded(n, 0, 0)
}

/// Every column from `row - lower` to `row + upper`.
pub(super) fn banded(n: usize, lower: usize, upper: usize) -> Result<Pattern, GenerateError> {
    let first = |row: usize| row.saturating_sub(lower);
    let end = |row: usize| row.saturating_add(upper).saturating_add(1).min(n);
    Pattern::with_length_of(
        n,
        n,
        |row| (end(row) - first(row)) as u64,
        |row, columns| ascend(columns, first(row)),
    )
}

/// A grid of `n` points a side, numbered with x fastest; each point is `block` unknowns, coupled
/// densely with those of its neighbours (block 1 is the plain stencil).
pub(super) fn stencil(points: Points, n: usize, block: usize) -> Result<Pattern, GenerateError> {
    let nodes = n.checked_pow(points.dimensions()).ok_or_else(|| too_large("n"))?;
    let rows = nodes.checked_mul(block).ok_or_else(|| too_large("block"))?;
    let sides = [n, n, if points.dimensions() == 3 { n } else { 1 }];
    let neighbours = |row: usize| {
        let node = row / block;
        let position = [node % n, node / n % n, node / n / n];
        offsets(points).filter_map(move |(dz, dy, dx)| {
            let inside = [dx, dy, dz].into_iter().enumerate().all(|(axis, offset)| {
                position[axis].checked_add_signed(offset).is_some_and(|p| p < sides[axis])
            });
            inside.then(|| node.wrapping_add_signed(dx + n as isize * (dy + n as isize * dz)))
        })
    };
    Pattern::with_length_of(
        rows,
        rows,
        |row| neighbours(row).count() as u64 * block as u64,
        |row, columns| {
            for (columns, node) in columns.chunks_exact_mut(block).zip(neighbours(row)) {
                ascend(columns, node * block);
            }
        },
    )
}

fn ascend(columns: &mut [u32], first: usize) {
    for (column, number) in columns.iter_mut().zip(first..) {
        *column = number as u32;
    }
}

/// Offsets (z, y, x) in ascending order of the neighbour's number.
fn offsets(points: Points) -> impl Iterator<Item = (isize, isize, isize)> {
    let depth: isize = if points.dimensions() == 3 { 1 } else { 0 };
    (-depth..=depth)
        .flat_map(|z| (-1isize..=1).flat_map(move |y| (-1isize..=1).map(move |x| (z, y, x))))
        .filter(move |(z, y, x)| !points.is_star() || z.abs() + y.abs() + x.abs() <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(pattern: &Pattern) -> Vec<&[u32]> {
        pattern
            .pointers
            .windows(2)
            .map(|p| &pattern.indices[p[0] as usize..p[1] as usize])
            .collect()
    }

    #[test]
    fn five_points_on_a_3_by_3_grid() {
        let pattern = stencil(Points::Five, 3, 1).unwrap();
        let rows = rows_of(&pattern);
        assert_eq!(rows[0], [0, 1, 3]);
        assert_eq!(rows[4], [1, 3, 4, 5, 7]);
        assert_eq!(rows[8], [5, 7, 8]);
        assert_eq!(pattern.indices.len(), 9 + 2 * 12);
    }

    #[test]
    fn entries_of_every_stencil() {
        // A star has one edge per pair of neighbours; a box is a Kronecker product of tridiagonals.
        let n = 4;
        let tridiagonal = 3 * n - 2;
        for (points, entries) in [
            (Points::Five, n * n + 4 * n * (n - 1)),
            (Points::Nine, tridiagonal * tridiagonal),
            (Points::Seven, n * n * n + 6 * n * n * (n - 1)),
            (Points::TwentySeven, tridiagonal * tridiagonal * tridiagonal),
        ] {
            for block in [1, 3] {
                let pattern = stencil(points, n, block).unwrap();
                assert_eq!(pattern.indices.len(), entries * block * block, "{points:?} {block}");
                let rows = rows_of(&pattern);
                assert!(rows.iter().all(|row| row.windows(2).all(|pair| pair[0] < pair[1])));
                assert_eq!(rows.iter().map(|r| r.len()).max(), Some(points.count() * block));
            }
        }
    }

    #[test]
    fn a_band_is_clipped_at_the_corners() {
        let pattern = banded(4, 1, 2).unwrap();
        assert_eq!(rows_of(&pattern), [&[0, 1, 2][..], &[0, 1, 2, 3], &[1, 2, 3], &[2, 3]]);
        assert_eq!(banded(3, usize::MAX, usize::MAX).unwrap().indices.len(), 9);
        assert_eq!(diagonal(0).unwrap().pointers, [0]);
        assert!(stencil(Points::Seven, usize::MAX, 1).is_err());
        assert!(stencil(Points::Seven, 100_000, 1).is_err());
        assert!(stencil(Points::TwentySeven, 2, 1_000_000).is_err());
        assert!(stencil(Points::Five, 3, 0).unwrap().indices.is_empty());
    }
}

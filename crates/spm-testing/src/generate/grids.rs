//! Patterns that follow from a grid: diagonal, banded, stencils.

use super::GenerateError;
use super::pattern::Pattern;

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

fn ascend(columns: &mut [u32], first: usize) {
    for (column, number) in columns.iter_mut().zip(first..) {
        *column = number as u32;
    }
}

/// A position on a grid, or a distance between two: x, y, z.
pub(super) type Position = [usize; 3];
pub(super) type Offset = [isize; 3];

/// A grid of `n` points a side in 2 or 3 dimensions, numbered with x fastest. A point is coupled
/// with those of its neighbours at `offsets` (in ascending order of the neighbour's number, the
/// point itself among them) for which `coupled(position, offset)` holds.
pub(super) fn coupled_grid(
    dimensions: u32,
    n: usize,
    offsets: &[Offset],
    coupled: impl Fn(Position, Offset) -> bool + Sync,
) -> Result<Pattern, GenerateError> {
    let too_large =
        || GenerateError::Parameter { what: "n", problem: "makes the matrix too large".to_owned() };
    let nodes = n.checked_pow(dimensions).ok_or_else(too_large)?;
    let sides = [n, n, if dimensions == 3 { n } else { 1 }];
    let coupled = &coupled;
    let neighbours = |node: usize| {
        let position = [node % n, node / n % n, node / n / n];
        offsets.iter().filter_map(move |&offset| {
            let inside = offset.into_iter().enumerate().all(|(axis, offset)| {
                position[axis].checked_add_signed(offset).is_some_and(|p| p < sides[axis])
            });
            let [dx, dy, dz] = offset;
            let neighbour = node.wrapping_add_signed(dx + n as isize * (dy + n as isize * dz));
            (inside && coupled(position, offset)).then_some(neighbour)
        })
    };
    Pattern::with_length_of(
        nodes,
        nodes,
        |node| neighbours(node).count() as u64,
        |node, columns| {
            for (column, neighbour) in columns.iter_mut().zip(neighbours(node)) {
                *column = neighbour as u32;
            }
        },
    )
}

/// The nearest neighbours along the axes (`star`), or all of the surrounding square or cube.
pub(super) fn stencil(dimensions: u32, star: bool, n: usize) -> Result<Pattern, GenerateError> {
    coupled_grid(dimensions, n, &stencil_offsets(dimensions, star), |_, _| true)
}

pub(super) fn stencil_offsets(dimensions: u32, star: bool) -> Vec<Offset> {
    let within = |&[x, y, z]: &Offset| !star || x.abs() + y.abs() + z.abs() <= 1;
    offsets(dimensions, 1).filter(within).collect()
}

/// Offsets of up to `reach` along each axis, in ascending order of the neighbour's number.
pub(super) fn offsets(dimensions: u32, reach: isize) -> impl Iterator<Item = Offset> {
    let depth = if dimensions == 3 { reach } else { 0 };
    (-depth..=depth).flat_map(move |z| {
        (-reach..=reach).flat_map(move |y| (-reach..=reach).map(move |x| [x, y, z]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(pattern: &Pattern) -> Vec<&[u32]> {
        pattern.row_ptr.windows(2).map(|p| &pattern.indices[p[0] as usize..p[1] as usize]).collect()
    }

    #[test]
    fn five_points_on_a_3_by_3_grid() {
        let pattern = stencil(2, true, 3).unwrap();
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
        for (dimensions, star, points, entries) in [
            (2, true, 5, n * n + 4 * n * (n - 1)),
            (2, false, 9, tridiagonal * tridiagonal),
            (3, true, 7, n * n * n + 6 * n * n * (n - 1)),
            (3, false, 27, tridiagonal * tridiagonal * tridiagonal),
        ] {
            for block in [1, 3] {
                let pattern = stencil(dimensions, star, n).unwrap().with_unknowns(block).unwrap();
                assert_eq!(pattern.indices.len(), entries * block * block, "{points} {block}");
                let rows = rows_of(&pattern);
                assert!(rows.iter().all(|row| row.windows(2).all(|pair| pair[0] < pair[1])));
                assert_eq!(rows.iter().map(|r| r.len()).max(), Some(points * block));
            }
        }
    }

    #[test]
    fn a_band_is_clipped_at_the_corners() {
        let pattern = banded(4, 1, 2).unwrap();
        assert_eq!(rows_of(&pattern), [&[0, 1, 2][..], &[0, 1, 2, 3], &[1, 2, 3], &[2, 3]]);
        assert_eq!(banded(3, usize::MAX, usize::MAX).unwrap().indices.len(), 9);
        assert_eq!(diagonal(0).unwrap().row_ptr, [0]);
        assert!(stencil(3, true, usize::MAX).is_err());
        assert!(stencil(3, true, 100_000).is_err());
        assert!(stencil(3, false, 2).unwrap().with_unknowns(1_000_000).is_err());
        assert!(stencil(2, true, 0).unwrap().indices.is_empty());
    }
}

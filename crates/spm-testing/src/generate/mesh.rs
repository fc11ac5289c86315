//! Patterns of meshes: simplices, grids with holes, neighbours within a distance.

use super::GenerateError;
use super::error::at_most;
use super::grids::{Offset, Position, coupled_grid, offsets, stencil_offsets};
use super::pattern::Pattern;
use super::random::mix;

/// Points a side of a tile that may be a hole.
const TILE: usize = 16;

/// Random bits that belong to a position.
fn bits_of(seed: u64, [x, y, z]: Position) -> u64 {
    mix(seed ^ mix(x as u64 ^ mix(y as u64 ^ mix(z as u64))))
}

/// The least corner of the edge, face or cell whose diagonal goes from `position` by `offset`.
fn least_corner(position: Position, offset: Offset) -> Position {
    std::array::from_fn(|axis| position[axis].saturating_add_signed(offset[axis].min(0)))
}

/// A 2-D grid of `n` nodes a side in which each cell is cut by one of its diagonals.
pub(super) fn triangles(n: usize, seed: u64) -> Result<Pattern, GenerateError> {
    coupled_grid(2, n, &stencil_offsets(2, false), |position, offset| {
        let [dx, dy, _] = offset;
        dx * dy == 0 || (bits_of(seed, least_corner(position, offset)) & 1 == 0) == (dx * dy > 0)
    })
}

/// A 3-D grid of `n` nodes a side in which each face has one of its two diagonals, and each cell
/// one of its four: 14 neighbours in the mean, as in a tetrahedral mesh.
pub(super) fn tetrahedra(n: usize, seed: u64) -> Result<Pattern, GenerateError> {
    coupled_grid(3, n, &stencil_offsets(3, false), |position, offset| {
        let moved = offset.iter().filter(|&&d| d != 0).count();
        let bits = bits_of(seed, least_corner(position, offset));
        let [dx, dy, dz] = offset;
        match moved {
            2 => {
                let flat = offset.iter().position(|&d| d == 0).unwrap_or(0);
                let rising = offset.iter().filter(|&&d| d != 0).product::<isize>() > 0;
                (bits >> flat & 1 == 0) == rising
            }
            3 => bits >> 8 & 3 == u64::from(dx * dy > 0) << 1 | u64::from(dx * dz > 0),
            _ => true,
        }
    })
}

/// A star stencil on a grid of `n` points a side of which `holes` percent, in tiles, are left out.
pub(super) fn masked(
    dimensions: u32,
    n: usize,
    holes: usize,
    seed: u64,
) -> Result<Pattern, GenerateError> {
    at_most("holes", holes, 100)?;
    let live = |position: Position| bits_of(seed, position.map(|p| p / TILE)) % 100 >= holes as u64;
    let grid = coupled_grid(dimensions, n, &stencil_offsets(dimensions, true), |point, offset| {
        let other: Position =
            std::array::from_fn(|axis| point[axis].wrapping_add_signed(offset[axis]));
        live(point) && live(other)
    })?;
    // A point in a hole is not even coupled with itself.
    let kept: Vec<bool> = (0..grid.rows).map(|node| !grid.row(node).is_empty()).collect();
    grid.restricted_to(&kept)
}

/// A 3-D grid of `n` points a side, each coupled with all within a squared distance of `reach`.
pub(super) fn atoms(n: usize, reach: usize) -> Result<Pattern, GenerateError> {
    at_most("reach", reach, 400)?;
    let distance = |offset: &Offset| offset.iter().map(|d| (d * d) as usize).sum::<usize>();
    let near: Vec<Offset> =
        offsets(3, reach.isqrt() as isize).filter(|offset| distance(offset) <= reach).collect();
    coupled_grid(3, n, &near, |_, _| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(pattern: &Pattern) -> usize {
        (pattern.indices.len() - pattern.rows) / 2
    }

    /// Euler: a triangulated square of n x n nodes has 3 n^2 - 4 n + 1 edges.
    #[test]
    fn triangles_and_tetrahedra_have_one_diagonal_a_face() {
        for seed in [1, 2] {
            let n = 9;
            let plane = triangles(n, seed).unwrap();
            assert_eq!(edges(&plane), 3 * n * n - 4 * n + 1);
            let (cells, faces) = ((n - 1).pow(3), 3 * n * (n - 1).pow(2));
            assert_eq!(edges(&tetrahedra(n, seed).unwrap()), 3 * n * n * (n - 1) + faces + cells);
        }
        assert_ne!(triangles(9, 1).unwrap().indices, triangles(9, 2).unwrap().indices);
    }

    #[test]
    fn holes_are_left_out_with_their_rows() {
        let whole = masked(2, 80, 0, 1).unwrap();
        assert_eq!(whole.indices.len(), 80 * 80 + 4 * 80 * 79);
        let holes = masked(2, 80, 40, 1).unwrap();
        // 25 tiles of 256 points; every point is coupled with itself at least.
        assert!(holes.rows.is_multiple_of(256) && (6 * 256..25 * 256).contains(&holes.rows));
        assert!((0..holes.rows).all(|row| holes.row(row).contains(&(row as u32))));
        assert!((0..holes.rows).any(|row| holes.row(row).len() < 5));
        assert!(masked(2, 80, 100, 1).unwrap().indices.is_empty());
        assert!(masked(2, 80, 101, 1).is_err());
    }

    #[test]
    fn atoms_reach_all_within_the_distance() {
        assert_eq!(atoms(5, 1).unwrap().row(62), [37, 57, 61, 62, 63, 67, 87]);
        let longest = |reach| {
            let pattern = atoms(9, reach).unwrap();
            (0..pattern.rows).map(|row| pattern.row(row).len()).max()
        };
        assert_eq!((longest(3), longest(6)), (Some(27), Some(81)));
    }
}

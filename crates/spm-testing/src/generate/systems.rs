//! Patterns of systems of equations: dense blocks, arrows, saddle points, linear programs.

use rayon::prelude::*;

use super::GenerateError;
use super::columns::{ColumnSource, Locality};
use super::error::at_most;
use super::grids::stencil;
use super::pattern::{Pattern, entry};
use super::profile::{Profile, arrange};
use super::random::Random;
use spm_formats::csr::check_limits;

/// Dense blocks on the diagonal, of 1 to 2 `size` - 1 rows.
pub(super) fn block_diagonal(n: usize, size: usize, seed: u64) -> Result<Pattern, GenerateError> {
    check_limits(n as u64, n as u64, 0)?;
    let mut random = Random::new(seed, 0);
    let mut starts = vec![0];
    let mut end = 0;
    while end < n {
        end = end.saturating_add(1 + random.below(size.saturating_mul(2).saturating_sub(1))).min(n);
        starts.push(end);
    }
    let block = |row: usize| {
        let next = starts.partition_point(|&start| start <= row);
        starts[next - 1]..starts[next]
    };
    Pattern::with_length_of(
        n,
        n,
        |row| block(row).len() as u64,
        |row, columns| {
            columns.iter_mut().zip(block(row)).for_each(|(column, col)| *column = col as u32);
        },
    )
}

/// The diagonal, and `width` rows and columns full.
pub(super) fn arrow(n: usize, width: usize) -> Result<Pattern, GenerateError> {
    let width = width.min(n);
    Pattern::with_length_of(
        n,
        n,
        |row| if row < width { n as u64 } else { width as u64 + 1 },
        |row, columns| {
            columns.iter_mut().zip(0..).for_each(|(column, col)| *column = col);
            if row >= width {
                columns[width] = row as u32;
            }
        },
    )
}

/// `[H A^T; A 0]`: H a stencil of nine points on a grid of `n` points a side, each row of A with 2
/// to 6 variables, most of them around one point of the grid.
pub(super) fn kkt(n: usize, constraints: usize, seed: u64) -> Result<Pattern, GenerateError> {
    let hessian = stencil(2, false, n)?;
    let variables = hessian.rows;
    let rows = variables.saturating_add(constraints);
    check_limits(rows as u64, rows as u64, constraints.saturating_mul(12) as u64)?;
    if variables == 0 {
        return Pattern::from_entries(rows, rows, Vec::new());
    }
    let coupled = |constraint: usize| {
        let mut random = Random::new(seed, constraint as u64);
        let count = 2 + random.below(5);
        let around = (constraint as u128 * variables as u128 / constraints as u128) as usize;
        let mut variable = move || match random.below(10) {
            0 => random.below(variables),
            _ => (around + random.below(3) + n * random.below(3)) % variables,
        };
        let row = variables + constraint;
        (0..count).flat_map(move |_| {
            let col = variable();
            [entry(row, col), entry(col, row)]
        })
    };
    let of_hessian = (0..variables)
        .into_par_iter()
        .flat_map_iter(|row| hessian.row(row).iter().map(move |&col| entry(row, col as usize)));
    let of_constraints = (0..constraints).into_par_iter().flat_map_iter(coupled);
    Pattern::from_entries(rows, rows, of_hessian.chain(of_constraints).collect())
}

/// Short rows near the diagonal, a tenth of their entries anywhere, and `dense` long rows.
pub(super) fn program(
    (rows, cols): (usize, usize),
    entries: usize,
    dense: usize,
    longest: usize,
    seed: u64,
) -> Result<Pattern, GenerateError> {
    check_limits(rows as u64, cols as u64, entries as u64)?;
    at_most("longest", longest, cols)?;
    at_most("dense", dense, rows)?;
    let ordinary = rows - dense;
    let short = entries.saturating_sub(dense.saturating_mul(longest));
    let mean = short.div_ceil(ordinary.max(1));
    let profile = Profile {
        rows,
        entries,
        min: usize::from(short >= ordinary),
        // A short row may have several times the mean.
        max: (8 * mean).clamp(mean.max(1), cols.max(mean)),
        heavy_tail: true,
        dense: vec![longest as u32; dense],
        ..Profile::default()
    };
    let mut lengths = profile.lengths()?;
    at_most("entries", lengths.iter().max().map_or(0, |&length| length as usize), cols)?;
    arrange(&mut lengths, 1, seed);
    let locality = Locality::Scattered { far_percent: 10, dense: Vec::new() };
    let source = ColumnSource::new(rows, cols, locality, seed);
    Pattern::with_lengths(rows, cols, &lengths, |row, out| source.fill(row, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_dense_and_follow_one_another() {
        let pattern = block_diagonal(1000, 6, 2).unwrap();
        let mut row = 0;
        let mut blocks = 0;
        while row < 1000 {
            let columns = pattern.row(row);
            assert_eq!(columns[0] as usize, row);
            assert!((1..12).contains(&columns.len()));
            for other in row..row + columns.len() {
                assert_eq!(pattern.row(other), columns);
            }
            row += columns.len();
            blocks += 1;
        }
        assert!((140..200).contains(&blocks), "{blocks}");
        assert_eq!(block_diagonal(3, 0, 1).unwrap().indices, [0, 1, 2]);
        assert_eq!(block_diagonal(3, usize::MAX, 1).unwrap().indices.len(), 9);
    }

    #[test]
    fn an_arrow_points_at_its_first_rows() {
        let pattern = arrow(5, 2).unwrap();
        assert_eq!(pattern.row(1), [0, 1, 2, 3, 4]);
        assert_eq!(pattern.row(3), [0, 1, 3]);
        assert_eq!(arrow(2, 9).unwrap().indices.len(), 4);
    }

    #[test]
    fn a_saddle_point_has_no_lower_right_block() {
        let pattern = kkt(20, 150, 1).unwrap();
        assert_eq!(pattern.rows, 550);
        for row in 400..550 {
            let columns = pattern.row(row);
            assert!((1..=6).contains(&columns.len()) && columns.iter().all(|&col| col < 400));
            assert!(columns.iter().all(|&col| pattern.row(col as usize).contains(&(row as u32))));
        }
        assert_eq!(kkt(0, 3, 1).unwrap().rows, 3);
    }

    #[test]
    fn a_program_has_its_long_rows() {
        let pattern = program((500, 9000), 8000, 3, 1500, 1).unwrap();
        let long = (0..500).filter(|&row| pattern.row(row).len() == 1500).count();
        assert_eq!((long, pattern.indices.len()), (3, 8000));
        assert!(program((2, 3), 7, 0, 0, 1).is_err());
        assert!(program((4, 30), 7, 5, 1, 1).is_err());
    }
}

//! What is done to a pattern after it was generated: entries or rows left out, rows renumbered,
//! nodes split into unknowns.

use super::GenerateError;
use super::pattern::Pattern;
use super::random::{Random, mix};

/// The order of the rows and columns of a square matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Numbering {
    /// As the class numbers them.
    #[default]
    Natural,
    /// Reverse Cuthill-McKee; for symmetric patterns only.
    CuthillMckee,
    /// Shuffled.
    Random,
}

impl Numbering {
    /// Every numbering.
    pub const ALL: [Self; 3] = [Self::Natural, Self::CuthillMckee, Self::Random];

    /// Name in labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::CuthillMckee => "rcm",
            Self::Random => "random",
        }
    }
}

impl Pattern {
    /// Leaves out `percent` of the entries that are not on the diagonal; with `symmetric`, an entry
    /// goes with its mirror image.
    pub(super) fn thinned(
        self,
        percent: usize,
        symmetric: bool,
        seed: u64,
    ) -> Result<Self, GenerateError> {
        let stays = |row: usize, &col: &u32| {
            let row = row as u32;
            let (a, b) = if symmetric { (row.min(col), row.max(col)) } else { (row, col) };
            let bits = mix(seed.wrapping_add(1) ^ mix(u64::from(b) << 32 | u64::from(a)));
            row == col || bits % 100 >= percent as u64
        };
        let kept = |row: usize| self.row(row).iter().filter(move |&col| stays(row, col));
        Self::with_length_of(
            self.rows,
            self.cols,
            |row| kept(row).count() as u64,
            |row, columns| columns.iter_mut().zip(kept(row)).for_each(|(c, kept)| *c = *kept),
        )
    }

    /// The rows and columns of a square pattern that `kept` names; columns of kept rows are kept.
    pub(super) fn restricted_to(&self, kept: &[bool]) -> Result<Self, GenerateError> {
        let rows: Vec<u32> = (0..self.rows as u32).filter(|&row| kept[row as usize]).collect();
        let mut number = vec![u32::MAX; self.rows];
        for (new, &old) in rows.iter().enumerate() {
            number[old as usize] = new as u32;
        }
        Self::with_length_of(
            rows.len(),
            rows.len(),
            |row| self.row(rows[row] as usize).len() as u64,
            |row, columns| {
                for (column, &old) in columns.iter_mut().zip(self.row(rows[row] as usize)) {
                    *column = number[old as usize];
                }
            },
        )
    }

    /// The rows and columns of a square pattern in another order.
    pub(super) fn renumbered(self, to: Numbering, seed: u64) -> Result<Self, GenerateError> {
        let order = match to {
            Numbering::Natural => return Ok(self),
            Numbering::CuthillMckee => self.reverse_cuthill_mckee(),
            Numbering::Random => {
                let mut order: Vec<u32> = (0..self.rows as u32).collect();
                Random::new(seed, u64::MAX).shuffle(&mut order);
                order
            }
        };
        let mut number = vec![0; self.rows];
        for (new, &old) in order.iter().enumerate() {
            number[old as usize] = new as u32;
        }
        let old = |row: usize| self.row(order[row] as usize);
        Self::with_length_of(
            self.rows,
            self.cols,
            |row| old(row).len() as u64,
            |row, columns| {
                for (column, &old) in columns.iter_mut().zip(old(row)) {
                    *column = number[old as usize];
                }
                columns.sort_unstable();
            },
        )
    }

    /// The old numbers in the order of the new ones (Cuthill, McKee: "Reducing the bandwidth of
    /// sparse symmetric matrices", 1969; reversed by George). Each component starts at a node that
    /// is far from its first one.
    fn reverse_cuthill_mckee(&self) -> Vec<u32> {
        let n = self.rows;
        let degree = |node: u32| self.row(node as usize).len();
        let mut order: Vec<u32> = Vec::with_capacity(n);
        // 1: reached by the search for a start; 2: numbered.
        let mut reached = vec![0u8; n];
        let mut neighbours = Vec::new();
        for first in 0..n as u32 {
            if reached[first as usize] != 0 {
                continue;
            }
            let mut start = first;
            for pass in [1, 2] {
                let begin = order.len();
                order.push(start);
                reached[start as usize] = pass;
                let mut next = begin;
                while next < order.len() {
                    let node = order[next] as usize;
                    next += 1;
                    neighbours.clear();
                    for &other in self.row(node) {
                        if reached[other as usize] < pass {
                            reached[other as usize] = pass;
                            neighbours.push(other);
                        }
                    }
                    neighbours.sort_by_key(|&other| degree(other));
                    order.extend(&neighbours);
                }
                if pass == 1 {
                    start = order[order.len() - 1];
                    order.truncate(begin);
                }
            }
        }
        order.reverse();
        order
    }

    /// Each row and column becomes `count` of them, coupled densely.
    pub(super) fn with_unknowns(self, count: usize) -> Result<Self, GenerateError> {
        let problem = |problem: &str| GenerateError::Parameter {
            what: "unknowns of a node",
            problem: problem.to_owned(),
        };
        if count == 1 {
            return Ok(self);
        }
        if count == 0 {
            return Err(problem("are 0; at least 1 is needed"));
        }
        let too_many = || problem("make the matrix too large");
        let rows = self.rows.checked_mul(count).ok_or_else(too_many)?;
        let cols = self.cols.checked_mul(count).ok_or_else(too_many)?;
        Self::with_length_of(
            rows,
            cols,
            |row| self.row(row / count).len() as u64 * count as u64,
            |row, columns| {
                for (columns, &node) in columns.chunks_exact_mut(count).zip(self.row(row / count)) {
                    columns.iter_mut().zip(node * count as u32..).for_each(|(c, col)| *c = col);
                }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{grids, mesh};
    use super::*;

    /// Entry (j, i) exists wherever (i, j) does.
    fn is_symmetric(pattern: &Pattern) -> bool {
        (0..pattern.rows).all(|row| {
            let mirrored = |&j: &u32| pattern.row(j as usize).binary_search(&(row as u32)).is_ok();
            pattern.row(row).iter().all(mirrored)
        })
    }

    fn bandwidth(pattern: &Pattern) -> usize {
        let of = |row: usize| pattern.row(row).iter().map(move |&col| row.abs_diff(col as usize));
        (0..pattern.rows).flat_map(of).max().unwrap_or(0)
    }

    #[test]
    fn numberings_keep_the_graph_and_change_its_bandwidth() {
        let mesh = || mesh::triangles(30, 1).unwrap();
        let random = mesh().renumbered(Numbering::Random, 5).unwrap();
        assert!(is_symmetric(&random) && bandwidth(&random) > 800);
        assert_eq!(random.indices.len(), mesh().indices.len());
        let back = random.renumbered(Numbering::CuthillMckee, 1).unwrap();
        assert!(is_symmetric(&back) && bandwidth(&back) < 90, "{}", bandwidth(&back));
        let mut degrees = [mesh(), back]
            .map(|pattern| (0..pattern.rows).map(|row| pattern.row(row).len()).collect::<Vec<_>>());
        degrees.iter_mut().for_each(|degrees| degrees.sort_unstable());
        assert_eq!(degrees[0], degrees[1]);
    }

    #[test]
    fn components_are_numbered_one_after_the_other() {
        let two = Pattern::from_entries(4, 4, vec![2, 1 << 32 | 3, 2 << 32, 3 << 32 | 1]).unwrap();
        let order = two.reverse_cuthill_mckee();
        assert_eq!(order, [1, 3, 0, 2]);
    }

    #[test]
    fn thinning_keeps_the_diagonal_and_symmetry() {
        let full = grids::banded(2000, 6, 6).unwrap().indices.len();
        let thin = grids::banded(2000, 6, 6).unwrap().thinned(40, true, 1).unwrap();
        assert!(is_symmetric(&thin));
        assert!((0..2000).all(|row| thin.row(row).contains(&(row as u32))));
        let share = (thin.indices.len() - 2000) as f64 / (full - 2000) as f64;
        assert!((0.57..0.63).contains(&share), "{share}");
        let other = grids::banded(2000, 6, 6).unwrap().thinned(40, false, 1).unwrap();
        assert!(!is_symmetric(&other));
    }

    #[test]
    fn unknowns_of_a_node_share_their_columns() {
        let pattern = grids::banded(3, 1, 0).unwrap().with_unknowns(2).unwrap();
        assert_eq!((pattern.rows, pattern.cols), (6, 6));
        assert_eq!(pattern.row(2), [0, 1, 2, 3]);
        assert_eq!(pattern.row(3), [0, 1, 2, 3]);
        assert!(grids::diagonal(3).unwrap().with_unknowns(0).is_err());
        assert!(grids::diagonal(3).unwrap().with_unknowns(usize::MAX).is_err());
    }
}

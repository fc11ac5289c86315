//! A symmetric pattern whose rows have given lengths.

use rayon::prelude::*;

use super::GenerateError;
use super::columns::Grid;
use super::pattern::{Pattern, for_rows};
use super::random::Random;
use spm_formats::csr::{check_limits, pointers_of};

/// Where the partners of a row lie.
#[derive(Debug, Clone, Copy)]
pub(super) enum Partners {
    /// In the bands of a node-numbered grid, but for `far_percent` of them, which lie anywhere.
    Grid { grid: Grid, far_percent: usize },
    /// Anywhere; long rows choose first.
    Anywhere,
}

/// The edges found so far, kept in both rows, each with room for exactly its length.
struct Graph {
    row_ptr: Vec<u32>,
    indices: Vec<u32>,
    /// Entries that each row has.
    filled: Vec<u32>,
    /// Forest over 0..=n: the root of j is the first row from j on that may still take an entry
    /// (n when there is none).
    next_open: Vec<u32>,
    /// Stamps of the columns of the row in hand.
    mark: Vec<u32>,
}

/// Builds a pattern in which row i has `lengths[i]` entries, the diagonal among them when
/// `diagonal` is set and the row is not empty.
///
/// Three phases: each row takes half of its partners at the places that the grid gives; what is
/// missing is filled greedily; the few ends that then find no partner are spliced into edges.
pub(super) fn realise(
    lengths: &[u32],
    diagonal: bool,
    partners: Partners,
    seed: u64,
) -> Result<Pattern, GenerateError> {
    let n = lengths.len();
    let entries = lengths.iter().map(|&length| u64::from(length)).sum();
    check_limits(n as u64, n as u64, entries)?;
    let mut graph = Graph::new(lengths);
    for (row, &length) in lengths.iter().enumerate() {
        if diagonal && length > 0 {
            graph.push(row, row);
        }
        if graph.missing(row) == 0 {
            graph.close(row);
        }
    }
    let ends = (0..n).map(|row| u64::from(graph.missing(row))).sum::<u64>();
    if ends % 2 == 1 {
        return Err(GenerateError::Unrealisable { rows: n, entries: entries as usize });
    }
    let mut random = Random::new(seed, 1);
    let mut order: Vec<u32> = (0..n as u32).collect();
    match partners {
        Partners::Grid { grid, far_percent } => {
            graph.follow_grid(&grid, far_percent, &mut random);
        }
        Partners::Anywhere => {
            order.par_sort_by_key(|&row| (std::cmp::Reverse(lengths[row as usize]), row));
        }
    }
    let near = matches!(partners, Partners::Grid { .. });
    let unmatched = graph.fill(&order, near, &mut random);
    graph.splice(unmatched, &mut random)?;
    let Graph { row_ptr, mut indices, .. } = graph;
    for_rows(&row_ptr, 0, &mut indices, &|_, row: &mut [u32]| row.sort_unstable());
    Ok(Pattern { rows: n, cols: n, row_ptr, indices })
}

impl Graph {
    fn new(lengths: &[u32]) -> Self {
        let row_ptr = pointers_of(lengths.iter().copied());
        let n = lengths.len();
        Self {
            indices: vec![0; row_ptr[n] as usize],
            filled: vec![0; n],
            next_open: (0..=n as u32).collect(),
            mark: vec![u32::MAX; n],
            row_ptr,
        }
    }

    fn rows(&self) -> usize {
        self.filled.len()
    }

    fn missing(&self, row: usize) -> u32 {
        self.row_ptr[row + 1] - self.row_ptr[row] - self.filled[row]
    }

    fn columns(&self, row: usize) -> &[u32] {
        let start = self.row_ptr[row] as usize;
        &self.indices[start..start + self.filled[row] as usize]
    }

    fn push(&mut self, row: usize, column: usize) {
        self.indices[(self.row_ptr[row] + self.filled[row]) as usize] = column as u32;
        self.filled[row] += 1;
    }

    fn close(&mut self, row: usize) {
        self.next_open[row] = row as u32 + 1;
    }

    /// The first row from `from` on that may take an entry, or n.
    fn open_from(&mut self, from: usize) -> usize {
        let mut at = from.min(self.rows());
        while self.next_open[at] as usize != at {
            // Halving the path keeps later searches short.
            self.next_open[at] = self.next_open[self.next_open[at] as usize];
            at = self.next_open[at] as usize;
        }
        at
    }

    fn connect(&mut self, a: usize, b: usize) {
        for (row, column) in [(a, b), (b, a)] {
            self.push(row, column);
            if self.missing(row) == 0 {
                self.close(row);
            }
        }
    }

    fn adjacent(&self, a: usize, b: usize) -> bool {
        let (a, b) = if self.filled[a] <= self.filled[b] { (a, b) } else { (b, a) };
        self.columns(a).contains(&(b as u32))
    }

    /// Half of each row's partners: a stretch after the diagonal, one in each band above it, and
    /// some anywhere.
    fn follow_grid(&mut self, grid: &Grid, far_percent: usize, random: &mut Random) {
        let n = self.rows();
        let distances = grid.distances(n);
        for row in 0..n {
            let degree = self.row_ptr[row + 1] - self.row_ptr[row] - self.filled_diagonal(row);
            let half = degree as usize / 2 + (degree as usize % 2) * random.below(2);
            let mut total = half.min(self.missing(row) as usize);
            let far = match far_percent {
                0 => 0,
                percent => (0..total).filter(|_| random.below(100) < percent).count(),
            };
            total -= far;
            let share = total / (distances.len() + 1);
            let first = row - row % grid.block;
            let mut from = row + 1;
            for band in 0..=distances.len() {
                let length = if band == 0 { total - share * distances.len() } else { share };
                if band > 0 {
                    let centre = first + distances[band - 1];
                    from = from.max(centre.saturating_sub(length * grid.spread / 2));
                }
                for _ in 0..length {
                    let partner = self.open_from(from + random.below(2 * grid.spread - 1));
                    if partner == n {
                        break;
                    }
                    self.connect(row, partner);
                    from = partner + 1;
                }
            }
            for _ in 0..far {
                let partner = self.open_from(row + 1 + random.below(n - row));
                if partner < n && !self.adjacent(row, partner) {
                    self.connect(row, partner);
                }
            }
        }
    }

    fn filled_diagonal(&self, row: usize) -> u32 {
        u32::from(self.filled[row] > 0 && self.indices[self.row_ptr[row] as usize] == row as u32)
    }

    /// Gives every row of `order` the partners that it still misses, the nearest after it or any,
    /// among the rows that come later in `order`. Returns the ends that found none.
    fn fill(&mut self, order: &[u32], near: bool, random: &mut Random) -> Vec<u32> {
        const TRIES: usize = 8;
        let n = self.rows();
        let mut unmatched = Vec::new();
        for &row in order {
            let row = row as usize;
            if self.missing(row) == 0 {
                continue;
            }
            self.close(row);
            for slot in self.row_ptr[row]..self.row_ptr[row] + self.filled[row] {
                self.mark[self.indices[slot as usize] as usize] = row as u32;
            }
            let mut from = row + 1;
            'ends: while self.missing(row) > 0 {
                for _ in 0..TRIES {
                    let mut start = if near { from + random.below(2) } else { random.below(n) };
                    for _ in 0..TRIES {
                        let mut partner = self.open_from(start);
                        if partner == n {
                            partner = self.open_from(0);
                        }
                        if partner == n {
                            break 'ends;
                        }
                        if self.mark[partner] != row as u32 {
                            self.connect(row, partner);
                            self.mark[partner] = row as u32;
                            from = partner + 1;
                            continue 'ends;
                        }
                        start = partner + 1;
                    }
                    from = start;
                }
                break;
            }
            unmatched.extend(std::iter::repeat_n(row as u32, self.missing(row) as usize));
        }
        unmatched
    }

    /// Matches the ends that are left: an edge (a, b) becomes (u, a) and (v, b).
    fn splice(&mut self, mut ends: Vec<u32>, random: &mut Random) -> Result<(), GenerateError> {
        while let (Some(u), Some(v)) = (ends.pop(), ends.pop()) {
            let (u, v) = (u as usize, v as usize);
            if u != v && !self.adjacent(u, v) {
                self.connect(u, v);
            } else if !self.splice_one(u, v, random) {
                return Err(GenerateError::Unrealisable {
                    rows: self.rows(),
                    entries: self.indices.len(),
                });
            }
        }
        Ok(())
    }

    fn splice_one(&mut self, u: usize, v: usize, random: &mut Random) -> bool {
        const TRIES: usize = 20_000;
        let n = self.rows();
        let mut window = 64;
        for attempt in 1..=TRIES {
            if attempt % 64 == 0 {
                window = (2 * window).min(2 * n);
            }
            let shifted = (u + random.below(window + 1)).checked_sub(window / 2);
            let Some(a) = shifted.filter(|&a| a < n && a != u && a != v) else { continue };
            if self.filled[a] == 0 {
                continue;
            }
            let slot = random.below(self.filled[a] as usize);
            let b = self.columns(a)[slot] as usize;
            if b == a || b == u || b == v || self.adjacent(u, a) || self.adjacent(v, b) {
                continue;
            }
            let back = self.columns(b).iter().position(|&column| column as usize == a);
            let back = back.expect("an edge stands in both of its rows");
            self.indices[self.row_ptr[a] as usize + slot] = u as u32;
            self.indices[self.row_ptr[b] as usize + back] = v as u32;
            self.push(u, a);
            self.push(v, b);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lengths: &[u32], diagonal: bool, partners: Partners) {
        let pattern = realise(lengths, diagonal, partners, 3).unwrap();
        let row = |i: usize| {
            &pattern.indices[pattern.row_ptr[i] as usize..pattern.row_ptr[i + 1] as usize]
        };
        for (i, &length) in lengths.iter().enumerate() {
            assert_eq!(row(i).len(), length as usize);
            assert!(row(i).windows(2).all(|pair| pair[0] < pair[1]), "{i}: {:?}", row(i));
            assert_eq!(row(i).contains(&(i as u32)), diagonal && length > 0, "{i}");
            for &j in row(i) {
                assert!(row(j as usize).binary_search(&(i as u32)).is_ok(), "({i}, {j})");
            }
        }
    }

    fn grid(dimensions: u32, block: usize, spread: usize) -> Partners {
        Partners::Grid { grid: Grid { dimensions, block, spread }, far_percent: 0 }
    }

    #[test]
    fn lengths_and_symmetry_hold() {
        let mut random = Random::new(4, 4);
        let with_far =
            Partners::Grid { grid: Grid { dimensions: 2, block: 1, spread: 2 }, far_percent: 50 };
        let local = [grid(1, 1, 1), grid(2, 1, 3), grid(3, 3, 1)];
        for partners in local.into_iter().chain([with_far, Partners::Anywhere]) {
            for n in [2, 10, 400, 3000] {
                let mut lengths: Vec<u32> =
                    (0..n).map(|_| random.below(n.min(30) / 2 + 1) as u32).collect();
                if lengths.iter().sum::<u32>() % 2 == 1 {
                    lengths[0] ^= 1;
                }
                check(&lengths, false, partners);
                let with_diagonal: Vec<u32> = lengths.iter().map(|&length| length + 1).collect();
                check(&with_diagonal, true, partners);
            }
        }
    }

    #[test]
    fn a_hub_and_a_complete_graph() {
        let mut star = vec![1; 50];
        star[49] = 49;
        check(&star, false, Partners::Anywhere);
        check(&[5; 6], false, grid(2, 1, 1));
        check(&[6; 6], true, Partners::Anywhere);
    }

    #[test]
    fn odd_sums_and_impossible_lengths_are_refused() {
        assert!(realise(&[1, 1, 1], false, Partners::Anywhere, 1).is_err());
        assert!(realise(&[2, 2], false, Partners::Anywhere, 1).is_err());
        assert!(realise(&[], false, Partners::Anywhere, 1).unwrap().indices.is_empty());
    }
}

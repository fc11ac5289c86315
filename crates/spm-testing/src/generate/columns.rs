//! Generates the column indices of rows of given lengths.

use super::random::Random;

/// The distribution of the columns of a row.
#[derive(Debug, Clone)]
pub(super) enum Locality {
    /// Near the diagonal and near the diagonals of a node-numbered grid.
    Grid(Grid),
    /// `local_percent` of the entries near the diagonal, the rest in columns of Zipf popularity.
    Web { local_percent: usize },
    /// One in five in columns of Zipf popularity, the rest at distances from the diagonal of which
    /// each power of two up to 2^16 is equally likely.
    Hosts,
    /// Near the diagonal, some anywhere, and in a few dense columns (number, entries).
    Scattered { far_percent: usize, dense: Vec<(u32, u32)> },
    /// Anywhere.
    Uniform,
}

/// The neighbourhood of a node-numbered grid.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    /// 1 (a band), 2 or 3: the band is repeated at distance n^(1/2), or n^(1/3) and n^(2/3).
    pub(super) dimensions: u32,
    /// Rows of one node; they start with the same columns.
    pub(super) block: usize,
    /// Width of a stretch over its number of entries; 1 leaves no gaps.
    pub(super) spread: usize,
}

impl Grid {
    /// Distances of the bands beside the main one.
    pub(super) fn distances(&self, n: usize) -> Vec<usize> {
        let nodes = n / self.block;
        let side = match self.dimensions {
            2 => nodes.isqrt(),
            3 => (1usize..).take_while(|s| s.pow(3) <= nodes).last().unwrap_or(1),
            _ => return Vec::new(),
        };
        let distances = [side * self.block, side * side * self.block];
        let count = self.dimensions as usize - 1;
        distances[..count].iter().copied().filter(|&d| d > 1 && d < n).collect()
    }
}

/// The columns of all rows of a `rows` x `cols` matrix.
pub(super) struct ColumnSource {
    rows: usize,
    cols: usize,
    seed: u64,
    locality: Locality,
    distances: Vec<usize>,
    popularity: Zipf,
}

impl ColumnSource {
    pub(super) fn new(rows: usize, cols: usize, locality: Locality, seed: u64) -> Self {
        let distances = match &locality {
            Locality::Grid(grid) => grid.distances(cols),
            _ => Vec::new(),
        };
        Self { rows, cols, seed, locality, distances, popularity: Zipf::new(cols, seed) }
    }

    /// Fills `out` with distinct ascending columns; in a square matrix one is the diagonal.
    pub(super) fn fill(&self, row: usize, out: &mut [u32]) {
        if out.is_empty() {
            return;
        }
        let stream = match &self.locality {
            Locality::Grid(grid) => row / grid.block,
            _ => row,
        };
        let mut random = Random::new(self.seed, stream as u64 + 1);
        // A row that covers much of the matrix has no locality left to choose.
        if out.len() > self.cols / 4 {
            stretch(&mut random, 0, self.cols, out);
        } else {
            match &self.locality {
                Locality::Grid(grid) => self.grid(grid, row, &mut random, out),
                Locality::Web { local_percent } => {
                    let local = out.len() * local_percent / 100;
                    self.local(row, &mut random, &mut out[..local]);
                    self.draw(local, &mut random, out, |random| self.popularity.draw(random));
                }
                Locality::Hosts => self.draw(0, &mut random, out, |random| self.link(row, random)),
                Locality::Scattered { far_percent, dense } => {
                    self.scattered(*far_percent, dense, row, &mut random, out);
                }
                Locality::Uniform => stretch(&mut random, 0, self.cols, out),
            }
        }
        if self.rows == self.cols && !matches!(self.locality, Locality::Uniform) {
            include(row as u32, out);
        }
    }

    /// The column that lies in the matrix as `row` does.
    fn centre(&self, row: usize) -> usize {
        (row as u128 * self.cols as u128 / self.rows as u128) as usize
    }

    /// First of `width` columns around `centre`.
    fn window(&self, centre: usize, width: usize) -> usize {
        centre.saturating_sub(width / 2).min(self.cols - width)
    }

    /// Contiguous columns around the diagonal.
    fn local(&self, row: usize, random: &mut Random, out: &mut [u32]) {
        let width = (2 * out.len()).min(self.cols);
        stretch(random, self.window(self.centre(row), width), width, out);
    }

    /// The target of a link of [`Locality::Hosts`].
    fn link(&self, row: usize, random: &mut Random) -> u32 {
        if random.below(5) == 0 {
            return self.popularity.draw(random);
        }
        let reach = (2usize << random.below(16)).min(self.cols);
        (self.window(self.centre(row), reach) + random.below(reach)) as u32
    }

    /// The dense columns that the row hits, then columns around the diagonal and some anywhere.
    fn scattered(
        &self,
        far_percent: usize,
        dense: &[(u32, u32)],
        row: usize,
        random: &mut Random,
        out: &mut [u32],
    ) {
        let mut taken = 0;
        for &(column, entries) in dense {
            let hit = random.below(self.rows) < entries as usize;
            if hit && taken + 1 < out.len() {
                out[taken] = column;
                taken += 1;
            }
        }
        let near = (4 * out.len()).max(16).min(self.cols);
        let first = self.window(self.centre(row), near);
        self.draw(taken, random, out, |random| {
            if random.below(100) < far_percent {
                random.below(self.cols) as u32
            } else {
                (first + random.below(near)) as u32
            }
        });
    }

    /// One stretch per band, moved apart where they would overlap.
    fn grid(&self, grid: &Grid, row: usize, random: &mut Random, out: &mut [u32]) {
        let centre = self.centre(row - row % grid.block);
        let bands = 2 * self.distances.len();
        let share = if bands == 0 { 0 } else { out.len() / (bands + 2) };
        let near = out.len() - bands * share;
        let centres = self.distances.iter().rev().map(|&d| centre.checked_sub(d));
        let centres = centres
            .chain([Some(centre)])
            .chain(self.distances.iter().map(|&d| Some(centre + d).filter(|&c| c < self.cols)));
        // What a band outside the matrix would have held goes to the main one.
        let mut stretches: Vec<(usize, usize)> = Vec::with_capacity(bands + 1);
        let (mut main, mut lost) = (0, 0);
        for (i, centre) in centres.enumerate() {
            let length = if i == bands / 2 { near } else { share };
            match centre {
                Some(centre) => {
                    if i == bands / 2 {
                        main = stretches.len();
                    }
                    stretches.push((centre, length));
                }
                None => lost += length,
            }
        }
        stretches[main].1 += lost;
        let tight = out.len() * grid.spread > self.cols / 2;
        let spread = if tight { 1 } else { grid.spread };
        let mut end = 0;
        for (start, length) in &mut stretches {
            *start = start.saturating_sub(*length * spread / 2).max(end);
            end = *start + *length * spread;
        }
        let mut limit = self.cols;
        for (start, length) in stretches.iter_mut().rev() {
            *start = (*start).min(limit - *length * spread);
            limit = *start;
        }
        let mut rest = out;
        for (start, length) in stretches {
            let (part, tail) = rest.split_at_mut(length);
            stretch(random, start, length * spread, part);
            rest = tail;
        }
    }

    /// Completes `out`, of which `done` columns are set, by drawing until all are distinct.
    fn draw(
        &self,
        mut done: usize,
        random: &mut Random,
        out: &mut [u32],
        column: impl Fn(&mut Random) -> u32,
    ) {
        for _ in 0..16 {
            for slot in &mut out[done..] {
                *slot = column(random);
            }
            out.sort_unstable();
            done = deduplicate(out);
            if done == out.len() {
                return;
            }
        }
        // The popular columns are exhausted: the next free ones from a random place on.
        let mut set = out[..done].to_vec();
        let mut next = random.below(self.cols) as u32;
        while set.len() < out.len() {
            if let Err(position) = set.binary_search(&next) {
                set.insert(position, next);
            }
            next = (next + 1) % self.cols as u32;
        }
        out.copy_from_slice(&set);
    }
}

/// Distinct ascending columns of `start..start + width`: sorted draws, each moved up by its rank.
fn stretch(random: &mut Random, start: usize, width: usize, out: &mut [u32]) {
    let room = width - out.len();
    if room > 0 {
        for slot in out.iter_mut() {
            *slot = random.below(room + 1) as u32;
        }
        out.sort_unstable();
    } else {
        out.fill(0);
    }
    for (rank, slot) in out.iter_mut().enumerate() {
        *slot += (start + rank) as u32;
    }
}

/// Moves the distinct elements of a sorted slice to its front and counts them.
fn deduplicate(sorted: &mut [u32]) -> usize {
    let mut kept = 0;
    for i in 0..sorted.len() {
        if i == 0 || sorted[i] != sorted[kept - 1] {
            sorted[kept] = sorted[i];
            kept += 1;
        }
    }
    kept
}

/// Puts `column` in the place of a neighbour when it is not there.
fn include(column: u32, out: &mut [u32]) {
    if let Err(position) = out.binary_search(&column) {
        out[position.min(out.len() - 1)] = column;
    }
}

/// Columns whose popularity falls as rank^-0.9, the ranks scattered over the matrix.
///
/// In-degrees of the web have a power-law density of exponent 2.1 (Broder et al.: "Graph structure
/// in the web", Computer Networks 33, 2000), which is this rank exponent, 1 / (2.1 - 1).
struct Zipf {
    cols: usize,
    /// Scaled cumulative probability of the ranks below 2^(k+1).
    octaves: Vec<u64>,
    multiplier: usize,
    shift: usize,
}

impl Zipf {
    fn new(cols: usize, seed: u64) -> Self {
        const EXPONENT: f64 = 0.9;
        // Ranks start at 1; inside an octave they are equally likely.
        let mut weights = Vec::new();
        let mut first = 1usize;
        while first <= cols {
            let size = first.min(cols + 1 - first);
            weights.push(size as f64 * libm::pow(first as f64, -EXPONENT));
            first *= 2;
        }
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let octaves = weights
            .iter()
            .map(|weight| {
                sum += weight;
                (sum / total * u64::MAX as f64) as u64
            })
            .collect();
        let mut random = Random::new(seed, 0);
        let mut multiplier = random.below(cols).max(1);
        while greatest_common_divisor(multiplier, cols) != 1 {
            multiplier += 1;
        }
        Self { cols, octaves, multiplier, shift: random.below(cols) }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        let bits = random.bits();
        let octave = self.octaves.partition_point(|&end| end < bits).min(self.octaves.len() - 1);
        let first = 1usize << octave;
        let rank = first + random.below(first.min(self.cols + 1 - first));
        ((rank as u128 * self.multiplier as u128 + self.shift as u128) % self.cols as u128) as u32
    }
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn localities() -> [Locality; 7] {
        [
            Locality::Grid(Grid { dimensions: 1, block: 1, spread: 1 }),
            Locality::Grid(Grid { dimensions: 2, block: 1, spread: 4 }),
            Locality::Grid(Grid { dimensions: 3, block: 3, spread: 1 }),
            Locality::Web { local_percent: 40 },
            Locality::Hosts,
            Locality::Scattered { far_percent: 10, dense: vec![(3, 500), (900, 20)] },
            Locality::Uniform,
        ]
    }

    #[test]
    fn columns_are_distinct_ascending_and_inside() {
        for locality in localities() {
            for (rows, cols) in [(1000, 1000), (1000, 77), (40, 5000), (3, 3), (1, 1), (5, 1)] {
                let uniform = matches!(locality, Locality::Uniform);
                let dense = match &locality {
                    Locality::Scattered { far_percent, .. } => {
                        Locality::Scattered { far_percent: *far_percent, dense: vec![(0, 2)] }
                    }
                    other => other.clone(),
                };
                let source = ColumnSource::new(rows, cols, dense, 11);
                for row in 0..rows {
                    for length in [0, 1, 2, 5, 40, cols / 4, cols / 2, cols] {
                        let mut out = vec![0; length.min(cols)];
                        source.fill(row, &mut out);
                        assert!(out.windows(2).all(|p| p[0] < p[1]), "{locality:?} {out:?}");
                        assert!(out.iter().all(|&c| (c as usize) < cols), "{locality:?} {out:?}");
                        let diagonal = out.contains(&(row as u32));
                        assert!(diagonal || uniform || rows != cols || out.is_empty());
                    }
                }
            }
        }
    }

    #[test]
    fn popular_columns_are_popular() {
        let zipf = Zipf::new(100_000, 1);
        let mut random = Random::new(1, 1);
        let mut counts = vec![0u32; 100_000];
        for _ in 0..200_000 {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert!(counts[0] > 4000 && counts[0] < 12_000, "{}", counts[0]);
        assert!(counts[10_000] <= 3, "{}", counts[10_000]);
    }

    #[test]
    fn a_dense_column_gets_its_entries() {
        let locality = Locality::Scattered { far_percent: 5, dense: vec![(17, 5000)] };
        let source = ColumnSource::new(10_000, 10_000, locality, 2);
        let mut out = [0; 6];
        let hits = (0..10_000).filter(|&row| {
            source.fill(row, &mut out);
            out.contains(&17)
        });
        assert!((4700..5400).contains(&hits.count()));
    }

    #[test]
    fn a_band_stays_near_the_diagonal() {
        let grid = Grid { dimensions: 1, block: 1, spread: 1 };
        let source = ColumnSource::new(500, 500, Locality::Grid(grid), 2);
        for row in 0..500u32 {
            let mut out = [0; 7];
            source.fill(row as usize, &mut out);
            assert!(out.iter().all(|&c| c.abs_diff(row) <= 7), "{row}: {out:?}");
        }
    }
}

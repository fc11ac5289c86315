//! A stencil on a grid of boxes, one for each rank: what scaling is measured on.

use spm_formats::{FormatError, Scalar};

use crate::{Partition, Rows};

/// A cube or box of points divided into one box of points for each rank. Points are numbered box after
/// box, so that a rank's rows are contiguous; inside a box x is fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boxes {
    /// Points along each axis.
    points: [u64; 3],
    /// Boxes along each axis.
    boxes: [u64; 3],
}

impl Boxes {
    /// Divides `points` points along x, y and z into boxes for `ranks` ranks, with the least surface.
    ///
    /// # Panics
    /// When `ranks` is 0.
    pub fn new(points: [u64; 3], ranks: usize) -> Self {
        assert!(ranks > 0, "no ranks");
        Self { points, boxes: factors(ranks as u64, points) }
    }

    /// As many boxes of `side` points a side as there are ranks.
    ///
    /// # Panics
    /// When `ranks` is 0.
    pub fn of_equal_size(side: u64, ranks: usize) -> Self {
        assert!(ranks > 0, "no ranks");
        let boxes = factors(ranks as u64, [1 << 20; 3]);
        Self { points: boxes.map(|boxes| boxes * side), boxes }
    }

    /// Points along each axis.
    pub fn points(&self) -> [u64; 3] {
        self.points
    }

    /// Boxes along each axis.
    pub fn boxes(&self) -> [u64; 3] {
        self.boxes
    }

    /// The points of each rank.
    pub fn partition(&self) -> Partition {
        let ranks = self.boxes.iter().product::<u64>();
        let mut bounds = vec![0];
        for rank in 0..ranks {
            let size = self.sides(self.position(rank)).iter().product::<u64>();
            bounds.push(bounds[rank as usize] + size);
        }
        let total = self.points.iter().product();
        Partition::from_bounds(total, bounds).expect("boxes cover all points")
    }

    /// The rows of the 27-point stencil for the points of `rank`: each point is coupled with all of the
    /// surrounding cube. Values are `value(row, column)`.
    ///
    /// # Errors
    /// As [`Rows::new`].
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn stencil27<T: Scalar>(
        &self,
        rank: usize,
        value: impl Fn(u64, u64) -> T,
    ) -> Result<Rows<T>, FormatError> {
        let partition = self.partition();
        let own = partition.range(rank);
        let at = self.position(rank as u64);
        let (starts, sides) = (self.starts(at), self.sides(at));
        Rows::generate(own.clone(), partition.total(), |i, row| {
            let local = i - own.start;
            let point = [
                starts[0] + local % sides[0],
                starts[1] + local / sides[0] % sides[1],
                starts[2] + local / sides[0] / sides[1],
            ];
            let near = |axis: usize| {
                let end = (point[axis] + 2).min(self.points[axis]);
                point[axis].saturating_sub(1)..end
            };
            for z in near(2) {
                for y in near(1) {
                    for x in near(0) {
                        let j = self.number([x, y, z], &partition);
                        row.push((j, value(i, j)));
                    }
                }
            }
            // Neighbours in other boxes have numbers before and behind.
            row.sort_unstable_by_key(|entry| entry.0);
        })
    }

    fn position(&self, rank: u64) -> [u64; 3] {
        let [x, y, _] = self.boxes;
        [rank % x, rank / x % y, rank / x / y]
    }

    /// Points before box `number` of an axis, of boxes whose sizes differ by one at most.
    fn start(&self, axis: usize, number: u64) -> u64 {
        let (size, rest) =
            (self.points[axis] / self.boxes[axis], self.points[axis] % self.boxes[axis]);
        number * size + number.min(rest)
    }

    fn starts(&self, at: [u64; 3]) -> [u64; 3] {
        [0, 1, 2].map(|axis| self.start(axis, at[axis]))
    }

    fn sides(&self, at: [u64; 3]) -> [u64; 3] {
        [0, 1, 2].map(|axis| self.start(axis, at[axis] + 1) - self.start(axis, at[axis]))
    }

    /// The number of a point.
    fn number(&self, point: [u64; 3], partition: &Partition) -> u64 {
        let at = [0, 1, 2].map(|axis| {
            let (size, rest) =
                (self.points[axis] / self.boxes[axis], self.points[axis] % self.boxes[axis]);
            let large = rest * (size + 1);
            if point[axis] < large {
                point[axis] / (size + 1)
            } else {
                rest + (point[axis] - large) / size.max(1)
            }
        });
        let rank = at[0] + self.boxes[0] * (at[1] + self.boxes[1] * at[2]);
        let (starts, sides) = (self.starts(at), self.sides(at));
        let [x, y, z] = [0, 1, 2].map(|axis| point[axis] - starts[axis]);
        partition.range(rank as usize).start + x + sides[0] * (y + sides[1] * z)
    }
}

/// The division of `ranks` into three factors whose boxes have the least surface, the most along z.
fn factors(ranks: u64, points: [u64; 3]) -> [u64; 3] {
    let divisors =
        |number: u64| (1..=number).filter(move |divisor| number.is_multiple_of(*divisor));
    let all = divisors(ranks).flat_map(|x| divisors(ranks / x).map(move |y| [x, y, ranks / x / y]));
    let surface = |boxes: &[u64; 3]| {
        let side = |axis: usize| points[axis] as f64 / boxes[axis] as f64;
        side(0) * side(1) + side(1) * side(2) + side(0) * side(2)
    };
    all.min_by(|a, b| surface(a).total_cmp(&surface(b))).unwrap_or([1, 1, ranks])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_as_cubic_as_ranks_allow() {
        assert_eq!(factors(8, [100; 3]), [2, 2, 2]);
        assert_eq!(factors(2, [100; 3]), [1, 1, 2]);
        assert_eq!(factors(12, [100; 3]).iter().max(), Some(&3));
        assert_eq!(Boxes::of_equal_size(5, 4).points().iter().product::<u64>(), 4 * 125);
    }

    /// The number of entries, symmetry, and an empty box.
    #[test]
    fn every_division_is_the_same_stencil() {
        for (points, ranks) in [([5, 4, 3], 1), ([5, 4, 3], 4), ([5, 4, 3], 6), ([2, 2, 2], 27)] {
            let boxes = Boxes::new(points, ranks);
            let partition = boxes.partition();
            let total: u64 = points.iter().product();
            assert_eq!((partition.total(), partition.ranks()), (total, ranks));
            let mut entries = Vec::new();
            for rank in 0..ranks {
                let rows = boxes.stencil27(rank, |i, j| (i * 100 + j) as f64).unwrap();
                let first = partition.range(rank).start;
                for row in 0..rows.rows() {
                    let range = rows.row_ptr()[row]..rows.row_ptr()[row + 1];
                    entries
                        .extend(rows.col_ind()[range].iter().map(|&col| (first + row as u64, col)));
                }
            }
            let line = |n: u64| 3 * n - 2;
            assert_eq!(entries.len() as u64, points.iter().map(|&n| line(n)).product::<u64>());
            assert!(entries.iter().all(|&(i, j)| entries.binary_search(&(j, i)).is_ok()));
        }
    }
}

//! The division of rows, or columns, into one contiguous block for each rank.

use std::ops::Range;
use std::sync::Arc;

use spm_formats::partition;

use crate::PartitionError;

/// One contiguous block of 64-bit global indices for each rank. Blocks may be empty. Clones share the
/// bounds.
///
/// ```
/// use spm_dist::Partition;
///
/// let rows = Partition::even(10, 4);
/// assert_eq!((rows.range(0), rows.range(3)), (0..3, 8..10));
/// assert_eq!(rows.owner(8), 3);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// One more than there are ranks, ascending from 0.
    bounds: Arc<[u64]>,
}

impl Partition {
    /// Blocks whose sizes differ by one at most, the larger ones first.
    ///
    /// # Panics
    /// When `ranks` is 0.
    pub fn even(total: u64, ranks: usize) -> Self {
        assert!(ranks > 0, "no ranks");
        let (size, rest) = (total / ranks as u64, total % ranks as u64);
        Self { bounds: (0..=ranks as u64).map(|rank| rank * size + rank.min(rest)).collect() }
    }

    /// Blocks of rows with about the same number of entries, from the rows + 1 pointers of a CSR
    /// matrix. A row is never split.
    ///
    /// # Panics
    /// When `ranks` is 0 or `row_ptr` is empty.
    pub fn by_entries(row_ptr: &[u32], ranks: usize) -> Self {
        let bounds = partition::by_entries(row_ptr, ranks);
        Self { bounds: bounds.into_iter().map(|bound| bound as u64).collect() }
    }

    /// The blocks `bounds[rank]..bounds[rank + 1]`, which have to cover `0..total`.
    ///
    /// # Errors
    /// [`PartitionError::Bounds`] when the bounds do not ascend from 0 to `total`.
    pub fn from_bounds(total: u64, bounds: Vec<u64>) -> Result<Self, PartitionError> {
        let wrong = |position: usize, expected: String| {
            let found = bounds.get(position).copied();
            Err(PartitionError::Bounds { position, found, expected })
        };
        if bounds.first() != Some(&0) {
            return wrong(0, "0".to_owned());
        }
        if bounds.len() < 2 {
            return wrong(1, "one more bound than there are ranks".to_owned());
        }
        if let Some(position) = bounds.windows(2).position(|pair| pair[0] > pair[1]) {
            return wrong(position + 1, format!("at least {}", bounds[position]));
        }
        if bounds.last() != Some(&total) {
            return wrong(bounds.len() - 1, format!("{total}, the end"));
        }
        Ok(Self { bounds: bounds.into() })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Number of global indices.
    pub fn total(&self) -> u64 {
        self.bounds[self.ranks()]
    }

    /// The global indices of a rank.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn range(&self, rank: usize) -> Range<u64> {
        self.bounds[rank]..self.bounds[rank + 1]
    }

    /// Number of indices of a rank.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn len(&self, rank: usize) -> u64 {
        self.bounds[rank + 1] - self.bounds[rank]
    }

    /// Whether there is nothing to divide.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// The rank of a global index.
    ///
    /// # Panics
    /// When the index is not below [`Partition::total`].
    pub fn owner(&self, index: u64) -> usize {
        assert!(index < self.total(), "index {index} of {}", self.total());
        self.bounds.partition_point(|&bound| bound <= index) - 1
    }

    /// The ranges of ascending `indices` that belong to one rank each, with their ranks.
    pub(crate) fn owners(&self, indices: &[u64]) -> Vec<(usize, Range<usize>)> {
        let mut ranges: Vec<(usize, Range<usize>)> = Vec::new();
        let mut start = 0;
        while let Some(&first) = indices.get(start) {
            let rank = self.owner(first);
            let end = self.bounds[rank + 1];
            let length = indices[start..].partition_point(|&index| index < end);
            ranges.push((rank, start..start + length));
            start += length;
        }
        ranges
    }

    /// A number that tells partitions apart (FNV-1a of the bounds).
    pub(crate) fn digest(&self) -> u64 {
        let bytes = self.bounds.iter().flat_map(|bound| bound.to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_all_indices_and_owners_are_found() {
        for (total, ranks) in [(0, 1), (3, 7), (10, 4), (1 << 40, 3)] {
            let partition = Partition::even(total, ranks);
            assert_eq!((partition.total(), partition.ranks()), (total, ranks));
            assert_eq!((0..ranks).map(|rank| partition.len(rank)).sum::<u64>(), total);
            for rank in (0..ranks).filter(|&rank| partition.len(rank) > 0) {
                let range = partition.range(rank);
                assert_eq!(
                    (partition.owner(range.start), partition.owner(range.end - 1)),
                    (rank, rank)
                );
            }
        }
        let with_empty = Partition::from_bounds(5, vec![0, 0, 2, 2, 5]).unwrap();
        assert_eq!([0, 1, 2, 4].map(|index| with_empty.owner(index)), [1, 1, 3, 3]);
        assert_eq!(with_empty.owners(&[0, 1, 3, 4]), [(1, 0..2), (3, 2..4)]);
    }

    #[test]
    fn bounds_that_do_not_cover_the_rows_are_refused() {
        let message =
            |bounds: &[u64]| Partition::from_bounds(9, bounds.to_vec()).unwrap_err().to_string();
        assert_eq!(message(&[]), "partition bound 0: expected 0, found no more bounds");
        assert_eq!(message(&[1, 9]), "partition bound 0: expected 0, found 1");
        assert_eq!(message(&[0, 5, 4, 9]), "partition bound 2: expected at least 5, found 4");
        assert_eq!(message(&[0, 5, 8]), "partition bound 2: expected 9, the end, found 8");
        assert!(message(&[0]).contains("one more bound"));
    }

    #[test]
    fn entries_are_balanced() {
        let partition = Partition::by_entries(&[0, 4, 4, 4, 8, 10, 12], 3);
        assert_eq!(
            (0..3).map(|rank| partition.range(rank)).collect::<Vec<_>>(),
            [0..1, 1..4, 4..6]
        );
        assert_ne!(partition.digest(), Partition::even(6, 3).digest());
    }
}

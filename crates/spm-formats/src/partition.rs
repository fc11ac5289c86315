//! Work partitioning: even, by entries, by weight and by merge path, for all kernels of all
//! backends.

use std::ops::Range;

/// Partition `part` of `0..total` divided into `parts` ranges whose sizes differ by one at most,
/// the larger ones first (R1 1.1.1: the remainder is spread evenly).
///
/// # Panics
/// When `part >= parts`.
pub fn even(total: usize, parts: usize, part: usize) -> Range<usize> {
    assert!(part < parts, "part {part} of {parts}");
    let (size, remainder) = (total / parts, total % parts);
    let start = part * size + part.min(remainder);
    start..start + size + usize::from(part < remainder)
}

/// A sample of `0..total`: one number of each `step` consecutive ones, ascending. Their distances are irregular,
/// so that a period of the matrix, such as the length of a grid's lines, is not met at the same place each time.
///
/// # Panics
/// When `step` is 0.
pub fn sampled(total: usize, step: usize) -> impl Iterator<Item = usize> {
    (0..total).step_by(step).enumerate().map(move |(i, start)| {
        // The fractions of multiples of the golden ratio, here in units of 2^-64, are spread over the places.
        let fraction = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let places = step.min(total - start) as u128;
        start + ((u128::from(fraction) * places) >> u64::BITS) as usize
    })
}

/// Row bounds (parts + 1, ascending from 0 to rows) such that each partition has about the same
/// number of entries, by binary search on the rows + 1 row pointers, which ascend from 0 (R2
/// algorithm 2).
///
/// A row is never split: a partition with a row longer than entries / parts has more entries.
///
/// # Panics
/// When `parts` is 0 or `row_ptr` is empty.
pub fn by_entries(row_ptr: &[u32], parts: usize) -> Vec<usize> {
    assert!(parts > 0, "no parts");
    let rows = row_ptr.len() - 1;
    let entries = row_ptr[rows] as usize;
    let mut bounds: Vec<usize> = (0..parts)
        .map(|part| {
            let target = even(entries, parts, part).start;
            row_ptr[..rows].partition_point(|&p| (p as usize) < target)
        })
        .collect();
    bounds.push(rows);
    bounds
}

/// Bounds (parts + 1, ascending from 0 to the number of items) such that each partition has about
/// the same weight, from the prefix sums of the items' weights (one more than there are items,
/// starting at 0).
///
/// # Panics
/// When `parts` is 0 or `sums` is empty.
pub fn by_weight(sums: &[usize], parts: usize) -> Vec<usize> {
    assert!(parts > 0, "no parts");
    let items = sums.len() - 1;
    let total = sums[items];
    let mut bounds: Vec<usize> = (0..parts)
        .map(|part| {
            let target = even(total, parts, part).start;
            let after = sums[..items].partition_point(|&sum| sum < target);
            // The nearer of the two item ends around the target.
            let before = after.saturating_sub(1);
            if target - sums[before].min(target) < sums[after] - target { before } else { after }
        })
        .collect();
    bounds.push(items);
    bounds
}

/// A point on the merge path of row ends and entries: `rows` rows are complete and `entries`
/// entries consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergePoint {
    /// Rows that end before this point.
    pub row: usize,
    /// Entries before this point.
    pub entry: usize,
}

/// The point where the merge path crosses `diagonal`, the sum of rows and entries consumed
/// (Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016,
/// section 3). `row_ptr` has rows + 1 elements that ascend from 0.
///
/// # Panics
/// When `row_ptr` is empty or the diagonal is beyond rows + entries.
pub fn merge_path(row_ptr: &[u32], diagonal: usize) -> MergePoint {
    let ends = &row_ptr[1..];
    let entries = row_ptr[ends.len()] as usize;
    assert!(diagonal <= ends.len() + entries, "diagonal {diagonal} beyond the path");
    let (mut low, mut high) = (diagonal.saturating_sub(entries), diagonal.min(ends.len()));
    while low < high {
        let middle = low.midpoint(high);
        if (ends[middle] as usize) < diagonal - middle {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    MergePoint { row: low, entry: diagonal - low }
}

/// The points (parts + 1) that divide the merge path into partitions of equal length: the sum of
/// rows and entries is the same in each, for any row lengths.
///
/// # Panics
/// As [`merge_path`], and when `parts` is 0.
pub fn by_merge_path(row_ptr: &[u32], parts: usize) -> Vec<MergePoint> {
    assert!(parts > 0, "no parts");
    let rows = row_ptr.len() - 1;
    let length = rows + row_ptr[rows] as usize;
    let mut points: Vec<MergePoint> =
        (0..parts).map(|part| merge_path(row_ptr, even(length, parts, part).start)).collect();
    points.push(MergePoint { row: rows, entry: length - rows });
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_parts_cover_everything_once() {
        for total in [0, 1, 7, 16] {
            for parts in [1, 3, 16, 20] {
                let pieces: Vec<_> = (0..parts).map(|p| even(total, parts, p)).collect();
                let covered: Vec<usize> = pieces.iter().cloned().flatten().collect();
                assert_eq!(covered, (0..total).collect::<Vec<_>>());
                let sizes: Vec<usize> = pieces.iter().map(Range::len).collect();
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            }
        }
    }

    #[test]
    fn a_sample_follows_no_period() {
        for (total, step) in [(0, 3), (1, 3), (50, 1), (1000, 7), (1024, 64), (100, 1 << 40)] {
            let numbers: Vec<usize> = sampled(total, step).collect();
            let ranges = (0..total).step_by(step).map(|start| start..total.min(start + step));
            assert_eq!(numbers.len(), ranges.len());
            assert!(ranges.zip(&numbers).all(|(range, number)| range.contains(number)));
        }
        // About as often in each eighth of the period.
        for period in [64, 125, 1000] {
            let mut found = [0; 8];
            sampled(1 << 20, 64 * period)
                .for_each(|number| found[number % period * 8 / period] += 1);
            let mean = found.iter().sum::<usize>() as f64 / 8.0;
            assert!(found.iter().all(|&count| (count as f64 - mean).abs() <= 3.0), "{found:?}");
        }
    }

    #[test]
    fn entries_are_balanced_when_rows_are_short() {
        // Rows of 4, 0, 0, 4, 2, 2 entries.
        let row_ptr = [0, 4, 4, 4, 8, 10, 12];
        assert_eq!(by_entries(&row_ptr, 3), [0, 1, 4, 6]);
        assert_eq!(by_entries(&row_ptr, 1), [0, 6]);
        assert_eq!(by_entries(&[0], 4), [0, 0, 0, 0, 0]);
    }

    #[test]
    fn weights_are_balanced() {
        // Items of 4, 0, 5, 1, 1, 1.
        assert_eq!(by_weight(&[0, 4, 4, 9, 10, 11, 12], 2), [0, 2, 6]);
        assert_eq!(by_weight(&[0, 4, 4, 9, 10, 11, 12], 1), [0, 6]);
        assert_eq!(by_weight(&[0], 3), [0, 0, 0, 0]);
        assert_eq!(by_weight(&[0, 100], 4), [0, 0, 1, 1, 1]);
    }

    #[test]
    fn merge_path_by_hand() {
        // Rows of 2, 0, 3 entries: path E E R R E E E R.
        let row_ptr = [0, 2, 2, 5];
        let points: Vec<_> = (0..=8).map(|d| merge_path(&row_ptr, d)).collect();
        let rows: Vec<_> = points.iter().map(|p| p.row).collect();
        assert_eq!(rows, [0, 0, 0, 1, 2, 2, 2, 2, 3]);
        assert!(points.iter().enumerate().all(|(d, p)| p.row + p.entry == d));
    }

    #[test]
    #[should_panic(expected = "no parts")]
    fn a_path_is_not_split_into_no_parts() {
        by_merge_path(&[0, 1], 0);
    }

    #[test]
    fn merge_parts_split_one_long_row() {
        let row_ptr = [0, 1, 1001, 1002];
        let points = by_merge_path(&row_ptr, 5);
        assert_eq!(points[0], MergePoint { row: 0, entry: 0 });
        assert_eq!(points[5], MergePoint { row: 3, entry: 1002 });
        for pair in points.windows(2) {
            let work = (pair[1].row + pair[1].entry) - (pair[0].row + pair[0].entry);
            assert_eq!(work, 201);
        }
    }
}

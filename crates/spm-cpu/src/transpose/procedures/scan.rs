//! Exclusive prefix sums of a vector and of the columns of a matrix.

use spm_formats::partition;

use crate::Threads;
use crate::disjoint::Disjoint;

/// Elements for each thread below which one thread is faster than two parallel steps.
const SERIAL_BELOW: usize = 4096;

/// Exclusive scan (R3 IV-A): replaces `values` (a_0, a_1, ...) by (0, a_0, a_0 + a_1, ...) and
/// returns the sum of all.
///
/// Each thread sums an equal partition, the sums are scanned, and then each thread scans its
/// partition. `sums` is workspace of one element for each thread.
///
/// # Panics
/// When the sum exceeds `u32`, or, with more than one thread and many values, when `sums` has fewer
/// elements than the pool has threads.
pub fn exclusive_scan(threads: &Threads, values: &mut [u32], sums: &mut [u32]) -> u32 {
    let (total, count) = (values.len(), threads.count());
    if count == 1 || total < count * SERIAL_BELOW {
        return scan_from(values, 0);
    }
    {
        let (values, sums) = (&*values, Disjoint::new(&mut *sums));
        threads.run(|part| {
            let sum = values[partition::even(total, count, part)].iter().sum();
            // SAFETY: one element for each part.
            unsafe { sums.write(part, sum) };
        });
    }
    let sum = scan_from(&mut sums[..count], 0);
    let values = Disjoint::new(values);
    threads.run(|part| {
        // SAFETY: even parts do not overlap.
        let piece = unsafe { values.range(partition::even(total, count, part)) };
        scan_from(piece, sums[part]);
    });
    sum
}

/// Scans `values` on this thread from `start`; returns the element that would follow.
fn scan_from(values: &mut [u32], start: u32) -> u32 {
    let mut sum = start;
    for value in values {
        let next = sum.checked_add(*value).expect("the sum fits into u32");
        *value = sum;
        sum = next;
    }
    sum
}

/// Vertical scan (R3 IV-F, step 2, "blocks that walk down the columns"): replaces each column (a_0,
/// a_1, ..., a_last) of the row-major matrix `values` with `columns` columns by (0, a_0, a_0 + a_1,
/// ...) and writes the columns' sums to `totals`. A column's sum must fit `u32`; this is not
/// checked.
///
/// # Panics
/// When `totals` has not `columns` elements or `values` is not a multiple of it.
pub fn vertical_scan(threads: &Threads, values: &mut [u32], columns: usize, totals: &mut [u32]) {
    assert_eq!(totals.len(), columns, "one total for each column");
    let rows = values.len().checked_div(columns).unwrap_or(0);
    assert_eq!(values.len(), rows * columns, "whole rows");
    let (values, totals) = (Disjoint::new(values), Disjoint::new(totals));
    threads.run(|part| {
        let piece = partition::even(columns, threads.count(), part);
        // SAFETY: parts have different columns.
        let totals = unsafe { totals.range(piece.clone()) };
        totals.fill(0);
        for row in 0..rows {
            let start = row * columns;
            // SAFETY: as above.
            let values = unsafe { values.range(start + piece.start..start + piece.end) };
            for (total, value) in totals.iter_mut().zip(values) {
                let next = *total + *value;
                *value = *total;
                *total = next;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_by_hand() {
        let mut values = [3, 0, 2, 5];
        assert_eq!(exclusive_scan(&Threads::new(2), &mut values, &mut [0; 2]), 10);
        assert_eq!(values, [0, 3, 3, 5]);
        assert_eq!(exclusive_scan(&Threads::new(2), &mut [], &mut [0; 2]), 0);
    }

    #[test]
    fn scan_is_the_same_on_any_pool() {
        let values: Vec<u32> = (0..50_000).map(|i| (i * 7919) % 13).collect();
        for count in [1, 2, 3, 5] {
            let (mut scanned, mut sums) = (values.clone(), vec![0; count]);
            let sum = exclusive_scan(&Threads::new(count), &mut scanned, &mut sums);
            assert_eq!(sum, values.iter().sum::<u32>());
            assert!(
                (0..values.len()).all(|i| i == 0 || scanned[i] == scanned[i - 1] + values[i - 1])
            );
            assert_eq!(scanned[0], 0);
        }
    }

    #[test]
    fn vertical_scan_by_hand() {
        for count in [1, 2, 5] {
            let (mut values, mut totals) = ([1, 2, 3, 4, 5, 6, 7, 8, 9], [9; 3]);
            vertical_scan(&Threads::new(count), &mut values, 3, &mut totals);
            assert_eq!(values, [0, 0, 0, 1, 2, 3, 5, 7, 9]);
            assert_eq!(totals, [12, 15, 18]);
        }
        vertical_scan(&Threads::new(2), &mut [], 0, &mut []);
        let mut totals = [7; 2];
        vertical_scan(&Threads::new(2), &mut [], 2, &mut totals);
        assert_eq!(totals, [0; 2], "no rows");
    }
}

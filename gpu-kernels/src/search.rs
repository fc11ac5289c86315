//! Binary search.

use core::ops::Range;

/// The first place of `places` that is not `before` the one looked for, or their end. All places that are come first.
#[inline(always)]
pub(crate) fn partition_point(places: Range<u32>, before: impl Fn(u32) -> bool) -> u32 {
    let Range { start: mut low, end: mut high } = places;
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_is_not_before() {
        let keys = [1, 3, 3, 3, 7];
        for key in 0..9 {
            let of = |places: Range<u32>| partition_point(places, |i| keys[i as usize] < key);
            assert_eq!(of(0..5), keys.partition_point(|&other| other < key) as u32);
            assert_eq!(of(2..4), 2 + keys[2..4].partition_point(|&other| other < key) as u32);
            assert_eq!(of(3..3), 3);
        }
    }
}

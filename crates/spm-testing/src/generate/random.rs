//! Random numbers that are the same on every machine and for every thread count.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", OOPSLA 2014): a bijection that spreads every input bit over the word.
pub(super) fn mix(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A PCG generator for one row, block or phase. `rand`'s own distributions may change between
/// versions, so the few that are needed are spelled out here.
pub(super) struct Random(Pcg64Mcg);

impl Random {
    /// The generator number `stream` of `seed`.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let low = mix(seed ^ mix(stream));
        Self(Pcg64Mcg::new(u128::from(mix(low)) << 64 | u128::from(low)))
    }

    /// Uniform in `0..bound`, or 0 for an empty range.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bits = self.0.next_u64();
        ((u128::from(bits) * bound as u128) >> 64) as usize
    }

    /// 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Fisher and Yates.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// 64 random bits of entry (row, col).
fn bits_at(seed: u64, row: u32, col: u32) -> u64 {
    mix(seed ^ mix(u64::from(row) << 32 | u64::from(col)))
}

/// A value of entry (row, col): an odd multiple of 2^-52 in (-1, 1), so that no narrower type has it.
pub(super) fn general(seed: u64, row: u32, col: u32) -> f64 {
    let bits = bits_at(seed, row, col) >> 11 | 1;
    (bits as i64 - (1 << 52)) as f64 / (1_u64 << 52) as f64
}

/// A value of entry (row, col): an odd multiple of 2^-23 in (-1, 1), exact in `f32`.
pub(super) fn single(seed: u64, row: u32, col: u32) -> f64 {
    let bits = bits_at(seed, row, col) >> 41;
    (2 * bits + 1) as f64 / f64::from(1 << 23) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_wide_as_they_say_and_never_zero() {
        for (value_at, narrow) in [(general as fn(u64, u32, u32) -> f64, false), (single, true)] {
            let mut smallest = f64::MAX;
            let mut sum = 0.0;
            for i in 0..100_000 {
                let value = value_at(7, i, i / 3);
                assert!(value.abs() < 1.0 && value != 0.0);
                assert_eq!(f64::from(value as f32) == value, narrow);
                smallest = smallest.min(value.abs());
                sum += value;
            }
            assert!(smallest < 1e-3 && (sum / 1e5).abs() < 0.01);
        }
    }

    #[test]
    fn bits_are_fixed_for_all_time() {
        let mut random = Random::new(1, 2);
        let drawn: Vec<usize> = (0..8).map(|_| random.below(1000)).collect();
        assert_eq!(drawn, [66, 735, 890, 573, 875, 80, 460, 61]);
    }

    #[test]
    fn a_shuffle_keeps_its_items() {
        let mut items: Vec<u32> = (0..1000).collect();
        Random::new(3, 0).shuffle(&mut items);
        assert!(items.windows(2).any(|pair| pair[0] > pair[1]));
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..1000));
    }
}

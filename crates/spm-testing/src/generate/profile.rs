//! Row lengths with a given sum, minimum, maximum and variance.

use std::collections::BTreeMap;

use super::GenerateError;
use super::random::Random;

/// Requirements on the lengths of all rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Profile {
    pub(super) rows: usize,
    /// Sum of the lengths.
    pub(super) entries: usize,
    /// Shortest row that is not in `empty` or `dense`; one row has it.
    pub(super) min: usize,
    /// Longest row that is not in `dense`; one row has it.
    pub(super) max: usize,
    /// Population variance over all rows, those of `empty` and `dense` too.
    pub(super) variance: Option<f64>,
    /// A power law instead of a bell.
    pub(super) heavy_tail: bool,
    /// Rows of length 0 beside the others.
    pub(super) empty: usize,
    /// Lengths of single rows beside the others.
    pub(super) dense: Vec<u32>,
}

/// Rows by length.
type Histogram = BTreeMap<usize, usize>;

impl Profile {
    /// The lengths in ascending order: sum, minimum and maximum are exact, the variance is as near
    /// as unit moves between rows bring it.
    ///
    /// The lengths are drawn from nothing: they are the rounded quantiles of the distribution of
    /// greatest entropy among those of the wanted mean and variance on min..=max, relative to a
    /// flat or to a power-law measure.
    pub(super) fn lengths(&self) -> Result<Vec<u32>, GenerateError> {
        let dense: usize = self.dense.iter().map(|&length| length as usize).sum();
        let impossible = || GenerateError::Impossible {
            rows: self.rows,
            entries: self.entries,
            min: self.min,
            max: self.max,
        };
        let rows = self.rows.checked_sub(self.empty + self.dense.len()).ok_or_else(impossible)?;
        let entries = self.entries.checked_sub(dense).ok_or_else(impossible)?;
        if rows.checked_mul(self.min).is_none_or(|least| entries < least)
            || rows.checked_mul(self.max).is_some_and(|most| entries > most)
            || self.max < self.min
        {
            return Err(impossible());
        }
        let squares = self.variance.map(|variance| self.square_sum(variance));
        let mut lengths = vec![0; self.empty];
        if rows > 0 {
            let mut histogram = self.fitted(rows, entries, squares);
            self.fix_sum(&mut histogram, entries);
            if let Some(squares) = squares {
                self.fix_squares(&mut histogram, squares);
            }
            for (length, count) in histogram {
                lengths.extend(std::iter::repeat_n(length as u32, count));
            }
        }
        lengths.extend(&self.dense);
        Ok(lengths)
    }

    /// Sum of squared lengths of the ordinary rows that gives the whole its variance.
    fn square_sum(&self, variance: f64) -> f64 {
        let (rows, entries) = (self.rows as f64, self.entries as f64);
        let dense: f64 = self.dense.iter().map(|&length| square(length.into())).sum();
        rows * variance + entries * entries / rows - dense
    }

    /// The distribution rounded to whole rows, with one row at each end.
    fn fitted(&self, rows: usize, entries: usize, squares: Option<f64>) -> Histogram {
        let mean = entries as f64 / rows as f64;
        let exponent = if self.heavy_tail { self.tail_exponent(mean) } else { 0.0 };
        let tilt = match squares {
            Some(squares) => self.tilt(exponent, mean, squares / rows as f64),
            None => (0.0, 0.0),
        };
        let weights = self.weights(exponent, tilt);
        let total: f64 = weights.iter().sum();
        // Carrying the rounding error along keeps every long stretch of lengths represented.
        let (mut histogram, mut carried, mut placed) = (Histogram::new(), 0.0, 0);
        for (i, weight) in weights.iter().enumerate() {
            carried += weight / total * rows as f64;
            let count = (carried.round().max(0.0) as usize).min(rows - placed);
            if count > 0 {
                histogram.insert(self.min + i, count);
                carried -= count as f64;
                placed += count;
            }
        }
        let nearest = (mean.round() as usize).clamp(self.min, self.max);
        if placed < rows {
            *histogram.entry(nearest).or_default() += rows - placed;
        }
        for end in [self.min, self.max] {
            if !histogram.contains_key(&end) && rows > 2 {
                let fullest = histogram.iter().max_by_key(|&(_, &count)| count);
                let from = *fullest.expect("rows is not 0").0;
                take(&mut histogram, from, 1);
                histogram.insert(end, 1);
            }
        }
        histogram
    }

    /// `(length - min + 1)^-exponent * exp(a t + b t^2)` for each length, with t in 0..=1.
    fn weights(&self, exponent: f64, (a, b): (f64, f64)) -> Vec<f64> {
        let span = (self.max - self.min).max(1) as f64;
        let logs: Vec<f64> = (0..=self.max - self.min)
            .map(|i| {
                let t = i as f64 / span;
                a * t + b * t * t - exponent * libm::log(i as f64 + 1.0)
            })
            .collect();
        let largest = logs.iter().copied().fold(f64::MIN, f64::max);
        logs.iter().map(|log| libm::exp(log - largest)).collect()
    }

    /// The exponent at which the untilted power law has the wanted mean.
    fn tail_exponent(&self, mean: f64) -> f64 {
        let (mut low, mut high) = (-8.0, 8.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            let weights = self.weights(middle, (0.0, 0.0));
            let total: f64 = weights.iter().sum();
            let first: f64 = weights.iter().enumerate().map(|(i, w)| i as f64 * w).sum();
            if self.min as f64 + first / total > mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }

    /// The tilt (a, b) with the wanted first and second moment: Newton's method on the convex dual,
    /// damped. A variance that the range cannot hold ends at the nearest that it can.
    fn tilt(&self, exponent: f64, mean: f64, second: f64) -> (f64, f64) {
        let span = (self.max - self.min).max(1) as f64;
        let min = self.min as f64;
        let wanted = [(mean - min) / span, (second - 2.0 * min * mean + min * min) / (span * span)];
        let moments = |tilt| {
            let weights = self.weights(exponent, tilt);
            let total: f64 = weights.iter().sum();
            let mut sums = [0.0; 4];
            for (i, weight) in weights.iter().enumerate() {
                let t = i as f64 / span;
                let mut power = weight / total;
                for sum in &mut sums {
                    power *= t;
                    *sum += power;
                }
            }
            sums
        };
        let miss = |m: &[f64; 4]| (m[0] - wanted[0]).abs() + (m[1] - wanted[1]).abs();
        let mut tilt = (0.0, 0.0);
        let mut current = moments(tilt);
        for _ in 0..200 {
            let [m1, m2, m3, m4] = current;
            let (caa, cab, cbb) = (m2 - m1 * m1, m3 - m1 * m2, m4 - m2 * m2);
            let determinant = caa * cbb - cab * cab;
            let (ga, gb) = (wanted[0] - m1, wanted[1] - m2);
            if determinant <= 1e-300 || miss(&current) < 1e-13 {
                break;
            }
            let step = ((cbb * ga - cab * gb) / determinant, (caa * gb - cab * ga) / determinant);
            let mut scale = 1.0;
            let improved = loop {
                let trial = (tilt.0 + scale * step.0, tilt.1 + scale * step.1);
                let next = moments(trial);
                if miss(&next) < miss(&current) {
                    break Some((trial, next));
                }
                scale *= 0.5;
                if scale < 1e-6 {
                    break None;
                }
            };
            let Some((trial, next)) = improved else { break };
            (tilt, current) = (trial, next);
        }
        tilt
    }

    /// Rows that may leave a length: one stays at each end.
    fn movable(&self, length: usize, count: usize) -> usize {
        if length == self.min || length == self.max { count - 1 } else { count }
    }

    /// Lengthens or shortens rows by one until the sum is right.
    fn fix_sum(&self, histogram: &mut Histogram, entries: usize) {
        let sum: usize = histogram.iter().map(|(length, count)| length * count).sum();
        let up = sum < entries;
        let mut missing = sum.abs_diff(entries);
        while missing > 0 {
            let source = histogram
                .iter()
                .filter(|&(&length, _)| if up { length < self.max } else { length > self.min })
                .max_by_key(|&(&length, &count)| self.movable(length, count));
            let (&length, &count) = source.expect("min and max allow the sum");
            // Two rows or fewer may have no row to spare at an end; then the end itself moves.
            let moved = self.movable(length, count).div_ceil(2).clamp(1, missing);
            take(histogram, length, moved);
            let target = if up { length + 1 } else { length - 1 };
            *histogram.entry(target).or_default() += moved;
            missing -= moved;
        }
    }

    /// Moves units between rows, which keeps the sum, until the sum of squares is as wanted.
    ///
    /// A unit from a row of length p to one of length q changes it by 2 (q - p) + 2.
    fn fix_squares(&self, histogram: &mut Histogram, wanted: f64) {
        let mut missing = wanted.round() as i128
            - histogram.iter().map(|(&l, &count)| (l * l) as i128 * count as i128).sum::<i128>();
        while missing.abs() >= 2 {
            let Some((give, receive, change)) = self.best_move(histogram, missing) else { break };
            let available = if give == receive {
                self.movable(give, histogram[&give]) / 2
            } else {
                self.movable(give, histogram[&give]).min(self.movable(receive, histogram[&receive]))
            };
            // Half at most: a length is thinned out, not deleted.
            let times = ((missing / change) as usize).min(available.div_ceil(2)).max(1);
            take(histogram, give, times);
            take(histogram, receive, times);
            *histogram.entry(give - 1).or_default() += times;
            *histogram.entry(receive + 1).or_default() += times;
            missing -= change * times as i128;
        }
    }

    /// The move that changes the sum of squares most without overshooting `missing`.
    fn best_move(&self, histogram: &Histogram, missing: i128) -> Option<(usize, usize, i128)> {
        let mut best: Option<(usize, usize, i128)> = None;
        for (&give, &count) in histogram.range(self.min + 1..) {
            if self.movable(give, count) == 0 {
                continue;
            }
            // change = 2 (receive - give) + 2: between 2 and missing, or between missing and -2.
            let reach = (missing.unsigned_abs() / 2) as usize;
            let (low, high) = if missing > 0 {
                (give, give.saturating_add(reach - 1))
            } else if give >= self.min + 2 {
                (give.saturating_sub(reach + 1), give - 2)
            } else {
                continue;
            };
            let (low, high) = (low.max(self.min), high.min(self.max.saturating_sub(1)));
            if low > high {
                continue;
            }
            let usable = |&(&receive, &count): &(&usize, &usize)| {
                let needed = if receive == give { 2 } else { 1 };
                self.movable(receive, count) >= needed
            };
            let mut candidates = histogram.range(low..=high);
            let receive =
                if missing > 0 { candidates.rev().find(usable) } else { candidates.find(usable) };
            if let Some((&receive, _)) = receive {
                let change = 2 * (receive as i128 - give as i128) + 2;
                if best.is_none_or(|(.., found)| change.abs() > found.abs()) {
                    best = Some((give, receive, change));
                }
            }
        }
        best
    }
}

/// `powi` may round differently from one platform to another; a product may not.
pub(super) fn square(x: f64) -> f64 {
    x * x
}

fn take(histogram: &mut Histogram, length: usize, count: usize) {
    let left = histogram.get_mut(&length).expect("the length is in the histogram");
    *left -= count;
    if *left == 0 {
        histogram.remove(&length);
    }
}

/// Deals the lengths to the rows: `run` neighbouring rows have neighbouring lengths (the unknowns
/// of one node), the runs are in random order.
pub(super) fn arrange(lengths: &mut Vec<u32>, run: usize, seed: u64) {
    let mut random = Random::new(seed, 0);
    if run <= 1 {
        random.shuffle(lengths);
        return;
    }
    let mut order: Vec<usize> = (0..lengths.len().div_ceil(run)).collect();
    random.shuffle(&mut order);
    let runs = order.iter().flat_map(|&r| &lengths[r * run..lengths.len().min((r + 1) * run)]);
    *lengths = runs.copied().collect();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use spm_formats::csr::pointers_of;
    use spm_formats::stats::RowLengthStats;

    fn variance(lengths: &[u32]) -> f64 {
        RowLengthStats::of(&pointers_of(lengths.iter().copied())).variance
    }

    fn check(profile: &Profile) -> Vec<u32> {
        let lengths = profile.lengths().unwrap();
        assert_eq!(lengths.len(), profile.rows);
        assert_eq!(lengths.iter().map(|&l| l as usize).sum::<usize>(), profile.entries);
        assert_eq!(lengths[profile.empty] as usize, profile.min, "{profile:?}");
        let last = lengths[profile.rows - 1 - profile.dense.len()] as usize;
        assert_eq!(last, profile.max, "{profile:?}");
        if let Some(wanted) = profile.variance {
            let found = variance(&lengths);
            assert!((found - wanted).abs() <= 2.0 / profile.rows as f64, "{found} for {profile:?}");
        }
        lengths
    }

    #[test]
    fn cage4_is_met_exactly() {
        let profile = Profile {
            rows: 9,
            entries: 49,
            min: 5,
            max: 6,
            variance: Some(20.0 / 81.0),
            ..Profile::default()
        };
        assert_eq!(check(&profile), [5, 5, 5, 5, 5, 6, 6, 6, 6]);
    }

    #[test]
    fn bells_and_tails_reach_their_variance() {
        for (max, variance, heavy_tail) in
            [(40, 12.0, false), (40, 120.0, false), (40, 0.5, false), (3000, 900.0, true)]
        {
            let profile = Profile {
                rows: 10_000,
                entries: 123_456,
                min: 2,
                max,
                variance: Some(variance),
                heavy_tail,
                ..Profile::default()
            };
            check(&profile);
        }
    }

    #[test]
    fn empty_and_dense_rows_stand_beside_the_others() {
        let profile = Profile {
            rows: 1000,
            entries: 4700,
            min: 1,
            max: 12,
            variance: None,
            heavy_tail: true,
            empty: 100,
            dense: vec![700, 900],
        };
        let lengths = check(&profile);
        assert_eq!(lengths.iter().filter(|&&l| l == 0).count(), 100);
        assert_eq!(lengths[998..], [700, 900]);
    }

    #[test]
    fn impossible_sums_are_refused() {
        let profile = Profile { rows: 10, entries: 9, min: 1, max: 4, ..Profile::default() };
        assert!(profile.lengths().is_err());
        assert!(Profile { entries: 41, ..profile.clone() }.lengths().is_err());
        assert!(Profile { entries: 10, ..profile }.lengths().is_ok());
        assert_eq!(Profile::default().lengths().unwrap(), Vec::<u32>::new());
    }

    proptest! {
        #[test]
        fn any_possible_profile_has_its_sum_and_bounds(
            rows in 1usize..400,
            min in 0usize..20,
            width in 0usize..300,
            fill in 0.0..1.0f64,
            variance in proptest::option::of(0.0..30_000.0f64),
            heavy_tail: bool,
            empty in 0usize..5,
            dense in proptest::collection::vec(0u32..5000, 0..3),
        ) {
            let max = min + width;
            let ordinary = (rows * min) + (fill * (rows * width) as f64) as usize;
            let profile = Profile {
                rows: rows + empty + dense.len(),
                entries: ordinary + dense.iter().map(|&length| length as usize).sum::<usize>(),
                min,
                max,
                variance,
                heavy_tail,
                empty,
                dense: dense.clone(),
            };
            let lengths = profile.lengths().unwrap();
            prop_assert_eq!(lengths.len(), profile.rows);
            let sum: usize = lengths.iter().map(|&length| length as usize).sum();
            prop_assert_eq!(sum, profile.entries);
            prop_assert!(lengths[..empty].iter().all(|&length| length == 0));
            prop_assert_eq!(&lengths[empty + rows..], &dense[..]);
            let inside = |&length: &u32| (min..=max).contains(&(length as usize));
            prop_assert!(lengths[empty..empty + rows].iter().all(inside));
        }
    }

    #[test]
    fn runs_stay_together() {
        let mut lengths: Vec<u32> = (0..10).collect();
        arrange(&mut lengths, 3, 5);
        let starts: Vec<usize> = (0..10).filter(|&i| lengths[i].is_multiple_of(3)).collect();
        for start in starts {
            let first = lengths[start];
            let run = (3.min(10 - first)) as usize;
            assert!((0..run).all(|i| lengths[start + i] == first + i as u32));
        }
    }
}

//! How long a case may be timed when the whole run has a budget of time.

use std::time::{Duration, Instant};

use crate::suite::Source;

/// Shares the time of a budget among the cases that are left.
pub(super) struct Pacing {
    begin: Instant,
    budget: Option<Duration>,
    done: usize,
    /// Cases that are not done yet; the caller takes those off that it skips.
    pub(super) left: usize,
}

impl Pacing {
    pub(super) fn new(budget_s: Option<u64>, cases: usize) -> Self {
        let budget = budget_s.map(Duration::from_secs);
        Self { begin: Instant::now(), budget, done: 0, left: cases }
    }

    /// The most that the next case should be timed for, when all before it were timed for `sampled`.
    pub(super) fn next_case(&mut self, sampled: Duration) -> Duration {
        let Some(budget) = self.budget else { return Duration::MAX };
        let most = Self::share(budget, self.begin.elapsed(), sampled, self.done, self.left);
        self.done += 1;
        self.left = self.left.saturating_sub(1);
        most
    }

    /// Time since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// The rest of the time that `left` cases may be timed for, in equal shares, times 4: most cases
    /// need far less than their share. What cases take beside their timing (plan, check, operands)
    /// is taken to go on as in the `done` ones.
    fn share(
        budget: Duration,
        elapsed: Duration,
        sampled: Duration,
        done: usize,
        left: usize,
    ) -> Duration {
        const SHARES: f64 = 4.0;
        let beside = elapsed.saturating_sub(sampled).div_f64(done.max(1) as f64);
        let left = left.max(1) as f64;
        let rest = budget.saturating_sub(elapsed).saturating_sub(beside.mul_f64(left));
        let most = rest.as_secs_f64() * SHARES / left;
        Duration::try_from_secs_f64(most).unwrap_or(Duration::MAX)
    }
}

/// Shares the time of a budget among matrices, by their sizes, for a run that leaves out what does not fit.
pub(super) struct Shares {
    /// Shares of the matrices that are left, the next one last; nothing for a run that leaves out nothing.
    left: Vec<f64>,
}

impl Shares {
    pub(super) fn new(matrices: &[Source], leave_out: bool) -> Self {
        let left = if leave_out {
            // Even an empty matrix takes the time of its launches.
            matrices.iter().rev().map(|source| source.entries() as f64 + 1e5).collect()
        } else {
            Vec::new()
        };
        Self { left }
    }

    /// Until when the cases of the next matrix may begin: its share of the time that is left.
    pub(super) fn next(&mut self, pacing: &Pacing) -> Option<Duration> {
        let all: f64 = self.left.iter().sum();
        let share = self.left.pop()? / all;
        let run = pacing.budget?;
        let elapsed = pacing.elapsed();
        Some(elapsed + run.saturating_sub(elapsed).mul_f64(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_and_may_be_absent() {
        assert_eq!(Pacing::new(None, 2).next_case(Duration::ZERO), Duration::MAX);
        let seconds = Duration::from_secs;
        let share = |elapsed, sampled, done, left| {
            Pacing::share(seconds(100), seconds(elapsed), seconds(sampled), done, left)
        };
        assert_eq!(share(0, 0, 0, 8), seconds(50));
        // 10 s for each case beside its timing: 60 s of the 80 that are left.
        assert_eq!(share(20, 0, 2, 6).as_millis(), 20_000 * 4 / 6);
        assert_eq!(share(20, 20, 2, 4), seconds(80));
        assert_eq!(share(200, 150, 2, 4), Duration::ZERO);
        let ages = Duration::from_secs(u64::MAX);
        assert_eq!(Pacing::share(ages, seconds(0), seconds(0), 0, 1), Duration::MAX);
        let mut pacing = Pacing::new(Some(100), 8);
        let first = pacing.next_case(Duration::ZERO).as_secs_f64();
        assert!((49.0..=50.0).contains(&first), "{first}");
        assert_eq!((pacing.done, pacing.left), (1, 7));
    }

    #[test]
    fn matrices_share_the_time_by_their_sizes() {
        let matrices: Vec<Source> =
            ["cage4", "stencil5[n=300]"].map(|name| Source::parse(name).unwrap()).to_vec();
        assert!(Shares::new(&matrices, false).next(&Pacing::new(Some(100), 1)).is_none());
        assert!(Shares::new(&matrices, true).next(&Pacing::new(None, 1)).is_none());
        let pacing = Pacing::new(Some(1000), 2);
        let mut shares = Shares::new(&matrices, true);
        let first = shares.next(&pacing).unwrap().as_secs_f64();
        // 10^5 of 6.5 x 10^5.
        assert!((first - 1000.0 * 100_049.0 / 648_849.0).abs() < 5.0, "{first}");
        let last = shares.next(&pacing).unwrap();
        assert!((last.as_secs_f64() - 1000.0).abs() < 5.0);
        assert!(shares.next(&pacing).is_none());
        // A budget that is spent leaves no time.
        let spent = Shares::new(&matrices, true).next(&Pacing::new(Some(0), 2)).unwrap();
        assert!(spent < Duration::from_secs(1));
    }
}

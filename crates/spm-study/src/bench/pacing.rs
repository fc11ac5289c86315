//! How long a case may be timed when the whole run has a budget of time.

use std::time::{Duration, Instant};

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
}

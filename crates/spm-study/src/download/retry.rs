//! When a failed request is tried again, and after how long.

use std::time::{Duration, SystemTime};

/// Exponential backoff: the first wait, doubled for each further one.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    /// How many times a failed request is tried again.
    pub retries: u32,
    /// Wait before the first of them.
    pub first_wait: Duration,
    /// No wait is longer, whatever the doubling or the server says.
    pub max_wait: Duration,
}

impl Backoff {
    /// Wait before retry number `retry` (from 0); `None` when that many are not allowed, or when
    /// the server asks for more patience than `max_wait`.
    pub(super) fn wait(&self, retry: u32, retry_after: Option<Duration>) -> Option<Duration> {
        if retry >= self.retries || retry_after.is_some_and(|wait| wait > self.max_wait) {
            return None;
        }
        let doubled = self.first_wait.saturating_mul(2_u32.saturating_pow(retry));
        Some(doubled.min(self.max_wait).max(retry_after.unwrap_or_default()))
    }
}

/// Reads a Retry-After header, either form: seconds or an HTTP date. A date that has passed is a
/// wait of zero; what is neither is `None`.
pub(super) fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn backoff() -> Backoff {
        Backoff { retries: 4, first_wait: seconds(1), max_wait: seconds(5) }
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits: Vec<_> = (0..5).map(|retry| backoff().wait(retry, None)).collect();
        let expected = [Some(seconds(1)), Some(seconds(2)), Some(seconds(4)), Some(seconds(5))];
        assert_eq!(waits[..4], expected);
        assert_eq!(waits[4], None);
    }

    #[test]
    fn the_server_may_ask_for_longer_but_not_for_too_long() {
        assert_eq!(backoff().wait(0, Some(seconds(3))), Some(seconds(3)));
        assert_eq!(backoff().wait(2, Some(seconds(3))), Some(seconds(4)));
        assert_eq!(backoff().wait(0, Some(seconds(6))), None);
    }

    #[test]
    fn retry_after_comes_in_two_forms() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(parse_retry_after(" 120 ", now), Some(seconds(120)));
        let later = "Sun, 06 Nov 1994 08:50:00 GMT";
        assert_eq!(parse_retry_after(later, now), Some(seconds(23)));
        assert_eq!(parse_retry_after(later, now + seconds(60)), Some(seconds(0)));
        assert_eq!(parse_retry_after("soon", now), None);
    }
}

//! Candidates for a plan against the clock: what the `auto` kernels share.

use std::time::{Duration, Instant};

/// How long a candidate is timed: at least so many calls, and at least so long.
const CALLS: usize = 3;
const TIME: Duration = Duration::from_millis(2);
/// Calls that take less are timed together.
const SHORT: f64 = 2e-5;

/// Seconds of the fastest call: what disturbs a call only ever makes it slower. Gives up after the
/// first call that takes more than twice `best`.
pub(crate) fn seconds(best: f64, mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    call();
    let first = start.elapsed().as_secs_f64();
    // The first call may meet cold caches and memory that no one has touched.
    if first > 8.0 * best {
        return first;
    }
    let start = Instant::now();
    call();
    let second = start.elapsed().as_secs_f64();
    if second > 2.0 * best {
        return second;
    }
    let together = (SHORT / second.max(1e-8)).ceil().max(1.0) as usize;
    let (mut fastest, mut calls, start) = (f64::INFINITY, 0, Instant::now());
    while calls < CALLS || start.elapsed() < TIME {
        let begin = Instant::now();
        (0..together).for_each(|_| call());
        fastest = fastest.min(begin.elapsed().as_secs_f64() / together as f64);
        calls += 1;
    }
    fastest
}

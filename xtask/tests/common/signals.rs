//! How often and when tests stop runs.

use std::hash::{BuildHasher, RandomState};
use std::process::{Child, Command};
use std::time::Duration;

/// How often runs are killed: 4 times, or as `SPM_KILLS` says.
pub(crate) fn kills() -> usize {
    std::env::var("SPM_KILLS").map_or(4, |count| count.parse().expect("a number"))
}

/// A random moment before `end`.
pub(crate) fn moment(end: Duration) -> Duration {
    let random = RandomState::new().hash_one(end) as f64 / u64::MAX as f64;
    end.mul_f64(random)
}

/// Sends a signal such as `-KILL`; whether there was a process to take it.
pub(crate) fn send(signal: &str, child: &Child) -> bool {
    Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success()
}

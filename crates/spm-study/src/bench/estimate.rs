//! What a dry run says: the cases, the matrices, and how long the run may take, from sizes alone.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;

use spm_formats::convert::ROW_SCAN_LIMIT;
use spm_formats::kernel::{Backend, Operation};

use super::case::CaseSpec;
use super::timing::Sampling;
use crate::suite::Source;

/// Seconds per entry and column of X of a product on one core: 12 bytes at some 10 GB/s.
const PRODUCT_S: f64 = 1.2e-9;
/// Seconds per entry that other operations take on one core.
const REGROUP_S: f64 = 1e-8;
const PARSE_S: f64 = 3e-8;
/// Seconds per entry to plan a case, to make its operands and to check it, and per case.
const BESIDE_S: f64 = 2e-8;
const CASE_S: f64 = 2e-3;
/// Seconds per entry to generate or read a matrix and to ask the reference.
const LOAD_S: f64 = 2e-7;
/// Seconds of a launch, and how many times faster a device is than a core.
const LAUNCH_S: f64 = 1e-5;
const DEVICE: f64 = 100.0;
/// The conversions in which every row searches all triplets, and the seconds of a comparison.
const SCANS: [&str; 3] = ["coo-to-csr-row-scan", "coo-to-ell-padded", "coo-to-ell-unpadded"];
const COMPARISON_S: f64 = 2.5e-10;
/// Threads beyond which memory, not cores, sets the pace.
const MOST_THREADS: f64 = 8.0;

/// A line for each case and each matrix, and the time in the last one.
pub fn describe(
    cases: &[(&str, CaseSpec)],
    matrices: &[Source],
    sampling: &Sampling,
    budget: Option<u64>,
) -> String {
    let mut text = String::new();
    for (experiment, case) in cases {
        let label = case.info.label(&case.parameters);
        let _ = writeln!(text, "{experiment}: {label} threads={} k={}", case.threads, case.k());
    }
    let entries: Vec<u64> = matrices.iter().map(Source::entries).collect();
    for (source, entries) in matrices.iter().zip(&entries) {
        let _ = writeln!(text, "{}: about {entries} entries", source.name());
    }
    let time = within(seconds(cases, &entries, sampling), budget);
    let (cases, matrices) = (cases.len(), matrices.len());
    let _ = writeln!(
        text,
        "{cases} cases x {matrices} matrices = {}, roughly {time}",
        cases * matrices
    );
    text
}

/// About how long a run takes, in words.
pub fn time(
    cases: &[(&str, CaseSpec)],
    matrices: &[Source],
    sampling: &Sampling,
    budget: Option<u64>,
) -> String {
    let entries: Vec<u64> = matrices.iter().map(Source::entries).collect();
    within(seconds(cases, &entries, sampling), budget)
}

/// An estimate, or the budget that cuts it.
fn within(estimate: f64, budget: Option<u64>) -> String {
    match budget {
        Some(budget) if estimate > budget as f64 => {
            format!("{}, cut from {} by the budget", words(budget as f64), words(estimate))
        }
        _ => words(estimate),
    }
}

/// About how long `cases` take on matrices of these numbers of entries; cases that experiments share
/// are measured once. It is a rule of thumb, not a promise: off by a factor of two, or more.
fn seconds(cases: &[(&str, CaseSpec)], entries: &[u64], sampling: &Sampling) -> f64 {
    let mut seen = HashSet::new();
    let mut unlike = Vec::new();
    for (_, case) in cases {
        let info = case.info;
        let parameters = case.parameters_text();
        let key = (info.operation, info.backend, info.id, parameters, case.k(), case.threads);
        if seen.insert(key) {
            unlike.push(case);
        }
    }
    let of_matrix = |&entries: &u64| {
        let entries = entries as f64;
        let timed: f64 = unlike.iter().map(|case| case_seconds(case, entries, sampling)).sum();
        timed + entries * LOAD_S
    };
    entries.iter().map(of_matrix).sum()
}

fn case_seconds(case: &CaseSpec, entries: f64, sampling: &Sampling) -> f64 {
    let threads = (case.threads as f64).min(MOST_THREADS);
    let one_core = match case.info.operation {
        Operation::Spmv | Operation::Spmm => entries * case.k() as f64 * PRODUCT_S,
        Operation::Transpose => entries * REGROUP_S,
        // Every row, of ten entries or so, searches all triplets; more than the limit is refused.
        Operation::Conversion if SCANS.contains(&case.info.id) => {
            let comparisons = entries * entries / 10.0;
            if comparisons > ROW_SCAN_LIMIT as f64 { 0.0 } else { comparisons * COMPARISON_S }
        }
        Operation::Conversion => entries * REGROUP_S,
        Operation::Read => entries * PARSE_S,
    };
    let once = match case.info.backend {
        Backend::Cpu => one_core / threads,
        Backend::Gpu => one_core / DEVICE + LAUNCH_S,
    };
    let seconds = |time: Duration| time.as_secs_f64();
    let runs = (sampling.warm_up + sampling.iterations) as f64;
    let timed = (once * runs).max(seconds(sampling.min_time));
    // One run is always taken, and one more to check.
    let timed = timed.min(seconds(sampling.max_time).max(once)) + once;
    timed + entries * case.k() as f64 * BESIDE_S + CASE_S
}

/// `45 s`, `12 min`, `3.5 h`.
fn words(seconds: f64) -> String {
    match seconds {
        s if s < 180.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::experiments;
    use super::super::timing::Scope;
    use super::*;

    const SAMPLING: Sampling = Sampling {
        warm_up: 2,
        iterations: 10,
        min_time: Duration::from_millis(10),
        max_time: Duration::from_secs(2),
    };

    fn cases() -> Vec<(&'static str, CaseSpec)> {
        let experiment = experiments::find("spmv-cpu-partitions").unwrap();
        let cases = experiment.cases(2, None, Scope::Kernel).into_iter();
        cases.map(|case| (experiment.name, case)).collect()
    }

    #[test]
    fn more_of_anything_takes_longer_and_shared_cases_count_once() {
        let cases = cases();
        let once = seconds(&cases, &[1_000_000], &SAMPLING);
        assert!(once > 0.1 && once < 60.0, "{once}");
        assert!(seconds(&cases, &[2_000_000], &SAMPLING) > once);
        assert_eq!(seconds(&cases, &[1_000_000; 2], &SAMPLING), 2.0 * once);
        let twice: Vec<_> = cases.iter().chain(&cases).cloned().collect();
        assert_eq!(seconds(&twice, &[1_000_000], &SAMPLING), once);
        let longer = Sampling { iterations: 1000, max_time: Duration::MAX, ..SAMPLING };
        assert!(seconds(&cases, &[1_000_000], &longer) > 10.0 * once);
    }

    #[test]
    fn a_dry_run_lists_everything_and_ends_with_the_time() {
        let cases = cases();
        let matrices = [Source::parse("stencil5[n=300]").unwrap()];
        let text = describe(&cases, &matrices, &SAMPLING, None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), cases.len() + 2);
        assert_eq!(lines[0], "spmv-cpu-partitions: csr-serial threads=1 k=1");
        assert_eq!(lines[8], "synthetic:stencil5[n=300]: about 448800 entries");
        assert!(lines[9].starts_with("8 cases x 1 matrices = 8, roughly "), "{}", lines[9]);
        let text = describe(&cases, &matrices, &SAMPLING, Some(0));
        assert!(text.contains(", roughly 0 s, cut from "), "{text}");
    }

    #[test]
    fn times_are_said_in_the_unit_that_fits() {
        assert_eq!([12.4, 600.0, 9000.0].map(words), ["12 s", "10 min", "2.5 h"]);
    }
}

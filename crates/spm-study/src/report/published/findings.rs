//! Questions that the reports' statements put to our rows.

use std::collections::BTreeMap;

use super::super::draw::{all_but, setting};
use super::super::load::{
    Axis, Metric, Results, Select, best_by, geometric_mean, is_timed, median, plain_name,
};
use super::super::model::{percent, significant};
use crate::results::{Row, Status};

/// Whether our rows say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Confirms,
    Contradicts,
    /// A figure of other hardware, or a setting: stands beside ours without a verdict.
    Stands,
}

/// What our rows say to a statement.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub(super) ours: String,
    pub(super) verdict: Verdict,
}

impl Finding {
    pub(super) fn new(holds: bool, ours: impl Into<String>) -> Self {
        let verdict = if holds { Verdict::Confirms } else { Verdict::Contradicts };
        Self { ours: ours.into(), verdict }
    }

    pub(super) fn beside(ours: impl Into<String>) -> Self {
        Self { ours: ours.into(), verdict: Verdict::Stands }
    }
}

/// Matrices above this many entries are large.
pub(super) const LARGE: u64 = 1_000_000;

/// Rows of one implementation.
pub(super) fn rows_of<'a>(results: &'a Results, select: Select<'a>) -> Vec<&'a Row> {
    results.timed().filter(|r| select.takes(r)).collect()
}

/// On how many matrices (and k) the best case of `a` is faster than that of `b`.
pub(super) fn share_faster(
    results: &Results,
    a: Select<'_>,
    b: Select<'_>,
) -> Option<(f64, usize)> {
    let best = |select: Select<'_>| {
        best_by(results.rows.iter().filter(|r| select.takes(r)), Metric::Gentries, |r| {
            (r.matrix.clone(), r.k, r.scope.clone())
        })
        .into_iter()
        .map(|(key, (speed, _))| (key, speed))
        .collect::<BTreeMap<_, _>>()
    };
    let (a, b) = (best(a), best(b));
    let pairs: Vec<bool> =
        a.iter().filter_map(|(key, speed)| Some(*speed > *b.get(key)?)).collect();
    let wins = pairs.iter().filter(|w| **w).count();
    (!pairs.is_empty()).then(|| (wins as f64 / pairs.len() as f64, pairs.len()))
}

/// `a` is faster than `b` on at least `least` of the matrices.
pub(super) fn faster(
    results: &Results,
    a: Select<'_>,
    b: Select<'_>,
    least: f64,
) -> Option<Finding> {
    let (share, count) = share_faster(results, a, b)?;
    Some(Finding::new(
        share >= least,
        format!("{} faster than {} in {} of {count}", a.kernel, b.kernel, percent(share)),
    ))
}

/// Among cases alike in all but `parameter`: those where `a` beats `b`, and those where it does so
/// by at least `gain` seconds.
pub(super) fn share_of_setting<'a>(
    rows: impl Iterator<Item = &'a Row>,
    parameter: &str,
    a: &str,
    b: &str,
    gain: f64,
) -> Option<(f64, f64, usize)> {
    let mut groups: BTreeMap<String, [Option<f64>; 2]> = BTreeMap::new();
    for row in rows.filter(|r| is_timed(r)) {
        let Some(value) = setting(row, parameter) else { continue };
        let group = groups.entry(all_but(row, parameter)).or_default();
        if value == a {
            group[0] = row.median_s;
        } else if value == b {
            group[1] = row.median_s;
        }
    }
    let pairs: Vec<f64> = groups.values().filter_map(|[a, b]| Some((*b)? - (*a)?)).collect();
    let share = |least: &dyn Fn(f64) -> bool| {
        pairs.iter().filter(|d| least(**d)).count() as f64 / pairs.len() as f64
    };
    (!pairs.is_empty()).then(|| (share(&|d| d > 0.0), share(&|d| d >= gain), pairs.len()))
}

/// The same side of one half as the printed percentage.
pub(super) fn same_side(share: f64, printed: &str, count: usize) -> Option<Finding> {
    let printed: f64 = printed.parse().ok()?;
    let holds = (share > 0.5) == (printed > 50.0);
    Some(Finding::new(holds, format!("{} of {count} pairs of cases", percent(share))))
}

/// Best value of a parameter on each (matrix, k), most frequent first.
pub(super) fn favourites<'a>(
    rows: impl Iterator<Item = &'a Row>,
    parameter: &str,
) -> Vec<(String, usize)> {
    let rows = rows.filter(|r| setting(r, parameter).is_some());
    let best = best_by(rows, Metric::Gentries, |r| (r.matrix.as_str(), r.k, r.kernel.as_str()));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, row) in best.values() {
        *counts.entry(setting(row, parameter).unwrap_or_default()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|c| std::cmp::Reverse(c.1));
    counts
}

/// `128: 5, 256: 3`.
pub(super) fn tally(counts: &[(String, usize)]) -> String {
    let total: usize = counts.iter().map(|c| c.1).sum();
    let parts: Vec<String> = counts.iter().map(|(v, n)| format!("{v} in {n}")).collect();
    format!("best: {} of {total}", parts.join(", "))
}

/// Number of different values that the rows have for a parameter.
fn values(rows: &[&Row], parameter: &str) -> usize {
    super::super::load::distinct(rows.iter().filter_map(|r| setting(r, parameter))).len()
}

/// One of `settings` is best on at least half of the matrices.
pub(super) fn mostly(rows: &[&Row], parameter: &str, settings: &[&str]) -> Option<Finding> {
    if values(rows, parameter) < 2 {
        return None;
    }
    let counts = favourites(rows.iter().copied(), parameter);
    let total: usize = counts.iter().map(|c| c.1).sum();
    let hits: usize = counts.iter().filter(|c| settings.contains(&c.0.as_str())).map(|c| c.1).sum();
    Some(Finding::new(2 * hits >= total, tally(&counts)))
}

/// No setting is best everywhere.
pub(super) fn no_favourite(rows: &[&Row], parameter: &str) -> Option<Finding> {
    if values(rows, parameter) < 2 {
        return None;
    }
    let counts = favourites(rows.iter().copied(), parameter);
    Some(Finding::new(counts.len() > 1, tally(&counts)))
}

/// Slowest over fastest setting of a parameter, geometric mean over like cases.
pub(super) fn spread<'a>(rows: impl Iterator<Item = &'a Row>, parameter: &str) -> Option<f64> {
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in rows.filter(|r| is_timed(r) && setting(r, parameter).is_some()) {
        groups.entry(all_but(row, parameter)).or_default().extend(row.median_s);
    }
    geometric_mean(groups.values().filter(|g| g.len() > 1).map(|g| {
        let low = g.iter().copied().fold(f64::INFINITY, f64::min);
        g.iter().copied().fold(0.0, f64::max) / low
    }))
}

/// Settings differ by less than 10 % on the geometric mean.
pub(super) fn flat(rows: &[&Row], parameter: &str) -> Option<Finding> {
    let spread = spread(rows.iter().copied(), parameter)?;
    Some(Finding::new(spread < 1.1, format!("slowest over fastest {}×", significant(spread))))
}

/// Median over the matrices of the thread count that is best, for large or small matrices.
pub(super) fn peak_threads(rows: &[&Row], large: bool) -> Option<f64> {
    let swept = || rows.iter().copied().filter(|r| r.threads.is_some());
    swept().filter_map(|r| r.threads).max().filter(|t| *t > 1)?;
    let of_size = swept().filter(|r| (r.entries >= LARGE) == large);
    let best = best_by(of_size, Metric::Gflops, |r| r.matrix.as_str());
    median(best.values().filter_map(|(_, r)| Axis::Threads.of(r)).map(|t| t as f64))
}

/// Physical cores of the machine, as far as it is described.
pub(super) fn cores(results: &Results) -> Option<f64> {
    let cpu = &results.environment["cpu"];
    ["physical_cores", "cores"].iter().find_map(|name| cpu[*name].as_f64())
}

/// Large matrices peak at the number of cores.
pub(super) fn peaks_at_cores(results: &Results, select: Select<'_>) -> Option<Finding> {
    let rows = rows_of(results, select);
    let peak = peak_threads(&rows, true).or_else(|| peak_threads(&rows, false))?;
    let most = rows.iter().filter_map(|r| r.threads).max()?;
    let text = format!("best at {} of 1 to {most} threads (median)", peak.round());
    Some(match cores(results) {
        Some(cores) => Finding::new(
            peak > 0.5 * cores && peak < 1.5 * cores,
            format!("{text}; the machine has {cores} cores"),
        ),
        None => Finding::beside(text),
    })
}

/// Whether ELLPACK was refused for these matrices.
pub(super) fn refused(results: &Results, names: &[&str]) -> Option<Finding> {
    let tried: Vec<&Row> = results
        .rows
        .iter()
        .filter(|r| {
            r.op == "spmv" && r.kernel.starts_with("ell-") && names.contains(&plain_name(&r.matrix))
        })
        .collect();
    let mut seen: BTreeMap<&str, bool> = BTreeMap::new();
    for row in &tried {
        let refused = row.status == Status::Failed || row.status == Status::Skipped;
        let all = seen.entry(plain_name(&row.matrix)).or_insert(true);
        *all &= refused;
    }
    if seen.is_empty() {
        return None;
    }
    let refused = seen.values().filter(|r| **r).count();
    Some(Finding::new(
        refused == seen.len(),
        format!("refused for {refused} of the {} measured here", seen.len()),
    ))
}

/// Largest value of a metric that an implementation reaches, of whole calls where there are any.
pub(super) fn greatest(results: &Results, select: Select<'_>, metric: Metric) -> Option<f64> {
    let value = |scope: &str| {
        rows_of(results, select)
            .into_iter()
            .filter(|r| scope.is_empty() || r.scope == scope)
            .filter_map(|r| metric.of(r))
            .reduce(f64::max)
    };
    value("call").or_else(|| value(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(matrix: &str, kernel: &str, params: &str, seconds: f64) -> Row {
        Row {
            op: "spmv".into(),
            backend: "cpu".into(),
            matrix: matrix.into(),
            kernel: kernel.into(),
            params: params.into(),
            entries: 1000,
            median_s: Some(seconds),
            ..Row::default()
        }
    }

    #[test]
    fn shares_count_pairs_only() {
        let results = Results {
            rows: vec![
                row("a", "csr", "", 1.0),
                row("a", "ell", "", 2.0),
                row("b", "csr", "", 2.0),
                row("b", "ell", "", 1.0),
                row("c", "csr", "", 1.0),
            ],
            ..Results::default()
        };
        let select = |kernel| Select::new("spmv", "cpu", kernel);
        assert_eq!(share_faster(&results, select("csr"), select("ell")), Some((0.5, 2)));
        assert!(share_faster(&results, select("csr"), select("hll")).is_none());
    }

    #[test]
    fn settings_are_counted_with_their_gain() {
        let rows = [
            row("a", "k", "simd=on", 1.0),
            row("a", "k", "simd=off", 1.001),
            row("b", "k", "simd=on", 1.0),
            row("b", "k", "simd=off", 2.0),
            row("c", "k", "simd=on", 3.0),
            row("c", "k", "simd=off", 2.0),
            row("d", "k", "simd=off", 2.0),
        ];
        let (share, gain, count) = share_of_setting(rows.iter(), "simd", "on", "off", 0.5).unwrap();
        assert_eq!((count, share, gain), (3, 2.0 / 3.0, 1.0 / 3.0));
        assert_eq!(same_side(share, "42", 3).unwrap().verdict, Verdict::Contradicts);
        assert_eq!(same_side(share, "61.86", 3).unwrap().verdict, Verdict::Confirms);
        let references: Vec<&Row> = rows.iter().collect();
        assert_eq!(no_favourite(&references, "simd").unwrap().verdict, Verdict::Confirms);
        let widest = spread(rows.iter(), "simd").unwrap();
        assert!((widest - (1.001f64 * 2.0 * 1.5).powf(1.0 / 3.0)).abs() < 1e-12);
    }
}

//! A results folder in memory, and the questions that the sections ask of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;

use crate::bench::Precision;
use crate::bench::runner::is_baseline;
use crate::results::{self, MatrixFile, Row, SYNTHETIC, Status};

/// Everything that a results folder holds.
#[derive(Debug, Default, Clone)]
pub(super) struct Results {
    /// One row per case: of two lines of the same case the later one counts, unless only the
    /// earlier one is ok.
    pub(super) rows: Vec<Row>,
    pub(super) environment: serde_json::Value,
    pub(super) matrices: Vec<MatrixFile>,
}

impl Results {
    /// Reads the folder; files that are not there are empty.
    pub(super) fn load(folder: &Path) -> anyhow::Result<Self> {
        let table = folder.join(results::RESULTS_FILE);
        let rows = if table.is_file() { results::read(&table)? } else { Vec::new() };
        let environment = folder.join(results::ENVIRONMENT_FILE);
        let environment = if environment.is_file() {
            let text = std::fs::read(&environment)
                .with_context(|| format!("cannot read {}", environment.display()))?;
            serde_json::from_slice(&text)
                .with_context(|| format!("{} is not JSON", environment.display()))?
        } else {
            serde_json::Value::Null
        };
        let mut rows = latest(rows);
        fill_speedups(&mut rows);
        super::roofline::without_false_fractions(&mut rows, &environment);
        Ok(Self { rows, environment, matrices: MatrixFile::read_all(folder)? })
    }

    /// Rows that agree with the reference and have a time.
    pub(super) fn timed(&self) -> impl Iterator<Item = &Row> + Clone {
        self.rows.iter().filter(|r| is_timed(r))
    }

    /// Names of the experiments in the order of their first rows.
    pub(super) fn experiments(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        self.rows.iter().map(|r| r.experiment.as_str()).filter(|e| seen.insert(*e)).collect()
    }

    /// Types of the values, in the order of their first rows.
    pub(super) fn precisions(&self) -> Vec<String> {
        let mut all = distinct(self.rows.iter().map(precision).map(str::to_owned));
        if all.is_empty() {
            all.push(Precision::default().name().to_owned());
        }
        all
    }

    /// The same folder with the rows of one type of values.
    pub(super) fn of_precision(&self, name: &str) -> Self {
        let mut results = self.clone();
        results.rows.retain(|row| precision(row) == name);
        results
    }

    /// The description of a matrix.
    pub(super) fn matrix(&self, name: &str) -> Option<&MatrixFile> {
        self.matrices.iter().find(|m| m.name == name)
    }
}

fn latest(rows: Vec<Row>) -> Vec<Row> {
    let mut place = BTreeMap::new();
    let mut kept: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        match place.get(&row.key()) {
            Some(&at) => {
                let old: &mut Row = &mut kept[at];
                if row.status == Status::Ok || old.status != Status::Ok {
                    *old = row;
                }
            }
            None => {
                place.insert(row.key(), kept.len());
                kept.push(row);
            }
        }
    }
    kept
}

/// Speedups of cases that were measured before the serial product of their matrix.
fn fill_speedups(rows: &mut [Row]) {
    let serial: BTreeMap<_, f64> = rows
        .iter()
        .filter(|r| is_timed(r) && r.backend == "cpu" && is_baseline(&r.kernel))
        .filter_map(|r| Some((r.baseline(), r.median_s?)))
        .collect();
    // The efficiency of a distributed product counts from fewer ranks.
    let alone = |r: &&mut Row| is_timed(r) && r.speedup_vs_serial.is_none() && r.ranks.is_none();
    for row in rows.iter_mut().filter(alone) {
        row.speedup_vs_serial =
            serial.get(&row.baseline()).zip(row.median_s).map(|(s, own)| s / own);
        let threads = row.threads.filter(|_| row.backend == "cpu");
        row.efficiency = row.speedup_vs_serial.zip(threads).map(|(s, t)| s / t as f64);
    }
}

/// Type of the values of a case.
fn precision(row: &Row) -> &str {
    if row.precision.is_empty() { Precision::default().name() } else { &row.precision }
}

pub(super) fn is_timed(row: &Row) -> bool {
    row.status == Status::Ok && row.median_s.is_some_and(|s| s.is_finite() && s > 0.0)
}

/// The name by which reports know a matrix: without `synthetic:`, group and file ending.
pub(super) fn plain_name(matrix: &str) -> &str {
    let name = matrix.strip_prefix(SYNTHETIC).unwrap_or(matrix);
    let name = name.rsplit('/').next().unwrap_or(name);
    name.strip_suffix(".mtx").unwrap_or(name)
}

/// Kernel with the parameters that are not columns of their own.
pub(super) fn variant(row: &Row) -> String {
    let params: Vec<&str> = row
        .params
        .split(',')
        .map(str::trim)
        .filter(|p| {
            let name = p.split('=').next().unwrap_or_default();
            !p.is_empty() && !matches!(name, "threads" | "block" | "k")
        })
        .collect();
    if params.is_empty() {
        row.kernel.clone()
    } else {
        format!("{}[{}]", row.kernel, params.join(","))
    }
}

/// Bytes that one run of a case moves at least.
pub(super) fn bytes_moved(row: &Row) -> Option<f64> {
    Some(row.gbytes_per_s? * row.median_s? * 1e9).filter(|bytes| *bytes > 0.0)
}

/// Operation-independent speed: 10^9 stored entries a second (times k for SpMM).
pub(super) fn gentries(row: &Row) -> Option<f64> {
    let seconds = row.median_s.filter(|s| *s > 0.0)?;
    let k = row.k.unwrap_or(1).max(1) as f64;
    Some(row.entries as f64 * if row.op == "spmm" { k } else { 1.0 } / seconds / 1e9)
}

/// A column of the results that plots and tables show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Gflops,
    Gentries,
    Speedup,
    Efficiency,
}

impl Metric {
    pub(super) fn of(self, row: &Row) -> Option<f64> {
        let value = match self {
            Self::Gflops => row.gflops,
            Self::Gentries => gentries(row),
            Self::Speedup => row.speedup_vs_serial,
            Self::Efficiency => row.efficiency,
        };
        value.filter(|v| v.is_finite() && *v > 0.0)
    }

    /// Heading, with unit.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Gflops => "GFLOPS",
            Self::Gentries => "10⁹ entries/s",
            Self::Speedup => "speedup over serial",
            Self::Efficiency => "efficiency (speedup / threads)",
        }
    }

    /// Word for file names.
    pub(super) fn slug(self) -> &'static str {
        match self {
            Self::Gflops => "gflops",
            Self::Gentries => "entries",
            Self::Speedup => "speedup",
            Self::Efficiency => "efficiency",
        }
    }

    /// GFLOPS where the rows have them, else entries a second.
    pub(super) fn speed<'a>(mut rows: impl Iterator<Item = &'a Row>) -> Self {
        if rows.any(|r| Self::Gflops.of(r).is_some()) { Self::Gflops } else { Self::Gentries }
    }
}

/// Numeric axis that an experiment sweeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Threads,
    Block,
    K,
}

impl Axis {
    pub(super) const ALL: [Self; 3] = [Self::Threads, Self::Block, Self::K];

    pub(super) fn of(self, row: &Row) -> Option<u64> {
        match self {
            Self::Threads => row.threads.filter(|_| row.backend == "cpu"),
            Self::Block => row.block,
            Self::K => row.k,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Block => "block",
            Self::K => "k",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Threads => "CPU threads",
            Self::Block => "threads in a block",
            Self::K => "columns of X (k)",
        }
    }
}

/// Which rows a report's implementation corresponds to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Select<'a> {
    pub(super) op: &'a str,
    pub(super) backend: &'a str,
    pub(super) kernel: &'a str,
    /// `name=value` that must hold; empty for any.
    pub(super) param: &'a str,
}

impl<'a> Select<'a> {
    pub(super) fn new(op: &'a str, backend: &'a str, kernel: &'a str) -> Self {
        Self { op, backend, kernel, param: "" }
    }

    pub(super) fn with(self, param: &'a str) -> Self {
        Self { param, ..self }
    }

    pub(super) fn takes(&self, row: &Row) -> bool {
        row.op == self.op
            && row.backend == self.backend
            && row.kernel == self.kernel
            && self.param.split_once('=').is_none_or(|(n, v)| row.param(n) == Some(v))
    }
}

/// The greatest value of `metric` per key, with its row.
pub(super) fn best_by<'a, K: Ord>(
    rows: impl Iterator<Item = &'a Row>,
    metric: Metric,
    key: impl Fn(&'a Row) -> K,
) -> BTreeMap<K, (f64, &'a Row)> {
    let mut best: BTreeMap<K, (f64, &Row)> = BTreeMap::new();
    for row in rows.filter(|r| is_timed(r)) {
        let Some(value) = metric.of(row) else { continue };
        let entry = best.entry(key(row)).or_insert((value, row));
        if value > entry.0 {
            *entry = (value, row);
        }
    }
    best
}

/// Matrices among the rows, smallest first.
pub(super) fn matrices<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'a str> {
    let mut sizes = BTreeMap::new();
    for row in rows {
        // A matrix that could not be loaded has rows without a size.
        let size = sizes.entry(row.matrix.as_str()).or_insert(0);
        *size = row.entries.max(*size);
    }
    let mut names: Vec<(&str, u64)> = sizes.into_iter().collect();
    names.sort_by_key(|(name, entries)| (*entries, *name));
    names.into_iter().map(|(name, _)| name).collect()
}

/// Different values in the order of their first appearance.
pub(super) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut out = Vec::new();
    for value in values {
        if !out.contains(&value) {
            out.push(value);
        }
    }
    out
}

/// Geometric mean of positive values; `None` of nothing.
pub(super) fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0usize);
    for value in values.filter(|v| v.is_finite() && *v > 0.0) {
        sum += value.ln();
        count += 1;
    }
    (count > 0).then(|| (sum / count as f64).exp())
}

/// Middle value; `None` of nothing.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(values[n / 2]),
        _ => Some((values[n / 2 - 1] + values[n / 2]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kernel: &str, params: &str, gflops: f64) -> Row {
        Row {
            op: "spmv".into(),
            backend: "cpu".into(),
            matrix: "synthetic:cant".into(),
            kernel: kernel.into(),
            params: params.into(),
            gflops: Some(gflops),
            median_s: Some(1.0 / gflops),
            ..Row::default()
        }
    }

    #[test]
    fn a_repeated_case_counts_once() {
        let failed = Row { status: Status::Failed, ..row("a", "", 9.0) };
        let rows = latest(vec![row("a", "", 1.0), row("b", "", 3.0), row("a", "", 2.0), failed]);
        assert_eq!(rows, [row("a", "", 2.0), row("b", "", 3.0)]);
    }

    #[test]
    fn a_serial_product_measured_later_counts() {
        let gpu = Row { backend: "gpu".into(), ..row("csr-thread-per-row", "", 8.0) };
        let other = Row { matrix: "b".into(), ..gpu.clone() };
        let mut rows = vec![gpu, other, row("csr-serial", "", 2.0)];
        let distributed = Row { ranks: Some(2), efficiency: Some(0.9), ..row("csr-rows", "", 6.0) };
        rows.push(distributed.clone());
        fill_speedups(&mut rows);
        assert_eq!(rows[0].speedup_vs_serial, Some(4.0));
        assert_eq!((rows[0].efficiency, rows[1].speedup_vs_serial), (None, None));
        assert_eq!(rows[3], distributed);
    }

    #[test]
    fn names_and_variants() {
        assert_eq!(plain_name("synthetic:cant"), "cant");
        assert_eq!(plain_name("Williams/cant.mtx"), "cant");
        assert_eq!(variant(&row("csr-tiles", "grid=10x4,threads=4", 1.0)), "csr-tiles[grid=10x4]");
        assert_eq!(variant(&row("csr-serial", "", 1.0)), "csr-serial");
    }

    #[test]
    fn selections_and_bests() {
        let rows = [row("hll", "hack=16", 1.0), row("hll", "hack=32", 4.0), row("csr", "", 2.0)];
        let hll = Select::new("spmv", "cpu", "hll");
        assert_eq!(rows.iter().filter(|r| hll.takes(r)).count(), 2);
        assert_eq!(rows.iter().filter(|r| hll.with("hack=16").takes(r)).count(), 1);
        let best = best_by(rows.iter(), Metric::Gflops, |r| &r.kernel);
        assert_eq!(best[&"hll".to_owned()].0, 4.0);
    }

    #[test]
    fn means() {
        assert_eq!(geometric_mean([2.0, 8.0, 0.0].into_iter()), Some(4.0));
        assert_eq!(geometric_mean([].into_iter()), None);
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
    }
}

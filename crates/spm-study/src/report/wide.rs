//! `auto` against the best peer of the same run, matrix by matrix: the distribution of the ratios.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use spm_testing::generate::Values;

use super::experiments::command;
use super::load::{Results, geometric_mean, is_timed};
use super::model::{Cell, Section, Table, percent, significant};
use super::plot::{Point, Series, XyPlot};
use super::scale::Kind;
use super::svg::Figure;
use crate::bench::experiments::WIDE;
use crate::bench::runner::is_baseline;
use crate::recipe::{self, Recipe};
use crate::results::Row;

/// What is compared: `auto` with its parameters in one operation on one backend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Comparison {
    backend: String,
    op: String,
    k: Option<u64>,
    threads: Option<u64>,
    form: &'static str,
}

/// One matrix in a comparison.
#[derive(Debug)]
struct Ratio<'a> {
    auto: &'a Row,
    peer: &'a Row,
    values: &'static str,
    /// Seconds of the fastest peer over those of `auto`.
    ratio: f64,
}

/// The matrices of a comparison, that with the least ratio first.
#[derive(Debug, Default)]
struct Ratios<'a> {
    sorted: Vec<Ratio<'a>>,
    /// Matrices without a ratio: `auto` or every peer failed.
    left_out: Vec<&'a str>,
}

/// Number, geometric mean, least, and share below 1.0 of some ratios.
#[derive(Debug, PartialEq)]
struct Digest {
    matrices: usize,
    mean: f64,
    least: f64,
    below: f64,
}

impl Digest {
    fn of(ratios: &[f64]) -> Option<Self> {
        Some(Self {
            matrices: ratios.len(),
            mean: geometric_mean(ratios.iter().copied())?,
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            below: ratios.iter().filter(|ratio| **ratio < 1.0).count() as f64 / ratios.len() as f64,
        })
    }
}

impl Comparison {
    fn of(row: &Row) -> Self {
        let form = match row.param("compact") {
            Some("off") => "full width",
            Some(_) => "lossless compression",
            None => "",
        };
        let threads = row.threads.filter(|_| row.backend == "cpu");
        let (backend, op) = (row.backend.clone(), row.op.clone());
        Self { backend, op, k: row.k, threads, form }
    }

    /// Whether a row is of a peer of this comparison: the serial kernel is one whatever the number of threads.
    fn is_peer(&self, row: &Row) -> bool {
        (&row.backend, &row.op, row.k) == (&self.backend, &self.op, self.k)
            && (self.threads.is_none() || row.threads == self.threads || is_baseline(&row.kernel))
    }

    fn name(&self) -> String {
        let mut name = format!("{} {}", self.op, self.backend);
        if let Some(k) = self.k {
            let _ = write!(name, " k={k}");
        }
        if let Some(threads) = self.threads {
            let _ = write!(name, " threads={threads}");
        }
        if !self.form.is_empty() {
            let _ = write!(name, ", {}", self.form);
        }
        name
    }

    fn id(&self) -> String {
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        format!("{}-{}", WIDE.name, self.name().chars().map(word).collect::<String>())
    }
}

/// The kind of a matrix's values by its label; symmetric ones are general ones.
fn values_of(matrix: &str) -> &'static str {
    match recipe::named(matrix) {
        Ok(Recipe::Class(spec)) => match spec.values() {
            Values::Symmetric => Values::General.name(),
            values => values.name(),
        },
        _ => "collected",
    }
}

fn comparisons(results: &Results) -> BTreeMap<Comparison, Ratios<'_>> {
    let rows: Vec<&Row> = results.rows.iter().filter(|r| r.experiment == WIDE.name).collect();
    let mut by_matrix: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for &row in &rows {
        by_matrix.entry(&row.matrix).or_default().push(row);
    }
    let mut all: BTreeMap<Comparison, Ratios<'_>> = BTreeMap::new();
    for auto in rows.iter().filter(|r| r.kernel == "auto") {
        let comparison = Comparison::of(auto);
        let peers = by_matrix[auto.matrix.as_str()]
            .iter()
            .filter(|r| r.kernel != "auto" && is_timed(r) && comparison.is_peer(r));
        let best =
            peers.min_by(|a, b| a.median_s.unwrap_or(0.0).total_cmp(&b.median_s.unwrap_or(0.0)));
        let times = best.and_then(|peer| Some((*peer, peer.median_s?, auto.median_s?)));
        let ratios = all.entry(comparison).or_default();
        match times.filter(|_| is_timed(auto)) {
            Some((peer, of_peer, own)) => {
                let values = values_of(&auto.matrix);
                ratios.sorted.push(Ratio { auto, peer, values, ratio: of_peer / own });
            }
            None => ratios.left_out.push(&auto.matrix),
        }
    }
    all.values_mut().for_each(|r| r.sorted.sort_by(|a, b| a.ratio.total_cmp(&b.ratio)));
    all
}

impl Ratios<'_> {
    /// Over all matrices, over those with general values, and over the others.
    fn digests(&self) -> Vec<(&'static str, Digest)> {
        let general = Values::General.name();
        let of = |keep: &dyn Fn(&Ratio<'_>) -> bool| {
            let kept = self.sorted.iter().filter(|r| keep(r)).map(|r| r.ratio);
            Digest::of(&kept.collect::<Vec<_>>())
        };
        [
            ("all", of(&|_| true)),
            (general, of(&|r| r.values == general)),
            ("compressible", of(&|r| r.values != general)),
        ]
        .into_iter()
        .filter_map(|(name, digest)| Some((name, digest?)))
        .collect()
    }
}

/// The distributions in a table of text, for the end of a run; `None` without ratios.
///
/// # Errors
/// A results folder that cannot be read.
pub fn summary(results: &Path) -> anyhow::Result<Option<String>> {
    let results = Results::load(results)?;
    let comparisons = comparisons(&results);
    if comparisons.is_empty() {
        return Ok(None);
    }
    let mut text = format!(
        "{:<46} {:<13} {:>8} {:>8} {:>6} {:>9} {:>8}\n",
        "auto against the best peer",
        "values",
        "matrices",
        "geo.mean",
        "least",
        "below 1.0",
        "left out"
    );
    for (comparison, ratios) in &comparisons {
        for (values, digest) in ratios.digests() {
            let Digest { matrices, mean, least, below } = digest;
            let left_out =
                if values == "all" { ratios.left_out.len().to_string() } else { String::new() };
            let name = comparison.name();
            let below = percent(below);
            let _ = writeln!(
                text,
                "{name:<46} {values:<13} {matrices:>8} {mean:>8.3} {least:>6.2} {below:>9} {left_out:>8}"
            );
        }
    }
    for (comparison, ratios) in &comparisons {
        let losers = ratios.sorted.iter().take_while(|r| r.ratio < 1.0);
        for Ratio { auto, peer, ratio, .. } in losers {
            let (name, kernel) = (comparison.name(), &peer.kernel);
            let _ = writeln!(text, "{ratio:.2} {name}: {} ({kernel})", auto.matrix);
        }
    }
    Ok(Some(text))
}

/// The section of the report; `None` if the suite was not run.
pub(super) fn section(results: &Results) -> Option<Section> {
    let comparisons = comparisons(results);
    if comparisons.is_empty() {
        return None;
    }
    let mut section = Section::new(WIDE.name, WIDE.title);
    section.text(format!(
        "`{}`: time of the fastest peer of the same run over the time of `auto`, on matrices that \
         nobody tuned on. Matrices of general values need all 53 bits of each value; those of \
         compressible ones have equal values, few distinct ones, or values exact in single precision.",
        command(WIDE.name)
    ));
    let mut table = Table::new(
        format!("{}-summary", WIDE.name),
        "Distribution of the ratios",
        &["comparison", "values", "matrices", "geometric mean", "least", "below 1.0", "left out"],
    );
    for (comparison, ratios) in &comparisons {
        for (values, digest) in ratios.digests() {
            table.push(vec![
                Cell::text(comparison.name()),
                Cell::text(values),
                Cell::Count(digest.matrices as u64),
                Cell::Ratio(digest.mean),
                Cell::Ratio(digest.least),
                Cell::Fraction(digest.below),
                Cell::Count(ratios.left_out.len() as u64),
            ]);
        }
    }
    section.table(table);
    section.figure(figure(&comparisons));
    for (comparison, ratios) in &comparisons {
        section.heading(comparison.name());
        let losers = ratios.sorted.iter().take_while(|r| r.ratio < 1.0);
        let losers: Vec<String> = losers
            .map(|r| format!("{}× {} ({})", significant(r.ratio), r.auto.matrix, r.peer.kernel))
            .collect();
        section.text(match losers.len() {
            0 => "`auto` loses on no matrix.".to_owned(),
            count => format!("`auto` loses on {count} of {} matrices:", ratios.sorted.len()),
        });
        section.list(losers);
        let mut every = Section::default();
        every.table(every_matrix(comparison, ratios));
        section.details(format!("All {} matrices", ratios.sorted.len()), every);
    }
    Some(section)
}

/// Ratios over their rank, a line for each comparison.
fn figure(comparisons: &BTreeMap<Comparison, Ratios<'_>>) -> Figure {
    let lines: Vec<Series> = comparisons
        .iter()
        .enumerate()
        .map(|(index, (comparison, ratios))| {
            let count = ratios.sorted.len().max(1) as f64;
            let points = ratios.sorted.iter().enumerate().map(|(rank, r)| Point {
                x: 100.0 * (rank + 1) as f64 / count,
                y: r.ratio,
                tip: format!("{}: {}", r.auto.matrix, significant(r.ratio)),
            });
            Series { index, name: comparison.name(), points: points.collect() }
        })
        .collect();
    let plot = XyPlot {
        title: "peer / auto".to_owned(),
        x_label: "matrices with this ratio or less (%)".to_owned(),
        y_kind: Kind::Log,
        lines,
        reference: Some(1.0),
        ..XyPlot::default()
    };
    Figure {
        id: format!("{}-ratios", WIDE.name),
        title: "Sorted ratios".to_owned(),
        caption: "Below the dotted line a peer is faster.".to_owned(),
        legend: comparisons.keys().map(Comparison::name).collect(),
        panels: plot.panel().into_iter().collect(),
        ..Figure::default()
    }
}

fn every_matrix(comparison: &Comparison, ratios: &Ratios<'_>) -> Table {
    let columns =
        ["matrix", "rows", "entries", "values", "ratio", "auto", "choice", "best peer", "peer"];
    let mut table = Table::new(comparison.id(), comparison.name(), &columns);
    for Ratio { auto, peer, values, ratio } in &ratios.sorted {
        table.push(vec![
            Cell::text(&auto.matrix),
            Cell::Count(auto.rows),
            Cell::Count(auto.entries),
            Cell::text(*values),
            Cell::Ratio(*ratio),
            Cell::option(auto.median_s, Cell::Seconds),
            Cell::code(&auto.choice),
            Cell::option(peer.median_s, Cell::Seconds),
            Cell::code(super::load::variant(peer)),
        ]);
    }
    let note = match &*ratios.left_out {
        [] => String::new(),
        names => format!("Without a ratio: {}.", names.join(", ")),
    };
    table.note(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Status;

    fn row(matrix: &str, kernel: &str, params: &str, seconds: f64) -> Row {
        Row {
            experiment: WIDE.name.into(),
            matrix: matrix.into(),
            op: "spmv".into(),
            backend: "gpu".into(),
            kernel: kernel.into(),
            params: params.into(),
            median_s: Some(seconds),
            ..Row::default()
        }
    }

    fn results() -> Results {
        let general = "synthetic:uniform[rows=3,cols=3,entries=4]";
        let equal = "synthetic:stencil5[n=3,values=ones]";
        let broken = "synthetic:stencil5[n=4]";
        let rows = vec![
            row(general, "auto", "compact=on,single-values=on", 2.0),
            row(general, "auto", "compact=off,single-values=off", 4.0),
            row(general, "cusparse-csr-alg1", "", 3.0),
            row(general, "cusparse-csr-alg2", "", 9.0),
            Row { backend: "cpu".into(), ..row(general, "csr-serial", "", 0.1) },
            row(equal, "auto", "compact=on,single-values=on", 1.0),
            row(equal, "auto", "compact=off,single-values=off", 1.0),
            row(equal, "cusparse-sell", "slice=2", 6.0),
            Row {
                status: Status::Failed,
                ..row(broken, "auto", "compact=on,single-values=on", 1.0)
            },
            row(broken, "cusparse-csr-alg1", "", 3.0),
        ];
        Results { rows, ..Results::default() }
    }

    #[test]
    fn ratios_are_of_the_best_peer_and_sorted() {
        let results = results();
        let comparisons = comparisons(&results);
        let names: Vec<String> = comparisons.keys().map(Comparison::name).collect();
        assert_eq!(names, ["spmv gpu, full width", "spmv gpu, lossless compression"]);
        let ratios: Vec<Vec<f64>> =
            comparisons.values().map(|r| r.sorted.iter().map(|r| r.ratio).collect()).collect();
        assert_eq!(ratios, [[0.75, 6.0], [1.5, 6.0]]);
        let compressed = comparisons.values().last().unwrap();
        assert_eq!(compressed.left_out, ["synthetic:stencil5[n=4]"]);
        let (all, digest) = &comparisons.values().next().unwrap().digests()[0];
        assert_eq!((*all, digest.matrices, digest.below), ("all", 2, 0.5));
        assert!((digest.mean - 4.5f64.sqrt()).abs() < 1e-12 && digest.least == 0.75);
        let general = &compressed.digests()[1];
        assert_eq!((general.0, general.1.least, general.1.matrices), ("general", 1.5, 1));
    }

    #[test]
    fn losers_are_named() {
        let section = section(&results()).unwrap();
        let text = format!("{section:?}");
        assert!(
            text.contains("0.750× synthetic:uniform[rows=3,cols=3,entries=4] (cusparse-csr-alg1)")
        );
        assert!(super::section(&Results::default()).is_none());
    }

    #[test]
    fn thread_counts_are_compared_with_their_own_and_the_serial_kernel() {
        let cpu = |kernel: &str, threads, seconds| Row {
            backend: "cpu".into(),
            threads: Some(threads),
            ..row("m", kernel, "", seconds)
        };
        let rows = vec![
            cpu("auto", 1, 4.0),
            cpu("auto", 8, 1.0),
            cpu("csr-serial", 1, 8.0),
            cpu("csr-rows", 1, 9.0),
            cpu("csr-rows", 8, 2.0),
        ];
        let results = Results { rows, ..Results::default() };
        let comparisons = comparisons(&results);
        let ratios: Vec<f64> = comparisons.values().map(|r| r.sorted[0].ratio).collect();
        assert_eq!(ratios, [2.0, 2.0]);
    }
}

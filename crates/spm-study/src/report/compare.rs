//! Two results folders in one page: ratios with confidence intervals, regressions named.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::bars::{Bar, BarPlot};
use super::load::{Results, geometric_mean, is_timed, plain_name, variant};
use super::model::{Cell, Document, Section, Table, percent, seconds, significant};
use super::plot::{Point, Series, XyPlot};
use super::scale::Kind;
use super::svg::Figure;
use super::{environment, html};
use crate::results::{CaseKey, Row, Status};

/// What a comparison says.
#[derive(Debug)]
pub struct Comparison {
    /// The page.
    pub page: PathBuf,
    /// Cases that both have a time for.
    pub cases: usize,
    /// A line for each regression: kernels that got slower beyond noise, cases that ended well in the
    /// first folder only.
    pub regressions: Vec<String>,
    /// The ratio over all cases with its interval, in words.
    pub summary: String,
}

/// Resamples of a bootstrap, and the share of them inside the interval.
const RESAMPLES: usize = 2000;
const INSIDE: f64 = 0.95;
/// Fewer cases than this are not resampled: their own quantiles bound the ratio.
const FEW: usize = 5;

/// One case in both folders.
struct Pair<'a> {
    old: &'a Row,
    new: &'a Row,
    /// Time of the first folder over that of the second: above 1 the second is faster.
    ratio: f64,
}

impl Pair<'_> {
    /// The ratios of the far ends of both samples (10th and 90th percentiles).
    fn ends(&self) -> (f64, f64) {
        let quantile = |row: &Row, value: Option<f64>| value.or(row.median_s).unwrap_or(f64::NAN);
        let (old, new) = (self.old, self.new);
        (
            quantile(old, old.p10_s) / quantile(new, new.p90_s),
            quantile(old, old.p90_s) / quantile(new, new.p10_s),
        )
    }

    /// Whether the second folder's case is slower by more than `threshold`, and its sample lies beyond
    /// the first's.
    fn slower(&self, threshold: f64) -> bool {
        self.ends().1 < 1.0 && self.ratio < 1.0 - threshold
    }
}

/// A geometric mean with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mean {
    value: f64,
    low: f64,
    high: f64,
}

impl Mean {
    /// Of the ratios of some pairs: the interval by resampling the pairs, where there are enough.
    fn of(pairs: &[&Pair<'_>]) -> Option<Self> {
        let value = geometric_mean(pairs.iter().map(|p| p.ratio))?;
        if pairs.len() < FEW {
            let low = geometric_mean(pairs.iter().map(|p| p.ends().0))?;
            let high = geometric_mean(pairs.iter().map(|p| p.ends().1))?;
            return Some(Self { value, low: low.min(value), high: high.max(value) });
        }
        let logs: Vec<f64> = pairs.iter().map(|p| p.ratio.ln()).collect();
        // A fixed seed: the same folders give the same page.
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut means: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let sum: f64 = logs.iter().map(|_| logs[random.random_range(0..logs.len())]).sum();
                sum / logs.len() as f64
            })
            .collect();
        means.sort_by(f64::total_cmp);
        let at = |share: f64| means[(share * (RESAMPLES - 1) as f64).round() as usize].exp();
        Some(Self { value, low: at((1.0 - INSIDE) / 2.0), high: at((1.0 + INSIDE) / 2.0) })
    }

    fn words(self) -> String {
        let [value, low, high] = [self.value, self.low, self.high].map(significant);
        format!("{value}× ({low} to {high})")
    }
}

/// The cases of one kernel.
struct Kernel<'a> {
    name: String,
    backend: &'a str,
    pairs: Vec<&'a Pair<'a>>,
    mean: Mean,
}

impl Kernel<'_> {
    fn slower(&self, threshold: f64) -> bool {
        self.mean.high < 1.0 && self.mean.value < 1.0 - threshold
    }
}

/// Compares the results in `old` with those in `new`, and writes the page `compare.html` into `out`. A
/// kernel has regressed if its time is longer by `threshold` (0.05: five percent) on the geometric mean and
/// the whole interval lies above.
///
/// # Errors
/// A folder that is not there, a file that is damaged, no case in common, an output that cannot be written.
pub fn compare(old: &Path, new: &Path, out: &Path, threshold: f64) -> anyhow::Result<Comparison> {
    for folder in [old, new] {
        ensure!(folder.is_dir(), "{} is not a folder", folder.display());
    }
    let names = [old, new].map(|folder| folder.display().to_string());
    let results = [Results::load(old)?, Results::load(new)?];
    let by_key: BTreeMap<CaseKey, &Row> = results[0].rows.iter().map(|r| (r.key(), r)).collect();
    let mut pairs = Vec::new();
    let mut lost = Vec::new();
    let mut only_new = 0;
    for row in &results[1].rows {
        let Some(before) = by_key.get(&row.key()).copied() else {
            only_new += 1;
            continue;
        };
        match (is_timed(before), is_timed(row)) {
            (true, true) => {
                let ratio = before.median_s.unwrap_or(f64::NAN) / row.median_s.unwrap_or(f64::NAN);
                pairs.push(Pair { old: before, new: row, ratio });
            }
            (true, false) if matches!(row.status, Status::Failed | Status::Mismatch) => {
                lost.push(format!(
                    "{} {} {} on {}: {} ({})",
                    row.op,
                    row.backend,
                    variant(row),
                    row.matrix,
                    row.status,
                    row.reason
                ));
            }
            _ => {}
        }
    }
    ensure!(!pairs.is_empty(), "{} and {} have no timed case in common", names[0], names[1]);
    let kernels = kernels(&pairs);
    let mut regressions: Vec<String> = kernels
        .iter()
        .filter(|kernel| kernel.slower(threshold))
        .map(|k| format!("{}: {} on {} cases", k.name, k.mean.words(), k.pairs.len()))
        .collect();
    regressions.extend(lost);
    let all: Vec<&Pair<'_>> = pairs.iter().collect();
    let mean = Mean::of(&all).context("no ratio")?;
    let common = pairs.len();
    let only_old = results[0].rows.len() - (results[1].rows.len() - only_new);
    let summary = format!("{} over {common} cases", mean.words());
    let mut sections = vec![
        verdict(&names, &regressions, &summary, (only_old, only_new), threshold),
        of_kernels(&kernels, threshold),
        of_cases(&pairs, threshold),
    ];
    for (name, results) in names.iter().zip(&results) {
        let mut section = environment::section(results);
        section.of_precision(name_of(&names, name));
        section.precision.clear();
        section.title = format!("Environment of {name}");
        sections.push(section);
    }
    let sections = sections.into_iter().map(|section| section.in_group("Comparison")).collect();
    let document = Document {
        title: "Two runs compared".into(),
        subtitle: format!("A: {}, B: {}", names[0], names[1]),
        backends: super::load::distinct(pairs.iter().map(|p| p.new.backend.clone())),
        sections,
        ..Document::default()
    };
    std::fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let page = out.join("compare.html");
    crate::files::write_whole(&page, html::page(&document))
        .with_context(|| format!("cannot write {}", page.display()))?;
    Ok(Comparison { page, cases: common, regressions, summary })
}

/// `a` or `b`, for anchors.
fn name_of(names: &[String; 2], name: &String) -> &'static str {
    if std::ptr::eq(name, &names[0]) { "a" } else { "b" }
}

/// Pairs by operation, backend and kernel, the slowest first.
fn kernels<'a>(pairs: &'a [Pair<'a>]) -> Vec<Kernel<'a>> {
    let mut by_kernel: BTreeMap<(&str, &str, &str), Vec<&Pair<'_>>> = BTreeMap::new();
    for pair in pairs {
        let row = pair.new;
        by_kernel.entry((&row.backend, &row.op, &row.kernel)).or_default().push(pair);
    }
    let kernel =
        |((backend, op, kernel), pairs): ((&'a str, &'a str, &'a str), Vec<&'a Pair<'a>>)| {
            let mean = Mean::of(&pairs)?;
            Some(Kernel { name: format!("{backend} {op} {kernel}"), backend, pairs, mean })
        };
    let mut kernels: Vec<_> = by_kernel.into_iter().filter_map(kernel).collect();
    kernels.sort_by(|a, b| a.mean.value.total_cmp(&b.mean.value));
    kernels
}

fn verdict(
    names: &[String; 2],
    regressions: &[String],
    summary: &str,
    (only_old, only_new): (usize, usize),
    threshold: f64,
) -> Section {
    let mut section = Section::new("verdict", "What changed");
    section.text(format!(
        "Ratio: time of A (`{}`) over time of B (`{}`); above 1 B is faster. All cases: {summary}, geometric \
         mean with its {} interval. {only_old} cases are in A only, {only_new} in B only.",
        names[0],
        names[1],
        percent(INSIDE)
    ));
    section.text(if regressions.is_empty() {
        format!("No kernel is slower in B by more than {} beyond noise.", percent(threshold))
    } else {
        format!(
            "Regressions: kernels slower in B by more than {} whose whole interval lies below 1, and cases \
             that ended well in A only.",
            percent(threshold)
        )
    });
    section.list(regressions.to_vec());
    section
}

fn of_kernels(kernels: &[Kernel<'_>], threshold: f64) -> Section {
    let mut section = Section::new("kernels", "Kernels");
    let mut table = Table::new(
        "compare-kernels",
        "Kernels, the slowest in B first",
        &[
            "kernel",
            "backend",
            "cases",
            "time A / time B",
            "from",
            "to",
            "cases slower beyond noise",
            "",
        ],
    );
    let mut groups = Vec::new();
    for kernel in kernels {
        let Mean { value, low, high } = kernel.mean;
        let slower = kernel.pairs.iter().filter(|p| p.slower(threshold)).count();
        table.push(vec![
            Cell::code(&kernel.name),
            Cell::text(kernel.backend),
            Cell::Count(kernel.pairs.len() as u64),
            Cell::Ratio(value),
            Cell::Ratio(low),
            Cell::Ratio(high),
            Cell::Count(slower as u64),
            Cell::text(if kernel.slower(threshold) { "regression" } else { "" }),
        ]);
        let tip = format!("{}\n{}, {} cases", kernel.name, kernel.mean.words(), kernel.pairs.len());
        let bars = [low, value, high].map(|v| Some(Bar::new(v, tip.clone())));
        groups.push((kernel.name.clone(), bars.to_vec()));
    }
    section.figure(Figure {
        id: "compare-kernels".into(),
        title: "Time of A over time of B.".into(),
        caption:
            "Geometric mean over the cases of each kernel, and the ends of its interval; right of \
                  the dotted line B is faster."
                .into(),
        legend: ["low end", "mean", "high end"].map(str::to_owned).to_vec(),
        panels: BarPlot {
            title: "time A / time B".into(),
            groups,
            reference: Some(1.0),
            marks: true,
            ..BarPlot::default()
        }
        .panels(),
        ..Figure::default()
    });
    let note = format!(
        "Intervals of {}: from {FEW} cases on by resampling the cases {RESAMPLES} times, for fewer from the \
         10th and 90th percentiles of their samples.",
        percent(INSIDE)
    );
    section.table(table.note(note));
    section
}

fn of_cases(pairs: &[Pair<'_>], threshold: f64) -> Section {
    let mut section = Section::new("cases", "Cases");
    let series = |(index, backend): (usize, &str)| {
        let of = pairs.iter().filter(|p| p.new.backend == backend);
        let point = |pair: &Pair<'_>| {
            let (a, b) = (pair.old.median_s?, pair.new.median_s?);
            let mut tip =
                format!("{}\n{} {}", plain_name(&pair.new.matrix), pair.new.op, variant(pair.new));
            let ratio = significant(pair.ratio);
            let _ = write!(tip, "\nA {}, B {}: {ratio}×", seconds(a), seconds(b));
            Some(Point { x: a, y: pair.ratio, tip })
        };
        Series { index, name: backend.to_owned(), points: of.filter_map(point).collect() }
    };
    let clouds: Vec<Series> = ["cpu", "gpu"].into_iter().enumerate().map(series).collect();
    section.figure(Figure {
        id: "compare-cases".into(),
        title: "Ratio over the time of A.".into(),
        caption: "One mark for each case.".into(),
        legend: clouds.iter().map(|c| c.name.clone()).collect(),
        panels: XyPlot {
            title: "time A / time B".into(),
            x_label: "seconds of A".into(),
            x_kind: Kind::Log,
            y_kind: Kind::Log,
            clouds: clouds.into_iter().filter(|c| !c.points.is_empty()).collect(),
            reference: Some(1.0),
            height: 380.0,
            ..XyPlot::default()
        }
        .panel()
        .into_iter()
        .collect(),
        ..Figure::default()
    });
    let mut sorted: Vec<&Pair<'_>> = pairs.iter().collect();
    sorted.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let columns = [
        "experiment",
        "matrix",
        "op",
        "backend",
        "kernel",
        "k",
        "threads",
        "block",
        "A",
        "B",
        "time A / time B",
        "",
    ];
    let mut table = Table::new("compare-cases", "Every case, the slowest in B first", &columns);
    for pair in sorted {
        let row = pair.new;
        table.push(vec![
            Cell::text(&row.experiment),
            Cell::text(&row.matrix),
            Cell::text(&row.op),
            Cell::text(&row.backend),
            Cell::code(variant(row)),
            Cell::option(row.k, Cell::Count),
            Cell::option(row.threads, Cell::Count),
            Cell::option(row.block, Cell::Count),
            Cell::option(pair.old.median_s, Cell::Seconds),
            Cell::option(pair.new.median_s, Cell::Seconds),
            Cell::Ratio(pair.ratio),
            Cell::text(if pair.slower(threshold) { "slower beyond noise" } else { "" }),
        ]);
    }
    section.table(table);
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{RESULTS_FILE, Writer};

    fn row(matrix: usize, kernel: &str, seconds: f64) -> Row {
        Row {
            experiment: "e".into(),
            matrix: format!("m{matrix}"),
            op: "spmv".into(),
            backend: "cpu".into(),
            kernel: kernel.into(),
            median_s: Some(seconds),
            p10_s: Some(0.99 * seconds),
            p90_s: Some(1.01 * seconds),
            ..Row::default()
        }
    }

    fn folder(rows: &[Row]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(&folder.path().join(RESULTS_FILE)).unwrap();
        rows.iter().for_each(|row| writer.append(row).unwrap());
        folder
    }

    /// `steady` has the same times but for noise to both sides, `worse` is slower on every matrix.
    fn runs() -> (tempfile::TempDir, tempfile::TempDir) {
        let times = |worse: f64, noise: f64| {
            let of = |m: usize| {
                let sign = if m.is_multiple_of(2) { noise } else { 1.0 / noise };
                [row(m, "steady", 1e-3 * sign), row(m, "worse", 1e-3 * worse)]
            };
            (0..12).flat_map(of).collect::<Vec<_>>()
        };
        (folder(&times(1.0, 1.0)), folder(&times(1.2, 1.1)))
    }

    #[test]
    fn a_slower_kernel_is_a_regression_and_noise_is_not() {
        let (old, new) = runs();
        let out = tempfile::tempdir().unwrap();
        let forth = compare(old.path(), new.path(), out.path(), 0.05).unwrap();
        assert_eq!((forth.cases, forth.regressions.len()), (24, 1), "{:?}", forth.regressions);
        assert!(
            forth.regressions[0].starts_with("cpu spmv worse: 0.833×"),
            "{:?}",
            forth.regressions
        );
        let html = std::fs::read_to_string(&forth.page).unwrap();
        assert!(html.contains("worse") && html.contains("regression"));
        let back = compare(new.path(), old.path(), out.path(), 0.05).unwrap();
        assert!(back.regressions.is_empty(), "{:?}", back.regressions);
        // By less than the threshold.
        assert!(compare(old.path(), new.path(), out.path(), 0.3).unwrap().regressions.is_empty());
    }

    #[test]
    fn a_case_that_fails_now_is_a_regression() {
        let mismatch = Row { status: Status::Mismatch, reason: "row 3".into(), ..row(1, "k", 1.0) };
        let old = folder(&[row(0, "k", 1.0), row(1, "k", 1.0), row(2, "k", 1.0)]);
        let new = folder(&[row(0, "k", 1.0), mismatch]);
        let out = tempfile::tempdir().unwrap();
        let comparison = compare(old.path(), new.path(), out.path(), 0.05).unwrap();
        assert_eq!(comparison.regressions, ["spmv cpu k on m1: mismatch (row 3)"]);
        let html = std::fs::read_to_string(&comparison.page).unwrap();
        assert!(html.contains("1 cases are in A only, 0 in B only"));
        let other = folder(&[row(7, "k", 1.0)]);
        assert!(compare(old.path(), other.path(), out.path(), 0.05).is_err());
    }

    #[test]
    fn intervals_hold_the_mean_and_shrink_with_the_noise() {
        let rows: Vec<(Row, Row)> =
            (0..20).map(|m| (row(m, "k", 1.0), row(m, "k", 1.0 + 0.01 * m as f64))).collect();
        let pair = |(old, new): &'static (Row, Row), power: f64| Pair {
            old,
            new,
            ratio: (old.median_s.unwrap() / new.median_s.unwrap()).powf(power),
        };
        let rows: &'static [(Row, Row)] = rows.leak();
        let mean = |power: f64, count: usize| {
            let pairs: Vec<_> = rows.iter().take(count).map(|r| pair(r, power)).collect();
            Mean::of(&pairs.iter().collect::<Vec<_>>()).unwrap()
        };
        let (wide, narrow) = (mean(1.0, 20), mean(0.1, 20));
        for m in [wide, narrow, mean(1.0, 2)] {
            assert!(m.low <= m.value && m.value <= m.high, "{m:?}");
        }
        assert!(wide.high / wide.low > narrow.high / narrow.low);
        assert_eq!(mean(1.0, 20), wide);
    }
}

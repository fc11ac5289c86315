//! Matrices with their structure: classes by row lengths, spy plots, row-length histograms.

use std::fmt::Write as _;

use serde_json::Value;

use super::bars::{Bar, BarPlot};
use super::draw::tip;
use super::load::{Metric, Results, best_by, distinct, matrices, plain_name, variant};
use super::model::{Cell, Link, Section, Table, grouped};
use super::scale::{Kind, Scale};
use super::svg::{Figure, Panel, label, number, percent, rule, text};
use crate::results::{MatrixFile, Row, Status};

/// What row lengths a matrix has: what decides between kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Too small for the time of a launch or of waking threads to be forgotten.
    Tiny,
    /// All rows about as long, few entries each.
    EvenShort,
    /// All rows about as long, many entries each.
    EvenLong,
    /// Lengths differ.
    Uneven,
    /// A few rows are very much longer than the others.
    LongTail,
    /// Row lengths are not described.
    Unknown,
}

/// Fewer entries than this are tiny.
const TINY: u64 = 20_000;
/// Shorter mean rows than this are short: a warp, or a SIMD register twice over, is wider.
const SHORT: f64 = 12.0;
/// Longest over mean row length from which ELLPACK is hopeless.
const TAIL: f64 = 20.0;
/// Standard deviation over mean from which lengths count as uneven.
const UNEVEN: f64 = 0.45;

impl Class {
    pub(super) const ALL: [Self; 6] =
        [Self::Tiny, Self::EvenShort, Self::EvenLong, Self::Uneven, Self::LongTail, Self::Unknown];

    /// In words.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Tiny => "tiny matrices (under 20 000 entries)",
            Self::EvenShort => "even short rows (mean under 12)",
            Self::EvenLong => "even long rows",
            Self::Uneven => "uneven rows",
            Self::LongTail => "a few very long rows (over 20 × mean)",
            Self::Unknown => "row lengths unknown",
        }
    }

    /// In two words, for the axis of a plot.
    pub(super) fn short(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::EvenShort => "even, short rows",
            Self::EvenLong => "even, long rows",
            Self::Uneven => "uneven rows",
            Self::LongTail => "few very long rows",
            Self::Unknown => "unknown",
        }
    }

    /// From a row's size and its matrix's histogram.
    pub(super) fn of(row: &Row, matrix: Option<&MatrixFile>) -> Self {
        if row.entries < TINY {
            return Self::Tiny;
        }
        let Some(lengths) = matrix.and_then(Lengths::of) else { return Self::Unknown };
        if lengths.longest > TAIL * lengths.mean {
            Self::LongTail
        } else if lengths.deviation > UNEVEN * lengths.mean {
            Self::Uneven
        } else if lengths.mean < SHORT {
            Self::EvenShort
        } else {
            Self::EvenLong
        }
    }
}

/// Mean, standard deviation and greatest of the row lengths.
struct Lengths {
    mean: f64,
    deviation: f64,
    longest: f64,
}

impl Lengths {
    /// The stated measures where there are any, else the middles of the histogram's bins.
    fn of(matrix: &MatrixFile) -> Option<Self> {
        let lengths = matrix.stats.get("row_lengths");
        let stat = |name: &str| lengths.and_then(|l| l[name].as_f64());
        let bins = &matrix.row_length_histogram;
        let rows: f64 = bins.iter().map(|b| b.2 as f64).sum();
        let middle = |b: &(u64, u64, u64)| (b.0 as f64 + b.1 as f64) / 2.0;
        let moment = |f: &dyn Fn(f64) -> f64| {
            (rows > 0.0).then(|| bins.iter().map(|b| f(middle(b)) * b.2 as f64).sum::<f64>() / rows)
        };
        let mean = stat("mean").or_else(|| moment(&|x| x))?;
        let variance = stat("variance").or_else(|| moment(&|x| (x - mean).powi(2)))?;
        let longest = stat("max").or_else(|| bins.iter().map(|b| b.1 as f64).reduce(f64::max))?;
        Some(Self { mean, deviation: variance.sqrt(), longest })
    }
}

/// Table of all matrices, then a page for each.
pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("matrices", "Matrices");
    let names = matrices(results.rows.iter());
    if names.is_empty() && results.matrices.is_empty() {
        section.missing("No matrix was used.", "cargo xtask bench-all");
        return section;
    }
    let mut table = Table::new(
        "matrices",
        "Matrices, smallest first",
        &["matrix", "rows", "cols", "entries", "entries per row", "structure", "origin"],
    );
    let mut pages = Section::default();
    for name in &names {
        let of_matrix = || results.rows.iter().filter(|r| r.matrix == *name);
        let Some(row) = of_matrix().max_by_key(|r| r.entries) else { continue };
        let mean = row.entries as f64 / row.rows.max(1) as f64;
        let class = Class::of(row, results.matrix(name)).label();
        let page = page(results, name, row);
        table.push(vec![
            Cell::Link(plain_name(name).to_owned(), page.id.clone()),
            Cell::Count(row.rows),
            Cell::Count(row.cols),
            Cell::Count(row.entries),
            Cell::Number(mean),
            Cell::text(class),
            Cell::text(if row.synthetic() { "generated" } else { "file" }),
        ]);
        let summary = format!(
            "{}: {} × {}, {} entries, {class}",
            plain_name(name),
            grouped(row.rows),
            grouped(row.cols),
            grouped(row.entries)
        );
        pages.details(summary, page);
    }
    section.table(table);
    section.blocks.append(&mut pages.blocks);
    if results.matrices.is_empty() {
        section.missing(
            "Row lengths and spy plots were not recorded with these results.",
            "cargo xtask bench-all",
        );
        return section;
    }
    let mut measures = Section::default();
    measures.table(stats(&results.matrices));
    section.details("Measures of structure of all matrices", measures);
    section
}

/// Kernels in the bars of a matrix's page.
const BARS: usize = 12;

/// All that is known of one matrix: structure, the best case of each kernel, links to all cases.
fn page(results: &Results, name: &str, row: &Row) -> Section {
    let plain = plain_name(name);
    let mut page = Section::new(format!("matrix-{plain}"), plain);
    let file = crate::files::plain(plain);
    if let Some(matrix) = results.matrix(name) {
        page.figure(Figure {
            id: format!("structure-{file}"),
            title: "Where the entries lie, and how long the rows are.".into(),
            caption: "Darker cells hold more entries (logarithmic). The histogram counts the rows \
                      with a number of entries (logarithmic)."
                .into(),
            panels: [spy(matrix), histogram(matrix)].into_iter().flatten().collect(),
            ..Figure::default()
        });
    }
    let timed = || results.timed().filter(|r| r.matrix == name);
    // Of SpMV, the fastest case of each kernel, the fastest kernels first.
    let best = best_by(timed().filter(|r| r.op == "spmv"), Metric::Gflops, |r| {
        (r.backend.as_str(), r.kernel.as_str())
    });
    let mut panels = Vec::new();
    for backend in ["cpu", "gpu"] {
        let mut of: Vec<&(f64, &Row)> =
            best.iter().filter(|(key, _)| key.0 == backend).map(|(_, case)| case).collect();
        of.sort_by(|a, b| b.0.total_cmp(&a.0));
        let bars = of
            .iter()
            .take(BARS)
            .map(|(value, row)| (row.kernel.clone(), vec![Some(Bar::new(*value, tip(row)))]));
        let plot = BarPlot {
            title: format!("{}: GFLOPS of the fastest kernels", backend.to_uppercase()),
            groups: bars.collect(),
            ..BarPlot::default()
        };
        panels.extend(plot.panels());
    }
    page.figure(Figure {
        id: format!("matrix-{file}-kernels"),
        title: "SpMV: the fastest case of each kernel.".into(),
        panels,
        ..Figure::default()
    });
    page.table(best_cases(&file, plain, timed()));
    let experiments =
        distinct(results.rows.iter().filter(|r| r.matrix == name).map(|r| r.experiment.as_str()));
    let link = |experiment: &&str| {
        let cases = |r: &&Row| r.matrix == name && r.experiment == *experiment;
        Link {
            text: format!("{experiment} ({})", results.rows.iter().filter(cases).count()),
            target: format!("{}-cases", super::experiments::id(experiment)),
            words: name.to_owned(),
        }
    };
    let links = experiments.iter().map(link).collect();
    page.links(format!("All cases on this matrix ({} entries):", grouped(row.entries)), links);
    page
}

/// The fastest case of each kernel in each operation.
fn best_cases<'a>(file: &str, name: &str, timed: impl Iterator<Item = &'a Row>) -> Table {
    let mut table = Table::new(
        format!("matrix-{file}-best"),
        format!("{name}: the fastest case of each kernel"),
        &[
            "op",
            "backend",
            "k",
            "kernel",
            "threads",
            "time",
            "GFLOPS",
            "of roof",
            "over serial",
            "plan",
        ],
    );
    let best = best_by(timed, Metric::Gentries, |r| {
        (r.op.as_str(), r.k, r.backend.as_str(), r.kernel.as_str(), r.scope.as_str())
    });
    let mut cases: Vec<_> = best.into_iter().collect();
    // Operations as they come; of each the fastest case first.
    cases.sort_by(|a, b| (a.0.0, a.0.1).cmp(&(b.0.0, b.0.1)).then(b.1.0.total_cmp(&a.1.0)));
    for ((op, k, backend, ..), (_, row)) in cases {
        table.push(vec![
            Cell::text(op),
            Cell::text(backend),
            Cell::option(k, Cell::Count),
            Cell::code(variant(row)),
            Cell::option(row.threads, Cell::Count),
            Cell::option(row.median_s, Cell::Seconds),
            Cell::option(row.gflops, Cell::Number),
            Cell::option(row.roofline_fraction, Cell::Fraction),
            Cell::option(row.speedup_vs_serial, Cell::Ratio),
            Cell::option(row.plan_s, Cell::Seconds),
        ]);
    }
    table
}

/// Every measure that the descriptions hold; groups of measures one level down.
fn stats(matrices: &[MatrixFile]) -> Table {
    let measures: Vec<Vec<(String, &Value)>> = matrices
        .iter()
        .map(|matrix| {
            let mut out = Vec::new();
            for (name, value) in &matrix.stats {
                match value.as_object() {
                    Some(group) => {
                        out.extend(group.iter().map(|(inner, v)| (format!("{name}, {inner}"), v)));
                    }
                    None => out.push((name.clone(), value)),
                }
            }
            out
        })
        .collect();
    // The table of all matrices has these already.
    let said = ["rows", "cols", "entries", "row_lengths, rows", "row_lengths, entries"];
    let names: Vec<&str> =
        super::load::distinct(measures.iter().flatten().map(|(name, _)| name.as_str()))
            .into_iter()
            .filter(|name| !said.contains(name))
            .collect();
    let headings: Vec<String> = names.iter().map(|n| n.replace('_', " ")).collect();
    let mut columns = vec!["matrix"];
    columns.extend(headings.iter().map(String::as_str));
    let mut table = Table::new("structure", "Measures of structure", &columns);
    for (matrix, measures) in matrices.iter().zip(&measures) {
        let mut row = vec![Cell::text(&matrix.name)];
        for name in &names {
            row.push(match measures.iter().find(|(n, _)| n == name).map(|(_, v)| *v) {
                None | Some(Value::Null) => Cell::Missing,
                Some(Value::Bool(yes)) => Cell::text(if *yes { "yes" } else { "no" }),
                Some(value) => match (value.as_u64(), value.as_f64(), value.as_str()) {
                    (Some(count), ..) => Cell::Count(count),
                    (_, Some(number), _) => Cell::Number(number),
                    (.., Some(text)) => Cell::text(text),
                    _ => Cell::text(value.to_string()),
                },
            });
        }
        table.push(row);
    }
    table
}

const SPY: f64 = 300.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 34.0;

/// Entries by position as a picture: a darker cell holds more.
fn spy(matrix: &MatrixFile) -> Option<Panel> {
    let spy = matrix.spy.as_ref()?;
    let (rows, cols) = (spy.rows.max(1), spy.cols.max(1));
    let most = spy.counts.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
    // Cells of like darkness share one path, and neighbours one rectangle.
    const SHADES: usize = 8;
    let shade = |count: u64| {
        let shade = ((count as f64).ln_1p() / most.ln_1p() * SHADES as f64).ceil() as usize;
        if count == 0 { 0 } else { shade.clamp(1, SHADES) }
    };
    let mut paths = vec![String::new(); SHADES + 1];
    for (i, counts) in spy.counts.iter().enumerate() {
        let mut from = 0;
        for run in counts.chunk_by(|a, b| shade(*a) == shade(*b)) {
            let _ = write!(paths[shade(run[0])], "M{from} {i}h{0}v1h-{0}z", run.len());
            from += run.len();
        }
    }
    // Long matrices stay long, within reason.
    let (r, c) = (rows as f64, cols as f64);
    let (width, height) = (SPY * (c / r).clamp(0.2, 1.0), SPY * (r / c).clamp(0.2, 1.0));
    let mut body = text(0.0, 14.0, "start", "title", "entries");
    let _ = write!(
        body,
        "<svg y=\"{TOP}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {cols} {rows}\" \
         preserveAspectRatio=\"none\"><rect class=\"ground\" width=\"{cols}\" height=\"{rows}\"></rect>",
        number(width),
        number(height)
    );
    for (shade, path) in paths.iter().enumerate().skip(1).filter(|(_, p)| !p.is_empty()) {
        let opacity = shade as f64 / SHADES as f64;
        let _ = write!(body, "<path class=\"cell\" opacity=\"{opacity:.2}\" d=\"{path}\"></path>");
    }
    body.push_str("</svg>");
    let size =
        |name: &str| matrix.stats.get(name).and_then(Value::as_u64).map_or(String::new(), grouped);
    let sizes = format!("{} rows, {} columns", size("rows"), size("cols"));
    body.push_str(&text(0.0, TOP + height + 15.0, "start", "small", &sizes));
    Some(Panel {
        title: format!("Entries of {} by position", plain_name(&matrix.name)),
        height: TOP + height + BOTTOM,
        margins: (4.0, 10.0),
        body,
    })
}

/// The rows by their number of entries.
fn histogram(matrix: &MatrixFile) -> Option<Panel> {
    let bins = &matrix.row_length_histogram;
    let (first, last) = (bins.first()?, bins.last()?);
    const LEFT: f64 = 48.0;
    let height = TOP + SPY + BOTTOM;
    let bottom = height - BOTTOM;
    let y =
        Scale::around(Kind::Log, bins.iter().map(|b| b.2 as f64).chain([1.0]), bottom, TOP + 4.0);
    let mut body = text(4.0 - LEFT, 14.0, "start", "title", "rows by their number of entries");
    for (value, label) in y.ticks() {
        body.push_str(&rule(0.0, y.at(value), 100.0, y.at(value), "grid"));
        body.push_str(&text(-4.0, y.at(value) + 3.5, "end", "small", &label));
    }
    let step = 100.0 / bins.len() as f64;
    body.push_str("<g class=\"s1\">");
    for (i, (low, high, count)) in bins.iter().enumerate().filter(|(_, b)| b.2 > 0) {
        let top = y.at(*count as f64).min(bottom - 1.0);
        let lengths = if low == high { format!("{low}") } else { format!("{low} to {high}") };
        let _ = write!(
            body,
            "<rect class=\"bar\" x=\"{}%\" y=\"{}\" width=\"{}%\" height=\"{}\"><title>{lengths} \
             entries: {} rows</title></rect>",
            percent(i as f64 * step + 0.05 * step),
            number(top),
            percent(0.9 * step),
            number(bottom - top),
            grouped(*count)
        );
    }
    body.push_str("</g>");
    body.push_str(&rule(0.0, bottom, 100.0, bottom, "axis"));
    body.push_str(&label(0.0, bottom + 14.0, "start", "small", &grouped(first.0)));
    body.push_str(&label(100.0, bottom + 14.0, "end", "small", &grouped(last.1)));
    body.push_str(&label(50.0, height - 6.0, "middle", "small", "entries in a row"));
    let title = format!("Row lengths of {}", plain_name(&matrix.name));
    Some(Panel { title, height, margins: (LEFT, 10.0), body })
}

/// Best kernel of a backend for each class: the one whose speed, relative to the fastest kernel on
/// each matrix, has the greatest geometric mean among the kernels that ran on at least half of the
/// class and failed on none.
pub(super) fn winners(results: &Results, backend: &str) -> Vec<Winner> {
    let metric = super::load::Metric::Gflops;
    // `auto` stands for another kernel, so it cannot be the advice.
    let rows =
        results.timed().filter(|r| r.op == "spmv" && r.backend == backend && r.kernel != "auto");
    let best = super::load::best_by(rows, metric, |r| (r.kernel.as_str(), r.matrix.as_str()));
    let failed: Vec<(&str, &str)> = results
        .rows
        .iter()
        .filter(|r| r.op == "spmv" && r.backend == backend)
        .filter(|r| matches!(r.status, Status::Failed | Status::Mismatch))
        .map(|r| (r.kernel.as_str(), r.matrix.as_str()))
        .collect();
    let mut out = Vec::new();
    for class in Class::ALL {
        let of_class: Vec<(&str, &str, f64, &Row)> = best
            .iter()
            .map(|((kernel, matrix), (speed, row))| (*kernel, *matrix, *speed, *row))
            .filter(|(_, matrix, _, row)| Class::of(row, results.matrix(matrix)) == class)
            .collect();
        let names = super::load::distinct(of_class.iter().map(|c| c.1));
        let fastest = |matrix: &str| {
            of_class.iter().filter(|c| c.1 == matrix).map(|c| c.2).fold(0.0, f64::max)
        };
        let mut kernels: Vec<(f64, &str)> = super::load::distinct(of_class.iter().map(|c| c.0))
            .into_iter()
            .filter_map(|kernel| {
                let mine: Vec<_> = of_class.iter().filter(|c| c.0 == kernel).collect();
                // Not run is not refused: half of the class is enough to judge by.
                let refused = names.iter().any(|matrix| failed.contains(&(kernel, *matrix)));
                (!refused && 2 * mine.len() >= names.len()).then_some(())?;
                let relative = mine.iter().map(|c| c.2 / fastest(c.1));
                Some((super::load::geometric_mean(relative)?, kernel))
            })
            .collect();
        kernels.sort_by(|a, b| b.0.total_cmp(&a.0));
        let Some(&(relative, kernel)) = kernels.first() else { continue };
        let mine = || of_class.iter().filter(|c| c.0 == kernel);
        out.push(Winner {
            class,
            matrices: (mine().count(), names.len()),
            kernel: kernel.to_owned(),
            relative,
            runner_up: kernels.get(1).map(|(r, k)| ((*k).to_owned(), *r)),
            gflops: super::load::geometric_mean(mine().map(|c| c.2)).unwrap_or(0.0),
            roofline: super::load::median(mine().filter_map(|c| c.3.roofline_fraction)),
            speedup: super::load::geometric_mean(mine().filter_map(|c| c.3.speedup_vs_serial)),
        });
    }
    out
}

/// The kernel to take for a class of matrices.
#[derive(Debug)]
pub(super) struct Winner {
    pub(super) class: Class,
    /// Matrices of the class that it ran on, and all.
    pub(super) matrices: (usize, usize),
    pub(super) kernel: String,
    /// Its speed over the fastest kernel's, geometric mean.
    pub(super) relative: f64,
    pub(super) runner_up: Option<(String, f64)>,
    pub(super) gflops: f64,
    pub(super) roofline: Option<f64>,
    pub(super) speedup: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_the_row_lengths() {
        let row = Row { entries: 100_000, rows: 10_000, ..Row::default() };
        let file = |bins: &[(u64, u64, u64)]| MatrixFile {
            row_length_histogram: bins.to_vec(),
            ..MatrixFile::default()
        };
        let class = |bins: &[(u64, u64, u64)]| Class::of(&row, Some(&file(bins)));
        assert_eq!(class(&[(5, 5, 10_000)]), Class::EvenShort);
        assert_eq!(class(&[(50, 60, 10_000)]), Class::EvenLong);
        assert_eq!(class(&[(1, 1, 5000), (20, 20, 5000)]), Class::Uneven);
        assert_eq!(class(&[(1, 3, 9999), (5000, 5000, 1)]), Class::LongTail);
        assert_eq!(class(&[]), Class::Unknown);
        assert_eq!(Class::of(&Row { entries: 49, ..row }, None), Class::Tiny);
    }

    #[test]
    fn the_winner_is_near_the_fastest_on_every_matrix() {
        let row = |matrix: &str, kernel: &str, gflops: f64| Row {
            op: "spmv".into(),
            backend: "cpu".into(),
            matrix: matrix.into(),
            kernel: kernel.into(),
            entries: 10,
            gflops: Some(gflops),
            median_s: Some(1.0),
            ..Row::default()
        };
        let results = Results {
            rows: vec![
                row("a", "steady", 9.0),
                row("b", "steady", 9.0),
                row("a", "erratic", 10.0),
                row("b", "erratic", 1.0),
                // Fastest, but not on every matrix.
                row("a", "refused", 11.0),
                Row { status: Status::Failed, ..row("b", "refused", 0.0) },
            ],
            ..Results::default()
        };
        let winners = winners(&results, "cpu");
        assert_eq!((winners.len(), winners[0].kernel.as_str()), (1, "steady"));
        assert_eq!(winners[0].runner_up.as_ref().unwrap().0, "erratic");
    }

    #[test]
    fn a_description_becomes_a_picture_and_bars() {
        let matrix = MatrixFile {
            name: "m".into(),
            row_length_histogram: vec![(0, 0, 1), (1, 2, 1000)],
            spy: Some(crate::results::Spy { rows: 2, cols: 1, counts: vec![vec![0], vec![9]] }),
            ..MatrixFile::default()
        };
        let (picture, bars) = (spy(&matrix).unwrap().body, histogram(&matrix).unwrap().body);
        assert_eq!(bars.matches("class=\"bar\"").count(), 2);
        assert_eq!(picture.matches("class=\"cell\"").count(), 1);
        assert!(picture.contains("d=\"M0 1h1v1h-1z\"") && !bars.contains("NaN"));
    }
}

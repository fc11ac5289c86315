//! The first plots of the page: how fast, against what limit, and which kernel for which matrix.

use super::bars::{Bar, BarPlot};
use super::draw::tip;
use super::load::{Metric, Results, best_by, bytes_moved};
use super::model::percent;
use super::plot::{Point, Series, XyPlot};
use super::roofline::roofs;
use super::scale::Kind;
use super::structure::Winner;
use super::svg::{Figure, Panel};
use crate::bench::runner::is_baseline;
use crate::results::Row;

/// Name, backend, and which kernels.
type Choice = (&'static str, &'static str, fn(&str) -> bool);

/// The series of the plots over matrices.
const SERIES: [Choice; 4] = [
    ("cpu, fastest kernel", "cpu", |kernel| !is_baseline(kernel) && kernel != "auto"),
    ("cpu, serial", "cpu", is_baseline),
    ("gpu, fastest kernel", "gpu", |kernel| !kernel.starts_with("cusparse") && kernel != "auto"),
    ("gpu, cuSPARSE", "gpu", |kernel| kernel.starts_with("cusparse")),
];

/// Height of the plots: one screen holds them with the first lines below.
const HEIGHT: f64 = 330.0;

/// Three panels; what was not measured is left out.
pub(super) fn figure(results: &Results, cpu: &[Winner], gpu: &[Winner]) -> Figure {
    let panels: Vec<Panel> = [speed(results), limit(results)].into_iter().flatten().collect();
    let series: Vec<String> = fastest(results).map(|(_, name, _)| name.to_owned()).collect();
    Figure {
        id: "overview".into(),
        title: "How fast, against what limit, and which kernel.".into(),
        caption: "SpMV; each mark is the fastest case on one matrix.".into(),
        panels: panels.into_iter().chain(kernels(&series, cpu, gpu)).collect(),
        legend: series,
        ..Figure::default()
    }
}

/// The fastest case on each matrix, for each series that was measured.
fn fastest(results: &Results) -> impl Iterator<Item = (usize, &'static str, Vec<&Row>)> {
    let measured = SERIES.into_iter().filter_map(|(name, backend, takes)| {
        let rows = results.timed();
        let rows = rows.filter(|r| r.op == "spmv" && r.backend == backend && takes(&r.kernel));
        let best = best_by(rows, Metric::Gflops, |r| r.matrix.as_str());
        let rows: Vec<&Row> = best.into_values().map(|(_, row)| row).collect();
        (!rows.is_empty()).then_some((name, rows))
    });
    measured.enumerate().map(|(index, (name, rows))| (index, name, rows))
}

fn clouds(
    results: &Results,
    place: impl Fn(&Row) -> Option<(f64, f64)>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Series> {
    fastest(results)
        .filter(|(_, name, _)| wanted(name))
        .map(|(index, name, rows)| {
            let point = |row: &&Row| {
                let (x, y) = place(row)?;
                Some(Point { x, y, tip: tip(row) })
            };
            Series { index, name: name.to_owned(), points: rows.iter().filter_map(point).collect() }
        })
        .collect()
}

fn speed(results: &Results) -> Option<Panel> {
    XyPlot {
        title: "How fast: GFLOPS".into(),
        x_label: "entries of the matrix".into(),
        x_kind: Kind::Log,
        y_kind: Kind::Log,
        clouds: clouds(results, |row| Some((row.entries as f64, row.gflops?)), |_| true),
        height: HEIGHT,
        ..XyPlot::default()
    }
    .panel()
}

fn limit(results: &Results) -> Option<Panel> {
    let place = |row: &Row| Some((bytes_moved(row)?, row.gbytes_per_s?));
    let clouds = clouds(results, place, |name| !name.contains("serial"));
    let environment = &results.environment;
    let of = |backend: &str| -> Vec<Series> {
        clouds.iter().filter(|c| c.name.starts_with(backend)).cloned().collect()
    };
    let backends = ["cpu", "gpu"].into_iter().filter(|backend| !of(backend).is_empty());
    let roof: Vec<_> = backends.flat_map(|b| roofs(environment, b, &of(b))).collect();
    let title = if roof.is_empty() {
        "GB/s; the run measured no limit"
    } else {
        "Against what limit: GB/s below the lines"
    };
    XyPlot {
        title: title.into(),
        x_label: "bytes that a product moves".into(),
        x_kind: Kind::Log,
        y_kind: Kind::Log,
        roof,
        clouds,
        height: HEIGHT,
        ..XyPlot::default()
    }
    .panel()
}

/// For each structure the kernel to take, and how near it comes to the fastest one.
fn kernels(series: &[String], cpu: &[Winner], gpu: &[Winner]) -> Vec<Panel> {
    let classes: Vec<_> = super::structure::Class::ALL
        .into_iter()
        .filter(|class| cpu.iter().chain(gpu).any(|w| w.class == *class))
        .collect();
    let bar = |winners: &[Winner], class, backend: &str| {
        let winner = winners.iter().find(|w| w.class == class)?;
        let share = percent(winner.relative);
        let (of, all) = winner.matrices;
        Some(Bar {
            value: 100.0 * winner.relative,
            tip: format!(
                "{backend} {}\n{share} of the fastest kernel of each matrix (geometric mean of {of} of {all})",
                winner.kernel
            ),
            note: format!("{backend}: {}, {share}", winner.kernel),
        })
    };
    let groups = classes.into_iter().map(|class| {
        let bars = series.iter().map(|name| match name.as_str() {
            "cpu, fastest kernel" => bar(cpu, class, "CPU"),
            "gpu, fastest kernel" => bar(gpu, class, "GPU"),
            _ => None,
        });
        (class.short().to_owned(), bars.collect())
    });
    BarPlot {
        title: "Which kernel: % of the fastest on each matrix".into(),
        series: series.to_vec(),
        groups: groups.collect(),
        ..BarPlot::default()
    }
    .panels()
}

//! One section per experiment that was run: plots over what it sweeps, plots over matrices, tables.

use super::draw;
use super::load::{Axis, Metric, Results, distinct, is_timed, matrices, variant};
use super::model::{Cell, Section, Table, grouped};
use super::scaling;
use super::svg::Figure;
use crate::bench::experiments::{EXPERIMENTS, Experiment, find};
use crate::files::plain;
use crate::results::{Row, Status};

/// Panels of single matrices that stand open; the others are folded.
const OPEN_PANELS: usize = 6;

/// The command that runs one experiment.
pub(super) fn command(experiment: &str) -> String {
    format!("cargo xtask bench {experiment}")
}

/// Anchor of an experiment's section, and the start of its files' names: one that this version does not
/// know may be called anything.
pub(super) fn id(name: &str) -> String {
    if scaling::draws(name) {
        scaling::ID.to_owned()
    } else if find(name).is_some() {
        name.to_owned()
    } else {
        format!("experiment-{}", plain(name))
    }
}

/// The section of every known experiment, and of those of a later version.
pub(super) fn sections(results: &Results) -> Vec<Section> {
    let mut sections = Vec::new();
    let run = results.experiments();
    let mut missing = Vec::new();
    let mut known = EXPERIMENTS.to_vec();
    // One operation after the other, and of each first what runs on the CPU.
    known.sort_by_key(|e| {
        ["spmv", "spmm", "transpose"].iter().position(|op| e.name.starts_with(op)).unwrap_or(3)
    });
    for Experiment { name, title, .. } in known {
        if run.contains(&name) {
            sections.push(experiment(results, name, title));
        } else {
            missing.push(format!("{title}: `{}`", command(name)));
        }
    }
    let unknown = |name: &&&str| find(name).is_none() && !scaling::draws(name);
    for name in run.iter().filter(unknown) {
        sections.push(experiment(results, name, name));
    }
    if !missing.is_empty() {
        let mut section = Section::new("not-run", "Experiments without data");
        section.text("Each line is filled by its command.").list(missing);
        sections.push(section);
    }
    sections
}

fn experiment(results: &Results, name: &str, title: &str) -> Section {
    let id = &*id(name);
    let rows: Vec<&Row> = results.rows.iter().filter(|r| r.experiment == name).collect();
    let timed: Vec<&Row> = rows.iter().copied().filter(|r| is_timed(r)).collect();
    let mut section = Section::new(id, title);
    let count = |status| rows.iter().filter(|r| r.status == status).count();
    let names = matrices(rows.iter().copied());
    section.text(format!(
        "`{}`: {} cases on {} matrices; {} ok, {} failed, {} skipped, {} wrong.",
        command(name),
        grouped(rows.len() as u64),
        names.len(),
        count(Status::Ok),
        count(Status::Failed),
        count(Status::Skipped),
        count(Status::Mismatch)
    ));
    if !timed.is_empty() {
        plots(&mut section, id, &timed);
    }
    let mut all = Section::default();
    all.table(cases(id, name, &rows));
    section.details(format!("All {} cases", grouped(rows.len() as u64)), all);
    section
}

fn plots(section: &mut Section, id: &str, timed: &[&Row]) {
    let metric = Metric::speed(timed.iter().copied());
    // Where both backends ran, the backend is part of a series' name.
    let both = distinct(timed.iter().map(|r| &r.backend)).len() > 1;
    let series_of = move |row: &Row| {
        if both { format!("{} {}", row.backend, row.kernel) } else { row.kernel.clone() }
    };
    let series = distinct(timed.iter().map(|r| series_of(r)));
    for axis in Axis::ALL {
        // Kernels on one value each, such as the serial one and all others on all cores, are no sweep.
        let swept = |name: &String| {
            let rows = timed.iter().copied().filter(|r| series_of(r) == *name);
            draw::axis_values(rows, axis).len() > 1
        };
        if !series.iter().any(swept) {
            continue;
        }
        let swept: Vec<&Row> = timed.iter().copied().filter(|r| axis.of(r).is_some()).collect();
        let series: Vec<String> =
            series.iter().filter(|s| swept.iter().any(|r| series_of(r) == **s)).cloned().collect();
        let mut metrics = vec![metric, Metric::Speedup];
        if axis == Axis::Threads {
            metrics.push(Metric::Efficiency);
        }
        section.figure(Figure {
            id: format!("{id}-{}", axis.name()),
            title: format!("Over {}.", axis.label()),
            caption: "Geometric mean over the matrices of the best case of each kernel.".into(),
            legend: series.clone(),
            panels: metrics
                .into_iter()
                .filter_map(|m| draw::mean_panel(&swept, &series, &series_of, axis, m))
                .collect(),
            ..Figure::default()
        });
        let mut names = matrices(swept.iter().copied());
        names.reverse();
        let split = names.len().min(OPEN_PANELS);
        let figure = |part: &str, names: &[&str]| Figure {
            id: format!("{id}-{}-{part}", axis.name()),
            title: format!("Each matrix over {}", axis.label()),
            caption: "(largest first).".into(),
            legend: series.clone(),
            panels: draw::small_multiples(&swept, names, &series, &series_of, axis, metric),
            ..Figure::default()
        };
        section.figure(figure("matrices", &names[..split]));
        if names.len() > split {
            let mut more = Section::default();
            more.figure(figure("more-matrices", &names[split..]));
            section.details(format!("{} more matrices", names.len() - split), more);
        }
    }
    let (figure, table) = draw::over_matrices(
        &format!("{id}-matrices"),
        "Over matrices",
        timed,
        &series,
        &series_of,
        metric,
    );
    section.figure(figure).table(table);
    section.table(draw::parameter_table(&format!("{id}-parameters"), timed));
}

/// Every case, one line each.
fn cases(id: &str, name: &str, rows: &[&Row]) -> Table {
    let mut table = Table::new(
        format!("{id}-cases"),
        format!("{name}: all cases"),
        &[
            "matrix",
            "rows",
            "cols",
            "entries",
            "op",
            "backend",
            "kernel",
            "k",
            "threads",
            "block",
            "runs",
            "median",
            "min",
            "p10",
            "p90",
            "GFLOPS",
            "GB/s",
            "of roof",
            "speedup",
            "efficiency",
            "plan",
            "memory",
            "max rel. error",
            "mean rel. error",
            "error/bound",
            "scope",
            "cache",
            "status",
            "reason",
            "choice",
        ],
    );
    for r in rows {
        let or =
            |text: &str, default: &str| Cell::text(if text.is_empty() { default } else { text });
        table.push(vec![
            Cell::text(&r.matrix),
            Cell::Count(r.rows),
            Cell::Count(r.cols),
            Cell::Count(r.entries),
            Cell::text(&r.op),
            Cell::text(&r.backend),
            Cell::text(variant(r)),
            Cell::option(r.k, Cell::Count),
            Cell::option(r.threads, Cell::Count),
            Cell::option(r.block, Cell::Count),
            Cell::option(r.iterations, Cell::Count),
            Cell::option(r.median_s, Cell::Seconds),
            Cell::option(r.min_s, Cell::Seconds),
            Cell::option(r.p10_s, Cell::Seconds),
            Cell::option(r.p90_s, Cell::Seconds),
            Cell::option(r.gflops, Cell::Number),
            Cell::option(r.gbytes_per_s, Cell::Number),
            Cell::option(r.roofline_fraction, Cell::Fraction),
            Cell::option(r.speedup_vs_serial, Cell::Number),
            Cell::option(r.efficiency, Cell::Number),
            Cell::option(r.plan_s, Cell::Seconds),
            Cell::option(r.memory_bytes, Cell::Bytes),
            Cell::option(r.max_rel_err, Cell::Number),
            Cell::option(r.mean_rel_err, Cell::Number),
            Cell::option(r.bound_err, Cell::Number),
            or(&r.scope, "kernel"),
            or(&r.cache, "hot"),
            Cell::text(r.status.name()),
            Cell::text(&r.reason),
            Cell::text(&r.choice),
        ]);
    }
    table.without_constants()
}

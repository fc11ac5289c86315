//! R0: SpMV with CSR and ELLPACK, OpenMP and CUDA (Cristofori 2022).

use super::super::bars::{Bar, BarPlot};
use super::super::draw::{matrices_panel, tip};
use super::super::experiments::command;
use super::super::load::{Axis, Metric, Results, Select, best_by, matrices, plain_name};
use super::super::model::{Cell, Section, Table, significant};
use super::super::svg::Figure;
use super::findings::rows_of;
use super::{Printed, claims, compare, printed};
use crate::results::Row;

pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("r0", "R0: Cristofori 2022, redrawn");
    section.text(
        "SpMV with CSR and ELLPACK on 2 × Xeon Silver 4210 (20 cores) and a Quadro RTX 5000; mean \
         of 3 runs, on the GPU launch and synchronization by a host clock. Ours: `csr-rows` and \
         `ell-rows` on the CPU, `csr-warp-per-row-shared` and `ell-thread-per-row` on the GPU.",
    );
    section.heading("Statements").table(claims::table(results, "R0"));
    section.heading("Tables and figures");
    axis_figure(
        results,
        &mut section,
        ("r0-figures-3-4", "R0 figures 3 and 4: GFLOPS over threads, CPU."),
        "cpu",
        Axis::Threads,
        "spmv-cpu-threads",
    );
    axis_figure(
        results,
        &mut section,
        ("r0-figures-5-6", "R0 figures 5 and 6: GFLOPS over the block size, GPU."),
        "gpu",
        Axis::Block,
        "spmv-gpu-block-size",
    );
    setting_figures(
        results,
        &mut section,
        ("r0-figures-7-8", "R0 figures 7 and 8: speedup on the CPU with 4, 8, 16 and 32 threads."),
        "cpu",
        (Axis::Threads, &[4, 8, 16, 32]),
        "spmv-cpu-speedup",
    );
    setting_figures(
        results,
        &mut section,
        ("r0-figures-9-10", "R0 figures 9 and 10: speedup on the GPU by block size."),
        "gpu",
        (Axis::Block, &[128, 256, 512, 1024]),
        "spmv-gpu-block-size",
    );
    for (number, what, experiment) in [
        (1, "speedup over serial CSR, CPU", "spmv-cpu-speedup"),
        (2, "speedup over serial CSR, GPU", "spmv-gpu-formats"),
        (3, "GFLOPS, CPU", "spmv-cpu-speedup"),
        (4, "GFLOPS, GPU", "spmv-gpu-formats"),
    ] {
        let numbers = printed(&format!("R0 table {number}"));
        let title = format!("R0 table {number}: {what}, printed and ours");
        let (table, figure) =
            compare::side_by_side(results, &format!("r0-table-{number}"), &title, &numbers);
        if figure.panels.is_empty() {
            section.missing(
                &format!("R0 table {number} has nothing of ours beside it yet."),
                &command(experiment),
            );
        }
        section.figure(figure).table(table);
    }
    cpu_against_gpu(results, &mut section);
    section
}

fn kernels(backend: &str) -> [(&'static str, Select<'_>); 2] {
    let ids = if backend == "cpu" {
        ["csr-rows", "ell-rows"]
    } else {
        ["csr-warp-per-row-shared", "ell-thread-per-row"]
    };
    [
        ("CSR", Select::new("spmv", backend, ids[0])),
        ("ELLPACK", Select::new("spmv", backend, ids[1])),
    ]
}

fn axis_figure(
    results: &Results,
    section: &mut Section,
    (id, title): (&str, &str),
    backend: &str,
    axis: Axis,
    experiment: &str,
) {
    let panels: Vec<_> = kernels(backend)
        .into_iter()
        .filter_map(|(name, select)| {
            matrices_panel(name, &rows_of(results, select), axis, Metric::Gflops)
        })
        .collect();
    if panels.is_empty() {
        section.missing(&format!("{title} No data."), &command(experiment));
    }
    section.figure(Figure {
        id: id.into(),
        title: title.into(),
        caption: "One thin line per matrix, the geometric mean in colour.".into(),
        panels,
        ..Figure::default()
    });
}

/// Speedup bars per matrix, a series for each of the report's thread counts or block sizes.
fn setting_figures(
    results: &Results,
    section: &mut Section,
    (id, title): (&str, &str),
    backend: &str,
    (axis, settings): (Axis, &[u64]),
    experiment: &str,
) {
    let studied = |select| -> Vec<&Row> {
        rows_of(results, select)
            .into_iter()
            .filter(|r| axis.of(r).is_some_and(|v| settings.contains(&v)))
            .collect()
    };
    let present: Vec<u64> = settings
        .iter()
        .copied()
        .filter(|s| {
            kernels(backend).iter().any(|k| studied(k.1).iter().any(|r| axis.of(r) == Some(*s)))
        })
        .collect();
    let mut panels = Vec::new();
    for (name, select) in kernels(backend) {
        let rows = studied(select);
        let best = best_by(rows.iter().copied(), Metric::Speedup, |r| {
            (r.matrix.as_str(), axis.of(r).unwrap_or(0))
        });
        let groups = matrices(rows.iter().copied())
            .into_iter()
            .map(|m| {
                let bar = |(value, row): &(f64, &Row)| Bar::new(*value, tip(row));
                (
                    plain_name(m).to_owned(),
                    present.iter().map(|s| best.get(&(m, *s)).map(bar)).collect(),
                )
            })
            .collect();
        panels.extend(
            BarPlot {
                title: name.into(),
                x_label: Metric::Speedup.label().into(),
                groups,
                reference: Some(1.0),
                ..BarPlot::default()
            }
            .panels(),
        );
    }
    if panels.is_empty() {
        section.missing(&format!("{title} No data."), &command(experiment));
    }
    section.figure(Figure {
        id: id.into(),
        title: title.into(),
        legend: present.iter().map(|s| format!("{s} {}", axis.label())).collect(),
        panels,
        ..Figure::default()
    });
}

const SERIES: [&str; 4] = ["CSR, printed", "CSR, ours", "ELLPACK, printed", "ELLPACK, ours"];

/// Figures 11 and 12; the printed ratio follows from tables 3 and 4.
fn cpu_against_gpu(results: &Results, section: &mut Section) {
    let title = "R0 figures 11 and 12: time on the CPU over time on the GPU";
    let (cpu, gpu) = (printed("R0 table 3"), printed("R0 table 4"));
    let mut table = Table::new(
        "r0-figures-11-12",
        title,
        &["matrix", "CSR, printed", "CSR, ours", "ELLPACK, printed", "ELLPACK, ours"],
    );
    let mut groups = Vec::new();
    let ratio = |series: &str, matrix: &str| {
        let theirs = |table: &[Printed]| {
            let row = table.iter().find(|p| p.matrix == matrix && p.series == series)?;
            row.number().filter(|v| *v > 0.0)
        };
        theirs(&gpu).zip(theirs(&cpu)).map(|(g, c)| g / c)
    };
    let ours = |series: usize, matrix: &str| {
        let best = |backend: &'static str| {
            rows_of(results, kernels(backend)[series].1)
                .into_iter()
                .filter(|r| plain_name(&r.matrix) == matrix)
                .filter_map(|r| r.median_s)
                .reduce(f64::min)
        };
        Some(best("cpu")? / best("gpu")?)
    };
    for number in cpu.iter().filter(|p| p.series == "CSR") {
        let matrix = number.matrix.as_str();
        let values =
            [ratio("CSR", matrix), ours(0, matrix), ratio("ELLPACK", matrix), ours(1, matrix)];
        let mut row = vec![Cell::text(matrix)];
        row.extend(values.iter().map(|v| Cell::option(*v, Cell::Ratio)));
        table.push(row);
        if values[1].is_some() || values[3].is_some() {
            let bar = |(name, value): (&&str, Option<f64>)| {
                let value = value?;
                Some(Bar::new(value, format!("{matrix}\n{name}: {}×", significant(value))))
            };
            groups.push((matrix.to_owned(), SERIES.iter().zip(values).map(bar).collect()));
        }
    }
    if groups.is_empty() {
        section.missing("R0 figures 11 and 12 need both.", &command("spmv-cpu-vs-gpu"));
    }
    section.figure(Figure {
        id: "r0-figures-11-12-figure".into(),
        title: format!("{title}."),
        caption: "Best case of each; the printed ratio follows from tables 3 and 4.".into(),
        legend: SERIES.map(str::to_owned).to_vec(),
        panels: BarPlot {
            title: "speedup of the GPU".into(),
            x_label: "time on the CPU / time on the GPU".into(),
            groups,
            reference: Some(1.0),
            ..BarPlot::default()
        }
        .panels(),
        ..Figure::default()
    });
    let unmeasured = |row: &[Cell]| row[2] == Cell::Missing && row[4] == Cell::Missing;
    section.table(table.fold("not measured here", unmeasured).note(
        "Printed values of 0.00 GFLOPS give no ratio. Ours is the kernel alone, data in place.",
    ));
}

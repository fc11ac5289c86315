//! R4: sparse matrix times tall dense matrix (Capotombolo and Zarrelli 2023).

use super::super::draw::{mean_panel, over_matrices};
use super::super::experiments::command;
use super::super::load::{Axis, Metric, Results, distinct};
use super::super::model::Section;
use super::super::svg::Figure;
use super::claims;
use crate::results::Row;

pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("r4", "R4: Capotombolo and Zarrelli 2023, redrawn");
    section.text(
        "SpMM with CSR and ELLPACK, three serial products, three with OpenMP, ten CUDA kernels, \
         and the conversions from COO. Its section on measurements is empty: no table and no \
         figure is printed, so what stands beside our runs are the statements of the text.",
    );
    section.heading("Statements").table(claims::table(results, "R4"));
    section.heading("Tables and figures");
    for (backend, experiment, kernels) in
        [("cpu", "spmm-cpu", "R4 1.3, 3.2, 4.2"), ("gpu", "spmm-gpu", "R4 3.3, 4.3")]
    {
        let title = format!("{kernels}: SpMM on the {}", backend.to_uppercase());
        let rows: Vec<&Row> =
            results.timed().filter(|r| r.op == "spmm" && r.backend == backend).collect();
        compare(&mut section, &title, &format!("r4-spmm-{backend}"), &rows, Axis::K, experiment);
    }
    let rows: Vec<&Row> = results.timed().filter(|r| r.op == "conversion").collect();
    compare(
        &mut section,
        "R4 3.1, 4.1: conversions",
        "r4-conversions",
        &rows,
        Axis::Threads,
        "conversions",
    );
    section
}

fn compare(
    section: &mut Section,
    title: &str,
    id: &str,
    rows: &[&Row],
    axis: Axis,
    experiment: &str,
) {
    if rows.is_empty() {
        section.missing(&format!("{title}: no data."), &command(experiment));
        return;
    }
    let metric = Metric::speed(rows.iter().copied());
    let series_of = |row: &Row| row.kernel.clone();
    let series = distinct(rows.iter().map(|r| series_of(r)));
    if super::super::draw::axis_values(rows.iter().copied(), axis).len() > 1 {
        section.figure(Figure {
            id: format!("{id}-{}", axis.name()),
            title: format!("{title}, over {}.", axis.label()),
            caption: "Geometric mean over the matrices of the best case of each kernel.".into(),
            legend: series.clone(),
            panels: [metric, Metric::Speedup]
                .into_iter()
                .filter_map(|m| mean_panel(rows, &series, &series_of, axis, m))
                .collect(),
            ..Figure::default()
        });
    }
    let (figure, table) = over_matrices(id, title, rows, &series, &series_of, metric);
    section.figure(figure).table(table);
}

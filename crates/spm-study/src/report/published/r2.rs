//! R2: CSR and hacked ELLPACK, nnz-balanced OpenMP, CUDA with texture reads (Pompili).

use super::super::draw::{matrices_panel, over_matrices};
use super::super::experiments::command;
use super::super::load::{Axis, Metric, Results, Select};
use super::super::model::Section;
use super::super::svg::Figure;
use super::claims;
use super::findings::rows_of;
use crate::results::Row;

pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("r2", "R2: Pompili, redrawn");
    section.text(
        "SpMV with CSR (rows cut by entries) and HLL on the CPU with 1 to 40 threads, with texture \
         reads on the GPU; mean of 10 runs, on the GPU the kernel alone by events. The report \
         prints plots and no tables, so its figures are redrawn from our runs only. Ours: \
         `csr-nnz-balanced` and `hll-blocks` on the CPU, `csr-thread-per-row-texture` and \
         `hll-thread-per-row-texture` on the GPU.",
    );
    section.heading("Statements").table(claims::table(results, "R2"));
    section.heading("Tables and figures");
    let csr = Select::new("spmv", "cpu", "csr-nnz-balanced");
    let hll = Select::new("spmv", "cpu", "hll-blocks");
    over(
        results,
        &mut section,
        Over {
            id: "r2-figures-3-8",
            title: "R2 figures 3 to 8: GFLOPS, speedup and efficiency over threads.",
            series: &[("CSR", csr), ("HLL, hack 16", hll.with("hack=16"))],
            axis: Axis::Threads,
            metrics: &[Metric::Gflops, Metric::Speedup, Metric::Efficiency],
            experiment: "spmv-cpu-threads",
        },
    );
    formats(
        results,
        &mut section,
        Formats {
            id: "r2-figures-9-11",
            title: "R2 figures 9 to 11: CSR and HLL on the CPU",
            csr,
            hll,
            metrics: &[Metric::Gflops, Metric::Speedup, Metric::Efficiency],
            experiment: "spmv-cpu-formats",
        },
    );
    over(
        results,
        &mut section,
        Over {
            id: "r2-figures-12-17",
            title: "R2 figures 12 to 17: HLL with hack sizes 32 and 64 over threads.",
            series: &[("HLL, hack 32", hll.with("hack=32")), ("HLL, hack 64", hll.with("hack=64"))],
            axis: Axis::Threads,
            metrics: &[Metric::Gflops, Metric::Speedup, Metric::Efficiency],
            experiment: "spmv-cpu-threads",
        },
    );
    let csr = Select::new("spmv", "gpu", "csr-thread-per-row-texture");
    let hll = Select::new("spmv", "gpu", "hll-thread-per-row-texture");
    over(
        results,
        &mut section,
        Over {
            id: "r2-figures-18-23",
            title: "R2 figures 18 to 23: GFLOPS and speedup over the block size, GPU.",
            series: &[
                ("CSR", csr),
                ("HLL, hack 32", hll.with("hack=32")),
                ("HLL, hack 64", hll.with("hack=64")),
            ],
            axis: Axis::Block,
            metrics: &[Metric::Gflops, Metric::Speedup],
            experiment: "spmv-gpu-block-size",
        },
    );
    formats(
        results,
        &mut section,
        Formats {
            id: "r2-figures-24-25",
            title: "R2 figures 24 and 25: CSR and HLL on the GPU",
            csr,
            hll,
            metrics: &[Metric::Gflops, Metric::Speedup],
            experiment: "spmv-gpu-formats",
        },
    );
    section
}

struct Over<'a> {
    id: &'a str,
    title: &'a str,
    series: &'a [(&'a str, Select<'a>)],
    axis: Axis,
    metrics: &'a [Metric],
    experiment: &'a str,
}

/// A panel per implementation and metric.
fn over(results: &Results, section: &mut Section, o: Over<'_>) {
    let mut panels = Vec::new();
    for (name, select) in o.series {
        let rows = rows_of(results, *select);
        for metric in o.metrics {
            panels.extend(matrices_panel(name, &rows, o.axis, *metric));
        }
    }
    if panels.is_empty() {
        section.missing(&format!("{} No data.", o.title), &command(o.experiment));
    }
    section.figure(Figure {
        id: o.id.into(),
        title: o.title.into(),
        caption: "One thin line per matrix, the geometric mean in colour.".into(),
        panels,
        ..Figure::default()
    });
}

struct Formats<'a> {
    id: &'a str,
    title: &'a str,
    csr: Select<'a>,
    hll: Select<'a>,
    metrics: &'a [Metric],
    experiment: &'a str,
}

/// Bars of both formats over the matrices.
fn formats(results: &Results, section: &mut Section, f: Formats<'_>) {
    let rows: Vec<&Row> = results.timed().filter(|r| f.csr.takes(r) || f.hll.takes(r)).collect();
    if rows.is_empty() {
        section.missing(&format!("{}: no data.", f.title), &command(f.experiment));
        return;
    }
    let kernel = f.hll.kernel;
    let series_of = move |row: &Row| (if row.kernel == kernel { "HLL" } else { "CSR" }).to_owned();
    for metric in f.metrics {
        let (mut figure, table) = over_matrices(
            &format!("{}-{}", f.id, metric.slug()),
            f.title,
            &rows,
            &["CSR".to_owned(), "HLL".to_owned()],
            &series_of,
            *metric,
        );
        figure.title = format!("{}: {}.", f.title, metric.label());
        section.figure(figure).table(table);
    }
}

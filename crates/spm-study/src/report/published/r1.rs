//! R1: 1-D and 2-D partitions on the CPU, thread or warp per row on the GPU (Di Iorio).

use super::super::experiments::command;
use super::super::load::{Results, distinct};
use super::super::model::{Cell, Section, Table};
use super::{claims, compare, printed};

pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("r1", "R1: Di Iorio, redrawn");
    section.text(
        "SpMV with CSR and ELLPACK in one- and two-dimensional partitions; mean of 25 runs, on the \
         GPU launch and synchronization by a host clock. The machine is not stated.",
    );
    section.heading("Statements").table(claims::table(results, "R1"));
    section.heading("Tables and figures");
    for (number, what, experiment) in [
        (1, "times on the CPU, grid 10x4", "spmv-cpu-partitions"),
        (2, "times on the GPU, best block", "spmv-gpu-options"),
    ] {
        let source = format!("R1 figure {number}");
        let numbers: Vec<_> = printed(&source)
            .into_iter()
            .filter(|p| p.quantity == "time" && !p.kernel.is_empty())
            .collect();
        let id = format!("r1-figure-{number}");
        let (table, figure) = compare::side_by_side(
            results,
            &id,
            &format!("{source}: {what}, printed and ours"),
            &numbers,
        );
        let best = best(results, &source);
        if best.rows.iter().all(|r| r[OURS] == Cell::Missing) {
            section.missing(
                &format!("{source} has nothing of ours beside it yet."),
                &command(experiment),
            );
        }
        section.figure(figure).table(best).table(table);
    }
    section
}

/// Column of our least time in [`best`].
const OURS: usize = 3;

/// MIN TIME, BEST GFLOPS and BEST IMPL of each matrix, theirs and ours.
fn best(results: &Results, source: &str) -> Table {
    let numbers = printed(source);
    let times: Vec<_> =
        numbers.iter().filter(|p| p.quantity == "time" && !p.kernel.is_empty()).collect();
    let mut table = Table::new(
        format!("{}-best", source.to_lowercase().replace(' ', "-")),
        format!("{source}: best implementation, its time and its GFLOPS"),
        &[
            "matrix",
            "best, printed",
            "least time, printed",
            "least time, ours",
            "GFLOPS, printed",
            "GFLOPS, from printed time",
            "GFLOPS, ours",
            "ratio",
            "best, ours",
            "ours is",
        ],
    );
    for matrix in distinct(numbers.iter().map(|p| p.matrix.as_str())) {
        let of =
            |quantity: &str| numbers.iter().find(|p| p.matrix == matrix && p.quantity == quantity);
        let least =
            times.iter().filter(|p| p.matrix == matrix).filter_map(|p| p.number()).reduce(f64::min);
        // The catalogue's count: the printed GFLOPS column of figure 1 takes other matrices'.
        let entries = crate::catalogue::find(matrix).map(|m| m.entries as f64);
        let theirs = entries.zip(least).map(|(e, t)| 2.0 * e / t / 1e9);
        let ours = times
            .iter()
            .filter(|p| p.matrix == matrix)
            .filter_map(|p| Some((p, compare::ours(results, p)?)))
            .min_by(|a, b| a.1.value.total_cmp(&b.1.value));
        let mine = ours.and_then(|(_, o)| o.row.gflops);
        table.push(vec![
            Cell::text(matrix),
            Cell::option(of("best"), |p| Cell::text(p.value.replace("GFLOPS ", ""))),
            Cell::option(least, Cell::Seconds),
            Cell::option(ours, |(_, o)| Cell::Seconds(o.value)),
            Cell::option(of("gflops"), |p| Cell::Exact(p.value.clone())),
            Cell::option(theirs, Cell::Number),
            Cell::option(mine, Cell::Number),
            Cell::option(mine.zip(theirs).map(|(m, t)| m / t), Cell::Ratio),
            Cell::option(ours, |(p, _)| Cell::text(&p.series)),
            Cell::option(ours, |(_, o)| {
                Cell::text(if o.row.synthetic() { "generated" } else { "the same matrix" })
            }),
        ]);
    }
    table.fold("not measured here", |row| row[OURS] == Cell::Missing).note(
        "The ratio is to the GFLOPS that follow from the printed time and the matrix's own entries. \
         Figure 1's printed GFLOPS were computed with the entries of other matrices \
         (data/published/README.md), so they do not enter.",
    )
}

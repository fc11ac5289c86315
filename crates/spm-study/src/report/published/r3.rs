//! R3: sparse transposition on the GPU (Incudini and Penzo).

use super::super::draw::matrices_panel;
use super::super::experiments::command;
use super::super::load::{Axis, Metric, Results, Select, distinct, variant};
use super::super::model::{Cell, Section, Table};
use super::super::svg::Figure;
use super::findings::rows_of;
use super::{claims, compare, printed, scope_words};

pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("r3", "R3: Incudini and Penzo, redrawn");
    section.text(
        "CSR to CSC in single precision on a GeForce GTX 780, CUDA 10.2; mean of 5 runs, the whole \
         call by a host clock: device allocation and the copies both ways are inside, for cuSPARSE \
         too. `cant` is counted by its stored triangle there, so times are compared by entries a \
         second.",
    );
    section.heading("Statements").table(claims::table(results, "R3"));
    section.heading("Tables and figures");
    for (number, what) in [(14, "times"), (15, "speedup over serial")] {
        let source = format!("R3 figure {number}");
        let (table, figure) = compare::side_by_side(
            results,
            &format!("r3-figure-{number}"),
            &format!("{source}: {what}, printed and ours"),
            &printed(&source),
        );
        if figure.panels.is_empty() {
            section.missing(
                &format!("{source} has nothing of ours beside it yet."),
                &command("transpose-gpu"),
            );
        }
        section.figure(figure).table(table);
    }
    procedures(results, &mut section);
    section
}

/// Figures 6, 8, 10 and 12: one table, and our times over the block size.
fn procedures(results: &Results, section: &mut Section) {
    let mut table = Table::new(
        "r3-figures-6-8-10-12",
        "R3 figures 6, 8, 10 and 12: procedures by block size",
        &[
            "figure",
            "procedure",
            "elements",
            "block",
            "printed",
            "ours",
            "our elements",
            "ratio",
            "our kernel",
        ],
    );
    let mut panels = Vec::new();
    let mut measured = false;
    for number in [6, 8, 10, 12] {
        let numbers = printed(&format!("R3 figure {number}"));
        for p in &numbers {
            // The same number of elements if we have it, else any, compared by elements a second.
            let ours = compare::ours(results, p).or_else(|| {
                compare::ours(results, &super::Printed { elements: None, ..p.clone() })
            });
            let theirs = p.number();
            let ratio = theirs.zip(ours).zip(p.elements).map(|((theirs, ours), elements)| {
                theirs / elements as f64 / (ours.value / ours.row.entries as f64)
            });
            measured |= ours.is_some();
            table.push(vec![
                Cell::text(p.source.trim_start_matches("R3 ")),
                Cell::text(&p.series),
                Cell::option(p.elements, Cell::Count),
                Cell::option(p.block, Cell::Count),
                Cell::option(theirs, Cell::Seconds),
                Cell::option(ours.map(|o| o.value), Cell::Seconds),
                Cell::option(ours.map(|o| o.row.entries), Cell::Count),
                Cell::option(ratio, Cell::Ratio),
                Cell::option(ours, |o| Cell::code(variant(o.row))),
            ]);
        }
        for (name, kernel) in
            distinct(numbers.iter().map(|p| (p.series.as_str(), p.kernel.as_str())))
        {
            let rows = rows_of(results, Select::new("transpose", "gpu", kernel));
            panels.extend(matrices_panel(name, &rows, Axis::Block, Metric::Gentries));
        }
    }
    if !measured {
        section.missing(
            "R3 figures 6, 8, 10 and 12 have nothing of ours beside them yet.",
            &command("transpose-primitives"),
        );
    }
    section.figure(Figure {
        id: "r3-figures-6-8-10-12-figure".into(),
        title: "R3 figures 6, 8, 10 and 12: elements a second over the block size, ours.".into(),
        panels,
        ..Figure::default()
    });
    section.table(table.note(format!(
        "Printed: {}; ours: {}. Ratio: elements a second, ours over theirs.",
        scope_words("unstated"),
        scope_words("kernel")
    )));
}

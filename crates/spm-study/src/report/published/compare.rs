//! A printed table beside ours.

use super::super::bars::{Bar, BarPlot};
use super::super::draw::tip;
use super::super::load::{Metric, Results, distinct, is_timed, plain_name};
use super::super::model::{Cell, Table, seconds, significant};
use super::super::svg::Figure;
use super::{Printed, scope_words};
use crate::results::Row;

const NOT_MEASURED: &str = "not measured";

/// Our case that stands beside a printed one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ours<'a> {
    pub(super) value: f64,
    pub(super) row: &'a Row,
}

/// Our best case for a printed number: same operation, backend, kernel and matrix; the same scope
/// where we have it, else the kernel alone.
pub(super) fn ours<'a>(results: &'a Results, printed: &Printed) -> Option<Ours<'a>> {
    let metric = match printed.quantity.as_str() {
        "speedup" => Metric::Speedup,
        "gflops" => Metric::Gflops,
        _ => Metric::Gentries,
    };
    let rows = || {
        results.rows.iter().filter(|r| {
            is_timed(r)
                && r.op == printed.op
                && r.backend == printed.backend
                && r.kernel == printed.kernel
                && printed.block.is_none_or(|b| r.block == Some(b))
                && printed.elements.is_none_or(|n| r.entries == n)
                && (printed.matrix.is_empty() || same_matrix(r, printed))
        })
    };
    let best = |scope: &dyn Fn(&Row) -> bool| {
        rows()
            .filter(|r| scope(r))
            .filter_map(|row| Some((metric.of(row)?, row)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (speed, row) = best(&|r| r.scope == printed.scope)
        .or_else(|| best(&|r| r.scope.is_empty() || r.scope == "kernel"))
        .or_else(|| best(&|_| true))?;
    let value = if metric == Metric::Gentries { row.median_s? } else { speed };
    Some(Ours { value, row })
}

/// Random matrices go by their size, all others by name.
fn same_matrix(row: &Row, printed: &Printed) -> bool {
    if printed.matrix.starts_with("random-") {
        (Some(row.rows), Some(row.cols), Some(row.entries))
            == (printed.rows, printed.cols, printed.entries)
    } else {
        plain_name(&row.matrix) == printed.matrix
    }
}

/// How many times better ours is: more speedup or GFLOPS, or more entries a second where times are
/// printed (R3 does not expand symmetric matrices).
pub(super) fn ratio(printed: &Printed, ours: Ours<'_>) -> Option<f64> {
    let theirs = printed.number().filter(|v| *v > 0.0)?;
    if printed.quantity == "time" {
        let scale = printed.entries.map_or(1.0, |e| ours.row.entries as f64 / e as f64);
        Some(theirs / ours.value * scale)
    } else {
        Some(ours.value / theirs)
    }
}

/// The bars of one matrix, one for each series.
#[derive(Default)]
struct Group {
    theirs: Vec<Option<Bar>>,
    ours: Vec<Option<Bar>>,
}

/// Table with the printed value, ours and the ratio for each series, and a figure of both.
pub(super) fn side_by_side(
    results: &Results,
    id: &str,
    title: &str,
    printed: &[Printed],
) -> (Table, Figure) {
    let series = distinct(printed.iter().map(|p| p.series.as_str()));
    let time = printed.iter().any(|p| p.quantity == "time");
    let mut columns = vec!["matrix".to_owned(), "ours is".to_owned()];
    for s in &series {
        columns.extend([format!("{s}, printed"), format!("{s}, ours"), format!("{s}, ratio")]);
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(id, title, &columns);
    let mut groups = Vec::new();
    let mut scopes: Vec<String> = Vec::new();
    for matrix in distinct(printed.iter().map(|p| p.matrix.as_str())) {
        let mut cells = Vec::new();
        let mut group = Group::default();
        let mut found: Option<&Row> = None;
        for s in &series {
            let number = printed.iter().find(|p| p.matrix == matrix && p.series == *s);
            let theirs = number.and_then(Printed::number);
            let ours = number.and_then(|p| ours(results, p));
            let ratio = number.zip(ours).and_then(|(p, o)| ratio(p, o));
            let cell = |v| if time { Cell::Seconds(v) } else { Cell::Number(v) };
            cells.push(match number {
                Some(p) if !time && theirs.is_some() => Cell::Exact(p.value.clone()),
                _ => Cell::option(theirs, cell),
            });
            cells.push(Cell::option(ours.map(|o| o.value), cell));
            cells.push(Cell::option(ratio, Cell::Ratio));
            let theirs_tip = |v: f64| {
                let unit = number.map_or("", |p| p.unit.as_str());
                let value = if time { seconds(v) } else { format!("{} {unit}", significant(v)) };
                Bar::new(v, format!("{matrix}\n{s}, printed: {value}"))
            };
            group.theirs.push(theirs.map(theirs_tip));
            group.ours.push(ours.map(|o| Bar::new(o.value, tip(o.row))));
            if let (Some(p), Some(o)) = (number, ours) {
                found = Some(o.row);
                let mine = if o.row.scope.is_empty() { "kernel" } else { &o.row.scope };
                let mine = if o.row.backend == "cpu" { "host" } else { mine };
                scopes.push(format!(
                    "{}: printed {}, ours {}",
                    p.series,
                    scope_words(&p.scope),
                    scope_words(mine)
                ));
            }
        }
        let origin = match found {
            None => NOT_MEASURED,
            Some(row) if row.synthetic() => "generated",
            Some(_) => "the same matrix",
        };
        let mut row = vec![Cell::text(matrix), Cell::text(origin)];
        row.extend(cells);
        table.push(row);
        if found.is_some() {
            groups.push((matrix.to_owned(), group));
        }
    }
    let scopes = distinct(scopes.into_iter());
    let note = if scopes.is_empty() {
        "None of these cases was measured here yet.".to_owned()
    } else {
        let better = if time { "entries a second, ours over theirs" } else { "ours over theirs" };
        format!("Ratio: {better}. What the clock encloses: {}.", scopes.join("; "))
    };
    let x_label = match printed.first().map(|p| p.quantity.as_str()) {
        Some("time") => "seconds",
        Some("speedup") => "speedup over serial",
        _ => "GFLOPS",
    };
    // Theirs and ours at the same size and on the same scale, one beside the other.
    let halves = ["printed", "ours"].map(|whose| {
        let half = |group: &(String, Group)| {
            let bars = if whose == "printed" { &group.1.theirs } else { &group.1.ours };
            (group.0.clone(), bars.clone())
        };
        let values = groups.iter().flat_map(|(_, g)| g.theirs.iter().chain(&g.ours).flatten());
        BarPlot {
            title: whose.into(),
            x_label: x_label.into(),
            groups: groups.iter().map(half).collect(),
            also: values.map(|bar| bar.value).collect(),
            ..BarPlot::default()
        }
        .panels()
    });
    let [theirs, mine] = halves;
    let figure = Figure {
        id: format!("{id}-figure"),
        title: title.to_owned(),
        caption: "Printed beside ours, other hardware.".into(),
        legend: series.iter().map(|s| (*s).to_owned()).collect(),
        panels: theirs.into_iter().zip(mine).flat_map(|(a, b)| [a, b]).collect(),
        pairs: true,
        ..Figure::default()
    };
    let table = table.fold("not measured here", |row| row[1] == Cell::text(NOT_MEASURED));
    (table.note(note), figure)
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    fn row(matrix: &str, seconds: f64, scope: &str) -> Row {
        Row {
            matrix: matrix.into(),
            op: "transpose".into(),
            backend: "gpu".into(),
            kernel: "scan-trans".into(),
            rows: 100_000,
            cols: 100_000,
            entries: 10_000_000,
            median_s: Some(seconds),
            scope: scope.into(),
            ..Row::default()
        }
    }

    #[test]
    fn the_same_scope_is_preferred_even_if_slower() {
        let results = Results {
            rows: vec![row("synthetic:r", 0.001, ""), row("synthetic:r", 0.04, "call")],
            ..Results::default()
        };
        let printed = printed("R3 figure 14");
        let random = printed
            .iter()
            .find(|p| p.matrix == "random-100000x100000-10000000-1" && p.series == "ScanTrans")
            .unwrap();
        let found = ours(&results, random).unwrap();
        assert_eq!(found.value, 0.04);
        assert!((ratio(random, found).unwrap() - 0.47517 / 0.04).abs() < 1e-9);
        let (table, figure) = side_by_side(&results, "t", "T", &printed);
        assert_eq!(table.rows.len(), 14);
        assert!(table.note.contains("allocation and copies included"));
        assert_eq!(figure.panels.len(), 2);
        assert_eq!(figure.panels[0].height, figure.panels[1].height);
    }

    #[test]
    fn times_are_compared_by_entries_a_second() {
        let ours = Ours { value: 1.0, row: &Row { entries: 40, ..Row::default() } };
        let printed = Printed {
            quantity: "time".into(),
            value: "1000".into(),
            unit: "ms".into(),
            entries: Some(20),
            ..Printed::default()
        };
        assert_eq!(ratio(&printed, ours), Some(2.0));
    }
}

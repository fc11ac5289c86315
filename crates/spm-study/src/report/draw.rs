//! Figures and tables that more than one section draws from rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::bars::{Bar, BarPlot};
use super::load::{
    Axis, Metric, best_by, distinct, geometric_mean, is_timed, matrices, plain_name, variant,
};
use super::model::{Cell, Table, percent, seconds, significant};
use super::plot::{Point, Series, XyPlot};
use super::scale::Kind;
use super::svg::{Figure, Panel};
use crate::results::Row;

/// Values of an axis that some rows have, ascending.
pub(super) fn axis_values<'a>(rows: impl Iterator<Item = &'a Row>, axis: Axis) -> Vec<u64> {
    let mut values = distinct(rows.filter_map(|r| axis.of(r)));
    values.sort_unstable();
    values
}

/// What hovering a case shows: the matrix alone on the first line, then kernel, time and ratios.
pub(super) fn tip(row: &Row) -> String {
    let mut tip = format!("{}\n{} {}", plain_name(&row.matrix), row.backend, variant(row));
    for (name, value) in [("threads", row.threads), ("block", row.block), ("k", row.k)] {
        if let Some(value) = value {
            let _ = write!(tip, ", {name} {value}");
        }
    }
    tip.push('\n');
    tip.push_str(&row.median_s.map_or_else(|| "no time".to_owned(), seconds));
    if let Some(speed) = row.gflops {
        let _ = write!(tip, ", {} GFLOPS", significant(speed));
    }
    let ratio = row.speedup_vs_serial.map(|s| format!("{}× serial", significant(s)));
    let roof = row.roofline_fraction.map(|f| format!("{} of the roof", percent(f)));
    let ratios: Vec<String> = ratio.into_iter().chain(roof).collect();
    if !ratios.is_empty() {
        let _ = write!(tip, "\n{}", ratios.join(", "));
    }
    tip
}

/// One panel: the best of each series at each value of the axis, as the geometric mean over
/// matrices. Only matrices that a series has at every value count, so that the mean does not jump.
pub(super) fn mean_panel(
    rows: &[&Row],
    series: &[String],
    series_of: &dyn Fn(&Row) -> String,
    axis: Axis,
    metric: Metric,
) -> Option<Panel> {
    let ticks = axis_values(rows.iter().copied(), axis);
    let best = best_by(rows.iter().copied().filter(|r| axis.of(r).is_some()), metric, |r| {
        (series_of(r), r.matrix.as_str(), axis.of(r).unwrap_or(0))
    });
    let mut lines = Vec::new();
    for (index, name) in series.iter().enumerate() {
        let mut by_matrix: BTreeMap<&str, Vec<(u64, f64)>> = BTreeMap::new();
        for ((_, matrix, x), (value, _)) in best.iter().filter(|((s, ..), _)| s == name) {
            by_matrix.entry(matrix).or_default().push((*x, *value));
        }
        let most = by_matrix.values().map(Vec::len).max().unwrap_or(0);
        by_matrix.retain(|_, points| points.len() == most);
        let points: Vec<Point> = ticks
            .iter()
            .filter_map(|x| {
                let values =
                    by_matrix.values().flat_map(|p| p.iter().filter(|p| p.0 == *x).map(|p| p.1));
                let y = geometric_mean(values)?;
                let tip = format!("{name}, {} {x}: {}", axis.name(), significant(y));
                Some(Point { x: *x as f64, y, tip })
            })
            .collect();
        if !points.is_empty() {
            lines.push(Series { index, name: name.clone(), points });
        }
    }
    xy(metric.label(), axis, metric, lines, Vec::new(), &ticks)
}

/// One panel: a thin line per matrix and their geometric mean, for the rows of one implementation.
pub(super) fn matrices_panel(
    title: &str,
    rows: &[&Row],
    axis: Axis,
    metric: Metric,
) -> Option<Panel> {
    let ticks = axis_values(rows.iter().copied(), axis);
    let best = best_by(rows.iter().copied().filter(|r| axis.of(r).is_some()), metric, |r| {
        (r.matrix.as_str(), axis.of(r).unwrap_or(0))
    });
    let faint: Vec<Series> = matrices(rows.iter().copied())
        .into_iter()
        .map(|matrix| Series {
            index: 0,
            name: matrix.to_owned(),
            points: best
                .iter()
                .filter(|((m, _), _)| *m == matrix)
                .map(|((_, x), (y, _))| Point { x: *x as f64, y: *y, tip: String::new() })
                .collect(),
        })
        .collect();
    let most = faint.iter().map(|s| s.points.len()).max().unwrap_or(0);
    let points = ticks
        .iter()
        .filter_map(|x| {
            let x = *x as f64;
            let at = |s: &Series| s.points.iter().find(|p| p.x == x).map(|p| p.y);
            let y = geometric_mean(faint.iter().filter(|s| s.points.len() == most).filter_map(at))?;
            let tip = format!("geometric mean, {} {x}: {}", axis.name(), significant(y));
            Some(Point { x, y, tip })
        })
        .collect();
    let mean = Series { index: 0, name: "geometric mean".to_owned(), points };
    xy(title, axis, metric, vec![mean], faint, &ticks)
}

fn xy(
    title: &str,
    axis: Axis,
    metric: Metric,
    lines: Vec<Series>,
    faint: Vec<Series>,
    ticks: &[u64],
) -> Option<Panel> {
    let all = || lines.iter().chain(&faint).flat_map(|s| &s.points).map(|p| p.y);
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(0.0, f64::max);
    let wide = high / low > 30.0;
    XyPlot {
        title: title.to_owned(),
        x_label: axis.label().to_owned(),
        y_label: if title == metric.label() { String::new() } else { metric.label().to_owned() },
        x_kind: Kind::Log2,
        y_kind: if wide { Kind::Log } else { Kind::Linear },
        lines,
        faint,
        reference: matches!(metric, Metric::Speedup | Metric::Efficiency).then_some(1.0),
        x_ticks: ticks.iter().map(|t| *t as f64).collect(),
        ..XyPlot::default()
    }
    .panel()
}

/// One small panel per matrix: a line per series over the axis.
pub(super) fn small_multiples(
    rows: &[&Row],
    names: &[&str],
    series: &[String],
    series_of: &dyn Fn(&Row) -> String,
    axis: Axis,
    metric: Metric,
) -> Vec<Panel> {
    let ticks: Vec<f64> =
        axis_values(rows.iter().copied(), axis).into_iter().map(|t| t as f64).collect();
    let best = best_by(rows.iter().copied().filter(|r| axis.of(r).is_some()), metric, |r| {
        (r.matrix.as_str(), series_of(r), axis.of(r).unwrap_or(0))
    });
    names
        .iter()
        .filter_map(|matrix| {
            let lines = series
                .iter()
                .enumerate()
                .map(|(index, name)| Series {
                    index,
                    name: name.clone(),
                    points: best
                        .iter()
                        .filter(|((m, s, _), _)| m == matrix && s == name)
                        .map(|((_, _, x), (y, row))| Point { x: *x as f64, y: *y, tip: tip(row) })
                        .collect(),
                })
                .filter(|s: &Series| !s.points.is_empty())
                .collect();
            XyPlot {
                title: plain_name(matrix).to_owned(),
                x_label: axis.label().to_owned(),
                y_label: metric.label().to_owned(),
                x_kind: Kind::Log2,
                lines,
                reference: (metric == Metric::Speedup).then_some(1.0),
                x_ticks: ticks.clone(),
                height: 200.0,
                ..XyPlot::default()
            }
            .panel()
        })
        .collect()
}

/// Figure and table over matrices: the best of each series on each matrix.
pub(super) fn over_matrices(
    id: &str,
    title: &str,
    rows: &[&Row],
    series: &[String],
    series_of: &dyn Fn(&Row) -> String,
    metric: Metric,
) -> (Figure, Table) {
    let best = best_by(rows.iter().copied(), metric, |r| (r.matrix.as_str(), series_of(r)));
    let names = matrices(rows.iter().copied().filter(|r| is_timed(r)));
    let mut columns = vec!["matrix", "entries"];
    columns.extend(series.iter().map(String::as_str));
    let mut table = Table::new(id, format!("{title}: {}", metric.label()), &columns);
    let mut groups = Vec::new();
    for name in names {
        let cases: Vec<Option<&(f64, &Row)>> =
            series.iter().map(|s| best.get(&(name, s.clone()))).collect();
        let values: Vec<Option<f64>> = cases.iter().map(|c| c.map(|(value, _)| *value)).collect();
        let entries = rows.iter().find(|r| r.matrix == name).map_or(0, |r| r.entries);
        let mut row = vec![Cell::text(name), Cell::Count(entries)];
        row.extend(mark_best(&values));
        table.push(row);
        let bar = |(value, row): &(f64, &Row)| Bar::new(*value, tip(row));
        let bars = cases.into_iter().map(|c| c.map(bar)).collect();
        groups.push((plain_name(name).to_owned(), bars));
    }
    let figure = Figure {
        id: id.to_owned(),
        title: format!("{title}."),
        caption: format!("Best {} of each on each matrix, smallest matrix first.", metric.label()),
        legend: series.to_vec(),
        panels: BarPlot {
            title: metric.label().to_owned(),
            x_label: String::new(),
            series: series.to_vec(),
            groups,
            reference: (metric == Metric::Speedup).then_some(1.0),
            ..BarPlot::default()
        }
        .panels(),
        ..Figure::default()
    };
    (figure, table)
}

/// Numbers as cells, the greatest marked where there is a choice.
pub(super) fn mark_best(values: &[Option<f64>]) -> Vec<Cell> {
    let greatest = values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let choice = values.iter().flatten().count() > 1;
    values
        .iter()
        .map(|value| match value {
            None => Cell::Missing,
            Some(v) if choice && *v == greatest => Cell::Best(Box::new(Cell::Number(*v))),
            Some(v) => Cell::Number(*v),
        })
        .collect()
}

/// How much each setting of a parameter matters: among cases alike in all else, how often a
/// setting is the fastest and how far its time lies from the fastest on the geometric mean.
pub(super) fn parameter_table(id: &str, rows: &[&Row]) -> Table {
    let mut table = Table::new(
        id,
        "Effect of each parameter",
        &["kernel", "parameter", "value", "cases", "fastest in", "time over fastest"],
    );
    for (kernel, parameter) in swept(rows) {
        // Cases alike in all but this parameter.
        let mut groups: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
        for row in rows.iter().filter(|r| r.kernel == kernel && is_timed(r)) {
            let (Some(value), Some(seconds)) = (setting(row, &parameter), row.median_s) else {
                continue;
            };
            groups.entry(all_but(row, &parameter)).or_default().push((value, seconds));
        }
        groups.retain(|_, members| distinct(members.iter().map(|m| &m.0)).len() > 1);
        for value in distinct(groups.values().flatten().map(|m| m.0.clone())) {
            let (mut cases, mut won, mut ratios) = (0u64, 0u64, Vec::new());
            for members in groups.values() {
                let fastest = members.iter().map(|m| m.1).fold(f64::INFINITY, f64::min);
                for (_, seconds) in members.iter().filter(|m| m.0 == value) {
                    cases += 1;
                    won += u64::from(*seconds <= fastest);
                    ratios.push(seconds / fastest);
                }
            }
            table.push(vec![
                Cell::code(&kernel),
                Cell::code(&parameter),
                Cell::code(value),
                Cell::Count(cases),
                Cell::Fraction(won as f64 / cases as f64),
                Cell::option(geometric_mean(ratios.into_iter()), Cell::Ratio),
            ]);
        }
    }
    table.note(
        "Cases are alike in everything but the parameter; `time over fastest` is the geometric \
         mean of a setting's time over the fastest setting's.",
    )
}

/// Value of a parameter, whether it has a column of its own or not.
pub(super) fn setting(row: &Row, parameter: &str) -> Option<String> {
    match parameter {
        "threads" => row.threads.map(|v| v.to_string()),
        "block" => row.block.map(|v| v.to_string()),
        _ => None,
    }
    .or_else(|| row.param(parameter).map(str::to_owned))
}

/// Everything that identifies a case but one parameter.
pub(super) fn all_but(row: &Row, parameter: &str) -> String {
    let others: Vec<&str> = row
        .params
        .split(',')
        .filter(|p| p.split('=').next().is_none_or(|name| name.trim() != parameter))
        .collect();
    let column = |name: &str, value: Option<u64>| if parameter == name { None } else { value };
    format!(
        "{}|{}|{}|{}|{}|{}|{:?}|{:?}|{:?}|{}|{}",
        row.experiment,
        row.matrix,
        row.op,
        row.backend,
        row.kernel,
        others.join(","),
        row.k,
        column("threads", row.threads),
        column("block", row.block),
        row.scope,
        row.cache
    )
}

/// (kernel, parameter) pairs with more than one value, block size among them, threads not (they have
/// plots).
fn swept(rows: &[&Row]) -> Vec<(String, String)> {
    let mut values: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for row in rows {
        let names = row.params.split(',').filter_map(|p| p.split_once('=')).map(|p| p.0.trim());
        for name in names.filter(|n| *n != "threads").chain(["block"]) {
            if let Some(value) = setting(row, name) {
                let known = values.entry((row.kernel.clone(), name.to_owned())).or_default();
                if !known.contains(&value) {
                    known.push(value);
                }
            }
        }
    }
    values.into_iter().filter(|(_, v)| v.len() > 1).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(matrix: &str, params: &str, seconds: f64) -> Row {
        Row {
            matrix: matrix.into(),
            kernel: "csr-tiles".into(),
            params: params.into(),
            threads: Some(2),
            median_s: Some(seconds),
            ..Row::default()
        }
    }

    #[test]
    fn parameters_are_compared_among_like_cases_only() {
        let rows = [
            row("a", "grid=10x4,simd=on", 1.0),
            row("a", "grid=10x4,simd=off", 2.0),
            row("b", "grid=10x4,simd=on", 8.0),
            row("b", "grid=10x4,simd=off", 4.0),
            // Alone: nothing to compare it with.
            row("c", "grid=5x8,simd=off", 1.0),
        ];
        let rows: Vec<&Row> = rows.iter().collect();
        let table = parameter_table("t", &rows);
        let simd: Vec<Vec<String>> = table
            .rows
            .iter()
            .filter(|r| r[1].raw() == "simd")
            .map(|r| r[2..].iter().map(Cell::raw).collect())
            .collect();
        assert_eq!(
            simd,
            [["on", "2", "0.5", "1.414213562373095"], ["off", "2", "0.5", "1.414213562373095"]]
        );
        assert!(table.rows.iter().all(|r| r[1].raw() != "grid"));
    }
}

//! The machine as `environment.json` tells it, and the roofline that its copy bandwidth draws.

use serde_json::Value;

use super::load::{Results, plain_name};
use super::model::{Cell, Section, Table, significant};
use super::plot::{Point, Series, XyPlot};
use super::scale::Kind;
use super::svg::Figure;

/// What the machine is.
pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("environment", "Environment");
    let mut table = Table::new("environment", "Machine, tools and revision", &["what", "value"]);
    flatten("", &results.environment, &mut table);
    if table.rows.is_empty() {
        section.missing("The machine is not described.", "cargo xtask bench-all");
    }
    section.table(table);
    section
}

/// Nested objects as dotted names; lists of plain values on one line.
fn flatten(prefix: &str, value: &Value, table: &mut Table) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('_', " ");
                let path = if prefix.is_empty() { name } else { format!("{prefix} · {name}") };
                flatten(&path, value, table);
            }
        }
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            for (i, item) in items.iter().enumerate() {
                flatten(&format!("{prefix} · {i}"), item, table);
            }
        }
        Value::Array(items) => {
            let text: Vec<String> = items.iter().map(plain).collect();
            table.push(vec![Cell::text(prefix), Cell::text(text.join(", "))]);
        }
        plain_value => table.push(vec![Cell::text(prefix), Cell::text(plain(plain_value))]),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_f64() => significant(n.as_f64().unwrap_or(f64::NAN)),
        other => other.to_string(),
    }
}

/// Copy bandwidth of a backend in GB/s: the GPU's, or the greatest over CPU thread counts.
pub(super) fn bandwidth(environment: &Value, backend: &str) -> Option<f64> {
    let measured = &environment["copy_bandwidth"];
    let gpu = |name: &str| name.starts_with("gpu");
    let Value::Object(fields) = measured else { return None };
    let mut best: Option<f64> = None;
    for (name, value) in fields.iter().filter(|(name, _)| gpu(name) == (backend == "gpu")) {
        // Threads may be keys here or one level below ("cpu": {"1": 10, "2": 19}).
        let numbers: Vec<f64> = match value {
            Value::Object(inner) => inner.values().filter_map(Value::as_f64).collect(),
            Value::Array(inner) => inner.iter().filter_map(Value::as_f64).collect(),
            value => value.as_f64().into_iter().collect(),
        };
        let known = name.parse::<u64>().is_ok() || matches!(name.as_str(), "cpu" | "threads");
        if known || gpu(name) {
            best = numbers.into_iter().chain(best).reduce(f64::max);
        }
    }
    best
}

/// The best case of each kernel on each matrix under the line that copy bandwidth allows.
pub(super) fn roofline(results: &Results) -> Section {
    let mut section = Section::new("roofline", "Roofline");
    let mut panels = Vec::new();
    let mut legend: Vec<String> = Vec::new();
    for backend in ["cpu", "gpu"] {
        let rows = results.timed().filter(|r| r.backend == backend && r.op == "spmv");
        let best = super::load::best_by(rows, super::load::Metric::Gflops, |r| {
            (r.kernel.as_str(), r.matrix.as_str())
        });
        let mut clouds: Vec<Series> = Vec::new();
        for ((kernel, matrix), (gflops, row)) in best {
            let Some(bytes) = row.gbytes_per_s.filter(|b| *b > 0.0) else { continue };
            let index = legend.iter().position(|l| l == kernel).unwrap_or_else(|| {
                legend.push(kernel.to_owned());
                legend.len() - 1
            });
            let fraction = row
                .roofline_fraction
                .map_or(String::new(), |f| format!(", {} of copy", super::model::percent(f)));
            let point = Point {
                x: gflops / bytes,
                y: gflops,
                tip: format!(
                    "{kernel} on {}: {} GFLOPS{fraction}",
                    plain_name(matrix),
                    significant(gflops)
                ),
            };
            match clouds.iter_mut().find(|c| c.index == index) {
                Some(cloud) => cloud.points.push(point),
                None => clouds.push(Series { index, name: kernel.to_owned(), points: vec![point] }),
            }
        }
        if clouds.is_empty() {
            continue;
        }
        let copy = bandwidth(&results.environment, backend);
        let mut roof = Vec::new();
        if let Some(copy) = copy {
            let xs = || clouds.iter().flat_map(|c| &c.points).map(|p| p.x);
            let low = xs().fold(f64::INFINITY, f64::min) / 1.5;
            let high = xs().fold(0.0, f64::max) * 1.5;
            let name = format!("copy bandwidth, {} GB/s", significant(copy));
            let points = [low, high].map(|x| Point { x, y: x * copy, tip: name.clone() }).to_vec();
            roof.push(Series { index: 6, name, points });
        }
        let title = match copy {
            Some(copy) => {
                format!("{}: roof at {} GB/s", backend.to_uppercase(), significant(copy))
            }
            None => format!("{}: copy bandwidth not measured", backend.to_uppercase()),
        };
        let plot = XyPlot {
            title,
            x_label: "operations per byte".into(),
            y_label: "GFLOPS".into(),
            x_kind: Kind::Log,
            y_kind: Kind::Log,
            faint: roof,
            clouds,
            height: 330.0,
            ..XyPlot::default()
        };
        panels.extend(plot.panel());
    }
    if panels.is_empty() {
        section.missing("No SpMV was measured.", "cargo xtask bench-all");
        return section;
    }
    section.text(
        "Bytes are the least traffic that the format allows: each stored array once, x once, y \
         once. Points above the line are matrices that fit in cache; points far below it wait for \
         latency, for padding or for the longest row.",
    );
    section.figure(Figure {
        id: "roofline".into(),
        title: "SpMV against the bandwidth of a plain copy.".into(),
        caption: "Best case of each kernel on each matrix; the line is the copy bandwidth that \
                  the same run measured on the same device."
            .into(),
        legend,
        panels,
    });
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bandwidth_is_found_in_any_of_its_shapes() {
        for shape in [
            json!({"copy_bandwidth": {"1": 10.5, "2": 19, "gpu": 3000.0}}),
            json!({"copy_bandwidth": {"cpu": {"1": 10.5, "2": 19.0}, "gpu": 3000}}),
            json!({"copy_bandwidth": {"threads": {"1": 10.5, "2": 19.0}, "gpu_gbytes_per_s": 3000}}),
        ] {
            assert_eq!(bandwidth(&shape, "cpu"), Some(19.0), "{shape}");
            assert_eq!(bandwidth(&shape, "gpu"), Some(3000.0), "{shape}");
        }
        let without = json!({"copy_bandwidth": {"1": 10.5, "gpu": {"reason": "no device"}}});
        assert_eq!(bandwidth(&without, "gpu"), None);
        assert_eq!(bandwidth(&Value::Null, "cpu"), None);
    }

    #[test]
    fn nested_objects_become_dotted_names() {
        let mut table = Table::new("e", "E", &["what", "value"]);
        flatten("", &json!({"cpu": {"model": "X", "simd": ["avx2", "fma"]}, "n": 1.5}), &mut table);
        let rows: Vec<Vec<String>> =
            table.rows.iter().map(|r| r.iter().map(Cell::raw).collect()).collect();
        assert_eq!(rows, [["cpu · model", "X"], ["cpu · simd", "avx2, fma"], ["n", "1.50"]]);
    }
}

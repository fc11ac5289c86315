//! The bandwidth that bounds a product: by working set, since what lies in a cache is not bound by memory.

use serde_json::Value;

use super::draw::tip;
use super::environment::bandwidth;
use super::load::{Metric, Results, best_by, bytes_moved};
use super::model::{Section, significant};
use super::plot::{Point, Series, XyPlot};
use super::scale::Kind;
use super::svg::{Figure, Panel};
use crate::bench::bandwidth::{Level, roof};
use crate::bench::environment::Bandwidths;
use crate::results::Row;

/// What the run measured by working set; nothing for runs of earlier versions.
pub(super) fn measured(environment: &Value) -> Bandwidths {
    serde_json::from_value(environment["bandwidth_gb_per_s"].clone()).unwrap_or_default()
}

/// Levels of a backend: on the CPU those of the thread count with the greatest bandwidth of memory.
fn levels(bandwidths: &Bandwidths, backend: &str) -> Vec<Level> {
    if backend == "gpu" {
        return bandwidths.gpu.clone();
    }
    let of_memory = |levels: &&Vec<Level>| levels.last().map_or(0.0, |l| l.copy.max(l.read));
    let all = bandwidths.cpu.values();
    all.max_by(|a, b| of_memory(a).total_cmp(&of_memory(b))).cloned().unwrap_or_default()
}

/// Bytes of the caches of a backend by their names.
pub(super) fn caches(environment: &Value, backend: &str) -> Vec<(f64, String)> {
    if backend == "gpu" {
        let l2 = environment["gpu"]["l2_bytes"].as_f64();
        return l2.map(|bytes| (bytes, "gpu L2".to_owned())).into_iter().collect();
    }
    // As the system prints them: `L2 Unified 2048K`.
    let described = environment["cpu"]["caches"].as_array();
    let cache = |text: &Value| {
        let mut words = text.as_str()?.split(' ');
        let (level, kind, size) = (words.next()?, words.next()?, words.next()?);
        let (digits, unit) = size.split_at(size.len().checked_sub(1)?);
        let unit = match unit {
            "K" => 1024.0,
            "M" => 1024.0 * 1024.0,
            _ => return None,
        };
        (kind != "Instruction")
            .then_some((digits.parse::<f64>().ok()? * unit, format!("cpu {level}")))
    };
    described.into_iter().flatten().filter_map(cache).collect()
}

/// Bytes of the largest cache of a backend; 0 if none is known.
fn largest_cache(environment: &Value, backend: &str) -> f64 {
    caches(environment, backend).iter().map(|cache| cache.0).fold(0.0, f64::max)
}

/// Takes the fractions away that say nothing: bytes a second of a case that fits into a cache, over the
/// bandwidth of memory.
pub(super) fn without_false_fractions(rows: &mut [Row], environment: &Value) {
    let measured = measured(environment);
    for (backend, known) in [("cpu", !measured.cpu.is_empty()), ("gpu", !measured.gpu.is_empty())] {
        if known {
            continue;
        }
        let largest = largest_cache(environment, backend);
        for row in rows.iter_mut().filter(|r| r.backend == backend && r.cache != "cold") {
            if bytes_moved(row).is_none_or(|bytes| bytes <= largest) {
                row.roofline_fraction = None;
            }
        }
    }
}

/// GB/s over the bytes of a product, under the bandwidth of copies and sums of that size.
pub(super) fn panel(
    environment: &Value,
    backend: &str,
    clouds: Vec<Series>,
    height: f64,
) -> Option<Panel> {
    XyPlot {
        title: format!("{}: GB/s", backend.to_uppercase()),
        x_label: "bytes that a product moves".into(),
        x_kind: Kind::Log,
        y_kind: Kind::Log,
        roof: roofs(environment, backend, &clouds),
        marked_x: caches(environment, backend),
        clouds,
        height,
        ..XyPlot::default()
    }
    .panel()
}

/// The bounds of a backend over the range of some points.
pub(super) fn roofs(environment: &Value, backend: &str, clouds: &[Series]) -> Vec<Series> {
    let xs = || clouds.iter().flat_map(|c| &c.points).map(|p| p.x);
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    let levels = levels(&measured(environment), backend);
    let (name, points): (_, Vec<(f64, f64)>) = if levels.is_empty() {
        let Some(copy) = bandwidth(environment, backend) else { return Vec::new() };
        // Memory bounds nothing that fits into a cache.
        let low = largest_cache(environment, backend).max(low / 1.3);
        if low >= high {
            return Vec::new();
        }
        let name = format!("{backend} copies in memory: {} GB/s", significant(copy));
        (name, [low, high * 1.3].map(|x| (x, copy)).to_vec())
    } else {
        let at = |level: &Level| Some((level.bytes as f64, roof(&levels, level.bytes as f64)?));
        (format!("{backend} bandwidth"), levels.iter().filter_map(at).collect())
    };
    let point = |(x, y)| Point { x, y, tip: name.clone() };
    let points = points.into_iter().map(point).collect();
    vec![Series { index: 6, name, points }]
}

/// The best case of each kernel on each matrix under the bandwidth of its working set.
pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("roofline", "Roofline");
    let mut panels = Vec::new();
    let mut legend: Vec<String> = Vec::new();
    for backend in ["cpu", "gpu"] {
        let rows = results.timed().filter(|r| r.backend == backend && r.op == "spmv");
        let best = best_by(rows, Metric::Gflops, |r| (r.kernel.as_str(), r.matrix.as_str()));
        let mut clouds: Vec<Series> = Vec::new();
        for ((kernel, _), (_, row)) in best {
            let (Some(x), Some(y)) = (bytes_moved(row), row.gbytes_per_s) else { continue };
            // By format: a colour for each kernel could not be told apart.
            let format = kernel.split('-').next().unwrap_or(kernel);
            let index = legend.iter().position(|l| l == format).unwrap_or_else(|| {
                legend.push(format.to_owned());
                legend.len() - 1
            });
            let point = Point { x, y, tip: tip(row) };
            match clouds.iter_mut().find(|c| c.index == index) {
                Some(cloud) => cloud.points.push(point),
                None => clouds.push(Series { index, name: format.to_owned(), points: vec![point] }),
            }
        }
        if !clouds.is_empty() {
            panels.extend(panel(&results.environment, backend, clouds, 380.0));
        }
    }
    if panels.is_empty() {
        section.missing("No SpMV was measured.", "cargo xtask bench-all");
        return section;
    }
    section.text(
        "Bytes are the least traffic that the format allows: each stored array once, x once, y \
         once. The line is the bandwidth of the same device in the same run: the greatest of copying, \
         reading (CPU) and y = a x + y (GPU), over arrays as large as what the product moves, or \
         larger. `of roof` in the tables is GB/s over this line for the threads of the case. Points far \
         below it wait for latency, for padding or for the longest row.",
    );
    let bandwidths = measured(&results.environment);
    if bandwidths.cpu.is_empty() && bandwidths.gpu.is_empty() {
        section.text(
            "This run did not measure the bandwidth of caches: the line is that of memory, which bounds no \
             product that fits into a cache. It begins at the largest cache, and the tables have no \
             fraction for smaller products.",
        );
    }
    section.figure(Figure {
        id: "roofline".into(),
        title: "SpMV against the bandwidth of its working set.".into(),
        caption:
            "Best case of each kernel on each matrix, coloured by format; dotted lines are the \
                  sizes of the caches."
                .into(),
        legend,
        panels,
        ..Figure::default()
    });
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(backend: &str, bytes: f64) -> Row {
        Row {
            backend: backend.into(),
            gbytes_per_s: Some(bytes / 1e9),
            median_s: Some(1.0),
            roofline_fraction: Some(2.7),
            ..Row::default()
        }
    }

    #[test]
    fn a_case_in_cache_has_no_fraction_of_memory() {
        let old = json!({
            "cpu": {"caches": ["L1 Data 48K", "L1 Instruction 64K", "L2 Unified 2M"]},
            "gpu": {"l2_bytes": 50e6}
        });
        assert_eq!(caches(&old, "cpu")[1], (2.0 * 1024.0 * 1024.0, "cpu L2".to_owned()));
        let rows = || {
            let cold = Row { cache: "cold".into(), ..row("cpu", 1e6) };
            vec![row("cpu", 1e6), row("cpu", 1e7), cold, row("gpu", 4e7), row("gpu", 1e8)]
        };
        let fractions = |environment: &Value| {
            let mut rows = rows();
            without_false_fractions(&mut rows, environment);
            rows.iter().map(|r| r.roofline_fraction.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(fractions(&old), [false, true, true, false, true]);
        let mut new = old.clone();
        new["bandwidth_gb_per_s"] =
            json!({"cpu": {"1": [[16384, 90.0, 80.0], [32768, 40.0, 50.0]]}, "gpu": []});
        assert_eq!(fractions(&new), [true, true, true, false, true]);

        let cloud = |bytes: f64| {
            let point = |x| Point { x, y: 1.0, tip: String::new() };
            vec![Series { index: 0, name: "gpu".into(), points: vec![point(1e3), point(bytes)] }]
        };
        let mut memory = old.clone();
        memory["gpu_copy_bandwidth_gb_per_s"] = json!(4000.0);
        let of_memory = roofs(&memory, "gpu", &cloud(1e9));
        assert_eq!(of_memory[0].points.iter().map(|p| p.x).collect::<Vec<_>>(), [50e6, 1.3e9]);
        assert!(roofs(&memory, "gpu", &cloud(4e7)).is_empty());
        let roofs = roofs(&new, "cpu", &[]);
        let points: Vec<_> = roofs[0].points.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(points, [(16384.0, 90.0), (32768.0, 50.0)]);
    }
}

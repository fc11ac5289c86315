//! What the results say in ten lines; every word of it follows from the rows.

use super::load::{Metric, Results, best_by, geometric_mean, matrices, median};
use super::model::{Cell, Section, Table, grouped, percent, significant};
use super::structure::{Winner, winners};
use crate::bench::timing::Scope;
use crate::results::{Row, Status};

/// Ten lines and the table that they come from.
pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("summary", "At a glance");
    if results.timed().next().is_none() {
        section.missing("Nothing was measured yet.", "cargo xtask bench-all");
        return section;
    }
    let cpu = winners(results, "cpu");
    let gpu = winners(results, "gpu");
    section.figure(super::overview::figure(results, &cpu, &gpu));
    let mut lines = vec![coverage(results)];
    lines.extend(advice("On the CPU", &cpu));
    lines.extend(advice("On the GPU", &gpu));
    lines.extend(cpu_or_gpu(results));
    lines.extend(roofline(results));
    lines.extend(auto(results));
    lines.extend(threads(results));
    lines.extend(other(results, "spmm", "SpMM"));
    lines.extend(other(results, "transpose", "Transposition"));
    lines.extend(other(results, "conversion", "Conversion"));
    section.list(lines);
    section.table(table(&cpu, &gpu));
    section
}

fn coverage(results: &Results) -> String {
    let names = matrices(results.rows.iter());
    let synthetic = names.iter().filter(|n| n.starts_with(crate::results::SYNTHETIC)).count();
    let count = |status| results.rows.iter().filter(|r| r.status == status).count() as u64;
    let wrong = match count(Status::Mismatch) {
        0 => "none disagreed with the reference".to_owned(),
        n => format!("{} disagreed with the reference (see Failures)", grouped(n)),
    };
    format!(
        "{} cases on {} matrices ({synthetic} of them generated): {} timed, {} not applicable, {} \
         failed, {wrong}.",
        grouped(results.rows.len() as u64),
        names.len(),
        grouped(count(Status::Ok)),
        grouped(count(Status::Skipped)),
        grouped(count(Status::Failed)),
    )
}

fn advice(place: &str, winners: &[Winner]) -> Option<String> {
    let kernels = super::load::distinct(winners.iter().map(|w| w.kernel.as_str()));
    let parts: Vec<String> = kernels
        .into_iter()
        .map(|kernel| {
            let of = winners.iter().filter(|w| w.kernel == kernel);
            let classes: Vec<&str> = of.map(|w| w.class.label()).collect();
            format!("`{kernel}` for {}", classes.join(", "))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("{place} take {}.", parts.join("; ")))
}

/// What the clock enclosed in the cases that speak for a backend: the narrowest scope that there is.
fn narrowest_scope(results: &Results, backend: &str) -> Option<Scope> {
    let rows = || results.timed().filter(|r| r.op == "spmv" && r.backend == backend);
    Scope::ALL.into_iter().find(|scope| rows().any(|r| scope.is(&r.scope)))
}

/// Best time of a backend on each matrix.
fn best_times<'a>(results: &'a Results, backend: &str) -> Vec<(&'a str, f64, &'a Row)> {
    let scope = narrowest_scope(results, backend);
    let rows = results.timed().filter(|r| r.op == "spmv" && r.backend == backend);
    let rows = rows.filter(|r| scope.is_none_or(|scope| scope.is(&r.scope)));
    best_by(rows, Metric::Gentries, |r| r.matrix.as_str())
        .into_iter()
        .filter_map(|(matrix, (_, row))| Some((matrix, row.median_s?, row)))
        .collect()
}

fn cpu_or_gpu(results: &Results) -> Option<String> {
    let cpu = best_times(results, "cpu");
    let gpu = best_times(results, "gpu");
    let mut ratios: Vec<(u64, f64)> = cpu
        .iter()
        .filter_map(|(matrix, seconds, row)| {
            let other = gpu.iter().find(|g| g.0 == *matrix)?;
            Some((row.entries, seconds / other.1))
        })
        .collect();
    if ratios.is_empty() {
        let why = match (cpu.is_empty(), gpu.is_empty()) {
            (false, false) => "No matrix was measured on both",
            (false, true) => "Only the CPU was measured",
            _ => "Only the GPU was measured",
        };
        return Some(format!("{why}, so nothing is said of CPU against GPU."));
    }
    ratios.sort_by_key(|r| r.0);
    let wins = ratios.iter().filter(|r| r.1 > 1.0).count();
    let mean = geometric_mean(ratios.iter().map(|r| r.1))?;
    let lost = ratios.iter().filter(|r| r.1 <= 1.0).map(|r| r.0).max();
    let crossing = match lost {
        None => "whatever the size".to_owned(),
        Some(_) if wins == 0 => "never".to_owned(),
        Some(entries) => match ratios.iter().find(|r| r.0 > entries) {
            Some(_) => format!("always above {} entries", grouped(entries)),
            None => "without a size above which it always does".to_owned(),
        },
    };
    let enclosed = match narrowest_scope(results, "gpu").unwrap_or_default() {
        Scope::Kernel => "data already in place (copies not counted)",
        Scope::Launch => "launch and synchronization counted, copies not",
        Scope::Call => "conversion, allocation and copies of the GPU counted",
    };
    Some(format!(
        "The GPU's kernel beats the CPU's best on {wins} of {} matrices, {crossing}; {}× on the \
         geometric mean, {enclosed}.",
        ratios.len(),
        significant(mean)
    ))
}

fn roofline(results: &Results) -> Option<String> {
    let mut parts = Vec::new();
    for backend in ["cpu", "gpu"] {
        let fractions: Vec<f64> = best_times(results, backend)
            .into_iter()
            .filter(|(_, _, row)| row.entries >= 1_000_000)
            .filter_map(|(_, _, row)| row.roofline_fraction)
            .collect();
        if let Some(middle) = median(fractions.iter().copied()) {
            let low = fractions.iter().copied().fold(f64::INFINITY, f64::min);
            let high = fractions.iter().copied().fold(0.0, f64::max);
            parts.push(format!(
                "{} {} ({} to {})",
                backend.to_uppercase(),
                percent(middle),
                percent(low),
                percent(high)
            ));
        }
    }
    (!parts.is_empty()).then(|| {
        format!(
            "Of the bandwidth of its working set the best SpMV reaches, on matrices above a million \
             entries: {}.",
            parts.join(", ")
        )
    })
}

/// How near `auto` comes to the fastest kernel.
fn auto(results: &Results) -> Option<String> {
    let mut parts = Vec::new();
    for backend in ["cpu", "gpu"] {
        let spmv = || results.timed().filter(|r| r.op == "spmv" && r.backend == backend);
        let fastest =
            best_by(spmv().filter(|r| r.kernel != "auto"), Metric::Gentries, |r| &r.matrix);
        let auto = best_by(spmv().filter(|r| r.kernel == "auto"), Metric::Gentries, |r| &r.matrix);
        let relative = auto.iter().filter_map(|(m, (v, _))| Some(v / fastest.get(m)?.0));
        if let Some(mean) = geometric_mean(relative) {
            parts.push(format!("{} of it on the {}", percent(mean), backend.to_uppercase()));
        }
    }
    (!parts.is_empty()).then(|| {
        format!(
            "`auto`, which picks without being told, against the fastest other kernel measured on each \
             matrix: {}.",
            parts.join(", ")
        )
    })
}

fn threads(results: &Results) -> Option<String> {
    let rows =
        results.timed().filter(|r| r.op == "spmv" && r.backend == "cpu" && r.entries >= 1_000_000);
    let most = rows.clone().filter_map(|r| r.threads).max().filter(|t| *t > 1)?;
    let best = best_by(rows, Metric::Gflops, |r| &r.matrix);
    let middle = median(best.values().filter_map(|(_, r)| r.threads).map(|t| t as f64))?;
    let speedup = geometric_mean(best.values().filter_map(|(_, r)| r.speedup_vs_serial))?;
    Some(format!(
        "Matrices above a million entries are fastest with {} of up to {most} threads (median), \
         {}× the serial product.",
        significant(middle).trim_end_matches('0').trim_end_matches('.'),
        significant(speedup)
    ))
}

/// The kernel of another operation that is the fastest on most matrices.
fn other(results: &Results, op: &str, name: &str) -> Option<String> {
    let mut parts = Vec::new();
    for backend in ["cpu", "gpu"] {
        let rows = results.timed().filter(|r| r.op == op && r.backend == backend);
        // Primitives and conversions of different kinds are not rivals.
        let rows = rows.filter(|r| r.experiment != "transpose-primitives");
        let setting =
            |r: &'_ Row| (r.matrix.clone(), r.k, rival(op, &r.kernel).to_owned(), r.scope.clone());
        let mut best = best_by(rows.clone(), Metric::Gentries, setting);
        // A kernel without a rival wins nothing.
        best.retain(|key, (_, fastest)| {
            rows.clone().any(|r| r.kernel != fastest.kernel && setting(r) == *key)
        });
        let mut wins: Vec<(&str, usize)> = Vec::new();
        for (_, row) in best.values() {
            match wins.iter_mut().find(|w| w.0 == row.kernel) {
                Some(w) => w.1 += 1,
                None => wins.push((row.kernel.as_str(), 1)),
            }
        }
        wins.sort_by_key(|w| std::cmp::Reverse(w.1));
        let Some((kernel, won)) = wins.first() else { continue };
        let speedup = geometric_mean(best.values().filter_map(|(_, r)| r.speedup_vs_serial))
            .map_or(String::new(), |s| format!("; the fastest are {}× serial", significant(s)));
        parts.push(format!(
            "`{kernel}` on the {} (fastest in {won} of {} settings{speedup})",
            backend.to_uppercase(),
            best.len()
        ));
    }
    (!parts.is_empty()).then(|| format!("{name}: {}.", parts.join("; ")))
}

fn rival<'a>(op: &str, kernel: &'a str) -> &'a str {
    // coo-to-csr-row-scan, coo-to-csr-single-pass and coo-to-csr are rivals, csr-to-hll is not.
    if op != "conversion" {
        return "";
    }
    kernel.match_indices('-').nth(2).map_or(kernel, |(at, _)| &kernel[..at])
}

fn table(cpu: &[Winner], gpu: &[Winner]) -> Table {
    let mut table = Table::new(
        "summary",
        "Kernel to take for SpMV, by structure",
        &[
            "structure",
            "matrices",
            "backend",
            "kernel",
            "GFLOPS",
            "of roof",
            "over serial",
            "of the fastest",
            "next",
            "next, of the fastest",
        ],
    );
    for (backend, winners) in [("CPU", cpu), ("GPU", gpu)] {
        for w in winners {
            let next = w.runner_up.as_ref();
            table.push(vec![
                Cell::text(w.class.label()),
                Cell::text(format!("{} of {}", w.matrices.0, w.matrices.1)),
                Cell::text(backend),
                Cell::code(&w.kernel),
                Cell::Number(w.gflops),
                Cell::option(w.roofline, Cell::Fraction),
                Cell::option(w.speedup, Cell::Ratio),
                Cell::Fraction(w.relative),
                Cell::option(next, |n| Cell::code(&n.0)),
                Cell::option(next, |n| Cell::Fraction(n.1)),
            ]);
        }
    }
    table.note(
        "Among the kernels that ran on half of a class or more and failed on none of it, the one nearest to the fastest \
         kernel of each matrix on the geometric mean. GFLOPS and speedups are geometric means, \
         roofline fractions medians.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_with_one_target_are_rivals() {
        assert_eq!(rival("conversion", "coo-to-csr-single-pass"), "coo-to-csr");
        assert_eq!(rival("conversion", "coo-to-csr"), "coo-to-csr");
        assert_eq!(rival("conversion", "csr-to-hll"), "csr-to-hll");
        assert_eq!(rival("transpose", "scan-trans"), "");
    }

    fn timed(backend: &str, scope: &str, seconds: f64) -> Row {
        Row {
            op: "spmv".into(),
            backend: backend.into(),
            kernel: "csr".into(),
            matrix: "a".into(),
            entries: 1000,
            median_s: Some(seconds),
            scope: scope.into(),
            ..Row::default()
        }
    }

    #[test]
    fn refusals_and_failures_are_counted_apart() {
        let with = |status| Row { status, ..timed("cpu", "", 1.0) };
        let statuses = [Status::Ok, Status::Skipped, Status::Skipped, Status::Failed];
        let rows = statuses.map(with).to_vec();
        let line = coverage(&Results { rows, ..Results::default() });
        assert!(line.contains("1 timed, 2 not applicable, 1 failed, none disagreed"), "{line}");
    }

    #[test]
    fn the_narrowest_clock_speaks_for_the_gpu() {
        let mut rows = vec![timed("cpu", "kernel", 1.0), timed("gpu", "call", 0.5)];
        let line = |rows: &[Row]| {
            cpu_or_gpu(&Results { rows: rows.to_vec(), ..Results::default() }).unwrap()
        };
        assert!(line(&rows).contains("2.00×") && line(&rows).contains("copies of the GPU counted"));
        rows.push(timed("gpu", "launch", 2.0));
        assert!(line(&rows).contains("0.500×"), "{}", line(&rows));
        assert!(line(&rows).contains("synchronization counted"));
    }

    #[test]
    fn an_empty_summary_says_so() {
        let section = section(&Results::default());
        assert!(matches!(section.blocks[0], super::super::model::Block::Missing { .. }));
    }
}

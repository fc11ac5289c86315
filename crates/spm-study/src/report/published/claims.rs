//! The reports' statements beside what our rows say, and why the hardware makes it so.

use super::super::environment::bandwidth;
use super::super::load::{Metric, Results, Select, geometric_mean, median};
use super::super::model::{Cell, Table, percent, significant};
use super::findings::{
    Finding, LARGE, Verdict, faster, favourites, flat, greatest, mostly, no_favourite,
    peak_threads, peaks_at_cores, refused, rows_of, same_side, share_faster, share_of_setting,
    spread, tally,
};
use super::{Claim, claims_of, scope_words};
use crate::results::Row;

/// What our runs say to a statement, and why.
pub(super) struct Judged {
    pub(super) claim: Claim,
    pub(super) ours: String,
    pub(super) verdict: &'static str,
    pub(super) reason: String,
    /// Whether anything of ours stands beside it.
    pub(super) measured: bool,
}

pub(super) const VERDICTS: [&str; 3] = ["confirmed", "contradicted", "not testable here"];

/// Every statement of one report, judged.
pub(super) fn judged(results: &Results, report: &str) -> Vec<Judged> {
    let judge = |claim: Claim| {
        let finding = finding(results, &claim);
        let measured = finding.is_some();
        let Some(finding) = finding else {
            let reason = unmeasured(results, &claim, report);
            let ours = "not measured".to_owned();
            return Judged { claim, ours, verdict: VERDICTS[2], reason, measured };
        };
        let why = claim.why(finding.verdict);
        let (verdict, reason) = match finding.verdict {
            Verdict::Confirms => (VERDICTS[0], why.to_owned()),
            Verdict::Contradicts => (VERDICTS[1], why.to_owned()),
            Verdict::Stands => {
                (VERDICTS[2], format!("A figure of other hardware, or a setting. {why}"))
            }
        };
        Judged { claim, ours: finding.ours, verdict, reason, measured }
    };
    claims_of(report).into_iter().map(judge).collect()
}

/// Why nothing of ours stands beside a statement.
fn unmeasured(results: &Results, claim: &Claim, report: &str) -> String {
    let on_gpu = matches!(claim.scope.as_str(), "kernel" | "launch" | "call");
    if claim.why_confirmed.is_empty() {
        "No experiment of ours measures it.".to_owned()
    } else if on_gpu && results.timed().all(|row| row.backend != "gpu") {
        "This run had no GPU.".to_owned()
    } else {
        format!("This run lacks the kernels or matrices: `cargo xtask bench-all --report {report}`")
    }
}

/// A statement's number with its unit.
fn printed_value(claim: &Claim) -> String {
    if claim.value.is_empty() {
        return "–".to_owned();
    }
    let unit = if claim.unit == "1" { "" } else { &claim.unit };
    format!("{} {unit}", claim.value).trim_end().to_owned()
}

/// A table of judged statements.
pub(super) fn statements(id: &str, title: &str, judged: &[Judged]) -> Table {
    let columns = ["where", "statement", "printed", "ours", "verdict", "reason"];
    let mut table = Table::new(id, title, &columns);
    for Judged { claim, ours, verdict, reason, .. } in judged {
        let scope = if claim.scope.is_empty() {
            String::new()
        } else {
            format!(" ({})", scope_words(&claim.scope))
        };
        table.push(vec![
            Cell::text(&claim.source),
            Cell::Prose(format!("{}{scope}", claim.claim)),
            Cell::text(printed_value(claim)),
            Cell::Prose(ours.clone()),
            Cell::text(*verdict),
            Cell::Prose(reason.clone()),
        ]);
    }
    table
}

/// Every statement of one report with our finding.
pub(super) fn table(results: &Results, report: &str) -> Table {
    let judged = judged(results, report);
    let id = format!("{}-claims", report.to_lowercase());
    let title = format!("What the text of {report} states, and what our runs say");
    statements(&id, &title, &judged)
        .fold("not measured here", |row| row[3] == Cell::Prose("not measured".to_owned()))
}

fn cpu(kernel: &str) -> Select<'_> {
    Select::new("spmv", "cpu", kernel)
}

fn gpu(kernel: &str) -> Select<'_> {
    Select::new("spmv", "gpu", kernel)
}

fn spmm(kernel: &str) -> Select<'_> {
    Select::new("spmm", "gpu", kernel)
}

fn transpose(kernel: &str) -> Select<'_> {
    Select::new("transpose", "gpu", kernel)
}

fn conversion(kernel: &str) -> Select<'_> {
    Select::new("conversion", "cpu", kernel)
}

/// R1's matrices without an ELLPACK form; R0 names two of them.
const REFUSED: [&str; 6] = ["dc1", "webbase-1M", "coPapersDBLP", "coPapersCiteseer", "dc2", "dc3"];
/// R1's CUDA implementations with their ids.
const CUDA: [(&str, &str); 5] = [
    ("r1-best-csr-0", "csr-thread-per-row"),
    ("r1-best-csr-1", "csr-warp-per-row"),
    ("r1-best-ell-0", "ell-thread-per-row"),
    ("r1-best-ell-1", "ell-thread-per-row-rowmajor"),
    ("r1-best-ell-2", "ell-warp-per-row"),
];

fn finding(results: &Results, claim: &Claim) -> Option<Finding> {
    match claim.id.split('-').next()? {
        "r0" => r0(results, claim),
        "r1" => r1(results, claim),
        "r2" => r2(results, claim),
        "r3" => r3(results, claim),
        _ => r4(results, claim),
    }
}

fn r0(results: &Results, claim: &Claim) -> Option<Finding> {
    let gpu_csr = "csr-warp-per-row-shared";
    let roof = || Some(bandwidth(&results.environment, "gpu")? * 2.0 / 12.0);
    match claim.id.as_str() {
        "r0-chunk" => flat(&rows_of(results, cpu("csr-rows").with("schedule=dynamic")), "chunk"),
        "r0-best-threads" => peaks_at_cores(results, cpu("csr-rows")),
        "r0-threads-by-size" => {
            let rows = rows_of(results, cpu("csr-rows"));
            let (large, small) = (peak_threads(&rows, true)?, peak_threads(&rows, false)?);
            let text = format!("large matrices {} threads, others {} (medians)", large, small);
            Some(Finding::new(large > small, text))
        }
        "r0-block-flat" => {
            let mut rows = rows_of(results, gpu(gpu_csr));
            rows.extend(rows_of(results, gpu("ell-thread-per-row")));
            flat(&rows, "block")
        }
        "r0-block-128" => mostly(&rows_of(results, gpu(gpu_csr)), "block", &["128"]),
        "r0-cpu-csr-over-ell" => faster(results, cpu("csr-rows"), cpu("ell-rows"), 0.5),
        "r0-gpu-ell-over-csr" => faster(results, gpu("ell-thread-per-row"), gpu(gpu_csr), 0.5),
        "r0-ell-refused" => refused(results, &REFUSED[..2]),
        "r0-gpu-over-cpu" => {
            let csr = share_faster(results, gpu(gpu_csr), cpu("csr-rows"));
            let ell = share_faster(results, gpu("ell-thread-per-row"), cpu("ell-rows"));
            let part = |name: &str, share: (f64, usize)| {
                format!("{name} {} of {}", percent(share.0), share.1)
            };
            let parts: Vec<String> = [("CSR", csr), ("ELLPACK", ell)]
                .into_iter()
                .filter_map(|(name, share)| Some(part(name, share?)))
                .collect();
            let every = [csr, ell].into_iter().flatten().all(|s| s.0 >= 1.0);
            (!parts.is_empty()).then(|| Finding::new(every, parts.join(", ")))
        }
        "r0-bandwidth" => {
            let copy = bandwidth(&results.environment, "gpu")?;
            Some(Finding::beside(format!("{} GB/s copied, measured", significant(copy))))
        }
        "r0-intensity" => {
            let rows = results.timed().filter(|r| {
                r.op == "spmv" && r.backend == "gpu" && r.kernel == gpu_csr && r.entries >= LARGE
            });
            let middle = median(rows.filter_map(|r| Some(r.gflops? / r.gbytes_per_s?)))?;
            let text = format!("{} with pointers, x and y counted (median)", significant(middle));
            Some(Finding::new((0.08..0.17).contains(&middle), text))
        }
        "r0-peak" => Some(Finding::beside(format!("{} GFLOPS", significant(roof()?)))),
        "r0-half-peak" => {
            let roof = roof()?;
            let values = [gpu_csr, "ell-thread-per-row"]
                .into_iter()
                .flat_map(|k| rows_of(results, gpu(k)))
                .filter(|r| r.entries >= LARGE)
                .filter_map(|r| r.gflops);
            let mean = geometric_mean(values)? / roof;
            let text = format!("{} on matrices above a million entries", percent(mean));
            Some(Finding::new((0.35..0.65).contains(&mean), text))
        }
        _ => None,
    }
}

fn r1(results: &Results, claim: &Claim) -> Option<Finding> {
    let spmv = |backend: &'static str| {
        results.timed().filter(move |r| r.op == "spmv" && r.backend == backend)
    };
    let beats = |parameter: &str, a: &str, b: &str, gain: f64| {
        share_of_setting(spmv("cpu"), parameter, a, b, gain)
    };
    match claim.id.as_str() {
        "r1-ell-limit" => refused(results, &REFUSED),
        "r1-simd" => {
            let (share, _, count) = beats("simd", "on", "off", 0.0)?;
            same_side(share, &claim.value, count)
        }
        "r1-simd-gain" => {
            let (_, gain, count) = beats("simd", "on", "off", 0.003)?;
            same_side(gain, &claim.value, count)
        }
        "r1-row-lengths-cpu" => {
            let (share, _, count) = beats("row-lengths", "on", "off", 0.0)?;
            same_side(share, &claim.value, count)
        }
        "r1-static" => {
            let (share, _, count) = beats("schedule", "static", "dynamic", 0.0)?;
            same_side(share, &claim.value, count)
        }
        "r1-static-gain" => {
            let (_, gain, count) = beats("schedule", "static", "dynamic", 0.0003)?;
            same_side(gain, &claim.value, count)
        }
        "r1-grid" => no_favourite(&spmv("cpu").collect::<Vec<&Row>>(), "grid"),
        "r1-row-lengths-gpu" => {
            let (share, _, count) = share_of_setting(spmv("gpu"), "row-lengths", "off", "on", 0.0)?;
            same_side(share, &claim.value, count)
        }
        "r1-block-192" => block_share(results, claim, "192", "256"),
        "r1-block-384" => block_share(results, claim, "384", "512"),
        "r1-block-256" => block_share(results, claim, "256", "1024"),
        "r1-max-gflops" => {
            let best = CUDA
                .iter()
                .filter_map(|(_, kernel)| greatest(results, gpu(kernel), Metric::Gflops))
                .reduce(f64::max)?;
            Some(Finding::beside(format!("{} GFLOPS", significant(best))))
        }
        id => {
            let kernel = CUDA.iter().find(|(claim, _)| *claim == id)?.1;
            let rows = spmv("gpu").filter(|r| CUDA.iter().any(|(_, k)| *k == r.kernel));
            let best = super::super::load::best_by(rows, Metric::Gentries, |r| &r.matrix);
            if best.is_empty() {
                return None;
            }
            let wins = best.values().filter(|(_, r)| r.kernel == kernel).count();
            let share = wins as f64 / best.len() as f64;
            let printed: f64 = claim.value.parse().ok()?;
            let text = format!("{} of {} matrices", percent(share), best.len());
            Some(Finding::new((share * 100.0 - printed).abs() <= 15.0, text))
        }
    }
}

/// Share of cases that are best with `thread` threads, for a thread per row, or `warp`, for a warp
/// per row.
fn block_share(results: &Results, claim: &Claim, thread: &str, warp: &str) -> Option<Finding> {
    let (mut hits, mut total) = (0, 0);
    for (_, kernel) in CUDA {
        let wanted = if kernel.contains("warp") { warp } else { thread };
        let rows: Vec<&Row> = rows_of(results, gpu(kernel))
            .into_iter()
            .filter(|r| {
                let studied: &[u64] =
                    if kernel.contains("warp") { &[256, 512, 1024] } else { &[192, 256, 384] };
                r.block.is_some_and(|b| studied.contains(&b))
            })
            .collect();
        let tried = rows.iter().any(|r| r.block.map(|b| b.to_string()).as_deref() == Some(wanted));
        if !tried {
            continue;
        }
        for (value, count) in favourites(rows.into_iter(), "block") {
            total += count;
            hits += if value == wanted { count } else { 0 };
        }
    }
    (total > 0).then_some(())?;
    let share = hits as f64 / total as f64;
    let printed: f64 = claim.value.parse().ok()?;
    let text = format!("{} of {total} cases", percent(share));
    Some(Finding::new((share * 100.0 - printed).abs() <= 15.0, text))
}

fn r2(results: &Results, claim: &Claim) -> Option<Finding> {
    let (csr, hll) = (cpu("csr-nnz-balanced"), cpu("hll-blocks"));
    let (gpu_csr, gpu_hll) = (gpu("csr-thread-per-row-texture"), gpu("hll-thread-per-row-texture"));
    let named = |select: Select<'_>, matrix: &str| -> Vec<Row> {
        rows_of(results, select)
            .into_iter()
            .filter(|r| super::super::load::plain_name(&r.matrix) == matrix)
            .cloned()
            .collect()
    };
    let efficiency = |rows: &[Row], threads: u64| {
        let of = rows.iter().filter(|r| r.threads == Some(threads));
        of.filter_map(|r| r.efficiency).reduce(f64::max)
    };
    match claim.id.as_str() {
        "r2-peak-threads" => peaks_at_cores(results, csr),
        "r2-hll-peak-threads" => peaks_at_cores(results, hll),
        "r2-small-peak" => {
            let rows = rows_of(results, csr);
            let (large, small) = (peak_threads(&rows, true)?, peak_threads(&rows, false)?);
            let text = format!("best at {small} threads, large ones at {large} (medians)");
            Some(Finding::new(small < large, text))
        }
        "r2-efficiency-falls" => {
            let rows = rows_of(results, csr);
            let most = rows.iter().filter_map(|r| r.threads).max().filter(|t| *t > 1)?;
            let at = |t| {
                geometric_mean(
                    rows.iter().filter(|r| r.threads == Some(t)).filter_map(|r| r.efficiency),
                )
            };
            let (one, many) = (at(1)?, at(most)?);
            let text = format!("{} at 1 thread, {} at {most}", significant(one), significant(many));
            Some(Finding::new(many < one, text))
        }
        "r2-superlinear" => {
            let rows = named(csr, "roadNet-PA");
            let two = efficiency(&rows, 2)?;
            Some(Finding::new(two > 1.0, format!("efficiency {} at 2 threads", significant(two))))
        }
        "r2-cage4" => {
            let rows = named(csr, "cage4");
            let most = rows.iter().filter_map(|r| r.threads).max().filter(|t| *t > 1)?;
            let many = efficiency(&rows, most)?;
            let text = format!("efficiency {} at {most} threads", significant(many));
            Some(Finding::new(many < 0.5, text))
        }
        "r2-cpu-csr-over-hll" => faster(results, csr, hll, 0.5),
        "r2-cpu-hack" => no_favourite(&rows_of(results, hll), "hack"),
        "r2-gpu-csr-block" => mostly(&rows_of(results, gpu_csr), "block", &["256", "512"]),
        "r2-gpu-hll-block" => mostly(&rows_of(results, gpu_hll), "block", &["256", "512"]),
        "r2-gpu-hll-over-csr" => faster(results, gpu_hll, gpu_csr, 0.8),
        "r2-roadnet-100" => {
            let rows = named(gpu_hll, "roadNet-PA");
            let best = rows.iter().filter_map(|r| r.speedup_vs_serial).reduce(f64::max)?;
            Some(Finding::new(best > 100.0, format!("{}×", significant(best))))
        }
        "r2-gpu-hack" => {
            let on_gpu = spread(rows_of(results, gpu_hll).into_iter(), "hack")?;
            let on_cpu = spread(rows_of(results, hll).into_iter(), "hack")?;
            let text = format!(
                "slowest over fastest {}× on the GPU, {}× on the CPU",
                significant(on_gpu),
                significant(on_cpu)
            );
            Some(Finding::new(on_gpu <= on_cpu, text))
        }
        _ => None,
    }
}

fn r3(results: &Results, claim: &Claim) -> Option<Finding> {
    let most = |kernel: &'static str| greatest(results, transpose(kernel), Metric::Speedup);
    let block = |kernel: &'static str| {
        mostly(&rows_of(results, transpose(kernel)), "block", &[claim.value.as_str()])
    };
    let beside = |value: f64| Finding::beside(format!("{}×", significant(value)));
    match claim.id.as_str() {
        "r3-scan-speedup" => most("scan-trans").map(beside),
        "r3-cusparse1-speedup" => most("cusparse-default").map(beside),
        "r3-cusparse2-speedup" => most("cusparse-alg1").map(beside),
        "r3-merge-slower" => {
            let best = most("merge-trans")?;
            Some(Finding::new(best < 1.0, format!("up to {}× serial", significant(best))))
        }
        "r3-scan-over-merge" => {
            faster(results, transpose("scan-trans"), transpose("merge-trans"), 0.5)
        }
        "r3-random" => {
            let rows = rows_of(results, transpose("scan-trans"));
            let mean = |random: bool| {
                let of = rows.iter().filter(|r| r.matrix.contains("random") == random);
                geometric_mean(of.filter_map(|r| r.speedup_vs_serial))
            };
            let (random, real) = (mean(true)?, mean(false)?);
            let text =
                format!("{}× on random, {}× on others", significant(random), significant(real));
            Some(Finding::new(random > real, text))
        }
        "r3-sort-block" => block("segmented-sort"),
        "r3-merge-block" => block("merge-big"),
        "r3-histogram-block" => block("index-to-pointers"),
        "r3-expand-block" => block("pointers-to-index"),
        _ => None,
    }
}

fn r4(results: &Results, claim: &Claim) -> Option<Finding> {
    let (v1, v2, v3) =
        ("csr-thread-per-element-v1", "csr-thread-per-element-v2", "csr-thread-per-element-v3");
    match claim.id.as_str() {
        "r4-tolerance" => {
            let rows = || results.timed().filter(|r| r.op == "spmm");
            let worst = rows().filter_map(|r| r.max_rel_err).reduce(f64::max)?;
            let bound = rows().filter_map(|r| r.bound_err).reduce(f64::max);
            let bound = bound
                .map_or(String::new(), |b| format!(", {} of the rounding bound", significant(b)));
            let text = format!("largest relative error {worst:.1e}{bound}");
            Some(Finding::new(worst <= f64::EPSILON, text))
        }
        "r4-coo-to-csr" => faster(
            results,
            conversion("coo-to-csr-single-pass"),
            conversion("coo-to-csr-row-scan"),
            0.8,
        ),
        "r4-coo-to-ell" => faster(
            results,
            conversion("coo-to-ell-single-pass"),
            conversion("coo-to-ell-unpadded"),
            0.8,
        ),
        "r4-block-512" => {
            let rows: Vec<&Row> = results
                .timed()
                .filter(|r| {
                    r.op == "spmm" && r.backend == "gpu" && !r.kernel.starts_with("cusparse")
                })
                .collect();
            mostly(&rows, "block", &["512"])
        }
        "r4-v2-over-v1" => faster(results, spmm(v2), spmm(v1), 0.8),
        "r4-v3-over-v2" => faster(results, spmm(v3), spmm(v2), 0.5),
        "r4-warp-slower" => faster(results, spmm(v3), spmm("csr-warp-per-element"), 0.8),
        "r4-subwarp" => {
            mostly(&rows_of(results, spmm("csr-subwarp-per-element")), "subwarp", &["2"])
        }
        "r4-adaptive" => {
            let row = faster(results, spmm("csr-warp-per-row"), spmm("csr-adaptive"), 0.5);
            row.or_else(|| {
                faster(results, spmm("csr-adaptive-subblocks"), spmm("csr-adaptive"), 0.5)
            })
        }
        "r4-ell-unpadded" => faster(
            results,
            Select::new("spmm", "cpu", "ell-rows-unpadded"),
            Select::new("spmm", "cpu", "ell-rows"),
            0.5,
        ),
        "r4-ell-memory" => {
            let bytes = |kernel: &str, matrix: &str| {
                let of = results.timed().filter(|r| {
                    r.op == "spmm" && r.backend == "cpu" && r.kernel == kernel && r.matrix == matrix
                });
                of.filter_map(|r| r.memory_bytes).map(|b| b as f64).reduce(f64::min)
            };
            let names = super::super::load::matrices(results.timed().filter(|r| r.op == "spmm"));
            let ratio = geometric_mean(
                names
                    .into_iter()
                    .filter_map(|m| Some(bytes("ell-rows-unpadded", m)? / bytes("ell-rows", m)?)),
            )?;
            let text = format!("unpadded takes {} of the padded memory", percent(ratio));
            Some(Finding::new(ratio < 1.0, text))
        }
        "r4-static" => {
            let rows = rows_of(results, Select::new("spmm", "cpu", "csr-rows"));
            let counts = favourites(rows.into_iter(), "schedule");
            (counts.len() > 1).then(|| Finding::beside(tally(&counts)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_has_statements_and_none_is_measured_of_nothing() {
        for (report, count) in [("R0", 13), ("R1", 17), ("R2", 13), ("R3", 11), ("R4", 12)] {
            let table = table(&Results::default(), report);
            assert_eq!(table.rows.len(), count, "{report}");
            assert!(table.rows.iter().all(|r| r[3].raw() == "not measured"), "{report}");
        }
    }

    #[test]
    fn verdicts_have_reasons() {
        // Settings without a measurement of ours need no reason.
        let unmeasured = ["r3-splitters"];
        for claim in ["R0", "R1", "R2", "R3", "R4"].iter().flat_map(|r| claims_of(r)) {
            for verdict in [Verdict::Confirms, Verdict::Contradicts] {
                let missing = claim.why(verdict).is_empty();
                assert_eq!(missing, unmeasured.contains(&&*claim.id), "{}", claim.id);
            }
        }
    }
}

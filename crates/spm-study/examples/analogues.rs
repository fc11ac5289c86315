//! Generates the stand-ins for the named matrices of the catalogue (all of them without names) and
//! holds their statistics against it:
//!
//! `cargo run --release -p spm-study --example analogues -- [NAME...]`
//!
//! The largest (127 million entries) takes about 1.1 GB of memory and 2 s on two cores.

use std::process::ExitCode;
use std::time::Instant;

use spm_formats::stats::MatrixStats;
use spm_study::analogue;
use spm_study::catalogue::{self, CatalogueEntry, FileSymmetry};

/// What differs from the catalogue; empty when the stand-in is as it should be.
fn differences(entry: &CatalogueEntry, stats: &MatrixStats) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |what: &str, wanted: Option<f64>, got: f64, tolerance: f64| {
        if let Some(wanted) = wanted
            && (got - wanted).abs() > tolerance * wanted.abs()
        {
            found.push(format!("{what} {got}, expected {wanted}"));
        }
    };
    let rows = &stats.row_lengths;
    let count = |count: usize| Some(count as f64);
    expect("rows", count(entry.rows), stats.rows as f64, 0.0);
    expect("cols", count(entry.cols), stats.cols as f64, 0.0);
    expect("entries", count(entry.entries), stats.entries as f64, 0.0);
    expect("explicit zeros", Some(0.0), stats.explicit_zeros as f64, 0.0);
    expect("shortest row", entry.row_length_min.and_then(count), rows.min.into(), 0.0);
    expect("longest row", entry.row_length_max.and_then(count), rows.max.into(), 0.0);
    expect("mean", entry.row_length_mean, rows.mean, 1e-5);
    expect("variance", entry.row_length_variance, rows.variance, 1e-4);
    let diagonal = entry.implied_diagonal().and_then(count);
    expect("diagonal entries", diagonal, stats.diagonal_entries as f64, 0.0);
    if entry.symmetry == FileSymmetry::Symmetric && !stats.numerically_symmetric {
        found.push("is not symmetric".to_owned());
    }
    found
}

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let known = |entry: &&CatalogueEntry| names.is_empty() || names.contains(&entry.name);
    println!(
        "{:26} {:>10} {:>10} {:>8} {:>9} {:>10} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "matrix",
        "rows",
        "entries",
        "longest",
        "variance",
        "distance",
        "ELL",
        "HLL",
        "SELL",
        "make s",
        "stats s"
    );
    let mut differing = 0;
    for entry in catalogue::all().iter().filter(known) {
        let start = Instant::now();
        let matrix = match analogue::generate::<f32>(entry) {
            Ok(matrix) => matrix,
            Err(error) => {
                println!("{:26} {error}", entry.name);
                differing += 1;
                continue;
            }
        };
        let made = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let stats = MatrixStats::of(matrix.view());
        let examined = start.elapsed().as_secs_f64();
        println!(
            "{:26} {:>10} {:>10} {:>8} {:>9.3} {:>10.0} {:>7.2} {:>7.2} {:>7.2} {made:>7.3} \
             {examined:>7.3}",
            entry.name,
            stats.rows,
            stats.entries,
            stats.row_lengths.max,
            stats.row_lengths.variance,
            stats.mean_distance,
            stats.padding.ell,
            stats.padding.hll,
            stats.padding.sell,
        );
        for difference in differences(entry, &stats) {
            println!("    {difference}");
            differing += 1;
        }
    }
    println!("{differing} differences from the catalogue");
    if differing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

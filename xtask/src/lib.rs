//! `cargo xtask`: the command line of the study (`spm_study`), and the compilation of the GPU kernels
//! to PTX. One file (or folder) per command.

pub mod bench;
pub mod build_ptx;
pub mod compare;
pub mod download;
pub mod generate;
pub mod info;
pub mod kernels;
mod measuring;
pub mod report;
mod scaling;
pub mod verify;

use clap::{Parser, Subcommand};

/// Sparse matrix kernels on CPU cores and NVIDIA GPUs: verify, measure, report.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile the GPU kernels to PTX, or check that the committed PTX is up to date.
    BuildPtx(build_ptx::Args),
    /// Run every experiment on every matrix and write the report.
    BenchAll(bench::AllArgs),
    /// Run one experiment and write the report.
    Bench(bench::OneArgs),
    /// Check the result of every kernel with the sequential reference product.
    Verify(verify::Args),
    /// Write a synthetic matrix to a file.
    Generate(generate::Args),
    /// Show the statistics of a matrix.
    Info(info::Args),
    /// Fetch matrices of the SuiteSparse Matrix Collection: the reports' 71, or any other.
    DownloadSuitesparse(download::Args),
    /// List every kernel with its parameters and the report it comes from.
    Kernels(kernels::Args),
    /// Draw the results of bench or bench-all again: one HTML page with plots, Markdown, CSV and SVG.
    Report(report::Args),
    /// Compare two results folders, case by case: ratios with confidence intervals, and the kernels that
    /// got slower. Fails if one did.
    Compare(compare::Args),
}

/// Runs the command that the process was called with.
///
/// # Errors
/// Whatever the command reports; `main` prints it and exits with a failure.
pub fn run() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::BuildPtx(args) => build_ptx::run(&args),
        Command::BenchAll(args) => bench::run_all(&args),
        Command::Bench(args) => bench::run_one(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Info(args) => info::run(&args),
        Command::DownloadSuitesparse(args) => download::run(&args),
        Command::Kernels(args) => kernels::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
    }
}

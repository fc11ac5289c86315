//! `cargo xtask`: everything around the kernels: matrices, PTX, verification, the experiment
//! matrix and its report. One file (or folder) per command.

pub mod build_ptx;
pub mod kernels;
pub mod report;
pub mod results;

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
    /// List every kernel with its parameters and the report it comes from.
    Kernels(kernels::Args),
    /// Results to one self-contained HTML page with plots, Markdown, CSV and SVG.
    Report(report::Args),
}

/// Runs the command that the process was called with.
///
/// # Errors
/// Whatever the command reports; `main` prints it and exits with a failure.
pub fn run() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::BuildPtx(args) => build_ptx::run(&args),
        Command::Kernels(args) => kernels::run(&args),
        Command::Report(args) => report::run(&args),
    }
}

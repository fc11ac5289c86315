//! `cargo xtask verify`: every kernel against the reference.

use spm_study::{suite, verify};

use crate::measuring::parse_threads;

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(help = suite::matrices_help())]
    matrices: Vec<String>,
    /// Only this operation.
    #[arg(long, value_parser = ["spmv", "spmm", "transpose", "conversion"])]
    op: Option<String>,
    /// Only these backends; the emulator runs the GPU's kernels on the CPU, slowly.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "cpu,gpu",
        value_parser = ["cpu", "gpu", "emulator"]
    )]
    backend: Vec<String>,
    /// Only the kernel with this id (`cargo xtask kernels` lists them).
    #[arg(long)]
    kernel: Option<String>,
    /// Numbers of threads that CPU kernels run on.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2,5",
        value_parser = parse_threads
    )]
    threads: Vec<usize>,
    /// Types of the values.
    #[arg(long, value_delimiter = ',', default_value = "f64,f32", value_parser = ["f64", "f32"])]
    precision: Vec<String>,
    /// Read damaged Matrix Market files as far as they make sense, instead of refusing them.
    #[arg(long)]
    lenient: bool,
}

impl From<&Args> for verify::Options {
    fn from(args: &Args) -> Self {
        Self {
            matrices: args.matrices.clone(),
            op: args.op.clone(),
            backend: args.backend.clone(),
            kernel: args.kernel.clone(),
            threads: args.threads.clone(),
            precision: args.precision.clone(),
            lenient: args.lenient,
        }
    }
}

/// Checks and prints; a mismatch is a failure of the command.
///
/// # Errors
/// Unknown names, unreadable files, mismatches.
pub fn run(args: &Args) -> anyhow::Result<()> {
    verify::run(&args.into())
}

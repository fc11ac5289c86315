//! `cargo xtask generate KIND ... OUT.mtx`: a synthetic matrix as a Matrix Market file.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use spm_formats::matrix_market;
use spm_study::output::say;
use spm_study::recipe;
use spm_testing::generate;

/// Arguments of `generate`.
#[derive(Debug, clap::Args)]
#[command(after_help = kinds_help())]
pub struct Args {
    /// A kind with parameters such as stencil27[n=100], or the name of a catalogue matrix, whose
    /// analogue is generated.
    kind: String,
    /// File to write (.mtx or .mtx.gz); must not exist unless --force.
    out: PathBuf,
    /// Replace an existing file.
    #[arg(long)]
    force: bool,
}

/// Generates and writes.
///
/// # Errors
/// Unknown kind, unwritable file.
pub fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(args.force || !args.out.exists(), "{} exists; --force replaces it", args.out.display());
    let recipe = recipe::named(&args.kind)?;
    let matrix = recipe.generate::<f64>().with_context(|| recipe.to_string())?;
    matrix_market::write_csr(&args.out, matrix.view(), &[&recipe.label()])?;
    let (rows, cols) = matrix.shape();
    say(format_args!("{}: {rows} x {cols}, {} entries", args.out.display(), matrix.nnz()))?;
    Ok(())
}

/// The kinds with their parameters and defaults.
fn kinds_help() -> String {
    let mut help = "Kinds, with their parameters and defaults. Every kind also takes seed=NUMBER, \
                    values= general, symmetric, single, few, many or ones, and drop=PERCENT of the \
                    entries left out; a square one also order= natural, rcm or random, and \
                    unknowns=NUMBER of each node:\n"
        .to_owned();
    for kind in generate::kinds() {
        let parameters: Vec<_> =
            kind.parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
        let label = format!("{}[{}]", kind.name, parameters.join(","));
        help.push_str(&format!("  {label}\n      {}\n", kind.summary));
        for parameter in kind.parameters {
            help.push_str(&format!("      {}: {}\n", parameter.name, parameter.meaning));
        }
    }
    help
}

//! `cargo xtask compare A B`: two results folders against each other.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use spm_study::browser;
use spm_study::output::say;
use spm_study::report::compare::compare;

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Results folder of the run before, or of one machine.
    a: PathBuf,
    /// Results folder of the run after, or of another machine.
    b: PathBuf,
    /// Folder to write compare.html to [default: B].
    #[arg(long)]
    out: Option<PathBuf>,
    /// How much slower a kernel must be to be a regression, in percent, if it is so beyond noise.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    threshold: f64,
    /// Open the page in a browser.
    #[arg(long)]
    open: bool,
}

/// Writes the page and names the regressions.
///
/// # Errors
/// A regression; folders without a case in common, damaged files, an output that cannot be written.
pub fn run(args: &Args) -> anyhow::Result<()> {
    ensure!((0.0..100.0).contains(&args.threshold), "--threshold is a percentage below 100");
    let out = args.out.as_ref().unwrap_or(&args.b);
    let comparison = compare(&args.a, &args.b, out, args.threshold / 100.0)?;
    say(format_args!("time of A over time of B: {}", comparison.summary))?;
    for regression in &comparison.regressions {
        say(format_args!("regression: {regression}"))?;
    }
    say(format_args!("{}", comparison.page.display()))?;
    if args.open {
        browser::open(&comparison.page);
    }
    if !comparison.regressions.is_empty() {
        bail!("{} regressions", comparison.regressions.len());
    }
    Ok(())
}

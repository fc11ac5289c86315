//! `cargo xtask report`: a results folder to one HTML page with plots, Markdown, CSV and SVG.

use std::path::PathBuf;

use spm_study::browser;
use spm_study::output::{print, say};
use spm_study::report::{wide, write_to};

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder with results.csv, environment.json and matrices/.
    #[arg(default_value = "results")]
    results: PathBuf,
    /// Folder to write report.html, report.md, tables/ and figures/ to [default: RESULTS].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Open the page in a browser.
    #[arg(long)]
    open: bool,
}

/// Writes the report and says where it is, and the distribution of a run of the wide suite.
///
/// # Errors
/// The folder is not there, a file in it is damaged, or the output cannot be written.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let page = write_to(&args.results, args.out.as_deref().unwrap_or(&args.results))?;
    say(format_args!("report: {}", page.display()))?;
    if args.open {
        browser::open(&page);
    }
    if let Some(summary) = wide::summary(&args.results)? {
        print(&summary)?;
    }
    Ok(())
}

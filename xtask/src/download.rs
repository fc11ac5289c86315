//! `cargo xtask download-suitesparse`: matrices of the SuiteSparse Matrix Collection.

use std::path::PathBuf;
use std::time::Duration;

use spm_study::catalogue::Report;
use spm_study::download;

const EXAMPLES: &str = "\
Examples:
  cargo xtask download-suitesparse --dry-run         list the 71 matrices
  cargo xtask download-suitesparse                   all of them
  cargo xtask download-suitesparse cant HB/1138_bus  these two
  cargo xtask download-suitesparse --report R3       those of one report
  cargo xtask download-suitesparse --max-entries 1M  the small ones only

Each matrix becomes DEST/GROUP/NAME.mtx. After an interruption the same command
goes on where it was; what is already there is not fetched again. DEST also
holds suitesparse.lock.json (origin and SHA-256 of each archive) and, once it
was needed, ssstats.csv (the collection's index, refreshed after 30 days).";

/// Options of `download-suitesparse`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Matrices: GROUP/NAME, or NAME where only one group has it. Without any, and without --report:
    /// the 71 matrices of the five reports.
    #[arg(value_name = "MATRIX")]
    names: Vec<String>,

    /// The matrices of this report: R0, R1, R2, R3 or R4. May be given several times.
    #[arg(long, value_name = "REPORT")]
    report: Vec<Report>,

    /// Leave out a matrix whose archive (compressed) is larger: 500M, 2G, 64MiB, or plain bytes.
    #[arg(long, value_name = "BYTES", value_parser = download::parse_size)]
    max_bytes: Option<u64>,

    /// Leave out a matrix with more entries (both triangles counted): 1M, 250k, or a plain number.
    #[arg(long, value_name = "ENTRIES", value_parser = download::parse_size)]
    max_entries: Option<u64>,

    /// List what would be fetched, with what is known of the sizes, and fetch no matrix.
    #[arg(long)]
    dry_run: bool,

    /// Folder that receives the matrices [default: data/suitesparse of the workspace].
    #[arg(long, value_name = "DIR")]
    dest: Option<PathBuf>,

    /// Server to ask before the collection's own, with MM/GROUP/NAME.tar.gz below this address. May
    /// be given several times.
    #[arg(long, value_name = "URL", value_parser = parse_base)]
    mirror: Vec<String>,

    /// Ask the mirrors only, never the collection's own servers.
    #[arg(long, requires = "mirror")]
    only_mirrors: bool,

    /// Keep what comes with a matrix (right-hand sides, solutions, coordinates) in DEST/GROUP/NAME/.
    #[arg(long)]
    keep_extras: bool,

    /// Keep the archives as DEST/GROUP/NAME.tar.gz.
    #[arg(long)]
    keep_archives: bool,

    /// How often a request that failed for a passing reason is tried again.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    retries: u32,

    /// Wait before the first retry in seconds; it doubles with each further one.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
    retry_wait: Duration,
}

fn parse_base(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err("expected an address that starts with http:// or https://".into()),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is not a number"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

impl From<&Args> for download::Options {
    fn from(args: &Args) -> Self {
        Self {
            names: args.names.clone(),
            report: args.report.clone(),
            max_bytes: args.max_bytes,
            max_entries: args.max_entries,
            dry_run: args.dry_run,
            dest: args.dest.clone(),
            mirror: args.mirror.clone(),
            only_mirrors: args.only_mirrors,
            keep_extras: args.keep_extras,
            keep_archives: args.keep_archives,
            retries: args.retries,
            retry_wait: args.retry_wait,
        }
    }
}

/// Downloads and prints what was done.
///
/// # Errors
/// Unknown names, a folder that cannot be written, matrices that no server gave.
pub fn run(args: &Args) -> anyhow::Result<()> {
    download::run(&args.into())
}

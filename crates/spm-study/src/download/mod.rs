//! `cargo xtask download-suitesparse`: matrices of the SuiteSparse Matrix Collection.

mod archive;
mod fetch;
mod index;
mod install;
mod lock;
mod partial;
mod plan;
mod retry;
mod select;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::catalogue::Report;
use anyhow::{Context, anyhow, bail};
use indicatif::HumanBytes;

use crate::files::hold_folder;
use crate::output::{print, say};
use crate::suite;
use fetch::{FetchError, Fetcher};
use install::{InstallError, Keep, Place};
use lock::{LockFile, Verified};
use retry::Backoff;
use select::Target;

/// The collection, and the host that it fell back to in the past.
const SERVERS: [&str; 2] =
    ["https://sparse.tamu.edu", "https://suitesparse-collection-website.herokuapp.com"];

/// A server that asks for more patience is given up.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// What whoever uses the matrices must know; `data/README.md` has the full citations.
const CITATION: &str = "\
The SuiteSparse Matrix Collection is licensed under CC-BY 4.0. Work that uses its matrices cites
Davis and Hu 2011 (doi 10.1145/2049662.2049663) and Kolodziej et al. 2019 (doi 10.21105/joss.01244).";

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
    pub names: Vec<String>,

    /// The matrices of this report: R0, R1, R2, R3 or R4. May be given several times.
    #[arg(long, value_name = "REPORT")]
    pub report: Vec<Report>,

    /// Leave out a matrix whose archive (compressed) is larger: 500M, 2G, 64MiB, or plain bytes.
    #[arg(long, value_name = "BYTES", value_parser = plan::parse_size)]
    pub max_bytes: Option<u64>,

    /// Leave out a matrix with more entries (both triangles counted): 1M, 250k, or a plain number.
    #[arg(long, value_name = "ENTRIES", value_parser = plan::parse_size)]
    pub max_entries: Option<u64>,

    /// List what would be fetched, with what is known of the sizes, and fetch no matrix.
    #[arg(long)]
    pub dry_run: bool,

    /// Folder that receives the matrices [default: data/suitesparse of the workspace].
    #[arg(long, value_name = "DIR")]
    pub dest: Option<PathBuf>,

    /// Server to ask before the collection's own, with MM/GROUP/NAME.tar.gz below this address. May
    /// be given several times.
    #[arg(long, value_name = "URL", value_parser = parse_base)]
    pub mirror: Vec<String>,

    /// Ask the mirrors only, never the collection's own servers.
    #[arg(long, requires = "mirror")]
    pub only_mirrors: bool,

    /// Keep what comes with a matrix (right-hand sides, solutions, coordinates) in DEST/GROUP/NAME/.
    #[arg(long)]
    pub keep_extras: bool,

    /// Keep the archives as DEST/GROUP/NAME.tar.gz.
    #[arg(long)]
    pub keep_archives: bool,

    /// How often a request that failed for a passing reason is tried again.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    pub retries: u32,

    /// Wait before the first retry in seconds; it doubles with each further one.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
    pub retry_wait: Duration,
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

/// How a run ended for all its matrices.
#[derive(Debug, Default)]
struct Tally {
    fetched: usize,
    fetched_bytes: u64,
    there: usize,
    left_out: usize,
    failed: Vec<String>,
}

/// Downloads what `args` asks for.
///
/// # Errors
/// When a name is unknown or ambiguous, and when a matrix could not be fetched and verified; the
/// other matrices are fetched all the same, unless the disk is full or no server can be reached.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let dest = args.dest.clone().unwrap_or_else(suite::download_folder);
    let mut bases = args.mirror.clone();
    if !args.only_mirrors {
        bases.extend(SERVERS.map(str::to_owned));
    }
    let backoff =
        Backoff { retries: args.retries, first_wait: args.retry_wait, max_wait: MAX_WAIT };
    let mut fetcher = Fetcher::new(bases, backoff, Box::new(std::thread::sleep));
    let index = || {
        fs::create_dir_all(&dest)
            .with_context(|| format!("cannot make the folder {}", dest.display()))?;
        let _guard = hold_folder(&dest, "download")?;
        index::load(&dest, &mut fetcher)
    };
    let mut targets = select::select(&args.names, &args.report, index)?;
    let mut tally = Tally::default();
    if let Some(limit) = args.max_entries {
        let before = targets.len();
        targets.retain(|target| target.record.entries <= limit);
        tally.left_out = before - targets.len();
    }
    let keep = Keep { archive: args.keep_archives, extras: args.keep_extras };
    if args.dry_run {
        let lock = LockFile::open(&dest)?;
        let mut text = plan::table(&targets, &dest, &lock, keep);
        if tally.left_out > 0 {
            text += &format!("{} left out by --max-entries.\n", matrices(tally.left_out));
        }
        if args.max_bytes.is_some() {
            text += "--max-bytes is applied when a server is asked for the archive.\n";
        }
        return Ok(print(&text)?);
    }

    fs::create_dir_all(&dest)
        .with_context(|| format!("cannot make the folder {}", dest.display()))?;
    let _guard = hold_folder(&dest, "download")?;
    let mut lock = LockFile::open(&dest)?;
    let count = targets.len();
    for (i, target) in targets.iter().enumerate() {
        let id = target.id();
        let place = Place::new(&dest, target);
        if place.is_complete(lock.get(&id), keep) {
            place.clean()?;
            tally.there += 1;
            continue;
        }
        let label = format!("[{}/{count}] {id}", i + 1);
        match install::install(&dest, target, keep, args.max_bytes, &mut fetcher, &mut lock) {
            Ok(installed) => {
                tally.fetched += 1;
                tally.fetched_bytes += installed.tar_gz_bytes;
                let size = HumanBytes(installed.tar_gz_bytes);
                say(format_args!("{label}: {size}, {}", verification(target, installed.verified)))?;
            }
            Err(InstallError::Fetch(FetchError::TooLarge { bytes, .. }))
                if args.max_bytes.is_some() =>
            {
                tally.left_out += 1;
                say(format_args!("{label}: left out, its archive takes {}", HumanBytes(bytes)))?;
            }
            Err(InstallError::Fetch(
                error @ (FetchError::Local { .. } | FetchError::Unreachable(_)),
            )) => {
                for failure in &tally.failed {
                    eprintln!("error: {failure}");
                }
                return Err(anyhow!("{id}: {error}; the same command goes on from here"));
            }
            Err(error) => tally.failed.push(format!("{id}: {error}")),
        }
    }
    conclude(tally, &dest)
}

fn conclude(mut tally: Tally, dest: &Path) -> anyhow::Result<()> {
    if tally.fetched == 0 && tally.there > 0 && tally.failed.is_empty() {
        say(format_args!(
            "Nothing to download: {} already in {}.",
            matrices(tally.there),
            dest.display()
        ))?;
    } else if tally.fetched > 0 {
        let size = HumanBytes(tally.fetched_bytes);
        say(format_args!(
            "{} ({size}) downloaded to {}.",
            matrices(tally.fetched),
            dest.display()
        ))?;
        if tally.there > 0 {
            say(format_args!("{} were there already.", matrices(tally.there)))?;
        }
    }
    if tally.left_out > 0 {
        say(format_args!("{} left out by the limits given.", matrices(tally.left_out)))?;
    }
    if tally.fetched + tally.there > 0 {
        say(format_args!("{CITATION}"))?;
    }
    let Some(last) = tally.failed.pop() else {
        return Ok(());
    };
    if tally.failed.is_empty() {
        bail!(last);
    }
    tally.failed.push(last);
    for failure in &tally.failed {
        eprintln!("error: {failure}");
    }
    bail!("{} failed", matrices(tally.failed.len()))
}

fn matrices(count: usize) -> String {
    if count == 1 { "1 matrix".into() } else { format!("{count} matrices") }
}

fn verification(target: &Target, verified: Verified) -> &'static str {
    match (verified, target.sha256) {
        (Verified::Catalogue, _) => "SHA-256 as in the catalogue",
        (Verified::EarlierDownload, _) => "SHA-256 as in the earlier download",
        (Verified::Dimensions, Some(_)) => "dimensions and entries as published, other SHA-256",
        (Verified::Dimensions, None) => "dimensions and entries as published (no known SHA-256)",
    }
}

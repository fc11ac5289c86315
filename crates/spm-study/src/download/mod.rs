//! Downloads: matrices of the SuiteSparse Matrix Collection.

mod archive;
mod error;
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
use error::FetchError;
use fetch::Fetcher;
use install::{InstallError, Keep, Place};
use lock::{LockFile, Verified};
pub use plan::parse_size;
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

/// What is downloaded, from where and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Matrices: GROUP/NAME, or NAME where only one group has it. Without any, and without --report:
    /// the 71 matrices of the five reports.
    pub names: Vec<String>,
    /// The matrices of this report: R0, R1, R2, R3 or R4. May be given several times.
    pub report: Vec<Report>,
    /// Leave out a matrix whose archive (compressed) is larger: 500M, 2G, 64MiB, or plain bytes.
    pub max_bytes: Option<u64>,
    /// Leave out a matrix with more entries (both triangles counted): 1M, 250k, or a plain number.
    pub max_entries: Option<u64>,
    /// List what would be fetched, with what is known of the sizes, and fetch no matrix.
    pub dry_run: bool,
    /// Folder that receives the matrices [default: data/suitesparse of the workspace].
    pub dest: Option<PathBuf>,
    /// Server to ask before the collection's own, with MM/GROUP/NAME.tar.gz below this address. May
    /// be given several times.
    pub mirror: Vec<String>,
    /// Ask the mirrors only, never the collection's own servers.
    pub only_mirrors: bool,
    /// Keep what comes with a matrix (right-hand sides, solutions, coordinates) in DEST/GROUP/NAME/.
    pub keep_extras: bool,
    /// Keep the archives as DEST/GROUP/NAME.tar.gz.
    pub keep_archives: bool,
    /// How often a request that failed for a passing reason is tried again.
    pub retries: u32,
    /// Wait before the first retry in seconds; it doubles with each further one.
    pub retry_wait: Duration,
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

/// Downloads what the options ask for.
///
/// # Errors
/// When a name is unknown or ambiguous, and when a matrix could not be fetched and verified; the
/// other matrices are fetched all the same, unless the disk is full or no server can be reached.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let dest = options.dest.clone().unwrap_or_else(suite::download_folder);
    let mut bases = options.mirror.clone();
    if !options.only_mirrors {
        bases.extend(SERVERS.map(str::to_owned));
    }
    let backoff =
        Backoff { retries: options.retries, first_wait: options.retry_wait, max_wait: MAX_WAIT };
    let mut fetcher = Fetcher::new(bases, backoff, Box::new(std::thread::sleep));
    let index = || {
        fs::create_dir_all(&dest)
            .with_context(|| format!("cannot make the folder {}", dest.display()))?;
        let _guard = hold_folder(&dest, "download")?;
        index::load(&dest, &mut fetcher)
    };
    let mut targets = select::select(&options.names, &options.report, index)?;
    let mut tally = Tally::default();
    if let Some(limit) = options.max_entries {
        let before = targets.len();
        targets.retain(|target| target.record.entries <= limit);
        tally.left_out = before - targets.len();
    }
    let keep = Keep { archive: options.keep_archives, extras: options.keep_extras };
    if options.dry_run {
        let lock = LockFile::open(&dest)?;
        let mut text = plan::table(&targets, &dest, &lock, keep);
        if tally.left_out > 0 {
            text += &format!("{} left out by --max-entries.\n", matrices(tally.left_out));
        }
        if options.max_bytes.is_some() {
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
        match install::install(&dest, target, keep, options.max_bytes, &mut fetcher, &mut lock) {
            Ok(installed) => {
                tally.fetched += 1;
                tally.fetched_bytes += installed.tar_gz_bytes;
                let size = HumanBytes(installed.tar_gz_bytes);
                say(format_args!("{label}: {size}, {}", verification(target, installed.verified)))?;
            }
            Err(InstallError::Fetch(FetchError::TooLarge { bytes, .. }))
                if options.max_bytes.is_some() =>
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

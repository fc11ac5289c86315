//! The file that keeps the rates of a machine.

use std::ffi::OsString;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, process, thread};

use super::Rates;
use crate::Threads;

/// The environment variable with the path of the rates' file. If it is set and empty, no file is read or
/// written.
pub const CACHE_VARIABLE: &str = "SPM_RATES";

/// The first line of a file. The number changes with the meaning of the text, and with the speed of the kernels
/// that are timed for it.
const VERSION: &str = "spm rates 16";

/// The line of a file before the number of measurements that its rates are the fastest of.
const MEASUREMENTS: &str = "measurements ";

/// Measurements from which on no other is made: one may have had half of the machine, which nothing shows.
const ENOUGH: u32 = 3;

/// The time from one to the next: another program of the first may have ended.
const APART: Duration = Duration::from_secs(60);

/// Where rates are kept between processes.
///
/// A file is valid for one processor model, one number of cores and one version of its format. One that
/// is missing, damaged, of another machine or cannot be written is no error: the rates are measured
/// again, once per process. Nothing is written if other programs seem to have held cores meanwhile. Two later
/// processes measure once more each, a minute or more after the one before, and the fastest of the three is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RatesFile {
    path: Option<PathBuf>,
}

impl Default for RatesFile {
    /// The path in the environment variable [`CACHE_VARIABLE`]; without it `spm/rates` in the user's cache
    /// folder (`XDG_CACHE_HOME`, else `.cache` in `HOME`).
    fn default() -> Self {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let path = match env::var_os(CACHE_VARIABLE) {
            Some(path) => (!path.is_empty()).then(|| PathBuf::from(path)),
            None => variable("XDG_CACHE_HOME")
                .map(PathBuf::from)
                .or_else(|| Some(Path::new(&variable("HOME")?).join(".cache")))
                .map(|folder| folder.join("spm").join("rates")),
        };
        Self { path }
    }
}

impl RatesFile {
    /// The file at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()) }
    }

    /// No file: the rates last as long as the process.
    pub fn none() -> Self {
        Self { path: None }
    }

    /// The path, if there is a file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// What the file has of this machine.
    fn read(&self) -> Option<Kept> {
        let path = self.path()?;
        let text = fs::read_to_string(path).ok()?;
        let text = text.strip_prefix(&header())?.strip_prefix(MEASUREMENTS)?.strip_suffix(END)?;
        let (measurements, rates) = text.split_once('\n')?;
        let (measurements, rates) = (measurements.parse().ok()?, rates.parse().ok()?);
        // A clock that was set back says no age.
        let age =
            fs::metadata(path).and_then(|of| of.modified()).ok()?.elapsed().unwrap_or_default();
        Some(Kept { rates, measurements, age })
    }

    /// The fastest of what is kept and of another measurement, which is made where more are due. Without a file that
    /// can be written the next process measures again.
    fn improved(&self, kept: Option<Kept>, measure: impl FnOnce() -> Rates) -> Rates {
        let kept = match kept {
            Some(kept) if kept.measurements >= ENOUGH || kept.age < APART => return kept.rates,
            kept => kept,
        };
        let measured = measure();
        let (before, count) = kept.map_or((None, 0), |kept| (Some(kept.rates), kept.measurements));
        if measured.disturbed() {
            return before.unwrap_or(measured);
        }
        let best = match before {
            Some(before) => before.or_faster(measured),
            None => measured,
        };
        let _ = self.write(&best, count + 1);
        best
    }

    /// Writes a file beside it and renames that, so that no reader sees a part of one.
    fn write(&self, rates: &Rates, measurements: u32) -> io::Result<()> {
        let Some(path) = self.path() else { return Ok(()) };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut name = path.file_name().map_or_else(OsString::new, ToOwned::to_owned);
        name.push(format!(".{}", process::id()));
        let beside = path.with_file_name(name);
        let written = fs::File::create(&beside)
            .and_then(|mut file| {
                write!(file, "{}{MEASUREMENTS}{measurements}\n{rates}{END}", header())
            })
            .and_then(|()| fs::rename(&beside, path));
        if written.is_err() {
            // Nothing is lost if it stays.
            let _ = fs::remove_file(&beside);
        }
        written
    }
}

/// What a file has.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    rates: Rates,
    /// How many they are the fastest of.
    measurements: u32,
    /// Since the last one.
    age: Duration,
}

/// The last line of a file, without which it was cut.
const END: &str = "end\n";

/// The first lines of a file of this machine.
fn header() -> String {
    format!("{VERSION}\ncpu {}\ncores {}\n", processor(), cores())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// The processor model, as far as the system tells it without privileges.
fn processor() -> String {
    let of_linux = || {
        let text = fs::read_to_string("/proc/cpuinfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let of_windows = || env::var("PROCESSOR_IDENTIFIER").ok();
    let unknown = || format!("{} {}", env::consts::ARCH, env::consts::OS);
    of_linux().or_else(of_windows).unwrap_or_else(unknown).replace(['\n', '\r'], " ")
}

/// What this process has read or measured.
static KNOWN: Mutex<Vec<(RatesFile, Rates)>> = Mutex::new(Vec::new());

impl Rates {
    /// The rates of this machine: those of `file`, or measured now and kept in `file`, once per process.
    pub fn of_this_machine(file: &RatesFile) -> Self {
        Self::known_or(file, |kept| {
            Some(file.improved(kept, || Self::measure(&Threads::all_cores())))
        })
        .expect("kept or measured")
    }

    /// The rates for the choice of a kernel that is then timed. The rates of a program without optimisations
    /// are not those of the machine: it takes typical ones instead of measuring.
    pub(crate) fn of_races() -> Self {
        let file = RatesFile::default();
        if cfg!(debug_assertions) {
            Self::known(&file).unwrap_or_else(Self::typical)
        } else {
            Self::of_this_machine(&file)
        }
    }

    /// The rates of this machine if `file` has them, or if this process has measured them.
    pub fn known(file: &RatesFile) -> Option<Self> {
        Self::known_or(file, |kept| kept.map(|kept| kept.rates))
    }

    fn known_or(
        file: &RatesFile,
        decide: impl FnOnce(Option<Kept>) -> Option<Self>,
    ) -> Option<Self> {
        // A list of rates is whole after a panic.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rates)) = known.iter().find(|(of, _)| of == file) {
            return Some(rates.clone());
        }
        let rates = decide(file.read())?;
        known.push((file.clone(), rates.clone()));
        Some(rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = env::temp_dir().join(format!("spm-rates-{name}-{}", process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_stays() {
        let folder = Folder::new("written");
        let file = RatesFile::at(folder.0.join("new").join("rates"));
        assert_eq!(file.read(), None);
        assert_eq!(Rates::known(&file), None);
        file.write(&Rates::typical(), 1).unwrap();
        let kept = file.read().unwrap();
        assert_eq!((kept.rates, kept.measurements), (Rates::typical(), 1));
        assert_eq!(Rates::known(&file), Some(Rates::typical()));
        assert_eq!(Rates::of_this_machine(&file), Rates::typical());
        assert_eq!(fs::read_dir(folder.0.join("new")).unwrap().count(), 1);
    }

    /// Three measurements a minute apart, the fastest of which stays; one that was disturbed does not count.
    #[test]
    fn the_fastest_of_three_measurements_is_kept() {
        let folder = Folder::new("fastest");
        let file = RatesFile::at(folder.0.join("rates"));
        let rates = |read: f64| {
            let mut rates = Rates::typical();
            rates.one.read = rates.one.read.map(|of| read * of);
            rates.all.read = rates.all.read.map(|of| read * of);
            rates
        };
        let (slow, fast, mut slower) = (rates(1.0), rates(2.0), rates(0.5));
        let mut disturbed = rates(4.0);
        disturbed.all.read[0] /= 10.0;
        let never = || panic!("measured again");
        let later = |kept: Option<Kept>| kept.map(|kept| Kept { age: APART, ..kept });
        assert_eq!(file.improved(None, || disturbed.clone()), disturbed);
        assert_eq!(file.read(), None);
        assert_eq!(file.improved(None, || slow.clone()), slow);
        // Just written.
        assert_eq!(file.improved(file.read(), never), slow);
        assert_eq!(file.improved(later(file.read()), || disturbed.clone()), slow);
        assert_eq!(file.improved(later(file.read()), || fast.clone()), fast);
        // New memory is slow or fast by itself: its rate is the best of all measurements.
        slower.fresh *= 2.0;
        let fast = Rates { fresh: slower.fresh, ..fast };
        assert_eq!(file.improved(later(file.read()), || slower.clone()), fast);
        let kept = file.read().unwrap();
        assert_eq!((&kept.rates, kept.measurements), (&fast, ENOUGH));
        assert_eq!(file.improved(later(Some(kept)), never), fast);
    }

    #[test]
    fn files_that_are_damaged_or_of_another_machine_are_not_taken() {
        let folder = Folder::new("damaged");
        let file = RatesFile::at(folder.0.join("rates"));
        let path = file.path().unwrap();
        file.write(&Rates::typical(), 1).unwrap();
        let text = fs::read_to_string(path).unwrap();
        let cores = format!("cores {}", cores());
        for other in [
            text.replace(VERSION, "spm rates 0"),
            text.replace("cpu ", "cpu of another "),
            text.replace(&cores, "cores 100000"),
            text[..text.len() - 1].to_owned(),
            String::new(),
        ] {
            assert_ne!(other, text);
            fs::write(path, other).unwrap();
            assert_eq!(file.read(), None);
        }
        fs::write(path, [0xff, 0xfe]).unwrap();
        assert_eq!(file.read(), None);
        assert_eq!(RatesFile::none().read(), None);
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing_behind() {
        let folder = Folder::new("unwritable");
        // A folder stands where the file would.
        let file = RatesFile::at(folder.0.join("rates"));
        fs::create_dir_all(folder.0.join("rates").join("full")).unwrap();
        file.write(&Rates::typical(), 1).unwrap_err();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        // A file stands where the folder would.
        fs::write(folder.0.join("file"), "").unwrap();
        RatesFile::at(folder.0.join("file").join("rates")).write(&Rates::typical(), 1).unwrap_err();
        RatesFile::none().write(&Rates::typical(), 1).unwrap();
    }
}

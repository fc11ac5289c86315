//! How a run measures: what the command line says, else what the report did, else the defaults.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use spm_study::bench::Scope;
use spm_study::bench::reports::Setup;
use spm_study::bench::settings::{Precision, Settings};
use spm_study::bench::timing::Sampling;
use spm_study::input::Input;

/// Options of measuring, as `bench` and `bench-all` take them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Measuring {
    /// Timed iterations of a case, at the least [default: 10, or the report's own number].
    #[arg(long, value_name = "COUNT")]
    iterations: Option<usize>,
    /// Iterations before the first timed one.
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    warm_up: usize,
    /// Milliseconds that a case is timed for, at the least [default: 10; 0 with --report].
    #[arg(long, value_name = "MS")]
    min_time_ms: Option<u64>,
    /// Milliseconds after which no further iteration begins [default: 2000; no limit with --report].
    #[arg(long, value_name = "MS")]
    max_time_ms: Option<u64>,
    /// What the clock encloses on a GPU: the kernel alone, launch and synchronization, or the whole
    /// call with conversion, allocation and copies both ways [default: kernel, or the report's own].
    #[arg(long, value_parser = scope())]
    scope: Option<Scope>,
    /// Type of the values [default: f64, or the report's own].
    #[arg(long, value_parser = precision())]
    precision: Option<Precision>,
    /// hot: iterations follow one another; cold: caches are evicted before each.
    #[arg(long, default_value = "hot", value_parser = ["hot", "cold"])]
    cache: String,
    /// Do not measure the bandwidth of the machine, which takes about a second for each number of threads: the
    /// report has no roofline then.
    #[arg(long)]
    pub(crate) no_bandwidth: bool,
    /// Seed of the vector x.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Elements of x are uniform from LOW up to, but not including, HIGH [default: 0.1,3, or the
    /// report's own].
    #[arg(long, value_name = "LOW,HIGH", value_parser = parse_range, allow_hyphen_values = true)]
    x_range: Option<(f64, f64)>,
    /// Take x from this file instead: a Matrix Market file with one column. A matrix with n columns
    /// takes the first n elements, times k for SpMM.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "x_range"])]
    read_x: Option<PathBuf>,
    /// Write x, as long as the longest that was used, to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_x: Option<PathBuf>,
}

fn parse_range(text: &str) -> Result<(f64, f64), String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    let (low, high) = text.split_once(',').unwrap_or((text, ""));
    match (number(low), number(high)) {
        (Some(low), Some(high)) if low < high => Ok((low, high)),
        _ => Err("expected two numbers, the lower one first, for example 0.1,3".to_owned()),
    }
}

/// Reads a number of threads. More than [`MOST_THREADS`] is taken for a slip: the system would refuse
/// to start them in the middle of the run.
///
/// # Errors
/// When the text is no number from 1 on.
pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.trim().parse().ok().filter(|threads| (1..=MOST_THREADS).contains(threads));
    threads.ok_or_else(|| format!("expected a number of threads from 1 to {MOST_THREADS}"))
}

const MOST_THREADS: usize = 1024;

/// Reads `90`, `90s`, `5m` or `2h` to seconds.
///
/// # Errors
/// When the text is none of these.
pub(crate) fn parse_budget(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" | "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let seconds = number.parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f));
    seconds.ok_or_else(|| "expected a time such as 90, 90s, 5m or 2h".to_owned())
}

fn scope() -> impl TypedValueParser<Value = Scope> {
    let named = |name: String| Scope::ALL.into_iter().find(|scope| scope.name() == name);
    PossibleValuesParser::new(Scope::ALL.map(Scope::name))
        .map(move |name| named(name).expect("a possible value"))
}

fn precision() -> impl TypedValueParser<Value = Precision> {
    let named = |name: String| Precision::ALL.into_iter().find(|p| p.name() == name);
    PossibleValuesParser::new(Precision::ALL.map(Precision::name))
        .map(move |name| named(name).expect("a possible value"))
}

impl Measuring {
    /// Seconds that a case is timed for at the least, if the command line says.
    pub(crate) fn min_time_s(&self) -> Option<f64> {
        self.min_time_ms.map(|milliseconds| milliseconds as f64 / 1e3)
    }

    /// The settings of a run, of a report's if there is one.
    ///
    /// # Errors
    /// A file with x that cannot be read.
    pub(crate) fn settings(&self, report: Option<&Setup>) -> anyhow::Result<Settings> {
        let (low, high) = self.x_range.or(report.map(|r| r.range)).unwrap_or(Input::RANGE);
        let input = match &self.read_x {
            Some(path) => Input::read(path)?,
            None => Input::Seeded { low, high, seed: self.seed },
        };
        let iterations = self.iterations.or(report.map(|r| r.iterations)).unwrap_or(10);
        ensure!(iterations > 0, "--iterations must be at least 1");
        let limit = |set: Option<u64>, usual: u64, of_report: Duration| match set {
            Some(milliseconds) => Duration::from_millis(milliseconds),
            None if report.is_some() => of_report,
            None => Duration::from_millis(usual),
        };
        Ok(Settings {
            sampling: Sampling {
                warm_up: self.warm_up,
                iterations,
                min_time: limit(self.min_time_ms, 10, Duration::ZERO),
                max_time: limit(self.max_time_ms, 2000, Duration::MAX),
            },
            scope: self.scope.or(report.map(|r| r.scope)).unwrap_or_default(),
            precision: self.precision.or(report.map(|r| r.precision)).unwrap_or_default(),
            cold: self.cache == "cold",
            input,
            report: report.map(|r| r.report),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use spm_study::catalogue::Report;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Measuring,
    }

    fn settings(line: &str, report: Option<Report>) -> Settings {
        let words = std::iter::once("test").chain(line.split_whitespace());
        let options = Line::parse_from(words).options;
        options.settings(report.map(Setup::of).as_ref()).unwrap()
    }

    #[test]
    fn reports_set_what_the_command_line_leaves_open() {
        let r1 = settings("", Some(Report::R1));
        assert_eq!((r1.sampling.iterations, r1.scope), (25, Scope::Launch));
        assert_eq!(r1.sampling.min_time, Duration::ZERO);
        assert_eq!(r1.input, Input::Seeded { low: -3e-5, high: 3e-5, seed: 1 });
        let r3 = settings("--seed 7", Some(Report::R3));
        assert_eq!((r3.scope, r3.precision), (Scope::Call, Precision::F32));
        assert_eq!(r3.input, Input::Seeded { low: 0.1, high: 3.0, seed: 7 });
        let own = settings("--iterations 4 --scope kernel --x-range -1,1", Some(Report::R0));
        assert_eq!((own.sampling.iterations, own.scope), (4, Scope::Kernel));
        assert_eq!(own.input, Input::Seeded { low: -1.0, high: 1.0, seed: 1 });
        let plain = settings("", None);
        assert_eq!((plain.sampling.iterations, plain.scope), (10, Scope::Kernel));
        assert_eq!(plain.describe()["max_time_ms"], 2000);
        assert_eq!(r1.describe()["max_time_ms"], serde_json::Value::Null);
    }

    #[test]
    fn times_and_ranges_have_units_and_order() {
        assert_eq!(parse_budget("90"), Ok(90));
        assert_eq!(parse_budget("5m"), Ok(300));
        assert_eq!(parse_budget("2h"), Ok(7200));
        assert_eq!(parse_threads("16"), Ok(16));
        assert!(["0", "-1", "", "1000000"].iter().all(|text| parse_threads(text).is_err()));
        assert!(parse_budget("m").is_err() && parse_budget("3 days").is_err());
        assert_eq!(parse_range("-3e-5,3e-5"), Ok((-3e-5, 3e-5)));
        assert!(parse_range("3,1").is_err() && parse_range("1").is_err());
    }
}

//! The machine model: rates of this machine, from which the time of a product is predicted.
//!
//! [`Rates::measure`] takes less than half a second. [`Rates::of_this_machine`] keeps the rates in a file of the
//! user's cache folder, the fastest of three measurements in three processes; later ones only read them.
//! [`spmv::predict`](crate::spmv::predict) applies the rates to a matrix.

mod cache;
mod file;
mod measure;

use std::fmt;
use std::str::FromStr;

pub(crate) use cache::last_level_cache;
pub use file::{CACHE_VARIABLE, RatesFile};
pub(crate) use measure::settled;

/// Bytes of the working sets that rates are measured for, ascending. The first fits into any first-level cache.
const SIZES: [f64; 6] = [16_384.0, 65_536.0, 524_288.0, 4_194_304.0, 16_777_216.0, 67_108_864.0];

/// Bytes of each thread that are long enough to read and fit into a first-level cache.
const SHARE: f64 = SIZES[0];

/// What threads reach together, for each working set of [`SIZES`].
#[derive(Debug, Clone, Copy, PartialEq)]
struct MemoryRates {
    /// Bytes per second that they read from front to back.
    read: [f64; SIZES.len()],
    /// Seconds that one thread takes for an element at a random place of the working set, while all
    /// of them do so.
    gather: [f64; SIZES.len()],
    /// Bytes per second that they write to memory past the caches.
    write: f64,
}

/// What a kernel costs one thread, in seconds, where memory takes no time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    /// Of a row.
    pub(crate) row: f64,
    /// Of a stored element.
    pub(crate) element: f64,
    /// Of a stored column index.
    pub(crate) index: f64,
    /// Planning, of itself, of a row and of an entry: the time of one thread, or of all where those of rayon make the plan,
    /// without that of memory that is touched for the first time.
    pub(crate) plan_start: f64,
    pub(crate) plan_row: f64,
    pub(crate) plan: f64,
    /// Whether elements of x are loaded by vector gathers.
    pub(crate) vector_gather: bool,
}

/// Kernels, or ways of a kernel to store a matrix, that differ in their costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// `csr-nnz-balanced`.
    Csr,
    /// `csr-compact`.
    CsrCompact,
    /// `bsr-rows`; a block row counts as a row, a column of a block as an element.
    Bsr,
    /// `sell-compact` with an index for each element.
    SellGathered,
    /// `sell-compact` with an index for eight elements.
    SellContiguous,
    /// `sell-compact` with an index and a code for each element.
    SellCodes,
    /// `sell-symmetric`.
    SellSymmetric,
    /// `sell-tiles`; a row of a tile counts as a row.
    SellTiles,
    /// The product with the transpose straight from CSR. Its planning stands for a transposition, on one
    /// thread.
    Scatter,
}

impl Family {
    const ALL: [Self; 9] = [
        Self::Csr,
        Self::CsrCompact,
        Self::Bsr,
        Self::SellGathered,
        Self::SellContiguous,
        Self::SellCodes,
        Self::SellSymmetric,
        Self::SellTiles,
        Self::Scatter,
    ];

    /// Whether the threads of the product make the plan, so that the costs of planning are those of one thread: all but
    /// conversions on the threads of rayon.
    pub(crate) fn plans_in_parts(self) -> bool {
        self != Self::Bsr
    }

    /// Whether all threads share each long row.
    pub(crate) fn splits_long_rows(self) -> bool {
        matches!(self, Self::SellGathered | Self::SellContiguous | Self::SellCodes)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Csr => "csr",
            Self::CsrCompact => "csr-compact",
            Self::Bsr => "bsr",
            Self::SellGathered => "sell-gathered",
            Self::SellContiguous => "sell-contiguous",
            Self::SellCodes => "sell-codes",
            Self::SellSymmetric => "sell-symmetric",
            Self::SellTiles => "sell-tiles",
            Self::Scatter => "scatter",
        }
    }
}

/// Rates of a machine: memory bandwidth and time of a random access by working set, on one thread and
/// on all, what starting the thread pool costs, and what the kernels cost in cache.
///
/// Rates print as a few lines of text and parse from these.
///
/// ```
/// use spm_cpu::machine::Rates;
///
/// let rates = Rates::typical();
/// assert_eq!(rates.to_string().parse(), Ok(rates));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Threads of the measurement on all threads.
    threads: usize,
    one: MemoryRates,
    all: MemoryRates,
    /// Seconds to start and end a job on all threads.
    start: f64,
    /// Seconds of a branch that goes another way than in the row before.
    misprediction: f64,
    /// Seconds that a short row costs more, of whatever length, if no branch depends on its length.
    short: f64,
    /// Seconds that a row costs more if rows are sorted by length: its sum is stored by itself, and the rows
    /// of a vector are no neighbours.
    sorted: f64,
    /// Bytes per second of memory that all threads write for the first time.
    fresh: f64,
    costs: [Cost; Family::ALL.len()],
}

impl Rates {
    /// Rates of no machine in particular: a desktop processor of 2020 with one thread. They stand in where
    /// measuring is not worth its time, and where two machines have to choose alike.
    pub const fn typical() -> Self {
        const fn cost(row: f64, element: f64, index: f64, plan: f64) -> Cost {
            // Straight from CSR nothing is planned.
            let (plan_start, plan_row) = if plan > 0.0 { (10e-6, 10e-9) } else { (0.0, 0.0) };
            Cost { row, element, index, plan_start, plan_row, plan, vector_gather: true }
        }
        let one = MemoryRates {
            read: [40e9, 40e9, 30e9, 20e9, 15e9, 10e9],
            gather: [0.5e-9, 0.7e-9, 1.5e-9, 4e-9, 7e-9, 10e-9],
            write: 8e9,
        };
        let costs = [
            cost(3e-9, 0.35e-9, 0.35e-9, 0.0),
            cost(6e-9, 0.2e-9, 0.4e-9, 5e-9),
            cost(8e-9, 0.6e-9, 0.0, 5e-9),
            cost(1e-9, 0.2e-9, 0.4e-9, 10e-9),
            cost(1e-9, 0.2e-9, 0.4e-9, 15e-9),
            cost(1e-9, 0.35e-9, 0.4e-9, 13e-9),
            cost(2e-9, 0.5e-9, 0.4e-9, 20e-9),
            cost(3e-9, 0.3e-9, 0.4e-9, 20e-9),
            cost(3e-9, 1e-9, 0.0, 4e-9),
        ];
        let (start, misprediction, short, sorted, fresh) = (1e-5, 4e-9, 1e-9, 1e-9, 2e9);
        Self { threads: 1, one, all: one, start, misprediction, short, sorted, fresh, costs }
    }

    /// Rates of a machine whose memory serves three threads as it serves one.
    #[cfg(test)]
    pub(crate) fn of_three_threads() -> Self {
        let text = Self::typical().to_string();
        let text = text.replace("threads 1", "threads 3");
        text.replace(
            "read-all 4e10 4e10 3e10 2e10 1.5e10 1e10",
            "read-all 12e10 12e10 9e10 6e10 4.5e10 3e10",
        )
        .parse()
        .unwrap()
    }

    /// Threads of the machine.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn cost(&self, family: Family) -> Cost {
        self.costs[family as usize]
    }

    /// Seconds that a code in place of a value costs more, where its table is beyond the registers.
    pub(crate) fn lookup(&self) -> f64 {
        (self.cost(Family::SellCodes).element - self.cost(Family::SellGathered).element).max(0.0)
    }

    /// Seconds to plan for `rows` rows and `entries` entries in `parts` parts at once, without those of memory that is
    /// touched for the first time.
    pub(crate) fn planning(&self, family: Family, rows: f64, entries: f64, parts: usize) -> f64 {
        let Cost { plan_start, plan_row, plan, .. } = self.cost(family);
        plan_start + (plan_row * rows + plan * entries) / parts as f64
    }

    /// Seconds to start and end a job on `threads` threads.
    pub(crate) fn start(&self, threads: usize) -> f64 {
        if threads > 1 { self.start } else { 0.0 }
    }

    /// Seconds of a branch that goes another way than in the row before.
    pub(crate) fn misprediction(&self) -> f64 {
        self.misprediction
    }

    /// Seconds that a short row costs more if no branch depends on its length.
    pub(crate) fn short(&self) -> f64 {
        self.short
    }

    /// Seconds that a row costs more if rows are sorted by length.
    pub(crate) fn sorted(&self) -> f64 {
        self.sorted
    }

    /// Bytes per second of memory that all threads write for the first time.
    pub(crate) fn fresh(&self) -> f64 {
        self.fresh
    }

    /// Whether something else seems to have held cores during the measurement: in caches of their own, all threads
    /// together were hardly faster than one.
    fn disturbed(&self) -> bool {
        let threads = self.threads as f64;
        let size = SIZES.iter().position(|size| *size >= threads * SHARE);
        let size = size.unwrap_or(SIZES.len() - 1);
        self.all.read[size] < 0.4 * threads * self.one.read[size]
    }

    /// What orders measurements of one machine: the mean of the logarithms of its rates of reading.
    fn speed(&self) -> f64 {
        let of = |rates: &MemoryRates| {
            let reads = rates.read.iter().map(|read| read.ln()).sum::<f64>();
            reads - rates.gather.iter().map(|gather| gather.ln()).sum::<f64>()
        };
        (of(&self.one) + of(&self.all)) / (4 * SIZES.len()) as f64
    }

    /// The faster one of two measurements of one machine. What the system gives of new memory in a second changes with what
    /// its host does, not with the rates of reading: that is the most of both.
    fn or_faster(self, other: Self) -> Self {
        let fresh = self.fresh.max(other.fresh);
        let faster = if self.speed() > other.speed() { self } else { other };
        Self { fresh, ..faster }
    }

    /// Bytes per second that `threads` threads read together from a working set of `bytes` bytes.
    pub(crate) fn read(&self, bytes: f64, threads: usize) -> f64 {
        self.between(threads, |rates| at(&rates.read, bytes))
    }

    /// Whether `threads` threads overwrite an array sooner past the caches, if `bytes` bytes are in use: a store
    /// through a cache reads its line and writes it, a store past the caches writes it to memory.
    pub(crate) fn write_past_caches(&self, bytes: f64, threads: usize) -> bool {
        2.0 * self.between(threads, |rates| rates.write) > self.read(bytes, threads)
    }

    /// Seconds that each of `threads` threads takes for an element at a random place among `bytes`
    /// bytes.
    pub(crate) fn gather(&self, bytes: f64, threads: usize) -> f64 {
        self.between(threads, |rates| at(&rates.gather, bytes))
    }

    /// Seconds for an element whose cache line is in the first-level cache.
    pub(crate) fn near(&self, threads: usize) -> f64 {
        self.gather(0.0, threads)
    }

    /// A rate for a number of threads between those of the measurements, or the nearest.
    fn between(&self, threads: usize, rate: impl Fn(&MemoryRates) -> f64) -> f64 {
        let (one, all) = (rate(&self.one), rate(&self.all));
        if self.threads <= 1 {
            return one;
        }
        let share = (threads.clamp(1, self.threads) - 1) as f64 / (self.threads - 1) as f64;
        one + share * (all - one)
    }
}

/// A rate at `bytes`, interpolated by the logarithm of the size.
fn at(rates: &[f64; SIZES.len()], bytes: f64) -> f64 {
    let after = SIZES.iter().position(|&size| size >= bytes).unwrap_or(SIZES.len() - 1);
    if after == 0 || bytes >= SIZES[after] {
        return rates[after];
    }
    let share = (bytes / SIZES[after - 1]).ln() / (SIZES[after] / SIZES[after - 1]).ln();
    rates[after - 1] + share * (rates[after] - rates[after - 1])
}

/// Each line of a rate's text: its name and its numbers.
impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn line(f: &mut fmt::Formatter<'_>, name: &str, numbers: &[f64]) -> fmt::Result {
            f.write_str(name)?;
            numbers.iter().try_for_each(|number| write!(f, " {number:e}"))?;
            f.write_str("\n")
        }
        writeln!(f, "threads {}", self.threads)?;
        line(f, "start", &[self.start])?;
        line(f, "misprediction", &[self.misprediction])?;
        line(f, "short", &[self.short])?;
        line(f, "sorted", &[self.sorted])?;
        line(f, "fresh", &[self.fresh])?;
        line(f, "read-one", &self.one.read)?;
        line(f, "gather-one", &self.one.gather)?;
        line(f, "write-one", &[self.one.write])?;
        line(f, "read-all", &self.all.read)?;
        line(f, "gather-all", &self.all.gather)?;
        line(f, "write-all", &[self.all.write])?;
        for family in Family::ALL {
            let Cost { row, element, index, plan_start, plan_row, plan, vector_gather } =
                self.cost(family);
            let gather = f64::from(u8::from(vector_gather));
            let numbers = [row, element, index, plan_start, plan_row, plan, gather];
            line(f, family.name(), &numbers)?;
        }
        Ok(())
    }
}

/// Why a text is not that of [`Rates`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseRatesError {
    /// What was expected.
    expected: String,
}

impl fmt::Display for ParseRatesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl std::error::Error for ParseRatesError {}

impl FromStr for Rates {
    type Err = ParseRatesError;

    fn from_str(text: &str) -> Result<Self, ParseRatesError> {
        let mut lines = text.lines();
        /// The numbers behind `name` in the next line: finite, and none below 0.
        fn numbers<const N: usize>(
            line: Option<&str>,
            name: &str,
        ) -> Result<[f64; N], ParseRatesError> {
            let parsed = || {
                let mut words = line?.split(' ');
                words.next().filter(|&word| word == name)?;
                let numbers: Vec<f64> =
                    words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
                let possible = |&number: &f64| number.is_finite() && number >= 0.0;
                numbers.try_into().ok().filter(|numbers: &[f64; N]| numbers.iter().all(possible))
            };
            let error = || ParseRatesError { expected: format!("\"{name}\" and {N} numbers") };
            parsed().ok_or_else(error)
        }
        let [threads] = numbers(lines.next(), "threads")?;
        let [start] = numbers(lines.next(), "start")?;
        let [misprediction] = numbers(lines.next(), "misprediction")?;
        let [short] = numbers(lines.next(), "short")?;
        let [sorted] = numbers(lines.next(), "sorted")?;
        let [fresh] = numbers(lines.next(), "fresh")?;
        let mut memory = |threads: &str| -> Result<MemoryRates, ParseRatesError> {
            let read = numbers(lines.next(), &format!("read-{threads}"))?;
            let gather = numbers(lines.next(), &format!("gather-{threads}"))?;
            let [write] = numbers(lines.next(), &format!("write-{threads}"))?;
            Ok(MemoryRates { read, gather, write })
        };
        let (one, all) = (memory("one")?, memory("all")?);
        let mut costs = Self::typical().costs;
        for (family, cost) in Family::ALL.into_iter().zip(&mut costs) {
            let [row, element, index, plan_start, plan_row, plan, gather] =
                numbers(lines.next(), family.name())?;
            let vector_gather = gather > 0.0;
            *cost = Cost { row, element, index, plan_start, plan_row, plan, vector_gather };
        }
        let threads = threads as usize;
        let rates = Self { threads, one, all, start, misprediction, short, sorted, fresh, costs };
        let divisors = rates.one.read.iter().chain(&rates.all.read).chain([&rates.fresh]);
        if threads < 1 || divisors.into_iter().any(|&read| read < 1.0) || lines.next().is_some() {
            let expected = "threads, bandwidths and no further line".to_owned();
            return Err(ParseRatesError { expected });
        }
        Ok(rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_interpolated_between_sizes_and_threads() {
        let mut rates = Rates::typical();
        rates.threads = 3;
        rates.one.read = [8.0, 6.0, 4.0, 3.0, 2.0, 1.0];
        rates.all.read = [24.0, 18.0, 12.0, 9.0, 6.0, 3.0];
        let read = |bytes, threads| rates.read(bytes, threads);
        assert_eq!((read(0.0, 1), read(SIZES[0], 1), read(1e12, 1)), (8.0, 8.0, 1.0));
        // The geometric mean of two sizes.
        assert!((read((SIZES[0] * SIZES[1]).sqrt(), 1) - 7.0).abs() < 1e-9);
        assert_eq!(
            (read(0.0, 2), read(0.0, 3), read(0.0, 9), read(0.0, 0)),
            (16.0, 24.0, 24.0, 8.0)
        );
        assert_eq!((rates.start(1), rates.start(2)), (0.0, rates.start));
        let one = Rates { threads: 1, ..rates };
        assert_eq!(one.read(SIZES[4], 4), 2.0);
    }

    #[test]
    fn arrays_are_written_past_slow_caches() {
        let mut rates = Rates::typical();
        rates.threads = 2;
        (rates.one.read, rates.one.write) = ([80.0, 70.0, 60.0, 50.0, 40.0, 20.0], 15.0);
        (rates.all.read, rates.all.write) = ([160.0, 140.0, 120.0, 100.0, 80.0, 25.0], 30.0);
        let past =
            |rates: &Rates, threads| SIZES.map(|size| rates.write_past_caches(size, threads));
        assert_eq!(past(&rates, 1), [false, false, false, false, false, true]);
        assert_eq!(past(&rates, 2), [false, false, false, false, false, true]);
        rates.one.write = 26.0;
        assert_eq!(past(&rates, 1), [false, false, false, true, true, true]);
        assert_eq!(past(&rates, 2), [false, false, false, false, false, true]);
    }

    #[test]
    fn texts_that_are_no_rates_are_errors() {
        let text = Rates::typical().to_string();
        let change = |from: &str, to: &str| text.replace(from, to).parse::<Rates>();
        assert_eq!(change("", ""), Ok(Rates::typical()));
        for (from, to) in [
            ("threads 1", "threads 0"),
            ("threads 1", "threads"),
            ("start", "begin"),
            ("start 1e-5", "start NaN"),
            ("start 1e-5", "start -1e-5"),
            ("start 1e-5", "start 1e-5 1"),
            ("1e10", "0"),
            ("sell-tiles", "more 1\nsell-tiles"),
            (" 1\n", "\n"),
        ] {
            assert_ne!(text, text.replace(from, to), "{from}");
            assert!(change(from, to).is_err(), "{from} to {to}");
        }
        assert!(format!("{text}start 1\n").parse::<Rates>().is_err());
        assert!("".parse::<Rates>().is_err());
    }
}

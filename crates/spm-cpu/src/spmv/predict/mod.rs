//! Predicted times of y = A x by the machine model, and the choice that they make.
//!
//! The time of a product is that of its memory traffic and that of its arithmetic, and the time in which it waits for
//! elements of x that are far from each other. Traffic and arithmetic overlap, but not whole: of the two the root of the
//! sum of their squares is taken, the longer one where the other is short. All sizes are estimated from some blocks of
//! consecutive rows, so that a prediction takes less time than a product.

mod lengths;
mod structure;
#[cfg(test)]
mod tests;

use spm_formats::kernel::split_label;
use spm_formats::{CsrView, Scalar, partition};

pub(super) use self::lengths::LARGEST_WINDOW;
use self::structure::{Structure, Way};
use crate::machine::{Cost, Family, Rates};
use crate::simd::{GATHER, PREFETCH};
use crate::spmv::auto;
use crate::spmv::sell_compact::CODES;

/// A kernel that may compute the product, with its predicted costs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// Kernel and parameters.
    pub label: String,
    /// Threads of the product.
    pub threads: usize,
    /// Seconds of a product.
    pub seconds: f64,
    /// Seconds of planning.
    pub planning: f64,
    /// Bytes that a product moves.
    pub bytes: f64,
}

/// What the machine model says of the products with a matrix.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Predictions {
    /// Straight from CSR.
    pub direct: Prediction,
    /// From a converted matrix, the fastest product first.
    pub converted: Vec<Prediction>,
    /// Seconds of the race of `auto`.
    pub race: f64,
}

/// What [`Predictions::choose`] says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Choice<'p> {
    /// Straight from CSR.
    Direct,
    /// A conversion for this kernel.
    Convert(&'p Prediction),
    /// The race of `auto`.
    Race,
}

/// A prediction must save this share of the time of all products, or it is noise.
const MARGIN: f64 = 0.95;
/// Time of the winner of a race over that of the kernel that the model thinks fastest.
const RACED: f64 = 0.9;

impl Predictions {
    /// The prediction for a kernel and its parameters, whatever the way to gather and to prefetch.
    pub fn of(&self, label: &str) -> Option<&Prediction> {
        let alike = |of: &Prediction| {
            let parts = |label: &str| {
                let (id, parameters) = split_label(label);
                let of_storage = |set: &&str| {
                    let (name, value) = set.split_once('=').unwrap_or((*set, ""));
                    let codes = name == CODES.name && value == CODES.default.to_string();
                    name != GATHER.name && name != PREFETCH.name && !codes
                };
                let mut sets: Vec<String> =
                    parameters.split(',').filter(of_storage).map(str::to_owned).collect();
                sets.push(id.to_owned());
                sets
            };
            parts(&of.label) == parts(label)
        };
        std::iter::once(&self.direct).chain(&self.converted).find(|of| alike(of))
    }

    /// The choice with the least time of planning and `products` products together. A function of the
    /// predictions alone. Without `clock` a race is no choice.
    pub fn choose(&self, products: u64, clock: bool) -> Choice<'_> {
        let products = products as f64;
        let total = |of: &Prediction| of.planning + products * of.seconds;
        let mut choice = (MARGIN * total(&self.direct), Choice::Direct);
        let best = self.converted.iter().min_by(|a, b| total(a).total_cmp(&total(b)));
        if let Some(best) = best.filter(|best| total(best) < choice.0) {
            choice = (MARGIN * total(best), Choice::Convert(best));
        }
        let fastest =
            self.converted.iter().map(|of| of.seconds).fold(self.direct.seconds, f64::min);
        if clock && self.race + products * RACED * fastest < choice.0 {
            choice.1 = Choice::Race;
        }
        choice.1
    }

    /// Products straight from CSR from which a conversion pays, or nothing where none does.
    pub fn pays_from(&self) -> Option<u64> {
        let of = |one: &Prediction| {
            let saved = MARGIN * self.direct.seconds - one.seconds;
            (saved > 0.0).then(|| (one.planning / saved).ceil())
        };
        self.converted.iter().filter_map(of).min_by(f64::total_cmp).map(|products| products as u64)
    }
}

/// Seconds of a product straight from CSR on one thread, by the number of rows and entries alone.
pub fn roughly(rows: usize, entries: usize, rates: &Rates) -> f64 {
    let Cost { row, element, .. } = rates.cost(Family::Csr);
    rows as f64 * row + entries as f64 * element
}

/// Whether a product straight from CSR is as fast on one thread as on `threads`, by the number of rows and
/// entries alone.
pub fn one_thread_suffices(rows: usize, entries: usize, threads: usize, rates: &Rates) -> bool {
    let alone = roughly(rows, entries, rates);
    alone <= rates.start(threads.max(2)) + alone / threads.max(1) as f64
}

/// What the machine model says of the products with the transpose of a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TransposedPredictions {
    /// Seconds of a product straight from the CSR arrays of the matrix.
    pub direct: f64,
    /// Seconds of a product from a transposed copy in CSR.
    pub copied: f64,
    /// Seconds to make the copy.
    pub copying: f64,
    /// Seconds of a product from the copy, converted for the fastest kernel.
    pub converted: f64,
    /// Seconds of this conversion.
    pub converting: f64,
}

impl TransposedPredictions {
    /// Products straight from CSR before the next one makes a transposed copy, or nothing where no copy
    /// is made. With a number of `products` the copy is made at once, if it pays in so many; without one
    /// it is made when the products so far have cost as much as it does.
    pub fn copy_after(&self, products: Option<u64>) -> Option<u64> {
        let Self { direct, copied, copying, converted, converting } = *self;
        match products {
            Some(products) => {
                let products = products as f64;
                let from_copy = (products * copied).min(converting + products * converted);
                (copying + from_copy < MARGIN * products * direct).then_some(0)
            }
            None => {
                let pays = copied.min(converted) < MARGIN * direct;
                pays.then(|| (copying / direct).ceil() as u64)
            }
        }
    }
}

/// Predicts the products with the transpose of `a` on `threads` threads, by `rates` alone.
pub fn predict_transposed<T: Scalar>(
    a: CsrView<'_, T>,
    threads: usize,
    rates: &Rates,
) -> TransposedPredictions {
    let structure = Structure::sample(&a, threads);
    let threads = threads.max(1);
    let way = structure.ways(&a, threads).swap_remove(0);
    let balance = balance(&a, threads);
    let copied = structure.predict(&a, &way, threads, balance, rates).seconds;
    let scatter = Way { family: Family::Scatter, ..way };
    // The threads start twice, and all but one have copies of the columns that they add to.
    let copies = (threads - 1) as f64 * (a.cols() * T::BYTES) as f64;
    let copies = 2.0 * copies / rates.read(copies, threads);
    let scattered = structure.predict(&a, &scatter, threads, balance, rates).seconds;
    let direct = scattered + rates.start(threads) + copies;
    let waiting = structure.waiting(&a, &scatter, threads, rates);
    let planning = rates.planning(Family::Scatter, a.rows() as f64, a.nnz() as f64, threads);
    let copying = planning + waiting / threads as f64 + scatter.bytes / rates.fresh();
    // The transpose is taken to be as its matrix is.
    let fastest = predict_by(&structure, a, threads, rates).converted.into_iter().next();
    let (converted, converting) = fastest.map_or((copied, 0.0), |of| (of.seconds, of.planning));
    TransposedPredictions { direct, copied, copying, converted, converting }
}

/// Predicts the products with `a` on 1 to `threads` threads, by `rates` alone.
pub fn predict<T: Scalar>(a: CsrView<'_, T>, threads: usize, rates: &Rates) -> Predictions {
    predict_by(&Structure::sample(&a, threads), a, threads, rates)
}

/// [`predict`] for a matrix that has been sampled.
fn predict_by<T: Scalar>(
    structure: &Structure,
    a: CsrView<'_, T>,
    threads: usize,
    rates: &Rates,
) -> Predictions {
    let ways = predict_ways(structure, &a, threads, rates);
    let race = auto::predicted_race(&ways);
    let faster = |OnThreads { alone, all }| if all.seconds < alone.seconds { all } else { alone };
    let mut all: Vec<Prediction> = ways.into_iter().map(faster).collect();
    let direct = all.remove(0);
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Predictions { direct, race, converted: all }
}

/// A way to compute the product, with its predictions on one thread and on all.
pub(super) struct OnThreads {
    pub(super) alone: Prediction,
    pub(super) all: Prediction,
}

impl OnThreads {
    /// Seconds on whichever is faster.
    pub(super) fn seconds(&self) -> f64 {
        self.alone.seconds.min(self.all.seconds)
    }
}

/// Predicts each way to compute the product with `a`, straight from CSR first.
pub(super) fn on_threads<T: Scalar>(
    a: &CsrView<'_, T>,
    threads: usize,
    rates: &Rates,
) -> Vec<OnThreads> {
    predict_ways(&Structure::sample(a, threads), a, threads, rates)
}

/// [`on_threads`] for a matrix that has been sampled.
fn predict_ways<T: Scalar>(
    structure: &Structure,
    a: &CsrView<'_, T>,
    threads: usize,
    rates: &Rates,
) -> Vec<OnThreads> {
    let (threads, balance) = (threads.max(1), balance(a, threads));
    let mut ways = structure.ways(a, threads);
    if T::IS_COMPLEX {
        // The kernels for complex matrices sum the rows of CSR.
        ways.retain(|way| way.family == Family::Csr);
    }
    let on = |way: &Way, count, balance| structure.predict(a, way, count, balance, rates);
    let ways = ways.iter().map(|way| {
        let alone = on(way, 1, 1.0);
        let all = if threads > 1 { on(way, threads, balance) } else { alone.clone() };
        OnThreads { alone, all }
    });
    ways.collect()
}

/// The most entries of a thread over the mean.
fn balance<T: Scalar>(a: &CsrView<'_, T>, threads: usize) -> f64 {
    let bounds = partition::by_entries(a.row_ptr(), threads.max(1));
    let entries = |rows: &[usize]| a.row_ptr()[rows[1]] - a.row_ptr()[rows[0]];
    let most = bounds.windows(2).map(entries).max().unwrap_or(0);
    (f64::from(most) * threads as f64 / (a.nnz().max(1)) as f64).max(1.0)
}

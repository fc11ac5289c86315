//! The choice of a product by the machine model, and by the clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use spm_cpu::machine::{Rates, RatesFile};
use spm_cpu::spmv::{self, Choice, Predictions};
use spm_formats::{Csr, MemoryBudget, Scalar};

use crate::engine::{Product, Resources};
use crate::operator::Intent;
use crate::{Error, Reason};

/// Products that an operator expects for which the caller has named no number.
const EXPECTED: u64 = 100;
/// Seconds that measuring the machine takes, and how many times that all products together must take
/// before it is worth it.
const MEASURING: f64 = 0.1;
const WORTH: f64 = 20.0;
/// Seconds that a prediction takes, and how many times that all products together must take before it is
/// worth it.
const PREDICTING: f64 = 2e-4;
const WORTH_PREDICTING: f64 = 10.0;
/// Products from which the clock checks a conversion, which takes a few: they are a thirtieth then.
pub(crate) const CHECKED: u64 = 200;
/// Fewer products never pay for a conversion, which reads and writes the matrix. An operator without a number
/// of them first looks after so many.
const FIRST_LOOK: u64 = 8;

/// A conversion has to pay in the first one of so many parts of the expected products. The model is wrong by up to
/// a half about planning and about products (docs/tuning-log-cpu.md, Predictions), and planning that does not pay
/// is a loss beside every library that multiplies straight from CSR.
const CAUTION: u64 = 2;

/// Where the rates of the machine come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machine {
    pub(crate) given: Option<Rates>,
    /// The default one is looked for when it is needed: to ask for the variables of its path takes a tenth of the
    /// time of a small operator.
    pub(crate) file: Option<RatesFile>,
}

impl Machine {
    /// The rates for a choice about `seconds` of products, if they are known. A machine that has not been measured
    /// is measured if that is worth it.
    fn known(&self, seconds: f64) -> Option<Rates> {
        self.given.clone().or_else(|| {
            let file = self.file.clone().unwrap_or_default();
            let measured = || (seconds > WORTH * MEASURING).then(|| Rates::of_this_machine(&file));
            Rates::known(&file).or_else(measured)
        })
    }

    /// The same; otherwise typical rates stand in.
    fn rates(&self, seconds: f64) -> Rates {
        self.known(seconds).unwrap_or_else(Rates::typical)
    }

    /// What the model says of `products` products with `a`.
    pub(crate) fn predict<T: Scalar>(
        &self,
        a: &Csr<T>,
        resources: &Resources,
        products: u64,
    ) -> Predictions {
        let threads = resources.threads.count();
        let (rates, stand_in) = match self.known(work(a, products)) {
            Some(rates) => (rates, false),
            None => (Rates::typical(), true),
        };
        let mut predictions = spmv::predict(a.view(), threads, &rates);
        if stand_in {
            // Typical rates are of one thread: memory gains nothing from others. Most machines are not so.
            let all = predictions.converted.iter_mut().chain([&mut predictions.direct]);
            all.for_each(|prediction| prediction.threads = threads);
        }
        predictions
    }

    /// Products with the transpose before the next one makes a transposed copy, if one is made.
    pub(crate) fn copy_after<T: Scalar>(
        &self,
        a: &Csr<T>,
        resources: &Resources,
        intent: Intent,
    ) -> Option<u64> {
        let products = intent.products.or(intent.deterministic.then_some(EXPECTED));
        let rates = self.rates(work(a, products.unwrap_or(EXPECTED)));
        let predictions = spmv::predict_transposed(a.view(), resources.threads.count(), &rates);
        predictions.copy_after(products)
    }
}

/// Seconds of `products` products, roughly.
fn work<T: Scalar>(a: &Csr<T>, products: u64) -> f64 {
    products as f64 * spmv::roughly(a.rows(), a.nnz(), &Rates::typical())
}

/// Whether a prediction takes little beside so many products.
fn is_worth_predicting<T: Scalar>(a: &Csr<T>, products: u64) -> bool {
    work(a, products) >= WORTH_PREDICTING * PREDICTING
}

/// A product, and what is known of it.
pub(crate) struct Planned<T> {
    pub(crate) product: Product<T>,
    pub(crate) reason: Reason,
    pub(crate) planning: Duration,
    measured: Seconds,
}

/// Seconds that may be set later; 0 until then.
#[derive(Default)]
struct Seconds(AtomicU64);

impl Seconds {
    fn get(&self) -> Option<f64> {
        let seconds = f64::from_bits(self.0.load(Ordering::Relaxed));
        (seconds > 0.0).then_some(seconds)
    }

    fn set(&self, seconds: f64) {
        self.0.store(seconds.to_bits(), Ordering::Relaxed);
    }
}

impl<T: Scalar> Planned<T> {
    pub(crate) fn new(product: Product<T>, reason: Reason, planning: Duration) -> Self {
        Self { product, reason, planning, measured: Seconds::default() }
    }

    /// Seconds of a product by the clock, if it has been asked.
    pub(crate) fn measured(&self) -> Option<f64> {
        self.measured.get()
    }

    /// Times the product, if the budget allows the vectors.
    pub(crate) fn measure(&self, budget: &MemoryBudget) -> Option<f64> {
        let seconds = self.product.time(budget)?;
        self.measured.set(seconds);
        Some(seconds)
    }
}

/// The product of an operator that was not made by a recipe; `start` is when its planning began, and `small`
/// says that it takes hardly any time.
pub(crate) fn choose<T: Scalar>(
    a: &Arc<Csr<T>>,
    resources: &Resources,
    machine: &Machine,
    intent: Intent,
    small: bool,
    start: Instant,
) -> Result<Chosen<T>, Error> {
    let direct = |reason| {
        let product = Product::direct(a, resources)?;
        Ok::<_, Error>(Planned::new(product, reason, start.elapsed()))
    };
    Ok(match intent.products {
        None if !intent.deterministic => {
            Chosen::adaptive(direct(if small { Reason::Small } else { Reason::First })?)
        }
        None if small => Chosen::fixed(direct(Reason::Small)?),
        products => {
            let (expected, clock) = (products.unwrap_or(EXPECTED), !intent.deterministic);
            Chosen::fixed(plan(a, resources, machine, expected, clock)?)
        }
    })
}

/// The product for a known number of products. With `clock` kernels are timed where that pays.
fn plan<T: Scalar>(
    a: &Arc<Csr<T>>,
    resources: &Resources,
    machine: &Machine,
    expected: u64,
    clock: bool,
) -> Result<Planned<T>, Error> {
    let start = Instant::now();
    let direct = |threads: usize, reason: Reason| {
        let product = Product::direct(a, &resources.on(threads))?;
        Ok(Planned::new(product, reason, start.elapsed()))
    };
    if expected < FIRST_LOOK || !is_worth_predicting(a, expected) {
        return direct(resources.threads.count(), Reason::Few { expected, pays_from: None });
    }
    let predictions = machine.predict(a, resources, expected);
    let straight = |reason| direct(predictions.direct.threads, reason);
    if clock && predictions.choose(expected, clock) == Choice::Race {
        let product = Product::raced(a, resources)?;
        let planned = Planned::new(product, Reason::Raced { expected }, start.elapsed());
        planned.measure(&resources.budget);
        return Ok(Planned { planning: start.elapsed(), ..planned });
    }
    let Some(product) = convert(a, resources, &predictions, expected / CAUTION) else {
        let pays_from = predictions.pays_from().map(|products| products.saturating_mul(CAUTION));
        return straight(Reason::Few { expected, pays_from });
    };
    let planned = Planned::new(product, Reason::Converted { expected }, start.elapsed());
    if clock && expected >= CHECKED {
        let straight = straight(Reason::Slower { expected })?;
        let [by_csr, by_conversion] =
            [&straight, &planned].map(|planned| planned.measure(&resources.budget));
        if by_csr < by_conversion {
            return Ok(Planned { planning: start.elapsed(), ..straight });
        }
    }
    Ok(Planned { planning: start.elapsed(), ..planned })
}

/// The product from the conversion that the model chooses for this number of products, if it chooses one.
/// It leaves out what the matrix does not allow: the sample may have mistaken it for a symmetric one, or the
/// budget may be too small.
fn convert<T: Scalar>(
    a: &Arc<Csr<T>>,
    resources: &Resources,
    predictions: &Predictions,
    products: u64,
) -> Option<Product<T>> {
    let mut predictions = predictions.clone();
    while let Choice::Convert(best) = predictions.choose(products, false) {
        let (label, threads) = (best.label.clone(), best.threads);
        if let Ok(product) = Product::plan(a, &label, &resources.on(threads)) {
            return Some(product);
        }
        predictions.converted.retain(|of| of.label != label);
    }
    None
}

/// The product of an operator.
pub(crate) struct Chosen<T> {
    first: Planned<T>,
    /// Where nobody has said how many products there will be.
    later: Option<Later<T>>,
}

/// A product that is planned when those before it make it likely that it pays.
struct Later<T> {
    /// Products so far.
    calls: AtomicU64,
    predictions: OnceLock<Predictions>,
    planned: OnceLock<Planned<T>>,
    /// Held by the thread that plans.
    planning: Mutex<()>,
}

impl<T: Scalar> Chosen<T> {
    /// The same product always.
    pub(crate) fn fixed(first: Planned<T>) -> Self {
        Self { first, later: None }
    }

    /// At 8, 16, 32, ... products a conversion that pays in as many more products takes the place of
    /// `first`.
    pub(crate) fn adaptive(first: Planned<T>) -> Self {
        let (predictions, planned) = (OnceLock::new(), OnceLock::new());
        let (calls, planning) = (AtomicU64::new(0), Mutex::new(()));
        Self { first, later: Some(Later { calls, predictions, planned, planning }) }
    }

    /// What the next product runs with, unless it plans.
    pub(crate) fn now(&self) -> &Planned<T> {
        let planned = self.later.as_ref().and_then(|later| later.planned.get());
        planned.unwrap_or(&self.first)
    }

    /// Whether it no longer changes.
    pub(crate) fn is_settled(&self) -> bool {
        self.later.as_ref().is_none_or(|later| later.planned.get().is_some())
    }

    /// The product to run. Counts it.
    #[inline]
    pub(crate) fn next(
        &self,
        a: &Arc<Csr<T>>,
        resources: &Resources,
        machine: &Machine,
    ) -> &Product<T> {
        let Some(later) = &self.later else { return &self.first.product };
        if let Some(planned) = later.planned.get() {
            return &planned.product;
        }
        let calls = later.calls.fetch_add(1, Ordering::Relaxed);
        if calls >= FIRST_LOOK && calls.is_power_of_two() {
            later.look(calls, a, resources, machine);
        }
        &self.now().product
    }

    /// What will be used from now on, which no longer changes if a conversion has been made.
    pub(crate) fn settle(&mut self) -> &mut Planned<T> {
        if let Some(planned) = self.later.as_mut().and_then(|later| later.planned.take()) {
            (self.first, self.later) = (planned, None);
        }
        if let Some(later) = &mut self.later {
            later.predictions = OnceLock::new();
        }
        &mut self.first
    }

    /// Bytes of the plans.
    pub(crate) fn plan_bytes(&self) -> u64 {
        let of = |planned: &Planned<T>| planned.product.footprint().plan_bytes;
        let later = self.later.as_ref().and_then(|later| later.planned.get());
        of(&self.first) + later.map_or(0, of)
    }
}

impl<T: Scalar> Later<T> {
    /// Makes a conversion if it pays in as many products as there have been.
    #[cold]
    fn look(&self, calls: u64, a: &Arc<Csr<T>>, resources: &Resources, machine: &Machine) {
        if !is_worth_predicting(a, calls) {
            return;
        }
        // Others go on as before.
        let Ok(_guard) = self.planning.try_lock() else { return };
        if self.planned.get().is_some() {
            return;
        }
        let start = Instant::now();
        let predictions = self.predictions.get_or_init(|| machine.predict(a, resources, calls));
        if let Some(product) = convert(a, resources, predictions, calls) {
            let reason = Reason::Later { after: calls };
            // Nobody else has planned: the guard is held.
            let _ = self.planned.set(Planned::new(product, reason, start.elapsed()));
        }
    }
}

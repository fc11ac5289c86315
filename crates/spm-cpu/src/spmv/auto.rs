//! The fastest plan for a matrix on this machine: a few candidates by structure, then by the clock.

use std::hint::black_box;
use std::time::{Duration, Instant};

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, split_label};
use spm_formats::{CsrArrays, CsrView, Scalar, stats};

use super::plan::{Memory, Product, boxed};
use super::{BoxedPlan, find};
use crate::simd::LANES;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "own",
    summary: "the fastest of the kernels that suit the structure, found by timing them in planning",
    parameters: &[],
};

/// Entries up to which one row after the other on the calling thread is the answer: the whole
/// product takes less time than a clock can tell candidates apart.
const TINY: usize = 256;
/// Entries up to which waking other threads may cost more than they help.
const SMALL: usize = 1 << 18;
/// Rows that are looked at to guess the structure.
const SAMPLE: usize = 512;
/// Bytes of x from which on it competes with the matrix for the second cache.
const LARGE_X: usize = 1 << 20;

/// How long a candidate is timed: at least so many runs, and at least so long.
const RUNS: usize = 5;
const TIME: Duration = Duration::from_millis(3);

struct Auto<'a, T> {
    plan: BoxedPlan<'a, T>,
    choice: String,
}

pub(super) fn plan<'a, T: Scalar>(
    a: &CsrView<'a, T>,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let arrays = CsrArrays::new(a)?;
    if arrays.entries() <= TINY {
        return Ok(super::csr_serial::chosen(arrays));
    }
    let mut race = Race::new(a, options)?;
    let team = (options.threads.count() > 1).then_some(&options.threads);
    for label in candidates(&arrays) {
        if let Some(team) = team {
            race.enter(&label, team);
        }
        if team.is_none() || arrays.entries() <= SMALL {
            race.enter(&label, &Threads::new(1));
        }
    }
    // The best once more with the other way to fetch x.
    if let Some((label, threads)) = race.best_with_scalar_gather() {
        race.enter(&label, &threads);
    }
    Ok(boxed(Auto { plan: race.plan, choice: race.choice }))
}

/// Labels of kernels that may be the fastest, the likeliest last.
fn candidates<T: Scalar>(a: &CsrArrays<'_, T>) -> Vec<String> {
    let structure = Structure::sample(a);
    let slots = |sigma| stats::sell_slots(a.pointers(), LANES, sigma) as f64;
    let mut labels = vec!["csr-compact".to_owned()];
    if structure.far && a.cols() * T::BYTES >= LARGE_X {
        labels.push("sell-tiles".to_owned());
    }
    if structure.shifted && a.rows() == a.cols() {
        labels.push("sell-symmetric".to_owned());
    }
    let (unsorted, near, far) = (slots(1), slots(256), slots(4096));
    if unsorted < 1.15 * near {
        labels.push("sell-compact[sigma=1]".to_owned());
    }
    if near < 1.02 * unsorted && near < 1.3 * far {
        labels.push("sell-compact[sigma=256]".to_owned());
    }
    if far < 0.95 * near {
        labels.push("sell-compact[sigma=4096]".to_owned());
    }
    labels
}

/// What a few rows say about all.
struct Structure {
    /// Many rows reach over more columns than the caches hold of x.
    far: bool,
    /// Many rows have the columns of the row before, shifted by one.
    shifted: bool,
}

impl Structure {
    fn sample<T: Scalar>(a: &CsrArrays<'_, T>) -> Self {
        let columns = |row: usize| {
            &a.col_indices()[a.pointers()[row] as usize..a.pointers()[row + 1] as usize]
        };
        let (mut seen, mut far, mut shifted) = (0, 0, 0);
        for row in (1..a.rows()).step_by((a.rows() / SAMPLE).max(1)) {
            let (before, here) = (columns(row - 1), columns(row));
            let (Some(first), Some(last)) = (here.iter().min(), here.iter().max()) else {
                continue;
            };
            seen += 1;
            far += usize::from((last - first) as usize * T::BYTES >= LARGE_X / 4);
            let common = here.iter().filter(|&&c| c > 0 && before.contains(&(c - 1))).count();
            shifted += usize::from(2 * common > here.len());
        }
        Self { far: 4 * far > seen, shifted: 2 * shifted > seen }
    }
}

/// Candidates against each other; the best so far is kept, the others are dropped.
struct Race<'r, 'a, T> {
    a: &'r CsrView<'a, T>,
    options: &'r PlanOptions,
    x: Vec<T>,
    y: Vec<T>,
    plan: BoxedPlan<'a, T>,
    seconds: f64,
    label: String,
    threads: Threads,
    choice: String,
}

impl<'r, 'a, T: Scalar> Race<'r, 'a, T> {
    /// Starts with the serial kernel, which nothing may be slower than.
    fn new(a: &'r CsrView<'a, T>, options: &'r PlanOptions) -> Result<Self, PlanError> {
        let serial = super::csr_serial::INFO;
        let plan = super::csr_serial::plan(a, &serial.defaults(), options)?;
        let x = (0..a.cols()).map(|j| {
            // Any numbers that are not special: between 0.5 and 1.
            T::from_f64(0.5 + (j as f64 * 0.618_033_988_749_895).fract() / 2.0)
        });
        let mut race = Self {
            a,
            options,
            x: x.collect(),
            y: vec![T::ZERO; a.rows()],
            plan,
            seconds: f64::INFINITY,
            label: serial.id.to_owned(),
            threads: Threads::new(1),
            choice: serial.id.to_owned(),
        };
        race.seconds = time(&mut *race.plan, &race.x, &mut race.y);
        Ok(race)
    }

    /// Plans and times a kernel; one that refuses the matrix is no candidate.
    fn enter(&mut self, label: &str, threads: &Threads) {
        let (id, text) = split_label(label);
        let kernel = find::<T>(id).expect("candidates are registered");
        let parameters = kernel.info.parse_parameters(text).expect("candidates are well formed");
        let options = PlanOptions { threads: threads.clone(), ..self.options.clone() };
        let Ok(mut plan) = kernel.plan(self.a, &parameters, &options) else { return };
        let seconds = time(&mut *plan, &self.x, &mut self.y);
        if seconds < self.seconds {
            let alone = threads.count() == 1 && self.options.threads.count() > 1;
            let suffix = if alone { " on 1 thread" } else { "" };
            self.choice = kernel.info.label(&parameters) + suffix;
            self.label = label.to_owned();
            (self.plan, self.seconds, self.threads) = (plan, seconds, threads.clone());
        }
    }

    /// The best kernel's label with the other choice of its `gather`, if it has one.
    fn best_with_scalar_gather(&self) -> Option<(String, Threads)> {
        let (id, text) = split_label(&self.label);
        let kernel = find::<T>(id)?;
        kernel.info.parameters.iter().find(|p| p.name == crate::simd::GATHER.name)?;
        let comma = if text.is_empty() { "" } else { "," };
        Some((format!("{id}[{text}{comma}gather=scalar]"), self.threads.clone()))
    }
}

/// Seconds of the fastest run: what disturbs a run only ever makes it slower.
fn time<T: Scalar>(plan: &mut dyn spm_formats::kernel::SpmvPlan<T>, x: &[T], y: &mut [T]) -> f64 {
    let mut run = || plan.run(black_box(x), black_box(y)).expect("vectors of the plan's shape");
    run();
    // Runs of microseconds are timed together.
    let start = Instant::now();
    run();
    let together = (2e-5 / start.elapsed().as_secs_f64().max(1e-8)).ceil().max(1.0) as usize;
    let (mut best, mut runs, start) = (f64::INFINITY, 0, Instant::now());
    while runs < RUNS || start.elapsed() < TIME {
        let begin = Instant::now();
        (0..together).for_each(|_| run());
        best = best.min(begin.elapsed().as_secs_f64() / together as f64);
        runs += 1;
    }
    best
}

impl<T: Scalar> Product<T> for Auto<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.plan.shape()
    }

    fn memory(&self) -> Memory {
        let footprint = self.plan.footprint();
        Memory { matrix: footprint.matrix_bytes, plan: footprint.plan_bytes }
    }

    fn multiply(&mut self, x: &[T], y: &mut [T]) {
        self.plan.run(x, y).expect("the lengths are checked");
    }

    fn choice(&self) -> Option<String> {
        Some(self.choice.clone())
    }
}

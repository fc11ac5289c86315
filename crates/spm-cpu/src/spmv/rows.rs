//! Products whose rows are summed independently of each other, over a partition of the rows.

use spm_formats::kernel::{Parameters, PlanError};
use spm_formats::{CsrSource, NewValues, Scalar, partition};
use std::ops::Range;

use super::load::{Load, Stored};
use super::plan::{Memory, Product, boxed};
use super::row::{Summing, Walk};
use super::schedule::{self, Loop};
use crate::disjoint::Disjoint;
use crate::plan::BoxedOwnPlan;
use crate::scaled::Update;
use crate::{Threads, values};

/// A matrix whose rows, or blocks of rows, are summed independently of each other.
pub(super) trait RowSums<T>: Send + Sync {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Memory of a plan that holds `rest` more bytes.
    fn memory(&self, rest: usize) -> Memory;

    /// What a partition divides: the number of rows, or of blocks of rows.
    fn count(&self) -> usize {
        self.shape().0
    }

    /// The rows of some consecutive units of [`RowSums::count`].
    fn rows(&self, units: &Range<usize>) -> Range<usize> {
        units.clone()
    }

    /// y[rows] = alpha (A x)[rows] + beta y[rows] for the rows of `units`; `y` holds just these.
    fn multiply(&self, units: Range<usize>, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]);

    /// Runs from now on by these parameters; returns whether it can. See [`Product::run_by`].
    fn run_by(&mut self, parameters: &Parameters) -> bool {
        let _ = parameters;
        true
    }

    /// See [`Product::set_values`]; on the threads of the partition.
    fn set_values(
        &mut self,
        new: NewValues<'_, T>,
        threads: Option<&Threads>,
    ) -> Result<(), PlanError> {
        let _ = (new, threads);
        Err(PlanError::Values("the format does not keep their order"))
    }
}

/// A CSR matrix, borrowed or shared, and what is taken for its values.
pub(super) struct CsrRows<'a, A, L> {
    a: CsrSource<'a, A>,
    load: L,
    summing: Summing,
    walk: Walk,
}

impl<'a, T: Scalar> CsrRows<'a, T, Stored> {
    pub(super) fn new(a: CsrSource<'a, T>, parameters: &Parameters) -> Self {
        Self::of(Stored, a, Summing::by(parameters))
    }
}

impl<'a, A: Scalar, L> CsrRows<'a, A, L> {
    fn of(load: L, a: CsrSource<'a, A>, summing: Summing) -> Self {
        let walk = summing.walk(a.view().row_ptr());
        Self { a, load, summing, walk }
    }
}

/// The plan of `csr-nnz-balanced` with what `load` takes for the values.
pub(super) fn plan_of<'a, A: Scalar, T: Scalar>(
    load: impl Load<A, T> + 'a,
    a: CsrSource<'a, A>,
    summing: Summing,
    threads: &Threads,
) -> BoxedOwnPlan<'a, T> {
    let row_ptr = a.view().row_ptr();
    let shared =
        Partition::shared(threads, a.view().nnz(), |shares| partition::by_entries(row_ptr, shares));
    plan(CsrRows::of(load, a, summing), shared)
}

impl<A: Scalar, T: Scalar, L: Load<A, T>> RowSums<T> for CsrRows<'_, A, L> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self, rest: usize) -> Memory {
        Memory::borrowed(&self.a.view(), rest)
    }

    fn multiply(&self, rows: Range<usize>, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (load, a) = (self.load, &self.a.view());
        self.walk.multiply(load, a, rows, scaling, x, y, self.summing);
    }

    fn run_by(&mut self, parameters: &Parameters) -> bool {
        self.summing = Summing::by(parameters);
        // Rows that are gone through without branches are too short to prefetch.
        self.walk == Walk::Loops || !self.summing.ahead()
    }

    fn set_values(
        &mut self,
        new: NewValues<'_, T>,
        threads: Option<&Threads>,
    ) -> Result<(), PlanError> {
        values::set(&mut self.a, L::to_store(new)?, threads)
    }
}

/// The division of the rows, or of blocks of them.
pub(super) enum Partition {
    /// All on the calling thread.
    Serial,
    /// Chunks of a loop.
    Loop(Loop),
    /// A number of equal blocks, distributed by a loop.
    Blocks(usize, Loop),
    /// Equal parts, one for each thread.
    Even(Threads),
    /// Share s is `bounds[s]..bounds[s + 1]`; those of thread t are `of_threads[t]..of_threads[t + 1]`.
    Shares { threads: Threads, of_threads: Vec<usize>, bounds: Vec<usize> },
}

impl Partition {
    /// Chunks of `count` units, with the schedule that the parameters describe.
    pub(super) fn scheduled(threads: &Threads, count: usize, parameters: &Parameters) -> Self {
        Self::Loop(Loop::new(threads, count, parameters))
    }

    /// The number of blocks of rows and the schedule that the parameters describe.
    pub(super) fn blocks(threads: &Threads, rows: usize, parameters: &Parameters) -> Self {
        let blocks = schedule::blocks(parameters, rows);
        Self::Blocks(blocks, Loop::new(threads, blocks, parameters))
    }

    /// Shares of a matrix with so many entries; `divide` gives the bounds of so many.
    pub(super) fn shared(
        threads: &Threads,
        entries: usize,
        divide: impl FnOnce(usize) -> Vec<usize>,
    ) -> Self {
        let of_threads = threads.shares(entries);
        let bounds = divide(of_threads[threads.count()]);
        Self::Shares { threads: threads.clone(), of_threads, bounds }
    }

    /// The threads that the parts run on; `None` for the calling thread.
    fn threads(&self) -> Option<&Threads> {
        match self {
            Self::Serial => None,
            Self::Loop(chunks) | Self::Blocks(_, chunks) => Some(chunks.threads()),
            Self::Even(threads) | Self::Shares { threads, .. } => Some(threads),
        }
    }

    /// Calls `body` with ranges that do not overlap and cover all of `count` units.
    fn run(&self, count: usize, body: impl Fn(Range<usize>) + Sync) {
        match self {
            Self::Serial => body(0..count),
            Self::Loop(chunks) => chunks.run(body),
            Self::Blocks(blocks, numbers) => numbers.run(|numbers| {
                numbers.for_each(|block| body(partition::even(count, *blocks, block)));
            }),
            Self::Even(threads) => {
                threads.run(|part| body(partition::even(count, threads.count(), part)));
            }
            Self::Shares { threads, of_threads, bounds } => {
                let run = |_, share: usize| body(bounds[share]..bounds[share + 1]);
                threads.share(of_threads, run);
            }
        }
    }

    /// Bytes that it holds.
    fn bytes(&self) -> usize {
        match self {
            Self::Shares { of_threads, bounds, .. } => {
                size_of_val(&**bounds) + size_of_val(&**of_threads)
            }
            _ => 0,
        }
    }
}

struct RowProduct<A> {
    a: A,
    partition: Partition,
}

/// The plan of the sums of all rows, over a partition of them.
pub(super) fn plan<'a, T: Scalar>(
    a: impl RowSums<T> + 'a,
    partition: Partition,
) -> BoxedOwnPlan<'a, T> {
    boxed(RowProduct { a, partition })
}

impl<T: Scalar, A: RowSums<T>> Product<T> for RowProduct<A> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        let Partition::Shares { threads: on, .. } = &mut self.partition else { return false };
        *on = threads.clone();
        self.a.run_by(parameters)
    }

    fn memory(&self) -> Memory {
        self.a.memory(self.partition.bytes())
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let y = Disjoint::new(y);
        self.partition.run(self.a.count(), |units| {
            // SAFETY: the parts of a partition, and so their rows, do not overlap.
            let y = unsafe { y.range(self.a.rows(&units)) };
            self.a.multiply(units, scaling, x, y);
        });
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        self.a.set_values(new, self.partition.threads())
    }
}

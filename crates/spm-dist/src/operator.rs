//! Products with a distributed matrix.

use std::iter;
use std::sync::Arc;
use std::time::Instant;

use spm_cpu::spmv::BoxedPlan;
use spm_cpu::{PlanOptions, spmm, spmv, transposed};
use spm_formats::kernel::{PlanError, Scaling, check_length, split_label};
use spm_formats::{Csr, DenseShape, Layout, NewValues, Replacement, Scalar};

use crate::comm::agree;
use crate::error::Failure;
use crate::{Channel, Communicator, DistCsr, DistError, Halo, bytes};

/// The kernel that takes every matrix.
const PLAIN: &str = "csr-nnz-balanced";
/// The same of SpMM.
const PLAIN_MANY: &str = "csr-rows";

/// The kernel of all blocks on all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kernel {
    /// Rank 0 chooses for its largest tile, and every rank takes its choice. Where one of them cannot plan it
    /// for its tiles, or for its boundary rows, a plain CSR kernel takes its place there, on all ranks.
    #[default]
    Auto,
    /// An id of the registry of SpMV (one column) or SpMM of `spm-cpu`, with or without parameters:
    /// `csr-nnz-balanced`, `csr-rows[schedule=dynamic]`.
    Fixed(String),
}

/// Options of a [`DistOperator`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Columns of X and Y, row-major; 1 for vectors.
    pub columns: usize,
    /// The kernel.
    pub kernel: Kernel,
    /// Also prepares the product with the transpose, for one column.
    pub transpose: bool,
    /// Multiplies the local block while the halo is exchanged; otherwise after it.
    pub overlap: bool,
    /// Threads and memory of this rank.
    pub plan: PlanOptions,
}

impl Default for Options {
    /// One column, the kernel of rank 0's choice, overlap, one thread.
    fn default() -> Self {
        Self {
            columns: 1,
            kernel: Kernel::Auto,
            transpose: false,
            overlap: true,
            plan: PlanOptions::with_threads(1),
        }
    }
}

/// Seconds of the parts of one product on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times {
    /// Elements of x are copied to messages, and the messages started.
    pub pack: f64,
    /// The local block, with the looks at messages between its tiles.
    pub local: f64,
    /// Waiting for messages that have not arrived by then.
    pub wait: f64,
    /// The boundary rows.
    pub boundary: f64,
}

/// y = alpha A x + beta y for a [`DistCsr`]; x and y are divided over the ranks as its columns and rows.
///
/// A product is collective. It allocates nothing after the first one. The bits of a result are the same
/// for each run with one number of ranks; with a kernel that sums each row independently of others
/// (`csr-serial`, `csr-rows`, `csr-nnz-balanced`, ...) they are those of one device.
///
/// After an error of a product other than wrong lengths every further one has the same error.
pub struct DistOperator<T> {
    a: DistCsr<T>,
    columns: usize,
    label: String,
    /// That of the boundary rows.
    boundary_label: String,
    overlap: bool,
    options: PlanOptions,
    tiles: Vec<BoxedPlan<'static, T>>,
    boundary: BoxedPlan<'static, T>,
    channel: Box<dyn Channel>,
    /// X and Y of the boundary block.
    x: Vec<T>,
    y: Vec<T>,
    transposed: Option<Transposed<T>>,
    failure: Failure,
}

/// What y = A^T x needs besides.
struct Transposed<T> {
    tiles: Vec<BoxedPlan<'static, T>>,
    boundary: BoxedPlan<'static, T>,
    /// From ghost entries to their owners.
    channel: Box<dyn Channel>,
}

impl<T> std::fmt::Debug for DistOperator<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { columns, label, overlap, .. } = self;
        let mut out = f.debug_struct("DistOperator");
        out.field("columns", columns).field("label", label).field("overlap", overlap);
        out.finish_non_exhaustive()
    }
}

impl<T: Scalar> DistOperator<T> {
    /// Plans the products. Collective.
    ///
    /// # Errors
    /// On every rank the same: a kernel that is not there or does not take the matrix, a memory budget
    /// that is too small, a transpose for several columns, columns or kernels that differ between ranks.
    pub fn new(
        comm: &(impl Communicator + ?Sized),
        a: DistCsr<T>,
        options: &Options,
    ) -> Result<Self, DistError> {
        let k = options.columns;
        let asked = match &options.kernel {
            Kernel::Auto => "auto",
            Kernel::Fixed(label) => label,
        };
        let identity = format!("{k} columns, kernel {asked}, transpose {}", options.transpose);
        crate::same_everywhere(comm, &identity)?;
        let prepared = if options.transpose && k != 1 {
            Err(DistError::Unprepared("the transpose is for one column"))
        } else {
            dense(k)
                .check::<T>((a.local_rows(), a.boundary.a.cols().max(a.local_cols())))
                .map_err(DistError::from)
        };
        agree(comm, prepared)?;
        let chosen = if options.kernel == Kernel::Auto {
            choose(comm, &a, options)?
        } else {
            asked.to_owned()
        };
        let (label, tiles) = planned(comm, a.tiles.iter().map(|tile| &tile.a), &chosen, options)?;
        let (boundary_label, mut boundary) =
            planned(comm, iter::once(&a.boundary.a), &chosen, options)?;
        let boundary = boundary.remove(0);
        let halo = &a.halo;
        let sends = Halo::messages(halo.sends(), k * T::BYTES);
        let receives = Halo::messages(halo.receives(), k * T::BYTES);
        let channel = comm.channel(&sends, &receives)?;
        let transposed = if options.transpose {
            let plan = |a: &Arc<Csr<T>>| transposed::plan(a, &options.plan);
            let planned = a.tiles.iter().map(|tile| plan(&tile.a)).collect::<Result<Vec<_>, _>>();
            let planned = planned.and_then(|tiles| Ok((tiles, plan(&a.boundary.a)?)));
            let (tiles, boundary) = agree(comm, planned.map_err(DistError::from))?;
            Some(Transposed { tiles, boundary, channel: comm.channel(&receives, &sends)? })
        } else {
            None
        };
        let (x, y) =
            (vec![T::ZERO; a.boundary.a.cols() * k], vec![T::ZERO; a.boundary.a.rows() * k]);
        let (overlap, options) = (options.overlap, options.plan.clone());
        Ok(Self {
            a,
            columns: k,
            label,
            boundary_label,
            overlap,
            options,
            tiles,
            boundary,
            channel,
            x,
            y,
            transposed,
            failure: Failure::default(),
        })
    }

    /// The matrix.
    pub fn matrix(&self) -> &DistCsr<T> {
        &self.a
    }

    /// The kernel of the local block and its parameters, the same on every rank.
    pub fn kernel(&self) -> &str {
        &self.label
    }

    /// The kernel of the boundary rows, the same on every rank. It is another one only where
    /// [`Kernel::Auto`] has chosen one that does not take the boundary rows of every rank.
    pub fn boundary_kernel(&self) -> &str {
        &self.boundary_label
    }

    /// Columns of X and Y.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether further products multiply the local block while the halo is exchanged: see
    /// [`Options::overlap`]. The bits of a result do not depend on it.
    pub fn set_overlap(&mut self, overlap: bool) {
        self.overlap = overlap;
    }

    /// Bytes that one product moves at least on this rank: each stored array, x and y once.
    pub fn bytes_moved(&self) -> u64 {
        let plans = self.tiles.iter().chain([&self.boundary]);
        // Each tile counts all of x.
        let matrix = plans.map(|plan| plan.footprint().matrix_bytes).sum::<u64>();
        let vectors = self.a.local_cols() + self.a.local_rows() + self.a.halo.ghosts().len();
        matrix + (vectors * self.columns * T::BYTES) as u64
    }

    /// Bytes of the matrix, the plans and the buffers of this rank.
    pub fn memory_bytes(&self) -> u64 {
        let plans = self.tiles.iter().chain([&self.boundary]);
        let plans = plans.map(|plan| plan.footprint().plan_bytes).sum::<u64>();
        let buffers = size_of_val(&*self.x) + size_of_val(&*self.y);
        self.a.memory_bytes() + plans + buffers as u64
    }

    /// `y` = A `x`: local columns x k and local rows x k elements, row-major. Collective.
    ///
    /// # Errors
    /// Wrong lengths; errors of the communication. A rank that has given up is one for those that wait.
    pub fn apply(&mut self, x: &[T], y: &mut [T]) -> Result<(), DistError> {
        self.multiply(Scaling::OVERWRITE, x, None, y).map(drop)
    }

    /// `y` = `alpha` A `x` + `beta` `y`. With `beta` = 0 `y` is not read. Collective.
    ///
    /// # Errors
    /// As [`DistOperator::apply`].
    pub fn apply_scaled(
        &mut self,
        alpha: T,
        x: &[T],
        beta: T,
        y: &mut [T],
    ) -> Result<(), DistError> {
        self.multiply(Scaling::new(alpha, beta), x, None, y).map(drop)
    }

    /// `r` = `b` - A `x`. Collective.
    ///
    /// # Errors
    /// As [`DistOperator::apply`].
    pub fn residual(&mut self, x: &[T], b: &[T], r: &mut [T]) -> Result<(), DistError> {
        self.multiply(Scaling::new(-T::ONE, T::ONE), x, Some(b), r).map(drop)
    }

    /// As [`DistOperator::apply`], with the times of its parts on this rank. Collective.
    ///
    /// # Errors
    /// As [`DistOperator::apply`].
    pub fn apply_timed(&mut self, x: &[T], y: &mut [T]) -> Result<Times, DistError> {
        self.multiply(Scaling::OVERWRITE, x, None, y)
    }

    /// Checks the operands, and remembers errors of the product.
    fn multiply(
        &mut self,
        scaling: Scaling<T>,
        x: &[T],
        z: Option<&[T]>,
        y: &mut [T],
    ) -> Result<Times, DistError> {
        let k = self.columns;
        check_length("x", self.a.local_cols() * k, x.len())?;
        check_length("y", self.a.local_rows() * k, y.len())?;
        if let Some(z) = z {
            check_length("z", y.len(), z.len())?;
        }
        self.failure.check()?;
        let result = self.run(scaling, x, z, y);
        self.failure.keep(result)
    }

    /// `y` = alpha A `x` + beta z, where z is `y` unless it is given.
    fn run(
        &mut self,
        scaling: Scaling<T>,
        x: &[T],
        z: Option<&[T]>,
        y: &mut [T],
    ) -> Result<Times, DistError> {
        let k = self.columns;
        let mut times = Times::default();
        let mut since = Instant::now();
        let mut lap = |part: &mut f64| {
            let now = Instant::now();
            *part += (now - std::mem::replace(&mut since, now)).as_secs_f64();
        };

        gather(self.a.halo.local(), x, bytes::scalars_mut(self.channel.outgoing()), k);
        self.channel.start()?;
        lap(&mut times.pack);
        if !self.overlap {
            self.channel.wait()?;
            lap(&mut times.wait);
        }

        let boundary = &self.a.boundary;
        // Before the local block, which writes all of y.
        if scaling.beta != T::ZERO {
            gather(&boundary.rows, z.unwrap_or(y), &mut self.y, k);
        }
        let mut arrived = !self.overlap;
        for (tile, plan) in self.a.tiles.iter().zip(&self.tiles) {
            let rows = tile.rows.start * k..tile.rows.end * k;
            let y = &mut y[rows.clone()];
            match z {
                Some(z) => plan.run_adding(scaling, x, &z[rows], y)?,
                None => plan.run_scaled(scaling, x, y)?,
            }
            if !arrived {
                arrived = self.channel.poll()?;
            }
        }
        lap(&mut times.local);
        let (below, own) = (boundary.below * k, boundary.local.len() * k);
        gather(&boundary.local, x, &mut self.x[below..below + own], k);
        lap(&mut times.boundary);
        if !arrived {
            self.channel.wait()?;
            lap(&mut times.wait);
        }
        let ghosts: &[T] = bytes::scalars(self.channel.incoming());
        self.x[..below].copy_from_slice(&ghosts[..below]);
        self.x[below + own..].copy_from_slice(&ghosts[below..]);
        self.boundary.run_scaled(scaling, &self.x, &mut self.y)?;
        scatter(&boundary.rows, &self.y, y, k);
        lap(&mut times.boundary);
        Ok(times)
    }

    /// `y` = A^T `x`: local rows and local columns elements, for [`Options::transpose`]. Each rank adds
    /// the sums of its rows, then those of other ranks in their order. Collective.
    ///
    /// # Errors
    /// As [`DistOperator::apply`]; [`DistError::Unprepared`].
    pub fn apply_transpose(&mut self, x: &[T], y: &mut [T]) -> Result<(), DistError> {
        self.apply_transpose_scaled(T::ONE, x, T::ZERO, y)
    }

    /// `y` = `alpha` A^T `x` + `beta` `y`; otherwise as [`DistOperator::apply_transpose`]. Collective.
    ///
    /// # Errors
    /// As [`DistOperator::apply_transpose`].
    pub fn apply_transpose_scaled(
        &mut self,
        alpha: T,
        x: &[T],
        beta: T,
        y: &mut [T],
    ) -> Result<(), DistError> {
        if self.transposed.is_none() {
            return Err(DistError::Unprepared("the operator was made without `transpose`"));
        }
        check_length("x", self.a.local_rows(), x.len())?;
        check_length("y", self.a.local_cols(), y.len())?;
        self.failure.check()?;
        let result = self.run_transposed(alpha, x, beta, y);
        self.failure.keep(result)
    }

    /// `y` = `alpha` A^T `x` + `beta` `y`.
    fn run_transposed(&mut self, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<(), DistError> {
        let Some(Transposed { tiles, boundary: plan, channel }) = &mut self.transposed else {
            return Ok(());
        };
        let boundary = &self.a.boundary;
        gather(&boundary.rows, x, &mut self.y, 1);
        plan.run_scaled(Scaling::new(alpha, T::ZERO), &self.y, &mut self.x)?;
        let (below, end) = (boundary.below, boundary.below + boundary.local.len());
        let outgoing = bytes::scalars_mut(channel.outgoing());
        outgoing[..below].copy_from_slice(&self.x[..below]);
        outgoing[below..].copy_from_slice(&self.x[end..]);
        channel.start()?;
        let mut arrived = false;
        for (number, (tile, plan)) in self.a.tiles.iter().zip(tiles).enumerate() {
            let scaling = Scaling::new(alpha, if number == 0 { beta } else { T::ONE });
            plan.run_scaled(scaling, &x[tile.rows.clone()], y)?;
            if !arrived {
                arrived = channel.poll()?;
            }
        }
        add(&boundary.local, &self.x[below..end], y);
        if !arrived {
            channel.wait()?;
        }
        add(self.a.halo.local(), bytes::scalars(channel.incoming()), y);
        Ok(())
    }

    /// Replaces the values of this rank's rows, in their order with ascending global columns; the
    /// pattern stays. Not collective: other ranks may keep theirs.
    ///
    /// A plan that depends on the old values is made anew, with a plain CSR kernel if its own does not
    /// take the new ones.
    ///
    /// # Errors
    /// Another number of values than there are entries: nothing has changed then.
    pub fn set_values(&mut self, values: &[T]) -> Result<(), DistError> {
        let (parts, of_boundary) = self.a.split_values(values)?;
        let (columns, options) = (self.columns, &self.options);
        let renew = Renew { label: &self.label, columns, options };
        let mut transposed = self.transposed.as_mut();
        for (number, values) in parts.into_iter().enumerate() {
            let other = transposed.as_mut().map(|plans| &mut plans.tiles[number]);
            renew.block(&mut self.a.tiles[number].a, values, &mut self.tiles[number], other)?;
        }
        let other = transposed.map(|plans| &mut plans.boundary);
        let renew = Renew { label: &self.boundary_label, columns, options };
        renew.block(&mut self.a.boundary.a, of_boundary, &mut self.boundary, other)
    }
}

/// New values for the plans of a block.
struct Renew<'a> {
    label: &'a str,
    columns: usize,
    options: &'a PlanOptions,
}

impl Renew<'_> {
    fn block<T: Scalar>(
        &self,
        a: &mut Arc<Csr<T>>,
        mut values: Vec<T>,
        product: &mut BoxedPlan<'static, T>,
        transposed: Option<&mut BoxedPlan<'static, T>>,
    ) -> Result<(), DistError> {
        if product.set_values(NewValues::Into(a, (&mut values).into())).is_err() {
            Replacement::from(&mut values).put_into(Arc::make_mut(a));
            let anew = plan(a, self.label, self.columns, self.options);
            let other = || plan(a, plain(self.columns), self.columns, self.options);
            *product = anew.or_else(|_| other())?;
        }
        if let Some(transposed) = transposed {
            *transposed = transposed::plan(&*a, self.options)?;
        }
        Ok(())
    }
}

/// The kernel that takes every matrix.
fn plain(columns: usize) -> &'static str {
    if columns == 1 { PLAIN } else { PLAIN_MANY }
}

fn dense(columns: usize) -> DenseShape {
    DenseShape { k: columns, layout: Layout::RowMajor }
}

/// Plans a block with the kernel of a label.
fn plan<T: Scalar>(
    a: &Arc<Csr<T>>,
    label: &str,
    columns: usize,
    options: &PlanOptions,
) -> Result<BoxedPlan<'static, T>, DistError> {
    let (id, parameters) = split_label(label);
    let unknown = || PlanError::Unsupported {
        kernel: PLAIN,
        reason: format!("no kernel of this operation and element type is called {label:?}"),
    };
    let wrong = |error: spm_formats::kernel::ParameterError| PlanError::Unsupported {
        kernel: PLAIN,
        reason: error.to_string(),
    };
    let plan = if columns == 1 {
        let kernel = spmv::find::<T>(id).ok_or_else(unknown)?;
        kernel.plan(a, &kernel.info.parse_parameters(parameters).map_err(wrong)?, options)?
    } else {
        let kernel = spmm::find::<T>(id).ok_or_else(unknown)?;
        let parameters = kernel.info.parse_parameters(parameters).map_err(wrong)?;
        kernel.plan(a, dense(columns), &parameters, options)?
    };
    Ok(plan)
}

type Plans<T> = Vec<BoxedPlan<'static, T>>;

/// Plans blocks of this rank with the label, or, where that is rank 0's choice and one rank cannot, with the
/// plain kernel; returns the label that all ranks have taken.
fn planned<'a, T: Scalar>(
    comm: &(impl Communicator + ?Sized),
    blocks: impl Iterator<Item = &'a Arc<Csr<T>>> + Clone,
    label: &str,
    options: &Options,
) -> Result<(String, Plans<T>), DistError> {
    let with = |label: &str| {
        let plans = blocks.clone().map(|a| plan(a, label, options.columns, &options.plan));
        let plans = agree(comm, plans.collect::<Result<Plans<T>, _>>())?;
        Ok((label.to_owned(), plans))
    };
    match (&options.kernel, with(label)) {
        (Kernel::Auto, Err(DistError::Rank { .. })) => with(plain(options.columns)),
        (_, planned) => planned,
    }
}

/// The label of rank 0's choice.
fn choose<T: Scalar>(
    comm: &(impl Communicator + ?Sized),
    a: &DistCsr<T>,
    options: &Options,
) -> Result<String, DistError> {
    let mut label = String::new();
    if comm.rank() == 0 {
        let tile = a.tiles.iter().map(|tile| &tile.a).max_by_key(|a| a.nnz());
        let auto = tile.map(|a| plan(a, "auto", options.columns, &options.plan));
        let choice = auto.and_then(|plan| plan.ok()?.choice());
        // `csr-rows[...] on 2 threads`
        let choice = choice.map(|choice| match choice.rsplit_once(" on ") {
            Some((label, _)) => label.to_owned(),
            None => choice,
        });
        label = choice.unwrap_or_else(|| plain(options.columns).to_owned());
    }
    let all = comm.all_gather(label.as_bytes())?;
    Ok(String::from_utf8_lossy(&all[0]).into_owned())
}

/// `to` = the rows `rows` of `from`, each of `k` elements.
fn gather<T: Scalar>(rows: &[u32], from: &[T], to: &mut [T], k: usize) {
    if k == 1 {
        for (to, &row) in to.iter_mut().zip(rows) {
            *to = from[row as usize];
        }
    } else if k > 0 {
        for (to, &row) in to.chunks_exact_mut(k).zip(rows) {
            to.copy_from_slice(&from[row as usize * k..][..k]);
        }
    }
}

/// The rows `rows` of `to` = `from`.
fn scatter<T: Scalar>(rows: &[u32], from: &[T], to: &mut [T], k: usize) {
    if k > 0 {
        for (from, &row) in from.chunks_exact(k).zip(rows) {
            to[row as usize * k..][..k].copy_from_slice(from);
        }
    }
}

/// Adds `from` to elements of `to`.
fn add<T: Scalar>(rows: &[u32], from: &[T], to: &mut [T]) {
    for (&from, &row) in from.iter().zip(rows) {
        to[row as usize] += from;
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::MemoryBudget;

    use super::*;
    use crate::{Partition, Rows, threads};

    /// ELLPACK pads every row to the longest one: the boundary rows of rank 1 go beyond the budget, and no other
    /// block does.
    #[test]
    fn boundary_rows_alone_fall_back_and_on_every_rank() {
        let (n, longest) = (8000, 2000);
        let rows = Partition::even(n, 2);
        let labels = |kernel: Kernel| {
            threads::run(2, |comm| {
                let mine = Rows::generate(rows.range(comm.rank()), n, |i, row| match i {
                    4000 => row.extend((0..longest).map(|col| (col, 1.0))),
                    _ if i % 4 == 0 => row.push(((i + n / 2) % n, 1.0)),
                    _ => row.push((i, 1.0)),
                })?;
                let a = DistCsr::new(comm, &rows, &rows, mine)?;
                let mut options = Options { kernel: kernel.clone(), ..Options::default() };
                options.plan.budget = MemoryBudget::bytes(4 << 20);
                let tiles = a.tiles.iter().map(|tile| &tile.a);
                let (local, _) = planned(comm, tiles, "ell-rows", &options)?;
                let (boundary, _) = planned(comm, iter::once(&a.boundary.a), "ell-rows", &options)?;
                Ok((local, boundary))
            })
        };
        let expected = ("ell-rows".to_owned(), PLAIN.to_owned());
        assert_eq!(labels(Kernel::Auto).unwrap(), [expected.clone(), expected]);
        let refused = labels(Kernel::Fixed("ell-rows".to_owned())).unwrap_err().to_string();
        assert!(refused.starts_with("rank 1: "), "{refused}");
    }
}

//! Products with a distributed matrix in device memory.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use spm_formats::kernel::{PlanError, Scaling, check_length, split_label};
use spm_formats::{Csr, DenseShape, Layout, Scalar};
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsr, DeviceProductPlan, DeviceRows, DeviceScalar, DeviceVector,
    Event, GpuError, PlanOptions, Stream, spmm, spmv,
};

use super::exchange::{Exchange, Plan, everywhere, exchange_of};
use super::{Nccl, Transport};
use crate::comm::agree;
use crate::error::Failure;
use crate::{Communicator, DistCsr, DistError, Kernel, Times};

/// The kernel that takes every matrix, and that of SpMM.
const PLAIN: &str = "csr-subwarp-per-row";
const PLAIN_MANY: &str = "csr-vector";
/// That of the transpose, whose rows may have any length.
const OF_TRANSPOSE: &str = "csr-segmented-sum";

/// Options of a [`DeviceOperator`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeviceOptions {
    /// Columns of X and Y, row-major; 1 for vectors.
    pub columns: usize,
    /// The kernel, of the registry of SpMV (one column) or SpMM of `spm-gpu`. A parameter that is not given
    /// may be chosen for the rows of each block.
    pub kernel: Kernel,
    /// Also prepares the product with the transpose, for one column.
    pub transpose: bool,
    /// How boundary elements get from one device to another.
    pub transport: Transport,
    /// NCCL's ranks, for [`Transport::Nccl`], and to be tried by [`Transport::Auto`].
    pub nccl: Option<Nccl>,
    /// Device memory of this rank, and whether values are expected to change.
    pub plan: PlanOptions,
}

impl Default for DeviceOptions {
    /// One column, the kernel of rank 0's choice, the fastest transport.
    fn default() -> Self {
        Self {
            columns: 1,
            kernel: Kernel::Auto,
            transpose: false,
            transport: Transport::Auto,
            nccl: None,
            plan: PlanOptions::default(),
        }
    }
}

type BoxedPlan<T> = Box<dyn DeviceProductPlan<T>>;

/// y = alpha A x + beta y for a [`DistCsr`] on the devices of the ranks; x and y are divided over the ranks
/// as its columns and rows, and lie on their devices.
///
/// A product is collective. Boundary elements of x are gathered and exchanged in a stream of the operator,
/// while the local block is multiplied in the stream of y; then come the boundary rows. A product returns
/// when it is in these streams (with [`Transport::Staged`], when the host has carried the messages), and
/// allocates no memory. As for [`DistOperator`](crate::DistOperator), the bits are those of one device for
/// kernels that sum each row independently, with parameters that do not depend on the matrix:
/// `csr-subwarp-per-row[threads-per-row=4]`.
///
/// After an error of a product other than wrong operands every further one has the same error.
pub struct DeviceOperator<T> {
    a: DistCsr<T>,
    device: Device,
    columns: usize,
    label: String,
    /// That of the boundary rows.
    boundary_label: String,
    options: PlanOptions,
    local: BoxedPlan<T>,
    boundary: BoxedPlan<T>,
    transport: Transport,
    exchange: Box<dyn Exchange<T>>,
    /// Everything but the local block; orders the uses of what follows.
    stream: Stream,
    mark: Event,
    /// Elements of x that others need, and those that boundary rows use.
    sends: DeviceRows,
    own: DeviceRows,
    boundary_rows: DeviceRows,
    /// X and Y of the boundary block.
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    transposed: Option<Transposed<T>>,
    failure: Failure,
}

/// What y = A^T x needs besides.
struct Transposed<T> {
    local: BoxedPlan<T>,
    boundary: BoxedPlan<T>,
    /// From ghost entries to their owners.
    exchange: Box<dyn Exchange<T>>,
    /// Sums of other ranks, those of one rank behind those of another, and the rows of each.
    incoming: DeviceBuffer<T>,
    neighbours: Vec<(DeviceRows, usize)>,
}

impl<T> std::fmt::Debug for DeviceOperator<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { columns, label, transport, device, .. } = self;
        let mut out = f.debug_struct("DeviceOperator");
        out.field("columns", columns).field("label", label).field("transport", transport);
        out.field("device", device).finish_non_exhaustive()
    }
}

impl<T: DeviceScalar> DeviceOperator<T> {
    /// Plans the products on this rank's device. Collective.
    ///
    /// # Errors
    /// On every rank the same: a kernel that is not there or does not take the matrix, too little memory, a
    /// transport that is not possible, columns, kernels or transports that differ between ranks.
    pub fn new(
        comm: &(impl Communicator + ?Sized),
        device: &Device,
        a: DistCsr<T>,
        options: &DeviceOptions,
    ) -> Result<Self, DistError> {
        let k = options.columns;
        let asked = match &options.kernel {
            Kernel::Auto => "auto",
            Kernel::Fixed(label) => label,
        };
        let transport = options.transport;
        let nccl = if options.nccl.is_some() { "with" } else { "without" };
        let identity =
            format!("{k} columns on GPUs, kernel {asked}, transport {transport} {nccl} NCCL");
        let identity = format!("{identity}, transpose {}", options.transpose);
        crate::same_everywhere(comm, &identity)?;
        let widest = a.boundary.a.cols().max(a.local_cols());
        let checked = if options.transpose && k != 1 {
            Err(DistError::Unprepared("the transpose is for one column"))
        } else {
            dense(k).check::<T>((a.local_rows(), widest)).map_err(DistError::from)
        };
        let block = agree(comm, checked.and_then(|()| Ok(a.local_block()?)))?;

        // With the label, or, where that is this crate's choice and one rank cannot, with the plain kernel.
        let planned = |a: &Csr<T>, label: &str| -> Result<(String, BoxedPlan<T>), DistError> {
            let with = |label: &str| {
                let plan = agree(comm, plan(device, a, label, k, &options.plan))?;
                Ok((label.to_owned(), plan))
            };
            match (&options.kernel, with(label)) {
                (Kernel::Auto, Err(DistError::Rank { .. })) => with(plain(k)),
                (_, planned) => planned,
            }
        };
        let chosen = match &options.kernel {
            Kernel::Fixed(label) => label.clone(),
            Kernel::Auto => choose(comm, device, [&block, &a.boundary.a], options)?,
        };
        let (label, local) = planned(&block, &chosen)?;
        let (boundary_label, boundary) = planned(&a.boundary.a, &chosen)?;
        let of_transpose = if options.transpose {
            let plan = |a: &Csr<T>| plan_transposed(device, a, &options.plan);
            let plans = plan(&block).and_then(|local| Ok((local, plan(&a.boundary.a)?)));
            Some(agree(comm, plans)?)
        } else {
            None
        };
        drop(block);

        let of_boundary = &a.boundary;
        let (below, own) = (of_boundary.below, of_boundary.local.len());
        let arrays = || -> Result<_, GpuError> {
            let rows = |rows: &[u32], of| DeviceRows::new(device, rows, of);
            Ok((
                (Stream::prioritized(device)?, Event::without_time(device)?),
                rows(a.halo.local(), a.local_cols())?,
                rows(&of_boundary.local, a.local_cols())?,
                rows(&of_boundary.rows, a.local_rows())?,
                DeviceBuffer::uninitialized(device, of_boundary.a.cols() * k)?,
                DeviceBuffer::uninitialized(device, of_boundary.a.rows() * k)?,
            ))
        };
        let ((stream, mark), sends, own_rows, boundary_rows, mut x, y) =
            everywhere(comm, arrays())?;
        let halo = Plan::of_halo(&a.halo, k, below, own);
        let (transport, exchange) = exchange_of(comm, device, &halo, options, &stream, &mut x)?;
        let transposed = match of_transpose {
            Some((local, boundary)) => {
                let options = DeviceOptions { transport, ..options.clone() };
                let plan = Plan::of_transpose(&a.halo);
                let arrays = || -> Result<_, GpuError> {
                    let rows = |(_, range): &(usize, Range<usize>)| {
                        let rows = &a.halo.local()[range.clone()];
                        Ok((DeviceRows::new(device, rows, a.local_cols())?, range.start))
                    };
                    let neighbours = a.halo.sends().iter().map(rows);
                    let incoming = DeviceBuffer::uninitialized(device, a.halo.local().len())?;
                    Ok((neighbours.collect::<Result<Vec<_>, GpuError>>()?, incoming))
                };
                let (neighbours, mut incoming) = everywhere(comm, arrays())?;
                let (_, exchange) =
                    exchange_of(comm, device, &plan, &options, &stream, &mut incoming)?;
                Some(Transposed { local, boundary, exchange, incoming, neighbours })
            }
            None => None,
        };
        Ok(Self {
            device: device.clone(),
            columns: k,
            label,
            boundary_label,
            options: options.plan.clone(),
            local,
            boundary,
            transport,
            exchange,
            stream,
            mark,
            sends,
            own: own_rows,
            boundary_rows,
            x,
            y,
            transposed,
            failure: Failure::default(),
            a,
        })
    }

    /// The matrix.
    pub fn matrix(&self) -> &DistCsr<T> {
        &self.a
    }

    /// The device of this rank.
    pub fn device(&self) -> &Device {
        &self.device
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

    /// How boundary elements get from one device to another, the same on every rank; not
    /// [`Transport::Auto`].
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Columns of X and Y.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes that one product moves at least on this rank: each stored array, x and y once.
    pub fn bytes_moved(&self) -> u64 {
        let matrix = [&self.local, &self.boundary]
            .map(|plan| plan.footprint().matrix_bytes)
            .iter()
            .sum::<u64>();
        let vectors = self.a.local_cols() + self.a.local_rows() + self.a.halo.ghosts().len();
        matrix + (vectors * self.columns * T::BYTES) as u64
    }

    /// Bytes of device memory of the plans and of the boundary elements of this rank.
    pub fn device_bytes(&self) -> u64 {
        let transposed = self.transposed.iter().flat_map(|of| [&of.local, &of.boundary]);
        let plans = transposed.chain([&self.local, &self.boundary]);
        let plans = plans.map(|plan| plan.footprint().plan_bytes);
        let rows = self.sends.len() + self.own.len() + self.boundary_rows.len();
        let elements = self.x.bytes() + self.y.bytes() + self.sends.len() * self.columns * T::BYTES;
        plans.sum::<u64>() + (rows * size_of::<u32>() + elements) as u64
    }

    /// `y` = A `x`: local columns x k and local rows x k elements, row-major. Collective.
    ///
    /// # Errors
    /// Wrong lengths, vectors on another device; a device that fails; errors of the communication. A rank
    /// that has given up is one for those that wait.
    pub fn apply(&mut self, x: &DeviceVector<T>, y: &mut DeviceVector<T>) -> Result<(), DistError> {
        self.multiply(Scaling::OVERWRITE, x, None, y, &mut Untimed)
    }

    /// `y` = `alpha` A `x` + `beta` `y`. With `beta` = 0 `y` is not read. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply`].
    pub fn apply_scaled(
        &mut self,
        alpha: T,
        x: &DeviceVector<T>,
        beta: T,
        y: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        self.multiply(Scaling::new(alpha, beta), x, None, y, &mut Untimed)
    }

    /// `r` = `b` - A `x`. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply`].
    pub fn residual(
        &mut self,
        x: &DeviceVector<T>,
        b: &DeviceVector<T>,
        r: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        let one = <T as Scalar>::ONE;
        self.multiply(Scaling::new(-one, one), x, Some(b), r, &mut Untimed)
    }

    /// As [`DeviceOperator::apply`], one part after the other, each of which the host waits for; their
    /// times on this rank. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply`].
    pub fn apply_in_parts(
        &mut self,
        x: &DeviceVector<T>,
        y: &mut DeviceVector<T>,
    ) -> Result<Times, DistError> {
        self.device.synchronize()?;
        let mut timed = Timed { times: Times::default(), since: Instant::now() };
        self.multiply(Scaling::OVERWRITE, x, None, y, &mut timed)?;
        Ok(timed.times)
    }

    /// `y` = A^T `x`: local rows and local columns elements, for [`DeviceOptions::transpose`]. Each rank adds
    /// the sums of its rows, then those of other ranks in their order. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply`]; [`DistError::Unprepared`].
    pub fn apply_transpose(
        &mut self,
        x: &DeviceVector<T>,
        y: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        self.apply_transpose_scaled(<T as Scalar>::ONE, x, <T as Scalar>::ZERO, y)
    }

    /// `y` = `alpha` A^T `x` + `beta` `y`; otherwise as [`DeviceOperator::apply_transpose`]. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply_transpose`].
    pub fn apply_transpose_scaled(
        &mut self,
        alpha: T,
        x: &DeviceVector<T>,
        beta: T,
        y: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        if self.transposed.is_none() {
            return Err(DistError::Unprepared("the operator was made without `transpose`"));
        }
        let lengths = [("x", self.a.local_rows(), x), ("y", self.a.local_cols(), &*y)];
        self.check(lengths.into_iter())?;
        let result = self.enqueue_transposed(Scaling::new(alpha, beta), x, y);
        self.failure.keep(result)
    }

    /// Checks operands: what it is, its length, the vector.
    fn check<'v>(
        &self,
        operands: impl Iterator<Item = (&'static str, usize, &'v DeviceVector<T>)>,
    ) -> Result<(), DistError>
    where
        T: 'v,
    {
        for (what, length, vector) in operands {
            check_length(what, length, vector.len())?;
            if !vector.device().is(&self.device) {
                return Err(GpuError::OtherDevice { what }.into());
            }
        }
        self.failure.check()
    }

    /// Checks the operands, and remembers errors of the product.
    fn multiply(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceVector<T>,
        z: Option<&DeviceVector<T>>,
        y: &mut DeviceVector<T>,
        clock: &mut dyn Clock,
    ) -> Result<(), DistError> {
        let k = self.columns;
        let z_length = z.map(|z| ("z", self.a.local_rows() * k, z));
        let operands = [("x", self.a.local_cols() * k, x), ("y", self.a.local_rows() * k, &*y)];
        self.check(operands.into_iter().chain(z_length))?;
        let result = self.enqueue(scaling, x, z, y, clock);
        self.failure.keep(result)
    }

    /// `y` = alpha A `x` + beta z, where z is `y` unless it is given.
    fn enqueue(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceVector<T>,
        z: Option<&DeviceVector<T>>,
        y: &mut DeviceVector<T>,
        clock: &mut dyn Clock,
    ) -> Result<(), DistError> {
        let k = self.columns;
        let (of_boundary, of_y) = (&self.stream, &y.stream().clone());
        let follow = |one: &Stream, other: &Stream| follow(&self.mark, one, other);
        for read in [Some(x), z].into_iter().flatten() {
            follow(of_y, read.stream())?;
        }
        follow(of_boundary, of_y)?;

        let Self { exchange, sends, own, boundary_rows, .. } = self;
        exchange.send(of_boundary, &mut |outgoing| {
            sends.gather(k, x.elements(), outgoing, 0, of_boundary)
        })?;
        clock.lap(of_boundary, |times| &mut times.pack)?;
        own.gather(k, x.elements(), &mut self.x, self.a.boundary.below, of_boundary)?;
        if scaling.beta != <T as Scalar>::ZERO {
            let added = z.unwrap_or(y);
            boundary_rows.gather(k, added.elements(), &mut self.y, 0, of_boundary)?;
            if z.is_none() {
                // Before the local block, which writes all of y.
                follow(of_y, of_boundary)?;
            }
        }
        clock.lap(of_boundary, |times| &mut times.boundary)?;
        match z {
            Some(z) => {
                let y = y.elements_mut();
                self.local.launch_adding(scaling, x.elements(), z.elements(), y, of_y)?;
            }
            None => self.local.launch_scaled(scaling, x.elements(), y.elements_mut(), of_y)?,
        }
        clock.lap(of_y, |times| &mut times.local)?;
        exchange.receive(of_boundary, &mut self.x)?;
        clock.lap(of_boundary, |times| &mut times.wait)?;
        self.boundary.launch_scaled(scaling, &self.x, &mut self.y, of_boundary)?;
        follow(of_boundary, of_y)?;
        boundary_rows.scatter(k, &self.y, y.elements_mut(), of_boundary)?;
        clock.lap(of_boundary, |times| &mut times.boundary)?;
        follow(of_y, of_boundary)?;
        // Later writes of what was read.
        for read in [Some(x), z].into_iter().flatten() {
            follow(read.stream(), of_y)?;
        }
        Ok(())
    }

    /// `y` = alpha A^T `x` + beta `y`.
    fn enqueue_transposed(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceVector<T>,
        y: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        let Some(transposed) = &mut self.transposed else { return Ok(()) };
        let Transposed { local, boundary, exchange, incoming, neighbours } = transposed;
        let (of_boundary, of_y) = (&self.stream, &y.stream().clone());
        let follow = |one: &Stream, other: &Stream| follow(&self.mark, one, other);
        follow(of_y, x.stream())?;
        follow(of_boundary, of_y)?;
        // The boundary rows first: their sums belong to other ranks, too.
        self.boundary_rows.gather(1, x.elements(), &mut self.y, 0, of_boundary)?;
        let once = Scaling::new(scaling.alpha, <T as Scalar>::ZERO);
        boundary.launch_scaled(once, &self.y, &mut self.x, of_boundary)?;
        let (below, end) = (self.a.boundary.below, self.a.boundary.below + self.own.len());
        exchange.send(of_boundary, &mut |outgoing| {
            let above = outgoing.len() - below;
            outgoing.copy_part_from_on(0, &self.x, 0, below, of_boundary)?;
            outgoing.copy_part_from_on(below, &self.x, end, above, of_boundary)
        })?;
        local.launch_scaled(scaling, x.elements(), y.elements_mut(), of_y)?;
        exchange.receive(of_boundary, incoming)?;
        follow(of_boundary, of_y)?;
        let y = y.elements_mut();
        self.own.scatter_add(1, &self.x, below, y, of_boundary)?;
        for (rows, first) in &*neighbours {
            rows.scatter_add(1, incoming, *first, y, of_boundary)?;
        }
        follow(of_y, of_boundary)?;
        Ok(follow(x.stream(), of_y)?)
    }

    /// Replaces the values of this rank's rows, in their order with ascending global columns; the pattern
    /// stays. Not collective: other ranks may keep theirs.
    ///
    /// A plan that depends on the old values is made anew, with a plain CSR kernel if its own does not take
    /// the new ones.
    ///
    /// # Errors
    /// Another number of values than there are entries: nothing has changed then. Too little memory; a
    /// device that fails.
    pub fn set_values(&mut self, values: &[T]) -> Result<(), DistError> {
        let (parts, of_boundary) = self.a.split_values(values)?;
        for (tile, values) in self.a.tiles.iter_mut().zip(&parts) {
            Arc::make_mut(&mut tile.a).values_mut().copy_from_slice(values);
        }
        Arc::make_mut(&mut self.a.boundary.a).values_mut().copy_from_slice(&of_boundary);
        let of_local = parts.concat();
        if !self.takes_values(&of_local, |op| &mut op.local)? {
            self.local = self.plan_anew(&*self.a.local_block()?, &self.label)?;
        }
        if !self.takes_values(&of_boundary, |op| &mut op.boundary)? {
            self.boundary = self.plan_anew(&self.a.boundary.a, &self.boundary_label)?;
        }
        if let Some(transposed) = &mut self.transposed {
            let plan = |a: &Csr<T>| plan_transposed(&self.device, a, &self.options);
            transposed.local = plan(&*self.a.local_block()?)?;
            transposed.boundary = plan(&self.a.boundary.a)?;
        }
        Ok(())
    }

    /// Gives new values to a plan; whether it takes them.
    fn takes_values(
        &mut self,
        values: &[T],
        plan: impl Fn(&mut Self) -> &mut BoxedPlan<T>,
    ) -> Result<bool, DistError> {
        let values = DeviceBuffer::from_slice(&self.device, values)?;
        let stream = self.stream.clone();
        match plan(self).set_values(&values, &stream) {
            Ok(()) => Ok(true),
            Err(GpuError::Values(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn plan_anew(&self, a: &Csr<T>, label: &str) -> Result<BoxedPlan<T>, DistError> {
        let plan = |label| plan(&self.device, a, label, self.columns, &self.options);
        plan(label).or_else(|_| plan(plain(self.columns)))
    }
}

/// `one` goes on when `other` has done what it has now.
fn follow(mark: &Event, one: &Stream, other: &Stream) -> Result<(), GpuError> {
    if one.is(other) {
        return Ok(());
    }
    mark.record(other)?;
    one.wait(mark)
}

/// Takes the times of the parts of a product.
trait Clock {
    /// Ends a part, whose last work is in `stream`.
    fn lap(&mut self, stream: &Stream, part: fn(&mut Times) -> &mut f64) -> Result<(), GpuError>;
}

struct Untimed;

impl Clock for Untimed {
    fn lap(&mut self, _: &Stream, _: fn(&mut Times) -> &mut f64) -> Result<(), GpuError> {
        Ok(())
    }
}

struct Timed {
    times: Times,
    since: Instant,
}

impl Clock for Timed {
    fn lap(&mut self, stream: &Stream, part: fn(&mut Times) -> &mut f64) -> Result<(), GpuError> {
        stream.synchronize()?;
        let now = Instant::now();
        *part(&mut self.times) += (now - std::mem::replace(&mut self.since, now)).as_secs_f64();
        Ok(())
    }
}

fn dense(columns: usize) -> DenseShape {
    DenseShape { k: columns, layout: Layout::RowMajor }
}

fn plain(columns: usize) -> &'static str {
    if columns == 1 { PLAIN } else { PLAIN_MANY }
}

/// Plans a block with the kernel of a label.
fn plan<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    label: &str,
    columns: usize,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, DistError> {
    let (id, parameters) = split_label(label);
    let unsupported = |reason| PlanError::Unsupported { kernel: PLAIN, reason };
    let unknown =
        || unsupported(format!("no kernel of this operation for a GPU is called {label:?}"));
    let wrong = |error: spm_formats::kernel::ParameterError| unsupported(error.to_string());
    let plan = if columns == 1 {
        let kernel = spmv::find::<T>(id).ok_or_else(unknown)?;
        let parameters = kernel.info.parse_parameters(parameters).map_err(wrong)?;
        kernel.plan(device, a.view(), &parameters, options)?
    } else {
        let kernel = spmm::find::<T>(id).ok_or_else(unknown)?;
        let parameters = kernel.info.parse_parameters(parameters).map_err(wrong)?;
        kernel.plan(device, a.view(), dense(columns), &parameters, options)?
    };
    Ok(plan)
}

/// Plans the product with the transpose of a block, which is transposed on the device.
fn plan_transposed<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, DistError> {
    let transpose = Arc::new(DeviceCsr::transposed(device, a.view(), options)?);
    let kernel = spmv::find::<T>(OF_TRANSPOSE).expect("a registered kernel");
    let plan = kernel.plan_on_device(&transpose, &kernel.info.defaults(), options);
    Ok(plan.expect("it is planned on the device")?)
}

/// The label of rank 0's choice for the block with the most entries. Collective.
fn choose<T: DeviceScalar>(
    comm: &(impl Communicator + ?Sized),
    device: &Device,
    blocks: [&Csr<T>; 2],
    options: &DeviceOptions,
) -> Result<String, DistError> {
    let mut label = String::new();
    if comm.rank() == 0 {
        let [local, boundary] = blocks;
        let block = if local.nnz() >= boundary.nnz() { local } else { boundary };
        let auto = plan(device, block, "auto", options.columns, &options.plan);
        let choice = auto.ok().and_then(|plan| plan.choice());
        label = choice.unwrap_or_else(|| plain(options.columns).to_owned());
    }
    let all = comm.all_gather(label.as_bytes())?;
    Ok(String::from_utf8_lossy(&all[0]).into_owned())
}

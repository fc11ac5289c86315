//! A distributed matrix in device memory, planned for its products.

mod products;

use std::ops::Range;
use std::sync::Arc;

use spm_formats::Csr;
use spm_gpu::{
    Device, DeviceBuffer, DeviceRows, DeviceScalar, Event, GpuError, PlanOptions, Stream,
};

use super::exchange::{Exchange, Plan, everywhere, exchange_of};
use super::plans::{BoxedPlan, choose, dense, plain, plan, plan_transposed};
use super::{Nccl, Transport};
use crate::comm::agree;
use crate::error::Failure;
use crate::{Communicator, DistCsr, DistError, Kernel};

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
    /// NCCL's ranks, for [`Transport::Nccl`], and to be tried by [`Transport::Auto`]. Operators with different
    /// ranks of NCCL on the same devices must not multiply at the same time in different orders: NCCL's
    /// kernels wait for each other on the devices.
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

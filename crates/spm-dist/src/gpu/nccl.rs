//! Elements between devices by NCCL.

use std::sync::Arc;

use spm_gpu::nccl::{NcclId, NcclRank};
use spm_gpu::{Device, DeviceBuffer, DeviceScalar, Stream};

use super::exchange::{Exchange, Fill, Plan, everywhere};
use crate::comm::agree;
use crate::{Channel, CommError, Communicator, DistError};

/// The NCCL rank of a rank, on its device; clones are the same one.
///
/// Ranks that are processes on several machines exchange device memory by it. It is made once, for any number
/// of operators: that takes up to a second.
#[derive(Debug, Clone)]
pub struct Nccl(Arc<NcclRank>);

impl Nccl {
    /// Opens NCCL; the ranks find each other over `comm`. Each has a device of its own. Collective.
    ///
    /// # Errors
    /// On every rank: NCCL is absent on one of them, or refuses, for example two ranks on one device. A rank
    /// that ends during the call leaves the others to the timeouts of NCCL.
    pub fn new(comm: &(impl Communicator + ?Sized), device: &Device) -> Result<Self, DistError> {
        // Every rank opens it before one of them waits for the others.
        let id = everywhere(comm, NcclId::new())?;
        let all = comm.all_gather(id.as_bytes())?;
        let id = NcclId::from_bytes(&all[0]).ok_or_else(|| CommError::Disagreement {
            rank: 0,
            what: format!("an id of NCCL has {} bytes", all[0].len()),
        })?;
        let rank = everywhere(comm, NcclRank::new(device, &id, comm.rank(), comm.size()))?;
        Ok(Self(Arc::new(rank)))
    }

    /// The rank itself.
    pub fn rank(&self) -> &NcclRank {
        &self.0
    }
}

/// Sends and receives in the stream of the exchange.
pub(super) struct OverNccl<T> {
    plan: Plan,
    nccl: Nccl,
    outgoing: DeviceBuffer<T>,
    /// Tells the neighbours that this rank takes part, before anything waits for it in a stream.
    arrived: Box<dyn Channel>,
    /// For the drop; `None` within an exchange, and after one that failed.
    done: Option<Stream>,
}

impl<T: DeviceScalar> OverNccl<T> {
    /// Collective.
    pub(super) fn new(
        comm: &(impl Communicator + ?Sized),
        nccl: &Nccl,
        plan: Plan,
        stream: &Stream,
    ) -> Result<Self, DistError> {
        let rank = nccl.rank();
        let fits = if (rank.rank(), rank.ranks()) == (comm.rank(), comm.size()) {
            Ok(())
        } else {
            Err(DistError::Unprepared("the ranks of NCCL are not those of the communicator"))
        };
        agree(comm, fits)?;
        let device = stream.device();
        let outgoing = everywhere(comm, DeviceBuffer::uninitialized(device, plan.outgoing()))?;
        let mut neighbours: Vec<(usize, usize)> =
            plan.sends.iter().chain(&plan.receives).map(|(rank, _)| (*rank, 0)).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        let arrived = comm.channel(&neighbours, &neighbours)?;
        Ok(Self { plan, nccl: nccl.clone(), outgoing, arrived, done: Some(stream.clone()) })
    }
}

impl<T: DeviceScalar> Exchange<T> for OverNccl<T> {
    fn send(&mut self, _: &Stream, fill: Fill<'_, T>) -> Result<(), DistError> {
        self.done = None;
        fill(&mut self.outgoing)?;
        Ok(self.arrived.start()?)
    }

    fn receive(&mut self, stream: &Stream, to: &mut DeviceBuffer<T>) -> Result<(), DistError> {
        self.arrived.wait()?;
        let Self { plan: Plan { sends, receives }, nccl, outgoing, .. } = self;
        nccl.rank().exchange(sends, outgoing, receives, to, stream)?;
        self.done = Some(stream.clone());
        Ok(())
    }
}

impl<T> Drop for OverNccl<T> {
    fn drop(&mut self) {
        // The end of the last NCCL rank would cut off what is in the stream.
        if let Some(stream) = &self.done {
            let _ = stream.synchronize();
        }
    }
}

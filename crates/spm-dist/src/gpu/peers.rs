//! Copies between devices of one process, or on one device.
//!
//! A rank writes the elements for all others into an array of its own; each of them copies its part out of it,
//! in a stream of its own. Two events order these streams: `packed`, behind the writes, and `taken`, behind the
//! copies, before which nothing is written again. A wait for an event is for the last time that it was
//! recorded, so threads tell each other by messages without content that it was.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spm_gpu::{Device, DeviceBuffer, DeviceScalar, Event, GpuError, Stream};

use super::exchange::{Exchange, Fill, Plan, everywhere};
use crate::comm::agree;
use crate::{Channel, CommError, Communicator, DistError};

/// What a rank shows to its neighbours.
struct End<T> {
    /// Locked while a copy or a kernel is put into a stream.
    elements: Mutex<DeviceBuffer<T>>,
    sends: Vec<(usize, Range<usize>)>,
    packed: Event,
    taken: Event,
}

impl<T: DeviceScalar> End<T> {
    fn new(device: &Device, plan: &Plan) -> Result<Self, GpuError> {
        Ok(Self {
            elements: Mutex::new(DeviceBuffer::uninitialized(device, plan.outgoing())?),
            sends: plan.sends.clone(),
            packed: Event::without_time(device)?,
            taken: Event::without_time(device)?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, DeviceBuffer<T>> {
        // What a rank that panicked has left is overwritten, or nobody asks for it.
        self.elements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where elements come from.
struct Source<T> {
    end: Arc<End<T>>,
    /// In its array.
    from: Range<usize>,
    to: usize,
}

/// Copies out of the arrays of other ranks.
pub(super) struct Peers<T> {
    end: Arc<End<T>>,
    from: Vec<Source<T>>,
    to: Vec<Arc<End<T>>>,
    /// `packed` was recorded; `taken` was recorded.
    is_packed: Box<dyn Channel>,
    is_taken: Box<dyn Channel>,
    /// Whether others copy, or will, what was sent.
    sent: bool,
}

impl<T: DeviceScalar> Peers<T> {
    /// `None` where not all ranks are in one process. Collective.
    pub(super) fn new(
        comm: &(impl Communicator + ?Sized),
        device: &Device,
        plan: Plan,
    ) -> Result<Option<Self>, DistError> {
        let end = Arc::new(everywhere(comm, End::<T>::new(device, &plan))?);
        let shared: Arc<End<T>> = Arc::clone(&end);
        let Some(all) = comm.share(shared)? else { return Ok(None) };
        let other = |rank: usize| -> Result<Arc<End<T>>, DistError> {
            Arc::clone(&all[rank]).downcast::<End<T>>().map_err(|_| {
                let what = "it exchanges elements of another type".to_owned();
                CommError::Disagreement { rank, what }.into()
            })
        };
        let source = |(rank, place): &(usize, Range<usize>)| -> Result<Source<T>, DistError> {
            let end = other(*rank)?;
            let from = end.sends.iter().find(|(to, _)| *to == comm.rank());
            let from = from.map_or(0..0, |(_, from)| from.clone());
            if from.len() != place.len() {
                let what = format!("it sends {} elements, not {}", from.len(), place.len());
                return Err(CommError::Disagreement { rank: *rank, what }.into());
            }
            device.enable_peer(end.lock().device())?;
            Ok(Source { end, from, to: place.start })
        };
        let from = plan.receives.iter().map(source).collect::<Result<Vec<_>, _>>();
        let to = plan.sends.iter().map(|(rank, _)| other(*rank)).collect::<Result<Vec<_>, _>>();
        let (from, to) = agree(comm, from.and_then(|from| Ok((from, to?))))?;
        let (sends, receives) = (Plan::messages(&plan.sends, 0), Plan::messages(&plan.receives, 0));
        let is_packed = comm.channel(&sends, &receives)?;
        let is_taken = comm.channel(&receives, &sends)?;
        Ok(Some(Self { end, from, to, is_packed, is_taken, sent: false }))
    }
}

impl<T: DeviceScalar> Exchange<T> for Peers<T> {
    fn send(&mut self, stream: &Stream, fill: Fill<'_, T>) -> Result<(), DistError> {
        if std::mem::take(&mut self.sent) {
            self.is_taken.wait()?;
            self.to.iter().try_for_each(|end| stream.wait(&end.taken))?;
        }
        fill(&mut self.end.lock())?;
        self.end.packed.record(stream)?;
        self.is_packed.start()?;
        Ok(())
    }

    fn receive(&mut self, stream: &Stream, to: &mut DeviceBuffer<T>) -> Result<(), DistError> {
        self.is_packed.wait()?;
        for Source { end, from, to: place } in &self.from {
            stream.wait(&end.packed)?;
            to.copy_part_from_on(*place, &end.lock(), from.start, from.len(), stream)?;
        }
        self.end.taken.record(stream)?;
        self.is_taken.start()?;
        self.sent = true;
        Ok(())
    }
}

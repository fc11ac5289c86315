//! Elements through host memory, over any communicator.

use spm_gpu::{Device, DeviceBuffer, DeviceScalar, HostBuffer, Stream};

use super::exchange::{Exchange, Fill, Plan, everywhere};
use crate::{Channel, Communicator, DistError, bytes};

/// Copies to the messages of a channel, and back.
pub(super) struct Staged<T> {
    plan: Plan,
    outgoing: DeviceBuffer<T>,
    /// What goes out and what comes in, where a device copies at full speed.
    on_host: [HostBuffer<T>; 2],
    channel: Box<dyn Channel>,
}

impl<T: DeviceScalar> Staged<T> {
    /// Collective.
    pub(super) fn new(
        comm: &(impl Communicator + ?Sized),
        device: &Device,
        plan: Plan,
    ) -> Result<Self, DistError> {
        let incoming = plan.receives.iter().map(|(_, place)| place.len()).sum();
        let arrays = || {
            let outgoing = DeviceBuffer::uninitialized(device, plan.outgoing())?;
            let out = HostBuffer::zeroed(device, plan.outgoing())?;
            Ok((outgoing, [out, HostBuffer::zeroed(device, incoming)?]))
        };
        let (outgoing, on_host) = everywhere(comm, arrays())?;
        let channel = comm.channel(
            &Plan::messages(&plan.sends, T::BYTES),
            &Plan::messages(&plan.receives, T::BYTES),
        )?;
        Ok(Self { plan, outgoing, on_host, channel })
    }
}

impl<T: DeviceScalar> Exchange<T> for Staged<T> {
    fn send(&mut self, _: &Stream, fill: Fill<'_, T>) -> Result<(), DistError> {
        Ok(fill(&mut self.outgoing)?)
    }

    // The host waits here and not in `send`, so that the local block is in its stream by then.
    fn receive(&mut self, stream: &Stream, to: &mut DeviceBuffer<T>) -> Result<(), DistError> {
        let Self { plan, outgoing, on_host: [out, incoming], channel } = self;
        if plan.sends.is_empty() && plan.receives.is_empty() {
            // Without neighbours the host does not wait.
            return Ok(());
        }
        outgoing.copy_to_slice_on(out, stream)?;
        bytes::scalars_mut(channel.outgoing()).copy_from_slice(out);
        channel.start()?;
        channel.wait()?;
        incoming.copy_from_slice(bytes::scalars::<T>(channel.incoming()));
        let (mut start, mut next) = (0, plan.receives.iter().map(|(_, place)| place).peekable());
        while let Some(place) = next.next() {
            // Places that follow each other are one copy.
            let mut end = place.end;
            while let Some(more) = next.next_if(|more| more.start == end) {
                end = more.end;
            }
            let length = end - place.start;
            to.copy_part_from_slice_on(place.start, &incoming[start..start + length], stream)?;
            start += length;
        }
        Ok(())
    }
}

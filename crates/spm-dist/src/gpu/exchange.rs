//! The exchange of elements in device memory between ranks, and the choice of its transport.

use std::ops::Range;
use std::time::Instant;

use spm_gpu::{Device, DeviceBuffer, DeviceScalar, GpuError, Stream};

use super::nccl::OverNccl;
use super::peers::Peers;
use super::staged::Staged;
use super::{DeviceOptions, Transport};
use crate::comm::agree;
use crate::{Communicator, DistError, Halo, bytes};

/// Exchanges that are timed, behind those that are not.
const TIMED: usize = 7;
const UNTIMED: usize = 2;

/// Elements between fixed neighbours, again and again: [`Exchange::send`], then [`Exchange::receive`], with
/// one stream.
pub(super) trait Exchange<T> {
    /// Calls `fill` to put into the stream what writes the elements to send.
    fn send(&mut self, stream: &Stream, fill: Fill<'_, T>) -> Result<(), DistError>;

    /// Puts into the stream, or does, what writes the elements of other ranks to their places in `to`.
    fn receive(&mut self, stream: &Stream, to: &mut DeviceBuffer<T>) -> Result<(), DistError>;
}

/// Writes the elements to send, those for one rank behind those for another, in the stream of the exchange.
pub(super) type Fill<'a, T> = &'a mut dyn FnMut(&mut DeviceBuffer<T>) -> Result<(), GpuError>;

/// Who sends how many elements to whom.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Ranks, and their parts of what is sent.
    pub(super) sends: Vec<(usize, Range<usize>)>,
    /// Ranks, and the places of their elements.
    pub(super) receives: Vec<(usize, Range<usize>)>,
}

impl Plan {
    /// The exchange of a halo for `k` columns, into a block whose columns are the ghost entries, with
    /// others behind the first `below`.
    pub(super) fn of_halo(halo: &Halo, k: usize, below: usize, others: usize) -> Self {
        let scaled =
            |range: &Range<usize>, shift: usize| (range.start + shift) * k..(range.end + shift) * k;
        let sends = halo.sends().iter().map(|(rank, range)| (*rank, scaled(range, 0)));
        // A rank is below this one or above.
        let place =
            |range: &Range<usize>| scaled(range, if range.start < below { 0 } else { others });
        let receives = halo.receives().iter().map(|(rank, range)| (*rank, place(range)));
        Self { sends: sends.collect(), receives: receives.collect() }
    }

    /// The exchange from ghost entries to the ranks that own them: into an array in the order of
    /// [`Halo::local`].
    pub(super) fn of_transpose(halo: &Halo) -> Self {
        Self { sends: halo.receives().to_vec(), receives: halo.sends().to_vec() }
    }

    /// Elements that are sent.
    pub(super) fn outgoing(&self) -> usize {
        self.sends.last().map_or(0, |(_, range)| range.end)
    }

    /// The messages of one direction, of `size` bytes for each element.
    pub(super) fn messages(list: &[(usize, Range<usize>)], size: usize) -> Vec<(usize, usize)> {
        Halo::messages(list, size)
    }
}

type Chosen<T> = (Transport, Box<dyn Exchange<T>>);

/// The exchange of a plan. Collective.
pub(super) fn exchange_of<T: DeviceScalar>(
    comm: &(impl Communicator + ?Sized),
    device: &Device,
    plan: &Plan,
    options: &DeviceOptions,
    stream: &Stream,
    to: &mut DeviceBuffer<T>,
) -> Result<Chosen<T>, DistError> {
    // `None` where it is not possible.
    let make = |transport| -> Result<Option<Box<dyn Exchange<T>>>, DistError> {
        Ok(match transport {
            Transport::Peers => Peers::new(comm, device, plan.clone())?
                .map(|peers| -> Box<dyn Exchange<T>> { Box::new(peers) }),
            Transport::Nccl => match &options.nccl {
                Some(nccl) => Some(Box::new(OverNccl::new(comm, nccl, plan.clone(), stream)?)),
                None => None,
            },
            _ => Some(Box::new(Staged::new(comm, device, plan.clone())?)),
        })
    };
    if options.transport != Transport::Auto {
        let without = match options.transport {
            Transport::Peers => "copies between devices need one process for all ranks",
            _ => "the options have no ranks of NCCL",
        };
        let made = make(options.transport)?.ok_or(DistError::Unprepared(without))?;
        return Ok((options.transport, made));
    }
    let mut all: Vec<Chosen<T>> = Vec::new();
    // Emulated devices take no time that means something: the first that is possible.
    let emulated = comm.all_gather(&[u8::from(device.is_emulated())])?.contains(&vec![1]);
    for transport in [Transport::Peers, Transport::Nccl, Transport::Staged] {
        if emulated && !all.is_empty() {
            break;
        }
        all.extend(make(transport)?.map(|exchange| (transport, exchange)));
    }
    let fastest = if all.len() > 1 { fastest(comm, &mut all, stream, to)? } else { 0 };
    Ok(all.swap_remove(fastest))
}

/// The number of the exchange that takes the least time on the slowest rank. Collective; the same on every
/// rank.
fn fastest<T: DeviceScalar>(
    comm: &(impl Communicator + ?Sized),
    all: &mut [Chosen<T>],
    stream: &Stream,
    to: &mut DeviceBuffer<T>,
) -> Result<usize, DistError> {
    let mut times = Vec::with_capacity(all.len());
    for (_, exchange) in &mut *all {
        let mut once = || -> Result<f64, DistError> {
            let start = Instant::now();
            exchange.send(stream, &mut |outgoing| outgoing.enqueue_zero(stream))?;
            exchange.receive(stream, to)?;
            stream.synchronize()?;
            Ok(start.elapsed().as_secs_f64())
        };
        let mut seconds =
            (0..UNTIMED + TIMED).map(|_| once()).collect::<Result<Vec<_>, _>>()?.split_off(UNTIMED);
        seconds.sort_by(f64::total_cmp);
        times.push(seconds[TIMED / 2]);
    }
    let of_ranks = comm.all_gather(bytes::of_scalars(&times))?;
    let mut slowest = vec![0.0_f64; times.len()];
    for of_rank in of_ranks {
        let of_rank = bytes::to_scalars::<f64>(&of_rank);
        slowest.iter_mut().zip(of_rank).for_each(|(slowest, time)| *slowest = slowest.max(time));
    }
    let least = slowest.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
    Ok(least.map_or(0, |(number, _)| number))
}

/// `made` if it was made on every rank. Collective.
pub(super) fn everywhere<R>(
    comm: &(impl Communicator + ?Sized),
    made: Result<R, GpuError>,
) -> Result<R, DistError> {
    agree(comm, made.map_err(DistError::from))
}

//! Ranks as threads of one process: for tests, and for programs that have one process only.
//!
//! ```
//! use spm_dist::{Communicator, threads};
//!
//! let sums = threads::run(3, |comm| {
//!     let mut values = [comm.rank() as f64];
//!     comm.sum(&mut values)?;
//!     Ok(values[0])
//! })?;
//! assert_eq!(sums, [3.0, 3.0, 3.0]);
//! # Ok::<(), spm_dist::DistError>(())
//! ```

use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::bytes::Buffer;
use crate::comm::{Shared, check_ranks};
use crate::{Channel, CommError, Communicator, DistError, Reduction};

/// Looks at the state of the others before this thread sleeps between them.
const LOOKS: u32 = 200;
/// The sleep between two looks.
const SLEEP: Duration = Duration::from_micros(50);
/// A message is delayed by fewer looks than this.
const DELAY: u64 = 6;

/// How messages are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivery {
    /// Delays each message by a number of looks that is drawn from this seed, so that messages of
    /// different ranks arrive in another order; `None` delivers at once.
    pub seed: Option<u64>,
}

/// Runs `body` once for each of `ranks` ranks, each on its own thread; returns the results in the order
/// of the ranks.
///
/// # Errors
/// That of the first rank that failed, with its number; a panic is an error too. The other ranks get
/// [`CommError::Lost`] when they wait for it.
///
/// # Panics
/// When `ranks` is 0, or the system refuses to start a thread.
pub fn run<R: Send>(
    ranks: usize,
    body: impl Fn(&ThreadCommunicator) -> Result<R, DistError> + Sync,
) -> Result<Vec<R>, DistError> {
    run_with(ranks, Delivery::default(), body)
}

/// As [`run`], with a way of delivery.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_with<R: Send>(
    ranks: usize,
    delivery: Delivery,
    body: impl Fn(&ThreadCommunicator) -> Result<R, DistError> + Sync,
) -> Result<Vec<R>, DistError> {
    assert!(ranks > 0, "no ranks");
    let world = Arc::new(World {
        size: ranks,
        state: Mutex::new(State {
            letters: Vec::new(),
            slots: HashMap::new(),
            shared: HashMap::new(),
            ended: vec![None; ranks],
            first: None,
            random: delivery.seed,
        }),
    });
    let results: Vec<Option<R>> = thread::scope(|scope| {
        let handles: Vec<_> = (0..ranks)
            .map(|rank| {
                let (world, body) = (Arc::clone(&world), &body);
                scope.spawn(move || {
                    let comm =
                        ThreadCommunicator { world: Arc::clone(&world), rank, calls: Cell::new(0) };
                    let result = panic::catch_unwind(AssertUnwindSafe(|| body(&comm)));
                    match result {
                        Ok(Ok(result)) => {
                            world.end(rank, "it is done".to_owned(), None);
                            return Some(result);
                        }
                        Ok(Err(error)) => world.end(rank, error.to_string(), Some(error)),
                        Err(payload) => {
                            let message = format!("it panicked: {}", text_of(&*payload));
                            let error = DistError::Rank { rank, message, cause: None };
                            world.end(rank, error.to_string(), Some(error));
                        }
                    }
                    None
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("panics are caught")).collect()
    });
    match world.lock().first.take() {
        Some((_, error @ DistError::Rank { .. })) => Err(error),
        Some((rank, error)) => {
            let message = error.to_string();
            Err(DistError::Rank { rank, message, cause: Some(Box::new(error)) })
        }
        None => Ok(results.into_iter().map(|result| result.expect("no rank failed")).collect()),
    }
}

/// What a panic says.
fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// What the ranks share.
#[derive(Debug)]
struct World {
    size: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    letters: Vec<Letter>,
    /// The place of a channel's messages, by its number, sender and receiver.
    slots: HashMap<(u64, usize, usize), Arc<Mutex<Slot>>>,
    /// Objects by the number of the call and the rank that shares them.
    shared: HashMap<(u64, usize), Shared>,
    /// How a rank has ended.
    ended: Vec<Option<String>>,
    /// The first failure.
    first: Option<(usize, DistError)>,
    /// The state of the random numbers that delay messages.
    random: Option<u64>,
}

/// A message of a collective call.
#[derive(Debug)]
struct Letter {
    from: usize,
    to: usize,
    /// The number of the call on the sending rank, and what it is.
    call: (u64, &'static str),
    delay: u64,
    bytes: Vec<u8>,
}

/// One message of a channel.
#[derive(Debug)]
struct Slot {
    bytes: Box<[u8]>,
    full: bool,
    delay: u64,
}

impl World {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under this lock leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, rank: usize, reason: String, error: Option<DistError>) {
        let mut state = self.lock();
        // A rank that only learnt of another's end is not the first.
        if let (None, Some(error)) = (&state.first, error) {
            state.first = Some((rank, error));
        }
        state.ended[rank] = Some(reason);
    }

    fn has_ended(&self, rank: usize) -> bool {
        self.lock().ended[rank].is_some()
    }

    /// The error of waiting for a rank that has ended.
    fn lost(&self, rank: usize) -> CommError {
        let reason = self.lock().ended[rank].clone().unwrap_or_default();
        CommError::Lost { rank, reason }
    }
}

impl State {
    fn delay(&mut self) -> u64 {
        let Some(state) = &mut self.random else { return 0 };
        // splitmix64
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % DELAY
    }

    /// The letter of rank `from` for a call of rank `to`, once it is delivered.
    fn take(
        &mut self,
        from: usize,
        to: usize,
        call: (u64, &'static str),
    ) -> Result<Option<Vec<u8>>, CommError> {
        let ours = |letter: &Letter| (letter.from, letter.to, letter.call.0) == (from, to, call.0);
        let Some(at) = self.letters.iter().position(ours) else {
            return match &self.ended[from] {
                Some(reason) => Err(CommError::Lost { rank: from, reason: reason.clone() }),
                None => Ok(None),
            };
        };
        let letter = &mut self.letters[at];
        if letter.call.1 != call.1 {
            let what = format!("it calls {}, this rank {}", letter.call.1, call.1);
            return Err(CommError::Disagreement { rank: from, what });
        }
        if letter.delay > 0 {
            letter.delay -= 1;
            return Ok(None);
        }
        Ok(Some(self.letters.swap_remove(at).bytes))
    }
}

/// Calls `look` until it has something.
fn wait_for<R>(mut look: impl FnMut() -> Result<Option<R>, CommError>) -> Result<R, CommError> {
    let mut looks = 0;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        looks += 1;
        if looks < LOOKS { thread::yield_now() } else { thread::sleep(SLEEP) }
    }
}

/// The communicator of a rank that is a thread; [`run`] makes it.
#[derive(Debug)]
pub struct ThreadCommunicator {
    world: Arc<World>,
    rank: usize,
    /// Collective calls so far.
    calls: Cell<u64>,
}

impl ThreadCommunicator {
    fn call(&self, name: &'static str) -> (u64, &'static str) {
        let number = self.calls.get();
        self.calls.set(number + 1);
        (number, name)
    }
}

/// Sends a letter to each rank, empty ones included.
fn post<'b>(
    world: &World,
    from: usize,
    call: (u64, &'static str),
    bytes: impl Fn(usize) -> &'b [u8],
) {
    let mut state = world.lock();
    for to in 0..world.size {
        let delay = state.delay();
        state.letters.push(Letter { from, to, call, delay, bytes: bytes(to).to_vec() });
    }
}

/// The letters of all ranks, in their order.
fn collect(world: &World, to: usize, call: (u64, &'static str)) -> Result<Vec<Vec<u8>>, CommError> {
    let letter = |from| wait_for(|| world.lock().take(from, to, call));
    (0..world.size).map(letter).collect()
}

impl Communicator for ThreadCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.world.size
    }

    fn exchange(&self, outgoing: &[(usize, &[u8])]) -> Result<Vec<(usize, Vec<u8>)>, CommError> {
        check_ranks(outgoing.iter().map(|message| message.0), self.size());
        let call = self.call("exchange");
        let messages: HashMap<usize, &[u8]> = outgoing.iter().copied().collect();
        // The first byte tells an empty message from none.
        let letters: Vec<Vec<u8>> = (0..self.size())
            .map(|to| messages.get(&to).map_or(Vec::new(), |bytes| [&[1], *bytes].concat()))
            .collect();
        post(&self.world, self.rank, call, |to| &letters[to]);
        let letters = collect(&self.world, self.rank, call)?.into_iter().enumerate();
        Ok(letters
            .filter(|(_, bytes)| !bytes.is_empty())
            .map(|(from, b)| (from, b[1..].to_vec()))
            .collect())
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let call = self.call("all_gather");
        post(&self.world, self.rank, call, |_| bytes);
        collect(&self.world, self.rank, call)
    }

    fn channel(
        &self,
        outgoing: &[(usize, usize)],
        incoming: &[(usize, usize)],
    ) -> Result<Box<dyn Channel>, CommError> {
        for list in [outgoing, incoming] {
            check_ranks(list.iter().map(|message| message.0), self.size());
        }
        let call = self.call("channel");
        // Both ends have to know a slot before one of them may end.
        let ends = |list: &[(usize, usize)], from_here: bool| {
            let mut start = 0;
            let mut end = |&(rank, bytes): &(usize, usize)| {
                let (from, to) = if from_here { (self.rank, rank) } else { (rank, self.rank) };
                let slot = self.slot((call.0, from, to), bytes)?;
                start += bytes;
                Ok(End { rank, place: start - bytes..start, slot, pending: false })
            };
            list.iter().map(&mut end).collect::<Result<Vec<End>, CommError>>()
        };
        let (to, from) = (ends(outgoing, true)?, ends(incoming, false)?);
        post(&self.world, self.rank, call, |_| &[]);
        collect(&self.world, self.rank, call)?;
        let bytes = |ends: &[End]| ends.last().map_or(0, |end| end.place.end);
        Ok(Box::new(ThreadChannel {
            world: Arc::clone(&self.world),
            outgoing: Buffer::new(bytes(&to)),
            incoming: Buffer::new(bytes(&from)),
            to,
            from,
            started: false,
        }))
    }

    fn share(&self, object: Shared) -> Result<Option<Vec<Shared>>, CommError> {
        let call = self.call("share");
        self.world.lock().shared.insert((call.0, self.rank), object);
        post(&self.world, self.rank, call, |_| &[]);
        collect(&self.world, self.rank, call)?;
        let object = |rank| Arc::clone(&self.world.lock().shared[&(call.0, rank)]);
        let all = (0..self.size()).map(object).collect();
        // All have them before one of them takes its own back.
        let call_back = self.call("share");
        post(&self.world, self.rank, call_back, |_| &[]);
        collect(&self.world, self.rank, call_back)?;
        self.world.lock().shared.remove(&(call.0, self.rank));
        Ok(Some(all))
    }

    fn reduction(&self, len: usize) -> Result<Box<dyn Reduction>, CommError> {
        let call = self.call("reduction");
        let world = Arc::clone(&self.world);
        Ok(Box::new(ThreadReduction {
            world,
            rank: self.rank,
            len,
            number: call.0,
            round: 0,
            open: false,
        }))
    }
}

impl ThreadCommunicator {
    /// The slot of a message, which the other end may have made already.
    fn slot(&self, key: (u64, usize, usize), bytes: usize) -> Result<Arc<Mutex<Slot>>, CommError> {
        let mut state = self.world.lock();
        let empty = || {
            let bytes = vec![0; bytes].into_boxed_slice();
            Arc::new(Mutex::new(Slot { bytes, full: false, delay: 0 }))
        };
        let slot = Arc::clone(state.slots.entry(key).or_insert_with(empty));
        let theirs = lock(&slot).bytes.len();
        if theirs != bytes {
            let rank = if key.1 == self.rank { key.2 } else { key.1 };
            let what = format!("its end of the channel has {theirs} bytes, this one {bytes}");
            return Err(CommError::Disagreement { rank, what });
        }
        Ok(slot)
    }
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end of a message of a channel.
#[derive(Debug)]
struct End {
    /// The rank at the other end.
    rank: usize,
    /// In the channel's buffer.
    place: Range<usize>,
    slot: Arc<Mutex<Slot>>,
    pending: bool,
}

#[derive(Debug)]
struct ThreadChannel {
    world: Arc<World>,
    outgoing: Buffer,
    incoming: Buffer,
    to: Vec<End>,
    from: Vec<End>,
    started: bool,
}

impl Channel for ThreadChannel {
    fn outgoing(&mut self) -> &mut [u8] {
        assert!(!self.started, "the transfer has not ended");
        self.outgoing.bytes_mut()
    }

    fn start(&mut self) -> Result<(), CommError> {
        assert!(!self.started, "the transfer has not ended");
        self.started = true;
        for end in self.to.iter_mut().chain(&mut self.from) {
            end.pending = true;
        }
        self.poll().map(drop)
    }

    fn poll(&mut self) -> Result<bool, CommError> {
        let Self { world, outgoing, incoming, to, from, .. } = self;
        let mut done = true;
        for end in to.iter_mut().filter(|end| end.pending) {
            // Asked first: what a rank did before its end counts.
            let ended = world.has_ended(end.rank);
            let mut slot = lock(&end.slot);
            if slot.full {
                // The message before has not been taken.
                if ended {
                    return Err(world.lost(end.rank));
                }
                done = false;
            } else {
                slot.bytes.copy_from_slice(&outgoing.bytes()[end.place.clone()]);
                slot.full = true;
                slot.delay = world.lock().delay();
                end.pending = false;
            }
        }
        for end in from.iter_mut().filter(|end| end.pending) {
            let ended = world.has_ended(end.rank);
            let mut slot = lock(&end.slot);
            if slot.full && slot.delay == 0 {
                incoming.bytes_mut()[end.place.clone()].copy_from_slice(&slot.bytes);
                slot.full = false;
                end.pending = false;
                continue;
            }
            if slot.full {
                slot.delay -= 1;
            } else if ended {
                return Err(world.lost(end.rank));
            }
            done = false;
        }
        if done {
            self.started = false;
        }
        Ok(done)
    }

    fn wait(&mut self) -> Result<(), CommError> {
        wait_for(|| Ok(self.poll()?.then_some(())))
    }

    fn incoming(&self) -> &[u8] {
        assert!(!self.started, "the transfer has not ended");
        self.incoming.bytes()
    }
}

impl Drop for ThreadChannel {
    fn drop(&mut self) {
        self.to.clear();
        self.from.clear();
        // Both ends were made before either was used: a slot that only the world has is done with.
        self.world.lock().slots.retain(|_, slot| Arc::strong_count(slot) > 1);
    }
}

#[derive(Debug)]
struct ThreadReduction {
    world: Arc<World>,
    rank: usize,
    len: usize,
    number: u64,
    round: u64,
    open: bool,
}

impl ThreadReduction {
    /// A number for the letters of a round that no call has.
    fn call(&self) -> (u64, &'static str) {
        ((1 << 63) | (self.number << 32) | self.round, "reduction")
    }
}

impl Reduction for ThreadReduction {
    fn start(&mut self, values: &[f64]) -> Result<(), CommError> {
        assert_eq!(values.len(), self.len, "values of the reduction");
        assert!(!self.open, "the sum before has not ended");
        self.open = true;
        let bytes = crate::bytes::of_scalars(values);
        post(&self.world, self.rank, self.call(), |_| bytes);
        Ok(())
    }

    fn finish(&mut self, sums: &mut [f64]) -> Result<(), CommError> {
        assert_eq!(sums.len(), self.len, "sums of the reduction");
        assert!(self.open, "the reduction was not started");
        let all = collect(&self.world, self.rank, self.call())?;
        sums.fill(0.0);
        for values in all {
            let values = crate::bytes::to_scalars::<f64>(&values);
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        self.open = false;
        self.round += 1;
        Ok(())
    }
}

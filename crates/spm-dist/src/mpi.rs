//! Ranks as processes over MPI (feature `mpi`).
//!
//! [`run`] is the body of a program's `main`; `mpirun -n 4 PROGRAM` starts it on four ranks.
//!
//! ```no_run
//! use spm_dist::{Communicator, mpi};
//!
//! fn main() -> std::process::ExitCode {
//!     mpi::run(|comm| {
//!         let mut ranks = [1.0];
//!         comm.sum(&mut ranks)?;
//!         assert_eq!(ranks[0], comm.size() as f64);
//!         Ok(())
//!     })
//! }
//! ```

use std::cell::Cell;
use std::error::Error;
use std::ffi::c_int;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;

use ::mpi::Threading;
use ::mpi::environment::Universe;
use ::mpi::ffi;

use crate::bytes::{self, Buffer};
use crate::comm::check_ranks;
use crate::{Channel, CommError, Communicator, DistError, Reduction};

/// Bytes of a message at most: longer ones are divided. MPI counts with 31 bits.
const PIECE: usize = 1 << 30;
/// The tag of [`Communicator::exchange`].
const EXCHANGE: c_int = 1;
/// Tags of channels; MPI promises 32767.
const CHANNELS: std::ops::Range<c_int> = 2..32_000;

/// Runs `body` as one rank of those that `mpirun` has started, and ends the process's part in MPI.
///
/// An error that every rank has ([`DistError::is_shared`]) is printed by rank 0. Any other error, and a
/// panic, is printed by its rank, which ends all ranks at once.
pub fn run(body: impl FnOnce(&MpiCommunicator) -> Result<(), Box<dyn Error>>) -> ExitCode {
    let comm = match MpiCommunicator::start() {
        Ok(comm) => comm,
        Err(error) => {
            print_error(&format!("{error}\n"));
            return ExitCode::FAILURE;
        }
    };
    let error = match panic::catch_unwind(AssertUnwindSafe(|| body(&comm))) {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(error)) => error,
        // The message has been printed.
        Err(_) => comm.world.abort("it panicked"),
    };
    if !error.downcast_ref::<DistError>().is_some_and(DistError::is_shared) {
        comm.world.abort(&error.to_string());
    }
    if comm.rank() == 0 {
        print_error(&format!("{error}\n"));
    }
    ExitCode::FAILURE
}

/// The communicator of a rank that is a process; [`run`] makes it. All MPI calls are made on the thread
/// that it lives on.
#[derive(Debug)]
pub struct MpiCommunicator {
    world: Rc<World>,
    /// Channels so far.
    channels: Cell<u32>,
}

/// MPI between its start and its end, which comes when nothing uses it any more.
struct World {
    comm: ffi::MPI_Comm,
    rank: usize,
    size: usize,
    /// Ends MPI when it is dropped, after the drop of the world itself.
    _universe: Universe,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World(rank {} of {})", self.rank, self.size)
    }
}

/// `Ok` for the return code 0 of the MPI function `call`.
fn check(call: &str, code: c_int) -> Result<(), CommError> {
    if code == 0 { Ok(()) } else { Err(CommError::Transport(format!("{call} returns {code}"))) }
}

/// Prints whole lines with one write: `mpirun` mixes its own lines, and those of other ranks, into what
/// comes in parts, as from `eprintln!`.
fn print_error(lines: &str) {
    // Nothing is left to tell of a standard error that is closed.
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// A number of ranks or bytes as MPI takes it; larger ones have been refused or divided.
fn int(number: usize) -> c_int {
    c_int::try_from(number).expect("a number of 31 bits")
}

impl World {
    fn abort(&self, reason: &str) -> ! {
        print_error(&format!("rank {}: {reason}\n", self.rank));
        // SAFETY: MPI is running; the call does not return.
        unsafe { ffi::MPI_Abort(self.comm, 1) };
        std::process::abort()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if thread::panicking() {
            // Others would wait for this rank for ever.
            self.abort("it panicked");
        }
        // SAFETY: MPI is running, and this is the communicator made at the start. All ranks come here,
        // or one ends them.
        unsafe { ffi::MPI_Comm_free(&mut self.comm) };
    }
}

impl MpiCommunicator {
    fn start() -> Result<Self, CommError> {
        let started = ::mpi::initialize_with_threading(Threading::Funneled);
        let (universe, _) = started
            .ok_or_else(|| CommError::Transport("MPI has been started before".to_owned()))?;
        // SAFETY: MPI is running. The pointers are to variables that the calls may write.
        unsafe {
            let mut comm = ffi::RSMPI_COMM_NULL;
            check("MPI_Comm_dup", ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &mut comm))?;
            let (mut rank, mut size) = (0, 0);
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(comm, &mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(comm, &mut size))?;
            let (rank, size) = (rank as usize, size as usize);
            let world = World { comm, rank, size, _universe: universe };
            Ok(Self { world: Rc::new(world), channels: Cell::new(0) })
        }
    }

    /// One number of each rank.
    fn gather_lengths(&self, length: usize) -> Result<Vec<u64>, CommError> {
        let (one, mut all) = (length as u64, vec![0_u64; self.size()]);
        // SAFETY: one number is sent, and there is room for one of each rank.
        let code = unsafe {
            let kind = ffi::RSMPI_UINT64_T;
            let (one, all) = ((&raw const one).cast(), all.as_mut_ptr().cast());
            ffi::MPI_Allgather(one, 1, kind, all, 1, kind, self.world.comm)
        };
        check("MPI_Allgather", code)?;
        Ok(all)
    }
}

/// Requests for transfers. The memory that they use is not freed before they have ended.
struct Requests(Vec<ffi::MPI_Request>);

impl Requests {
    fn len(&self) -> c_int {
        int(self.0.len())
    }

    /// Adds the request that `make` writes, and returns the status of `make`.
    fn add(&mut self, make: impl FnOnce(&mut ffi::MPI_Request) -> c_int) -> c_int {
        // SAFETY: a constant of the library, which is initialised.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        let code = make(&mut request);
        self.0.push(request);
        code
    }

    fn wait(&mut self) -> Result<(), CommError> {
        // SAFETY: these are requests, inactive ones or of transfers whose memory lives.
        let code = unsafe {
            ffi::MPI_Waitall(self.len(), self.0.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE)
        };
        check("MPI_Waitall", code)
    }
}

/// The first byte and the length of each piece of a message.
fn pieces(bytes: usize) -> impl Iterator<Item = (usize, c_int)> {
    (0..bytes).step_by(PIECE).map(move |start| (start, int(PIECE.min(bytes - start))))
}

impl Communicator for MpiCommunicator {
    fn rank(&self) -> usize {
        self.world.rank
    }

    fn size(&self) -> usize {
        self.world.size
    }

    fn exchange(&self, outgoing: &[(usize, &[u8])]) -> Result<Vec<(usize, Vec<u8>)>, CommError> {
        check_ranks(outgoing.iter().map(|message| message.0), self.size());
        // One more than the length, so that an empty message is told from none.
        let (mut lengths, mut theirs) = (vec![0_u64; self.size()], vec![0_u64; self.size()]);
        for (rank, bytes) in outgoing {
            lengths[*rank] = bytes.len() as u64 + 1;
        }
        // SAFETY: both arrays have one number for each rank.
        let code = unsafe {
            let kind = ffi::RSMPI_UINT64_T;
            let (send, receive) = (lengths.as_ptr().cast(), theirs.as_mut_ptr().cast());
            ffi::MPI_Alltoall(send, 1, kind, receive, 1, kind, self.world.comm)
        };
        check("MPI_Alltoall", code)?;
        let sizes = theirs.iter().enumerate().filter(|(_, size)| **size > 0);
        let mut incoming: Vec<(usize, Vec<u8>)> =
            sizes.map(|(rank, &size)| (rank, vec![0; size as usize - 1])).collect();
        let mut requests = Requests(Vec::new());
        let comm = self.world.comm;
        for (rank, bytes) in &mut incoming {
            let base = bytes.as_mut_ptr();
            // SAFETY: the pieces are inside the buffer, which is not touched before the wait below.
            self.transfer(&mut requests, "MPI_Irecv", bytes.len(), |at, length, request| unsafe {
                let (buffer, kind) = (base.add(at).cast(), ffi::RSMPI_UINT8_T);
                ffi::MPI_Irecv(buffer, length, kind, int(*rank), EXCHANGE, comm, request)
            });
        }
        for (rank, bytes) in outgoing {
            let base = bytes.as_ptr();
            // SAFETY: the pieces are inside the message, which is borrowed until after the wait below.
            self.transfer(&mut requests, "MPI_Isend", bytes.len(), |at, length, request| unsafe {
                let (buffer, kind) = (base.add(at).cast(), ffi::RSMPI_UINT8_T);
                ffi::MPI_Isend(buffer, length, kind, int(*rank), EXCHANGE, comm, request)
            });
        }
        if let Err(error) = requests.wait() {
            self.world.abort(&error.to_string());
        }
        Ok(incoming)
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let lengths = self.gather_lengths(bytes.len())?;
        let total = lengths.iter().sum::<u64>() as usize;
        let limit = c_int::MAX as usize;
        if total > limit {
            return Err(CommError::TooLarge { bytes: total, limit });
        }
        if total == 0 {
            // MPI takes the addresses of two empty arrays for one buffer.
            return Ok(vec![Vec::new(); self.size()]);
        }
        let counts: Vec<c_int> = lengths.iter().map(|&length| int(length as usize)).collect();
        let starts: Vec<c_int> = counts
            .iter()
            .scan(0, |end, &count| {
                *end += count;
                Some(*end - count)
            })
            .collect();
        let mut all = vec![0_u8; total];
        // SAFETY: counts and starts have a number for each rank and divide `all`.
        let code = unsafe {
            let kind = ffi::RSMPI_UINT8_T;
            let (send, receive) = (bytes.as_ptr().cast(), all.as_mut_ptr().cast());
            let (counts, starts) = (counts.as_ptr(), starts.as_ptr());
            let comm = self.world.comm;
            ffi::MPI_Allgatherv(send, int(bytes.len()), kind, receive, counts, starts, kind, comm)
        };
        check("MPI_Allgatherv", code)?;
        let part = |(&start, &count): (&c_int, &c_int)| {
            all[start as usize..(start + count) as usize].to_vec()
        };
        Ok(starts.iter().zip(&counts).map(part).collect())
    }

    fn channel(
        &self,
        outgoing: &[(usize, usize)],
        incoming: &[(usize, usize)],
    ) -> Result<Box<dyn Channel>, CommError> {
        for list in [outgoing, incoming] {
            check_ranks(list.iter().map(|message| message.0), self.size());
        }
        let number = self.channels.get();
        self.channels.set(number.wrapping_add(1));
        let tags = (CHANNELS.end - CHANNELS.start) as u32;
        let tag = CHANNELS.start + (number % tags) as c_int;
        let bytes = |list: &[(usize, usize)]| list.iter().map(|message| message.1).sum();
        let mut channel = MpiChannel {
            world: Rc::clone(&self.world),
            outgoing: ManuallyDrop::new(Buffer::new(bytes(outgoing))),
            incoming: ManuallyDrop::new(Buffer::new(bytes(incoming))),
            requests: Requests(Vec::new()),
            started: false,
        };
        let (comm, mut start) = (self.world.comm, 0);
        let requests = &mut channel.requests;
        for &(rank, bytes) in incoming {
            let base = channel.incoming.bytes_mut()[start..start + bytes].as_mut_ptr();
            // SAFETY: the pieces are inside the buffer, which lives as long as the requests.
            self.transfer(requests, "MPI_Recv_init", bytes, |at, length, request| unsafe {
                let (buffer, kind) = (base.add(at).cast(), ffi::RSMPI_UINT8_T);
                ffi::MPI_Recv_init(buffer, length, kind, int(rank), tag, comm, request)
            });
            start += bytes;
        }
        start = 0;
        for &(rank, bytes) in outgoing {
            let base = channel.outgoing.bytes()[start..start + bytes].as_ptr();
            // SAFETY: as above.
            self.transfer(requests, "MPI_Send_init", bytes, |at, length, request| unsafe {
                let (buffer, kind) = (base.add(at).cast(), ffi::RSMPI_UINT8_T);
                ffi::MPI_Send_init(buffer, length, kind, int(rank), tag, comm, request)
            });
            start += bytes;
        }
        Ok(Box::new(channel))
    }

    fn reduction(&self, len: usize) -> Result<Box<dyn Reduction>, CommError> {
        let limit = c_int::MAX as usize;
        if len > limit {
            return Err(CommError::TooLarge { bytes: len.saturating_mul(8), limit });
        }
        Ok(Box::new(MpiReduction {
            world: Rc::clone(&self.world),
            values: ManuallyDrop::new(Buffer::new(8 * len)),
            sums: ManuallyDrop::new(Buffer::new(8 * len)),
            len,
            request: Requests(Vec::with_capacity(1)),
        }))
    }
}

impl MpiCommunicator {
    /// Adds a request for each piece of a message of `bytes` bytes. `call` makes the one for the bytes
    /// from a place on, as many as it is told, and `name` is what errors call it.
    fn transfer(
        &self,
        requests: &mut Requests,
        name: &str,
        bytes: usize,
        call: impl Fn(usize, c_int, &mut ffi::MPI_Request) -> c_int,
    ) {
        for (at, length) in pieces(bytes) {
            let code = requests.add(|request| call(at, length, request));
            self.fatal(name, code);
        }
    }

    /// Ends all ranks if a call has failed while transfers use memory that an error would free.
    fn fatal(&self, call: &str, code: c_int) {
        if let Err(error) = check(call, code) {
            self.world.abort(&error.to_string());
        }
    }
}

/// Persistent requests.
struct MpiChannel {
    world: Rc<World>,
    outgoing: ManuallyDrop<Buffer>,
    incoming: ManuallyDrop<Buffer>,
    requests: Requests,
    started: bool,
}

impl Channel for MpiChannel {
    fn outgoing(&mut self) -> &mut [u8] {
        assert!(!self.started, "the transfer has not ended");
        self.outgoing.bytes_mut()
    }

    fn start(&mut self) -> Result<(), CommError> {
        assert!(!self.started, "the transfer has not ended");
        self.started = true;
        // SAFETY: inactive persistent requests, whose buffers are not touched while they are active.
        let code = unsafe { ffi::MPI_Startall(self.requests.len(), self.requests.0.as_mut_ptr()) };
        check("MPI_Startall", code)
    }

    fn poll(&mut self) -> Result<bool, CommError> {
        if !self.started {
            return Ok(true);
        }
        let mut done = 0;
        // SAFETY: these are requests, whose buffers live.
        let code = unsafe {
            let requests = self.requests.0.as_mut_ptr();
            let ignore = ffi::RSMPI_STATUSES_IGNORE;
            ffi::MPI_Testall(self.requests.len(), requests, &mut done, ignore)
        };
        check("MPI_Testall", code)?;
        self.started = done == 0;
        Ok(done != 0)
    }

    fn wait(&mut self) -> Result<(), CommError> {
        if self.started {
            self.requests.wait()?;
            self.started = false;
        }
        Ok(())
    }

    fn incoming(&self) -> &[u8] {
        assert!(!self.started, "the transfer has not ended");
        self.incoming.bytes()
    }
}

impl Drop for MpiChannel {
    fn drop(&mut self) {
        // Whoever drops a channel in the middle of a transfer has failed, and so may the others have:
        // waiting for them could take for ever.
        let ended = !thread::panicking() && self.poll().is_ok_and(|ended| ended);
        for request in &mut self.requests.0 {
            // SAFETY: a request that is freed once; MPI runs as long as `world` is there. The buffers of
            // an active one stay where they are.
            unsafe { ffi::MPI_Request_free(request) };
        }
        if ended {
            // SAFETY: no request uses the buffers, and they are not used again.
            unsafe {
                ManuallyDrop::drop(&mut self.outgoing);
                ManuallyDrop::drop(&mut self.incoming);
            }
        }
        debug_assert!(Rc::strong_count(&self.world) > 0);
    }
}

/// A reduction that does not block.
struct MpiReduction {
    world: Rc<World>,
    values: ManuallyDrop<Buffer>,
    sums: ManuallyDrop<Buffer>,
    len: usize,
    /// The one of the sum under way, if there is one.
    request: Requests,
}

impl Reduction for MpiReduction {
    fn start(&mut self, values: &[f64]) -> Result<(), CommError> {
        assert_eq!(values.len(), self.len, "values of the reduction");
        assert!(self.request.0.is_empty(), "the sum before has not ended");
        bytes::scalars_mut(self.values.bytes_mut()).copy_from_slice(values);
        let (send, receive) = (self.values.bytes().as_ptr(), self.sums.bytes_mut().as_mut_ptr());
        // SAFETY: both buffers have `len` numbers, live as long as the request and are not touched
        // before it has ended.
        let code = self.request.add(|request| unsafe {
            let (kind, sum) = (ffi::RSMPI_DOUBLE, ffi::RSMPI_SUM);
            let (send, receive, len) = (send.cast(), receive.cast(), int(self.len));
            ffi::MPI_Iallreduce(send, receive, len, kind, sum, self.world.comm, request)
        });
        check("MPI_Iallreduce", code)
    }

    fn finish(&mut self, sums: &mut [f64]) -> Result<(), CommError> {
        assert_eq!(sums.len(), self.len, "sums of the reduction");
        assert!(!self.request.0.is_empty(), "the reduction was not started");
        self.request.wait()?;
        self.request.0.clear();
        sums.copy_from_slice(bytes::scalars(self.sums.bytes()));
        Ok(())
    }
}

impl Drop for MpiReduction {
    fn drop(&mut self) {
        // As for a channel, but that MPI does not let the request of a collective call be freed.
        if !self.request.0.is_empty() {
            return;
        }
        // SAFETY: no request uses the buffers, and they are not used again.
        unsafe {
            ManuallyDrop::drop(&mut self.values);
            ManuallyDrop::drop(&mut self.sums);
        }
    }
}

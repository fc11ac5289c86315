//! What ranks do together: the small interface below all distributed code.

use std::any::Any;
use std::sync::Arc;

use crate::{CommError, DistError};

/// What ranks of one process share: [`Communicator::share`].
pub type Shared = Arc<dyn Any + Send + Sync>;

/// One rank's access to all ranks.
///
/// All functions but [`Communicator::rank`] and [`Communicator::size`] are collective: every rank makes
/// the same calls in the same order. A rank that ends, or makes another call, is an error on the ranks
/// that wait for it ([`CommError`]), or ends all of them; none waits for ever.
pub trait Communicator {
    /// The number of this rank, below [`Communicator::size`].
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Sends bytes to some ranks, at most one message to each; returns what ranks have sent to this one,
    /// with their numbers in ascending order.
    ///
    /// # Errors
    /// [`CommError`].
    ///
    /// # Panics
    /// When a rank is not below [`Communicator::size`], or occurs twice.
    fn exchange(&self, outgoing: &[(usize, &[u8])]) -> Result<Vec<(usize, Vec<u8>)>, CommError>;

    /// The bytes of every rank, in their order; each may have another number.
    ///
    /// # Errors
    /// [`CommError`].
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;

    /// Messages between fixed neighbours that are sent again and again: `outgoing` and `incoming` have
    /// a rank and a number of bytes for each. Both ends give the same number.
    ///
    /// # Errors
    /// [`CommError`].
    ///
    /// # Panics
    /// As [`Communicator::exchange`].
    fn channel(
        &self,
        outgoing: &[(usize, usize)],
        incoming: &[(usize, usize)],
    ) -> Result<Box<dyn Channel>, CommError>;

    /// A sum of `len` numbers over all ranks that may be computed again and again.
    ///
    /// # Errors
    /// [`CommError`].
    fn reduction(&self, len: usize) -> Result<Box<dyn Reduction>, CommError>;

    /// The objects of all ranks, in their order, where all of them are in one process; `None` otherwise.
    ///
    /// # Errors
    /// [`CommError`].
    fn share(&self, object: Shared) -> Result<Option<Vec<Shared>>, CommError> {
        drop(object);
        Ok(None)
    }

    /// Replaces each number by its sum over all ranks, the same bits on every rank.
    ///
    /// # Errors
    /// [`CommError`].
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        let mut reduction = self.reduction(values.len())?;
        reduction.start(values)?;
        reduction.finish(values)
    }
}

/// Messages between fixed neighbours, made by [`Communicator::channel`]. The channel owns the memory that
/// is sent and received; nothing is allocated after it was made.
pub trait Channel {
    /// The bytes to send, those of one neighbour after those of the other.
    ///
    /// # Panics
    /// Between [`Channel::start`] and the end of the transfer.
    fn outgoing(&mut self) -> &mut [u8];

    /// Starts to send and to receive.
    ///
    /// # Errors
    /// [`CommError`].
    ///
    /// # Panics
    /// When the transfer before has not ended.
    fn start(&mut self) -> Result<(), CommError>;

    /// Advances the transfer; whether it has ended. A transport may do nothing between such calls.
    ///
    /// # Errors
    /// [`CommError`].
    fn poll(&mut self) -> Result<bool, CommError>;

    /// Ends the transfer.
    ///
    /// # Errors
    /// [`CommError`].
    fn wait(&mut self) -> Result<(), CommError>;

    /// The bytes received, those of one neighbour after those of the other.
    ///
    /// # Panics
    /// As [`Channel::outgoing`].
    fn incoming(&self) -> &[u8];
}

/// A sum over all ranks that goes on beside other work, made by [`Communicator::reduction`].
pub trait Reduction {
    /// Starts to sum `values`.
    ///
    /// # Errors
    /// [`CommError`].
    ///
    /// # Panics
    /// When there are more or fewer values than the reduction has, or the sum before has not ended.
    fn start(&mut self, values: &[f64]) -> Result<(), CommError>;

    /// Waits for the sums.
    ///
    /// # Errors
    /// [`CommError`].
    ///
    /// # Panics
    /// When there are more or fewer sums than the reduction has, or it was not started.
    fn finish(&mut self, sums: &mut [f64]) -> Result<(), CommError>;
}

/// `local` if it is `Ok` on every rank; otherwise, on every rank, the error of the first that has one.
///
/// # Errors
/// [`DistError::Rank`], and errors of the communication.
pub fn agree<R>(
    comm: &(impl Communicator + ?Sized),
    local: Result<R, DistError>,
) -> Result<R, DistError> {
    let message = match &local {
        Ok(_) => String::new(),
        Err(DistError::Comm(error)) => return Err(error.clone().into()),
        // Never empty, so that it is told from success.
        Err(error) => format!("!{error}"),
    };
    let all = comm.all_gather(message.as_bytes())?;
    let Some(rank) = all.iter().position(|message| !message.is_empty()) else {
        return local;
    };
    let message = String::from_utf8_lossy(&all[rank][1..]).into_owned();
    let cause = local.err().filter(|_| rank == comm.rank()).map(Box::new);
    Err(DistError::Rank { rank, message, cause })
}

/// The largest number of any rank; negative infinity if all are NaN.
///
/// # Errors
/// [`CommError`].
pub fn largest(comm: &(impl Communicator + ?Sized), number: f64) -> Result<f64, CommError> {
    let all = comm.all_gather(&number.to_le_bytes())?;
    let number = |bytes: &Vec<u8>| f64::from_le_bytes(bytes[..].try_into().unwrap_or([0; 8]));
    Ok(all.iter().map(number).fold(f64::NEG_INFINITY, f64::max))
}

/// Checks that `text` is the same on every rank.
///
/// # Errors
/// On every rank [`DistError::Rank`] with the first rank whose text is not that of rank 0; errors of the
/// communication.
pub fn same_everywhere(comm: &(impl Communicator + ?Sized), text: &str) -> Result<(), DistError> {
    let all = comm.all_gather(text.as_bytes())?;
    let Some(rank) = all.iter().position(|other| *other != all[0]) else {
        return Ok(());
    };
    let [expected, found] = [0, rank].map(|rank| String::from_utf8_lossy(&all[rank]).into_owned());
    let message = format!("has {found}; rank 0 has {expected}");
    Err(DistError::Rank { rank, message, cause: None })
}

/// Checks the ranks of a list of messages.
///
/// # Panics
/// When a rank is not below `size`, or occurs twice.
pub(crate) fn check_ranks(ranks: impl Iterator<Item = usize>, size: usize) {
    let mut seen = vec![false; size];
    for rank in ranks {
        assert!(rank < size, "rank {rank} of {size}");
        assert!(!std::mem::replace(&mut seen[rank], true), "two messages for rank {rank}");
    }
}

//! Who sends which elements of x to whom.

use std::ops::Range;

use crate::{CommError, Communicator, Partition, bytes};

/// The elements of x that a rank needs of others, its ghost entries, and those that others need of it.
///
/// Ghost entries are in ascending global order, which is also the order of the ranks that own them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halo {
    ghosts: Vec<u64>,
    /// A rank and its part of `ghosts`.
    receives: Vec<(usize, Range<usize>)>,
    /// A rank and its part of `local`.
    sends: Vec<(usize, Range<usize>)>,
    /// Local indices of the elements to send.
    local: Vec<u32>,
}

impl Halo {
    /// The halo of a rank that needs the elements `ghosts` of a vector divided by `partition`: one
    /// exchange. Collective.
    ///
    /// # Errors
    /// Errors of the communication.
    ///
    /// # Panics
    /// When the ghosts do not ascend strictly, belong to this rank or are beyond the partition, or this
    /// rank has 2^32 elements and more.
    pub fn new(
        comm: &(impl Communicator + ?Sized),
        partition: &Partition,
        ghosts: Vec<u64>,
    ) -> Result<Self, CommError> {
        let own = partition.range(comm.rank());
        assert!(ghosts.windows(2).all(|pair| pair[0] < pair[1]), "ghosts ascend");
        assert!(own.end - own.start <= u64::from(u32::MAX), "local indices have 32 bits");
        let receives = partition.owners(&ghosts);
        assert!(
            receives.iter().all(|(rank, _)| *rank != comm.rank()),
            "ghosts are others' elements"
        );
        let requests: Vec<(usize, &[u8])> = receives
            .iter()
            .map(|(rank, range)| (*rank, bytes::of_indices(&ghosts[range.clone()])))
            .collect();
        let (mut sends, mut local) = (Vec::new(), Vec::new());
        for (rank, request) in comm.exchange(&requests)? {
            let start = local.len();
            for index in bytes::to_indices::<u64>(&request) {
                if !own.contains(&index) {
                    let what = format!("it takes element {index} for one of this rank's");
                    return Err(CommError::Disagreement { rank, what });
                }
                local.push((index - own.start) as u32);
            }
            sends.push((rank, start..local.len()));
        }
        Ok(Self { ghosts, receives, sends, local })
    }

    /// Global indices of the ghost entries.
    pub fn ghosts(&self) -> &[u64] {
        &self.ghosts
    }

    /// Local indices of the elements to send, those for one rank after those for the other.
    pub fn local(&self) -> &[u32] {
        &self.local
    }

    /// Each rank that this one sends to, with the range of its elements in [`Halo::local`].
    pub fn sends(&self) -> &[(usize, Range<usize>)] {
        &self.sends
    }

    /// Each rank that sends to this one, with the range of its elements in [`Halo::ghosts`].
    pub fn receives(&self) -> &[(usize, Range<usize>)] {
        &self.receives
    }

    /// Number of ranks that this one receives from.
    pub fn neighbours(&self) -> usize {
        self.receives.len()
    }

    /// The messages of one direction for elements of `size` bytes.
    pub(crate) fn messages(list: &[(usize, Range<usize>)], size: usize) -> Vec<(usize, usize)> {
        list.iter().map(|(rank, range)| (*rank, range.len() * size)).collect()
    }

    /// Bytes of the arrays.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (size_of_val(&*self.ghosts) + size_of_val(&*self.local)) as u64
    }
}

//! A new numbering of the rows and columns of a distributed square matrix.

use spm_formats::Scalar;
use spm_formats::csr::check_limits;
use spm_formats::kernel::check_length;

use crate::assemble::{ROUND, count, place, rounds};
use crate::comm::agree;
use crate::matrix::ghosts;
use crate::{Communicator, DistError, Halo, Partition, PartitionError, Rows, bytes};

/// A symmetric permutation of a distributed square matrix, which brings the indices of each rank together.
///
/// A partitioner of graphs ([`Permutation::from_metis`], or any other) says which rank should own which index.
/// Blocks of a [`Partition`] are contiguous, so the indices get new numbers: those of rank 0 first, and those of
/// a rank in their old order. With the permutation P, B = P A P^T is the matrix in the new numbering
/// ([`Permutation::matrix`]), divided by [`Permutation::partition`], and B (P x) = P (A x): vectors are brought
/// into the new numbering once ([`Permutation::forward`]), and results back ([`Permutation::back`]).
///
/// The columns of a row of B are in another order than those of A, so a product may differ in its last bits.
///
/// ```
/// use spm_dist::{Communicator, DistCsr, DistOperator, Options, Partition, Permutation, Rows, threads};
///
/// // A ring of 6 points. Rank 0 shall own the even ones.
/// let y = threads::run(2, |comm| {
///     let old = Partition::even(6, 2);
///     let own = old.range(comm.rank());
///     let ring = Rows::generate(own.clone(), 6, |i, row| {
///         row.extend([(i, 2.0), ((i + 1) % 6, -1.0)]);
///         row.sort_by_key(|entry| entry.0);
///     })?;
///     let owners: Vec<u32> = own.clone().map(|i| (i % 2) as u32).collect();
///     let permutation = Permutation::new(comm, &old, &owners)?;
///     let ring = permutation.matrix(comm, &ring)?;
///     let new = permutation.partition();
///     let mut op = DistOperator::new(comm, DistCsr::new(comm, new, new, ring)?, &Options::default())?;
///
///     let x: Vec<f64> = own.map(|i| i as f64).collect();
///     let x = permutation.forward(comm, &x, 1)?;
///     let mut y = vec![0.0; x.len()];
///     op.apply(&x, &mut y)?;
///     permutation.back(comm, &y, 1)
/// })?;
/// assert_eq!(y.concat(), [-1.0, 0.0, 1.0, 2.0, 3.0, 10.0]);
/// # Ok::<(), spm_dist::DistError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    from: Partition,
    to: Partition,
    /// The new number of each old index of this rank.
    numbers: Vec<u64>,
    /// The indices of each rank in the old numbering that are this rank's in the new one.
    incoming: Vec<u64>,
}

impl Permutation {
    /// Gives each index of this rank, as `old` divides them, to the rank in `owners`. Collective.
    ///
    /// # Errors
    /// On every rank the same: another number of owners than this rank has indices, an owner that is no rank, a
    /// partition for another number of ranks; errors of the communication.
    pub fn new(
        comm: &(impl Communicator + ?Sized),
        old: &Partition,
        owners: &[u32],
    ) -> Result<Self, DistError> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let checked = || {
            check_ranks(old, ranks)?;
            check_length("owners", old.len(rank) as usize, owners.len())?;
            match owners.iter().find(|&&owner| owner as usize >= ranks) {
                None => Ok(()),
                Some(&found) => Err(PartitionError::Owner { found, ranks }.into()),
            }
        };
        agree(comm, checked())?;
        let mut own = vec![0_u64; ranks];
        owners.iter().for_each(|&owner| own[owner as usize] += 1);
        let all = comm.all_gather(bytes::of_indices(&own))?;
        let counts: Vec<Vec<u64>> = all.iter().map(|own| bytes::to_indices(own)).collect();
        let mut bounds = vec![0];
        // The next number of each owner's indices on this rank.
        let mut next = Vec::with_capacity(ranks);
        for owner in 0..ranks {
            let of_rank = |counts: &Vec<u64>| counts[owner];
            next.push(bounds[owner] + counts[..rank].iter().map(of_rank).sum::<u64>());
            bounds.push(bounds[owner] + counts.iter().map(of_rank).sum::<u64>());
        }
        let number = |&owner: &u32| {
            let next = &mut next[owner as usize];
            *next += 1;
            *next - 1
        };
        let numbers = owners.iter().map(number).collect();
        let to = Partition::from_bounds(old.total(), bounds)?;
        let incoming = counts.iter().map(|counts| counts[rank]).collect();
        Ok(Self { from: old.clone(), to, numbers, incoming })
    }

    /// The division of the new numbers.
    pub fn partition(&self) -> &Partition {
        &self.to
    }

    /// The new number of each index that this rank has in the old numbering.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// This rank's rows of B = P A P^T, from its rows of A. Entries are sent in rounds; a rank holds its rows of
    /// both matrices. Collective.
    ///
    /// # Errors
    /// On every rank the same: a matrix that is not square, or not divided as the old numbering is; errors of
    /// the communication.
    pub fn matrix<T: Scalar>(
        &self,
        comm: &(impl Communicator + ?Sized),
        a: &Rows<T>,
    ) -> Result<Rows<T>, DistError> {
        agree(comm, check_square(comm, &self.from, a))?;
        let own = self.from.range(comm.rank());
        let halo = Halo::new(comm, &self.from, ghosts(a, &own))?;
        let of_others = self.numbers_of(comm, &halo)?;
        let number = |col: u64| match own.contains(&col) {
            true => self.numbers[(col - own.start) as usize],
            false => of_others[halo.ghosts().partition_point(|&ghost| ghost < col)],
        };
        let rounds = rounds(comm, a.nnz())?;
        let mut source = |round: usize, emit: &mut dyn FnMut(u64, u64, T)| {
            a.for_each_entry(round, |row, col, value| {
                emit(self.numbers[row], number(col), value);
            });
            Ok(())
        };
        let counts = count(comm, &self.to, rounds, &mut source)?;
        place(comm, &self.to, self.to.total(), &counts, rounds, &mut source)
    }

    /// The new numbers of the ghost entries of a halo.
    fn numbers_of(
        &self,
        comm: &(impl Communicator + ?Sized),
        halo: &Halo,
    ) -> Result<Vec<u64>, DistError> {
        let numbers: Vec<u64> =
            halo.local().iter().map(|&local| self.numbers[local as usize]).collect();
        let outgoing: Vec<(usize, &[u8])> = halo
            .sends()
            .iter()
            .map(|(rank, range)| (*rank, bytes::of_indices(&numbers[range.clone()])))
            .collect();
        let incoming = comm.exchange(&outgoing)?;
        Ok(incoming.iter().flat_map(|(_, numbers)| bytes::to_indices::<u64>(numbers)).collect())
    }

    /// P x: this rank's elements in the new numbering, from those that it has in the old one. `columns` elements
    /// belong to an index: 1 for a vector, k for a row-major matrix with k columns. Collective.
    ///
    /// # Errors
    /// On every rank the same: a wrong length; errors of the communication.
    pub fn forward<T: Scalar>(
        &self,
        comm: &(impl Communicator + ?Sized),
        x: &[T],
        columns: usize,
    ) -> Result<Vec<T>, DistError> {
        let length = check_length("x", self.numbers.len() * columns, x.len());
        agree(comm, length.map_err(DistError::from))?;
        let mut outgoing: Vec<Vec<T>> = vec![Vec::new(); comm.size()];
        for (index, &number) in self.numbers.iter().enumerate() {
            let elements = &x[index * columns..][..columns];
            outgoing[self.to.owner(number)].extend_from_slice(elements);
        }
        // A rank's indices are in their old order in both numberings: messages follow each other as they are.
        let incoming = exchange(comm, outgoing.iter().map(|elements| &elements[..]))?;
        Ok(incoming.concat())
    }

    /// P^T y: this rank's elements in the old numbering, from those that it has in the new one. Collective.
    ///
    /// # Errors
    /// As [`Permutation::forward`].
    pub fn back<T: Scalar>(
        &self,
        comm: &(impl Communicator + ?Sized),
        y: &[T],
        columns: usize,
    ) -> Result<Vec<T>, DistError> {
        let own = self.incoming.iter().sum::<u64>() as usize;
        agree(comm, check_length("y", own * columns, y.len()).map_err(DistError::from))?;
        let mut rest = y;
        let outgoing = self.incoming.iter().map(|&count| {
            let (elements, after) = rest.split_at(count as usize * columns);
            rest = after;
            elements
        });
        let incoming = exchange(comm, outgoing)?;
        let mut next = vec![0; comm.size()];
        let mut x = Vec::with_capacity(self.numbers.len() * columns);
        for &number in &self.numbers {
            let owner = self.to.owner(number);
            x.extend_from_slice(&incoming[owner][next[owner]..][..columns]);
            next[owner] += columns;
        }
        Ok(x)
    }
}

/// Sends elements to every rank; returns those of every rank.
fn exchange<'a, T: Scalar>(
    comm: &(impl Communicator + ?Sized),
    outgoing: impl Iterator<Item = &'a [T]>,
) -> Result<Vec<Vec<T>>, DistError> {
    let messages: Vec<(usize, &[u8])> = outgoing
        .map(bytes::of_scalars)
        .enumerate()
        .filter(|(_, message)| !message.is_empty())
        .collect();
    let mut incoming = vec![Vec::new(); comm.size()];
    for (rank, message) in comm.exchange(&messages)? {
        incoming[rank] = bytes::to_scalars(&message);
    }
    Ok(incoming)
}

fn check_ranks(partition: &Partition, expected: usize) -> Result<(), DistError> {
    let found = partition.ranks();
    if expected == found { Ok(()) } else { Err(PartitionError::Ranks { expected, found }.into()) }
}

/// That `a` has this rank's rows of a square matrix.
pub(crate) fn check_square<T: Scalar>(
    comm: &(impl Communicator + ?Sized),
    partition: &Partition,
    a: &Rows<T>,
) -> Result<(), DistError> {
    check_ranks(partition, comm.size())?;
    let of_rank = partition.len(comm.rank());
    for (what, expected, found) in
        [("rows", a.rows() as u64, of_rank), ("columns", a.cols(), partition.total())]
    {
        if expected != found {
            return Err(PartitionError::Size { what, expected, found }.into());
        }
    }
    Ok(check_limits(of_rank, 0, 0)?)
}

impl<T: Scalar> Rows<T> {
    /// Calls `visit` with local row, column and value of the entries of a round of [`rounds`].
    pub(crate) fn for_each_entry(&self, round: usize, mut visit: impl FnMut(usize, u64, T)) {
        let start = (round * ROUND).min(self.nnz());
        let end = (start + ROUND).min(self.nnz());
        let mut row = self.row_ptr.partition_point(|&pointer| pointer <= start).saturating_sub(1);
        for entry in start..end {
            while self.row_ptr[row + 1] <= entry {
                row += 1;
            }
            visit(row, self.col_ind[entry], self.values[entry]);
        }
    }
}

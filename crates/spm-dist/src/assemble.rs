//! Entries that come from any rank, brought to the ranks of their rows.
//!
//! Entries are sent twice, in rounds of limited size: first their rows, which are counted, then the
//! entries, which go to their places at once. No rank needs more than its own rows and one round.

use spm_formats::Scalar;

use crate::comm::agree;
use crate::{Communicator, DistCsr, DistError, Partition, Rows, bytes};

/// Entries of a rank in a round, of those that are counted beforehand.
pub(crate) const ROUND: usize = 1 << 15;

/// What gives the entries of one round to a function of row, column and value; the same each time.
pub(crate) trait Source<T> {
    fn entries(&mut self, round: usize, emit: &mut dyn FnMut(u64, u64, T))
    -> Result<(), DistError>;
}

impl<T, F> Source<T> for F
where
    F: FnMut(usize, &mut dyn FnMut(u64, u64, T)) -> Result<(), DistError>,
{
    fn entries(
        &mut self,
        round: usize,
        emit: &mut dyn FnMut(u64, u64, T),
    ) -> Result<(), DistError> {
        self(round, emit)
    }
}

/// Rounds that all ranks need for `entries` entries of this one.
pub(crate) fn rounds(
    comm: &(impl Communicator + ?Sized),
    entries: usize,
) -> Result<usize, DistError> {
    let own = [entries.div_ceil(ROUND) as u64];
    let all = comm.all_gather(bytes::of_indices(&own))?;
    Ok(all.iter().map(|own| bytes::to_indices::<u64>(own)[0]).max().unwrap_or(0) as usize)
}

/// Number of entries of each row of this rank; positions that occur several times count as often.
pub(crate) fn count<T>(
    comm: &(impl Communicator + ?Sized),
    rows: &Partition,
    rounds: usize,
    source: &mut impl Source<T>,
) -> Result<Vec<u32>, DistError> {
    let mut counts = vec![0_u32; rows.len(comm.rank()) as usize];
    let mut outgoing: Vec<Vec<u32>> = vec![Vec::new(); comm.size()];
    let mut status = Ok(());
    for round in 0..rounds {
        outgoing.iter_mut().for_each(Vec::clear);
        if status.is_ok() {
            status = source.entries(round, &mut |row, _, _| {
                let rank = rows.owner(row);
                outgoing[rank].push((row - rows.range(rank).start) as u32);
            });
        }
        let messages: Vec<(usize, &[u8])> = outgoing
            .iter()
            .enumerate()
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(rank, rows)| (rank, bytes::of_indices(rows)))
            .collect();
        for (_, message) in comm.exchange(&messages)? {
            for row in bytes::to_indices::<u32>(&message) {
                counts[row as usize] += 1;
            }
        }
    }
    agree(comm, status)?;
    Ok(counts)
}

/// The entries for one rank in a round.
struct Letter<T> {
    /// Local rows.
    rows: Vec<u32>,
    cols: Vec<u64>,
    values: Vec<T>,
}

impl<T: Scalar> Letter<T> {
    const BYTES: usize = size_of::<u32>() + size_of::<u64>() + T::BYTES;

    fn clear(&mut self) {
        self.rows.clear();
        self.cols.clear();
        self.values.clear();
    }

    fn write(&self, message: &mut Vec<u8>) {
        message.clear();
        message.extend_from_slice(bytes::of_indices(&self.cols));
        message.extend_from_slice(bytes::of_scalars(&self.values));
        message.extend_from_slice(bytes::of_indices(&self.rows));
    }

    fn read(message: &[u8]) -> Self {
        let entries = message.len() / Self::BYTES;
        let (cols, rest) = message.split_at(entries * size_of::<u64>());
        let (values, rows) = rest.split_at(entries * T::BYTES);
        let (rows, cols) = (bytes::to_indices(rows), bytes::to_indices(cols));
        Self { rows, cols, values: bytes::to_scalars(values) }
    }
}

/// This rank's rows of the matrix with these entries. `counts` are those of [`count`]. Values of equal
/// positions are summed in the order of rounds and ranks.
pub(crate) fn place<T: Scalar>(
    comm: &(impl Communicator + ?Sized),
    rows: &Partition,
    cols: u64,
    counts: &[u32],
    rounds: usize,
    source: &mut impl Source<T>,
) -> Result<Rows<T>, DistError> {
    let mut row_ptr = Vec::with_capacity(counts.len() + 1);
    row_ptr.push(0);
    let mut end = 0;
    row_ptr.extend(counts.iter().map(|&count| {
        end += count as usize;
        end
    }));
    let (mut col_ind, mut values) = (vec![0_u64; end], vec![T::ZERO; end]);
    // Entries of each row that have come.
    let mut filled = vec![0_u32; counts.len()];
    let empty = || Letter { rows: Vec::new(), cols: Vec::new(), values: Vec::new() };
    let mut letters: Vec<Letter<T>> = (0..comm.size()).map(|_| empty()).collect();
    let mut messages: Vec<Vec<u8>> = vec![Vec::new(); comm.size()];
    let mut status = Ok(());
    for round in 0..rounds {
        for letter in &mut letters {
            letter.clear();
        }
        if status.is_ok() {
            status = source.entries(round, &mut |row, col, value| {
                let rank = rows.owner(row);
                let letter = &mut letters[rank];
                letter.rows.push((row - rows.range(rank).start) as u32);
                letter.cols.push(col);
                letter.values.push(value);
            });
        }
        for (letter, message) in letters.iter().zip(&mut messages) {
            letter.write(message);
        }
        let outgoing: Vec<(usize, &[u8])> = messages
            .iter()
            .enumerate()
            .filter(|(_, message)| !message.is_empty())
            .map(|(rank, message)| (rank, &**message))
            .collect();
        for (_, message) in comm.exchange(&outgoing)? {
            let letter = Letter::<T>::read(&message);
            for ((&row, &col), &value) in letter.rows.iter().zip(&letter.cols).zip(&letter.values) {
                let row = row as usize;
                let at = row_ptr[row] + filled[row] as usize;
                (col_ind[at], values[at]) = (col, value);
                filled[row] += 1;
            }
        }
    }
    agree(comm, status)?;
    drop((letters, messages, filled));
    sort(&mut row_ptr, &mut col_ind, &mut values);
    Ok(Rows::new(cols, row_ptr, col_ind, values)?)
}

/// Sorts each row by columns and sums the values of equal ones.
fn sort<T: Scalar>(row_ptr: &mut [usize], col_ind: &mut Vec<u64>, values: &mut Vec<T>) {
    let (mut row, mut to, mut start) = (Vec::new(), 0, 0);
    for end in &mut row_ptr[1..] {
        row.clear();
        row.extend(col_ind[start..*end].iter().copied().zip(values[start..*end].iter().copied()));
        // Stable: equal columns are summed in their order.
        row.sort_by_key(|entry: &(u64, T)| entry.0);
        let first = to;
        for &(col, value) in &row {
            if to > first && col_ind[to - 1] == col {
                values[to - 1] += value;
            } else {
                (col_ind[to], values[to]) = (col, value);
                to += 1;
            }
        }
        start = std::mem::replace(end, to);
    }
    col_ind.truncate(to);
    values.truncate(to);
}

impl<T: Scalar> Rows<T> {
    /// This rank's rows of the matrix with the `entries` (row, column, value) of all ranks: each rank may
    /// have entries of any row, as finite elements do. Values of equal positions are summed, in an order
    /// that depends on the number of ranks. Collective.
    ///
    /// # Errors
    /// On every rank the same: an entry outside of the matrix; errors of the communication.
    pub fn from_triplets(
        comm: &(impl Communicator + ?Sized),
        rows: &Partition,
        cols: u64,
        entries: &[(u64, u64, T)],
    ) -> Result<Self, DistError> {
        let outside = entries.iter().find(|entry| entry.0 >= rows.total() || entry.1 >= cols);
        let checked = match outside {
            None => Ok(()),
            Some((row, col, _)) => {
                let (found, shape) = (format!("({row}, {col})"), (rows.total(), cols));
                Err(DistError::Entry { found, shape })
            }
        };
        agree(comm, checked)?;
        let rounds = rounds(comm, entries.len())?;
        let mut source = |round: usize, emit: &mut dyn FnMut(u64, u64, T)| {
            let start = (round * ROUND).min(entries.len());
            let end = (start + ROUND).min(entries.len());
            entries[start..end].iter().for_each(|&(row, col, value)| emit(row, col, value));
            Ok(())
        };
        let counts = count(comm, rows, rounds, &mut source)?;
        place(comm, rows, cols, &counts, rounds, &mut source)
    }
}

impl<T: Scalar> DistCsr<T> {
    /// The transpose, divided by the columns of this matrix: each rank sends its entries to the ranks of
    /// their columns, in rounds. Its rows are sorted, as every rank's are. Collective.
    ///
    /// # Errors
    /// As [`DistCsr::new`].
    pub fn transposed(&self, comm: &(impl Communicator + ?Sized)) -> Result<Self, DistError> {
        let (rows, cols) = (self.col_partition(), self.row_partition());
        let first = cols.range(comm.rank()).start;
        let rounds = rounds(comm, self.local_nnz())?;
        let mut source = |round: usize, emit: &mut dyn FnMut(u64, u64, T)| {
            let (mut entry, range) = (0, round * ROUND..(round + 1) * ROUND);
            self.for_each_global_row(|row, length, entries| {
                // Whole rows are passed over without a look at their entries.
                if entry + length > range.start && entry < range.end {
                    for (at, (col, value)) in (entry..).zip(entries) {
                        if range.contains(&at) {
                            emit(col, first + row as u64, value);
                        }
                    }
                }
                entry += length;
            });
            Ok(())
        };
        let counts = count(comm, rows, rounds, &mut source)?;
        let transposed = place(comm, rows, cols.total(), &counts, rounds, &mut source)?;
        Self::new(comm, rows, cols, transposed)
    }
}

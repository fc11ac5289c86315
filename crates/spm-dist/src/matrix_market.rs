//! Matrix Market files that all ranks read together.

use std::path::Path;

use spm_formats::Scalar;
use spm_formats::matrix_market::{RangeFile, ReadOptions};

use crate::assemble::{count, place};
use crate::comm::agree;
use crate::{Communicator, DistError, Partition, Rows, bytes};

/// Bytes of text that a rank reads in a round.
const ROUND: u64 = 1 << 18;

/// Reads a plain Matrix Market file in coordinate format: each rank reads its range of the bytes, twice,
/// and sends the entries to the ranks of their rows. No rank holds more than its rows and one round.
/// Returns the division of the rows, by entries, and this rank's rows. Collective.
///
/// Values of equal positions are summed in an order that depends on the number of ranks.
///
/// # Errors
/// On every rank the same: the errors of [`RangeFile`] and of [`Rows::new`], a file with another number of
/// entries than it declares, errors of the communication.
pub fn read<T: Scalar>(
    comm: &(impl Communicator + ?Sized),
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<(Partition, Rows<T>), DistError> {
    let path = path.as_ref();
    let wrong =
        |error: spm_formats::matrix_market::MatrixMarketError| DistError::File(error.to_string());
    let file = agree(comm, RangeFile::open(path, options).map_err(wrong))?;
    let (header, body) = (file.header(), file.body());
    let identity = format!(
        "a file of {} rows, {} columns and {} entries in bytes {body:?}",
        header.rows, header.cols, header.entries
    );
    crate::same_everywhere(comm, &identity)?;
    let (ranks, length) = (comm.size() as u64, body.end - body.start);
    let rounds = length.div_ceil(ROUND * ranks);
    // The ranges of all rounds of a rank follow each other.
    let bound = |number: u64| {
        let share = u128::from(length) * u128::from(number) / u128::from((rounds * ranks).max(1));
        body.start + share as u64
    };
    let first = comm.rank() as u64 * rounds;
    let mut found = 0;
    let mut source = |round: usize, emit: &mut dyn FnMut(u64, u64, T)| {
        let number = first + round as u64;
        let emit = |row: u32, col: u32, value: T| emit(u64::from(row), u64::from(col), value);
        found += file.read(bound(number)..bound(number + 1), emit).map_err(wrong)?;
        Ok(())
    };
    let rounds = rounds as usize;
    let even = Partition::even(u64::from(header.rows), comm.size());
    let counts = count(comm, &even, rounds, &mut source)?;
    let (rows, counts) = by_entries(comm, &even, counts)?;
    let cols = u64::from(header.cols);
    let matrix = place(comm, &rows, cols, &counts, rounds, &mut source)?;
    let all = comm.all_gather(bytes::of_indices(&[found / 2]))?;
    let found: u64 = all.iter().map(|found| bytes::to_indices::<u64>(found)[0]).sum();
    if found != u64::from(header.entries) {
        let message =
            format!("{}: expected {} entries, found {found}", path.display(), header.entries);
        // Every rank comes here.
        return Err(DistError::Rank { rank: 0, message, cause: None });
    }
    Ok((rows, matrix))
}

/// Divides rows so that entries and rows together are balanced, from the counts of even blocks; returns
/// the counts of this rank's rows.
fn by_entries(
    comm: &(impl Communicator + ?Sized),
    even: &Partition,
    counts: Vec<u32>,
) -> Result<(Partition, Vec<u32>), DistError> {
    let weight = |count: u32| u64::from(count) + 1;
    let total = counts.iter().map(|&count| weight(count)).sum::<u64>();
    let totals = comm.all_gather(bytes::of_indices(&[total]))?;
    let totals: Vec<u64> = totals.iter().map(|total| bytes::to_indices::<u64>(total)[0]).collect();
    let before: u64 = totals[..comm.rank()].iter().sum();
    let all: u64 = totals.iter().sum();
    // The bounds that lie in this rank's block.
    let (mut sum, mut own) = (before, Vec::new());
    let target = |bound: u64| (u128::from(all) * u128::from(bound) / comm.size() as u128) as u64;
    let mut next = (1..comm.size() as u64).find(|&bound| target(bound) > before);
    for (row, &count) in counts.iter().enumerate() {
        sum += weight(count);
        while let Some(bound) = next.filter(|&bound| target(bound) <= sum) {
            own.push(even.range(comm.rank()).start + row as u64 + 1);
            next = Some(bound + 1).filter(|&bound| bound < comm.size() as u64);
        }
    }
    let inner = comm.all_gather(bytes::of_indices(&own))?;
    let inner = inner.iter().flat_map(|bounds| bytes::to_indices::<u64>(bounds));
    let mut bounds: Vec<u64> = std::iter::once(0).chain(inner).collect();
    // Without rows there are no inner bounds.
    bounds.resize(comm.size() + 1, even.total());
    bounds[comm.size()] = even.total();
    let rows = Partition::from_bounds(even.total(), bounds)?;

    let block = even.range(comm.rank());
    let parts = (0..comm.size()).filter_map(|rank| {
        let theirs = rows.range(rank);
        let (start, end) = (theirs.start.max(block.start), theirs.end.min(block.end));
        let part = || (start - block.start) as usize..(end - block.start) as usize;
        (start < end).then(|| (rank, part()))
    });
    let messages: Vec<(usize, &[u8])> =
        parts.map(|(rank, range)| (rank, bytes::of_indices(&counts[range]))).collect();
    // In the order of the ranks, which is that of the rows.
    let received = comm.exchange(&messages)?;
    let counts = received.iter().flat_map(|(_, part)| bytes::to_indices::<u32>(part)).collect();
    Ok((rows, counts))
}

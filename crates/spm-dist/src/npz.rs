//! CSR matrices in `.npz` archives, of which each rank reads its rows.

use std::path::Path;

use spm_formats::Scalar;
use spm_formats::cache::{CacheError, NpzFile};

use crate::comm::agree;
use crate::{Communicator, DistError, Partition, Rows, bytes, same_everywhere};

/// Reads an uncompressed `.npz` archive of a CSR matrix, as `scipy.sparse.save_npz(..., compressed=False)` and
/// the binary cache of Matrix Market files ([`spm_formats::cache::path_for`]) write it: each rank reads its
/// rows, at their places in the file, and nothing else. Returns the division of the rows, by entries, and this
/// rank's rows. Collective.
///
/// All ranks must see the same file. Nothing compares the archive with a text beside it, nor with its own
/// checksums. Indices of 64 bits are read too.
///
/// # Errors
/// On every rank the same: the errors of [`NpzFile`], which refuses compressed archives, and values of another
/// type than `T`; those of [`Rows::new`], also for columns of a row that do not ascend, which SciPy allows
/// (`sum_duplicates()` there brings them into order); files that differ between ranks; errors of the
/// communication.
pub fn read<T: Scalar>(
    comm: &(impl Communicator + ?Sized),
    path: impl AsRef<Path>,
) -> Result<(Partition, Rows<T>), DistError> {
    let path = path.as_ref();
    let wrong = |error: CacheError| DistError::File(error.to_string());
    let file = agree(comm, NpzFile::open(path).map_err(wrong))?;
    let ((rows, cols), entries) = (file.shape(), file.entries());
    same_everywhere(comm, &format!("a file of {rows} rows, {cols} columns and {entries} entries"))?;
    let (rank, size) = (comm.rank() as u64, comm.size() as u64);
    let bound = agree(comm, first_row(&file, rank, size).map_err(wrong))?;
    let bounds = comm.all_gather(bytes::of_indices(&[bound]))?;
    let bounds = bounds.iter().map(|bound| bytes::to_indices::<u64>(bound)[0]).chain([rows]);
    // Pointers that do not ascend give such bounds; each rank has the same.
    let partition = Partition::from_bounds(rows, bounds.collect())?;
    let own = || {
        let pointers = file.row_ptr(partition.range(comm.rank())).map_err(wrong)?;
        let range = pointers[0]..pointers[pointers.len() - 1];
        let row_ptr = pointers.iter().map(|&pointer| (pointer - range.start) as usize).collect();
        let col_ind = file.col_ind(range.clone()).map_err(wrong)?;
        let values = file.values(range).map_err(wrong)?;
        Rows::new(cols, row_ptr, col_ind, values)
            .map_err(|error| DistError::File(format!("{}: {error}", path.display())))
    };
    let matrix = agree(comm, own())?;
    Ok((partition, matrix))
}

/// The first row of a rank, with rows and entries before it in the share of the ranks before it: a search in
/// the row pointers of the file.
fn first_row(file: &NpzFile, rank: u64, ranks: u64) -> Result<u64, CacheError> {
    let rows = file.shape().0;
    let all = u128::from(rows) + u128::from(file.entries());
    let target = all * u128::from(rank) / u128::from(ranks);
    let (mut low, mut high) = (0, rows);
    while low < high {
        let row = low + (high - low) / 2;
        let before = u128::from(row) + u128::from(file.row_ptr(row..row)?[0]);
        if before < target {
            low = row + 1;
        } else {
            high = row;
        }
    }
    Ok(low)
}

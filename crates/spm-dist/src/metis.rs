//! Partitions of graphs by METIS.

use std::sync::Mutex;

use metis::{Graph, Idx, option};
use spm_formats::Scalar;

use crate::assemble::{count, place, rounds};
use crate::comm::agree;
use crate::permutation::check_square;
use crate::{Communicator, DistError, Partition, PartitionError, Permutation, Rows, bytes};

impl Permutation {
    /// Divides the rows of a square matrix with METIS (Karypis and Kumar, multilevel k-way partitioning,
    /// SIAM J. Sci. Comput. 20, 1998): little is exchanged, and entries and rows together are balanced.
    /// Collective.
    ///
    /// `a` has this rank's rows as `rows` divides them. The graph is that of A + A^T without the diagonal. METIS
    /// works on one process: **rank 0 holds the graph**, in about 32 bytes for an entry of the whole matrix.
    /// The same matrix on the same number of ranks is always divided in the same way by a process that runs
    /// nothing else which draws numbers from C's `rand`.
    ///
    /// # Errors
    /// On every rank the same: a matrix that is not square, or not divided like this; one with more than 2^30 rows
    /// or 2^31 entries of the graph, or for which METIS has not enough memory; errors of the communication.
    pub fn from_metis<T: Scalar>(
        comm: &(impl Communicator + ?Sized),
        rows: &Partition,
        a: &Rows<T>,
    ) -> Result<Self, DistError> {
        agree(comm, check_square(comm, rows, a))?;
        let (rank, ranks, total) = (comm.rank(), comm.size(), rows.total());
        if ranks == 1 {
            return Self::new(comm, rows, &vec![0; a.rows()]);
        }
        if total > MOST_ROWS {
            return Err(refused(format!("{total} rows; at most {MOST_ROWS} are possible")).into());
        }
        let mut bounds = vec![total; ranks + 1];
        bounds[0] = 0;
        let one = Partition::from_bounds(total, bounds)?;
        let first = rows.range(rank).start;
        let number_of_rounds = rounds(comm, a.nnz())?;
        let mut source = |round: usize, emit: &mut dyn FnMut(u64, u64, f32)| {
            a.for_each_entry(round, |row, col, _| {
                let row = first + row as u64;
                if row != col {
                    emit(row, col, 0.0);
                    emit(col, row, 0.0);
                }
            });
            Ok(())
        };
        let counts = count(comm, &one, number_of_rounds, &mut source)?;
        // Entries and their mirrors come twice, and are one entry then.
        let graph = place(comm, &one, total, &counts, number_of_rounds, &mut source)?;
        drop(counts);
        let lengths: Vec<u32> =
            a.row_ptr().windows(2).map(|ends| (ends[1] - ends[0]) as u32).collect();
        let lengths = comm.exchange(&[(0, bytes::of_indices(&lengths))])?;
        let owners = if rank == 0 {
            let lengths = lengths.iter().flat_map(|(_, lengths)| bytes::to_indices(lengths));
            partition(&graph, &lengths.collect::<Vec<u32>>(), ranks).map_err(DistError::from)
        } else {
            Ok(Vec::new())
        };
        drop(graph);
        let owners = agree(comm, owners)?;
        let of_rank = |rank: usize| {
            let range = rows.range(rank);
            bytes::of_indices(&owners[range.start as usize..range.end as usize])
        };
        let outgoing: Vec<(usize, &[u8])> = match rank {
            0 => (0..ranks).map(|rank| (rank, of_rank(rank))).collect(),
            _ => Vec::new(),
        };
        let own = comm.exchange(&outgoing)?;
        let own: Vec<u32> = own.iter().flat_map(|(_, owners)| bytes::to_indices(owners)).collect();
        Self::new(comm, rows, &own)
    }
}

/// Rows for whose weights `Idx` is wide enough.
const MOST_ROWS: u64 = 1 << 30;

fn refused(reason: String) -> PartitionError {
    PartitionError::Partitioner { name: "METIS", reason }
}

/// The rank of each vertex of a graph, of weights that are one more than these.
fn partition(graph: &Rows<f32>, weights: &[u32], ranks: usize) -> Result<Vec<u32>, PartitionError> {
    /// METIS installs handlers of signals while it runs, and draws from one generator.
    static ALONE: Mutex<()> = Mutex::new(());

    let vertices = graph.rows();
    // METIS wants more vertices than parts.
    if vertices <= ranks {
        return Ok((0..vertices as u32).collect());
    }
    let index = |number: usize| {
        let wide = |_| refused(format!("a graph with {number} entries; at most 2^31 are possible"));
        Idx::try_from(number).map_err(wide)
    };
    let pointers = graph.row_ptr().iter().map(|&pointer| index(pointer));
    let pointers = pointers.collect::<Result<Vec<Idx>, _>>()?;
    let neighbours: Vec<Idx> = graph.col_ind().iter().map(|&col| col as Idx).collect();
    let total: u64 = weights.iter().map(|&weight| u64::from(weight) + 1).sum();
    let scale = total / MOST_ROWS + 1;
    let weights = weights.iter().map(|&weight| ((u64::from(weight) + 1) / scale).max(1) as Idx);
    let weights: Vec<Idx> = weights.collect();
    let mut parts = vec![0; vertices];
    let other = |error: &dyn std::fmt::Display| refused(error.to_string());
    let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Graph::new(1, index(ranks)?, &pointers, &neighbours)
        .map_err(|error| other(&error))?
        .set_vwgt(&weights)
        .set_option(option::Seed(1))
        .part_kway(&mut parts)
        .map_err(|error| other(&error))?;
    drop(alone);
    Ok(parts.into_iter().map(|part| part as u32).collect())
}

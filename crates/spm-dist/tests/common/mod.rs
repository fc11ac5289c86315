//! Matrices, and their division over ranks.
#![allow(dead_code, reason = "each test file is a crate of its own and uses some of this")]

use spm_dist::{Communicator, DistCsr, DistError, Partition, Rows};
use spm_formats::Csr;
use spm_testing::generate;

pub(crate) const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

/// Matrices whose halos differ: none, slabs, everything; ranks without rows; rectangular ones.
pub(crate) fn matrices() -> Vec<(String, Csr<f64>)> {
    let generated = [
        "stencil7[n=6]",
        "uniform[rows=90,cols=60,entries=900]",
        "uniform[rows=40,cols=90,entries=300]",
        "powerlaw[rows=200,cols=200,entries=900,longest=150]",
        "mesh2[n=9,order=random]",
    ];
    let mut all: Vec<(String, Csr<f64>)> = generated
        .iter()
        .map(|label| {
            let coo = generate::named(label).unwrap().generate::<f64>().unwrap();
            ((*label).to_owned(), coo)
        })
        .collect();
    all.push(("diagonal".to_owned(), diagonal(11)));
    // Fewer rows than ranks.
    all.push(("small".to_owned(), Csr::from_triplets((2, 3), [(0, 2, 2.0), (1, 0, 3.0)]).unwrap()));
    all.push(("empty".to_owned(), Csr::empty(5, 4).unwrap()));
    all.push(("no rows".to_owned(), Csr::empty(0, 0).unwrap()));
    all
}

fn diagonal(n: usize) -> Csr<f64> {
    let entries = (0..n).map(|i| (i, i, 1.5 + i as f64));
    Csr::from_triplets((n, n), entries).unwrap()
}

/// This rank's rows: blocks of equal entries, columns in even blocks; a square matrix has the same
/// blocks for both.
pub(crate) fn distribute(
    comm: &impl Communicator,
    a: &Csr<f64>,
) -> Result<DistCsr<f64>, DistError> {
    let rows = Partition::by_entries(a.row_ptr(), comm.size());
    let square = a.rows() == a.cols();
    let cols = if square { rows.clone() } else { Partition::even(a.cols() as u64, comm.size()) };
    let mine = Rows::of(a.view(), rows.range(comm.rank()));
    DistCsr::new(comm, &rows, &cols, mine)
}

/// A rank's part of a vector, or of a row-major matrix with k columns.
pub(crate) fn sliced(all: &[f64], partition: &Partition, rank: usize, k: usize) -> Vec<f64> {
    let range = partition.range(rank);
    all[range.start as usize * k..range.end as usize * k].to_vec()
}

/// The parts of a vector, one after the other.
pub(crate) fn by_rank<R>(parts: &[R], part: impl Fn(&R) -> &Vec<f64>) -> Vec<f64> {
    parts.iter().flat_map(|rank| part(rank).clone()).collect()
}

/// The texts of all ranks, each once.
pub(crate) fn gathered(comm: &impl Communicator, text: &str) -> Vec<Vec<u8>> {
    let mut all = comm.all_gather(text.as_bytes()).unwrap();
    all.dedup();
    all
}

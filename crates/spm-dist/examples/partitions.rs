//! Prints what a partition costs: the halo of a matrix in even blocks of rows, in blocks by entries, and in the parts
//! that METIS finds.
//!
//! `partitions [MATRIX [RANKS,RANKS,...]]`, where MATRIX is any generator of `spm-testing` with its parameters. The
//! ranks are threads: as many as wanted, on any number of cores.

use std::error::Error;
use std::time::Instant;

use spm_dist::{Communicator, DistCsr, DistError, Partition, Permutation, Rows, threads};
use spm_formats::Csr;
use spm_testing::generate;

/// What one rank has.
struct Part {
    ghosts: usize,
    neighbours: usize,
    boundary: usize,
    entries: usize,
    seconds: f64,
}

fn part(
    comm: &threads::ThreadCommunicator,
    a: &Csr<f64>,
    division: &str,
) -> Result<Part, DistError> {
    let blocks = match division {
        "even" => Partition::even(a.rows() as u64, comm.size()),
        _ => Partition::by_entries(a.row_ptr(), comm.size()),
    };
    let mine = Rows::of(a.view(), blocks.range(comm.rank()));
    let start = Instant::now();
    let dist = if division == "METIS" {
        let permutation = Permutation::from_metis(comm, &blocks, &mine)?;
        let mine = permutation.matrix(comm, &mine)?;
        DistCsr::new(comm, permutation.partition(), permutation.partition(), mine)?
    } else {
        DistCsr::new(comm, &blocks, &blocks, mine)?
    };
    Ok(Part {
        ghosts: dist.halo().ghosts().len(),
        neighbours: dist.halo().neighbours(),
        boundary: dist.boundary_rows(),
        entries: dist.local_nnz(),
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let matrix = words.next().unwrap_or_else(|| "mesh2[n=300,order=random]".to_owned());
    let ranks = words.next().unwrap_or_else(|| "2,8".to_owned());
    let a: Csr<f64> = generate::named(&matrix)?.generate()?;
    println!("{matrix}: {} rows, {} entries", a.rows(), a.nnz());
    println!(
        "ranks, division, ghost entries (most of a rank, all), most neighbours, most boundary rows,"
    );
    println!("       most entries of a rank over the mean, seconds");
    for ranks in ranks.split(',') {
        let ranks: usize = ranks.parse()?;
        for division in ["even", "by entries", "METIS"] {
            let parts = threads::run(ranks, |comm| part(comm, &a, division))?;
            let most = |of: fn(&Part) -> usize| parts.iter().map(of).max().unwrap_or(0);
            let seconds = parts.iter().map(|part| part.seconds).fold(0.0, f64::max);
            println!(
                "{ranks:5} {division:10} {:8} {:9} {:4} {:8} {:6.3} {seconds:6.2}",
                most(|part| part.ghosts),
                parts.iter().map(|part| part.ghosts).sum::<usize>(),
                most(|part| part.neighbours),
                most(|part| part.boundary),
                most(|part| part.entries) as f64 * ranks as f64 / a.nnz() as f64,
            );
        }
    }
    Ok(())
}

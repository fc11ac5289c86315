//! Solves a Poisson problem on a cube by conjugate gradients, with one reduction an iteration.
//!
//! On four threads: `cargo run --release -p spm-dist --example conjugate_gradients -- 40 4`
//!
//! On four processes: `cargo build --release -p spm-dist --features mpi --example conjugate_gradients`,
//! then `mpirun -n 4 target/release/examples/conjugate_gradients 40`.

use std::error::Error;
use std::time::Instant;

use spm_dist::{
    CgOptions, Communicator, DistCsr, DistOperator, Options, Partition, Rows, conjugate_gradients,
};

/// The 7-point Laplacian of n x n x n points; each rank generates the planes of its own.
fn solve(comm: &impl Communicator, n: u64) -> Result<(), spm_dist::DistError> {
    let points = n * n * n;
    let rows = Partition::even(points, comm.size());
    let own = rows.range(comm.rank());
    let matrix = Rows::generate(own, points, |i, row| {
        let (x, y, z) = (i % n, i / n % n, i / n / n);
        let below = [(z, n * n), (y, n), (x, 1)];
        row.extend(below.iter().filter(|(at, _)| *at > 0).map(|(_, step)| (i - step, -1.0)));
        row.push((i, 6.0));
        let above = [(x, 1), (y, n), (z, n * n)];
        row.extend(above.iter().filter(|(at, _)| at + 1 < n).map(|(_, step)| (i + step, -1.0)));
    })?;
    let a = DistCsr::new(comm, &rows, &rows, matrix)?;
    let mut op = DistOperator::new(comm, a, &Options::default())?;
    let (b, mut x) = (vec![1.0; op.matrix().local_rows()], vec![0.0; op.matrix().local_rows()]);
    let start = Instant::now();
    let end = conjugate_gradients(comm, &mut op, &b, &mut x, &CgOptions::default())?;
    let seconds = start.elapsed().as_secs_f64();
    let mut r = vec![0.0; b.len()];
    op.residual(&x, &b, &mut r)?;
    let mut norms = [r.iter().map(|r| r * r).sum(), b.iter().map(|b| b * b).sum()];
    comm.sum(&mut norms)?;
    if comm.rank() == 0 {
        println!(
            "{} ranks, {points} rows, kernel {}: {} iterations in {seconds:.3} s, residual {:.1e}",
            comm.size(),
            op.kernel(),
            end.iterations,
            (norms[0] / norms[1]).sqrt()
        );
    }
    Ok(())
}

fn argument(position: usize, default: u64) -> Result<u64, Box<dyn Error>> {
    Ok(std::env::args().nth(position).map_or(Ok(default), |text| text.parse())?)
}

#[cfg(not(feature = "mpi"))]
fn main() -> Result<(), Box<dyn Error>> {
    let (n, ranks) = (argument(1, 40)?, argument(2, 2)?);
    spm_dist::threads::run(ranks as usize, |comm| solve(comm, n))?;
    Ok(())
}

#[cfg(feature = "mpi")]
fn main() -> std::process::ExitCode {
    spm_dist::mpi::run(|comm| Ok(solve(comm, argument(1, 40)?)?))
}

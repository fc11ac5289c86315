//! Reading a file and planning a product take at most 2.5 times the memory of the matrix: no rank holds
//! everything.

use std::path::PathBuf;

use spm_dist::threads::{ThreadCommunicator, run};
use spm_dist::{DistCsr, DistError, DistOperator, Kernel, Options, Partition, Rows};
use spm_dist::{matrix_market, npz};
use spm_formats::cache::save_npz;
use spm_formats::matrix_market::{ReadOptions, write_csr};
use spm_formats::{Csr, CsrView};
use spm_testing::allocations::{Counting, peak_of_all_threads, peak_of_this_thread};
use spm_testing::generate;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const RANKS: usize = 4;

/// Plans and computes a product; returns the bytes that the operator holds.
fn product(
    comm: &ThreadCommunicator,
    (rows, matrix): (Partition, Rows<f64>),
) -> Result<u64, DistError> {
    let a = DistCsr::new(comm, &rows, &rows, matrix)?;
    let mut options = Options::default();
    options.kernel = Kernel::Fixed("csr-nnz-balanced".to_owned());
    let mut op = DistOperator::new(comm, a, &options)?;
    let (x, mut y) = (vec![1.0; op.matrix().local_cols()], vec![0.0; op.matrix().local_rows()]);
    op.apply(&x, &mut y)?;
    Ok(op.memory_bytes())
}

/// Writes a matrix to a file of this name; returns the path and the bytes of the matrix in memory.
fn file(name: &str, write: impl FnOnce(&PathBuf, CsrView<'_, f64>)) -> (PathBuf, f64) {
    let path = std::env::temp_dir().join(format!("spm-dist-{}-{name}", std::process::id()));
    let a: Csr<f64> = generate::named("stencil27[n=36]").unwrap().generate().unwrap();
    write(&path, a.view());
    (path, a.memory_bytes() as f64)
}

/// One test: the counts of all threads are those of one measurement.
#[test]
fn no_rank_holds_everything() {
    // Messages are allocated on one rank and freed on another: all ranks together.
    let (path, bytes) = file("memory.mtx", |path, a| write_csr(path, a, &[]).unwrap());
    let (most, held) = peak_of_all_threads(|| {
        run(RANKS, |comm| {
            let options = ReadOptions { chunk_bytes: 1 << 14, ..ReadOptions::default() };
            product(comm, matrix_market::read(comm, &path, &options)?)
        })
    });
    std::fs::remove_file(path).unwrap();
    let (most, held) = (most as f64 / bytes, held.unwrap().iter().sum::<u64>() as f64 / bytes);
    println!("text: at most {most:.2} times the matrix, {held:.2} times at the end");
    assert!(most <= 2.5, "at most {most:.2} times the matrix");
    assert!(held <= 1.2, "{held:.2} times the matrix at the end");

    let (path, bytes) = file("memory.npz", |path, a| save_npz(path, a).unwrap());
    let share = bytes / RANKS as f64;
    let peaks = run(RANKS, |comm| {
        let (most, held) = peak_of_this_thread(|| product(comm, npz::read(comm, &path)?));
        Ok((most as f64 / share, held? as f64 / share))
    });
    std::fs::remove_file(path).unwrap();
    for (rank, (most, held)) in peaks.unwrap().into_iter().enumerate() {
        println!("npz, rank {rank}: at most {most:.2} times its share, {held:.2} times at the end");
        assert!(most <= 2.5, "rank {rank}: at most {most:.2} times its share");
        assert!(held <= 1.2, "rank {rank}: {held:.2} times its share at the end");
        // What is counted is there.
        assert!(most >= held);
    }
}

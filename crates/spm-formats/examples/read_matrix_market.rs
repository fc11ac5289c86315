//! Reads a Matrix Market file to CSR several times and prints the speed of the fastest reading and
//! the peak memory; or loads the `.npz` archive FILE:
//! `read_matrix_market FILE [THREADS [REPETITIONS [CHUNK_BYTES]]]`.

use std::time::Instant;

use spm_formats::Csr;
use spm_formats::cache::load_npz;
use spm_formats::matrix_market::{ReadOptions, read_csr};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: read_matrix_market FILE [THREADS [REPETITIONS [CHUNK_BYTES]]]")?;
    let threads = arguments.next().map(|threads| threads.parse()).transpose()?;
    let repetitions: usize = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let mut options = ReadOptions { threads, ..ReadOptions::default() };
    if let Some(bytes) = arguments.next() {
        options.chunk_bytes = bytes.parse()?;
    }
    let mut fastest = f64::INFINITY;
    let mut entries = 0;
    for _ in 0..repetitions.max(1) {
        let start = Instant::now();
        let matrix: Csr<f64> =
            if path.ends_with(".npz") { load_npz(&path)? } else { read_csr(&path, &options)? };
        fastest = fastest.min(start.elapsed().as_secs_f64());
        entries = matrix.nnz();
    }
    println!("entries {entries}");
    println!("seconds {fastest:.6}");
    println!("entries_per_second {:.0}", entries as f64 / fastest);
    println!("file_bytes_per_second {:.0}", std::fs::metadata(&path)?.len() as f64 / fastest);
    if let Some(peak) = peak_memory() {
        println!("peak_bytes {peak}");
    }
    Ok(())
}

/// Peak resident bytes of this process, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

//! The Rust side of the comparisons in docs/compare.
//!
//! `compare MATRIX DIRECTORY` generates the matrix, writes its CSR arrays and a vector (little
//! endian: `pointers`, `columns` in u32, `values`, `x` in f64) to the directory, prints
//! `ROWS COLUMNS ENTRIES`, then answers each line `NAME THREADS SECONDS` of its input with the
//! median seconds of a product and what computed it. NAME is a kernel of the registry, with or
//! without parameters, or `sprs` or `faer`. `spmm K NAME THREADS SECONDS` and
//! `transpose NAME THREADS SECONDS` do the same for the other operations.

mod others;

use std::error::Error;
use std::io::{BufWriter, Write, stdin};
use std::path::Path;
use std::time::Instant;

use faer::sparse::linalg::matmul::sparse_dense_matmul;
use faer::sparse::{SparseRowMatRef, SymbolicSparseRowMatRef};
use faer::{Accum, MatMut, MatRef, Par};
use spm_cpu::{PlanOptions, prefer_huge_pages, spmv};
use spm_formats::kernel::split_label;
use spm_formats::{Csr, generate, sprs};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [matrix, directory] = &arguments[..] else {
        return Err("usage: compare MATRIX DIRECTORY".into());
    };
    let a = on_large_pages(generate::named(matrix)?.generate()?);
    let x: Vec<f64> = (0..a.cols()).map(|j| (j as f64 * 0.7).sin() + 1.5).collect();
    write_arrays(&a, &x, Path::new(directory))?;
    println!("{} {} {}", a.rows(), a.cols(), a.nnz());
    for line in stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            [name, threads, seconds] => answer(&a, &x, name, threads.parse()?, seconds.parse()?)?,
            ["spmm", k, name, threads, seconds] => {
                others::time_spmm(&a, name, k.parse()?, threads.parse()?, seconds.parse()?)?
            }
            ["transpose", name, threads, seconds] => {
                others::time_transpose(&a, name, threads.parse()?, seconds.parse()?)?
            }
            _ => return Err(format!("not understood: {line}").into()),
        };
        println!("{answer}");
    }
    Ok(())
}

/// The same matrix in arrays on large pages, as numpy has them on the other side.
fn on_large_pages(a: Csr<f64>) -> Csr<f64> {
    fn copy<T: Copy>(from: &[T]) -> Vec<T> {
        let mut to = Vec::with_capacity(from.len());
        prefer_huge_pages(to.spare_capacity_mut());
        to.extend_from_slice(from);
        to
    }
    let shape = a.shape();
    let (pointers, columns, values) = a.view().into_raw_storage();
    Csr::new(shape, copy(pointers), copy(columns), copy(values))
}

fn answer(
    a: &Csr<f64>,
    x: &[f64],
    name: &str,
    threads: usize,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    let mut y = vec![0.0; a.rows()];
    match name {
        "sprs" => {
            // It adds to y; clearing y first, as a user must, is not timed.
            let product = || sprs::prod::mul_acc_mat_vec_csr(a.view(), x, &mut y[..]);
            Ok(format!("{:e} sprs", median(seconds, product)))
        }
        "faer" => {
            let (pointers, columns, values) = a.view().into_raw_storage();
            let structure =
                SymbolicSparseRowMatRef::new_checked(a.rows(), a.cols(), pointers, None, columns);
            let matrix = SparseRowMatRef::new(structure, values);
            let x = MatRef::from_column_major_slice(x, x.len(), 1);
            let parallel = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
            let mut y = MatMut::from_column_major_slice_mut(&mut y, a.rows(), 1);
            let product = || {
                let y = y.as_mut();
                sparse_dense_matmul(y, Accum::Replace, matrix, x, 1.0, parallel);
            };
            Ok(format!("{:e} faer", median(seconds, product)))
        }
        label => {
            let (id, text) = split_label(label);
            let kernel = spmv::find::<f64>(id).ok_or("no such kernel")?;
            let parameters = kernel.info.parse_parameters(text)?;
            let options = PlanOptions::with_threads(threads);
            let mut plan = kernel.plan(&a.view(), &parameters, &options)?;
            let median = median(seconds, || plan.run(x, &mut y).expect("right lengths"));
            let choice = plan.choice().unwrap_or_else(|| kernel.info.label(&parameters));
            Ok(format!("{median:e} {choice}"))
        }
    }
}

/// The median over at least 5 samples and `seconds`, after two calls; short calls are timed
/// together, as spmv.c does it for the other side.
pub(crate) fn median(seconds: f64, mut run: impl FnMut()) -> f64 {
    run();
    let start = Instant::now();
    run();
    let once = start.elapsed().as_secs_f64();
    let calls = (1e-4 / once.max(1e-8)).ceil().max(1.0) as usize;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 5 || start.elapsed().as_secs_f64() < seconds {
        let begin = Instant::now();
        for _ in 0..calls {
            run();
        }
        times.push(begin.elapsed().as_secs_f64() / calls as f64);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn write_arrays(a: &Csr<f64>, x: &[f64], directory: &Path) -> std::io::Result<()> {
    let (pointers, columns, values) = a.view().into_raw_storage();
    for (name, numbers) in [("pointers", pointers), ("columns", columns)] {
        let mut file = BufWriter::new(std::fs::File::create(directory.join(name))?);
        numbers.iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))?;
        file.flush()?;
    }
    for (name, numbers) in [("values", values), ("x", x)] {
        let mut file = BufWriter::new(std::fs::File::create(directory.join(name))?);
        numbers.iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))?;
        file.flush()?;
    }
    Ok(())
}

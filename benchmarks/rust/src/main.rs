//! The Rust side of the comparisons: see README.md of the folder above.
//!
//! `spm-benchmarks MATRIX DIRECTORY` generates the matrix, writes its CSR arrays and a vector (little
//! endian: `pointers`, `columns` in u32, `values`, `x` in f64) to the directory, prints
//! `ROWS COLUMNS ENTRIES`, then answers each line `NAME THREADS SECONDS` of its input with the
//! median seconds of a product and what computed it; a plan is made once. NAME is a kernel of the registry, with or
//! without parameters, or `sprs` or `faer`. `spmm K NAME THREADS SECONDS` and
//! `transpose NAME THREADS SECONDS` do the same for the other operations. `transposed NAME THREADS SECONDS`
//! is y = A^T x, where NAME is `straight` or `planned` (an operator for one product or for a million)
//! or `faer`.

mod operations;

use std::error::Error;
use std::io::{BufWriter, Write, stdin};
use std::path::Path;

use spm_cpu::prefer_huge_pages;
use spm_formats::Csr;
use spm_study::recipe;

use operations::{Plans, time_spmm, time_spmv, time_transpose, time_transposed};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [matrix, directory] = &arguments[..] else {
        return Err("usage: spm-benchmarks MATRIX DIRECTORY".into());
    };
    let a = on_large_pages(recipe::named(matrix)?.generate()?);
    let x: Vec<f64> = (0..a.cols()).map(|j| (j as f64 * 0.7).sin() + 1.5).collect();
    write_arrays(&a, &x, Path::new(directory))?;
    println!("{} {} {}", a.rows(), a.cols(), a.nnz());
    let mut plans = Plans::default();
    for line in stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            [name, threads, seconds] => {
                time_spmv(&mut plans, (&a, &x), name, threads.parse()?, seconds.parse()?)?
            }
            ["spmm", k, name, threads, seconds] => {
                time_spmm(&mut plans, &a, name, k.parse()?, threads.parse()?, seconds.parse()?)?
            }
            ["transpose", name, threads, seconds] => {
                time_transpose(&mut plans, &a, name, threads.parse()?, seconds.parse()?)?
            }
            ["transposed", name, threads, seconds] => {
                time_transposed(&a, name, threads.parse()?, seconds.parse()?)?
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
    let (pointers, columns, values) = (a.row_ptr(), a.col_ind(), a.values());
    Csr::new(shape, copy(pointers), copy(columns), copy(values)).expect("the arrays of a matrix")
}

fn write_arrays(a: &Csr<f64>, x: &[f64], directory: &Path) -> std::io::Result<()> {
    let (pointers, columns, values) = (a.row_ptr(), a.col_ind(), a.values());
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

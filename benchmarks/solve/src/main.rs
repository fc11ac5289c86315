//! The products of spm-sparse beside those of sprs, faer and nalgebra-sparse, planning included:
//! `spm-solve WHAT [ROUNDS [MATRIX...]]`. See README.md of the folder above.
//!
//! WHAT is `solve`, `totals`, `products`, `model` or `choice`. MATRIX is a Matrix Market file or a generator with its
//! parameters.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use spm::{Csr, Operator};
use spm_testing::generate;

mod choice;
mod model;
mod peers;
mod products;
mod solve;
mod totals;

/// Matrices of different structure.
const MATRICES: [&str; 12] = [
    "stencil27[n=60]",
    "stencil27[n=20]",
    "stencil5[n=500]",
    "blocks[n=16,block=3]",
    "powerlaw[rows=400000,cols=400000,entries=1240000,longest=3000]",
    "road[n=400000,edges=565000]",
    "uniform[rows=100000,cols=100000,entries=1500000]",
    "uniform[rows=20000,cols=300000,entries=600000]",
    "uniform[rows=500000,cols=50000,entries=400000]",
    "uniform[rows=2000,cols=2000,entries=40000]",
    "powerlaw[rows=5000,cols=5000,entries=100000,longest=4000]",
    "stencil5[n=40]",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "solve".to_owned());
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let mut names: Vec<String> = arguments.collect();
    if names.is_empty() {
        let all = if what == "solve" { &MATRICES[..1] } else { &MATRICES };
        names = all.iter().map(|&name| name.to_owned()).collect();
    }
    let run = match what.as_str() {
        "solve" => {
            solve::head();
            solve::run
        }
        "totals" => {
            totals::head();
            totals::run
        }
        "products" => {
            products::head()?;
            products::run
        }
        "model" => {
            model::head();
            model::run
        }
        "choice" => {
            choice::head();
            choice::run
        }
        _ => {
            let expected = "expected solve, totals, products, model or choice";
            return Err(format!("{expected}, found {what}").into());
        }
    };
    let cores = std::thread::available_parallelism()?.get();
    for path in names {
        let is_file = Path::new(&path).is_file();
        let a: Csr<f64> =
            if is_file { spm::read(&path)? } else { generate::named(&path)?.generate()? };
        // The matrix without its folder and endings.
        let name = Path::new(&path).file_name().filter(|_| is_file);
        let name = name.and_then(|name| name.to_str()?.split('.').next()).unwrap_or(&path);
        for threads in one_and(cores) {
            run(name, &a, threads, rounds)?;
        }
    }
    Ok(())
}

/// One thread, and `threads` of them if that is another number.
fn one_and(threads: usize) -> impl Iterator<Item = usize> {
    std::iter::once(1).chain((threads > 1).then_some(threads))
}

/// An operator on `threads` threads, with or without an expected number of products.
fn operator(a: &Arc<Csr<f64>>, threads: usize, products: Option<u64>) -> Operator<f64> {
    let builder = Operator::builder(Arc::clone(a)).threads(threads);
    let builder = match products {
        Some(products) => builder.expected_products(products),
        None => builder,
    };
    builder.build().expect("a valid matrix")
}

/// The element in the middle by a key.
fn median<E: Clone>(all: &mut [E], key: impl Fn(&E) -> f64) -> E {
    all.sort_by(|a, b| key(a).total_cmp(&key(b)));
    all[all.len() / 2].clone()
}

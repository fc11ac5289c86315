//! Conjugate gradients with the diagonal as preconditioner to |r| <= 1e-8 |b|.
//!
//! Each library has the matrix in its own type beforehand. The time of spm includes making the operator.
//! The vector operations are the same loops for all. A time is the median of the rounds, the libraries in
//! turn.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use spm::{Csr, Operator};
use spm_testing::conjugate_gradient;

use crate::peers::{NAMES, Peers};
use crate::{median, operator};

pub fn head() {
    println!(
        "| matrix | threads | library | iterations | planning ms | total ms | best peer / this |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: |");
}

/// The matrix, if its diagonal is positive; otherwise its pattern with the values of a Laplacian.
fn positive_definite(a: &Csr<f64>) -> Csr<f64> {
    let mut a = a.clone();
    let positive = |row| a.get(row, row).is_some_and(|&d| d > 0.0);
    if (0..a.rows()).all(positive) && a.values().iter().any(|&value| value < 0.0) {
        return a;
    }
    let longest = a.row_ptr().windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(1);
    let value = |(row, col, _)| if row == col { f64::from(longest - 1) } else { -1.0 };
    let values: Vec<f64> = a.iter().map(value).collect();
    a.values_mut().copy_from_slice(&values);
    a
}

/// Seconds of planning, seconds in all, iterations.
type Timed = (f64, f64, usize);

pub fn run(name: &str, a: &Csr<f64>, threads: usize, rounds: usize) -> Result<(), Box<dyn Error>> {
    let a = Arc::new(positive_definite(a));
    let diagonal: Vec<f64> = (0..a.rows()).map(|i| *a.get(i, i).unwrap_or(&0.0)).collect();
    let mut b = vec![0.0; a.rows()];
    Operator::new(Arc::clone(&a))?.apply(&vec![1.0; a.cols()], &mut b)?;
    let peers = Peers::new(&a)?;
    let solve = |product: &mut dyn FnMut(&[f64], &mut [f64])| {
        let product = |x: &[f64], y: &mut [f64]| {
            product(x, y);
            Ok(())
        };
        let solution = conjugate_gradient::solve(product, &diagonal, &b, 1e-8, 10_000);
        black_box(solution.expect("a positive definite matrix")).iterations
    };
    let by_peer = |library: usize| {
        let start = Instant::now();
        let iterations = solve(&mut |x, y| peers.product(library, threads, x, y));
        (0.0, start.elapsed().as_secs_f64(), iterations)
    };
    let expected = by_peer(0).2 as u64;
    let by_spm = |products: Option<u64>| {
        let start = Instant::now();
        let op = operator(&a, threads, products);
        let planning = start.elapsed().as_secs_f64();
        let iterations = solve(&mut |x, y| op.apply(x, y).expect("right lengths"));
        let timed = (planning, start.elapsed().as_secs_f64(), iterations);
        (timed, op.recipe().to_string())
    };
    let mut times: Vec<Vec<Timed>> = vec![Vec::new(); 2 + NAMES.len()];
    let mut recipes = [String::new(), String::new()];
    for _ in 0..rounds {
        for (way, products) in [None, Some(expected)].into_iter().enumerate() {
            let (timed, recipe) = by_spm(products);
            times[way].push(timed);
            recipes[way] = recipe;
        }
        for library in 0..NAMES.len() {
            times[2 + library].push(by_peer(library));
        }
    }
    let medians: Vec<Timed> =
        times.iter_mut().map(|times| median(times, |timed| timed.1)).collect();
    let best = medians[2..].iter().map(|timed| timed.1).fold(f64::INFINITY, f64::min);
    let [by_default, with_number] = recipes;
    let ours = [format!("spm ({by_default})"), format!("spm, expected ({with_number})")];
    let names = ours.into_iter().chain(NAMES.map(str::to_owned));
    for (library, (planning, total, iterations)) in names.zip(&medians) {
        println!(
            "| {name} | {threads} | {library} | {iterations} | {:.2} | {:.1} | {:.2} |",
            planning * 1e3,
            total * 1e3,
            best / total
        );
    }
    Ok(())
}

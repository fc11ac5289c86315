//! Conjugate gradients with the diagonal as preconditioner to |r| <= 1e-8 |b|, on the products of spm,
//! sprs, faer and nalgebra-sparse: `spm-solve [ROUNDS [MATRIX...]]`. See README.md of the folder above.
//! MATRIX is a Matrix Market file or a generator with its parameters.
//!
//! Each library has the matrix in its own type beforehand. The time of spm includes making the operator.
//! The vector operations are the same loops for all. A time is the median of the rounds, the libraries in
//! turn. Then the time of one product with a 9 x 9 matrix.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use faer::sparse::SparseRowMat;
use faer::sparse::linalg::matmul::sparse_dense_matmul;
use faer::{Accum, MatMut, MatRef, Par};
use nalgebra_sparse::CsrMatrix;
use nalgebra_sparse::na::{DMatrixView, DMatrixViewMut};
use nalgebra_sparse::ops::Op;
use nalgebra_sparse::ops::serial::spmm_csr_dense;
use spm::{Csr, Operator, sprs};
use spm_testing::generate;

const MATRICES: [&str; 2] = ["stencil27[n=30]", "stencil27[n=60]"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(7), |rounds| rounds.parse())?;
    let mut names: Vec<String> = arguments.collect();
    if names.is_empty() {
        names = MATRICES.map(str::to_owned).to_vec();
    }
    println!(
        "| matrix | threads | library | iterations | planning ms | total ms | of the best peer |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for name in names {
        let a = if Path::new(&name).is_file() {
            spm::read(&name)?
        } else {
            generate::named(&name)?.generate()?
        };
        let a = Arc::new(positive_definite(a));
        planning(&name, &a)?;
        for threads in [1, 2] {
            measure(&name, &a, threads, rounds)?;
        }
    }
    tiny()
}

/// Prints the cost of planning in products straight from CSR, on 1 and 2 threads.
fn planning(name: &str, a: &Arc<Csr<f64>>) -> Result<(), Box<dyn Error>> {
    let (x, mut y) = (vec![1.0; a.cols()], vec![0.0; a.rows()]);
    let mut product = |op: &Operator<f64>| {
        let calls = (2e7 / a.nnz() as f64).ceil() as usize;
        let sample = || {
            let start = Instant::now();
            (0..calls).for_each(|_| op.apply(&x, &mut y).expect("right lengths"));
            start.elapsed().as_secs_f64() / calls as f64
        };
        std::iter::repeat_with(sample).take(5).fold(f64::INFINITY, f64::min)
    };
    for threads in [1, 2] {
        let build = |expected: u64| {
            let start = Instant::now();
            let builder = Operator::builder(Arc::clone(a)).threads(threads);
            let op = builder.expected_products(expected).build();
            op.map(|op| (op, start.elapsed().as_secs_f64()))
        };
        let ((direct, of_direct), (raced, of_race)) = (build(1)?, build(1_000_000)?);
        let (seconds, of_raced) = (product(&direct), product(&raced));
        eprintln!(
            "{name}, {threads} threads: straight from CSR {:.1} us, planned in {:.1} us; {} {:.1} us, \
             {:.2} times as fast, planned in {:.1} ms = {:.0} products; pays from {:.0}",
            seconds * 1e6,
            of_direct * 1e6,
            raced.recipe(),
            of_raced * 1e6,
            seconds / of_raced,
            of_race * 1e3,
            of_race / seconds,
            of_race / (seconds - of_raced),
        );
        let mut op = direct.clone();
        drop(direct);
        let start = Instant::now();
        op.set_values(a.values())?;
        let first = start.elapsed().as_secs_f64();
        let start = Instant::now();
        op.set_values(a.values())?;
        let second = start.elapsed().as_secs_f64();
        let mut op = raced;
        let start = Instant::now();
        op.set_values(a.values())?;
        let of_converted = start.elapsed().as_secs_f64();
        let x = vec![1.0; a.rows()];
        let mut y = vec![0.0; a.cols()];
        let mut calls = Vec::new();
        for _ in 0..Operator::<f64>::TRANSPOSE_AFTER + 3 {
            let start = Instant::now();
            op.apply_transpose(&x, &mut y)?;
            calls.push(start.elapsed().as_secs_f64() / seconds);
        }
        let after = Operator::<f64>::TRANSPOSE_AFTER as usize;
        eprintln!(
            "  new values: {:.1}, {:.1} products, converted {:.1}; transposed product {:.1}, with the \
             copy {:.1}, after it {:.1}",
            first / seconds,
            second / seconds,
            of_converted / seconds,
            calls[1..after].iter().fold(f64::INFINITY, |least, &time| least.min(time)),
            calls[after],
            calls[after + 2],
        );
    }
    Ok(())
}

/// The matrix, if its diagonal is positive; otherwise its pattern with the values of a Laplacian.
fn positive_definite(mut a: Csr<f64>) -> Csr<f64> {
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

fn measure(
    name: &str,
    a: &Arc<Csr<f64>>,
    threads: usize,
    rounds: usize,
) -> Result<(), Box<dyn Error>> {
    let n = a.rows();
    let diagonal: Vec<f64> = (0..n).map(|i| a.get(i, i).copied().unwrap_or(0.0)).collect();
    let mut b = vec![0.0; n];
    Operator::new(Arc::clone(a))?.apply(&vec![1.0; n], &mut b)?;

    let of_sprs: sprs::CsMat<f64> = to_sprs(a);
    let (pointers, columns) = (of_sprs.indptr().raw_storage().to_vec(), of_sprs.indices().to_vec());
    let of_nalgebra = CsrMatrix::try_from_csr_data(n, n, pointers, columns, a.values().to_vec())?;
    let triplets: Vec<_> =
        a.iter().map(|(row, col, &v)| faer::sparse::Triplet::new(row, col, v)).collect();
    let of_faer = SparseRowMat::<usize, f64>::try_new_from_triplets(n, n, &triplets)
        .map_err(|error| format!("{error:?}"))?;
    drop(triplets);

    let spm = |expected: u64| {
        let start = Instant::now();
        let builder = Operator::builder(Arc::clone(a)).threads(threads);
        let op = builder.expected_products(expected).build().expect("a valid matrix");
        let planning = start.elapsed().as_secs_f64();
        let iterations =
            solve(&diagonal, &b, |x, y| op.apply(x, y).expect("vectors of the right lengths"));
        (planning, start.elapsed().as_secs_f64(), iterations)
    };
    let timed = |product: &mut dyn FnMut(&[f64], &mut [f64])| {
        let start = Instant::now();
        let iterations = solve(&diagonal, &b, product);
        (0.0, start.elapsed().as_secs_f64(), iterations)
    };
    let par = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
    let mut libraries: Vec<(&str, Box<dyn FnMut() -> Timed>)> = vec![
        ("spm", Box::new(|| spm(100))),
        ("spm, race", Box::new(|| spm(1_000_000))),
        (
            "sprs",
            Box::new(|| {
                timed(&mut |x, y| {
                    y.fill(0.0);
                    sprs::prod::mul_acc_mat_vec_csr(of_sprs.view(), x, y);
                })
            }),
        ),
        (
            "faer",
            Box::new(|| {
                timed(&mut |x, y| {
                    let x = MatRef::from_column_major_slice(x, x.len(), 1);
                    let y = MatMut::from_column_major_slice_mut(y, n, 1);
                    sparse_dense_matmul(y, Accum::Replace, of_faer.as_ref(), x, 1.0, par);
                })
            }),
        ),
        (
            "nalgebra-sparse",
            Box::new(|| {
                timed(&mut |x, y| {
                    let x = DMatrixView::from_slice(x, n, 1);
                    let y = DMatrixViewMut::from_slice(y, n, 1);
                    spmm_csr_dense(0.0, y, 1.0, Op::NoOp(&of_nalgebra), Op::NoOp(x));
                })
            }),
        ),
    ];
    let mut times: Vec<Vec<Timed>> = vec![Vec::new(); libraries.len()];
    for _ in 0..rounds {
        for ((_, run), times) in libraries.iter_mut().zip(&mut times) {
            times.push(run());
        }
    }
    let medians: Vec<Timed> = times
        .iter_mut()
        .map(|times| {
            times.sort_by(|a, b| a.1.total_cmp(&b.1));
            times[times.len() / 2]
        })
        .collect();
    let best = medians[2..].iter().map(|timed| timed.1).fold(f64::INFINITY, f64::min);
    for ((library, _), (planning, total, iterations)) in libraries.iter().zip(&medians) {
        println!(
            "| {name} | {threads} | {library} | {iterations} | {:.2} | {:.1} | {:.2} |",
            planning * 1e3,
            total * 1e3,
            best / total
        );
    }
    Ok(())
}

fn to_sprs(a: &Csr<f64>) -> sprs::CsMat<f64> {
    let to_usize = |indices: &[u32]| indices.iter().map(|&i| i as usize).collect::<Vec<_>>();
    let (pointers, columns) = (to_usize(a.row_ptr()), to_usize(a.col_ind()));
    sprs::CsMat::new(a.shape(), pointers, columns, a.values().to_vec())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The number of iterations.
fn solve(diagonal: &[f64], b: &[f64], mut product: impl FnMut(&[f64], &mut [f64])) -> usize {
    let n = b.len();
    let (mut x, mut r, mut q) = (vec![0.0; n], b.to_vec(), vec![0.0; n]);
    let mut z: Vec<f64> = r.iter().zip(diagonal).map(|(r, d)| r / d).collect();
    let mut p = z.clone();
    let mut rho = dot(&r, &z);
    let goal = 1e-8 * dot(b, b).sqrt();
    let mut iterations = 0;
    while dot(&r, &r).sqrt() > goal && iterations < 10_000 {
        product(&p, &mut q);
        let alpha = rho / dot(&p, &q);
        for i in 0..n {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            z[i] = r[i] / diagonal[i];
        }
        let next = dot(&r, &z);
        let beta = next / rho;
        rho = next;
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + beta * *p);
        iterations += 1;
    }
    black_box(&x);
    iterations
}

/// A tridiagonal matrix of 9 rows.
fn tiny() -> Result<(), Box<dyn Error>> {
    let entries = (0..9_usize).flat_map(|i| {
        (i.saturating_sub(1)..(i + 2).min(9)).map(move |j| (i, j, 1.0 + (i + j) as f64))
    });
    let a = spm::from_triplets((9, 9), entries)?;
    let of_sprs = to_sprs(&a);
    let op = Operator::new(a)?;
    let (x, mut y) = ([1.0; 9], [0.0; 9]);
    let mut best = |call: &mut dyn FnMut(&[f64], &mut [f64])| {
        let sample = || {
            let start = Instant::now();
            (0..10_000).for_each(|_| call(black_box(&x), black_box(&mut y)));
            start.elapsed().as_secs_f64() / 10_000.0
        };
        let mut samples: Vec<f64> = std::iter::repeat_with(sample).take(101).collect();
        samples.sort_by(f64::total_cmp);
        (samples[0] * 1e9, samples[50] * 1e9)
    };
    let (least, median) = best(&mut |x, y| op.apply(x, y).expect("right lengths"));
    println!("\n9 x 9: y = A x takes {median:.0} ns (least {least:.0}) with spm");
    let (least, median) = best(&mut |x, y| op.apply_scaled(2.0, x, 1.0, y).expect("right lengths"));
    println!("9 x 9: y = 2 A x + y takes {median:.0} ns (least {least:.0}) with spm");
    let (least, median) = best(&mut |x, y| {
        y.fill(0.0);
        sprs::prod::mul_acc_mat_vec_csr(of_sprs.view(), x, y);
    });
    println!("9 x 9: y = A x takes {median:.0} ns (least {least:.0}) with sprs");
    Ok(())
}

//! What is timed: each operation, ours and other crates'.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::error::Error;
use std::time::Instant;

use faer::sparse::linalg::matmul::sparse_dense_matmul;
use faer::sparse::{SparseRowMatRef, SymbolicSparseRowMatRef};
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{ArrayView2, ArrayViewMut2};
use spm::Operator;
use spm_cpu::{PlanOptions, prefer_huge_pages, spmm, spmv, transpose};
use spm_formats::kernel::{ProductPlan, TransposeOutput, TransposePlan, split_label};
use spm_formats::{Csr, DenseShape, Layout, sprs};

fn faer_view(a: &Csr<f64>) -> SparseRowMatRef<'_, u32, f64> {
    let (pointers, columns, values) = (a.row_ptr(), a.col_ind(), a.values());
    let structure =
        SymbolicSparseRowMatRef::new_checked(a.rows(), a.cols(), pointers, None, columns);
    SparseRowMatRef::new(structure, values)
}

fn faer_threads(threads: usize) -> Par {
    if threads == 1 { Par::Seq } else { Par::rayon(threads) }
}

/// The median over at least 5 samples and `seconds`, after two calls; short calls are timed
/// together, as spmv.c does it for the other side.
fn median(seconds: f64, mut run: impl FnMut()) -> f64 {
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

/// Plans by the operation, kernel and threads that were asked for, each with what it runs: whoever multiplies often plans once.
#[derive(Default)]
pub(crate) struct Plans<'a> {
    products: HashMap<String, (Box<dyn ProductPlan<f64> + 'a>, String)>,
    transposes: HashMap<String, (Box<dyn TransposePlan<f64> + 'a>, String)>,
}

/// What is under a key, made first if nothing is.
fn kept<'m, V>(
    map: &'m mut HashMap<String, V>,
    key: String,
    make: impl FnOnce() -> Result<V, Box<dyn Error>>,
) -> Result<&'m mut V, Box<dyn Error>> {
    Ok(match map.entry(key) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(make()?),
    })
}

/// y = A x, with vectors on a cache line and large pages as the other side has them.
pub(crate) fn time_spmv<'a>(
    plans: &mut Plans<'a>,
    (a, x): (&'a Csr<f64>, &[f64]),
    name: &str,
    threads: usize,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    let (mut own_x, mut own_y) = (vec![], vec![]);
    let (own_x, y) = (aligned(&mut own_x, a.cols()), aligned(&mut own_y, a.rows()));
    own_x.copy_from_slice(x);
    y.fill(0.0);
    let x = &*own_x;
    match name {
        "sprs" => {
            // It adds to y, which a user clears first.
            let product = || {
                y.fill(0.0);
                sprs::prod::mul_acc_mat_vec_csr(a.view().as_sprs(), x, &mut y[..]);
            };
            Ok(format!("{:e} sprs", median(seconds, product)))
        }
        "faer" => {
            let matrix = faer_view(a);
            let x = MatRef::from_column_major_slice(x, x.len(), 1);
            let mut y = MatMut::from_column_major_slice_mut(y, a.rows(), 1);
            let product = || {
                let y = y.as_mut();
                sparse_dense_matmul(y, Accum::Replace, matrix, x, 1.0, faer_threads(threads));
            };
            Ok(format!("{:e} faer", median(seconds, product)))
        }
        label => {
            let (plan, choice) = kept(&mut plans.products, format!("{label} {threads}"), || {
                let (id, text) = split_label(label);
                let kernel = spmv::find::<f64>(id).ok_or("no such kernel")?;
                let parameters = kernel.info.parse_parameters(text)?;
                let options = PlanOptions::with_threads(threads);
                let plan = kernel.plan(a.view(), &parameters, &options)?;
                let choice = plan.choice().unwrap_or_else(|| kernel.info.label(&parameters));
                Ok((plan, choice))
            })?;
            let median = median(seconds, || plan.run(x, y).expect("right lengths"));
            Ok(format!("{median:e} {choice}"))
        }
    }
}

/// Y = A X, row-major, on a cache line and large pages as the other side has it.
pub(crate) fn time_spmm<'a>(
    plans: &mut Plans<'a>,
    a: &'a Csr<f64>,
    name: &str,
    k: usize,
    threads: usize,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    let (mut x, mut y) = (vec![], vec![]);
    let (x, y) = (aligned(&mut x, a.cols() * k), aligned(&mut y, a.rows() * k));
    x.iter_mut().enumerate().for_each(|(i, x)| *x = (i as f64).sin());
    y.fill(0.0);
    match name {
        "sprs" => {
            let x = ArrayView2::from_shape((a.cols(), k), &*x)?;
            // It adds to Y, which a user clears first.
            let median = median(seconds, || {
                y.fill(0.0);
                let y = ArrayViewMut2::from_shape((a.rows(), k), &mut *y).expect("rows x k");
                sprs::prod::csr_mulacc_dense_rowmaj(a.view().as_sprs(), x, y);
            });
            Ok(format!("{median:e} sprs"))
        }
        "faer" => {
            let matrix = faer_view(a);
            let x = MatRef::from_row_major_slice(x, a.cols(), k);
            let mut y = MatMut::from_row_major_slice_mut(y, a.rows(), k);
            let median = median(seconds, || {
                let y = y.as_mut();
                sparse_dense_matmul(y, Accum::Replace, matrix, x, 1.0, faer_threads(threads));
            });
            Ok(format!("{median:e} faer"))
        }
        label => {
            let key = format!("{label} {k} {threads}");
            let (plan, choice) = kept(&mut plans.products, key, || {
                let (id, text) = split_label(label);
                let kernel = spmm::find::<f64>(id).ok_or("no such kernel")?;
                let parameters = kernel.info.parse_parameters(text)?;
                let options = PlanOptions::with_threads(threads);
                let dense = DenseShape { k, layout: Layout::RowMajor };
                let plan = kernel.plan(a.view(), dense, &parameters, &options)?;
                let choice = plan.choice().unwrap_or_else(|| kernel.info.label(&parameters));
                Ok((plan, choice))
            })?;
            let median = median(seconds, || plan.run(x, y).expect("right lengths"));
            Ok(format!("{median:e} {choice}"))
        }
    }
}

/// y = A^T x.
pub(crate) fn time_transposed(
    a: &Csr<f64>,
    name: &str,
    threads: usize,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    let x: Vec<f64> = (0..a.rows()).map(|i| (i as f64).sin()).collect();
    let mut y = vec![0.0; a.cols()];
    let products = match name {
        "straight" => 1,
        "planned" => 1_000_000,
        "faer" => {
            let matrix = faer_view(a).transpose();
            let x = MatRef::from_column_major_slice(&x, a.rows(), 1);
            let mut y = MatMut::from_column_major_slice_mut(&mut y, a.cols(), 1);
            let product = || {
                let y = y.as_mut();
                sparse_dense_matmul(y, Accum::Replace, matrix, x, 1.0, faer_threads(threads));
            };
            return Ok(format!("{:e} faer", median(seconds, product)));
        }
        _ => return Err(format!("expected straight, planned or faer, found {name}").into()),
    };
    // The matrix is copied, as an operator owns it; the copy is made before anything is timed.
    let op = Operator::builder(a.view()).threads(threads).expected_products(products).build()?;
    let median = median(seconds, || op.apply_transpose(&x, &mut y).expect("right lengths"));
    let recipe = op.describe().transposed_recipe;
    let copy = recipe.map_or_else(|| "straight".to_owned(), |recipe| recipe.to_string());
    Ok(format!("{median:e} {copy}"))
}

/// CSR to CSC. The other crates allocate what they return, and that is timed, its release too.
pub(crate) fn time_transpose<'a>(
    plans: &mut Plans<'a>,
    a: &'a Csr<f64>,
    name: &str,
    threads: usize,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    match name {
        "sprs" => Ok(format!("{:e} sprs", median(seconds, || drop(a.view().as_sprs().to_csc())))),
        "faer" => {
            let matrix = faer_view(a);
            let run = || drop(matrix.to_col_major().expect("enough memory"));
            Ok(format!("{:e} faer", median(seconds, run)))
        }
        label => {
            let (plan, choice) = kept(&mut plans.transposes, format!("{label} {threads}"), || {
                let (id, text) = split_label(label);
                let kernel = transpose::find::<f64>(id).ok_or("no such kernel")?;
                let parameters = kernel.info.parse_parameters(text)?;
                let options = PlanOptions::with_threads(threads);
                let plan = kernel.plan(a.view(), &parameters, &options)?;
                let choice = plan.choice().unwrap_or_else(|| kernel.info.label(&parameters));
                Ok((plan, choice))
            })?;
            let mut output = TransposeOutput::new(a.cols(), a.nnz());
            let median = median(seconds, || plan.run(&mut output).expect("right lengths"));
            Ok(format!("{median:e} {choice}"))
        }
    }
}

/// `len` zeros on a cache line and large pages, in memory that `storage` owns from then on.
fn aligned(storage: &mut Vec<f64>, len: usize) -> &mut [f64] {
    *storage = vec![0.0; len + 8];
    prefer_huge_pages(storage);
    let start = storage.as_ptr().align_offset(64);
    &mut storage[start..start + len]
}

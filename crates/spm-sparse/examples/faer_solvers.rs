//! Solves systems by the solvers of faer on the products of an operator: conjugate gradients, BiCGSTAB
//! and LSMR: `cargo run --release -p spm-sparse --features faer,gpu --example faer_solvers`.
//!
//! The products run on the first GPU, or on CPU cores where there is none. The vectors of faer are in host
//! memory: each product copies one to the GPU and one back.

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::matrix_free::IdentityPrecond;
use faer::matrix_free::bicgstab::{BicgParams, bicgstab, bicgstab_scratch};
use faer::matrix_free::conjugate_gradient::{
    CgParams, conjugate_gradient, conjugate_gradient_scratch,
};
use faer::matrix_free::lsmr::{LsmrParams, lsmr, lsmr_scratch};
use faer::{Mat, Par};
use spm::{Csr, Device, Error, Operator};

const TOLERANCE: f64 = 1e-10;

fn main() -> Result<(), Error> {
    run(&Device::auto(), 60)
}

/// On n x n points.
pub(crate) fn run(device: &Device, n: usize) -> Result<(), Error> {
    let operator = |a: Csr<f64>| Operator::builder(a).device(device.clone()).build();
    // Symmetric positive definite: the 5-point Laplacian, with the inverted diagonal as preconditioner.
    let op = operator(laplacian(n, 0.0)?)?;
    let inverse = (0..op.rows()).map(|i| (i, i, 0.25));
    let inverse = operator(spm::from_triplets(op.shape(), inverse)?)?;
    let b = right_hand_side(&op)?;
    let mut x = Mat::zeros(op.cols(), 1);
    // x is 0 at the start, but the parameters do not say so: told `InitialGuessStatus::Zero`, conjugate
    // gradients of faer 0.24.4 do not read b.
    let params = CgParams { rel_tolerance: TOLERANCE, ..CgParams::default() };
    let mut memory = memory(conjugate_gradient_scratch(&inverse, &op, 1, Par::Seq));
    let stack = MemStack::new(&mut memory);
    let info =
        conjugate_gradient(x.as_mut(), &inverse, &op, b.as_ref(), params, |_| {}, Par::Seq, stack);
    report("conjugate gradients", info.expect("convergence").iter_count, &x);

    // Not symmetric: convection added.
    let op = operator(laplacian(n, 0.3)?)?;
    let b = right_hand_side(&op)?;
    let mut x = Mat::zeros(op.cols(), 1);
    let params = BicgParams { rel_tolerance: TOLERANCE, ..BicgParams::default() };
    let identity = IdentityPrecond { dim: op.rows() };
    let mut memory = self::memory(bicgstab_scratch(&inverse, identity, &op, 1, Par::Seq));
    let stack = MemStack::new(&mut memory);
    let info =
        bicgstab(x.as_mut(), &inverse, identity, &op, b.as_ref(), params, |_| {}, Par::Seq, stack);
    report("BiCGSTAB", info.expect("convergence").iter_count, &x);

    // Least squares: the rows of the identity below those of the matrix. LSMR uses the transpose.
    let n = op.rows();
    let below = (0..n).map(|i| (n + i, i, 1.0));
    let above = op.matrix().iter().map(|(row, col, &value)| (row, col, value));
    let op = operator(spm::from_triplets((2 * n, n), above.chain(below))?)?;
    let b = right_hand_side(&op)?;
    let mut x = Mat::zeros(n, 1);
    let params = LsmrParams { rel_tolerance: TOLERANCE, ..LsmrParams::default() };
    let identity = IdentityPrecond { dim: n };
    let mut memory = self::memory(lsmr_scratch(identity, &op, 1, Par::Seq));
    let stack = MemStack::new(&mut memory);
    let info = lsmr(x.as_mut(), identity, &op, b.as_ref(), params, |_| {}, Par::Seq, stack);
    report("LSMR", info.expect("convergence").iter_count, &x);
    println!("{}", op.describe());
    Ok(())
}

/// The 5-point stencil on n x n points, with convection along the rows.
fn laplacian(n: usize, convection: f64) -> Result<Csr<f64>, Error> {
    let entries = (0..n * n).flat_map(move |i| {
        let (row, col) = (i / n, i % n);
        let neighbours = [
            (row > 0).then(|| (i, i - n, -1.0)),
            (col > 0).then(|| (i, i - 1, -1.0 - convection)),
            (col + 1 < n).then(|| (i, i + 1, -1.0 + convection)),
            (row + 1 < n).then(|| (i, i + n, -1.0)),
        ];
        std::iter::once((i, i, 4.0)).chain(neighbours.into_iter().flatten())
    });
    spm::from_triplets((n * n, n * n), entries)
}

/// A (1, 1, ...).
fn right_hand_side(op: &Operator<f64>) -> Result<Mat<f64>, Error> {
    let mut b = vec![0.0; op.rows()];
    op.apply(&vec![1.0; op.cols()], &mut b)?;
    Ok(Mat::from_fn(b.len(), 1, |i, _| b[i]))
}

/// Memory for a solver: twice as much as it asks for, because LSMR of faer 0.24.4 takes more than that.
fn memory(request: StackReq) -> MemBuffer {
    MemBuffer::new(StackReq::all_of(&[request, request]))
}

fn report(name: &str, iterations: usize, x: &Mat<f64>) {
    let furthest = x.col(0).iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
    println!("{name}: {iterations} iterations, x within {furthest:.1e} of the ones");
    assert!(furthest < 1e-6, "{name}");
}

//! Plans of the kernels on CPU cores: any parameters and budgets, wrong lengths, other threads.

use arbitrary::{Arbitrary, Result, Unstructured};
use spm_cpu::{PlanOptions, Threads, spmm, spmv, transpose, transposed};
use spm_formats::kernel::{KernelInfo, PlanError, ProductPlan, RunError, Scaling, TransposeOutput};
use spm_formats::{Coo, Scalar};
use spm_testing::reference::{self, Reference, computed_bits};

use super::{allowing_panics, budget, choose, compare, dense, other_length, worst};
use crate::{Matrix, bits, value, vector};

pub(super) fn check<T: Scalar>(u: &mut Unstructured<'_>) -> Result<()> {
    let options = PlanOptions { threads: Threads::new(u.int_in_range(0..=4)?), budget: budget(u)? };
    match u.int_in_range(0..=7_u8)? {
        7 => transposed_plan::<T>(u, &options),
        0..=2 => spmv_plan::<T>(u, &options),
        3 | 4 => spmm_plan::<T>(u, &options),
        5 => transpose_plan::<T>(u, &options),
        _ => forged::<T>(u, &options),
    }
}

/// A plan, or nothing where the kernel refuses.
fn planned<P>(label: &str, plan: std::result::Result<P, PlanError>) -> Option<P> {
    match plan {
        Ok(plan) => Some(plan),
        Err(PlanError::Format(_) | PlanError::Unsupported { .. }) => None,
        Err(error) => panic!("{label}: {error}"),
    }
}

fn spmv_plan<T: Scalar>(u: &mut Unstructured<'_>, options: &PlanOptions) -> Result<()> {
    let kernels = spmv::registry::<T>();
    let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
    let label = kernel.info.label(&parameters);
    let a = Matrix::<T>::within(u, 60, 200)?;
    let plan = kernel.plan(a.csr.view(), &parameters, options);
    let Some(plan) = planned(&label, plan) else { return Ok(()) };
    let expected = |x: &[T]| reference::spmv(&a.coo, x);
    product(u, &label, plan, (a.csr.cols(), a.csr.rows()), expected)
}

fn spmm_plan<T: Scalar>(u: &mut Unstructured<'_>, options: &PlanOptions) -> Result<()> {
    let kernels = spmm::registry::<T>();
    let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
    let label = kernel.info.label(&parameters);
    let (dense, a) = (dense(u)?, Matrix::<T>::within(u, 30, 100)?);
    let plan = kernel.plan(a.csr.view(), dense, &parameters, options);
    let Some(plan) = planned(&label, plan) else { return Ok(()) };
    let lengths = (a.csr.cols() * dense.k, a.csr.rows() * dense.k);
    if dense.k > 1000 {
        // Nobody has such operands, if they have elements.
        let empty = lengths == (0, 0);
        assert!(plan.run(&[T::ONE; 7], &mut []).is_err(), "{label}");
        assert_eq!(plan.run(&[], &mut []).is_ok(), empty, "{label}");
        return Ok(());
    }
    product(u, &label, plan, lengths, |x| reference::spmm(&a.coo, x, dense))
}

fn transposed_plan<T: Scalar>(u: &mut Unstructured<'_>, options: &PlanOptions) -> Result<()> {
    let a = Matrix::<T>::within(u, 60, 200)?;
    let Some(plan) = planned("transposed", transposed::plan(&a.csr, options)) else {
        return Ok(());
    };
    let (rows, cols) = a.csr.shape();
    let (row_ind, col_ind, values) = a.coo.into_arrays();
    let coo = Coo::new(cols, rows, col_ind, row_ind, values).expect("indices are in range");
    product(u, "transposed", plan, (rows, cols), |x| reference::spmv(&coo, x))
}

/// One plan: wrong lengths, then runs at the same time on two threads, then scaled ones.
fn product<T: Scalar>(
    u: &mut Unstructured<'_>,
    label: &str,
    plan: Box<dyn ProductPlan<T> + '_>,
    (of_x, of_y): (usize, usize),
    expected: impl Fn(&[T]) -> Reference<T::Wide>,
) -> Result<()> {
    let x: Vec<T> = vector(u, of_x)?;
    let scaling = Scaling::new(value(u)?, value(u)?);
    let nan = |length: usize| vec![T::from_f64(f64::NAN); length];
    let (wrong_x, wrong_y) = (nan(other_length(u, of_x)?), nan(other_length(u, of_y)?).len());
    let shape = |result| assert!(matches!(result, Err(RunError::Shape { .. })), "{label}");
    shape(plan.run(&wrong_x, &mut nan(of_y)));
    shape(plan.run(&x, &mut nan(wrong_y)));
    shape(plan.run_scaled(scaling, &wrong_x, &mut nan(of_y)));
    shape(plan.run_scaled(scaling, &x, &mut nan(wrong_y)));
    let (mut y, mut z) = (nan(of_y), nan(of_y));
    std::thread::scope(|scope| {
        scope.spawn(|| plan.run(&x, &mut y).expect("lengths are right"));
        scope.spawn(|| plan.run_scaled(scaling, &x, &mut nan(of_y)).expect("lengths are right"));
        plan.run(&x, &mut z).expect("lengths are right");
    });
    compare(label, &y, &expected(&x));
    assert_eq!(
        computed_bits(&y),
        computed_bits(&z),
        "{label}: every run of a plan gives the same bits"
    );
    z = nan(of_y);
    plan.run_scaled(Scaling::OVERWRITE, &x, &mut z).expect("lengths are right");
    assert_eq!(computed_bits(&y), computed_bits(&z), "{label}: alpha = 1 and beta = 0");
    // A plan may end on another thread than it was made and run on.
    std::thread::scope(|scope| drop(scope.spawn(move || drop(plan))));
    Ok(())
}

fn transpose_plan<T: Scalar>(u: &mut Unstructured<'_>, options: &PlanOptions) -> Result<()> {
    let kernels = transpose::registry::<T>();
    let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
    let label = kernel.info.label(&parameters);
    let a = Matrix::<T>::within(u, 60, 200)?;
    let plan = kernel.plan(a.csr.view(), &parameters, options);
    let Some(mut plan) = planned(&label, plan) else { return Ok(()) };
    let (cols, entries) = (a.csr.cols(), a.csr.nnz());
    let mut output = TransposeOutput::<T>::new(cols, entries);
    // Fields are public: lengths that no constructor makes, and contents of any kind.
    output.col_ptr.fill(u32::MAX);
    output.row_ind.fill(u32::MAX);
    let right = output.clone();
    match u.int_in_range(0..=3_u8)? {
        0 => output.col_ptr.truncate(cols),
        1 => output.row_ind.push(1),
        2 => output.values.push(T::ONE),
        _ => output = TransposeOutput::new(other_length(u, cols)?, other_length(u, entries)?),
    }
    assert!(matches!(plan.run(&mut output), Err(RunError::Shape { .. })), "{label}");
    output = right;
    std::thread::scope(|scope| {
        scope.spawn(|| plan.run(&mut output).expect("lengths are right"));
    });
    let (col_ptr, row_ind, values) = reference::transpose(&a.coo);
    assert_eq!((&output.col_ptr, &output.row_ind), (&col_ptr, &row_ind), "{label}");
    assert_eq!(bits(&output.values), bits(&values), "{label}");
    Ok(())
}

/// A kernel whose description was replaced: the field is public. Its plan may panic, and whatever it
/// computes touches no memory of others.
fn forged<T: Scalar>(u: &mut Unstructured<'_>, options: &PlanOptions) -> Result<()> {
    let mut kernel = *u.choose(&spmv::registry::<T>())?;
    let forged: Vec<KernelInfo> = spmv::registry::<T>().iter().map(|kernel| kernel.info).collect();
    // Its own parameters with values that it refuses, or those of another kernel.
    kernel.info = if bool::arbitrary(u)? { *u.choose(&forged)? } else { kernel.info };
    let parameters = worst(u, &kernel.info)?;
    let a = Matrix::<T>::within(u, 20, 60)?;
    let x: Vec<T> = vector(u, a.csr.cols())?;
    allowing_panics(|| {
        if let Ok(plan) = kernel.plan(a.csr.view(), &parameters, options) {
            drop(plan.run(&x, &mut vec![T::ZERO; a.csr.rows()]));
        }
    });
    Ok(())
}

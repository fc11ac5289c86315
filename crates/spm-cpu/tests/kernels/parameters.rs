//! Parameters that nobody studied, and budgets too small: an error or the right result.

use crate::common::{LAYOUTS, csr};
use spm_cpu::{PlanOptions, Threads, spmm, spmv, transpose};
use spm_formats::kernel::{
    KernelInfo, Parameters, PlanError, Schedule, TransposeOutput, Value, split_label,
};
use spm_formats::{Coo, DenseShape, FormatError, MemoryBudget};
use spm_testing::edge_cases::vector;
use spm_testing::reference;

const COUNTS: [usize; 10] = [0, 1, 2, 3, 7, 8, 1 << 63, usize::MAX / 2, usize::MAX - 7, usize::MAX];
const GRIDS: [(usize, usize); 8] = [
    (0, 1),
    (1, 0),
    (1, 1),
    (100, 100),
    (3, usize::MAX),
    (usize::MAX, 3),
    (1 << 32, 1 << 32),
    (usize::MAX, usize::MAX),
];

/// Each parameter at values that make sense nowhere or seldom, the others at their defaults.
fn odd(info: &KernelInfo) -> Vec<Parameters> {
    let mut all = vec![info.defaults()];
    for spec in info.parameters {
        let values: Vec<Value> = match spec.default {
            Value::Count(_) => COUNTS.map(Value::Count).to_vec(),
            Value::Grid(..) => GRIDS.map(|(rows, cols)| Value::Grid(rows, cols)).to_vec(),
            Value::Choice(_) => vec![Value::Choice("neither")],
            _ => spec.studied.to_vec(),
        };
        for value in values {
            let parameters = info.defaults().with(spec.name, value);
            if parameters.get("schedule").is_some() {
                let fixed = Value::Schedule(Schedule::Static);
                all.push(parameters.clone().with("schedule", fixed));
            }
            all.push(parameters);
        }
    }
    all
}

fn coo((rows, cols): (usize, usize), has: impl Fn(u32, u32) -> bool) -> Coo<f64> {
    let all = (0..rows as u32).flat_map(|r| (0..cols as u32).map(move |c| (r, c)));
    let (r, c): (Vec<u32>, Vec<u32>) = all.filter(|&(r, c)| has(r, c)).unzip();
    let values = r.iter().zip(&c).map(|(&r, &c)| f64::from((r + c) % 7) - 2.5).collect();
    Coo::new(rows, cols, r, c, values).unwrap()
}

fn band(size: usize) -> Coo<f64> {
    coo((size, size), |r, c| r.abs_diff(c) < 2)
}

fn cases() -> [Coo<f64>; 4] {
    [
        coo((40, 30), |r, c| (r * 31 + c * 17) % 11 < 2 || r == 7),
        band(40),
        coo((9, 4), |_, _| false),
        coo((0, 0), |_, _| false),
    ]
}

/// Which parameters are refused: by which kernels, and a part of why. No kernel takes a count of 0, a
/// grid without rows or columns, or a choice that it does not list.
const REFUSALS: [(Option<&str>, &str); 10] = [
    (None, "must be a positive number, found 0"),
    (None, "found 0x1"),
    (None, "found 1x0"),
    (None, "found neither"),
    (Some("sell"), "is not a multiple of 8"),
    // A chunk of 2^63 rows.
    (Some("sell"), "the memory budget is"),
    // Blocks of 2^63 rows.
    (Some("bsr-rows"), "the memory budget is"),
    (Some("bsr-blocked"), "the memory budget is"),
    (Some("sell-compact"), "is neither 1 nor a multiple of 8"),
    (Some("sell-tiles"), "does not fit 16-bit columns"),
];

/// The plan, or nothing where the parameters are refused as expected, or the kernel is for other
/// matrices. Defaults are not refused.
fn planned<P>(info: &KernelInfo, parameters: &Parameters, plan: Result<P, PlanError>) -> Option<P> {
    if let Err(error) = &plan
        && *parameters != info.defaults()
    {
        let error = error.to_string();
        let expected = |(id, why): &(Option<&str>, &str)| {
            id.is_none_or(|id| id == info.id) && error.contains(why)
        };
        if REFUSALS.iter().any(expected) {
            return None;
        }
    }
    crate::common::planned(&info.label(parameters), plan)
}

#[test]
fn odd_parameters_of_spmv() {
    let options = PlanOptions::with_threads(3);
    for a in cases() {
        let (matrix, x) = (csr(&a), vector(a.cols()));
        let expected = reference::spmv(&a, &x);
        for kernel in spmv::registry::<f64>() {
            for parameters in odd(&kernel.info) {
                let label = kernel.info.label(&parameters);
                let plan = kernel.plan(matrix.view(), &parameters, &options);
                let Some(plan) = planned(&kernel.info, &parameters, plan) else { continue };
                let mut y = vec![f64::NAN; a.rows()];
                plan.run(&x, &mut y).unwrap();
                let errors = reference::compare(&y, &expected);
                assert!(errors.acceptable(), "{label} on {:?}: {errors:?}", matrix.shape());
            }
        }
    }
}

#[test]
fn odd_parameters_of_spmm() {
    let options = PlanOptions::with_threads(3);
    for a in cases() {
        let matrix = csr(&a);
        for (k, layout) in [1, 3, 8].into_iter().flat_map(|k| LAYOUTS.map(|layout| (k, layout))) {
            let (dense, x) = (DenseShape { k, layout }, vector(a.cols() * k));
            let expected = reference::spmm(&a, &x, dense);
            for kernel in spmm::registry::<f64>() {
                for parameters in odd(&kernel.info) {
                    let label = kernel.info.label(&parameters);
                    let plan = kernel.plan(matrix.view(), dense, &parameters, &options);
                    let Some(plan) = planned(&kernel.info, &parameters, plan) else { continue };
                    let mut y = vec![f64::NAN; a.rows() * k];
                    plan.run(&x, &mut y).unwrap();
                    let errors = reference::compare(&y, &expected);
                    assert!(errors.acceptable(), "{label} {dense:?}: {errors:?}");
                }
            }
        }
    }
}

#[test]
fn odd_parameters_of_transposition() {
    let options = PlanOptions::with_threads(3);
    for a in cases() {
        let matrix = csr(&a);
        let (col_ptr, row_ind, values) = reference::transpose(&a);
        let expected = TransposeOutput { col_ptr, row_ind, values };
        for kernel in transpose::registry::<f64>() {
            for parameters in odd(&kernel.info) {
                let label = kernel.info.label(&parameters);
                let plan = kernel.plan(matrix.view(), &parameters, &options);
                let Some(mut plan) = planned(&kernel.info, &parameters, plan) else { continue };
                let mut output = TransposeOutput::new(a.cols(), matrix.nnz());
                plan.run(&mut output).unwrap();
                assert!(output == expected, "{label} on {:?}", matrix.shape());
            }
        }
    }
}

/// Parameters that a kernel does not have, or not of this type.
#[test]
fn parameters_of_another_kernel_are_an_error() {
    let (a, options) = (csr(&band(10)), PlanOptions::with_threads(1));
    let kernels = spmv::registry::<f64>();
    for (kernel, other) in kernels.iter().flat_map(|k| kernels.iter().map(move |o| (k, o))) {
        let names = |info: &KernelInfo| info.parameters.iter().map(|p| p.name).collect::<Vec<_>>();
        if names(&kernel.info) == names(&other.info) {
            continue;
        }
        let plan = kernel.plan(a.view(), &other.info.defaults(), &options);
        let error = plan.err().unwrap_or_else(|| panic!("{} {}", kernel.info.id, other.info.id));
        let is_unsupported = matches!(error, PlanError::Unsupported { .. });
        assert!(is_unsupported, "{} with those of {}: {error}", kernel.info.id, other.info.id);
    }
    let (radix, none) = (transpose::find::<f64>("radix").unwrap(), Parameters::default());
    assert!(matches!(radix.plan(a.view(), &none, &options), Err(PlanError::Unsupported { .. })));
    let (blocked, dense) = (spmm::find::<f64>("csr-blocked").unwrap(), LAYOUTS[0]);
    let plan = blocked.plan(a.view(), DenseShape { k: 2, layout: dense }, &none, &options);
    assert!(matches!(plan, Err(PlanError::Unsupported { .. })));
}

/// Whoever pads, copies by tiles or lists rows asks the budget; `auto` takes what is left.
#[test]
fn a_small_budget_refuses_every_padded_format() {
    let a = band(200);
    let (matrix, x) = (csr(&a), vector(200));
    let expected = reference::spmv(&a, &x);
    let budget = MemoryBudget::bytes(100);
    let options = PlanOptions { threads: Threads::new(2), budget };
    let over =
        |error: PlanError| matches!(error, PlanError::Format(FormatError::OverBudget { .. }));
    for kernel in spmv::registry::<f64>() {
        let (id, mut parameters) = (kernel.info.id, kernel.info.defaults());
        if id == "bsr-rows" {
            // The band has no blocks to be detected.
            parameters = parameters.with("block", Value::Count(2));
        }
        let plan = kernel.plan(matrix.view(), &parameters, &options);
        if ["ell-", "hll-", "sell", "bsr-", "csr-tiles", "csr-compact", "dcsr-"]
            .iter()
            .any(|padded| id.starts_with(padded))
        {
            assert!(plan.is_err_and(over), "{id}");
        } else {
            let mut y = vec![f64::NAN; 200];
            plan.unwrap().run(&x, &mut y).unwrap();
            assert!(reference::compare(&y, &expected).acceptable(), "{id}");
        }
    }
    for kernel in spmm::registry::<f64>() {
        let (dense, id) = (DenseShape { k: 3, layout: LAYOUTS[0] }, kernel.info.id);
        let mut parameters = kernel.info.defaults();
        if id == "bsr-blocked" {
            parameters = parameters.with("block", Value::Count(2));
        }
        let plan = kernel.plan(matrix.view(), dense, &parameters, &options);
        let padded = id.starts_with("ell-") || id.starts_with("bsr-");
        assert_eq!(plan.is_err_and(over), padded, "{id}");
    }
    // What a plan says that it holds of a padded matrix is within the budget that it was given.
    let labels =
        ["sell-compact[sigma=1]", "sell-compact[sigma=256]", "sell-tiles", "sell-symmetric"];
    for (id, text) in labels.map(split_label) {
        let kernel = spmv::find::<f64>(id).unwrap();
        let parameters = kernel.info.parse_parameters(text).unwrap();
        let with = |budget| PlanOptions { threads: Threads::new(2), budget };
        let unlimited = with(MemoryBudget::unlimited());
        let plan = kernel.plan(matrix.view(), &parameters, &unlimited).unwrap();
        let takes = plan.footprint().matrix_bytes;
        let small = with(MemoryBudget::bytes(takes / 2));
        assert!(kernel.plan(matrix.view(), &parameters, &small).is_err_and(over), "{id}");
        let enough = with(MemoryBudget::bytes(4 * takes + MemoryBudget::ALLOWANCE));
        assert!(kernel.plan(matrix.view(), &parameters, &enough).is_ok(), "{id}");
    }
}

//! New values for the pattern of a plan: the bits of a new plan, or a refusal that changes nothing.

use std::sync::Arc;

use crate::common::{LAYOUTS, bits, planned};
use spm_cpu::{PlanOptions, spmm, spmv, transposed};
use spm_formats::kernel::{PlanError, ProductPlan, RunError};
use spm_formats::{Csr, DenseShape, FormatError, NewValues};
use spm_testing::edge_cases::{few_long_rows, vector};
use spm_testing::generate;

/// Kernels that `auto` may choose; these have to take new values.
const CHOSEN: [&str; 11] = [
    "csr-serial",
    "csr-compact",
    "bsr-rows",
    "dcsr-rows",
    "sell-compact",
    "sell-tiles",
    "sell-symmetric",
    "csr-blocked",
    "bsr-blocked",
    "transposed",
    "auto",
];

/// Those of them that are no kernels for SpMV.
const NOT_IN_SPMV: [&str; 3] = ["csr-blocked", "bsr-blocked", "transposed"];

/// Values for a pattern, those at (i, j) and (j, i) the same; `seed` says which.
fn values(a: &Csr<f64>, seed: usize) -> Arc<Vec<f64>> {
    let value = |(row, col, _): (usize, usize, &f64)| {
        let (low, high) = (row.min(col), row.max(col));
        ((low * 31 + high * 17 + seed * 7) as f64 * 0.618).sin()
    };
    Arc::new(a.iter().map(value).collect())
}

fn with_values(a: &Csr<f64>, values: &[f64]) -> Csr<f64> {
    let mut other = a.clone();
    other.values_mut().copy_from_slice(values);
    other
}

/// Matrices for every way of storing one, with values that are not all equal.
fn matrices() -> Vec<Csr<f64>> {
    let labels = [
        "stencil27[n=7]",
        "stencil5[n=20]",
        "blocks[n=5,block=3]",
        "mesh2[n=9,unknowns=2]",
        "uniform[rows=300,cols=200,entries=2000]",
        "uniform[rows=70,cols=90000,entries=4000]",
        // Several windows of several tiles.
        "uniform[rows=1100,cols=17000,entries=5000]",
        "powerlaw[rows=300,cols=500,entries=3000,longest=300]",
        // Rows that fill chunks of several tiles, beside shorter ones.
        "powerlaw[rows=900,cols=70000,entries=9000,longest=2000]",
        // Hardly any row has entries.
        "uniform[rows=2000,cols=300,entries=90]",
    ];
    let mut all: Vec<Csr<f64>> =
        labels.map(|label| generate::named(label).unwrap().generate().unwrap()).into();
    all.extend([
        crate::common::csr(&few_long_rows()),
        Csr::empty(0, 3).unwrap(),
        Csr::empty(9, 9).unwrap(),
    ]);
    all.iter().map(|a| with_values(a, &values(a, 0))).collect()
}

type Run<'a> = &'a dyn Fn(&[f64], &mut [f64]) -> Result<(), RunError>;

fn product(run: Run<'_>, x: usize, y: usize) -> Vec<u128> {
    let mut result = vec![f64::NAN; y];
    run(&vector(x), &mut result).unwrap();
    bits(&result)
}

/// Whether a plan took the values. Those of a kernel of [`CHOSEN`] have to.
fn taken(id: &str, label: &str, result: Result<(), PlanError>) -> bool {
    match result {
        Ok(()) => true,
        Err(PlanError::Values(_)) if !CHOSEN.contains(&id) => false,
        Err(error) => panic!("{label}: {error}"),
    }
}

#[test]
fn new_values_give_the_bits_of_a_new_plan_on_one_thread() {
    new_values_give_the_bits_of_a_new_plan(1);
}

#[test]
fn new_values_give_the_bits_of_a_new_plan_on_three_threads() {
    new_values_give_the_bits_of_a_new_plan(3);
}

fn new_values_give_the_bits_of_a_new_plan(threads: usize) {
    for a in &matrices() {
        let options = PlanOptions::with_threads(threads);
        let (rows, cols) = a.shape();
        {
            let new = values(a, 1);
            let other = with_values(a, &new);
            for kernel in spmv::registry::<f64>() {
                for parameters in kernel.info.variants() {
                    let label = kernel.info.label(&parameters);
                    // Another race may have another winner.
                    let Some(mut plan) = planned(&label, kernel.plan(a, &parameters, &options))
                    else {
                        continue;
                    };
                    let before = product(&|x, y| plan.run(x, y), cols, rows);
                    let fresh = kernel.plan(&other, &parameters, &options).unwrap();
                    let after = product(&|x, y| fresh.run(x, y), cols, rows);
                    let took =
                        taken(kernel.info.id, &label, plan.set_values(NewValues::Shared(&new)));
                    let now = product(&|x, y| plan.run(x, y), cols, rows);
                    if kernel.info.id != "auto" {
                        assert!(now == if took { after } else { before }, "{label} {rows}");
                    }
                }
            }
            let mut plan = transposed::plan(a, &options).unwrap();
            let fresh = transposed::plan(&other, &options).unwrap();
            plan.set_values(NewValues::Shared(&new)).unwrap();
            let [now, after] =
                [&plan, &fresh].map(|plan| product(&|x, y| plan.run(x, y), rows, cols));
            assert!(now == after, "transposed");
            let k = 5;
            for (kernel, layout) in spmm::registry::<f64>()
                .iter()
                .flat_map(|kernel| LAYOUTS.map(|layout| (kernel, layout)))
            {
                let dense = DenseShape { k, layout };
                for parameters in kernel.info.variants() {
                    let label = kernel.info.label(&parameters);
                    let plan = |a| planned(&label, kernel.plan(a, dense, &parameters, &options));
                    let (Some(mut plan), Some(fresh)) = (plan(a), plan(&other)) else { continue };
                    let before = product(&|x, y| plan.run(x, y), cols * k, rows * k);
                    let after = product(&|x, y| fresh.run(x, y), cols * k, rows * k);
                    let took =
                        taken(kernel.info.id, &label, plan.set_values(NewValues::Shared(&new)));
                    let now = product(&|x, y| plan.run(x, y), cols * k, rows * k);
                    if kernel.info.id != "auto" {
                        assert!(now == if took { after } else { before }, "{label} {rows}");
                    }
                }
            }
        }
    }
}

/// After a refusal the plan has its old values.
fn check_refusal(id: &str, a: &Csr<f64>, new: Vec<f64>, is: impl Fn(&PlanError) -> bool) {
    let kernel = spmv::find::<f64>(id).unwrap();
    let options = PlanOptions::with_threads(2);
    let mut plan = kernel.plan(a, &kernel.info.defaults(), &options).unwrap();
    let before = product(&|x, y| plan.run(x, y), a.cols(), a.rows());
    let error = plan.set_values(NewValues::Shared(&Arc::new(new))).unwrap_err();
    assert!(is(&error), "{id}: {error}");
    assert!(product(&|x, y| plan.run(x, y), a.cols(), a.rows()) == before, "{id}");
}

#[test]
fn values_that_the_plan_cannot_take_are_refused() {
    let depends = |error: &PlanError| matches!(error, PlanError::Values(_));
    let a = generate::named("stencil5[n=20]").unwrap().generate::<f64>().unwrap();
    let a = with_values(&a, &values(&a, 0));
    let equal = with_values(&a, &vec![2.0; a.nnz()]);
    let mut one_changed = values(&a, 1).to_vec();
    // The entry (0, 1) alone.
    one_changed[1] += 1.0;
    check_refusal("sell-symmetric", &a, one_changed.clone(), depends);
    check_refusal("sell-compact", &equal, one_changed, depends);
    check_refusal("sell-compact", &a, vec![2.0; a.nnz()], depends);
    check_refusal("sell", &a, values(&a, 1).to_vec(), depends);
    let blocks = generate::named("blocks[n=5,block=3]").unwrap().generate::<f64>().unwrap();
    for &id in CHOSEN.iter().filter(|id| !NOT_IN_SPMV.contains(id)) {
        let a = if id == "bsr-rows" { &blocks } else { &a };
        check_refusal(id, a, vec![1.0], |error| {
            matches!(error, PlanError::Format(FormatError::LengthMismatch { .. }))
        });
    }
    let kernel = spmv::find::<f64>("sell-compact").unwrap();
    let options = PlanOptions::with_threads(2);
    let mut plan = kernel.plan(&equal, &kernel.info.defaults(), &options).unwrap();
    let new = Arc::new(vec![-3.0; a.nnz()]);
    plan.set_values(NewValues::Shared(&new)).unwrap();
    let fresh = with_values(&a, &vec![-3.0; a.nnz()]);
    let fresh = kernel.plan(&fresh, &kernel.info.defaults(), &options).unwrap();
    let [now, after] =
        [&plan, &fresh].map(|plan| product(&|x, y| plan.run(x, y), a.cols(), a.rows()));
    assert!(now == after);
}

/// Values of which `distinct` are distinct, bit by bit.
fn few_values(a: &Csr<f64>, distinct: usize, seed: usize) -> Arc<Vec<f64>> {
    let value = |entry: usize| match (entry * 7919 + entry / 13 + seed) % distinct {
        0 => -0.0,
        1 => 1e300,
        other => ((other + seed) as f64 * 0.618).sin(),
    };
    Arc::new((0..a.nnz()).map(value).collect())
}

/// The products of codes have the bits of those of values, in a fraction of the bytes.
#[test]
fn codes_for_few_values_change_no_bit() {
    let kernel = spmv::find::<f64>("sell-compact").unwrap();
    let options = PlanOptions::with_threads(2);
    // Rows that stand out are not stored, and take the bytes of CSR.
    let longest = |a: &Csr<f64>| (0..a.rows()).map(|row| a.row(row).0.len()).max().unwrap_or(0);
    let all: Vec<_> = matrices()
        .into_iter()
        .filter(|a| a.nnz() > 1000 && a.rows() > 9 && longest(a) * a.rows() <= 4 * a.nnz())
        .collect();
    assert!(all.len() > 2);
    let all = all.into_iter();
    for (a, sigma) in all.flat_map(|a| [1, 256].map(|sigma| (a.clone(), sigma))) {
        for gather in ["vector", "scalar"] {
            let plan = |codes: &str, values: &[f64]| {
                let text = format!("sigma={sigma},codes={codes},gather={gather}");
                let parameters = kernel.info.parse_parameters(&text).unwrap();
                kernel.plan(Arc::new(with_values(&a, values)), &parameters, &options).unwrap()
            };
            // Up to 32 and up to 256, with the 0 of padding; more.
            for (distinct, fits) in [(2, true), (31, true), (32, true), (60, true), (701, false)] {
                let values = few_values(&a, distinct, 1);
                let product = |plan: &dyn ProductPlan<f64>| {
                    product(&|x, y| plan.run(x, y), a.cols(), a.rows())
                };
                let [on, off] = ["table", "off"].map(|codes| plan(codes, &values));
                let label = format!("{:?}, {distinct} values, sigma {sigma}", a.shape());
                assert!(product(&*on) == product(&*off), "{label}");
                let [on_bytes, off_bytes] = [&on, &off].map(|p| p.footprint().matrix_bytes);
                assert_eq!(2 * on_bytes < off_bytes, fits, "{label}: {on_bytes} of {off_bytes}");
                let mut other = plan("table", &few_values(&a, 9, 5));
                let before = product(&*other);
                if fits {
                    other.set_values(NewValues::Shared(&values)).unwrap();
                    assert!(product(&*other) == product(&*off), "new values: {label}");
                } else {
                    let error = other.set_values(NewValues::Shared(&values)).unwrap_err();
                    assert!(matches!(error, PlanError::Values(_)), "{label}: {error}");
                    assert!(product(&*other) == before, "{label}");
                }
            }
        }
    }
}

/// A plan and its owner share one matrix before and after, in place.
#[test]
fn values_are_written_into_the_shared_matrix() {
    let options = PlanOptions::with_threads(2);
    for a in matrices() {
        let new = values(&a, 1);
        let other = with_values(&a, &new);
        for id in CHOSEN.into_iter().filter(|id| !NOT_IN_SPMV.contains(id) && *id != "auto") {
            let kernel = spmv::find::<f64>(id).unwrap();
            let parameters = kernel.info.defaults();
            let mut shared = Arc::new(a.clone());
            let Some(mut plan) = planned(id, kernel.plan(&shared, &parameters, &options)) else {
                continue;
            };
            let place = shared.values().as_ptr();
            plan.set_values(NewValues::Into(&mut shared, new.as_slice().into())).unwrap();
            assert_eq!((&*shared, shared.values().as_ptr()), (&other, place), "{id}");
            assert_eq!(Arc::strong_count(&shared), 2, "{id}");
            let fresh = kernel.plan(&other, &parameters, &options).unwrap();
            let [now, after] =
                [&plan, &fresh].map(|plan| product(&|x, y| plan.run(x, y), a.cols(), a.rows()));
            assert!(now == after, "{id} {:?}", a.shape());
        }
    }
}

/// The kernel keeps one half of a symmetric matrix: neither the plan nor the matrix takes other values.
#[test]
fn a_refusal_leaves_the_shared_matrix_alone() {
    let a = generate::named("stencil5[n=20]").unwrap().generate::<f64>().unwrap();
    let a = with_values(&a, &values(&a, 0));
    let kernel = spmv::find::<f64>("sell-symmetric").unwrap();
    let options = PlanOptions::with_threads(2);
    let mut shared = Arc::new(a.clone());
    let mut plan = kernel.plan(&shared, &kernel.info.defaults(), &options).unwrap();
    let mut new = values(&a, 1).to_vec();
    new[1] += 1.0;
    assert!(plan.set_values(NewValues::Into(&mut shared, new.as_slice().into())).is_err());
    assert_eq!(*shared, a);
}

/// One entry of each pair in turn, in rows of every kind: of chunks with and without padding, behind the last
/// chunk, and in the rows of another thread than the entry's equal.
#[test]
fn one_entry_without_an_equal_is_found_wherever_it_is() {
    let kernel = spmv::find::<f64>("sell-symmetric").unwrap();
    for (label, threads) in ["stencil5[n=13]", "stencil27[n=5]", "banded[n=61,lower=2,upper=2]"]
        .into_iter()
        .flat_map(|label| [1, 3].map(|threads| (label, threads)))
    {
        let a = generate::named(label).unwrap().generate::<f64>().unwrap();
        let a = Arc::new(with_values(&a, &values(&a, 0)));
        let options = PlanOptions::with_threads(threads);
        let mut plan = kernel.plan(&a, &kernel.info.defaults(), &options).unwrap();
        let before = product(&|x, y| plan.run(x, y), a.cols(), a.rows());
        let places: Vec<_> = a.iter().map(|(row, col, _)| (row, col)).collect();
        for (entry, (row, col)) in places.into_iter().enumerate() {
            let mut new = a.values().to_vec();
            new[entry] += 1.0;
            let taken = plan.set_values(NewValues::Shared(&Arc::new(new))).is_ok();
            assert_eq!(taken, row == col, "{label}, {threads} threads: entry ({row}, {col})");
        }
        plan.set_values(NewValues::Shared(&Arc::new(a.values().to_vec()))).unwrap();
        assert!(product(&|x, y| plan.run(x, y), a.cols(), a.rows()) == before, "{label}");
    }
}

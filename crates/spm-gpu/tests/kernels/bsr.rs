//! `bsr-subwarp-per-row` and `bsr-row-split` on matrices of dense blocks, with holes and without, in blocks of any size.

use spm_formats::convert::{coo_to_csr, csr_to_coo, detect_blocks};
use spm_formats::kernel::{PlanError, Scaling};
use spm_formats::{Complex, Coo, Csr, DenseShape, Layout, MemoryBudget};
use spm_gpu::{
    DeviceBuffer, DeviceProductPlan, DeviceReal, DeviceScalar, PlanOptions, Stream, spmm, spmv,
};
use spm_testing::edge_cases::{blocks, generated, with_lengths};
use spm_testing::{exact, reference};

use crate::common::spmm::{LAYOUTS, run};
use crate::devices::emulator;

fn planned<T: DeviceScalar>(
    a: &Csr<T>,
    parameters: &str,
    options: &PlanOptions,
) -> Result<spmv::BoxedPlan<T>, PlanError> {
    let kernel = spmv::find::<T>("bsr-subwarp-per-row").unwrap();
    let parameters = kernel.info.parse_parameters(parameters).unwrap();
    kernel.plan(&emulator(1), a.view(), &parameters, options)
}

fn planned_many<T: DeviceReal>(
    a: &Csr<T>,
    dense: DenseShape,
    parameters: &str,
    options: &PlanOptions,
) -> Result<spmm::BoxedPlan<T>, PlanError> {
    let kernel = spmm::find::<T>("bsr-row-split").unwrap();
    let parameters = kernel.info.parse_parameters(parameters).unwrap();
    kernel.plan(&emulator(2), a.view(), dense, &parameters, options)
}

/// y = A x and the products of [`check_plan`].
fn check<T: DeviceScalar>(a: &Coo<T>, parameters: &str) {
    let csr = coo_to_csr(a);
    let what = format!("{parameters}, {:?}", csr.shape());
    let options = PlanOptions { new_values: true, ..PlanOptions::default() };
    let plan = planned(&csr, parameters, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
    check_plan(&what, a, plan);
}

/// The same for Y = A X.
fn check_many<T: DeviceReal>(a: &Coo<T>, dense: DenseShape, parameters: &str) {
    let csr = coo_to_csr(a);
    let what = format!("{parameters}, {}, {:?}, {dense:?}", T::NAME, csr.shape());
    let options = PlanOptions { new_values: true, ..PlanOptions::default() };
    let plan = planned_many(&csr, dense, parameters, &options);
    check_plan(&what, a, plan.unwrap_or_else(|e| panic!("{what}: {e}")));
}

/// Y = A X, 2 A X - Y, a product with infinite elements in X, and one with new values.
fn check_plan<T: DeviceScalar>(what: &str, a: &Coo<T>, mut plan: Box<dyn DeviceProductPlan<T>>) {
    let (csr, dense) = (coo_to_csr(a), plan.dense());
    let x = exact::vector(a.cols() * dense.k);
    let y = run(&mut *plan, &x).unwrap();
    assert_eq!(exact::difference(&y, &reference::spmm(a, &x, dense)), None, "{what}");
    let device = plan.device().clone();
    let stream = Stream::new(&device).unwrap();
    let on_device = DeviceBuffer::from_slice(&device, &x).unwrap();
    let mut scaled = DeviceBuffer::from_slice(&device, &y).unwrap();
    let scaling = Scaling::new(T::from_f64(2.0), T::from_f64(-1.0));
    plan.launch_scaled(scaling, &on_device, &mut scaled, &stream).unwrap();
    assert_eq!(scaled.to_vec().unwrap(), y, "{what}");
    let mut infinite = x.clone();
    infinite.iter_mut().step_by(7).for_each(|x| *x = T::from_f64(f64::INFINITY));
    let expected = reference::spmm(a, &infinite, dense);
    let errors = reference::compare(&run(&mut *plan, &infinite).unwrap(), &expected);
    assert!(errors.acceptable(), "{what}: {errors:?}");
    let mut other = csr.clone();
    let reversed: Vec<T> = csr.values().iter().rev().copied().collect();
    other.values_mut().copy_from_slice(&reversed);
    let new = DeviceBuffer::from_slice(&device, &reversed).unwrap();
    plan.set_values(&new, &stream).unwrap();
    let expected = reference::spmm(&csr_to_coo(other.view()), &x, dense);
    assert_eq!(
        exact::difference(&run(&mut *plan, &x).unwrap(), &expected),
        None,
        "{what}: new values"
    );
}

#[test]
fn blocks_of_every_size() {
    for size in [2, 3, 4, 5, 6, 8] {
        for (fewer, holes) in [
            ((0, 0), false),
            ((0, 0), true),
            ((1, 0), false),
            ((0, 1), false),
            ((size / 2, size - 1), true),
        ] {
            for threads in ["auto", "1", "4", "32"] {
                check::<f64>(
                    &blocks(size, fewer, holes),
                    &format!("size={size},threads-per-row={threads}"),
                );
            }
        }
        check::<f32>(&blocks(size, (1, 1), true), &format!("size={size},threads-per-row=2"));
        check::<Complex<f64>>(&blocks(size, (0, 0), false), &format!("size={size}"));
        check::<Complex<f32>>(&blocks(size, (1, 1), true), &format!("size={size}"));
        // Blocks that are not those of the matrix.
        check::<f64>(&blocks(7, (1, 2), false), &format!("size={size},threads-per-row=8"));
    }
}

/// Odd and even numbers of columns, fewer and more than a warp has lanes, in both layouts.
#[test]
fn columns_of_x_with_blocks_of_every_size() {
    for size in [2, 3, 4, 5, 6, 8] {
        for (at, (fewer, holes)) in [
            ((0, 0), false),
            ((0, 0), true),
            ((1, 0), false),
            ((0, 1), false),
            ((size / 2, size - 1), true),
        ]
        .into_iter()
        .enumerate()
        {
            let a = blocks::<f64>(size, fewer, holes);
            for (k, parameters) in [(5, ""), (34, "columns=1"), (10, "columns=2"), (6, "columns=4")]
            {
                let dense = DenseShape { k, layout: LAYOUTS[at % 2] };
                check_many(&a, dense, &format!("size={size},{parameters}"));
            }
        }
        let dense = DenseShape { k: 20, layout: Layout::RowMajor };
        for parameters in ["columns=2,tile=8,block=64", "columns=4,tile=8", "columns=4,block=512"] {
            check_many(
                &blocks::<f64>(size, (1, 1), true),
                dense,
                &format!("size={size},{parameters}"),
            );
        }
        for parameters in ["columns=1", "columns=2", "columns=4"] {
            check_many(
                &blocks::<f32>(size, (1, 1), true),
                dense,
                &format!("size={size},{parameters}"),
            );
        }
        // Blocks that are not those of the matrix.
        check_many(&blocks::<f64>(7, (1, 2), false), dense, &format!("size={size}"));
    }
}

/// The device finds what the host does; padding of slices is not traffic.
#[test]
fn the_size_is_detected() {
    for size in [2, 3, 4, 5, 6, 8] {
        let a = coo_to_csr(&blocks::<f64>(size, (0, 0), false));
        let plan = planned(&a, "threads-per-row=1", &PlanOptions::default()).unwrap();
        let (count, block_rows) = (a.nnz() as u64 / u64::from(size * size), 17);
        let [of_order, of_starts] = [4 * block_rows, 4 * 2];
        let bytes = 8 * a.nnz() as u64 + 4 * count + of_order + of_starts;
        assert_eq!(plan.footprint().matrix_bytes, bytes, "{size}");
        assert_eq!(detect_blocks(a.view()).unwrap().size, size as usize);
    }
    let found = |name: &str| {
        let a = coo_to_csr(&generated::<f64>(name));
        let found = planned(&a, "", &PlanOptions::default()).is_ok();
        assert_eq!(found, detect_blocks(a.view()).is_some(), "{name}");
        found
    };
    assert!(found("mesh3[n=6,unknowns=3]"));
    assert!(found("banded[n=200,lower=15,upper=15]"));
    assert!(!found("stencil5[n=20]"));
    // A block at the beginning alone.
    let block = (0..9).map(|entry| (entry / 3, entry % 3));
    let (rows, cols): (Vec<u32>, Vec<u32>) = block.chain((3..300).map(|i| (i, i))).unzip();
    let values = vec![1.0; rows.len()];
    let a = coo_to_csr(&Coo::new(300, 300, rows, cols, values).unwrap());
    assert!(detect_blocks(a.view()).is_none());
    assert!(planned(&a, "", &PlanOptions::default()).is_err());
}

#[test]
fn what_it_cannot_store_is_refused() {
    let refused = |a: &Csr<f64>, parameters: &str, options: &PlanOptions, why: &str| {
        let error = planned(a, parameters, options).err().expect("a refusal").to_string();
        assert!(error.contains(why), "{error}");
    };
    let a = coo_to_csr(&blocks::<f64>(3, (0, 0), false));
    let options = PlanOptions::default();
    refused(&a, "size=7", &options, "blocks of 7 rows; it takes 2 to 6, and 8");
    refused(&a, "size=3,block=512", &options, "blocks of 512 threads; it takes up to 256");
    let scattered = coo_to_csr(&with_lengths::<f64>((300, 3000), |_, random| random.between(0, 4)));
    refused(&scattered, "", &options, "do not form dense square blocks");
    let budget = MemoryBudget::bytes(60_000);
    let small = PlanOptions { budget, ..PlanOptions::default() };
    assert!(planned(&scattered, "size=2", &small).is_ok());
    refused(&scattered, "size=8", &small, "the memory budget is");
    let refused = |a: &Csr<f64>, k: usize, parameters: &str, options: &PlanOptions, why: &str| {
        let dense = DenseShape { k, layout: Layout::RowMajor };
        let error = planned_many(a, dense, parameters, options).err().expect("a refusal");
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(&a, 2, "size=7", &options, "blocks of 7 rows; it takes 2 to 6, and 8");
    refused(&a, 2, "block=1024", &options, "block must be at most 512");
    refused(&a, 3, "columns=2", &options, "takes an even k");
    refused(&scattered, 2, "", &options, "do not form dense square blocks");
    refused(&scattered, 2, "size=8", &small, "the memory budget is");
}

//! New values for the pattern of a plan.

use std::sync::Arc;

use spm_gpu::{DeviceBuffer, DeviceCsr, GpuError, PlanOptions, Stream, spmv};

use crate::common::cases::Case;
use crate::common::spmv::run;
use crate::common::values::check;
use crate::devices::emulator;

#[test]
fn every_kernel_in_single_precision() {
    check::<f32>(&emulator(1));
}

#[test]
fn every_kernel_in_double_precision() {
    check::<f64>(&emulator(1));
}

/// A plan with a matrix that the caller keeps has values of its own, or takes none.
#[test]
fn a_shared_matrix_keeps_its_values() {
    let device = emulator(1);
    let case = Case::<f64>::generated("stencil5[n=6]");
    let a = Arc::new(DeviceCsr::new(&device, case.csr.view()).unwrap());
    let x = case.vector(case.coo.cols());
    let new: Vec<f64> = (0..case.csr.nnz()).map(|k| k as f64).collect();
    let new = DeviceBuffer::from_slice(&device, &new).unwrap();
    let stream = Stream::new(&device).unwrap();
    let kernel = spmv::find::<f64>("csr-subwarp-per-row").unwrap();
    let set = kernel.info.parse_parameters("drop-equal=off").unwrap();
    let plan = |options: &PlanOptions| kernel.plan_on_device(&a, &set, options).unwrap().unwrap();
    let mut other = plan(&PlanOptions::default());
    let before = run(&mut *other, &x).unwrap();
    let mut updated = plan(&PlanOptions { new_values: true, ..PlanOptions::default() });
    assert_eq!(
        updated.footprint().plan_bytes,
        other.footprint().plan_bytes + 8 * case.csr.nnz() as u64
    );
    updated.set_values(&new, &stream).unwrap();
    assert_ne!(run(&mut *updated, &x).unwrap(), before);
    assert!(matches!(other.set_values(&new, &stream), Err(GpuError::Values(_))));
    assert_eq!(run(&mut *other, &x).unwrap(), before);
}

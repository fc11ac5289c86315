//! Which values may be shared between threads and moved to others.

use spm_cpu::{PlanOptions, Threads, spmm, spmv, transpose};
use spm_formats::kernel::{SpmmPlan, SpmvPlan, TransposePlan};

fn send<E: Send + ?Sized>() {}
fn send_and_sync<E: Send + Sync>() {}

#[test]
fn teams_and_kernels_are_shared_and_plans_move() {
    send_and_sync::<Threads>();
    send_and_sync::<PlanOptions>();
    send_and_sync::<spmv::SpmvKernel<f64>>();
    send_and_sync::<spmm::SpmmKernel<f64>>();
    send_and_sync::<transpose::TransposeKernel<f64>>();
    send::<dyn SpmvPlan<f64>>();
    send::<dyn SpmmPlan<f64>>();
    send::<dyn TransposePlan<f64>>();
}

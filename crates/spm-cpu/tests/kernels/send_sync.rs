//! Which values may be shared between threads and moved to others.

use spm_cpu::{PlanOptions, Threads, spmm, spmv, transpose};
use spm_formats::kernel::{ProductPlan, TransposePlan};

fn send<E: Send + ?Sized>() {}
fn send_and_sync<E: Send + Sync + ?Sized>() {}

#[test]
fn thread_pools_kernels_and_products_are_shared_and_transpositions_move() {
    send_and_sync::<Threads>();
    send_and_sync::<PlanOptions>();
    send_and_sync::<spmv::SpmvKernel<f64>>();
    send_and_sync::<spmm::SpmmKernel<f64>>();
    send_and_sync::<transpose::TransposeKernel<f64>>();
    send_and_sync::<dyn ProductPlan<f64>>();
    send::<dyn TransposePlan<f64>>();
}

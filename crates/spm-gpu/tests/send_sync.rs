//! Which values may be shared between threads and moved to others.

use spm_gpu::transpose::convert::{DeviceCompressed, DeviceCoo};
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsr, DeviceProductPlan, DeviceRows, DeviceTransposePlan, Event,
    GpuError, HostBuffer, HostProductPlan, HostTransposePlan, PlanOptions, Stream, spmm, spmv,
    transpose,
};

fn send<E: Send + ?Sized>() {}
fn send_and_sync<E: Send + Sync>() {}

#[test]
fn devices_and_matrices_are_shared_and_plans_move() {
    send_and_sync::<Device>();
    send_and_sync::<DeviceBuffer<f64>>();
    send_and_sync::<DeviceCsr<f64>>();
    send_and_sync::<DeviceRows>();
    send_and_sync::<HostBuffer<f64>>();
    send_and_sync::<DeviceCoo<f64>>();
    send_and_sync::<DeviceCompressed<f64>>();
    send_and_sync::<Stream>();
    send_and_sync::<Event>();
    send_and_sync::<GpuError>();
    send_and_sync::<PlanOptions>();
    send_and_sync::<spmv::SpmvKernel<f64>>();
    send_and_sync::<spmm::SpmmKernel<f64>>();
    send_and_sync::<transpose::TransposeKernel<f64>>();
    send::<dyn DeviceProductPlan<f64>>();
    send::<dyn DeviceTransposePlan<f64>>();
    send_and_sync::<HostProductPlan<f64>>();
    send::<HostTransposePlan<f64>>();
}

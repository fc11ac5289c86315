//! No plan and no conversion takes more device memory than its budget: every kernel, every studied
//! parameter, and the defaults for a matrix on the device. The emulated device has just the memory that the budget
//! leaves: a plan that took more would run out of it.

use std::sync::Arc;

use spm_formats::kernel::{KernelInfo, Parameters, PlanError};
use spm_formats::{Csr, DenseShape, FormatError, Layout, MemoryBudget, convert};
use spm_gpu::transpose::convert as on_device;
use spm_gpu::transpose::convert::{DeviceCompressed, DeviceCoo};
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsc, DeviceCsr, PlanOptions, Stream, spmm, spmv, transpose,
};
use spm_gpu_kernels::emulator::EmulatorOptions;
use spm_testing::generate;

/// Rows of five entries, and rows of one to three entries with one of 1000.
const MATRICES: [&str; 2] =
    ["stencil5[n=26]", "powerlaw[rows=1000,cols=1250,entries=3500,longest=1000]"];

/// A device with `bytes` bytes of memory.
fn device(bytes: u64) -> Device {
    Device::emulated(EmulatorOptions { memory: bytes, ..EmulatorOptions::default() })
}

/// Plans with several budgets on devices with just that much memory beside `bytes`, the operands and
/// the matrix. Sixteen times the matrix is enough where rows are equally long. `plan` returns the
/// launch of its plan, which is run with the first budget that is enough.
fn check<L: FnOnce()>(
    label: &str,
    (name, matrix, bytes): (&str, u64, u64),
    plan: impl Fn(&Device, PlanOptions) -> Result<L, PlanError>,
) {
    let mut launched = false;
    for times in [0, 4, 64] {
        let budget = times * matrix / 4;
        let device = device(bytes + budget + MemoryBudget::ALLOWANCE);
        let options = PlanOptions { budget: MemoryBudget::bytes(budget), ..PlanOptions::default() };
        match plan(&device, options) {
            Ok(launch) if !launched => {
                launch();
                launched = true;
            }
            Ok(_) | Err(PlanError::Unsupported { .. }) => {}
            Err(PlanError::Format(FormatError::OverBudget { required, budget: of, .. })) => {
                assert!(
                    required > budget && of == budget,
                    "{label} {name}: {required} of {budget}"
                );
                let enough = times == 64 && name == MATRICES[0];
                assert!(!enough, "{label} {name}: {required} bytes asked for");
            }
            Err(error) => panic!("{label} {name} with {budget} bytes: {error}"),
        }
        assert_eq!(device.memory().unwrap().0, device.memory().unwrap().1, "{label}: kept memory");
    }
}

fn variants(info: &KernelInfo) -> impl Iterator<Item = (String, Parameters)> {
    info.variants().into_iter().map(|parameters| (info.label(&parameters), parameters))
}

fn matrix(name: &str) -> (Csr<f64>, u64) {
    let a: Csr<f64> = generate::named(name).unwrap().generate().unwrap();
    let bytes = 4 * (a.rows() + 1) + 12 * a.nnz();
    (a, bytes as u64)
}

fn copied(device: &Device, a: &Csr<f64>) -> Arc<DeviceCsr<f64>> {
    Arc::new(DeviceCompressed::from_csr(device, a.view()).unwrap().into_csr())
}

#[test]
fn spmv_keeps_its_budget() {
    for name in MATRICES {
        let (a, bytes) = matrix(name);
        let sizes = (name, bytes, bytes + 8 * (a.rows() + a.cols()) as u64);
        for kernel in spmv::registry::<f64>().into_iter().filter(|kernel| !kernel.baseline) {
            for (label, parameters) in variants(&kernel.info) {
                check(&label, sizes, |device, options| {
                    let x = DeviceBuffer::from_slice(device, &vec![1.0; a.cols()]).unwrap();
                    let mut y = DeviceBuffer::zeroed(device, a.rows()).unwrap();
                    let stream = Stream::new(device).unwrap();
                    let mut plan = kernel.plan(device, a.view(), &parameters, &options)?;
                    Ok(move || plan.launch(&x, &mut y, &stream).unwrap())
                });
            }
            check(&format!("{} on the device", kernel.info.id), sizes, |device, options| {
                let a = copied(device, &a);
                let plan = kernel.plan_on_device(&a, &kernel.info.defaults(), &options);
                plan.transpose().map(|plan| move || drop(plan))
            });
        }
    }
}

#[test]
fn spmm_keeps_its_budget() {
    for name in MATRICES {
        let (a, bytes) = matrix(name);
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let dense = DenseShape { k: 3, layout };
            let sizes = (name, bytes, bytes + 24 * (a.rows() + a.cols()) as u64);
            for kernel in spmm::registry::<f64>().into_iter().filter(|kernel| !kernel.baseline) {
                for (label, parameters) in variants(&kernel.info) {
                    let label = format!("{label} {layout:?}");
                    check(&label, sizes, |device, options| {
                        let x = DeviceBuffer::from_slice(device, &vec![1.0; 3 * a.cols()]).unwrap();
                        let mut y = DeviceBuffer::zeroed(device, 3 * a.rows()).unwrap();
                        let stream = Stream::new(device).unwrap();
                        let mut plan =
                            kernel.plan(device, a.view(), dense, &parameters, &options)?;
                        Ok(move || plan.launch(&x, &mut y, &stream).unwrap())
                    });
                }
                let label = format!("{} {layout:?} on the device", kernel.info.id);
                check(&label, sizes, |device, options| {
                    let a = copied(device, &a);
                    let plan = kernel.plan_on_device(&a, dense, &kernel.info.defaults(), &options);
                    plan.transpose().map(|plan| move || drop(plan))
                });
            }
        }
    }
}

#[test]
fn transpositions_and_conversions_keep_their_budget() {
    for name in MATRICES {
        let (a, bytes) = matrix(name);
        let result = (4 * (a.cols() + 1) + 12 * a.nnz()) as u64;
        for kernel in transpose::registry::<f64>().into_iter().filter(|kernel| !kernel.baseline) {
            for (label, parameters) in variants(&kernel.info) {
                check(&label, (name, bytes, bytes + result), |device, options| {
                    let mut output = DeviceCsc::new(device, a.cols(), a.nnz()).unwrap();
                    let stream = Stream::new(device).unwrap();
                    let mut plan = kernel.plan(device, a.view(), &parameters, &options)?;
                    Ok(move || plan.launch(&mut output, &stream).unwrap())
                });
                check(&format!("{label}, pattern"), (name, bytes, bytes), |device, options| {
                    let plan = kernel.plan_pattern(device, a.view(), &parameters, &options);
                    plan.map(|plan| move || drop(plan))
                });
            }
        }
        let coo = convert::csr_to_coo(a.view());
        let of_coo = 16 * a.nnz() as u64;
        check("coo-to-csr", (name, bytes, of_coo), |device, options| {
            let coo = DeviceCoo::from_coo(device, &coo).unwrap();
            on_device::coo_to_csr(&coo, &options.budget).map(|csr| move || drop(csr))
        });
        type Convert = fn(&DeviceCompressed<f64>, &MemoryBudget) -> Result<(), PlanError>;
        let conversions: [(&str, Convert); 3] = [
            ("csr-to-csc", |csr, budget| on_device::csr_to_csc(csr, budget).map(drop)),
            ("csr-to-hll", |csr, budget| on_device::csr_to_hll(csr, 32, budget).map(drop)),
            ("csr-to-sell", |csr, budget| on_device::csr_to_sell(csr, 32, 256, budget).map(drop)),
        ];
        for (label, convert) in conversions {
            check(label, (name, bytes, bytes), |device, options| {
                let csr = DeviceCompressed::from_csr(device, a.view()).unwrap();
                convert(&csr, &options.budget).map(|()| || ())
            });
        }
    }
}

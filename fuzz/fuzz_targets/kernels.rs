//! Any matrix and any x through one kernel, on CPU cores or on the emulated device, against the
//! reference.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use spm_cpu::PlanOptions;
use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput};
use spm_formats::{Csr, DenseShape, Layout, MemoryBudget, Scalar};
use spm_fuzz::{Matrix, Triplets, bits, vector};
use spm_gpu::transpose::convert::{self, DeviceCompressed, DeviceCoo};
use spm_gpu::{Device, DeviceBuffer, DeviceCsc, DeviceReal, GpuError, Stream};
use spm_gpu_kernels::emulator::EmulatorOptions;
use spm_testing::reference::{self, computed_bits};

/// One of the kernels, with one of its studied sets of parameters.
fn choose<'k, K>(
    u: &mut Unstructured<'_>,
    kernels: &'k [K],
    info: impl Fn(&K) -> &KernelInfo,
) -> Result<(&'k K, Parameters)> {
    let kernel = u.choose(kernels)?;
    let variants = info(kernel).variants();
    Ok((kernel, u.choose(&variants)?.clone()))
}

/// A plan, or nothing where the kernel does not suit the matrix.
fn planned<P>(label: &str, plan: std::result::Result<P, PlanError>) -> Option<P> {
    match plan {
        Ok(plan) => Some(plan),
        Err(PlanError::Format(_) | PlanError::Unsupported { .. }) => None,
        Err(error) => panic!("{label}: {error}"),
    }
}

fn compare<T: Scalar>(label: &str, y: &[T], expected: &reference::Reference<T::Wide>) {
    let errors = reference::compare(y, expected);
    assert!(errors.acceptable(), "{label}: {errors:?}");
}

fn check_cpu<T: Scalar>(u: &mut Unstructured<'_>) -> Result<()> {
    let options = PlanOptions::with_threads(u.int_in_range(1..=3)?);
    let operation = u.int_in_range(0..=2_u8)?;
    let seed = u64::arbitrary(u)?;
    match operation {
        0 => {
            let kernels = spm_cpu::spmv::registry::<T>();
            let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
            let label = kernel.info.label(&parameters);
            let a = Matrix::<T>::arbitrary(u)?;
            let x: Vec<T> = vector(u, a.csr.cols())?;
            let plan = kernel.plan(a.csr.view(), &parameters, &options);
            let Some(plan) = planned(&label, plan) else { return Ok(()) };
            let mut y = vec![T::from_f64(f64::NAN); a.csr.rows()];
            plan.run(&x, &mut y).expect("lengths are right");
            compare(&label, &y, &reference::spmv(&a.coo, &x));
        }
        1 => {
            let kernels = spm_cpu::spmm::registry::<T>();
            let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
            let label = kernel.info.label(&parameters);
            let dense = dense(seed);
            let a = Matrix::<T>::arbitrary(u)?;
            let x: Vec<T> = vector(u, a.csr.cols() * dense.k)?;
            let plan = kernel.plan(a.csr.view(), dense, &parameters, &options);
            let Some(plan) = planned(&label, plan) else { return Ok(()) };
            let mut y = vec![T::from_f64(f64::NAN); a.csr.rows() * dense.k];
            plan.run(&x, &mut y).expect("lengths are right");
            compare(&label, &y, &reference::spmm(&a.coo, &x, dense));
        }
        _ => {
            let kernels = spm_cpu::transpose::registry::<T>();
            let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
            let label = kernel.info.label(&parameters);
            let a = Matrix::<T>::arbitrary(u)?;
            let plan = kernel.plan(a.csr.view(), &parameters, &options);
            let Some(mut plan) = planned(&label, plan) else { return Ok(()) };
            let mut output = TransposeOutput::new(a.csr.cols(), a.csr.nnz());
            plan.run(&mut output).expect("lengths are right");
            check_transpose(&label, &output, &a);
        }
    }
    Ok(())
}

fn dense(seed: u64) -> DenseShape {
    let layout = if seed & 1 == 0 { Layout::RowMajor } else { Layout::ColumnMajor };
    DenseShape { k: (seed >> 1) as usize % 20, layout }
}

fn check_emulator<T: DeviceReal>(u: &mut Unstructured<'_>) -> Result<()> {
    let seed = u64::arbitrary(u)?;
    let device = Device::emulated(EmulatorOptions { seed, ..EmulatorOptions::default() });
    let options = spm_gpu::PlanOptions::default();
    if bool::arbitrary(u)? {
        let mut kernels = spm_gpu::spmv::registry::<T>();
        kernels.retain(|kernel| !kernel.baseline);
        let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
        let label = kernel.info.label(&parameters);
        let a = Matrix::<T>::arbitrary(u)?;
        let x: Vec<T> = vector(u, a.csr.cols())?;
        let plan = kernel.plan(&device, a.csr.view(), &parameters, &options);
        let Some(mut plan) = planned(&label, plan) else { return Ok(()) };
        let y = on_device(&device, &label, &x, a.csr.rows(), |x, y, s| plan.launch(x, y, s));
        compare(&label, &y, &reference::spmv(&a.coo, &x));
    } else {
        let mut kernels = spm_gpu::spmm::registry::<T>();
        kernels.retain(|kernel| !kernel.baseline);
        let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
        let label = kernel.info.label(&parameters);
        let dense = dense(seed);
        let a = Matrix::<T>::arbitrary(u)?;
        let x: Vec<T> = vector(u, a.csr.cols() * dense.k)?;
        let plan = kernel.plan(&device, a.csr.view(), dense, &parameters, &options);
        let Some(mut plan) = planned(&label, plan) else { return Ok(()) };
        let elements = a.csr.rows() * dense.k;
        let y = on_device(&device, &label, &x, elements, |x, y, s| plan.launch(x, y, s));
        compare(&label, &y, &reference::spmm(&a.coo, &x, dense));
    }
    Ok(())
}

/// y, with x and y on the device during the launch.
fn on_device<T: DeviceReal>(
    device: &Device,
    label: &str,
    x: &[T],
    length: usize,
    launch: impl FnOnce(
        &DeviceBuffer<T>,
        &mut DeviceBuffer<T>,
        &Stream,
    ) -> std::result::Result<(), GpuError>,
) -> Vec<T> {
    let mut result = vec![T::from_f64(f64::NAN); length];
    let run = || {
        let stream = Stream::new(device)?;
        let x = DeviceBuffer::from_slice(device, x)?;
        let mut y = DeviceBuffer::from_slice(device, &result)?;
        launch(&x, &mut y, &stream)?;
        stream.synchronize()?;
        y.copy_to_slice(&mut result)
    };
    run().unwrap_or_else(|error| panic!("{label}: {error}"));
    result
}

fn check_emulated_transposition<T: DeviceReal>(u: &mut Unstructured<'_>) -> Result<()> {
    let seed = u64::arbitrary(u)?;
    let device = Device::emulated(EmulatorOptions { seed, ..EmulatorOptions::default() });
    let mut kernels = spm_gpu::transpose::registry::<T>();
    kernels.retain(|kernel| !kernel.baseline);
    let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
    let label = kernel.info.label(&parameters);
    let a = Matrix::<T>::arbitrary(u)?;
    let options = spm_gpu::PlanOptions::default();
    let plan = kernel.plan(&device, a.csr.view(), &parameters, &options);
    let Some(mut plan) = planned(&label, plan) else { return Ok(()) };
    let mut run = || {
        let stream = Stream::new(&device)?;
        let mut output = DeviceCsc::new(&device, a.csr.cols(), a.csr.nnz())?;
        plan.launch(&mut output, &stream)?;
        let mut result = TransposeOutput::new(a.csr.cols(), a.csr.nnz());
        output.copy_to(&mut result)?;
        Ok::<_, GpuError>(result)
    };
    let output = run().unwrap_or_else(|error| panic!("{label}: {error}"));
    check_transpose(&label, &output, &a);
    Ok(())
}

fn check_transpose<T: Scalar>(label: &str, output: &TransposeOutput<T>, a: &Matrix<T>) {
    let (col_ptr, row_ind, values) = reference::transpose(&a.coo);
    assert_eq!(output.col_ptr, col_ptr, "{label}");
    assert_eq!(output.row_ind, row_ind, "{label}");
    assert_eq!(bits(&output.values), bits(&values), "{label}");
}

/// Triplets, CSR and CSC into one another on the device.
fn check_emulated_conversions<T: DeviceReal>(u: &mut Unstructured<'_>) -> Result<()> {
    let seed = u64::arbitrary(u)?;
    let device = Device::emulated(EmulatorOptions { seed, ..EmulatorOptions::default() });
    let Triplets(coo) = Triplets::<T>::arbitrary(u)?;
    let download = |a: &DeviceCompressed<T>| {
        let mut host = TransposeOutput::new(a.outer(), a.values().len());
        a.pointers().copy_to_slice(&mut host.col_ptr)?;
        a.indices().copy_to_slice(&mut host.row_ind)?;
        a.values().copy_to_slice(&mut host.values)?;
        Ok::<_, GpuError>(host)
    };
    let budget = MemoryBudget::default();
    let run = || {
        let csr = convert::coo_to_csr(&DeviceCoo::from_coo(&device, &coo)?, &budget)?;
        let csc = convert::csr_to_csc(&csr, &budget)?;
        let back = convert::csc_to_csr(&csc, &budget)?;
        Ok::<_, PlanError>((download(&csr)?, download(&csc)?, download(&back)?))
    };
    let (csr, csc, back) = run().unwrap_or_else(|error| panic!("{error}: {coo:?}"));
    // Duplicates were added.
    let bits =
        |a: &TransposeOutput<T>| (a.col_ptr.clone(), a.row_ind.clone(), computed_bits(&a.values));
    let arrays = |a: &Csr<T>| TransposeOutput {
        col_ptr: a.row_ptr().to_vec(),
        row_ind: a.col_ind().to_vec(),
        values: a.values().to_vec(),
    };
    let expected = spm_formats::convert::coo_to_csr(&coo);
    let transposed = spm_formats::convert::csr_to_csc(expected.view()).into_transposed();
    assert!(bits(&csr) == bits(&arrays(&expected)), "CSR of {coo:?}");
    assert!(bits(&csc) == bits(&arrays(&transposed)), "CSC of {coo:?}");
    assert!(bits(&back) == bits(&csr), "CSC and back of {coo:?}");
    Ok(())
}

fn check(u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=15_u8)? {
        0..=2 => check_emulator::<f32>(u),
        3..=5 => check_emulator::<f64>(u),
        6 => check_emulated_transposition::<f32>(u),
        7 => check_emulated_transposition::<f64>(u),
        8 => check_emulated_conversions::<f64>(u),
        9 => check_emulated_conversions::<f32>(u),
        n if n % 2 == 1 => check_cpu::<f32>(u),
        _ => check_cpu::<f64>(u),
    }
}

fuzz_target!(|data: &[u8]| {
    // An error means too few bytes for an input.
    let _ = check(&mut Unstructured::new(data));
});

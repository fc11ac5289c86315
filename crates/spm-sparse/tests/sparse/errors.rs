//! What operators and vectors refuse.

use std::error::Error as _;

use spm::spm_gpu::Device as GpuDevice;
use spm::{Complex, Device, Error, GpuError, Layout, Operator, Recipe, Vector};

use crate::common::matrix;
use crate::devices::{SMALL, devices};

#[test]
fn an_absent_gpu_is_an_error_with_its_cause() {
    let a = matrix::<f64>(SMALL[0]);
    let error = Operator::builder(a).device(Device::gpu(4096)).build().unwrap_err();
    assert!(matches!(error, Error::Gpu(_)), "{error:?}");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<GpuError>());
    let cause = cause.expect("the error of the GPU");
    let absent = cause.is_absent() || matches!(cause, GpuError::NoSuchDevice { .. });
    assert!(absent, "{cause}");
}

#[test]
fn recipes_and_vectors_of_another_device_are_refused() {
    let a = || matrix::<f64>(SMALL[0]);
    let recipe = |text: &str| text.parse::<Recipe>().unwrap();
    let of_gpu = recipe("gpu csr-subwarp-per-row");
    let build = |device: Option<Device>, recipe: Recipe| {
        let builder = Operator::builder(a()).recipe(recipe);
        match device {
            Some(device) => builder.device(device),
            None => builder,
        }
        .build()
    };
    let wrong = |built: Result<Operator<f64>, Error>| matches!(built, Err(Error::Recipe(_)));
    assert!(wrong(build(None, of_gpu.clone())));
    assert!(wrong(build(Some(Device::cpu()), of_gpu.clone())));
    assert!(wrong(build(Some(Device::emulated()), recipe("cpu csr-serial on 1 thread"))));
    assert!(wrong(build(Some(Device::emulated()), recipe("gpu csr-nothing"))));
    let complex = Operator::builder(matrix::<Complex<f64>>(SMALL[0])).device(Device::emulated());
    let error = complex.recipe(recipe("gpu csr-merge")).build().unwrap_err();
    let Error::Recipe(reason) = error else { panic!("{error:?}") };
    assert!(reason.to_string().contains("for f32 and f64, not for c64"), "{reason}");
    assert!(
        !build(Some(Device::auto()), recipe("cpu csr-serial on 1 thread"))
            .unwrap()
            .recipe()
            .is_gpu()
    );
    if GpuDevice::available().is_err() {
        let error = build(Some(Device::auto()), of_gpu.clone()).unwrap_err();
        assert!(matches!(error, Error::Gpu(_)), "{error:?}");
    }

    let cpu = Operator::new(a()).unwrap();
    let gpu = build(Some(Device::emulated()), of_gpu.clone()).unwrap();
    let other = build(Some(Device::emulated()), of_gpu).unwrap();
    let (x, mut y) = (gpu.vector_zeros(5).unwrap(), cpu.vector_zeros(5).unwrap());
    let place = |result: Result<(), Error>| matches!(result, Err(Error::Place { .. }));
    assert!(place(gpu.apply_vector(&x, &mut y)));
    assert!(place(cpu.apply_vector(&x, &mut y)));
    assert!(place(y.axpy(1.0, &x)));
    assert!(place(cpu.residual_vector(&x, &x, &mut y)));
    let of_other = |result: Result<(), Error>| {
        matches!(result, Err(Error::Gpu(GpuError::OtherDevice { what: "y" })))
    };
    let mut z = other.vector_zeros(5).unwrap();
    assert!(of_other(gpu.apply_vector(&x, &mut z)));
    for k in [1, 2] {
        let x = gpu.vector_zeros(5 * k).unwrap();
        let many = |op: &Operator<f64>, y: &mut Vector<f64>| {
            op.apply_many_vector(&x, y, k, Layout::RowMajor)
        };
        assert!(place(many(&gpu, &mut cpu.vector_zeros(5 * k).unwrap())));
        assert!(place(many(&cpu, &mut cpu.vector_zeros(5 * k).unwrap())));
        assert!(of_other(many(&gpu, &mut other.vector_zeros(5 * k).unwrap())));
    }
}

#[test]
fn wrong_sizes_are_errors() {
    for (name, device) in devices() {
        let a = matrix::<f64>(SMALL[2]);
        let op = Operator::builder(a).device(device).build().unwrap();
        let shape = |result: Result<(), Error>| match result.unwrap_err() {
            Error::Shape { what, expected, found } => (what, expected, found),
            error => panic!("{name}: {error:?}"),
        };
        let (mut y, mut v) = (vec![0.0; 70], op.vector_zeros(70).unwrap());
        assert_eq!(shape(op.apply(&[1.0; 3], &mut y)), ("x", 300, 3));
        assert_eq!(shape(op.apply(&[1.0; 300], &mut [0.0])), ("y", 70, 1));
        assert_eq!(shape(op.apply_transpose(&[1.0; 300], &mut y)), ("x", 70, 300));
        assert_eq!(shape(op.residual(&[1.0], &[1.0; 300], &mut y)), ("b", 70, 1));
        let x = op.vector_zeros(3).unwrap();
        assert_eq!(shape(op.apply_vector(&x, &mut v)), ("x", 300, 3));
        let mut many = |k| op.apply_many_vector(&x, &mut v, k, Layout::ColumnMajor);
        assert_eq!(shape(many(2)), ("X", 600, 3));
        assert_eq!(shape(many(usize::MAX)), ("X", usize::MAX, 3));
        let whole = op.vector_zeros(600).unwrap();
        let error = op.apply_many_vector(&whole, &mut v, 2, Layout::RowMajor);
        assert_eq!(shape(error), ("Y", 140, 70));
        assert_eq!(shape(v.axpy(1.0, &x)), ("x", 70, 3));
        assert_eq!(shape(v.copy_from_slice(&[1.0])), ("slice", 70, 1));
    }
}

//! Y = A X.

use spm_formats::kernel::PlanError;
use spm_formats::{DenseShape, Layout, reference};
use spm_gpu::{Device, DeviceBuffer, DeviceScalar, PlanOptions, Stream, spmm};

use crate::cases::{large, small, vector};
use crate::devices::{kernel_tests, parameter_sets};

kernel_tests! {
    spmm::registry::<f64>;
}

fn on_gpu<T: DeviceScalar>(id: &str, device: &Device) {
    let kernel = spmm::find::<T>(id).expect("a registered kernel");
    let stream = Stream::new(device).unwrap();
    for case in small::<T>().into_iter().chain(large()) {
        for (k, layout) in [
            (1, Layout::RowMajor),
            (5, Layout::RowMajor),
            (32, Layout::RowMajor),
            (1, Layout::ColumnMajor),
            (5, Layout::ColumnMajor),
            (32, Layout::ColumnMajor),
        ] {
            let dense = DenseShape { k, layout };
            let x = vector::<T>(case.coo.cols() * k);
            let oracle = reference::spmm(&case.coo, &x, dense);
            let x = DeviceBuffer::from_slice(device, &x).unwrap();
            for parameters in parameter_sets(&kernel.info) {
                let label = kernel.info.label(&parameters);
                let what = format!("{label}, {}, {}, k={k}, {layout:?}", T::NAME, case.name);
                let options = PlanOptions::default();
                let view = case.csr.view();
                let mut plan = match kernel.plan(device, &view, dense, &parameters, &options) {
                    Ok(plan) => plan,
                    Err(PlanError::Unsupported { reason, .. }) if kernel.comparator => {
                        println!("{what} skipped: {reason}");
                        continue;
                    }
                    Err(error) => panic!("{what}: {error}"),
                };
                let mut result = vec![T::from_f64(f64::NAN); case.coo.rows() * k];
                let mut y = DeviceBuffer::from_slice(device, &result).unwrap();
                plan.launch(&x, &mut y, &stream).unwrap_or_else(|e| panic!("{what}: {e}"));
                y.copy_to_slice(&mut result).unwrap_or_else(|e| panic!("{what}: {e}"));
                let errors = reference::compare(&result, &oracle);
                assert!(errors.acceptable(), "{what}: {errors:?}");
            }
        }
    }
}

//! CSR to CSC: the same bits as the reference, every time.

use spm_formats::Csr;
use spm_formats::kernel::{PlanError, TransposeOutput, TransposePlan};
use spm_gpu::{DeviceCsc, DeviceScalar, GpuError, PlanOptions, Stream, transpose};

use crate::common::cases::small;
use crate::common::transpose::{
    check, check_conversions, check_padded, check_procedures, own_kernels, sets, small_cuts,
};
use crate::devices::{emulator, kernel_tests};

kernel_tests! {
    transpose::registry::<f64>;
    scan_trans "scan-trans",
    merge_trans "merge-trans",
    radix "radix",
    auto "auto",
}

fn on_emulator<T: DeviceScalar>(id: &str) {
    let info = transpose::find::<T>(id).expect("a registered kernel").info;
    for (seed, case) in (1..).zip(small::<T>()) {
        // All parameters on the matrix of many lengths only: the emulator is slow.
        let sets = match &*case.name {
            "rows of 0 to 90" => sets::<T>(id),
            "a full row among short and empty ones" => small_cuts(&info),
            _ => vec![info.defaults()],
        };
        check(id, &emulator(seed), &case, &sets);
    }
}

fn sample() -> Csr<f64> {
    Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap()
}

#[test]
fn an_output_of_the_wrong_size_or_device_is_refused() {
    let (device, other) = (emulator(1), emulator(1));
    let stream = Stream::new(&device).unwrap();
    for kernel in own_kernels() {
        let parameters = kernel.info.defaults();
        let options = PlanOptions::default();
        let mut plan = kernel.plan(&device, sample().view(), &parameters, &options).unwrap();
        let mut output = DeviceCsc::new(&device, 3, 2).unwrap();
        let error = plan.launch(&mut output, &stream).unwrap_err();
        let expected = GpuError::Shape { what: "row indices", expected: 3, found: 2 };
        assert_eq!(error, expected, "{}", kernel.info.id);
        let mut output = DeviceCsc::new(&other, 3, 3).unwrap();
        let error = plan.launch(&mut output, &stream).unwrap_err();
        assert_eq!(error, GpuError::OtherDevice { what: "column pointers" }, "{}", kernel.info.id);
    }
}

#[test]
fn results_in_host_memory_are_copied() {
    let device = emulator(1);
    for kernel in own_kernels() {
        let parameters = kernel.info.defaults();
        let options = PlanOptions::default();
        let mut plan =
            kernel.plan_on_host(&device, sample().view(), &parameters, &options).unwrap();
        let mut output = TransposeOutput::new(3, 3);
        plan.run(&mut output).unwrap();
        assert_eq!(output.col_ptr, [0, 1, 2, 3], "{}", kernel.info.id);
        assert_eq!(output.row_ind, [0, 1, 0], "{}", kernel.info.id);
        assert_eq!(output.values, [1.0, 3.0, 2.0], "{}", kernel.info.id);
    }
}

mod convert {
    use super::*;
    use spm_formats::convert::{csr_to_hll, csr_to_sell};
    use spm_formats::{FormatError, MemoryBudget};
    use spm_gpu::transpose::convert::{self, DeviceCompressed};

    #[test]
    fn padding_beyond_the_budget_is_refused_as_on_the_host() {
        let device = crate::devices::emulator(1);
        let csr = DeviceCompressed::from_csr(&device, sample().view()).unwrap();
        let budget = MemoryBudget::bytes(60);
        let error = |result: Result<(), PlanError>| result.unwrap_err().to_string();
        let host =
            |result: Result<(), FormatError>| PlanError::from(result.unwrap_err()).to_string();
        let sample = sample();
        assert_eq!(
            error(convert::csr_to_hll(&csr, 32, &budget).map(drop)),
            host(csr_to_hll(sample.view(), 32, &budget).map(drop)),
        );
        assert_eq!(
            error(convert::csr_to_sell(&csr, 32, 2, &budget).map(drop)),
            host(csr_to_sell(sample.view(), 32, 2, &budget).map(drop)),
        );
        let none = MemoryBudget::unlimited();
        assert!(error(convert::csr_to_hll(&csr, 0, &none).map(drop)).contains("hack size"));
        assert!(error(convert::csr_to_sell(&csr, 0, 1, &none).map(drop)).contains("chunk"));
        assert!(error(convert::csr_to_sell(&csr, 32, 0, &none).map(drop)).contains("sigma"));
    }

    #[test]
    fn emulator() {
        for (seed, case) in (1..).zip(small::<f64>()) {
            check_conversions(&crate::devices::emulator(seed), &case);
            check_padded(&crate::devices::emulator(seed), &case);
        }
    }
}

#[test]
fn procedures_on_emulator() {
    check_procedures(&emulator(3), &[1, 300, 5000]);
}

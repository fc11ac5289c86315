//! y = A x by `cusparseSpMV`.

use std::ffi::c_int;

use spm_formats::convert::csr_to_sell;
use spm_formats::kernel::{
    Backend, KernelInfo, Operation, ParameterSpec, PlanError, Scaling, Value,
};

use super::library::{BASE_ZERO, INDEX_32I, NON_TRANSPOSE, NOT_SUPPORTED};
use super::{
    Descriptor, Handle, Kind, check_sizes, multiply, pointer, sizes, unsupported, workspace_words,
};
use crate::error::GpuError;
use crate::matrix::{DeviceCsr, check_signed};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::problem::{HostProblem, Planned, Problem};
use crate::product::{Memory, Product, Target, Zero};
use crate::stream::Stream;

const KERNEL: KernelInfo = KernelInfo::of(Operation::Spmv, Backend::Gpu);
const SOURCE: &str = "NVIDIA cuSPARSE, cusparseSpMV";

/// `CUSPARSE_SPMV_CSR_ALG1`.
pub(crate) const CSR_ALG1: KernelInfo = KernelInfo {
    id: "cusparse-csr-alg1",
    source: SOURCE,
    summary: "cuSPARSE CSR, algorithm 1, preprocessed if the version supports it",
    parameters: &[],
    ..KERNEL
};

/// `CUSPARSE_SPMV_CSR_ALG2`.
pub(crate) const CSR_ALG2: KernelInfo = KernelInfo {
    id: "cusparse-csr-alg2",
    source: SOURCE,
    summary: "cuSPARSE CSR, algorithm 2 (deterministic), preprocessed if the version supports it",
    parameters: &[],
    ..KERNEL
};

/// `CUSPARSE_SPMV_SELL_ALG1`.
pub(crate) const SELL: KernelInfo = KernelInfo {
    id: "cusparse-sell",
    source: SOURCE,
    summary: "cuSPARSE sliced ELLPACK, algorithm 1",
    parameters: &[ParameterSpec {
        name: "slice",
        meaning: "rows of a slice",
        default: Value::Count(32),
        studied: &[Value::Count(32), Value::Count(64), Value::Count(128)],
    }],
    ..KERNEL
};

/// Numbers of `cusparseSpMVAlg_t`.
const ALGORITHM_CSR_1: c_int = 2;
const ALGORITHM_CSR_2: c_int = 3;
const ALGORITHM_SELL_1: c_int = 5;

/// The arrays that the matrix descriptor points to.
enum Matrix<T> {
    Csr(DeviceCsr<T>),
    Sell { offsets: DeviceBuffer<i32>, col_ind: DeviceBuffer<i32>, values: DeviceBuffer<T> },
}

struct Spmv<T> {
    // Descriptors before the handle and the arrays: fields are dropped in order.
    x: Descriptor,
    y: Descriptor,
    matrix: Descriptor,
    handle: Handle,
    arrays: Matrix<T>,
    workspace: DeviceBuffer<u64>,
    algorithm: c_int,
    shape: (usize, usize),
}

pub(crate) fn csr_alg1<T: DeviceScalar>(problem: HostProblem<'_, T>) -> Planned<T> {
    csr(problem, ALGORITHM_CSR_1)
}

pub(crate) fn csr_alg2<T: DeviceScalar>(problem: HostProblem<'_, T>) -> Planned<T> {
    csr(problem, ALGORITHM_CSR_2)
}

fn csr<T: DeviceScalar>(problem: HostProblem<'_, T>, algorithm: c_int) -> Planned<T> {
    let (id, shape) = (problem.info.id, problem.a.shape());
    check_sizes(id, sizes(problem.a))?;
    let handle = Handle::of_plan(id, problem.device)?;
    // The library does not take a matrix without entries.
    if problem.a.nnz() == 0 {
        return Ok(problem.boxed(Zero(shape.0, shape.1)));
    }
    let a = DeviceCsr::new(problem.device, problem.a)?;
    let matrix = Descriptor::csr(&handle, &a)?;
    Ok(problem.boxed(Spmv::new(id, handle, matrix, Matrix::Csr(a), shape, algorithm)?))
}

pub(crate) fn sell<T: DeviceScalar>(problem: HostProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, budget, .. } = problem;
    check_sizes(SELL.id, sizes(a))?;
    let handle = Handle::of_plan(SELL.id, device)?;
    if a.nnz() == 0 {
        return Ok(problem.boxed(Zero(a.rows(), a.cols())));
    }
    let Some(create) = handle.library.functions.cusparseCreateSlicedEll else {
        let reason = "this version of cuSPARSE has no sliced ELLPACK".to_owned();
        return Err(problem.unsupported(reason));
    };
    let slice = parameters.count("slice");
    let sell = csr_to_sell(a, slice, 1, budget)?;
    check_signed(SELL.id, "slots", sell.stored_elements())?;
    let offsets: Vec<i32> = sell.chunk_offsets().iter().map(|&offset| offset as i32).collect();
    // The library wants padding marked by the column -1.
    let mut col_ind = vec![-1; sell.stored_elements()];
    for (position, &length) in sell.row_lengths().iter().enumerate() {
        let first = sell.chunk_offsets()[position / slice] + position % slice;
        for element in (first..).step_by(slice).take(length as usize) {
            col_ind[element] = sell.col_ind()[element] as i32;
        }
    }
    let offsets = DeviceBuffer::from_slice(device, &offsets)?;
    let col_ind = DeviceBuffer::from_slice(device, &col_ind)?;
    let values = DeviceBuffer::from_slice(device, sell.values())?;
    let descriptor =
        Descriptor::new(handle.library, Kind::Matrix, "cusparseCreateSlicedEll", |raw| {
            // SAFETY: the arrays have the sizes of the format; the plan keeps them.
            unsafe {
                create(
                    raw,
                    a.rows() as i64,
                    a.cols() as i64,
                    a.nnz() as i64,
                    values.len() as i64,
                    slice as i64,
                    pointer(&offsets),
                    pointer(&col_ind),
                    pointer(&values),
                    INDEX_32I,
                    INDEX_32I,
                    BASE_ZERO,
                    T::CUDA_DATA_TYPE,
                )
            }
        })?;
    let arrays = Matrix::Sell { offsets, col_ind, values };
    let shape = (a.rows(), a.cols());
    Ok(problem.boxed(Spmv::new(SELL.id, handle, descriptor, arrays, shape, ALGORITHM_SELL_1)?))
}

impl<T: DeviceScalar> Spmv<T> {
    fn new(
        id: &'static str,
        handle: Handle,
        matrix: Descriptor,
        arrays: Matrix<T>,
        shape: (usize, usize),
        algorithm: c_int,
    ) -> Result<Self, PlanError> {
        let device = handle.device.clone();
        // Some versions read the vectors while preprocessing; they are replaced at each launch.
        let x0 = DeviceBuffer::<T>::zeroed(&device, shape.1)?;
        let y0 = DeviceBuffer::<T>::zeroed(&device, shape.0)?;
        let x = Descriptor::vector(&handle, &x0)?;
        let y = Descriptor::vector(&handle, &y0)?;
        let workspace = DeviceBuffer::uninitialized(&device, 0)?;
        let mut spmv = Self { x, y, matrix, handle, arrays, workspace, algorithm, shape };
        let stream = Stream::new(&device)?;
        spmv.handle.enter(&stream)?;
        let (library, functions) = (spmv.handle.library, &spmv.handle.library.functions);
        let mut bytes = 0;
        // SAFETY: descriptors and handle are live; the scalars are of the compute type.
        let status = unsafe {
            multiply!(
                spmv,
                Scaling::<T>::OVERWRITE,
                (functions.cusparseSpMV_bufferSize),
                [NON_TRANSPOSE],
                &mut bytes
            )
        };
        library
            .check("cusparseSpMV_bufferSize", status)
            .map_err(|error| unsupported(id, status, error))?;
        spmv.workspace = DeviceBuffer::uninitialized(&device, workspace_words(bytes))?;
        if let Some(preprocess) = functions.cusparseSpMV_preprocess {
            // SAFETY: as above; the workspace has the size that the library asked for.
            let status = unsafe {
                multiply!(
                    spmv,
                    Scaling::<T>::OVERWRITE,
                    preprocess,
                    [NON_TRANSPOSE],
                    pointer(&spmv.workspace)
                )
            };
            // An algorithm without a preprocessing step runs as well without it.
            if status != NOT_SUPPORTED {
                library.check("cusparseSpMV_preprocess", status)?;
            }
        }
        stream.synchronize()?;
        Ok(spmv)
    }
}

impl<T: DeviceScalar> Product<T> for Spmv<T> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn memory(&self) -> Memory {
        let matrix = match &self.arrays {
            Matrix::Csr(a) => a.bytes(),
            Matrix::Sell { offsets, col_ind, values } => {
                (offsets.bytes() + col_ind.bytes() + values.bytes()) as u64
            }
        };
        Memory { matrix, workspace: self.workspace.bytes() as u64 }
    }

    fn enqueue(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut Target<'_, T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.handle.enter(stream)?;
        let (library, functions) = (self.handle.library, &self.handle.library.functions);
        self.x.point_to(x)?;
        self.y.point_to(y.in_place(stream)?)?;
        // SAFETY: as while planning; scalars are read from the host before the call returns.
        let status = unsafe {
            multiply!(
                self,
                y.scaling(),
                (functions.cusparseSpMV),
                [NON_TRANSPOSE],
                pointer(&self.workspace)
            )
        };
        library.check("cusparseSpMV", status)
    }
}

//! Y = A X by `cusparseSpMM`.

use std::ffi::c_int;

use spm_formats::DenseShape;
use spm_formats::kernel::{Backend, KernelInfo, Operation, PlanError, Scaling};

use super::library::NON_TRANSPOSE;
use super::{
    Descriptor, Handle, check_sizes, multiply, pointer, sizes, unsupported, workspace_words,
};
use crate::error::GpuError;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::problem::{HostProblem, Planned, Problem};
use crate::product::{Memory, Product, Target, Zero};
use crate::stream::Stream;

const fn info(id: &'static str, summary: &'static str) -> KernelInfo {
    let source = "NVIDIA cuSPARSE, cusparseSpMM";
    KernelInfo { id, source, summary, ..KernelInfo::of(Operation::Spmm, Backend::Gpu) }
}

/// `CUSPARSE_SPMM_CSR_ALG1`.
pub(crate) const CSR_ALG1: KernelInfo =
    info("cusparse-csr-alg1", "cuSPARSE CSR, algorithm 1 (made for column-major X), preprocessed");
/// `CUSPARSE_SPMM_CSR_ALG2`.
pub(crate) const CSR_ALG2: KernelInfo =
    info("cusparse-csr-alg2", "cuSPARSE CSR, algorithm 2 (made for row-major X), preprocessed");
/// `CUSPARSE_SPMM_CSR_ALG3`.
pub(crate) const CSR_ALG3: KernelInfo =
    info("cusparse-csr-alg3", "cuSPARSE CSR, algorithm 3 (deterministic), preprocessed");

/// Numbers of `cusparseSpMMAlg_t`.
const ALGORITHM_CSR_1: c_int = 4;
const ALGORITHM_CSR_2: c_int = 6;
const ALGORITHM_CSR_3: c_int = 12;

struct Spmm<T> {
    // Descriptors before the handle and the arrays: fields are dropped in order.
    x: Descriptor,
    y: Descriptor,
    matrix: Descriptor,
    handle: Handle,
    a: DeviceCsr<T>,
    workspace: DeviceBuffer<u64>,
    algorithm: c_int,
}

pub(crate) fn csr_alg1<T: DeviceScalar>(problem: HostProblem<'_, T>) -> Planned<T> {
    plan(problem, ALGORITHM_CSR_1)
}

pub(crate) fn csr_alg2<T: DeviceScalar>(problem: HostProblem<'_, T>) -> Planned<T> {
    plan(problem, ALGORITHM_CSR_2)
}

pub(crate) fn csr_alg3<T: DeviceScalar>(problem: HostProblem<'_, T>) -> Planned<T> {
    plan(problem, ALGORITHM_CSR_3)
}

fn plan<T: DeviceScalar>(problem: HostProblem<'_, T>, algorithm: c_int) -> Planned<T> {
    let Problem { info, device, a, dense, .. } = problem;
    check_sizes(info.id, sizes(a))?;
    let handle = Handle::of_plan(info.id, device)?;
    // The library does not take a matrix without entries.
    if a.nnz() == 0 || dense.k == 0 {
        return Ok(problem.boxed(Zero(a.rows(), a.cols())));
    }
    let a = DeviceCsr::new(device, a)?;
    Ok(problem.boxed(Spmm::new(info.id, handle, a, dense, algorithm)?))
}

impl<T: DeviceScalar> Spmm<T> {
    fn new(
        id: &'static str,
        handle: Handle,
        a: DeviceCsr<T>,
        dense: DenseShape,
        algorithm: c_int,
    ) -> Result<Self, PlanError> {
        let device = handle.device.clone();
        // Some versions read the operands while preprocessing; they are replaced at each launch.
        let x0 = DeviceBuffer::<T>::zeroed(&device, a.cols() * dense.k)?;
        let y0 = DeviceBuffer::<T>::zeroed(&device, a.rows() * dense.k)?;
        let x = Descriptor::dense(&handle, a.cols(), dense, &x0)?;
        let y = Descriptor::dense(&handle, a.rows(), dense, &y0)?;
        let matrix = Descriptor::csr(&handle, &a)?;
        let workspace = DeviceBuffer::uninitialized(&device, 0)?;
        let mut spmm = Self { x, y, matrix, handle, a, workspace, algorithm };
        let stream = Stream::new(&device)?;
        spmm.handle.enter(&stream)?;
        let (library, functions) = (spmm.handle.library, &spmm.handle.library.functions);
        let mut bytes = 0;
        // SAFETY: descriptors and handle are live; the scalars are of the compute type.
        let status = unsafe {
            multiply!(
                spmm,
                Scaling::<T>::OVERWRITE,
                (functions.cusparseSpMM_bufferSize),
                [NON_TRANSPOSE, NON_TRANSPOSE],
                &mut bytes
            )
        };
        library
            .check("cusparseSpMM_bufferSize", status)
            .map_err(|error| unsupported(id, status, error))?;
        spmm.workspace = DeviceBuffer::uninitialized(&device, workspace_words(bytes))?;
        // SAFETY: as above; the workspace has the size that the library asked for.
        let status = unsafe {
            multiply!(
                spmm,
                Scaling::<T>::OVERWRITE,
                (functions.cusparseSpMM_preprocess),
                [NON_TRANSPOSE, NON_TRANSPOSE],
                pointer(&spmm.workspace)
            )
        };
        library
            .check("cusparseSpMM_preprocess", status)
            .map_err(|error| unsupported(id, status, error))?;
        stream.synchronize()?;
        Ok(spmm)
    }
}

impl<T: DeviceScalar> Product<T> for Spmm<T> {
    fn shape(&self) -> (usize, usize) {
        (self.a.rows(), self.a.cols())
    }

    fn memory(&self) -> Memory {
        Memory { matrix: self.a.bytes(), workspace: self.workspace.bytes() as u64 }
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
                (functions.cusparseSpMM),
                [NON_TRANSPOSE, NON_TRANSPOSE],
                pointer(&self.workspace)
            )
        };
        library.check("cusparseSpMM", status)
    }
}

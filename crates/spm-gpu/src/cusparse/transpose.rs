//! CSR to CSC by `cusparseCsr2cscEx2` (R3 III-B).

use std::ffi::c_int;

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};

use super::library::{ACTION_NUMERIC, ACTION_SYMBOLIC, BASE_ZERO};
use super::{Handle, check_sizes, pointer, workspace_words};
use crate::error::GpuError;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceCsc, DeviceScalar};
use crate::procedure::{Planned, Procedure, boxed};
use crate::stream::Stream;

const fn info(id: &'static str, summary: &'static str) -> KernelInfo {
    let source = "R3 III-B; NVIDIA cuSPARSE, cusparseCsr2cscEx2";
    KernelInfo { id, source, summary, ..KernelInfo::of(Operation::Transpose, Backend::Gpu) }
}

/// `CUSPARSE_CSR2CSC_ALG_DEFAULT`.
pub(crate) const DEFAULT: KernelInfo =
    info("cusparse-default", "cuSPARSE's own choice; since version 12 algorithm 1");
/// `CUSPARSE_CSR2CSC_ALG1`.
pub(crate) const ALG1: KernelInfo = info("cusparse-alg1", "cuSPARSE, algorithm 1 (deterministic)");
/// `CUSPARSE_CSR2CSC_ALG2`.
pub(crate) const ALG2: KernelInfo =
    info("cusparse-alg2", "cuSPARSE, algorithm 2 (until version 11)");

/// Numbers of `cusparseCsr2CscAlg_t`; the default is algorithm 1 in every header.
const ALGORITHM_1: c_int = 1;
const ALGORITHM_2: c_int = 2;

struct Csr2Csc<T> {
    handle: Handle,
    a: DeviceCsr<T>,
    workspace: DeviceBuffer<u64>,
    algorithm: c_int,
}

pub(crate) fn default<T: DeviceScalar>(a: DeviceCsr<T>, _: &Parameters) -> Planned<T> {
    plan(DEFAULT.id, ALGORITHM_1, a)
}

pub(crate) fn alg1<T: DeviceScalar>(a: DeviceCsr<T>, _: &Parameters) -> Planned<T> {
    plan(ALG1.id, ALGORITHM_1, a)
}

pub(crate) fn alg2<T: DeviceScalar>(a: DeviceCsr<T>, _: &Parameters) -> Planned<T> {
    let version = Handle::of_plan(ALG2.id, a.device())?.version()?;
    if version.major >= 12 {
        let reason = format!("cuSPARSE {version} has no second algorithm; version 11 had");
        return Err(PlanError::Unsupported { kernel: ALG2.id, reason });
    }
    plan(ALG2.id, ALGORITHM_2, a)
}

fn plan<T: DeviceScalar>(id: &'static str, algorithm: c_int, a: DeviceCsr<T>) -> Planned<T> {
    check_sizes(id, (a.rows(), a.cols(), a.entries()))?;
    let device = &a.device().clone();
    let handle = Handle::of_plan(id, device)?;
    let workspace = DeviceBuffer::uninitialized(device, 0)?;
    let mut plan = Csr2Csc { handle, a, workspace, algorithm };
    if plan.a.entries() > 0 {
        let bytes = plan.buffer_size()?;
        plan.workspace = DeviceBuffer::uninitialized(device, workspace_words(bytes))?;
    }
    Ok(boxed(plan))
}

/// Calls a function that transposes; `$last` is the place for the size of a workspace, or the
/// workspace.
macro_rules! csr2csc {
    ($plan:ident, $function:expr, $output:ident, $last:expr) => {
        $function(
            $plan.handle.raw,
            $plan.a.rows() as c_int,
            $plan.a.cols() as c_int,
            $plan.a.entries() as c_int,
            pointer(&$plan.a.values),
            pointer(&$plan.a.row_ptr).cast(),
            pointer(&$plan.a.col_ind).cast(),
            pointer(&$output.values),
            pointer(&$output.col_ptr).cast(),
            pointer(&$output.row_ind).cast(),
            T::CUDA_DATA_TYPE,
            $plan.action(),
            BASE_ZERO,
            $plan.algorithm,
            $last,
        )
    };
}

impl<T: DeviceScalar> Csr2Csc<T> {
    fn action(&self) -> c_int {
        if self.a.is_pattern() { ACTION_SYMBOLIC } else { ACTION_NUMERIC }
    }

    fn buffer_size(&self) -> Result<usize, GpuError> {
        // The size depends on the shape alone, but the library wants the arrays.
        let output = DeviceCsc::<T>::new(self.a.device(), self.a.cols(), self.a.entries())?;
        self.a.device().make_current()?;
        let (library, mut bytes) = (self.handle.library, 0);
        // SAFETY: the arrays have the sizes given; the handle is live.
        let status = unsafe {
            csr2csc!(self, (library.functions.cusparseCsr2cscEx2_bufferSize), output, &mut bytes)
        };
        library.check("cusparseCsr2cscEx2_bufferSize", status)?;
        Ok(bytes)
    }
}

impl<T: DeviceScalar> Procedure<T> for Csr2Csc<T> {
    fn matrix(&self) -> &DeviceCsr<T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        self.workspace.bytes() as u64
    }

    fn enqueue(&mut self, output: &mut DeviceCsc<T>, stream: &Stream) -> Result<(), GpuError> {
        self.handle.enter(stream)?;
        let library = self.handle.library;
        // SAFETY: the arrays have the sizes given, the workspace the size that the library asked
        // for; the handle is live.
        let status = unsafe {
            csr2csc!(self, (library.functions.cusparseCsr2cscEx2), output, pointer(&self.workspace))
        };
        library.check("cusparseCsr2cscEx2", status)
    }
}

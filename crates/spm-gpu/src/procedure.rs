//! The common part of all transposition plans on a device: checks of the output around a kernel's
//! launches.

use spm_formats::kernel::{Footprint, PlanError};

use crate::device::Device;
use crate::error::GpuError;
use crate::matrix::DeviceCsr;
use crate::memory::check_operand;
use crate::plan::{DeviceCsc, DeviceScalar, DeviceTransposePlan};
use crate::stream::{LaunchOrder, Stream};

/// A boxed transposition plan.
pub type BoxedPlan<T> = Box<dyn DeviceTransposePlan<T>>;

/// A plan, or why there is none.
pub(crate) type Planned<T> = Result<BoxedPlan<T>, PlanError>;

/// A kernel's transposition, without the checks of the output.
pub(crate) trait Procedure<T>: Send {
    /// The matrix.
    fn matrix(&self) -> &DeviceCsr<T>;

    /// Bytes of device memory besides the matrix.
    fn workspace_bytes(&self) -> u64;

    /// Enqueues the transposition in the stream. The matrix has entries, the arrays of `output`
    /// have the right lengths, and everything is on one device. Nothing else uses the memory of
    /// `self` until this is done, also if the last call was in another stream.
    fn enqueue(&mut self, output: &mut DeviceCsc<T>, stream: &Stream) -> Result<(), GpuError>;

    /// See [`DeviceTransposePlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

struct Checked<P> {
    procedure: P,
    order: LaunchOrder,
}

/// Makes a plan of a procedure.
pub(crate) fn boxed<T: DeviceScalar>(procedure: impl Procedure<T> + 'static) -> BoxedPlan<T> {
    Box::new(Checked { procedure, order: LaunchOrder::default() })
}

impl<T: DeviceScalar, P: Procedure<T>> DeviceTransposePlan<T> for Checked<P> {
    fn device(&self) -> &Device {
        self.procedure.matrix().device()
    }

    fn shape(&self) -> (usize, usize) {
        (self.procedure.matrix().rows(), self.procedure.matrix().cols())
    }

    fn entries(&self) -> usize {
        self.procedure.matrix().entries()
    }

    fn footprint(&self) -> Footprint {
        let a = self.procedure.matrix();
        let pointers = ((a.cols() + 1) * size_of::<u32>()) as u64;
        let value = if a.is_pattern() { 0 } else { T::BYTES };
        let entries = (a.entries() * (size_of::<u32>() + value)) as u64;
        Footprint {
            bytes_moved: a.bytes() + pointers + entries,
            plan_bytes: a.bytes() + self.procedure.workspace_bytes(),
            matrix_bytes: a.bytes(),
        }
    }

    fn launch(&mut self, output: &mut DeviceCsc<T>, stream: &Stream) -> Result<(), GpuError> {
        let (device, entries) = (self.device().clone(), self.entries());
        check_operand("column pointers", &device, &output.col_ptr, self.shape().1 + 1)?;
        check_operand("row indices", &device, &output.row_ind, entries)?;
        let values = self.procedure.matrix().values.len();
        check_operand("values", &device, &output.values, values)?;
        stream.check_device(&device)?;
        if entries == 0 {
            return output.col_ptr.enqueue_zero(stream);
        }
        self.order.enter(stream, || self.procedure.enqueue(output, stream))
    }

    fn choice(&self) -> Option<String> {
        self.procedure.choice()
    }
}

//! What a product kernel plans, and plans from launches.

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, Value};
use spm_formats::{CsrView, DenseShape, MemoryBudget};

use crate::device::Device;
use crate::error::GpuError;
use crate::launch::{self, Block, Launch, Loads};
use crate::matrix::DeviceMatrix;
use crate::memory::DeviceBuffer;
use crate::plan::{BoxedPlan, DeviceScalar};
use crate::product::{Checked, Launches, Product, Target, operand_bytes};
use crate::source::Source;
use crate::stream::Stream;

/// A product to plan with one kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Problem<'a, A> {
    /// The kernel.
    pub(crate) info: &'a KernelInfo,
    pub(crate) device: &'a Device,
    /// The matrix.
    pub(crate) a: A,
    /// Columns and layout of X and Y.
    pub(crate) dense: DenseShape,
    pub(crate) parameters: &'a Parameters,
    /// For padding; what is allocated on the device is counted elsewhere.
    pub(crate) budget: &'a MemoryBudget,
    /// See [`PlanOptions::new_values`](crate::PlanOptions::new_values).
    pub(crate) new_values: bool,
}

/// A product with a matrix in host memory.
pub(crate) type HostProblem<'a, T> = Problem<'a, CsrView<'a, T>>;
/// A product with a matrix in device memory.
pub(crate) type DeviceProblem<'a, T> = Problem<'a, &'a Source<T>>;

/// A plan, or why there is none.
pub(crate) type Planned<T> = Result<BoxedPlan<T>, PlanError>;

/// Plans y = A x with a matrix that is in the format of the kernel already, in blocks of `block`
/// threads.
pub(crate) fn with_block<T>(
    info: &KernelInfo,
    device: &Device,
    block: usize,
    plan: impl FnOnce(Problem<'_, ()>) -> Planned<T>,
) -> Planned<T> {
    let parameters = &info.defaults().with("block", Value::Count(block));
    let (dense, budget) = (DenseShape::VECTOR, &MemoryBudget::default());
    plan(Problem { info, device, a: (), dense, parameters, budget, new_values: false })
}

impl<'a, A> Problem<'a, A> {
    /// The same product with another kernel.
    pub(crate) fn with_kernel(self, info: &'a KernelInfo, parameters: &'a Parameters) -> Self {
        Self { info, parameters, ..self }
    }

    /// The error that the kernel does not apply, for this reason.
    pub(crate) fn unsupported(&self, reason: impl Into<String>) -> PlanError {
        PlanError::Unsupported { kernel: self.info.id, reason: reason.into() }
    }

    /// The parameter `block`: threads of a block.
    pub(crate) fn block(&self) -> usize {
        self.parameters.count("block")
    }

    /// Warps of a block of [`Problem::block`] threads.
    ///
    /// # Errors
    /// A number of threads that is not a multiple of 32.
    pub(crate) fn warps(&self) -> Result<usize, PlanError> {
        launch::warps(self.info.id, self.block())
    }

    /// See [`Launch::over`].
    pub(crate) fn launch(
        &self,
        items: usize,
        per_block: usize,
        block: impl Block,
    ) -> Result<Launch, PlanError> {
        Launch::over(self.info.id, self.device, items, per_block, block)
    }

    /// The launch of a product with this matrix: [`Loads`] by whether L2 holds all that it reads and writes.
    pub(crate) fn loading<M: DeviceMatrix>(&self, matrix: &M, launch: Launch) -> Launch {
        let bytes = matrix.bytes() + operand_bytes::<M::Value>(matrix.shape(), self.dense);
        launch.with_loads(Loads::fitting(self.device.info(), bytes))
    }

    /// A plan made of a matrix on the device, `workspace` bytes, and launches that write nothing but
    /// Y. `enqueue` is called with checked operands: X and Y have the lengths of the shapes, Y is not
    /// empty, and everything is on one device.
    pub(crate) fn product<T, M, F>(&self, matrix: M, workspace: u64, enqueue: F) -> BoxedPlan<T>
    where
        T: DeviceScalar,
        M: DeviceMatrix<Value = T>,
        F: Fn(&M, &DeviceBuffer<T>, &mut Target<'_, T>, &Stream) -> Result<(), GpuError>
            + Send
            + 'static,
    {
        let alignment = T::ALIGNMENT as usize;
        let checked = self.checked(Launches { matrix, workspace, alignment, enqueue });
        // New values are ordered after earlier launches and before later ones.
        Box::new(if self.new_values { checked } else { checked.without_scratch() })
    }

    /// The same for launches that write scratch memory of the plan: they run one after another.
    pub(crate) fn product_with_scratch<T, M, F>(
        &self,
        matrix: M,
        workspace: u64,
        enqueue: F,
    ) -> BoxedPlan<T>
    where
        T: DeviceScalar,
        M: DeviceMatrix<Value = T>,
        F: FnMut(&M, &DeviceBuffer<T>, &mut Target<'_, T>, &Stream) -> Result<(), GpuError>
            + Send
            + 'static,
    {
        self.product_aligned(T::ALIGNMENT as usize, matrix, workspace, enqueue)
    }

    /// The same for launches whose operands begin at a multiple of `alignment` bytes, more than elements
    /// take: copies of other ones are made in each product.
    pub(crate) fn product_aligned<T, M, F>(
        &self,
        alignment: usize,
        matrix: M,
        workspace: u64,
        enqueue: F,
    ) -> BoxedPlan<T>
    where
        T: DeviceScalar,
        M: DeviceMatrix<Value = T>,
        F: FnMut(&M, &DeviceBuffer<T>, &mut Target<'_, T>, &Stream) -> Result<(), GpuError>
            + Send
            + 'static,
    {
        self.boxed(Launches { matrix, workspace, alignment, enqueue })
    }

    /// Makes a plan of a product.
    pub(crate) fn boxed<T: DeviceScalar>(
        &self,
        product: impl Product<T> + 'static,
    ) -> BoxedPlan<T> {
        Box::new(self.checked(product))
    }

    fn checked<T: DeviceScalar, P>(&self, product: P) -> Checked<T, P> {
        Checked::new(self.info.operation, self.device, self.dense, product)
    }
}

//! CSR SpMV with rows partitioned by entries (R2 V-A, algorithms 2 and 3): each thread has
//! consecutive rows with about the same number of entries; y_i = sum_j a_ij x_j.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar, partition};

use super::plan::{Memory, Product, boxed};
use super::{BoxedPlan, row};
use crate::disjoint::Disjoint;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-nnz-balanced",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R2 V-A, algorithms 2 and 3",
    summary: "consecutive rows with about the same number of entries for each thread",
    parameters: &[row::SIMD],
};

struct NnzBalanced<'a, T> {
    a: CsrSource<'a, T>,
    threads: Threads,
    /// Rows of thread t: `bounds[t]..bounds[t + 1]`.
    bounds: Vec<usize>,
    simd: bool,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let threads = options.threads.clone();
    let bounds = partition::by_entries(a.view().row_ptr(), threads.count());
    Ok(boxed(NnzBalanced { a, threads, bounds, simd: parameters.switch(row::SIMD.name) }))
}

impl<T: Scalar> Product<T> for NnzBalanced<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        Memory::borrowed(&self.a.view(), size_of_val(&*self.bounds))
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        let (a, y) = (self.a.view(), Disjoint::new(y));
        self.threads.run(|part| {
            let rows = self.bounds[part]..self.bounds[part + 1];
            // SAFETY: the bounds ascend, so the parts do not overlap.
            let y = unsafe { y.range(rows.clone()) };
            row::multiply_rows(&a, rows, scaling, x, y, self.simd);
        });
    }
}

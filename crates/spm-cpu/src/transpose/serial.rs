//! Serial transposition (R3 III-A): counts the entries of each column, scans the counts, and moves
//! the entries row by row.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, TransposeOutput};
use spm_formats::{CsrView, Scalar};

use super::BoxedPlan;
use super::plan::{Procedure, boxed};
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "serial",
    operation: Operation::Transpose,
    backend: Backend::Cpu,
    source: "R3 III-A",
    summary: "count columns, prefix sum, move entries; the baseline of speedups",
    parameters: &[],
};

struct Serial<'a, T> {
    a: CsrView<'a, T>,
    choice: Option<String>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    _: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(boxed(Serial { a, choice: None }))
}

/// The plan that `auto` returns if no other kernel is faster, without a wrapper around it.
pub(super) fn chosen<'a, T: Scalar>(a: CsrView<'a, T>) -> BoxedPlan<'a, T> {
    boxed(Serial { a, choice: Some(INFO.id.to_owned()) })
}

impl<T: Scalar> Procedure<T> for Serial<'_, T> {
    fn matrix(&self) -> &CsrView<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        0
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        let TransposeOutput { pointers, indices, values } = output;
        pointers.fill(0);
        for &col in self.a.col_ind() {
            pointers[col as usize + 1] += 1;
        }
        // pointers[c] becomes the place of column c's next entry; that of c + 1 when it is full.
        let mut start = 0;
        for pointer in pointers.iter_mut() {
            start += *pointer;
            *pointer = start;
        }
        for (row, ends) in self.a.row_ptr().windows(2).enumerate() {
            for entry in ends[0] as usize..ends[1] as usize {
                let place = &mut pointers[self.a.col_ind()[entry] as usize];
                indices[*place as usize] = row as u32;
                values[*place as usize] = self.a.values()[entry];
                *place += 1;
            }
        }
        pointers.rotate_right(1);
        pointers[0] = 0;
    }

    fn choice(&self) -> Option<String> {
        self.choice.clone()
    }
}

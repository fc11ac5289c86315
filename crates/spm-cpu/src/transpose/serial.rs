//! Serial transposition (R3 III-A): counts the entries of each column, scans the counts, and moves
//! the entries row by row.

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput};
use spm_formats::{CsrView, Scalar};

use super::BoxedPlan;
use super::KERNEL;
use super::plan::{Checked, Procedure, boxed};
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "serial",
    source: "R3 III-A",
    summary: "count columns, prefix sum, move entries; the baseline of speedups",
    parameters: &[],
    ..KERNEL
};

struct Serial<'a, T>(CsrView<'a, T>);

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    _: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(boxed(Serial(a)))
}

/// The plan that `auto` returns if no other kernel is faster, without a wrapper around it.
pub(super) fn chosen<'a, T: Scalar>(a: CsrView<'a, T>) -> BoxedPlan<'a, T> {
    Box::new(Checked { procedure: Serial(a), choice: Some(INFO.id.to_owned()) })
}

impl<T: Scalar> Procedure<T> for Serial<'_, T> {
    fn matrix(&self) -> &CsrView<'_, T> {
        &self.0
    }

    fn workspace_bytes(&self) -> u64 {
        0
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        let TransposeOutput { col_ptr, row_ind, values } = output;
        col_ptr.fill(0);
        for &col in self.0.col_ind() {
            col_ptr[col as usize + 1] += 1;
        }
        // col_ptr[c] becomes the place of column c's next entry; that of c + 1 when it is full.
        let mut start = 0;
        for pointer in col_ptr.iter_mut() {
            start += *pointer;
            *pointer = start;
        }
        for (row, ends) in self.0.row_ptr().windows(2).enumerate() {
            for entry in ends[0] as usize..ends[1] as usize {
                let place = &mut col_ptr[self.0.col_ind()[entry] as usize];
                row_ind[*place as usize] = row as u32;
                values[*place as usize] = self.0.values()[entry];
                *place += 1;
            }
        }
        col_ptr.rotate_right(1);
        col_ptr[0] = 0;
    }
}

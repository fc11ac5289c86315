//! DCSR SpMV for matrices most of whose rows are empty: y_i = sum_j a_ij x_j.
//!
//! The plan lists the rows that have entries and their ends (doubly compressed sparse row; Buluc and
//! Gilbert, "On the representation and multiplication of hypersparse matrices", IPDPS 2008). Of an
//! empty row a product writes a zero and reads nothing.

use std::ops::Range;

use spm_formats::kernel::{KernelInfo, PlanError};
use spm_formats::{CsrSource, CsrView, NewValues, Scalar, partition};

use super::KERNEL;
use super::load::Stored;
use super::plan::Memory;
use super::row::{Summing, Walk};
use super::rows::{self, Partition, RowSums};
use crate::kernel::{Planned, Problem};
use crate::scaled::Update;
use crate::{Threads, values};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "dcsr-rows",
    source: "own; Buluc and Gilbert, IPDPS 2008",
    summary: "a list of the rows that have entries; of the others only a zero is written",
    parameters: &[],
    ..KERNEL
};

/// Rows of a block: their sums and their part of y stay in the first-level cache.
const BLOCK: usize = 512;

/// Rows that are listed together.
const GROUP: usize = 128 * BLOCK;

/// Bytes of the list for a row that has entries: its end, and its position in the block.
pub(super) const ROW_BYTES: usize = size_of::<u32>() + size_of::<u16>();

struct Dcsr<'a, T> {
    a: CsrSource<'a, T>,
    /// Positions in their blocks of the rows that have entries.
    positions: Vec<u16>,
    /// The entries of listed row i: `row_ptr[i]..row_ptr[i + 1]`.
    row_ptr: Vec<u32>,
    /// The listed rows of block b: `blocks[b]..blocks[b + 1]`.
    blocks: Vec<u32>,
    walk: Walk,
}

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, options, .. } = problem;
    let (view, threads) = (a.view(), options.threads.clone());
    let rows = view.rows();
    // Bounds of blocks, and the weights that they are divided by.
    let of_blocks = rows.div_ceil(BLOCK) * (size_of::<u32>() + size_of::<usize>());
    // The list is there once more in groups of rows, which double.
    let bytes = 3 * rows.min(view.nnz()) * ROW_BYTES + of_blocks;
    options.budget.check_bytes(INFO.id, bytes as u128)?;
    // A row is written, and an entry is read.
    let ends = (0..=rows.div_ceil(BLOCK)).map(|block| rows.min(block * BLOCK));
    let weights: Vec<usize> = ends.map(|row| row + view.row_ptr()[row] as usize).collect();
    let work = weights.last().copied().unwrap_or(0);
    let shared = Partition::shared(&threads, work, |shares| partition::by_weight(&weights, shares));
    Ok(rows::plan(Dcsr::new(a, &threads), shared))
}

/// Rows that have entries: positions in their blocks, ends, and how many there are up to the end of each block.
#[derive(Default)]
struct Listed {
    positions: Vec<u16>,
    ends: Vec<u32>,
    blocks: Vec<u32>,
}

impl Listed {
    /// Of some rows, whole blocks but at the end of the matrix.
    fn of(row_ptr: &[u32], rows: Range<usize>) -> Self {
        let mut listed = Self::default();
        let mut before = row_ptr[rows.start];
        for block in row_ptr[rows.start + 1..=rows.end].chunks(BLOCK) {
            for (position, &end) in (0..).zip(block) {
                if end != before {
                    listed.positions.push(position);
                    listed.ends.push(end);
                    before = end;
                }
            }
            listed.blocks.push(listed.positions.len() as u32);
        }
        listed
    }
}

impl<'a, T: Scalar> Dcsr<'a, T> {
    fn new(a: CsrSource<'a, T>, threads: &Threads) -> Self {
        let (all, rows) = (a.view().row_ptr(), a.view().rows());
        let group = |group: usize| group * GROUP..rows.min((group + 1) * GROUP);
        let listed = threads.map(rows.div_ceil(GROUP), |of| Listed::of(all, group(of)));
        let count = listed.iter().map(|group| group.positions.len()).sum();
        let mut positions = Vec::with_capacity(count);
        let mut row_ptr = Vec::with_capacity(count + 1);
        let mut blocks = Vec::with_capacity(rows.div_ceil(BLOCK) + 1);
        row_ptr.push(0);
        blocks.push(0);
        for group in listed {
            let before = positions.len() as u32;
            blocks.extend(group.blocks.iter().map(|count| before + count));
            positions.extend(group.positions);
            row_ptr.extend(group.ends);
        }
        let walk = Walk::fitting(&row_ptr);
        Self { a, positions, row_ptr, blocks, walk }
    }
}

impl<T: Scalar> RowSums<T> for Dcsr<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self, rest: usize) -> Memory {
        let a = self.a.view();
        let list = size_of_val(&*self.positions)
            + size_of_val(&*self.row_ptr)
            + size_of_val(&*self.blocks);
        let matrix = list + size_of_val(a.col_ind()) + size_of_val(a.values());
        Memory { matrix: matrix as u64, plan: (list + rest) as u64 }
    }

    fn count(&self) -> usize {
        self.blocks.len() - 1
    }

    fn rows(&self, blocks: &Range<usize>) -> Range<usize> {
        let rows = self.a.view().rows();
        rows.min(blocks.start * BLOCK)..rows.min(blocks.end * BLOCK)
    }

    fn multiply(&self, blocks: Range<usize>, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let a = self.a.view();
        let shape = (self.positions.len(), a.cols());
        // SAFETY: the arrays of `a`, whose pattern is that of planning; the ends of all rows that have entries
        // ascend from 0 to the number of entries.
        let listed =
            unsafe { CsrView::new_unchecked(shape, &self.row_ptr, a.col_ind(), a.values()) };
        let (mut sums, mut products) = ([T::ZERO; BLOCK], [T::ZERO; BLOCK]);
        for (block, y) in blocks.zip(y.chunks_mut(BLOCK)) {
            let rows = self.blocks[block] as usize..self.blocks[block + 1] as usize;
            let sums = &mut sums[..rows.len()];
            self.walk.multiply(Stored, &listed, rows.clone(), None, x, sums, Summing::INTERLEAVED);
            let put = |to: &mut [T]| {
                to.fill(T::ZERO);
                for (&position, &sum) in self.positions[rows].iter().zip(&*sums) {
                    to[usize::from(position)] = sum;
                }
            };
            match scaling {
                None => put(y),
                Some(update) => {
                    let products = &mut products[..y.len()];
                    put(products);
                    update.combine(products, y);
                }
            }
        }
    }

    fn set_values(
        &mut self,
        new: NewValues<'_, T>,
        threads: Option<&Threads>,
    ) -> Result<(), PlanError> {
        values::set(&mut self.a, new, threads)
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;
    use spm_formats::kernel::Scaling;
    use spm_testing::generate;

    use super::*;
    use crate::PlanOptions;

    /// Blocks that are empty, whole and cut: the bits of `csr-nnz-balanced`, on more threads than there are
    /// blocks too, and with a y that is not read.
    #[test]
    fn the_bits_are_those_of_csr() {
        for name in [
            "uniform[rows=3001,cols=700,entries=160]",
            "uniform[rows=1536,cols=300,entries=9000]",
            "powerlaw[rows=4000,cols=900,entries=1500,longest=800]",
            "uniform[rows=5,cols=300,entries=3]",
            "uniform[rows=700,cols=300,entries=0]",
            // Two groups of rows that are listed together.
            "uniform[rows=66000,cols=300,entries=9000]",
        ] {
            let a: Csr<f64> = generate::named(name).unwrap().generate().unwrap();
            let x: Vec<f64> = (0..a.cols()).map(|j| (j as f64).sin()).collect();
            for threads in [1, 2, 9] {
                let options = PlanOptions::with_threads(threads);
                let plans = [INFO.id, "csr-nnz-balanced"].map(|id| {
                    let kernel = crate::spmv::find::<f64>(id).unwrap();
                    kernel.plan(&a, &kernel.info.defaults(), &options).unwrap()
                });
                for scaling in [Scaling::OVERWRITE, Scaling::new(2.0, 0.0), Scaling::new(2.0, -3.0)]
                {
                    let filled = if scaling.beta == 0.0 { f64::NAN } else { 0.7 };
                    let [listed, expected] = plans.each_ref().map(|plan| {
                        let mut y = vec![filled; a.rows()];
                        plan.run_scaled(scaling, &x, &mut y).unwrap();
                        y.iter().map(|y| y.to_bits()).collect::<Vec<_>>()
                    });
                    assert_eq!(listed, expected, "{name}, {scaling:?}, {threads} threads");
                }
            }
        }
    }

    /// The list holds nothing of empty rows.
    #[test]
    fn memory_is_that_of_rows_with_entries() {
        let of = |rows: usize| {
            let mut row_ptr = vec![0; rows + 1];
            row_ptr[rows - 3..].fill(2);
            let a = Csr::new((rows, 9), row_ptr, vec![3, 5], vec![1.0; 2]).unwrap();
            let kernel = crate::spmv::find::<f64>(INFO.id).unwrap();
            let plan = kernel.plan(&a, &INFO.defaults(), &PlanOptions::with_threads(1)).unwrap();
            plan.footprint().matrix_bytes
        };
        // Of one row its two ends and its position, of a block its two ends; two entries.
        assert_eq!(of(BLOCK), 8 + 2 + 8 + 24);
        assert_eq!(of(10 * BLOCK), of(BLOCK) + 9 * 4);
    }
}

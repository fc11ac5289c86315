//! CSR SpMV by 2-D tiles with an offset table (R1 1.1.2 and 1.1.3, `spmvTilesCSR`, OMP CSR 3):
//! y_i = sum_J sum_{j in J} a_ij x_j over column blocks J.

use spm_formats::kernel::{KernelInfo, PlanError};
use spm_formats::{CsrSource, NewValues, Scalar, partition};

use super::KERNEL;
use super::plan::{Memory, Product, boxed};
use super::row::{self, Summing};
use super::schedule::{FOLDING, GRID, SCHEDULE};
use super::tiles::Tiles;
use crate::kernel::{Planned, Problem};
use crate::scaled::Update;
use crate::values;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-tiles",
    source: "R1 1.1.2, OMP CSR 3 (spmvTilesCSR)",
    summary: "2-D tiles through a table of rows x column blocks offsets, then a reduction",
    parameters: &[GRID, SCHEDULE, FOLDING, row::SIMD],
    ..KERNEL
};

struct CsrTiles<'a, T> {
    a: CsrSource<'a, T>,
    tiles: Tiles<T>,
    /// First entry of column block j in row r at `r * col_blocks + j`; one more at the end.
    offsets: Vec<u32>,
    summing: Summing,
}

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let view = a.view();
    let tiles = Tiles::new(INFO.id, view.shape(), view.nnz(), parameters, options)?;
    let blocks = tiles.col_blocks();
    let starts: Vec<usize> =
        (0..blocks).map(|block| partition::even(view.cols(), blocks, block).start).collect();
    let mut offsets = Vec::with_capacity(view.rows() * blocks + 1);
    for ends in view.row_ptr().windows(2) {
        let cols = &view.col_ind()[ends[0] as usize..ends[1] as usize];
        offsets.extend(
            starts
                .iter()
                .map(|&start| ends[0] + cols.partition_point(|&col| (col as usize) < start) as u32),
        );
    }
    offsets.push(view.nnz() as u32);
    Ok(boxed(CsrTiles { a, tiles, offsets, summing: Summing::by(parameters) }))
}

impl<T: Scalar> Product<T> for CsrTiles<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        let (a, offsets) = (self.a.view(), size_of_val(&*self.offsets));
        let read = a.memory_bytes() - size_of_val(a.row_ptr()) as u64 + offsets as u64;
        Memory { matrix: read, plan: (offsets + self.tiles.bytes()) as u64 }
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, offsets, summing) = (self.a.view(), &self.offsets, self.summing);
        let blocks = self.tiles.col_blocks();
        let tile_sum = |block: usize, row: usize| {
            let at = row * blocks + block;
            row::dot_entries(&a, offsets[at] as usize..offsets[at + 1] as usize, x, summing)
        };
        self.tiles.multiply(scaling, y, tile_sum, |_, sum| sum);
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        values::set(&mut self.a, new, Some(self.tiles.threads()))
    }
}

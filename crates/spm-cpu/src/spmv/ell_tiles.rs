//! ELLPACK SpMV by 2-D tiles (R1 1.2.2, `spmvTilesELL`, OMP ELL 2):
//! y_i = sum_S sum_{s in S} value(i, s) x_column(i, s) over blocks S of stored elements.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar, partition};

use super::ell::{EllRows, ROW_LENGTHS};
use super::plan::{Memory, Product, boxed};
use super::schedule::{FOLDING, GRID, SCHEDULE};
use super::tiles::Tiles;
use super::{BoxedPlan, row};
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-tiles",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R1 1.2.2, OMP ELL 2 (spmvTilesELL)",
    summary: "ELLPACK, 2-D tiles of the padded rectangle, then a reduction",
    parameters: &[GRID, SCHEDULE, FOLDING, ROW_LENGTHS, row::SIMD],
};

struct EllTiles<T> {
    a: EllRows<T>,
    tiles: Tiles<T>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let a = EllRows::new(a.view(), parameters, options)?;
    let rectangle = (a.shape().0, a.width());
    let options = &options.beside(a.memory(0).plan);
    let tiles = Tiles::new(INFO.id, rectangle, a.entries(), parameters, options)?;
    Ok(boxed(EllTiles { a, tiles }))
}

impl<T: Scalar> Product<T> for EllTiles<T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn memory(&self) -> Memory {
        self.a.memory(self.tiles.bytes())
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        let (a, blocks) = (&self.a, self.tiles.col_blocks());
        let tile_sum =
            |block: usize, row: usize| a.sum(row, partition::even(a.width(), blocks, block), x);
        self.tiles.multiply(scaling, y, tile_sum, |row, sum| a.without_padding(row, sum, x));
    }
}

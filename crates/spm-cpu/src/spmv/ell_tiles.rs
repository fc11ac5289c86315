//! ELLPACK SpMV by 2-D tiles (R1 1.2.2, `spmvTilesELL`, OMP ELL 2):
//! y_i = sum_S sum_{s in S} value(i, s) x_column(i, s) over blocks S of stored elements.

use spm_formats::kernel::KernelInfo;
use spm_formats::{Scalar, partition};

use super::KERNEL;
use super::ell::{EllRows, ROW_LENGTHS};
use super::plan::{Memory, Product, boxed};
use super::row;
use super::rows::RowSums;
use super::schedule::{FOLDING, GRID, SCHEDULE};
use super::tiles::Tiles;
use crate::kernel::{Planned, Problem};
use crate::scaled::Update;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-tiles",
    source: "R1 1.2.2, OMP ELL 2 (spmvTilesELL)",
    summary: "ELLPACK, 2-D tiles of the padded rectangle, then a reduction",
    parameters: &[GRID, SCHEDULE, FOLDING, ROW_LENGTHS, row::SIMD],
    ..KERNEL
};

struct EllTiles<T> {
    a: EllRows<T>,
    tiles: Tiles<T>,
}

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
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

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, blocks) = (&self.a, self.tiles.col_blocks());
        let tile_sum =
            |block: usize, row: usize| a.sum(row, partition::even(a.width(), blocks, block), x);
        self.tiles.multiply(scaling, y, tile_sum, |row, sum| a.without_padding(row, sum, x));
    }
}

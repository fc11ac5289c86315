//! CSR SpMV by 2-D tiles with a separate CSR matrix for each column block (R1 1.1.3, OMP CSR 4):
//! y_i = sum_J sum_{j in J} a_ij x_j over column blocks J.

use std::ops::Range;

use spm_formats::kernel::KernelInfo;
use spm_formats::{CsrView, Scalar, partition};

use super::KERNEL;
use super::plan::{Memory, Product, boxed};
use super::row::{self, Summing};
use super::schedule::{FOLDING, GRID, SCHEDULE};
use super::tiles::Tiles;
use crate::kernel::{Planned, Problem};
use crate::scaled::Update;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-tiles-copied",
    source: "R1 1.1.3, OMP CSR 4",
    summary: "2-D tiles, each column block a separately allocated CSR matrix, then a reduction",
    parameters: &[GRID, SCHEDULE, FOLDING, row::SIMD],
    ..KERNEL
};

/// One column block as CSR, with column indices relative to the block's first column.
struct Piece<T> {
    cols: Range<usize>,
    row_ptr: Vec<u32>,
    col_ind: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Piece<T> {
    fn new(a: &CsrView<'_, T>, cols: Range<usize>) -> Self {
        // Arrays of their final size: ones that grow would take three times as much for a moment.
        let entries = a.col_ind().iter().filter(|&&col| cols.contains(&(col as usize))).count();
        let mut row_ptr = Vec::with_capacity(a.rows() + 1);
        row_ptr.push(0);
        let (col_ind, values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        let mut piece = Self { cols, row_ptr, col_ind, values };
        for ends in a.row_ptr().windows(2) {
            let row = ends[0] as usize..ends[1] as usize;
            for (&col, &value) in a.col_ind()[row.clone()].iter().zip(&a.values()[row]) {
                if piece.cols.contains(&(col as usize)) {
                    piece.col_ind.push(col - piece.cols.start as u32);
                    piece.values.push(value);
                }
            }
            piece.row_ptr.push(piece.values.len() as u32);
        }
        piece
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.row_ptr) + size_of_val(&*self.col_ind) + size_of_val(&*self.values)
    }

    fn dot(&self, row: usize, x: &[T], summing: Summing) -> T {
        let entries = self.row_ptr[row] as usize..self.row_ptr[row + 1] as usize;
        let x = &x[self.cols.clone()];
        // SAFETY: `new` kept only columns inside `cols` and counts them from its start.
        unsafe { row::dot(&self.col_ind[entries.clone()], &self.values[entries], x, summing) }
    }
}

struct CopiedTiles<T> {
    shape: (usize, usize),
    pieces: Vec<Piece<T>>,
    tiles: Tiles<T>,
    summing: Summing,
}

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let (a, shape) = (a.view(), a.view().shape());
    let copied = a.nnz() * (size_of::<u32>() + T::BYTES);
    let options = &options.beside(copied as u64);
    let tiles = Tiles::new(INFO.id, shape, a.nnz(), parameters, options)?;
    let blocks = tiles.col_blocks();
    let pieces =
        (0..blocks).map(|block| Piece::new(&a, partition::even(a.cols(), blocks, block))).collect();
    Ok(boxed(CopiedTiles { shape, pieces, tiles, summing: Summing::by(parameters) }))
}

impl<T: Scalar> Product<T> for CopiedTiles<T> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn memory(&self) -> Memory {
        Memory::owned(self.pieces.iter().map(Piece::bytes).sum(), self.tiles.bytes())
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (pieces, summing) = (&self.pieces, self.summing);
        let tile_sum = |block: usize, row: usize| pieces[block].dot(row, x, summing);
        self.tiles.multiply(scaling, y, tile_sum, |_, sum| sum);
    }
}

//! Rows sorted by length inside tiles, so that a loop over the entries of a row ends where the processor expects it.

use spm_formats::kernel::Schedule;
use spm_formats::partition::MergePoint;
use spm_formats::{CsrView, Scalar};

use super::MOST_ROWS;
use crate::Threads;
use crate::counting_sort::counting_sort;
use crate::disjoint::Disjoint;

/// Where in its tile of Y a row of the matrix goes.
pub(super) trait Order: Copy + Send + Sync {
    /// Whether each row has the place that it has in the matrix.
    const IN_ORDER: bool;

    /// That of the rows from `row` on.
    ///
    /// # Safety
    /// The matrix has the row, or it is the one after the last.
    unsafe fn at_row(self, row: usize) -> Self;

    /// The place of the row `at` rows after the first.
    ///
    /// # Safety
    /// The tile has that many rows.
    unsafe fn place(self, at: usize) -> usize;
}

/// As they are in the matrix.
#[derive(Debug, Clone, Copy)]
pub(super) struct InOrder;

impl Order for InOrder {
    const IN_ORDER: bool = true;

    #[inline(always)]
    unsafe fn at_row(self, _: usize) -> Self {
        Self
    }

    #[inline(always)]
    unsafe fn place(self, at: usize) -> usize {
        at
    }
}

/// The places of [`Sorted`] rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a>(&'a [u8]);

impl Order for Places<'_> {
    const IN_ORDER: bool = false;

    #[inline(always)]
    unsafe fn at_row(self, row: usize) -> Self {
        // SAFETY: the caller's promise; there is one place more than rows.
        Self(unsafe { self.0.get_unchecked(row..) })
    }

    #[inline(always)]
    unsafe fn place(self, at: usize) -> usize {
        // SAFETY: the caller's promise.
        usize::from(unsafe { *self.0.get_unchecked(at) })
    }
}

/// A copy of a CSR matrix with the rows of each tile in ascending length.
///
/// Invariants: `row_ptr`, `col_ind` and `values` are those of a CSR matrix with `cols` columns.
#[derive(Debug)]
pub(super) struct Sorted<T> {
    cols: usize,
    row_ptr: Vec<u32>,
    col_ind: Vec<u32>,
    values: Vec<T>,
    rows: Rows,
}

/// Where the rows of a matrix are in its copy.
///
/// Tiles begin with the first row of a partition, which stays there: the partition before may end inside of it.
#[derive(Debug)]
struct Rows {
    /// The row of the tile, counted from its first, which is stored at each row; 0 behind the last, where a partition
    /// may end.
    places: Vec<u8>,
    /// The first row of each partition and the end of the last.
    bounds: Vec<usize>,
    tile: usize,
}

impl<T: Scalar> Sorted<T> {
    /// Bytes of the copy.
    pub(super) fn most_bytes(a: &CsrView<'_, T>) -> usize {
        let of_rows = (a.rows() + 1) * (size_of::<u32>() + size_of::<u8>());
        of_rows + a.nnz() * (size_of::<u32>() + size_of::<T>())
    }

    /// For the partitions between `points`, in tiles of `tile` rows, 1 to [`MOST_ROWS`].
    pub(super) fn new(
        a: &CsrView<'_, T>,
        points: &[MergePoint],
        tile: usize,
        threads: &Threads,
    ) -> Self {
        assert!((1..=MOST_ROWS).contains(&tile), "tiles of {tile} rows");
        let bounds: Vec<usize> = points.iter().map(|point| point.row).collect();
        let mut row_ptr = vec![0; a.rows() + 1];
        let mut places = vec![0; a.rows() + 1];
        let (of_rows, of_places) = (Disjoint::new(&mut row_ptr[1..]), Disjoint::new(&mut places));
        let sort_part = |part: usize| {
            let rows = bounds[part]..bounds[part + 1];
            // SAFETY: the partitions do not overlap.
            let (ends, places) =
                unsafe { (of_rows.range(rows.clone()), of_places.range(rows.clone())) };
            let mut first = rows.start;
            for (ends, places) in ends.chunks_mut(tile).zip(places.chunks_mut(tile)) {
                let of_tile = &a.row_ptr()[first..=first + places.len()];
                sort(of_tile, usize::from(first == rows.start), places);
                let mut end = of_tile[0];
                for (to, &place) in ends.iter_mut().zip(&*places) {
                    end += of_tile[usize::from(place) + 1] - of_tile[usize::from(place)];
                    *to = end;
                }
                first += places.len();
            }
        };
        let parts = bounds.len() - 1;
        threads.for_each_chunk(parts, Schedule::Static, 0, |parts| parts.for_each(sort_part));
        let rows = Rows { places, bounds, tile };
        let (mut col_ind, mut values) = (vec![0; a.nnz()], vec![T::ZERO; a.nnz()]);
        rows.arrange(a.row_ptr(), a.col_ind(), &mut col_ind, threads);
        rows.arrange(a.row_ptr(), a.values(), &mut values, threads);
        Self { cols: a.cols(), row_ptr, col_ind, values, rows }
    }

    /// Takes the values of `a`, whose pattern is that of the matrix that this was made from.
    pub(super) fn set_values(&mut self, a: &CsrView<'_, T>, threads: &Threads) {
        self.rows.arrange(a.row_ptr(), a.values(), &mut self.values, threads);
    }

    /// The matrix of the sorted rows.
    pub(super) fn view(&self) -> CsrView<'_, T> {
        let shape = (self.row_ptr.len() - 1, self.cols);
        // SAFETY: by the invariants: whole rows of a matrix with so many columns, each once, and their ends.
        unsafe { CsrView::new_unchecked(shape, &self.row_ptr, &self.col_ind, &self.values) }
    }

    pub(super) fn places(&self) -> Places<'_> {
        Places(&self.rows.places)
    }

    pub(super) fn bytes(&self) -> usize {
        Self::most_bytes(&self.view())
    }
}

impl Rows {
    /// Writes an element for each entry in this order, from those in the order of the matrix with these row pointers.
    fn arrange<U: Copy + Send + Sync>(
        &self,
        row_ptr: &[u32],
        from: &[U],
        to: &mut [U],
        threads: &Threads,
    ) {
        assert_eq!((row_ptr.len(), from.len()), (self.places.len(), to.len()), "one pattern");
        let to = Disjoint::new(to);
        let arrange_part = |part: usize| {
            let rows = self.bounds[part]..self.bounds[part + 1];
            let entries = row_ptr[rows.start] as usize..row_ptr[rows.end] as usize;
            // SAFETY: the partitions do not overlap.
            let mut left = unsafe { to.range(entries) };
            let mut first = rows.start;
            for places in self.places[rows].chunks(self.tile) {
                for &place in places {
                    let row = first + usize::from(place);
                    let of_row = &from[row_ptr[row] as usize..row_ptr[row + 1] as usize];
                    let (to, rest) = left.split_at_mut(of_row.len());
                    to.copy_from_slice(of_row);
                    left = rest;
                }
                first += places.len();
            }
        };
        let parts = self.bounds.len() - 1;
        threads.for_each_chunk(parts, Schedule::Static, 0, |parts| parts.for_each(arrange_part));
    }
}

/// Lengths that are told apart; longer rows come last.
const LENGTHS: usize = 64;

/// The rows between these pointers by ascending length after the `kept` first ones, rows of one length in their order.
fn sort(row_ptr: &[u32], kept: usize, places: &mut [u8]) {
    let length = |row: usize| ((row_ptr[row + 1] - row_ptr[row]) as usize).min(LENGTHS - 1);
    let (first, places) = places.split_at_mut(kept);
    (0..).zip(first).for_each(|(row, place)| *place = row);
    counting_sort::<LENGTHS>(
        places.len(),
        |row| length(kept + row),
        |place, row| places[place] = (kept + row) as u8,
    );
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;

    use super::*;

    fn point(row: usize) -> MergePoint {
        MergePoint { row, entry: 0 }
    }

    #[test]
    fn tiles_are_sorted_each_for_itself_and_partitions_keep_their_first_row() {
        // Lengths 3 0 1 | 2 70 || 1 0 80 | 0
        let row_ptr = vec![0, 3, 3, 4, 6, 76, 77, 77, 157, 157];
        let columns = row_ptr.windows(2).flat_map(|ends: &[u32]| 0..ends[1] - ends[0]).collect();
        let values = (0..157).map(f64::from).collect();
        let a = Csr::new((9, 80), row_ptr, columns, values).unwrap();
        let (points, threads) = ([point(0), point(5), point(9)], Threads::new(2));
        let mut sorted = Sorted::new(&a.view(), &points, 3, &threads);
        assert_eq!(sorted.rows.places, [0, 1, 2, 0, 1, 0, 1, 2, 0, 0]);
        assert_eq!(sorted.view().row_ptr(), [0, 3, 3, 4, 6, 76, 77, 77, 157, 157]);
        let sorted_by_four = Sorted::new(&a.view(), &points, 4, &threads);
        assert_eq!(sorted_by_four.rows.places, [0, 1, 2, 3, 0, 0, 1, 3, 2, 0]);
        assert_eq!(sorted_by_four.bytes(), 10 * 5 + 157 * 12);
        sorted.set_values(&a.view(), &threads);
        assert_eq!(sorted.view(), a.view());
        let view = sorted_by_four.view();
        assert_eq!(view.row_ptr(), [0, 3, 3, 4, 6, 76, 77, 77, 77, 157]);
        assert_eq!((view.values()[77], view.col_ind()[156]), (77.0, 79));
    }

    #[test]
    fn a_tile_has_as_many_rows_as_a_byte_numbers() {
        let row_ptr: Vec<u32> = (0..=256).map(|row| 3 * row - u32::from(row == 256)).collect();
        let a = Csr::new((256, 1 << 10), row_ptr, (0..767).collect(), vec![1.0; 767]).unwrap();
        let sorted = Sorted::new(&a.view(), &[point(0), point(256)], 256, &Threads::new(1));
        let expected: Vec<u8> = [0, 255].into_iter().chain(1..255).chain([0]).collect();
        assert_eq!(sorted.rows.places, expected);
        assert_eq!(sorted.view().col_ind()[..6], [0, 1, 2, 765, 766, 3]);
        // SAFETY: a row, and one behind it.
        assert_eq!(unsafe { sorted.places().at_row(1).place(1) }, 1);
    }
}

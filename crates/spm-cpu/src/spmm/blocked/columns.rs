//! Column indices of a row: 32-bit as in CSR, or compressed to 16 bits.

use spm_formats::{CsrView, Scalar};

use crate::simd;

/// Columns of A's entries.
pub(super) trait Columns: Copy + Send + Sync {
    /// The columns from one entry of a row on.
    type List: Copy;

    /// The columns of row `row` from `entry` on, which is an entry of that row (or its end).
    ///
    /// # Safety
    /// The matrix has the row, or it is the one after the last; the entry is not beyond the last.
    unsafe fn list(self, row: usize, entry: usize) -> Self::List;

    /// The column of the entry `at` entries after the list's first.
    ///
    /// # Safety
    /// The row has this entry.
    unsafe fn column(list: Self::List, at: usize) -> usize;

    /// The column of the entry `at` entries after the list's first, in whatever row that is.
    ///
    /// # Safety
    /// The matrix has this entry.
    unsafe fn ahead(list: Self::List, at: usize) -> usize;

    /// Prefetches the columns from the one `at` entries after the list's first on; any `at` is
    /// allowed.
    fn prefetch(self, list: Self::List, at: usize);
}

/// The 32-bit column indices of CSR.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wide<'a>(pub(super) &'a [u32]);

impl Columns for Wide<'_> {
    type List = *const u32;

    #[inline(always)]
    unsafe fn list(self, _: usize, entry: usize) -> *const u32 {
        // SAFETY: the caller's promise.
        unsafe { self.0.as_ptr().add(entry) }
    }

    #[inline(always)]
    unsafe fn column(list: *const u32, at: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { *list.add(at) as usize }
    }

    #[inline(always)]
    unsafe fn ahead(list: *const u32, at: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { Self::column(list, at) }
    }

    #[inline(always)]
    fn prefetch(self, list: *const u32, at: usize) {
        simd::prefetch(list.wrapping_add(at));
    }
}

/// Lists of 16-bit distances from the smallest column of a row. Rows with the same distances share
/// one list, for example the rows of a stencil or the unknowns of one node of a mesh.
#[derive(Debug)]
pub(super) struct Lists {
    /// The smallest column of each row, and the element of `distances` that its entry 0 would have,
    /// modulo 2^32, if entries were counted through the matrix.
    rows: Vec<(u32, u32)>,
    distances: Vec<u16>,
}

/// Size of the hash table that finds equal lists; a list that was evicted from it is stored again.
const TABLE: usize = 1 << 12;

impl Lists {
    /// Bytes that [`Lists::new`] allocates at most, while its arrays grow.
    pub(super) fn most_bytes<T: Scalar>(a: &CsrView<'_, T>) -> usize {
        let of_rows = (a.rows() + 1) * size_of::<(u32, u32)>();
        let table = TABLE * size_of::<std::ops::Range<usize>>();
        // An array that doubles is there twice for a moment.
        of_rows + table + (3 * a.nnz() + longest_row(a)) * size_of::<u16>()
    }

    /// `None` if the columns of some row do not fit 16 bits.
    pub(super) fn new<T: Scalar>(a: &CsrView<'_, T>) -> Option<Self> {
        let mut lists = Self { rows: Vec::with_capacity(a.rows() + 1), distances: Vec::new() };
        let mut table = vec![0..0; TABLE];
        let mut list = Vec::with_capacity(longest_row(a));
        for ends in a.row_ptr().windows(2) {
            let columns = &a.col_ind()[ends[0] as usize..ends[1] as usize];
            let first = columns.iter().copied().min().unwrap_or(0);
            list.clear();
            let mut hash = 0_u64;
            for &column in columns {
                let distance = u16::try_from(column - first).ok()?;
                hash = (hash ^ u64::from(distance)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                hash ^= hash >> 29;
                list.push(distance);
            }
            let place = &mut table[hash as usize % TABLE];
            if lists.distances[place.clone()] != list[..] {
                let start = lists.distances.len();
                lists.distances.extend_from_slice(&list);
                *place = start..lists.distances.len();
            }
            lists.rows.push((first, (place.start as u32).wrapping_sub(ends[0])));
        }
        // Where the part of a thread ends behind the last row.
        lists.rows.push((0, 0));
        Some(lists)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.rows) + size_of_val(&*self.distances)
    }
}

/// Entries of the longest row.
fn longest_row<T: Scalar>(a: &CsrView<'_, T>) -> usize {
    a.row_ptr().windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0)
}

/// Columns from [`Lists`]: two bytes for each entry of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrow<'a>(pub(super) &'a Lists);

impl Columns for Narrow<'_> {
    type List = (usize, *const u16);

    #[inline(always)]
    unsafe fn list(self, row: usize, entry: usize) -> (usize, *const u16) {
        // SAFETY: the caller's promise; there is one element more than rows.
        let (first, start) = unsafe { *self.0.rows.get_unchecked(row) };
        let start = start.wrapping_add(entry as u32) as usize;
        (first as usize, self.0.distances.as_ptr().wrapping_add(start))
    }

    #[inline(always)]
    unsafe fn column((first, list): (usize, *const u16), at: usize) -> usize {
        // SAFETY: the caller's promise; a list has as many elements as each row that shares it.
        unsafe { first + usize::from(*list.add(at)) }
    }

    /// The first column of the row itself, which is in cache, because the next list is unknown
    /// here.
    #[inline(always)]
    unsafe fn ahead((first, _): (usize, *const u16), _: usize) -> usize {
        first
    }

    #[inline(always)]
    fn prefetch(self, (_, list): (usize, *const u16), at: usize) {
        simd::prefetch(list.wrapping_add(at));
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;

    use super::*;

    fn check(a: &Csr<f64>, stored: usize) {
        let a = a.view();
        let lists = Lists::new(&a).unwrap();
        assert_eq!(lists.distances.len(), stored);
        for row in 0..a.rows() {
            let (start, end) = (a.row_ptr()[row] as usize, a.row_ptr()[row + 1] as usize);
            for entry in start..end {
                // SAFETY: entries of the row.
                let (narrow, wide) = unsafe {
                    let narrow = Narrow(&lists).list(row, entry);
                    let wide = Wide(a.col_ind()).list(row, entry);
                    (Narrow::column(narrow, end - 1 - entry), Wide::column(wide, end - 1 - entry))
                };
                assert_eq!(narrow, wide);
            }
        }
    }

    #[test]
    fn rows_with_equal_distances_share_a_list() {
        // Distances 0 2 | 0 2 | none | 0 1 | 0 2
        let columns = vec![1, 3, 2, 4, 0, 1, 65_534, 65_536];
        let a = Csr::new((5, 70_000), vec![0, 2, 4, 4, 6, 8], columns, vec![1.0; 8]).unwrap();
        check(&a, 4);
        // More lists of one length than the table has places.
        let columns = (0..9000).flat_map(|row| [0, 1 + row % 97, 100 + row / 97]).collect();
        let row_ptr = (0..=9000).map(|row| 3 * row).collect();
        check(&Csr::new((9000, 200), row_ptr, columns, vec![1.0; 27_000]).unwrap(), 27_000);
        check(&Csr::empty(0, 0).unwrap(), 0);
    }

    #[test]
    fn a_row_that_reaches_too_far_is_refused() {
        let reach = |last| Csr::new((1, 70_000), vec![0, 2], vec![3, last], vec![1.0; 2]).unwrap();
        check(&reach(65_538), 2);
        assert!(Lists::new(&reach(65_539).view()).is_none());
    }
}

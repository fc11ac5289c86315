//! Symmetric matrices: each entry (i, j) below the diagonal with its mirror (j, i) above it.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use spm_formats::{CsrView, Scalar, partition};

use crate::Threads;

/// Calls `visit` with each entry of `rows` on or below the diagonal, in their order, and with its mirror, both as
/// places in `col_ind`; an entry of the diagonal is its own mirror. Stops where `visit` says false.
///
/// `next` is workspace, with an element for each row up to the last of `rows`: the place of the first entry right
/// of the diagonal whose mirror has not been met. The mirror of (i, j) is that of row j, because the rows i come in
/// ascending order.
///
/// Returns whether all entries have been visited. In a matrix whose pattern is not symmetric, a place after the
/// end of its row may have been given for a mirror: then `next` is beyond that row's end.
#[inline(always)]
pub(crate) fn visit_mirrors<T: Scalar>(
    a: &CsrView<'_, T>,
    rows: Range<usize>,
    next: &mut [u32],
    mut visit: impl FnMut(usize, usize) -> bool,
) -> bool {
    let cols = a.col_ind();
    // Of rows before these no entry has been met: the first mirror is searched for.
    next[..rows.start].copy_from_slice(&a.row_ptr()[..rows.start]);
    for row in rows {
        let entries = a.row_range(row);
        let mut entry = entries.start;
        for &col in &cols[entries.clone()] {
            if col as usize >= row {
                break;
            }
            let next = &mut next[col as usize];
            if cols.get(*next as usize) != Some(&(row as u32)) {
                match search(a, row, col as usize, *next) {
                    Some(mirror) => *next = mirror,
                    None => return false,
                }
            }
            if !visit(entry, *next as usize) {
                return false;
            }
            *next += 1;
            entry += 1;
        }
        if entry < entries.end && cols[entry] as usize == row {
            if !visit(entry, entry) {
                return false;
            }
            entry += 1;
        }
        next[row] = entry as u32;
    }
    true
}

/// The place of (`col`, `row`), from `start` on.
#[cold]
#[inline(never)]
fn search<T: Scalar>(a: &CsrView<'_, T>, row: usize, col: usize, start: u32) -> Option<u32> {
    let cols = a.col_ind().get(start as usize..a.row_range(col).end)?;
    let place = cols.binary_search(&(row as u32)).ok()?;
    Some(start + place as u32)
}

/// Whether each entry has a mirror, and both are `equal`, which is given their places in the arrays of entries.
/// Takes memory for threads x rows words.
pub(crate) fn is_symmetric<T: Scalar>(
    a: &CsrView<'_, T>,
    threads: &Threads,
    equal: impl Fn(usize, usize) -> bool + Sync,
) -> bool {
    if a.rows() != a.cols() {
        return false;
    }
    let bounds = partition::by_entries(a.row_ptr(), threads.count());
    let mirrored = AtomicUsize::new(0);
    threads.run(|part| {
        let rows = bounds[part]..bounds[part + 1];
        let mut next = vec![0; rows.end];
        let mut entries = 0;
        let visited = visit_mirrors(a, rows, &mut next, |entry, mirror| {
            entries += if entry == mirror { 1 } else { 2 };
            equal(entry, mirror)
        });
        let inside = || next.iter().zip(&a.row_ptr()[1..]).all(|(next, end)| next <= end);
        if visited && inside() {
            mirrored.fetch_add(entries, Ordering::Relaxed);
        }
    });
    mirrored.into_inner() == a.nnz()
}

/// Why the matrix is not symmetric; `None` if it is. As [`is_symmetric`].
pub(crate) fn asymmetry<T: Scalar>(
    a: &CsrView<'_, T>,
    threads: &Threads,
    equal: impl Fn(usize, usize) -> bool + Sync,
) -> Option<String> {
    if a.rows() != a.cols() {
        return Some(format!("{} x {} is not square", a.rows(), a.cols()));
    }
    if is_symmetric(a, threads, &equal) {
        return None;
    }
    let alone = (0..a.rows()).find_map(|row| {
        let alone = a.row_range(row).find(|&entry| {
            let col = a.col_ind()[entry] as usize;
            let mirror = search(a, row, col, a.row_ptr()[col]);
            !mirror.is_some_and(|mirror| equal(entry, mirror as usize))
        });
        alone.map(|entry| (row, a.col_ind()[entry]))
    });
    let (row, col) = alone.expect("an entry has no equal");
    Some(format!("entry ({row}, {col}) has no equal at ({col}, {row})"))
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;
    use spm_testing::generate;

    use super::*;

    fn pattern_asymmetry(a: &Csr<f64>, threads: usize) -> Option<String> {
        asymmetry(&a.view(), &Threads::new(threads), |_, _| true)
    }

    #[test]
    fn symmetric_patterns_and_others() {
        for name in [
            "mesh2[n=9,order=random]",
            "arrow[n=50,width=2]",
            "road[n=90,edges=120]",
            "rmat[scale=5,edges=90]",
        ] {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            for threads in [1, 2, 5] {
                let reason = pattern_asymmetry(&a, threads);
                assert_eq!(reason.is_none(), !name.starts_with("rmat"), "{name}: {reason:?}");
            }
            // Without one of its entries.
            let (row_ptr, col_ind, values) = (a.row_ptr(), a.col_ind(), a.values());
            for left_out in (0..a.nnz()).step_by(7) {
                let row = row_ptr.partition_point(|&start| start as usize <= left_out) - 1;
                let col = col_ind[left_out] as usize;
                let mut row_ptr = row_ptr.to_vec();
                row_ptr[row + 1..].iter_mut().for_each(|end| *end -= 1);
                let without = |place: usize| place != left_out;
                let kept = (0..a.nnz()).filter(|&place| without(place));
                let (cols, values) = kept.map(|place| (col_ind[place], values[place])).unzip();
                let other: Csr<f64> = Csr::new(a.shape(), row_ptr, cols, values).unwrap();
                for threads in [1, 2, 5] {
                    let reason = pattern_asymmetry(&other, threads);
                    if name.starts_with("rmat") {
                        assert!(reason.is_some(), "{name} without ({row}, {col})");
                    } else {
                        let expected =
                            format!("entry ({col}, {row}) has no equal at ({row}, {col})");
                        assert_eq!(
                            reason,
                            (row != col).then_some(expected),
                            "{name}, {threads} threads"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_place_in_the_next_row_is_no_mirror() {
        // (2, 0) looks for column 2 behind the only entry of row 0, and finds it in row 1; (1, 3) makes up for it.
        let cols = vec![0, 2, 3, 0, 1];
        let a = Csr::new((4, 4), vec![0, 1, 3, 5, 5], cols, vec![1.0; 5]).unwrap();
        let reason = "entry (1, 3) has no equal at (3, 1)";
        assert_eq!(pattern_asymmetry(&a, 1).as_deref(), Some(reason));
        let wide = Csr::new((1, 2), vec![0, 1], vec![0], vec![1.0]).unwrap();
        assert_eq!(pattern_asymmetry(&wide, 2).as_deref(), Some("1 x 2 is not square"));
    }

    #[test]
    fn entries_that_are_not_equal() {
        let a =
            Csr::new((2, 2), vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        let values = a.values();
        let equal = |entry: usize, mirror: usize| values[entry] == values[mirror];
        let reason = asymmetry(&a.view(), &Threads::new(1), equal);
        assert_eq!(reason.as_deref(), Some("entry (0, 1) has no equal at (1, 0)"));
        assert_eq!(pattern_asymmetry(&a, 1), None);
    }
}

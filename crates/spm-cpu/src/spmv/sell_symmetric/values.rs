//! New values of `sell-symmetric`: the check that they are symmetric, and their places.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use spm_formats::{CsrView, RealScalar, Scalar};

use super::Part;
use crate::Threads;
use crate::simd::LANES;
use crate::values::{Stores, shifted};

/// Rows whose values are copied together.
const BLOCK: usize = 32 * LANES;

/// Whether the values of a matrix are symmetric, whose pattern is that of these parts.
pub(super) fn are_symmetric<T: RealScalar>(
    a: &CsrView<'_, T>,
    parts: &[Part<T>],
    threads: &Threads,
) -> bool {
    let different = AtomicBool::new(false);
    threads.run(|index| {
        if !has_equals_above(a, &parts[index]) {
            different.store(true, Ordering::Relaxed);
        }
    });
    !different.into_inner()
}

/// Whether the entries below the diagonal in the rows of a part have equals above it, which have been read
/// shortly before.
fn has_equals_above<T: RealScalar>(a: &CsrView<'_, T>, part: &Part<T>) -> bool {
    // Of each row, the first entry above the diagonal that no row of the part so far is the mirror of; 0 where
    // that is not known.
    let mut next = vec![0_u32; part.rows.end];
    for (row, &lower) in part.rows.clone().zip(&part.lower) {
        let (entries, lower) = (a.row_range(row), lower as usize);
        let (cols, values) = (&a.col_ind()[entries.clone()], &a.values()[entries.clone()]);
        // Without a branch for each value.
        let mut difference = 0;
        for (&col, value) in cols[..lower].iter().zip(values) {
            let next = &mut next[col as usize];
            if *next == 0 {
                // A row before the part.
                let (cols, _) = a.row(col as usize);
                let before = cols.partition_point(|&other| (other as usize) < row);
                *next = (a.row_range(col as usize).start + before) as u32;
            }
            difference |= a.values()[*next as usize].to_bits64() ^ value.to_bits64();
            *next += 1;
        }
        if difference != 0 {
            return false;
        }
        let diagonal = cols.get(lower) == Some(&(row as u32));
        next[row] = (entries.start + lower + usize::from(diagonal)) as u32;
    }
    true
}

/// The values on and above the diagonal, `count` in each row of a chunk without padding.
#[inline(always)]
fn full_rows<'a, T>(a: &CsrView<'a, T>, start: usize, count: usize) -> [&'a [T]; LANES] {
    std::array::from_fn(|lane| {
        let end = a.row_ptr()[start + lane + 1] as usize;
        &a.values()[end - count..][..count]
    })
}

/// The entries of a row on the diagonal and above it, where `lower` are below it.
fn upper<T>(a: &CsrView<'_, T>, row: usize, lower: u32) -> Range<usize> {
    let entries = a.row_range(row);
    entries.start + lower as usize..entries.end
}

impl<T: Scalar> Part<T> {
    /// Takes the values of `a`, whose pattern is that of the part's matrix. `copy` is called with all rows in
    /// blocks, each before its values are read here, so that they have come from memory in their order.
    pub(super) fn set_values(
        &mut self,
        a: &CsrView<'_, T>,
        stores: Stores,
        mut copy: impl FnMut(Range<usize>),
    ) {
        let (mut runs, mut firsts) = (&*self.runs, Vec::new());
        let (mut to, _) = self.values.as_chunks_mut::<LANES>();
        let mut copied = self.rows.start;
        let starts = (self.rows.start..).step_by(LANES);
        for ((start, &count), &full) in starts.zip(&self.run_counts).zip(&self.full) {
            if start >= copied {
                let end = (copied + BLOCK).min(self.rows.end);
                copy(copied..end);
                copied = end;
            }
            let of_chunk;
            (of_chunk, runs) = runs.split_at(usize::from(count));
            let width = of_chunk.iter().map(|run| run.count as usize).sum();
            let elements;
            (elements, to) = to.split_at_mut(width);
            if full {
                stores.transpose(full_rows(a, start, width), elements);
            } else {
                firsts.clear();
                firsts.extend(of_chunk.iter().flat_map(|run| run.first..run.first + run.count));
                let lower = &self.lower[start - self.rows.start..];
                let lanes = std::array::from_fn(|lane| upper(a, start + lane, lower[lane]));
                let vectors = shifted(a, &lanes, &firsts, T::ZERO, |value| value);
                elements.iter_mut().zip(vectors).for_each(|(to, new)| stores.put(new, to));
            }
        }
        copy(copied..self.rows.end);
    }
}

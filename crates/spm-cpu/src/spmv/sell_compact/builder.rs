//! What `sell-compact` stores besides values: the encoding of each chunk and its columns.

use std::ops::Range;

use spm_formats::{CsrView, Scalar};

use super::segment::{Chunk, Columns};
use crate::simd::LANES;

/// What a segment stores besides values.
pub(super) struct Builder<'a, T> {
    a: &'a CsrView<'a, T>,
    /// Bytes of a value; 0 if none is stored. Codes do not count, so that sums have the same order with them as
    /// without.
    value_bytes: usize,
    pub(super) chunks: Vec<Chunk>,
    pub(super) narrow: Vec<u16>,
    pub(super) wide: Vec<u32>,
    pub(super) masks: Vec<u8>,
    /// What [`Builder::contiguous`] finds, and room for it to be merged.
    firsts: [Vec<u32>; 2],
}

impl<'a, T: Scalar> Builder<'a, T> {
    pub(super) fn new(a: &'a CsrView<'a, T>, value_bytes: usize) -> Self {
        let (chunks, narrow, wide, masks, firsts) = Default::default();
        Self { a, value_bytes, chunks, narrow, wide, masks, firsts }
    }

    /// Appends a chunk of `rows` rows, given by their entries.
    pub(super) fn push(&mut self, lanes: &[Range<usize>; LANES], rows: usize) {
        let a = self.a;
        let columns: [&[u32]; LANES] =
            std::array::from_fn(|lane| &a.col_ind()[lanes[lane].clone()]);
        let lengths: [usize; LANES] = std::array::from_fn(|lane| columns[lane].len());
        let width = lengths.into_iter().max().unwrap_or(0);
        // The columns of a row ascend.
        let base = columns.iter().filter_map(|row| row.first()).min().copied().unwrap_or(0);
        let last = columns.iter().filter_map(|row| row.last()).max().copied().unwrap_or(0);
        let narrow = last - base <= u32::from(u16::MAX);
        let value_bytes = self.value_bytes;
        let gathered_bytes = width * LANES * (value_bytes + if narrow { 2 } else { 4 });
        let pairs = narrow && rows == LANES && value_bytes > 0 && in_pairs(&columns);
        // A tenth more bytes is less than what gathering costs.
        let most = (gathered_bytes + gathered_bytes / 10) / (LANES * value_bytes + 4);
        if !pairs && rows == LANES && self.contiguous(&columns, most) {
            return self.push_contiguous(lanes);
        }
        let shortest = lengths.into_iter().min().unwrap_or(0);
        let full = if rows == LANES { shortest } else { 0 };
        let kind = match () {
            () if pairs => Columns::Pairs,
            () if narrow => Columns::Narrow,
            () => Columns::Wide,
        };
        self.chunks.push(Chunk { base, width: width as u16, full: full as u16, columns: kind });
        let of = |col: u32| (col - base) as u16;
        if pairs {
            let of_pair = |pair: usize| {
                let firsts = columns.iter().step_by(2);
                firsts.map(move |row| {
                    row.get(pair).or(row.iter().nth_back(1)).map_or(0, |&col| of(col))
                })
            };
            self.narrow.extend((0..width).step_by(2).flat_map(of_pair));
        } else if narrow {
            place_columns(&columns, width, base, of, &mut self.narrow);
        } else {
            place_columns(&columns, width, base, |col| col, &mut self.wide);
        }
        if value_bytes == 0 {
            let mask = |element: usize| {
                let has = lengths.map(|length| u8::from(length > element));
                has.into_iter().rev().fold(0, |mask, has| mask << 1 | has)
            };
            self.masks.extend((full..width).map(mask));
        }
    }

    /// Whether the distinct values of column minus row position serve for the contiguous encoding: there are at
    /// most so many, and each such chunk column can be read whole. They are then the first of `firsts`,
    /// ascending.
    fn contiguous(&mut self, columns: &[&[u32]; LANES], most: usize) -> bool {
        // Most matrices fail here: two neighbours in the middle must have most columns in common,
        // one shifted by one.
        let (upper, lower) = (columns[LANES / 2 - 1], columns[LANES / 2]);
        let mut rest = lower.iter().peekable();
        let shifted = upper.iter().filter(|&&col| {
            while rest.next_if(|&&other| other <= col).is_some() {}
            rest.next_if(|&&other| other == col + 1).is_some()
        });
        let shifted = shifted.count();
        if shifted == 0 || 2 * shifted < upper.len().max(lower.len()) {
            return false;
        }
        let [firsts, room] = &mut self.firsts;
        firsts.clear();
        for (lane, row) in (0..).zip(columns) {
            if row.first().is_some_and(|&col| col < lane) {
                return false;
            }
            let of_row = row.iter().map(|&col| col - lane);
            merge(of_row, firsts, room);
            if firsts.len() > most {
                return false;
            }
        }
        let entries: usize = columns.iter().map(|row| row.len()).sum();
        let inside = firsts.last().is_none_or(|&first| first as usize + LANES <= self.a.cols());
        // Without values there is no padding either.
        let full = entries == firsts.len() * LANES;
        let few = u16::try_from(firsts.len()).is_ok();
        inside && few && (full || self.value_bytes > 0)
    }

    /// Appends a chunk whose chunk columns begin at the first of `firsts`.
    fn push_contiguous(&mut self, lanes: &[Range<usize>; LANES]) {
        let firsts = &*self.firsts[0];
        let width = firsts.len() as u16;
        let columns = Columns::Contiguous;
        self.chunks.push(Chunk { base: 0, width, full: width, columns });
        self.wide.extend_from_slice(firsts);
        let entries: usize = lanes.iter().map(Range::len).sum();
        if entries < firsts.len() * LANES {
            let masks = self.masks.len();
            self.masks.resize(masks + firsts.len(), 0);
            each_element(self.a, lanes, firsts, |element, lane, _| {
                self.masks[masks + element] |= 1 << lane;
            });
        }
    }
}

/// Adds ascending numbers to `firsts`, which ascend, too; each is there once. `room` takes what comes of it first.
pub(in crate::spmv) fn merge(
    of_row: impl ExactSizeIterator<Item = u32> + Clone,
    firsts: &mut Vec<u32>,
    room: &mut Vec<u32>,
) {
    // Nearly always the rows before have had the same ones.
    if of_row.len() == firsts.len() && of_row.clone().eq(firsts.iter().copied()) {
        return;
    }
    room.clear();
    let mut before = firsts.iter().copied().peekable();
    for first in of_row {
        room.extend(std::iter::from_fn(|| before.next_if(|&other| other < first)));
        before.next_if_eq(&first);
        room.push(first);
    }
    room.extend(before);
    std::mem::swap(firsts, room);
}

/// Whether the rows of a chunk are those of [`Columns::Pairs`].
pub(in crate::spmv) fn in_pairs(columns: &[&[u32]; LANES]) -> bool {
    let (pairs, _) = columns.as_chunks();
    pairs.iter().all(|[upper, lower]| {
        let (of_upper, rest) = upper.as_chunks();
        upper == lower && rest.is_empty() && of_upper.iter().all(|[col, next]| col + 1 == *next)
    })
}

/// Appends what `of` makes of the columns of a chunk's stored elements, in as many chunk columns as the longest of
/// its rows has entries. Padding repeats the row's last column; a row without entries takes the base.
fn place_columns<V: Copy>(
    rows: &[&[u32]; LANES],
    width: usize,
    base: u32,
    of: impl Fn(u32) -> V,
    to: &mut Vec<V>,
) {
    let full = rows.iter().map(|row| row.len()).min().unwrap_or(0);
    let whole = rows.map(|row| &row[..full]);
    let start = to.len();
    to.resize(start + width * LANES, of(base));
    let (to, _) = to[start..].as_chunks_mut::<LANES>();
    let (of_full, of_rest) = to.split_at_mut(full);
    for (element, to) in of_full.iter_mut().enumerate() {
        *to = whole.map(|row| of(row[element]));
    }
    for (element, to) in (full..).zip(of_rest) {
        *to = rows.map(|row| of(row.get(element).or(row.last()).copied().unwrap_or(base)));
    }
}

/// Calls `visit` with the chunk column, the row and the number of each entry of a chunk whose chunk columns begin at
/// `firsts`.
pub(in crate::spmv) fn each_element<T: Scalar>(
    a: &CsrView<'_, T>,
    lanes: &[Range<usize>],
    firsts: &[u32],
    mut visit: impl FnMut(usize, usize, usize),
) {
    for (lane, entries) in lanes.iter().enumerate() {
        // Nearly always a row has an entry in each chunk column.
        if entries.len() == firsts.len() {
            entries.clone().enumerate().for_each(|(element, entry)| visit(element, lane, entry));
            continue;
        }
        let mut element = 0;
        for entry in entries.clone() {
            let first = a.col_ind()[entry] - lane as u32;
            element += firsts[element..].iter().take_while(|&&f| f < first).count();
            visit(element, lane, entry);
        }
    }
}

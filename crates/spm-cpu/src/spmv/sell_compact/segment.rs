//! The storage of `sell-compact`: chunks of eight rows, each with the smallest of three encodings
//! of its column indices.

use std::ops::Range;

use spm_formats::{CsrView, Scalar};

use super::coding::Coding;
use crate::aligned::{ALIGNMENT, Aligned};
use crate::simd::LANES;
use crate::spmv::dictionary::Dictionary;
use crate::spmv::long_rows::LONG;

/// Maximum rows of a segment, so that positions inside it fit 16 bits.
pub(super) const MOST_ROWS: usize = 1 << 16;

/// How the columns of a chunk are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// Row l of the chunk has column c + l: one 32-bit c for eight stored elements, and no gather.
    Contiguous,
    /// 16-bit offsets from the chunk's base.
    Narrow,
    /// 32-bit columns.
    Wide,
}

/// A chunk of eight rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    /// The column that the offsets of [`Columns::Narrow`] count from.
    pub(super) base: u32,
    /// Stored elements of each row.
    pub(super) width: u16,
    /// Number of leading chunk columns in which all eight rows have an entry. Without stored
    /// values, the other chunk columns have a mask.
    pub(super) full: u16,
    pub(super) columns: Columns,
}

/// The values of the stored elements of a segment.
#[derive(Debug)]
pub(super) enum Values<T> {
    /// All values of the matrix are equal.
    Equal,
    Each(Aligned<T>),
    /// Positions in the table of the matrix.
    Codes(Aligned<u8>),
}

/// Consecutive rows of a matrix.
///
/// Chunk column s of a chunk holds one stored element of each of its eight rows. Padding has
/// value 0 and the column of another entry of the chunk. The arrays of all chunks are contiguous
/// and have no offsets, because a product reads each from front to back.
#[derive(Debug)]
pub(super) struct Segment<T> {
    pub(super) rows: Range<usize>,
    pub(super) chunks: Box<[Chunk]>,
    /// Row of each position, relative to the segment's first row; empty if the rows are in order.
    pub(super) positions: Box<[u16]>,
    pub(super) values: Values<T>,
    pub(super) narrow: Box<[u16]>,
    pub(super) wide: Box<[u32]>,
    /// Without stored values: for each chunk column beyond `full`, a bit for each row that has an
    /// entry.
    pub(super) masks: Box<[u8]>,
}

/// The entries of a row that a segment stores; none of a long row, which all threads share.
fn stored<T: Scalar>(a: &CsrView<'_, T>, row: usize) -> Range<usize> {
    let entries = a.row_range(row);
    if entries.len() > LONG { entries.start..entries.start } else { entries }
}

/// Some rows, sorted by length inside windows of `sigma` rows (a multiple of [`LANES`], or 1 for no
/// sorting), the longest first.
fn sorted<T: Scalar>(a: &CsrView<'_, T>, rows: &Range<usize>, sigma: usize) -> Vec<usize> {
    let mut order: Vec<usize> = rows.clone().collect();
    if sigma > 1 {
        for window in order.chunks_mut(sigma) {
            window.sort_by_key(|&row| std::cmp::Reverse(stored(a, row).len()));
        }
    }
    order
}

/// Stored elements of a segment; the encoding of contiguous columns may add a tenth.
pub(super) fn elements<T: Scalar>(a: &CsrView<'_, T>, rows: &Range<usize>, sigma: usize) -> usize {
    let order = sorted(a, rows, sigma);
    let widths =
        order.chunks(LANES).map(|chunk| chunk.iter().map(|&row| stored(a, row).len()).max());
    LANES * widths.flatten().sum::<usize>()
}

/// Bytes of `segments` segments of `rows` rows besides their stored elements.
pub(super) fn row_bytes<T>(segments: usize, rows: usize) -> usize {
    let of_segment = size_of::<Segment<T>>() + size_of::<Chunk>() + 2 * ALIGNMENT;
    segments * of_segment + rows.div_ceil(LANES) * size_of::<Chunk>() + rows * size_of::<u16>()
}

impl<T: Scalar> Segment<T> {
    /// Stores some rows, sorted by length inside windows of `sigma` rows, with the values as `coding`
    /// says.
    pub(super) fn new(
        a: &CsrView<'_, T>,
        rows: Range<usize>,
        sigma: usize,
        coding: &Coding<T>,
    ) -> Self {
        assert!(rows.len() <= MOST_ROWS, "positions of {} rows", rows.len());
        let order = sorted(a, &rows, sigma);
        let mut builder = Builder::new(a, coding);
        for lanes in order.chunks(LANES) {
            let lanes: Vec<_> = lanes.iter().map(|&row| stored(a, row)).collect();
            builder.push(&lanes);
        }
        let positions = order.iter().map(|row| (row - rows.start) as u16);
        Self {
            positions: if sigma > 1 { positions.collect() } else { Box::default() },
            rows,
            chunks: builder.chunks.into(),
            values: match coding {
                Coding::Equal(_) => Values::Equal,
                Coding::Each => Values::Each(builder.values.into()),
                Coding::Codes(_) => Values::Codes(builder.codes.into()),
            },
            narrow: builder.narrow.into(),
            wide: builder.wide.into(),
            masks: builder.masks.into(),
        }
    }

    /// Takes the values of `a`, whose pattern is that of the segment's matrix, in the same coding.
    pub(super) fn set_values(&mut self, a: &CsrView<'_, T>, coding: &Coding<T>) {
        let mut values = std::mem::replace(&mut self.values, Values::Equal);
        match (&mut values, coding) {
            (Values::Each(values), _) => self.replace(a, |value| value, values),
            (Values::Codes(codes), Coding::Codes(dictionary)) => {
                self.replace(a, |value| dictionary.code(value), codes);
            }
            _ => {}
        }
        self.values = values;
    }

    /// Writes what `of` makes of the values of `a` over the stored elements of its entries.
    fn replace<V>(&self, a: &CsrView<'_, T>, of: impl Fn(T) -> V, mut stored_values: &mut [V]) {
        let mut wide = &*self.wide;
        for (index, chunk) in self.chunks.iter().enumerate() {
            let width = usize::from(chunk.width);
            let elements;
            (elements, stored_values) = stored_values.split_at_mut(width * LANES);
            let of_chunk = match chunk.columns {
                Columns::Contiguous => width,
                Columns::Narrow => 0,
                Columns::Wide => width * LANES,
            };
            let columns;
            (columns, wide) = wide.split_at(of_chunk);
            for position in index * LANES..self.rows.len().min((index + 1) * LANES) {
                let lane = position % LANES;
                let row = self.positions.get(position).map_or(position, |&row| usize::from(row));
                let entries = stored(a, self.rows.start + row);
                if chunk.columns == Columns::Contiguous {
                    place(a, columns, lane, entries, &of, elements);
                } else {
                    let of_lane = elements.iter_mut().skip(lane).step_by(LANES);
                    of_lane
                        .zip(&a.values()[entries])
                        .for_each(|(element, &value)| *element = of(value));
                }
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Equal => 0,
            Values::Each(values) => size_of_val(&**values),
            Values::Codes(codes) => size_of_val(&**codes),
        };
        values
            + size_of_val(&*self.chunks)
            + size_of_val(&*self.positions)
            + size_of_val(&*self.narrow)
            + size_of_val(&*self.wide)
            + size_of_val(&*self.masks)
    }
}

struct Builder<'a, T> {
    a: &'a CsrView<'a, T>,
    coding: &'a Coding<T>,
    chunks: Vec<Chunk>,
    values: Vec<T>,
    codes: Vec<u8>,
    narrow: Vec<u16>,
    wide: Vec<u32>,
    masks: Vec<u8>,
}

impl<'a, T: Scalar> Builder<'a, T> {
    fn new(a: &'a CsrView<'a, T>, coding: &'a Coding<T>) -> Self {
        let (chunks, values, codes, narrow, wide, masks) = Default::default();
        Self { a, coding, chunks, values, codes, narrow, wide, masks }
    }

    fn with_values(&self) -> bool {
        !matches!(self.coding, Coding::Equal(_))
    }

    /// Appends a chunk of up to [`LANES`] rows, given by their entries.
    fn push(&mut self, lanes: &[Range<usize>]) {
        let columns = |lane: &Range<usize>| &self.a.col_ind()[lane.clone()];
        let width = lanes.iter().map(Range::len).max().unwrap_or(0);
        let all = || lanes.iter().flat_map(columns);
        let base = all().min().copied().unwrap_or(0);
        let narrow = all().all(|&col| col - base <= u32::from(u16::MAX));
        // Codes do not count, so that sums have the same order with them as without.
        let value_bytes = if self.with_values() { T::BYTES } else { 0 };
        let gathered_bytes = width * LANES * (value_bytes + if narrow { 2 } else { 4 });
        if let Some(firsts) = self.contiguous(lanes) {
            // A tenth more bytes is less than what gathering costs.
            let bytes = firsts.len() * (LANES * value_bytes + 4);
            if bytes <= gathered_bytes + gathered_bytes / 10 {
                return self.push_contiguous(lanes, &firsts);
            }
        }
        let shortest = lanes.iter().map(Range::len).min().unwrap_or(0);
        let full = if lanes.len() == LANES { shortest } else { 0 };
        let columns = if narrow { Columns::Narrow } else { Columns::Wide };
        self.chunks.push(Chunk { base, width: width as u16, full: full as u16, columns });
        for element in 0..width {
            let mut mask = 0;
            for lane in 0..LANES {
                let entry = lanes.get(lane).and_then(|entries| entries.clone().nth(element));
                // Padding repeats the row's last column; a row without entries takes the base.
                let last = || lanes.get(lane).and_then(|entries| entries.clone().last());
                let col = entry.or_else(last).map_or(base, |entry| self.a.col_ind()[entry]);
                match columns {
                    Columns::Narrow => self.narrow.push((col - base) as u16),
                    _ => self.wide.push(col),
                }
                let value = || entry.map_or(T::ZERO, |entry| self.a.values()[entry]);
                match self.coding {
                    Coding::Equal(_) => mask |= u8::from(entry.is_some()) << lane,
                    Coding::Each => self.values.push(value()),
                    Coding::Codes(dictionary) => self.codes.push(dictionary.code(value())),
                }
            }
            if !self.with_values() && element >= full {
                self.masks.push(mask);
            }
        }
    }

    /// The distinct values of column minus row position, ascending, for the contiguous encoding.
    /// `None` if the rows differ too much, or if such a chunk column could not be read whole.
    fn contiguous(&self, lanes: &[Range<usize>]) -> Option<Vec<u32>> {
        let columns = |lane: usize| &self.a.col_ind()[lanes[lane].clone()];
        // Most matrices fail here: two neighbours in the middle must have most columns in common,
        // one shifted by one.
        if lanes.len() < LANES {
            return None;
        }
        let (upper, lower) = (columns(LANES / 2 - 1), columns(LANES / 2));
        let shifted = upper.iter().filter(|&&col| lower.binary_search(&(col + 1)).is_ok()).count();
        if shifted == 0 || 2 * shifted < upper.len().max(lower.len()) {
            return None;
        }
        let mut firsts = Vec::with_capacity(2 * upper.len() * LANES);
        for lane in 0..LANES {
            for &col in columns(lane) {
                firsts.push(col.checked_sub(lane as u32)?);
            }
        }
        let entries = firsts.len();
        firsts.sort_unstable();
        firsts.dedup();
        let inside = firsts.last().is_none_or(|&first| first as usize + LANES <= self.a.cols());
        // Without values there is no padding either.
        let full = entries == firsts.len() * LANES;
        let few = u16::try_from(firsts.len()).is_ok();
        (inside && few && (self.with_values() || full)).then_some(firsts)
    }

    fn push_contiguous(&mut self, lanes: &[Range<usize>], firsts: &[u32]) {
        let width = firsts.len() as u16;
        let columns = Columns::Contiguous;
        self.chunks.push(Chunk { base: 0, width, full: width, columns });
        self.wide.extend_from_slice(firsts);
        match self.coding {
            Coding::Equal(_) => {}
            Coding::Each => place_all(self.a, lanes, firsts, T::ZERO, |v| v, &mut self.values),
            Coding::Codes(dictionary) => {
                let code = |value| dictionary.code(value);
                place_all(self.a, lanes, firsts, Dictionary::<T>::ZERO, code, &mut self.codes);
            }
        }
    }
}

/// Appends the stored elements of a chunk whose chunk columns begin at `firsts`: padding, and what `of`
/// makes of the values of its rows.
fn place_all<T: Scalar, V: Copy>(
    a: &CsrView<'_, T>,
    lanes: &[Range<usize>],
    firsts: &[u32],
    padding: V,
    of: impl Fn(T) -> V,
    values: &mut Vec<V>,
) {
    let start = values.len();
    values.resize(start + firsts.len() * LANES, padding);
    for (lane, entries) in lanes.iter().enumerate() {
        place(a, firsts, lane, entries.clone(), &of, &mut values[start..]);
    }
}

/// Writes what `of` makes of the entries of a row of a chunk to their places among the chunk columns
/// that begin at `firsts`.
pub(in crate::spmv) fn place<T: Scalar, V>(
    a: &CsrView<'_, T>,
    firsts: &[u32],
    lane: usize,
    entries: Range<usize>,
    of: impl Fn(T) -> V,
    values: &mut [V],
) {
    let mut element = 0;
    for (&col, &value) in a.col_ind()[entries.clone()].iter().zip(&a.values()[entries]) {
        let first = col - lane as u32;
        element += firsts[element..].iter().take_while(|&&f| f < first).count();
        values[element * LANES + lane] = of(value);
    }
}

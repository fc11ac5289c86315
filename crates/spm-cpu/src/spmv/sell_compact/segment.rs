//! The storage of `sell-compact`: chunks of eight rows, each with the smallest of four encodings
//! of its column indices, and the values of all of them.

use std::cmp::Reverse;
use std::mem::MaybeUninit;
use std::ops::Range;

use spm_formats::{CsrView, Scalar};

use super::builder::Builder;
use super::coding::Coding;
use crate::aligned::Aligned;
use crate::disjoint::Disjoint;
use crate::simd::{Isa, Job, LANES, Machine};
use crate::spmv::dictionary::Dictionary;
use crate::values::{Lanes, Stores};

/// Maximum rows of a segment, so that positions inside it fit 16 bits.
pub(super) const MOST_ROWS: usize = 1 << 16;

/// How the columns of a chunk are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// Row l of the chunk has column c + l: one 32-bit c for eight stored elements, and no gather.
    Contiguous,
    /// 16-bit offsets from the chunk's base.
    Narrow,
    /// Rows 2 l and 2 l + 1 of the chunk have the same columns, of which each other one follows the one
    /// before: one 16-bit offset from the chunk's base for four stored elements. Only with stored values.
    Pairs,
    /// 32-bit columns.
    Wide,
}

/// A chunk of eight rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    /// The column that offsets count from.
    pub(super) base: u32,
    /// Stored elements of each row.
    pub(super) width: u16,
    /// Number of leading chunk columns in which all eight rows have an entry. Without stored
    /// values, the other chunk columns have a mask.
    pub(super) full: u16,
    pub(super) columns: Columns,
}

/// The values of the stored elements of consecutive segments, one segment after the other: a long array, so that huge pages
/// hold it.
#[derive(Debug)]
pub(super) enum Values<T> {
    /// All values of the matrix are equal.
    Equal,
    Each(Aligned<T>),
    /// Positions in the table of the matrix.
    Codes(Aligned<u8>),
}

impl<T: Scalar> Values<T> {
    /// Of so many stored elements, which `set` writes.
    ///
    /// # Safety
    /// It writes all of them.
    pub(super) unsafe fn written(
        coding: &Coding<T>,
        elements: usize,
        set: impl FnOnce(Places<'_, T>),
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            match coding {
                Coding::Equal(_) => Self::Equal,
                Coding::Each => Self::Each(Aligned::written(elements, |values| {
                    set(Places::Each(Disjoint::new(values.as_chunks_mut().0)));
                })),
                Coding::Codes(_) => Self::Codes(Aligned::written(elements, |codes| {
                    set(Places::Codes(Disjoint::new(codes.as_chunks_mut().0)));
                })),
            }
        }
    }

    /// For new values of segments.
    pub(super) fn places(&mut self) -> Places<'_, T> {
        // SAFETY: who writes to places promises to write elements.
        unsafe {
            match self {
                Self::Equal => Places::Equal,
                Self::Each(values) => Places::Each(Disjoint::new(unset(values).as_chunks_mut().0)),
                Self::Codes(codes) => Places::Codes(Disjoint::new(unset(codes).as_chunks_mut().0)),
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Equal => 0,
            Self::Each(values) => size_of_val(&**values),
            Self::Codes(codes) => size_of_val(&**codes),
        }
    }
}

/// Where new values go, a vector for each chunk column of the segments. Several threads may write them; nothing is written
/// that is not initialised.
pub(super) enum Places<'a, T> {
    Equal,
    Each(Disjoint<'a, [MaybeUninit<T>; LANES]>),
    Codes(Disjoint<'a, [MaybeUninit<u8>; LANES]>),
}

/// The same elements.
///
/// # Safety
/// Nothing is written there that is not initialised.
unsafe fn unset<T: Copy>(set: &mut [T]) -> &mut [MaybeUninit<T>] {
    // SAFETY: `MaybeUninit` has the layout of what it may hold; the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(set.as_mut_ptr().cast(), set.len()) }
}

/// Consecutive rows of a matrix.
///
/// Chunk column s of a chunk holds one stored element of each of its eight rows. Padding has
/// value 0 and the column of another entry of the chunk. The arrays of all chunks are contiguous
/// and have no offsets, because a product reads each from front to back.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) rows: Range<usize>,
    /// Entries of the longest row that is stored at most.
    longest: usize,
    pub(super) chunks: Box<[Chunk]>,
    /// Row of each position, relative to the segment's first row; empty if the rows are in order.
    pub(super) positions: Box<[u16]>,
    /// Which of the arrays of values this segment's are in, and which of its elements they are.
    pub(super) array: usize,
    pub(super) elements: Range<usize>,
    pub(super) narrow: Box<[u16]>,
    pub(super) wide: Box<[u32]>,
    /// A bit for each row that has an entry in a chunk column. Without stored values: of chunk columns beyond
    /// `full`, for products. With them: of chunks with contiguous columns and padding, for new values.
    pub(super) masks: Box<[u8]>,
}

/// The entries of a row that a segment stores; none of a row of more than `longest` entries, which all threads
/// share.
fn stored<T: Scalar>(a: &CsrView<'_, T>, row: usize, longest: usize) -> Range<usize> {
    let entries = a.row_range(row);
    if entries.len() > longest { entries.start..entries.start } else { entries }
}

/// Some rows, sorted by length inside windows of `sigma` rows (a multiple of [`LANES`], or 1 for no
/// sorting), the longest that is stored first.
fn sorted<T: Scalar>(
    a: &CsrView<'_, T>,
    rows: &Range<usize>,
    sigma: usize,
    longest: usize,
) -> Vec<usize> {
    if sigma == 1 {
        return rows.clone().collect();
    }
    let (mut order, mut lengths, mut next): (Vec<usize>, Vec<usize>, Vec<usize>) =
        (rows.clone().collect(), vec![], vec![]);
    for window in order.chunks_mut(sigma) {
        let start = window[0];
        lengths.clear();
        lengths.extend(window.iter().map(|&row| stored(a, row, longest).len()));
        let most = lengths.iter().copied().max().unwrap_or(0);
        if most > sigma {
            // Rows of one length stay in their order.
            window.sort_unstable_by_key(|&row| (Reverse(lengths[row - start]), row));
            continue;
        }
        // By counting: where the rows of each length begin.
        next.clear();
        next.resize(most + 2, 0);
        lengths.iter().for_each(|&length| next[most - length + 1] += 1);
        (0..=most).for_each(|shorter| next[shorter + 1] += next[shorter]);
        for (row, &length) in (start..).zip(&lengths) {
            let place = &mut next[most - length];
            window[*place] = row;
            *place += 1;
        }
    }
    order
}

/// Stored elements of a segment; the encoding of contiguous columns may add a tenth.
pub(super) fn elements<T: Scalar>(
    a: &CsrView<'_, T>,
    rows: &Range<usize>,
    sigma: usize,
    longest: usize,
) -> usize {
    chunk_elements(a, &sorted(a, rows, sigma, longest), longest)
}

/// The same for rows that have been sorted.
fn chunk_elements<T: Scalar>(a: &CsrView<'_, T>, order: &[usize], longest: usize) -> usize {
    let length = |&row: &usize| stored(a, row, longest).len();
    let widths = order.chunks(LANES).map(|chunk| chunk.iter().map(length).max());
    LANES * widths.flatten().sum::<usize>()
}

/// Bytes of `segments` segments of `rows` rows besides their stored elements.
pub(super) fn row_bytes(segments: usize, rows: usize) -> usize {
    let of_segment = size_of::<Segment>() + size_of::<Chunk>();
    segments * of_segment + rows.div_ceil(LANES) * size_of::<Chunk>() + rows * size_of::<u16>()
}

impl Segment {
    /// Stores some rows without their values, those of up to `longest` entries, sorted by length inside windows of `sigma`
    /// rows. A value would take `value_bytes` bytes without codes, none where all are equal.
    pub(super) fn new<T: Scalar>(
        a: &CsrView<'_, T>,
        rows: Range<usize>,
        (sigma, longest): (usize, usize),
        value_bytes: usize,
    ) -> Self {
        assert!(rows.len() <= MOST_ROWS, "positions of {} rows", rows.len());
        let order = sorted(a, &rows, sigma, longest);
        let mut builder = Builder::new(a, value_bytes);
        for rows in order.chunks(LANES) {
            let lanes = std::array::from_fn(|lane| {
                rows.get(lane).map_or(0..0, |&row| stored(a, row, longest))
            });
            builder.push(&lanes, rows.len());
        }
        let positions = order.iter().map(|row| (row - rows.start) as u16);
        let elements = builder.chunks.iter().map(|chunk| LANES * usize::from(chunk.width)).sum();
        Self {
            positions: if sigma > 1 { positions.collect() } else { Box::default() },
            rows,
            longest,
            chunks: builder.chunks.into(),
            array: 0,
            elements: 0..elements,
            narrow: builder.narrow.into(),
            wide: builder.wide.into(),
            masks: builder.masks.into(),
        }
    }

    /// Takes the values of `a`, whose pattern is that of the segment's matrix, in the same coding. `copy` is
    /// called with all rows, `together` at a time, which are whole windows, each time before their values are
    /// read here, so that they have come from memory in their order. All of the segment's elements are written.
    ///
    /// # Safety
    /// Nothing else uses the segment's elements of `places` at the same time.
    pub(super) unsafe fn set_values<T: Scalar>(
        &self,
        a: &CsrView<'_, T>,
        (places, coding): (&Places<'_, T>, &Coding<T>),
        (machine, stores): (Machine, Stores),
        together: usize,
        copy: &mut dyn FnMut(Range<usize>),
    ) {
        let vectors = self.elements.start / LANES..self.elements.end / LANES;
        // SAFETY: the caller's promise.
        let to = unsafe {
            match (places, coding) {
                (Places::Each(values), _) => To::Values(values.range(vectors), stores),
                (Places::Codes(codes), Coding::Codes(dictionary)) => {
                    To::Codes(codes.range(vectors), dictionary)
                }
                _ => return copy(self.rows.clone()),
            }
        };
        machine.within(a.nnz()).run(Replace { segment: self, a: *a, to, together, copy });
    }

    /// The entries of the rows of a chunk.
    #[inline(always)]
    fn lanes<T: Scalar>(&self, a: &CsrView<'_, T>, index: usize) -> Lanes {
        let first = index * LANES;
        let start = self.rows.start + first;
        if self.positions.is_empty() && start + LANES <= self.rows.end {
            let of_rows = a.row_ptr()[start..].first_chunk().map(Lanes::in_order);
            // Long rows are not stored.
            if let Some(lanes) = of_rows.filter(|lanes| lanes.most() <= self.longest) {
                return lanes;
            }
        }
        Lanes::new(std::array::from_fn(|lane| {
            let position = first + lane;
            if position >= self.rows.len() {
                return 0..0;
            }
            let row = self.positions.get(position).map_or(position, |&row| usize::from(row));
            let entries = stored(a, self.rows.start + row, self.longest);
            entries.start as u32..entries.end as u32
        }))
    }

    /// Bytes besides those of values and masks.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.chunks)
            + size_of_val(&*self.positions)
            + size_of_val(&*self.narrow)
            + size_of_val(&*self.wide)
    }
}

/// Where new values of a segment go, a vector for each chunk column.
enum To<'a, T> {
    Values(&'a mut [[MaybeUninit<T>; LANES]], Stores),
    Codes(&'a mut [[MaybeUninit<u8>; LANES]], &'a Dictionary<T>),
}

/// Replaces the values of a segment by those of `a`; see [`Segment::set_values`].
struct Replace<'a, 'c, T> {
    segment: &'a Segment,
    a: CsrView<'a, T>,
    to: To<'a, T>,
    together: usize,
    copy: &'a mut (dyn FnMut(Range<usize>) + 'c),
}

// SAFETY: `As<T>` is `Replace<T>`.
unsafe impl<'a, 'c, T: Scalar> Job<T> for Replace<'a, 'c, T> {
    type As<U: Scalar> = Replace<'a, 'c, U>;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        let Self { segment, a, to, together, copy } = self;
        // SAFETY: `Segment::set_values` has asked for a machine for so many entries; `I` by the caller's promise.
        unsafe {
            match to {
                To::Values(to, stores) => {
                    let put = |at: usize, new| stores.put::<T, I>(new, to[at].as_mut_ptr().cast());
                    segment.each_vector::<T, I>(&a, together, copy, put);
                }
                To::Codes(to, dictionary) => {
                    let put = |at: usize, new| {
                        let mut values = [T::ZERO; LANES];
                        I::store(values.as_mut_ptr(), new);
                        to[at] = values.map(|value| MaybeUninit::new(dictionary.code(value)));
                    };
                    segment.each_vector::<T, I>(&a, together, copy, put);
                }
            }
        }
    }
}

impl Segment {
    /// Calls `put` with the position of each chunk column and its values in `a`.
    ///
    /// # Safety
    /// The numbers of the entries are below 2^31 if `I` gathers by them; the processor has the instructions of
    /// `I`.
    #[inline(always)]
    unsafe fn each_vector<T: Scalar, I: Isa<T>>(
        &self,
        a: &CsrView<'_, T>,
        together: usize,
        copy: &mut dyn FnMut(Range<usize>),
        mut put: impl FnMut(usize, I::Vector),
    ) {
        let (mut masks, mut at) = (&*self.masks, 0);
        for (index, chunk) in self.chunks.iter().enumerate() {
            if (index * LANES).is_multiple_of(together) {
                let start = self.rows.start + index * LANES;
                copy(start..self.rows.end.min(start + together));
            }
            let width = usize::from(chunk.width);
            let lanes = self.lanes(a, index);
            let put = |element, new| put(at + element, new);
            let has_masks = chunk.columns == Columns::Contiguous && lanes.shortest() < width;
            let of_chunk =
                has_masks.then(|| masks.split_off(..width).expect("a mask for each column"));
            // SAFETY: entries of `a`, in as many chunk columns as the builder has found; the caller's promise.
            unsafe { lanes.each::<T, I>(a.values(), width, of_chunk, put) };
            at += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::{Csr, convert};
    use spm_testing::edge_cases::with_entries;
    use spm_testing::generate;

    use super::super::builder::in_pairs;
    use super::*;
    use crate::spmv::long_rows::LONG;

    /// The encodings of the chunks of a matrix, with `change` made to its values.
    fn encodings(label: &str, change: impl Fn(&mut [f64])) -> Vec<Columns> {
        let mut a: Csr<f64> = generate::named(label).unwrap().generate().unwrap();
        change(a.values_mut());
        let a = a.view();
        let coding = Coding::of(a.values(), 0, &crate::Threads::new(1));
        let rows = 0..a.rows().min(MOST_ROWS);
        let segment = Segment::new(&a, rows, (1, LONG), coding.value_bytes());
        segment.chunks.iter().map(|chunk| chunk.columns).collect()
    }

    #[test]
    fn windows_begin_with_the_longest_row() {
        // The second window has a row that is longer than itself.
        let lengths = [1, 3, 0, 3, 2, 1, 3, 0, 2, 9, 2, 0, 0, 0, 0, 1, 5, 6];
        let entries =
            (0..).zip(lengths).flat_map(|(row, length)| (0..length).map(move |col| (row, col)));
        let a = convert::coo_to_csr(&with_entries::<f64>((lengths.len(), 9), entries));
        let order = |longest| sorted(&a.view(), &(0..lengths.len()), LANES, longest);
        let first = [1, 3, 6, 4, 0, 5, 2, 7];
        assert_eq!(order(9), [&first[..], &[9, 8, 10, 15, 11, 12, 13, 14], &[17, 16]].concat());
        // Without the long row, which the segment does not store.
        assert_eq!(order(8), [&first[..], &[8, 10, 15, 9, 11, 12, 13, 14], &[17, 16]].concat());
        assert_eq!(sorted(&a.view(), &(2..5), 1, 9), [2, 3, 4]);
    }

    /// What a segment stores for each entry of the matrix: rows of columns with values, those of padding with 0.
    fn decoded(segment: &Segment, values: &[f64], cols: usize) -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; cols]; segment.rows.len()];
        let (mut narrow, mut wide) = (&*segment.narrow, &*segment.wide);
        let mut values = values.chunks(LANES);
        for (index, chunk) in segment.chunks.iter().enumerate() {
            let width = usize::from(chunk.width);
            let mut take = |of_chunk: usize| narrow.split_off(..of_chunk).unwrap();
            let of_narrow = match chunk.columns {
                Columns::Narrow => take(width * LANES),
                Columns::Pairs => take(width / 2 * LANES / 2),
                Columns::Contiguous | Columns::Wide => &[],
            };
            let of_wide = match chunk.columns {
                Columns::Contiguous => width,
                Columns::Wide => width * LANES,
                Columns::Narrow | Columns::Pairs => 0,
            };
            let of_wide = wide.split_off(..of_wide).unwrap();
            for element in 0..width {
                let values = values.next().unwrap();
                for (lane, &value) in values.iter().enumerate() {
                    let at = |index: usize| chunk.base as usize + usize::from(of_narrow[index]);
                    let col = match chunk.columns {
                        Columns::Contiguous => of_wide[element] as usize + lane,
                        Columns::Wide => of_wide[element * LANES + lane] as usize,
                        Columns::Narrow => at(element * LANES + lane),
                        Columns::Pairs => at(element / 2 * LANES / 2 + lane / 2) + element % 2,
                    };
                    assert!(col < cols, "{:?} reads column {col} of {cols}", chunk.columns);
                    let position = index * LANES + lane;
                    if position < rows.len() {
                        let row = segment.positions.get(position).map_or(position, |&p| p.into());
                        rows[row][col] += value;
                    }
                }
            }
        }
        rows
    }

    #[test]
    fn segments_hold_the_entries_of_their_rows() {
        let generated = |name: &str| generate::named(name).unwrap().generate::<f64>().unwrap();
        // Rows that are alike but for their number.
        let alike = |cols: &dyn Fn(u32) -> Vec<u32>| {
            let entries = (0..16).flat_map(|row| cols(row).into_iter().map(move |col| (row, col)));
            convert::coo_to_csr(&with_entries::<f64>((16, 40), entries))
        };
        let matrices = [
            (generated("banded[n=203,lower=2,upper=3,drop=5]"), Columns::Contiguous),
            (generated("uniform[rows=90,cols=300,entries=700]"), Columns::Narrow),
            (generated("uniform[rows=30,cols=150000,entries=200]"), Columns::Wide),
            (generated("mesh2[n=7,unknowns=2]"), Columns::Pairs),
            // Pairs of which some are padding, the others at the end of the row.
            (alike(&|row| (38 - row / 2 % 3 * 2..40).collect()), Columns::Pairs),
            // Other columns in each second row; columns that are no neighbours.
            (alike(&|row| vec![row % 2 * 2, row % 2 * 2 + 1, 20, 21]), Columns::Narrow),
            (alike(&|row| vec![row / 8, row / 8 + 2, 20, 21]), Columns::Narrow),
        ];
        for (mut a, columns) in matrices {
            a.values_mut().iter_mut().enumerate().for_each(|(i, value)| *value = 1.0 + i as f64);
            let a = a.view();
            let coding = Coding::of(a.values(), 0, &crate::Threads::new(1));
            let machine = Machine::gathering(a.nnz());
            let found = [1, 2 * LANES].map(|sigma| {
                let segment = Segment::new(&a, 0..a.rows(), (sigma, LONG), coding.value_bytes());
                let by = (machine, Stores::THROUGH_CACHES);
                // SAFETY: the only segment writes all values, and nothing else does.
                let values = unsafe {
                    Values::written(&coding, segment.elements.end, |places| {
                        segment.set_values(&a, (&places, &coding), by, MOST_ROWS, &mut |_| {});
                    })
                };
                let Values::Each(values) = values else { panic!("values are stored") };
                for (i, row) in decoded(&segment, &values, a.cols()).iter().enumerate() {
                    let (cols, values) = a.row(i);
                    let mut expected = vec![0.0; a.cols()];
                    cols.iter().zip(values).for_each(|(&j, &value)| expected[j as usize] = value);
                    assert!(*row == expected, "{columns:?}, sigma {sigma}, row {i}");
                }
                segment.chunks.iter().any(|chunk| chunk.columns == columns)
            });
            assert!(found[0], "no {columns:?}");
        }
    }

    #[test]
    fn pairs_are_found() {
        let distinct =
            |values: &mut [f64]| values.iter_mut().enumerate().for_each(|(i, v)| *v = i as f64);
        // 98 rows: the last chunk is not whole.
        let mut pairs = vec![Columns::Pairs; 13];
        pairs[12] = Columns::Narrow;
        assert_eq!(encodings("mesh2[n=7,unknowns=2]", distinct), pairs);
        // Without values; with three unknowns a node; with columns that are far apart in most chunks.
        let none = |found: Vec<Columns>| found.iter().all(|&of| of != Columns::Pairs);
        assert!(none(encodings("mesh2[n=7,unknowns=2]", |values| values.fill(1.0))));
        assert!(none(encodings("mesh2[n=7,unknowns=3]", distinct)));
        let far = encodings("mesh2[n=200,unknowns=2,order=random]", distinct);
        assert!(far.contains(&Columns::Wide) && far.contains(&Columns::Pairs));
        // Of two columns one has no neighbour; two rows differ.
        let (upper, lower) = (&[3, 4, 7, 9][..], &[3, 4, 7, 8][..]);
        assert!(in_pairs(&[lower; LANES]) && !in_pairs(&[upper; LANES]));
        assert!(!in_pairs(&[lower, lower, lower, lower, lower, &lower[..2], lower, lower]));
        assert!(!in_pairs(&[&lower[..3]; LANES]));
    }
}

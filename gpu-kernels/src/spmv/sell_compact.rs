//! SELL-32-sigma SpMV with compressed columns, and no stored values if all are equal (own).
//!
//! As in [`sell`](super::SellUnsorted) there is one warp per chunk and one lane per row. The column
//! of stored element s of lane l is `base(s)` plus an offset. The offset is the lane itself and not
//! stored if neighbouring rows have neighbouring columns, as inside a stencil; otherwise it has 8, 16
//! or 32 bits, as the widest stored element of the chunk needs. [`CompactColumns`] makes the arrays
//! from those of a SELL-32-sigma matrix.
//!
//! How columns are stored is in `compact.rs`.

use super::compact::{All, Values, all_elements_are_safe, chunk_and_lane, lane_sum_by_mode};
#[cfg(not(target_arch = "nvptx64"))]
use super::compact::{BITS_8, BITS_16, BITS_32, BY_LANE};
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, Output, Real};
use crate::kernel::kernel;

/// The columns of a SELL-32-sigma matrix, shortened.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompactColumns {
    /// One per chunk: first chunk column (32 stored elements each), width, first group, and the start
    /// of its offsets in 128 bytes, times 4, plus how they are stored.
    pub chunks: Vec<[u32; 4]>,
    /// Four per group of stored elements.
    pub bases: Vec<u32>,
    /// The offsets.
    pub offsets: Vec<u32>,
}

#[cfg(not(target_arch = "nvptx64"))]
impl CompactColumns {
    /// Shortens the columns of a matrix with chunks of 32: `chunk_offsets` in stored elements,
    /// `row_lengths` by position (padding is whatever lies beyond them), `col_ind` one per stored
    /// element. `None` when the offsets take 2^37 bytes or more.
    ///
    /// # Panics
    /// When an offset of a chunk is not a multiple of 32, or there are 2^32 chunk columns.
    pub fn of(chunk_offsets: &[usize], row_lengths: &[u32], col_ind: &[u32]) -> Option<Self> {
        let mut compact = Self::default();
        let lanes = WARP_SIZE as usize;
        for (bounds, lengths) in chunk_offsets.windows(2).zip(row_lengths.chunks(lanes)) {
            assert!(bounds[0].is_multiple_of(lanes), "a chunk that is not 32 rows high");
            let columns = &col_ind[bounds[0]..bounds[1]];
            compact.push_chunk(bounds[0] / lanes, lengths, columns)?;
        }
        Some(compact)
    }

    /// Bytes of the arrays.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.chunks[..])
            + size_of_val(&self.bases[..])
            + size_of_val(&self.offsets[..])) as u64
    }

    fn push_chunk(&mut self, start: usize, lengths: &[u32], columns: &[u32]) -> Option<()> {
        let width = columns.len() / WARP_SIZE as usize;
        let elements: Vec<Element> = columns
            .chunks(WARP_SIZE as usize)
            .zip(0..)
            .map(|(columns, element)| Element::new(columns, lengths, element))
            .collect();
        let mode = if elements.iter().all(|s| s.by_lane.is_some()) {
            BY_LANE
        } else {
            elements.iter().map(Element::mode).max().unwrap_or(BY_LANE)
        };
        let start = u32::try_from(start).expect("fewer than 2^32 chunk columns");
        let first_group = self.bases.len() as u32 / 4;
        let offsets_start = self.offsets.len() / WARP_SIZE as usize;
        let tagged = u32::try_from(offsets_start << 2).ok()? | mode;
        self.chunks.push([start, width as u32, first_group, tagged]);
        for group in elements.chunks(4) {
            let base = |element: &Element| match mode {
                BY_LANE => element.by_lane.unwrap_or(0),
                BITS_32 => 0,
                _ => element.smallest,
            };
            let at = |j: usize| group.get(j).map_or(0, base);
            self.bases.extend((0..4).map(at));
            let bits = match mode {
                BY_LANE => continue,
                mode => 4 << mode,
            };
            for lane in 0..WARP_SIZE as usize {
                let mut words = 0_u128;
                for (j, element) in group.iter().enumerate() {
                    let offset = element.columns[lane].map_or(0, |column| column - base(element));
                    words |= u128::from(offset) << (bits * j);
                }
                self.offsets.extend((0..bits / 8).map(|word| (words >> (32 * word)) as u32));
            }
        }
        Some(())
    }
}

/// One stored element of the 32 lanes of a chunk.
#[cfg(not(target_arch = "nvptx64"))]
struct Element {
    /// By lane; none is padding.
    columns: [Option<u32>; WARP_SIZE as usize],
    smallest: u32,
    largest: u32,
    /// The base (wrapping) for which every column is base + lane, if there is one.
    by_lane: Option<u32>,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Element {
    fn new(elements: &[u32], lengths: &[u32], element: u32) -> Self {
        let mut columns = [None; WARP_SIZE as usize];
        for ((column, &stored), &length) in columns.iter_mut().zip(elements).zip(lengths) {
            *column = (element < length).then_some(stored);
        }
        let real = || columns.iter().flatten().copied();
        let mut bases =
            columns.iter().zip(0..).filter_map(|(c, lane)| c.map(|c| c.wrapping_sub(lane)));
        let first = bases.next();
        Self {
            smallest: real().min().unwrap_or(0),
            largest: real().max().unwrap_or(0),
            by_lane: first.filter(|&first| bases.all(|base| base == first)),
            columns,
        }
    }

    fn mode(&self) -> u32 {
        match self.largest - self.smallest {
            0..0x100 => BITS_8,
            0x100..0x1_0000 => BITS_16,
            _ => BITS_32,
        }
    }
}

/// The sum of this thread's position, which must be below the number of rows.
#[inline(always)]
fn position_sum<T: Real, V: Values<T>>(
    cols: u32,
    chunks: DevicePtr<[u32; 4]>,
    bases: DevicePtr<u32>,
    offsets: DevicePtr<u32>,
    row_lengths: DevicePtr<u32>,
    values: V,
    x: DevicePtr<T>,
) -> T {
    let (chunk, lane) = chunk_and_lane();
    let [start, width, first_group, tagged] = chunks.load(chunk);
    let bases = bases.offset(u64::from(first_group) * 4);
    let offsets = offsets.offset(u64::from(tagged >> 2) * u64::from(WARP_SIZE));
    let place = (V::place(start, lane), lane, cols.wrapping_sub(1));
    let length = || row_lengths.load(chunk * WARP_SIZE + lane);
    let mut elements = if all_elements_are_safe(values) { width } else { length() };
    // At most twice: over the padding, and without it if the sum is not finite.
    loop {
        let sum = lane_sum_by_mode(tagged & 3, elements, place, bases, offsets, values, x);
        if elements == width && !sum.is_finite() {
            let length = length();
            if length < width {
                elements = length;
                continue;
            }
        }
        return sum;
    }
}

kernel! {
    /// `sell-compact` with sorted rows. Block: a multiple of 32; grid: at least one warp per chunk.
    pub fn spmv_sell_compact<T: Real>(
        rows: u32,
        cols: u32,
        chunks: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        permutation: DevicePtr<u32>,
        row_lengths: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        let position = chunk * WARP_SIZE + lane;
        if position < rows {
            let sum = position_sum(cols, chunks, bases, offsets, row_lengths, values, x);
            y.store(permutation.load(position), sum);
        }
    }
    as SellCompactSorted
}

kernel! {
    /// `sell-compact` with the rows in their own order (sigma 1).
    pub fn spmv_sell_compact_unsorted<T: Real>(
        rows: u32,
        cols: u32,
        chunks: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        row_lengths: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        let position = chunk * WARP_SIZE + lane;
        if position < rows {
            let sum = position_sum(cols, chunks, bases, offsets, row_lengths, values, x);
            y.store(position, sum);
        }
    }
    as SellCompactUnsorted
}

kernel! {
    /// [`SellCompactSorted`] of a matrix whose entries all have the value `value`.
    pub fn spmv_sell_compact_equal<T: Real>(
        rows: u32,
        cols: u32,
        chunks: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        permutation: DevicePtr<u32>,
        row_lengths: DevicePtr<u32>,
        value: T,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        let position = chunk * WARP_SIZE + lane;
        if position < rows {
            let sum = position_sum(cols, chunks, bases, offsets, row_lengths, All(value), x);
            y.store(permutation.load(position), sum);
        }
    }
    as SellCompactEqualSorted
}

kernel! {
    /// [`SellCompactUnsorted`] of a matrix whose entries all have the value `value`.
    pub fn spmv_sell_compact_equal_unsorted<T: Real>(
        rows: u32,
        cols: u32,
        chunks: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        row_lengths: DevicePtr<u32>,
        value: T,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        let position = chunk * WARP_SIZE + lane;
        if position < rows {
            let sum = position_sum(cols, chunks, bases, offsets, row_lengths, All(value), x);
            y.store(position, sum);
        }
    }
    as SellCompactEqualUnsorted
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    /// A chunk of 32 rows with `width` stored elements.
    fn modes(width: usize, column: impl Fn(u32, u32) -> u32) -> (u32, CompactColumns) {
        let columns: Vec<u32> = (0..width as u32)
            .flat_map(|element| (0..WARP_SIZE).map(move |lane| (element, lane)))
            .map(|(element, lane)| column(element, lane))
            .collect();
        let compact =
            CompactColumns::of(&[0, columns.len()], &[width as u32; 32], &columns).unwrap();
        (compact.chunks[0][3] & 3, compact)
    }

    #[test]
    fn each_chunk_takes_what_it_needs() {
        let (mode, compact) = modes(5, |element, lane| 1000 * element + lane);
        assert_eq!((mode, compact.offsets.len()), (BY_LANE, 0));
        assert_eq!(compact.bases, [0, 1000, 2000, 3000, 4000, 0, 0, 0]);
        let (mode, compact) = modes(4, |element, lane| 70_000 * element + 8 * lane);
        assert_eq!((mode, compact.offsets.len()), (BITS_8, 32));
        assert_eq!(compact.offsets[..2], [0, 0x0808_0808]);
        let (mode, compact) = modes(3, |element, lane| 70_000 * element + 1000 * lane);
        assert_eq!((mode, compact.offsets.len()), (BITS_16, 64));
        assert_eq!(compact.offsets[2..4], [1000 << 16 | 1000, 1000]);
        let (mode, compact) = modes(1, |_, lane| 1_000_000 * lane);
        assert_eq!((mode, compact.offsets.len()), (BITS_32, 128));
        assert_eq!(compact.offsets[4..8], [1_000_000, 0, 0, 0]);
    }

    #[test]
    fn padding_does_not_count() {
        // Two rows, one stored element and none: the second holds column 9 as padding.
        let mut columns = [9; 32];
        columns[0] = 100_000;
        let compact = CompactColumns::of(&[0, 32], &[1, 0], &columns).unwrap();
        assert_eq!(compact.chunks, [[0, 1, 0, BY_LANE]]);
        assert_eq!(compact.bases[0], 100_000);
    }
}

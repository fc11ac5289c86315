//! How entries are cut into chunks, and columns into buckets.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::transpose::{bucket_move_bytes, bucket_sort_bytes};

use super::buckets::MOST_ITEMS;
use crate::device::Device;

/// Digits that a block tells apart, and columns of a bucket, unless the matrix needs more: with
/// more, the counters of a block take more shared memory than its entries.
const MOST_DIGITS: usize = 2048;
/// The least that the kernels take.
const LEAST_DIGITS: usize = 8;
/// How full the buckets are to be that one block sorts, if the entries were spread evenly.
const FILL: f64 = 0.85;
/// Chunks, at most. A chunk of one tile is best: what neighbouring tiles write to a bucket lies side
/// by side, and is written at about the same time.
const MOST_CHUNKS: usize = 4096;
/// Threads of a multiprocessor that blocks with these tiles leave room for.
const RESIDENT_THREADS: usize = 1024;

/// What the caller wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Threads of a block.
    pub(crate) block: usize,
    /// Columns of a bucket, rounded to a power of two; 0 chooses.
    pub(crate) width: usize,
    /// Chunks, at most; 0 chooses.
    pub(crate) chunks: usize,
    /// Whether a bucket that fits is sorted in shared memory, by one block.
    pub(crate) sort_buckets: bool,
}

/// Parts of the entries, one for each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// Entries of a thread in a tile.
    pub(crate) items: usize,
    /// Entries of a chunk: some tiles.
    pub(crate) chunk: usize,
    pub(crate) count: usize,
}

impl Chunks {
    /// As many as run at once, or a small multiple of it, all of the same tiles.
    pub(crate) fn new(device: &Device, length: usize, wish: &Wish) -> Self {
        let length = length.max(1);
        let at_once =
            device.info().multiprocessors as usize * (RESIDENT_THREADS / wish.block).max(1);
        let tiles = length.div_ceil(wish.block * MOST_ITEMS);
        let most = if wish.chunks == 0 { MOST_CHUNKS.max(at_once) } else { wish.chunks };
        let of_chunk = tiles.div_ceil(most);
        let wanted = tiles.div_ceil(of_chunk).next_multiple_of(at_once).min(most);
        let items = length.div_ceil(wanted * of_chunk * wish.block).clamp(1, MOST_ITEMS);
        let chunk = items * wish.block * of_chunk;
        Self { items, chunk, count: length.div_ceil(chunk) }
    }
}

/// Chunks and buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Threads of a block.
    pub(crate) block: usize,
    pub(crate) chunks: Chunks,
    /// Columns of a bucket: 2^shift.
    pub(crate) shift: u32,
    pub(crate) buckets: usize,
    /// At least the buckets between the first and the last that any chunk has; a power of two.
    pub(crate) digits: usize,
    cols: usize,
}

impl Cut {
    /// Buckets that one block can sort, if their number and their columns can be told apart by the
    /// counters of a block; otherwise the narrowest that can. `extents`: the smallest column of each
    /// chunk, and one after the largest.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] for a matrix with too many columns.
    pub(super) fn new(
        id: &'static str,
        device: &Device,
        cols: usize,
        length: usize,
        chunks: Chunks,
        extents: &[[u32; 2]],
        wish: &Wish,
    ) -> Result<Self, PlanError> {
        let of_width = |shift: u32| Self {
            block: wish.block,
            chunks,
            shift,
            buckets: cols.div_ceil(1 << shift),
            digits: digits(extents, shift),
            cols,
        };
        let wanted = if wish.width == 0 {
            let most = FILL * (wish.block * MOST_ITEMS) as f64 * cols as f64 / length as f64;
            (most.max(1.0) as usize).ilog2()
        } else {
            wish.width.max(1).next_power_of_two().ilog2()
        };
        // No need for more columns than there are.
        let wanted = wanted.min(cols.next_power_of_two().ilog2());
        let counters = |cut: &Self| cut.digits.max(1 << cut.shift);
        let candidates: Vec<Self> = (0..=16).map(of_width).collect();
        let fewest = candidates.iter().map(counters).min().unwrap_or(MOST_DIGITS);
        let best = candidates
            .into_iter()
            .filter(|cut| counters(cut) <= MOST_DIGITS.max(fewest))
            .min_by_key(|cut| cut.shift.abs_diff(wanted));
        let shared = device.info().limits.shared_bytes;
        match best {
            Some(cut) if cut.shared_bytes() <= shared => Ok(cut),
            _ if wish.block > 32 => {
                // Fewer warps have fewer counters.
                let wish = Wish { block: wish.block / 64 * 32, ..*wish };
                let chunks = Chunks::new(device, length, &wish);
                // The extents are of other chunks now: those of the whole matrix hold for any.
                let whole = extents.iter().copied().reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
                let extents: Vec<_> = whole.into_iter().collect();
                Self::new(id, device, cols, length, chunks, &extents, &wish)
            }
            _ => {
                let reason = format!(
                    "{cols} columns: two steps of what the shared memory of a block can count are \
                     not enough"
                );
                Err(PlanError::Unsupported { kernel: id, reason })
            }
        }
    }

    /// Buckets of half the columns, if there may be.
    pub(super) fn narrower(&self, extents: &[[u32; 2]], wish: &Wish) -> Option<Self> {
        if self.shift == 0 || wish.width != 0 || self.block != wish.block {
            return None;
        }
        let shift = self.shift - 1;
        let digits = digits(extents, shift);
        (digits <= MOST_DIGITS).then(|| Self {
            shift,
            digits,
            buckets: self.cols.div_ceil(1 << shift),
            ..self.clone()
        })
    }

    fn shared_bytes(&self) -> u32 {
        let block = self.block as u32;
        bucket_move_bytes(self.digits.max(1 << self.shift) as u32, block)
            .max(bucket_sort_bytes(1 << self.shift, block))
            + 1024
    }
}

/// Buckets of 2^shift columns that any chunk's columns span, as a power of two.
fn digits(extents: &[[u32; 2]], shift: u32) -> usize {
    let spans = extents.iter().map(|&[low, end]| ((end - 1) >> shift) - (low >> shift) + 1);
    (spans.max().unwrap_or(1) as usize).next_power_of_two().max(LEAST_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISH: Wish = Wish { block: 128, width: 0, chunks: 0, sort_buckets: true };

    #[test]
    fn chunks_cover_all_entries_and_none_is_empty() {
        let device = Device::emulated(Default::default());
        for length in [1, 100, 2047, 2049, 12_345, 1_000_000, 40_000_001] {
            for chunks in [0, 1, 3, 1000] {
                let cut = Chunks::new(&device, length, &Wish { chunks, ..WISH });
                assert!(cut.count * cut.chunk >= length, "{cut:?}");
                assert!((cut.count - 1) * cut.chunk < length, "{cut:?}");
                assert!((1..=MOST_ITEMS).contains(&cut.items), "{cut:?}");
                assert!(cut.chunk.is_multiple_of(cut.items * WISH.block), "{cut:?}");
                assert!(chunks == 0 || cut.count <= chunks, "{cut:?}");
            }
        }
    }

    #[test]
    fn buckets_cover_all_columns_and_each_chunk_has_digits_for_its_own() {
        let device = Device::emulated(Default::default());
        for cols in [1, 2, 100, 1025, 500_000, 100_000_000] {
            for width in [0, 1, 7, 4096] {
                let wish = Wish { width, ..WISH };
                let chunks = Chunks::new(&device, 12_345, &wish);
                let extents = [[0, cols as u32], [cols as u32 / 2, cols as u32]];
                let cut = Cut::new("k", &device, cols, 12_345, chunks, &extents, &wish).unwrap();
                assert!(cut.buckets << cut.shift >= cols, "{cut:?}");
                assert!((cut.buckets - 1) << cut.shift < cols, "{cut:?}");
                assert!(cut.digits >= cut.buckets && cut.digits.is_power_of_two(), "{cut:?}");
                assert!(cut.shift <= 16 && cut.shared_bytes() <= device.info().limits.shared_bytes);
            }
        }
    }

    #[test]
    fn a_band_needs_few_digits_for_many_buckets() {
        let device = Device::emulated(Default::default());
        let (cols, length) = (10_000_000, 270_000_000);
        let chunks = Chunks::new(&device, length, &WISH);
        let extents: Vec<[u32; 2]> =
            (0..100).map(|i| [i * 100_000, (i * 100_000 + 20_000).min(cols as u32)]).collect();
        let cut = Cut::new("k", &device, cols, length, chunks, &extents, &WISH).unwrap();
        assert!(cut.buckets > 100_000 && cut.digits <= 2048, "{cut:?}");
        let narrower = cut.narrower(&extents, &WISH).expect("still few digits");
        assert_eq!((narrower.shift, narrower.digits), (cut.shift - 1, 2 * cut.digits));
    }
}

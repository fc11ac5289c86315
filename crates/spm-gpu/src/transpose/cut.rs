//! The division of entries into chunks and of columns into buckets.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::transpose::{
    TILE_ITEMS, bucket_inverse, bucket_inverse_is_exact, bucket_move_bytes, bucket_sort_bytes,
};

use crate::device::Device;

/// Usual maximum of the digits of a block and of the columns of a bucket. Above it, the counters of
/// a block take more shared memory than its entries.
const MOST_DIGITS: usize = 2048;
/// The minimum number of digits; the number is a multiple of this.
const LEAST_DIGITS: usize = 8;
/// log2 of the maximum columns of a bucket; for 2^15 the counters of a block do not fit any more.
const MOST_LOG_WIDTH: u32 = 15;
/// Target fill of a bucket that one block sorts, assuming evenly spread entries.
const FILL: f64 = 0.85;
/// Maximum number of chunks. A chunk of one tile is best, because neighbouring tiles write adjacent
/// parts of a bucket at about the same time.
const MOST_CHUNKS: usize = 4096;
/// Threads of a multiprocessor that fit with these tiles.
const RESIDENT_THREADS: usize = 1024;

/// The requested tuning parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Threads of a block.
    pub(crate) block: usize,
    /// Columns of a bucket; 0 for an automatic choice.
    pub(crate) width: usize,
    /// Maximum number of chunks; 0 for an automatic choice.
    pub(crate) chunks: usize,
    /// Whether one block sorts a bucket that fits in shared memory.
    pub(crate) sort_buckets: bool,
}

/// The partition of the entries into chunks, one for each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// Entries of a thread in a tile.
    pub(crate) items: usize,
    /// Entries of a chunk, a multiple of a tile.
    pub(crate) chunk: usize,
    pub(crate) count: usize,
}

impl Chunks {
    /// As many chunks as blocks run at once, or a small multiple, with the same number of tiles
    /// each.
    pub(crate) fn new(device: &Device, length: usize, wish: &Wish) -> Self {
        let length = length.max(1);
        let at_once =
            device.info().multiprocessors as usize * (RESIDENT_THREADS / wish.block).max(1);
        let tiles = length.div_ceil(wish.block * TILE_ITEMS);
        let most = if wish.chunks == 0 { MOST_CHUNKS.max(at_once) } else { wish.chunks };
        let of_chunk = tiles.div_ceil(most);
        let wanted = tiles.div_ceil(of_chunk);
        // Fewer than run at once stay few: a thread takes as long for less than its entries.
        let wanted =
            if wanted < at_once { wanted } else { wanted.next_multiple_of(at_once).min(most) };
        let items = length.div_ceil(wanted * of_chunk * wish.block).clamp(1, TILE_ITEMS);
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
    /// Columns of a bucket.
    pub(crate) width: u32,
    pub(crate) buckets: usize,
    /// Number of digits: at least the number of buckets that any chunk spans, as a power of two, or
    /// the number of all buckets.
    pub(crate) digits: usize,
    /// Mask that gives the digit of a bucket; all bits if every bucket has its own digit.
    pub(crate) mask: u32,
    /// The digits before any narrowing.
    pub(crate) widest_digits: usize,
    cols: usize,
}

impl Cut {
    /// Buckets that one block can sort, if the counters of a block suffice for their number and
    /// their columns; otherwise the narrowest buckets for which they suffice. `extents`: the
    /// smallest column of each chunk, and one after the largest.
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
        let of_width = |width: u32| {
            let buckets = cols.div_ceil(width as usize);
            let (digits, mask) = digits(extents, width, buckets);
            let block = wish.block;
            Self { block, chunks, width, buckets, digits, mask, widest_digits: digits, cols }
        };
        let wanted = if wish.width == 0 {
            let most = FILL * (wish.block * TILE_ITEMS) as f64 * cols as f64 / length as f64;
            (most as usize).max(1)
        } else {
            wish.width
        };
        // No need for more columns than there are.
        let wanted = wanted.min(cols.max(1)).min(1 << MOST_LOG_WIDTH) as u32;
        let counters = |cut: &Self| cut.digits.max(cut.width as usize);
        let powers: Vec<Self> = (0..=MOST_LOG_WIDTH).map(|log| of_width(1 << log)).collect();
        let fewest = powers.iter().map(counters).min().unwrap_or(MOST_DIGITS);
        let exact = bucket_inverse_is_exact(cols, wanted).then(|| of_width(wanted));
        let best = powers
            .into_iter()
            .chain(exact)
            .filter(|cut| counters(cut) <= MOST_DIGITS.max(fewest))
            .min_by_key(|cut| cut.width.max(wanted).div_ceil(cut.width.min(wanted)));
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

    /// Buckets of two thirds of the columns, if these are allowed.
    pub(super) fn narrower(&self, extents: &[[u32; 2]], wish: &Wish) -> Option<Self> {
        if self.width <= 2 || wish.width != 0 || self.block != wish.block {
            return None;
        }
        let width = match (2 * self.width).div_ceil(3) {
            width if bucket_inverse_is_exact(self.cols, width) => width,
            width => 1 << width.ilog2(),
        };
        let buckets = self.cols.div_ceil(width as usize);
        let (digits, mask) = digits(extents, width, buckets);
        (digits <= MOST_DIGITS).then(|| Self { width, digits, mask, buckets, ..self.clone() })
    }

    /// The factor that maps a column to its bucket.
    pub(super) fn inverse(&self) -> u32 {
        bucket_inverse(self.width)
    }

    fn shared_bytes(&self) -> u32 {
        let block = self.block as u32;
        bucket_move_bytes((self.digits as u32).max(self.width), block)
            .max(bucket_sort_bytes(self.width, block))
            + 1024
    }
}

/// Digits for the buckets of `width` columns that any chunk's columns span, and their mask.
fn digits(extents: &[[u32; 2]], width: u32, buckets: usize) -> (usize, u32) {
    let spans = extents.iter().map(|&[low, end]| (end - 1) / width - low / width + 1);
    let spanned = spans.max().unwrap_or(1) as usize;
    let digits = spanned.next_power_of_two().max(LEAST_DIGITS);
    let all = buckets.next_multiple_of(LEAST_DIGITS);
    if all <= digits { (all, u32::MAX) } else { (digits, digits as u32 - 1) }
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
                assert!((1..=TILE_ITEMS).contains(&cut.items), "{cut:?}");
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
                let width = cut.width as usize;
                assert!(cut.buckets * width >= cols, "{cut:?}");
                assert!((cut.buckets - 1) * width < cols, "{cut:?}");
                assert!(bucket_inverse_is_exact(cols, cut.width), "{cut:?}");
                assert!(cut.digits >= cut.buckets && cut.mask == u32::MAX, "{cut:?}");
                assert!(cut.shared_bytes() <= device.info().limits.shared_bytes);
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
        assert_eq!(cut.mask as usize, cut.digits - 1);
        let narrower = cut.narrower(&extents, &WISH).expect("still few digits");
        assert_eq!(narrower.width, (2 * cut.width).div_ceil(3));
        assert!(narrower.digits >= cut.digits);
    }
}

//! The common part of the sliced formats with compressed columns: one warp per chunk, a base for
//! each chunk column and an offset of 0, 8, 16 or 32 bits for each lane, and the kinds of
//! values.
//!
//! Offsets are stored in groups of four stored elements, so that a lane loads the four of a group at
//! once:
//!
//! ```text
//! group g, 8 bits:  | lane 0: s s+1 s+2 s+3 | lane 1: s s+1 s+2 s+3 | ...   s = 4 g, 128 bytes
//! 16 and 32 bits: the same with 256 and 512 bytes; four bases per group in an array of their own
//! ```

use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, Real, thread};

/// The chunk of this warp and the lane.
#[inline(always)]
pub(crate) fn chunk_and_lane() -> (u32, u32) {
    let thread = thread::index_1d();
    (thread / WARP_SIZE, thread % WARP_SIZE)
}

/// How the columns of a chunk are stored.
pub(crate) const BY_LANE: u32 = 0;
pub(crate) const BITS_8: u32 = 1;
pub(crate) const BITS_16: u32 = 2;
pub(crate) const BITS_32: u32 = 3;

/// The offsets of a group of four stored elements.
trait Offsets: Copy {
    /// Whether they are added to bases; otherwise they are the columns.
    const HAVE_BASES: bool = true;
    fn load(self, group: u32, lane: u32) -> [u32; 4];
}

#[derive(Clone, Copy)]
struct ByLane;

#[derive(Clone, Copy)]
struct Bits8(DevicePtr<u32>);

#[derive(Clone, Copy)]
struct Bits16(DevicePtr<u32>);

#[derive(Clone, Copy)]
struct Bits32(DevicePtr<u32>);

impl Offsets for ByLane {
    #[inline(always)]
    fn load(self, _: u32, lane: u32) -> [u32; 4] {
        [lane; 4]
    }
}

impl Offsets for Bits8 {
    #[inline(always)]
    fn load(self, group: u32, lane: u32) -> [u32; 4] {
        let word = self.0.load_streaming(u64::from(group * WARP_SIZE + lane));
        [word & 0xff, word >> 8 & 0xff, word >> 16 & 0xff, word >> 24]
    }
}

impl Offsets for Bits16 {
    #[inline(always)]
    fn load(self, group: u32, lane: u32) -> [u32; 4] {
        let [low, high] =
            self.0.load_vector_streaming::<2>(u64::from(group * WARP_SIZE + lane) * 2);
        [low & 0xffff, low >> 16, high & 0xffff, high >> 16]
    }
}

impl Offsets for Bits32 {
    const HAVE_BASES: bool = false;
    #[inline(always)]
    fn load(self, group: u32, lane: u32) -> [u32; 4] {
        self.0.load_vector_streaming::<4>(u64::from(group * WARP_SIZE + lane) * 4)
    }
}

/// Where the values of the stored elements of a lane come from.
pub(crate) trait Values<T: Real>: Copy {
    /// Whether padding has a value that is not 0, so that it must not be walked.
    const PADDING_COUNTS: bool;
    /// The lane's place in a chunk that begins with chunk column `start`.
    fn place(start: u32, lane: u32) -> u64;
    /// The values of stored elements 4 `group` and following, of which `left` exist; the others are 0
    /// or not to be used.
    fn load(self, place: u64, group: u32, left: u32) -> [T; 4];
}

/// Stored element s of lane l is element 32 s + l.
impl<T: Real> Values<T> for DevicePtr<T> {
    const PADDING_COUNTS: bool = false;
    #[inline(always)]
    fn place(start: u32, lane: u32) -> u64 {
        u64::from(start) * u64::from(WARP_SIZE) + u64::from(lane)
    }
    #[inline(always)]
    fn load(self, place: u64, group: u32, left: u32) -> [T; 4] {
        let first = place + u64::from(group) * u64::from(4 * WARP_SIZE);
        let value = |j: u32| {
            if j < left { self.load_streaming(first + u64::from(j * WARP_SIZE)) } else { T::ZERO }
        };
        [value(0), value(1), value(2), value(3)]
    }
}

/// Values that single precision holds exactly, in groups of four like offsets: those of a lane with
/// one load. `start` is a multiple of 4.
#[derive(Clone, Copy)]
pub(crate) struct Single(pub(crate) DevicePtr<f32>);

impl<T: Real> Values<T> for Single {
    const PADDING_COUNTS: bool = false;
    #[inline(always)]
    fn place(start: u32, lane: u32) -> u64 {
        u64::from(start) * u64::from(WARP_SIZE) + u64::from(4 * lane)
    }
    #[inline(always)]
    fn load(self, place: u64, group: u32, _: u32) -> [T; 4] {
        let at = place + u64::from(group) * u64::from(4 * WARP_SIZE);
        self.0.load_vector_streaming::<4>(at).map(T::widen)
    }
}

/// Distinct values of a matrix that are numbered by a byte, the number 0 first.
pub const MOST_VALUES: u32 = 256;

/// Codes of a byte for values, in groups of four like offsets, and the values in shared memory. `start` is a
/// multiple of 4.
#[derive(Clone, Copy)]
pub(crate) struct Coded<T> {
    codes: DevicePtr<u32>,
    table: SharedArray<T>,
}

impl<T: Real> Coded<T> {
    /// Copies the [`MOST_VALUES`] values into shared memory; all threads of the block call it.
    #[inline(always)]
    pub(crate) fn new(codes: DevicePtr<u32>, table: DevicePtr<T>) -> Self {
        let shared = Pool::new().array(MOST_VALUES);
        let mut code = thread::thread_idx_x();
        while code < MOST_VALUES {
            shared.store(code, table.load(code));
            code += thread::block_dim_x();
        }
        thread::sync_threads();
        Self { codes, table: shared }
    }
}

/// Bytes of shared memory a block for values that are stored as codes: their table.
#[cfg(not(target_arch = "nvptx64"))]
pub fn coded_shared_bytes<T: Real>() -> u32 {
    let mut pool = Pool::new();
    let _: SharedArray<T> = pool.array(MOST_VALUES);
    pool.bytes()
}

impl<T: Real> Values<T> for Coded<T> {
    const PADDING_COUNTS: bool = false;
    #[inline(always)]
    fn place(start: u32, lane: u32) -> u64 {
        u64::from(start / 4) * u64::from(WARP_SIZE) + u64::from(lane)
    }
    #[inline(always)]
    fn load(self, place: u64, group: u32, _: u32) -> [T; 4] {
        let word = self.codes.load_streaming(place + u64::from(group * WARP_SIZE));
        [word & 0xff, word >> 8 & 0xff, word >> 16 & 0xff, word >> 24]
            .map(|code| self.table.load(code))
    }
}

/// The value of all entries.
#[derive(Clone, Copy)]
pub(crate) struct All<T>(pub(crate) T);

impl<T: Real> Values<T> for All<T> {
    const PADDING_COUNTS: bool = true;
    #[inline(always)]
    fn place(_: u32, _: u32) -> u64 {
        0
    }
    #[inline(always)]
    fn load(self, _: u64, _: u32, _: u32) -> [T; 4] {
        [self.0; 4]
    }
}

/// The columns of a group of four stored elements as offsets from a base for each stored element.
#[inline(always)]
fn columns_by_offset<O: Offsets>(
    group: u32,
    (lane, last_column): (u32, u32),
    bases: DevicePtr<u32>,
    offsets: O,
) -> [u32; 4] {
    let offsets = offsets.load(group, lane);
    if !O::HAVE_BASES {
        return offsets;
    }
    let bases = bases.load_vector::<4>(group * 4);
    // Padding that is stored by lane may lie beyond either end of x.
    [0, 1, 2, 3].map(|j| bases[j].wrapping_add(offsets[j]).min(last_column))
}

/// The sum of one lane over its first `elements` stored elements; `place` is that of its values,
/// `columns` gives those of a group of four stored elements.
#[inline(always)]
pub(crate) fn lane_sum<T: Real, V: Values<T>>(
    elements: u32,
    place: u64,
    columns: impl Fn(u32) -> [u32; 4],
    values: V,
    x: DevicePtr<T>,
) -> T {
    let (mut even, mut odd) = (T::ZERO, T::ZERO);
    let mut add = |values: [T; 4], x: [T; 4]| {
        even = values[0].mul_add(x[0], even);
        odd = values[1].mul_add(x[1], odd);
        even = values[2].mul_add(x[2], even);
        odd = values[3].mul_add(x[3], odd);
    };
    let groups = elements / 4;
    // Two groups in flight.
    for pair in 0..groups / 2 {
        let group = 2 * pair;
        let columns = [columns(group), columns(group + 1)];
        let values = [values.load(place, group, 4), values.load(place, group + 1, 4)];
        let x = columns.map(|columns| columns.map(|column| x.load(column)));
        add(values[0], x[0]);
        add(values[1], x[1]);
    }
    if !groups.is_multiple_of(2) {
        let columns = columns(groups - 1);
        let values = values.load(place, groups - 1, 4);
        add(values, columns.map(|column| x.load(column)));
    }
    let left = elements % 4;
    if left > 0 {
        let columns = columns(groups);
        let values = values.load(place, groups, left);
        even = values[0].mul_add(x.load(columns[0]), even);
        if left > 1 {
            odd = values[1].mul_add(x.load(columns[1]), odd);
        }
        if left > 2 {
            even = values[2].mul_add(x.load(columns[2]), even);
        }
    }
    even + odd
}

/// [`lane_sum`] for columns that are stored in one way or another; `place` is that of the values,
/// the lane and the last column.
#[inline(always)]
pub(crate) fn lane_sum_by_mode<T: Real, V: Values<T>>(
    mode: u32,
    elements: u32,
    place: (u64, u32, u32),
    bases: DevicePtr<u32>,
    offsets: DevicePtr<u32>,
    values: V,
    x: DevicePtr<T>,
) -> T {
    if mode == BY_LANE {
        let at = (place.1, place.2);
        let columns = |group: u32| columns_by_offset(group, at, bases, ByLane);
        return lane_sum(elements, place.0, columns, values, x);
    }
    lane_sum_by_offsets(mode, elements, place, bases, offsets, values, x)
}

/// [`lane_sum_by_mode`] for every mode but the first.
#[inline(always)]
pub(crate) fn lane_sum_by_offsets<T: Real, V: Values<T>>(
    mode: u32,
    elements: u32,
    (place, lane, last_column): (u64, u32, u32),
    bases: DevicePtr<u32>,
    offsets: DevicePtr<u32>,
    values: V,
    x: DevicePtr<T>,
) -> T {
    macro_rules! sum {
        ($offsets:expr) => {{
            let at = (lane, last_column);
            let columns = |group: u32| columns_by_offset(group, at, bases, $offsets);
            lane_sum(elements, place, columns, values, x)
        }};
    }
    match mode {
        BITS_8 => sum!(Bits8(offsets)),
        BITS_16 => sum!(Bits16(offsets)),
        _ => sum!(Bits32(offsets)),
    }
}

#[inline(always)]
pub(crate) fn all_elements_are_safe<T: Real, V: Values<T>>(_: V) -> bool {
    !V::PADDING_COUNTS
}

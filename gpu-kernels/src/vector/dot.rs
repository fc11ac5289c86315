//! sums[b] = sum over the elements i of block b of conj(x[i]) y[i]
//!
//! Thread t of g threads takes the elements t, t + g, t + 2 g, ..., in four sums, so that four pairs of
//! loads are in flight. The sums of the threads are added in a tree. The order depends on the grid alone:
//! with a grid that depends on the length alone, every device gives the same bits.

use super::index;
use crate::collective::block_sum;
use crate::device::shared::Pool;
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, DevicePtrMut, Number, thread};
use crate::kernel::kernel;

/// Threads of a block.
pub const DOT_THREADS: u32 = 256;
/// Elements for which there is one block, up to [`DOT_BLOCKS`] blocks.
pub const DOT_ELEMENTS: u32 = 4 * DOT_THREADS;
/// Most blocks of a dot product, and so most sums that are left to add.
pub const DOT_BLOCKS: u32 = 1024;

/// Bytes of dynamic shared memory of [`VectorDot`] and of [`VectorSum`](super::VectorSum), for blocks of
/// `block` threads.
#[cfg(not(target_arch = "nvptx64"))]
pub fn vector_sum_shared_bytes<T: Number>(block: u32) -> u32 {
    let mut pool = Pool::new();
    pool.array::<T>(block / WARP_SIZE);
    pool.bytes()
}

kernel! {
    /// One sum for each block. Block: a multiple of 32; any one-dimensional grid; shared memory:
    /// [`vector_sum_shared_bytes`].
    pub fn vector_dot<T: Number>(
        length: u64,
        x: DevicePtr<T>,
        y: DevicePtr<T>,
        sums: DevicePtrMut<T>,
    ) {
        let of_warps = Pool::new().array::<T>(thread::block_dim_x() / WARP_SIZE);
        let step = u64::from(thread::grid_dim_x()) * u64::from(thread::block_dim_x());
        let (mut a, mut b, mut c, mut d) = (T::ZERO, T::ZERO, T::ZERO, T::ZERO);
        let mut i = index();
        while i + 3 * step < length {
            a = x.load(i).conj().mul_add(y.load(i), a);
            b = x.load(i + step).conj().mul_add(y.load(i + step), b);
            c = x.load(i + 2 * step).conj().mul_add(y.load(i + 2 * step), c);
            d = x.load(i + 3 * step).conj().mul_add(y.load(i + 3 * step), d);
            i += 4 * step;
        }
        while i < length {
            a = x.load(i).conj().mul_add(y.load(i), a);
            i += step;
        }
        let sum = block_sum(of_warps, (a + b) + (c + d));
        if thread::thread_idx_x() == 0 {
            sums.store(thread::block_idx_x(), sum);
        }
    }
    as VectorDot
}

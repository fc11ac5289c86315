//! sum = x[0] + x[1] + ...
//!
//! One block: thread t of g adds the elements t, t + g, ..., and the sums of the threads are added in a
//! tree, so that the order depends on the number of elements and threads alone.

use crate::collective::block_sum;
use crate::device::shared::Pool;
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

kernel! {
    /// The sum of a few numbers. One block of a multiple of 32 threads; shared memory:
    /// [`vector_sum_shared_bytes`](super::vector_sum_shared_bytes).
    pub fn vector_sum<T: Number>(length: u32, x: DevicePtr<T>, sum: DevicePtrMut<T>) {
        let of_warps = Pool::new().array::<T>(thread::block_dim_x() / WARP_SIZE);
        let mut mine = T::ZERO;
        let mut i = thread::thread_idx_x();
        while i < length {
            mine += x.load(i);
            i += thread::block_dim_x();
        }
        let total = block_sum(of_warps, mine);
        if thread::thread_idx_x() == 0 {
            sum.store(0_u32, total);
        }
    }
    as VectorSum
}

//! A pool of freed device memory, kept for later allocations.
//!
//! The driver takes thirty microseconds for an allocation and as long for freeing it, and planning
//! allocates and frees dozens of small arrays. Large blocks are not kept: a product of 30 MB, which
//! L2 just holds, took 12.1 us in kept blocks, in the driver's pool (`cuMemAllocAsync`) and in one
//! block, and 9.1 us in newly allocated blocks (docs/tuning-log-gpu-spmv.md, 22 and 37).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cust::sys;

/// Bytes from which a block is not kept, and the maximum bytes of all kept blocks.
const LARGE: usize = 8 << 20;
const MOST_BYTES: usize = 64 << 20;
/// Blocks are multiples of this.
const UNIT: usize = 512;

/// The pool of a device. All calls need the device's context to be current.
#[derive(Debug)]
pub(crate) struct Pool(Mutex<Free>);

/// A block of device memory; empty if its size is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) address: sys::CUdeviceptr,
    size: usize,
}

impl Block {
    pub(crate) const NONE: Self = Self { address: 0, size: 0 };

    /// Memory that is not the pool's.
    pub(crate) fn foreign(address: sys::CUdeviceptr) -> Self {
        Self { address, size: 0 }
    }
}

/// Unused blocks by size.
#[derive(Debug, Default)]
struct Free {
    blocks: BTreeMap<usize, Vec<sys::CUdeviceptr>>,
    bytes: usize,
}

impl Free {
    /// A block of at least `size` that is not much larger.
    fn take(&mut self, size: usize) -> Option<Block> {
        let mut fitting = self.blocks.range_mut(size..=size + size / 4);
        let (&size, addresses) = fitting.next()?;
        let address = addresses.pop()?;
        if addresses.is_empty() {
            self.blocks.remove(&size);
        }
        self.bytes -= size;
        Some(Block { address, size })
    }

    /// Keeps a block, or returns it if enough are kept.
    fn put(&mut self, block: Block) -> Option<Block> {
        if block.size >= LARGE || self.bytes + block.size > MOST_BYTES {
            return Some(block);
        }
        self.bytes += block.size;
        self.blocks.entry(block.size).or_default().push(block.address);
        None
    }

    fn drain(&mut self) -> impl Iterator<Item = sys::CUdeviceptr> + use<> {
        self.bytes = 0;
        std::mem::take(&mut self.blocks).into_values().flatten()
    }
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    fn free_blocks(&self) -> MutexGuard<'_, Free> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates memory that every stream may use immediately.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Block, sys::CUresult> {
        let size = bytes.checked_next_multiple_of(UNIT).unwrap_or(bytes);
        if size == 0 {
            return Ok(Block::NONE);
        }
        if size < LARGE
            && let Some(block) = self.free_blocks().take(size)
        {
            return Ok(block);
        }
        match from_driver(size) {
            Err(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                self.release();
                from_driver(size)
            }
            answer => answer,
        }
    }

    /// Takes a block back once all work of the context in all streams is done.
    ///
    /// # Safety
    /// The block is from [`Pool::allocate`] and is freed once; its context is current.
    pub(crate) unsafe fn free(&self, block: Block) {
        if block.size == 0 {
            return;
        }
        // SAFETY: no arguments. A failure here is an earlier kernel's, which the next call reports.
        let answer = unsafe { sys::cuCtxSynchronize() };
        // What was not waited for is not given to anybody else: the driver waits, or keeps it.
        let over = match answer {
            sys::CUresult::CUDA_SUCCESS => self.free_blocks().put(block),
            _ => Some(block),
        };
        if let Some(block) = over {
            to_driver(block.address);
        }
    }

    /// Bytes of unused blocks.
    pub(crate) fn unused(&self) -> u64 {
        self.free_blocks().bytes as u64
    }

    /// Returns unused blocks to the driver.
    pub(crate) fn release(&self) {
        for address in self.free_blocks().drain() {
            to_driver(address);
        }
    }
}

fn from_driver(size: usize) -> Result<Block, sys::CUresult> {
    let mut address = 0;
    // SAFETY: points to an address.
    match unsafe { sys::cuMemAlloc_v2(&mut address, size) } {
        sys::CUresult::CUDA_SUCCESS => Ok(Block { address, size }),
        answer => Err(answer),
    }
}

fn to_driver(address: sys::CUdeviceptr) {
    // SAFETY: of cuMemAlloc, and in no list any more. A failure here is an earlier kernel's.
    let _ = unsafe { sys::cuMemFree_v2(address) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_are_kept_and_fit_what_takes_them() {
        let mut free = Free::default();
        let block = |address, size| Block { address, size };
        assert_eq!(free.put(block(1, 1024)), None);
        assert_eq!(free.put(block(2, 1536)), None);
        assert_eq!(free.put(block(3, LARGE)), Some(block(3, LARGE)));
        assert_eq!(free.take(512), None, "1024 are too many");
        assert_eq!(free.take(1300), Some(block(2, 1536)));
        assert_eq!(free.take(1024), Some(block(1, 1024)));
        assert_eq!((free.take(1024), free.bytes), (None, 0));
        for i in 0..MOST_BYTES / (LARGE / 2) {
            assert_eq!(free.put(block(i as u64, LARGE / 2)), None);
        }
        assert_eq!(free.put(block(4, 512)), Some(block(4, 512)));
        assert_eq!((free.drain().count(), free.bytes), (MOST_BYTES / (LARGE / 2), 0));
    }
}

//! A pool of freed device memory, kept for later allocations.
//!
//! The driver takes thirty microseconds for an allocation and as long for freeing it, up to two hundred for one of more than
//! 8 MB, and planning allocates and frees dozens of arrays.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cust::sys;

/// The maximum bytes of all kept blocks.
const MOST_BYTES: usize = 128 << 20;
/// Blocks are multiples of this.
const UNIT: usize = 512;

/// The pool of a device. All calls need the device's context to be current.
#[derive(Debug)]
pub(crate) struct Pool(Mutex<Unused>);

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
        Self { address, ..Self::NONE }
    }

    /// The address of element `index` of an array of `T`.
    pub(crate) fn address_of<T>(self, index: usize) -> sys::CUdeviceptr {
        self.address + (index * size_of::<T>()) as u64
    }

    /// Whether it serves for `size` bytes, and is not much larger.
    fn fits(self, size: usize) -> bool {
        (size..=size + size / 4).contains(&self.size)
    }
}

/// Unused blocks.
#[derive(Debug, Default)]
struct Unused {
    /// What no kernel uses any more, by size.
    idle: BTreeMap<usize, Vec<sys::CUdeviceptr>>,
    /// What kernels that were launched before may still use.
    in_flight: Vec<Block>,
    /// Of all blocks.
    bytes: usize,
}

impl Unused {
    /// An idle block that fits.
    fn take(&mut self, size: usize) -> Option<Block> {
        let mut fitting = self.idle.range_mut(size..=size + size / 4);
        let (&size, addresses) = fitting.next()?;
        let address = addresses.pop()?;
        if addresses.is_empty() {
            self.idle.remove(&size);
        }
        self.bytes -= size;
        Some(Block { address, size })
    }

    /// Keeps a block that may be in flight, in place of idle ones if too many are kept, the largest ones first. Returns what
    /// is not kept.
    fn put(&mut self, block: Block) -> Vec<Block> {
        if block.size > MOST_BYTES {
            return vec![block];
        }
        let mut over = Vec::new();
        while self.bytes + block.size > MOST_BYTES {
            let Some((&largest, _)) = self.idle.last_key_value() else {
                over.push(block);
                return over;
            };
            over.extend(self.take(largest));
        }
        self.bytes += block.size;
        self.in_flight.push(block);
        over
    }

    /// The blocks in flight, if one of them fits: [`Unused::settle`] takes them back.
    fn unsettled(&mut self, size: usize) -> Option<Vec<Block>> {
        let fits = self.in_flight.iter().any(|block| block.fits(size));
        fits.then(|| std::mem::take(&mut self.in_flight))
    }

    /// Takes back blocks that no kernel uses any more.
    fn settle(&mut self, blocks: Vec<Block>) {
        for Block { address, size } in blocks {
            self.idle.entry(size).or_default().push(address);
        }
    }

    fn drain(&mut self) -> Vec<Block> {
        let idle = std::mem::take(&mut self.idle).into_iter();
        let idle = idle.flat_map(|(size, addresses)| {
            addresses.into_iter().map(move |address| Block { address, size })
        });
        let blocks: Vec<_> = idle.chain(std::mem::take(&mut self.in_flight)).collect();
        self.forget(&blocks);
        blocks
    }

    /// Blocks that were kept are the driver's again.
    fn forget(&mut self, blocks: &[Block]) {
        self.bytes -= blocks.iter().map(|block| block.size).sum::<usize>();
    }
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    fn blocks(&self) -> MutexGuard<'_, Unused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates memory that every stream may use immediately.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Block, sys::CUresult> {
        let size = bytes.checked_next_multiple_of(UNIT).unwrap_or(bytes);
        if size == 0 {
            return Ok(Block::NONE);
        }
        if let Some(block) = self.kept(size) {
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

    /// An unused block that fits, once no kernel uses it.
    fn kept(&self, size: usize) -> Option<Block> {
        let in_flight = {
            let mut blocks = self.blocks();
            if let Some(block) = blocks.take(size) {
                return Some(block);
            }
            blocks.unsettled(size)?
        };
        // Other threads free and allocate meanwhile.
        if wait() {
            let mut blocks = self.blocks();
            blocks.settle(in_flight);
            return blocks.take(size);
        }
        self.blocks().forget(&in_flight);
        in_flight.into_iter().for_each(to_driver);
        None
    }

    /// Takes a block back. It is given to nobody before all work of the context in all streams is done that
    /// was enqueued up to now.
    ///
    /// # Safety
    /// The block is from [`Pool::allocate`] and is freed once; its context is current.
    pub(crate) unsafe fn free(&self, block: Block) {
        if block.size == 0 {
            return;
        }
        let over = self.blocks().put(block);
        if !over.is_empty() {
            wait();
        }
        over.into_iter().for_each(to_driver);
    }

    /// Bytes of unused blocks.
    pub(crate) fn unused(&self) -> u64 {
        self.blocks().bytes as u64
    }

    /// Returns unused blocks to the driver.
    pub(crate) fn release(&self) {
        let blocks = self.blocks().drain();
        if !blocks.is_empty() {
            wait();
        }
        blocks.into_iter().for_each(to_driver);
    }
}

/// Waits for all work of the context; whether all of it was done.
fn wait() -> bool {
    // SAFETY: no arguments. A failure here is an earlier kernel's, which the next call reports.
    unsafe { sys::cuCtxSynchronize() == sys::CUresult::CUDA_SUCCESS }
}

fn from_driver(size: usize) -> Result<Block, sys::CUresult> {
    let mut address = 0;
    // SAFETY: points to an address.
    match unsafe { sys::cuMemAlloc_v2(&mut address, size) } {
        sys::CUresult::CUDA_SUCCESS => Ok(Block { address, size }),
        answer => Err(answer),
    }
}

fn to_driver(block: Block) {
    // SAFETY: of cuMemAlloc, and in no list any more. A failure here is an earlier kernel's.
    let _ = unsafe { sys::cuMemFree_v2(block.address) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address: u64, size: usize) -> Block {
        Block { address, size }
    }

    const LARGE: usize = MOST_BYTES / 16;

    #[test]
    fn blocks_are_kept_and_fit_what_takes_them() {
        let mut unused = Unused::default();
        assert_eq!(unused.put(block(1, 1024)), []);
        assert_eq!(unused.put(block(2, 1536)), []);
        let blocks = unused.unsettled(1024).unwrap();
        unused.settle(blocks);
        assert_eq!(unused.take(512), None, "1024 are too many");
        assert_eq!(unused.take(1300), Some(block(2, 1536)));
        assert_eq!(unused.take(1024), Some(block(1, 1024)));
        assert_eq!((unused.take(1024), unused.bytes), (None, 0));
    }

    #[test]
    fn idle_blocks_make_room() {
        let mut unused = Unused::default();
        for i in 0..16 {
            assert_eq!(unused.put(block(i, LARGE)), []);
        }
        assert_eq!(unused.put(block(16, 512)), [block(16, 512)], "none is idle");
        let blocks = unused.unsettled(LARGE).unwrap();
        unused.settle(blocks);
        assert_eq!(unused.put(block(17, MOST_BYTES + 1)), [block(17, MOST_BYTES + 1)]);
        unused.idle.get_mut(&LARGE).unwrap().truncate(15);
        unused.idle.insert(512, vec![16]);
        unused.bytes = 15 * LARGE + 512;
        assert_eq!(unused.put(block(18, LARGE + 1)), [block(14, LARGE)]);
        assert_eq!((unused.bytes, unused.in_flight.len()), (15 * LARGE + 513, 1));
        assert_eq!((unused.drain().len(), unused.bytes), (16, 0));
    }

    #[test]
    fn blocks_in_flight_are_nobodys() {
        let mut unused = Unused::default();
        assert_eq!(unused.put(block(1, 1024)), []);
        assert_eq!(unused.take(1024), None);
        // One that does not fit is not waited for.
        assert_eq!(unused.unsettled(2048), None);
        let blocks = unused.unsettled(1024).unwrap();
        // Freed while another thread waits.
        assert_eq!(unused.put(block(2, 1024)), []);
        unused.settle(blocks);
        assert_eq!(unused.take(1024), Some(block(1, 1024)));
        assert_eq!((unused.take(1024), unused.bytes), (None, 1024));
        assert_eq!((unused.drain(), unused.bytes), (vec![block(2, 1024)], 0));
    }
}

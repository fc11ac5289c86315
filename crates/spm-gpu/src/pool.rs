//! A pool of freed device memory, kept for later allocations.
//!
//! The driver takes thirty microseconds for an allocation and as long for freeing it, and planning
//! allocates and frees dozens of small arrays. Large blocks are kept for arrays that only a conversion uses: a product of
//! 30 MB, which L2 just holds, took 12.1 us in kept blocks, in the driver's pool (`cuMemAllocAsync`) and in one block, and
//! 9.1 us in newly allocated blocks (docs/tuning-log-gpu-spmv.md, 22 and 37).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cust::sys;

/// Bytes from which a block is kept for brief use only, and the maximum bytes of all kept blocks.
const LARGE: usize = 8 << 20;
const MOST_BYTES: usize = 128 << 20;
/// Blocks are multiples of this.
const UNIT: usize = 512;

/// The pool of a device. All calls need the device's context to be current.
#[derive(Debug)]
pub(crate) struct Pool(Mutex<Unused>);

/// How long a block is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// By products, whose time depends on where in memory it is.
    Lasting,
    /// While a plan is made.
    Brief,
}

impl Use {
    /// Whether blocks of this size are kept.
    fn keeps(self, size: usize) -> bool {
        self == Self::Brief || size < LARGE
    }
}

/// A block of device memory; empty if its size is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) address: sys::CUdeviceptr,
    size: usize,
    of: Use,
}

impl Block {
    pub(crate) const NONE: Self = Self { address: 0, size: 0, of: Use::Lasting };

    /// Memory that is not the pool's.
    pub(crate) fn foreign(address: sys::CUdeviceptr) -> Self {
        Self { address, ..Self::NONE }
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
    fn take(&mut self, size: usize, of: Use) -> Option<Block> {
        let mut fitting = self.idle.range_mut(size..=size + size / 4);
        let (&size, addresses) = fitting.next()?;
        let address = addresses.pop()?;
        if addresses.is_empty() {
            self.idle.remove(&size);
        }
        self.bytes -= size;
        Some(Block { address, size, of })
    }

    /// Keeps a block that may be in flight, or returns it if it is large, and not for brief use, or enough are kept.
    fn put(&mut self, block: Block) -> Option<Block> {
        if !block.of.keeps(block.size) || self.bytes + block.size > MOST_BYTES {
            return Some(block);
        }
        self.bytes += block.size;
        self.in_flight.push(block);
        None
    }

    /// The blocks in flight, if one of them fits: [`Unused::settle`] takes them back.
    fn unsettled(&mut self, size: usize) -> Option<Vec<Block>> {
        let fits = self.in_flight.iter().any(|block| block.fits(size));
        fits.then(|| std::mem::take(&mut self.in_flight))
    }

    /// Takes back blocks that no kernel uses any more.
    fn settle(&mut self, blocks: Vec<Block>) {
        for Block { address, size, .. } in blocks {
            self.idle.entry(size).or_default().push(address);
        }
    }

    fn drain(&mut self) -> Vec<Block> {
        let idle = std::mem::take(&mut self.idle).into_iter();
        let idle = idle.flat_map(|(size, addresses)| {
            addresses.into_iter().map(move |address| Block { address, size, of: Use::Brief })
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
    pub(crate) fn allocate(&self, bytes: usize, of: Use) -> Result<Block, sys::CUresult> {
        let size = bytes.checked_next_multiple_of(UNIT).unwrap_or(bytes);
        if size == 0 {
            return Ok(Block::NONE);
        }
        if of.keeps(size)
            && let Some(block) = self.kept(size, of)
        {
            return Ok(block);
        }
        match from_driver(size, of) {
            Err(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                self.release();
                from_driver(size, of)
            }
            answer => answer,
        }
    }

    /// An unused block that fits, once no kernel uses it.
    fn kept(&self, size: usize, of: Use) -> Option<Block> {
        let in_flight = {
            let mut blocks = self.blocks();
            if let Some(block) = blocks.take(size, of) {
                return Some(block);
            }
            blocks.unsettled(size)?
        };
        // Other threads free and allocate meanwhile.
        if wait() {
            let mut blocks = self.blocks();
            blocks.settle(in_flight);
            return blocks.take(size, of);
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
        if let Some(block) = over {
            wait();
            to_driver(block);
        }
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

fn from_driver(size: usize, of: Use) -> Result<Block, sys::CUresult> {
    let mut address = 0;
    // SAFETY: points to an address.
    match unsafe { sys::cuMemAlloc_v2(&mut address, size) } {
        sys::CUresult::CUDA_SUCCESS => Ok(Block { address, size, of }),
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
        Block { address, size, of: Use::Lasting }
    }

    #[test]
    fn small_blocks_are_kept_and_fit_what_takes_them() {
        let mut unused = Unused::default();
        assert_eq!(unused.put(block(1, 1024)), None);
        assert_eq!(unused.put(block(2, 1536)), None);
        assert_eq!(unused.put(block(3, LARGE)), Some(block(3, LARGE)));
        let blocks = unused.unsettled(1024).unwrap();
        unused.settle(blocks);
        assert_eq!(unused.take(512, Use::Lasting), None, "1024 are too many");
        assert_eq!(unused.take(1300, Use::Lasting), Some(block(2, 1536)));
        assert_eq!(unused.take(1024, Use::Lasting), Some(block(1, 1024)));
        assert_eq!((unused.take(1024, Use::Lasting), unused.bytes), (None, 0));
        for i in 0..MOST_BYTES / (LARGE / 2) {
            assert_eq!(unused.put(block(i as u64, LARGE / 2)), None);
        }
        assert_eq!(unused.put(block(4, 512)), Some(block(4, 512)));
        let brief = Block { of: Use::Brief, ..block(4, 512) };
        assert_eq!(unused.put(brief), Some(brief));
        assert_eq!((unused.drain().len(), unused.bytes), (MOST_BYTES / (LARGE / 2), 0));
    }

    #[test]
    fn large_blocks_are_kept_for_brief_use() {
        let (mut unused, brief) = (Unused::default(), Block { of: Use::Brief, ..block(1, LARGE) });
        assert_eq!(unused.put(brief), None);
        let blocks = unused.unsettled(LARGE).unwrap();
        unused.settle(blocks);
        assert_eq!((unused.take(LARGE, Use::Brief), unused.bytes), (Some(brief), 0));
        assert!(Use::Brief.keeps(LARGE) && !Use::Lasting.keeps(LARGE) && Use::Lasting.keeps(1));
    }

    #[test]
    fn blocks_in_flight_are_nobodys() {
        let mut unused = Unused::default();
        assert_eq!(unused.put(block(1, 1024)), None);
        assert_eq!(unused.take(1024, Use::Lasting), None);
        // One that does not fit is not waited for.
        assert_eq!(unused.unsettled(2048), None);
        let blocks = unused.unsettled(1024).unwrap();
        // Freed while another thread waits.
        assert_eq!(unused.put(block(2, 1024)), None);
        unused.settle(blocks);
        assert_eq!(unused.take(1024, Use::Lasting), Some(block(1, 1024)));
        assert_eq!((unused.take(1024, Use::Lasting), unused.bytes), (None, 1024));
        assert_eq!((unused.drain(), unused.bytes), (vec![block(2, 1024)], 0));
    }
}

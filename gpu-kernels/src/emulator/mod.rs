//! An emulator that runs GPU kernels on the host and reports defects that a GPU does not report.
//!
//! Every thread of a block is a coroutine that yields at barriers, shuffles and votes. Blocks run
//! one after another. The next thread, the order of the blocks, and with deferred work the next
//! stream are drawn from a seed, so that a program that depends on an order fails for some seed.
//!
//! These defects are reported with kernel, block and thread (see [`Defect`]): a barrier or a warp
//! operation that not all the threads it names reach, a read from a lane that does not take part,
//! an access outside every live buffer, a misaligned access, a read of memory that was not written,
//! memory that a launch both overwrites and reads through the read-only path, two threads that
//! access a word of shared memory with no barrier between them, two streams that access a buffer
//! with no event and no wait between them, a panic, an endless loop. A defect stops the launch.
//! Nothing hangs, and no host memory outside the buffers is accessed.
//!
//! The [crate's first page](crate) has an example.

mod block;
mod error;
mod heap;
mod order;
mod queue;
mod rng;
mod shared;
mod stack;
mod warp;

use std::sync::{Arc, Mutex};

pub use error::{Defect, EmulatorError};
pub use heap::EmuBuffer;
pub use queue::{EmuEvent, EmuStream};

use crate::device::Element;
use crate::{Dim3, Kernel};
pub(crate) use block::{Axis, with_current};
use heap::Heap;
pub(crate) use heap::{Bytes, Path};
use queue::Queues;
use rng::Rng;
pub(crate) use warp::{Call, Operation, ShuffleMode};

/// Options of the emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmulatorOptions {
    /// The seed of the order of blocks and threads, another one for each launch; the same launches with the same seed give
    /// the same runs.
    pub seed: u64,
    /// Whether data races are reported: two threads that access a word of shared memory with no
    /// barrier between them, or two unordered operations of different streams on one buffer, at
    /// least one of them a write.
    pub detect_races: bool,
    /// Whether streams defer their work until something waits for it; the seed then draws the next
    /// stream, one operation at a time. Otherwise an operation runs when it is enqueued.
    pub deferred: bool,
    /// Accesses and barriers of one thread above which an endless loop is reported.
    pub step_limit: u64,
    /// Device memory in bytes; an allocation beyond it, or beyond what the host has, fails as on a
    /// device.
    pub memory: u64,
    /// Runs only this number of blocks, the last of the grid, for grids that are too large to run.
    pub last_blocks: Option<u64>,
    /// Number of launches until the device is lost. From then on launches and allocations fail, as
    /// after a device fault.
    pub launches: u64,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            detect_races: true,
            deferred: false,
            step_limit: 1 << 28,
            memory: 4 << 30,
            last_blocks: None,
            launches: u64::MAX,
        }
    }
}

/// Maximum threads of a block, as on every CUDA device.
pub const MAX_BLOCK_THREADS: u32 = 1024;
/// Maximum shared memory of a block: 227 KiB, as in compute capability 9.0.
pub const MAX_SHARED_BYTES: u32 = 227 * 1024;

/// Grid, block, bytes of dynamic shared memory.
type Shape = (Dim3, Dim3, u32);

/// An emulated device with its memory. Kernels run one at a time.
#[derive(Debug, Clone)]
pub struct Emulator {
    options: EmulatorOptions,
    // Both locked: the queues first.
    queues: Arc<Mutex<Queues>>,
    heap: Arc<Mutex<Heap>>,
}

impl Default for Emulator {
    fn default() -> Self {
        Self::new(EmulatorOptions::default())
    }
}

impl Emulator {
    /// A device with empty memory.
    pub fn new(options: EmulatorOptions) -> Self {
        let queues = Queues::new(options.deferred, options.seed);
        Self { options, queues: Arc::new(Mutex::new(queues)), heap: Arc::default() }
    }

    /// Whether both are handles of one device.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.heap, &other.heap)
    }

    /// The same device with the same memory that runs only the last `blocks` blocks of a grid.
    #[must_use]
    pub fn with_last_blocks(&self, blocks: u64) -> Self {
        let options = EmulatorOptions { last_blocks: Some(blocks), ..self.options };
        Self { options, ..self.clone() }
    }

    /// The options.
    pub fn options(&self) -> EmulatorOptions {
        self.options
    }

    /// Bytes in live buffers.
    pub fn allocated_bytes(&self) -> u64 {
        self.heap().allocated_bytes()
    }

    /// Copies `data` to the device.
    ///
    /// # Panics
    /// When the device is full; [`Emulator::try_alloc_uninit`] reports it.
    pub fn alloc_from<T: Element>(&self, data: &[T]) -> EmuBuffer<T> {
        let buffer = self.alloc_uninit(data.len());
        buffer.write(data);
        buffer
    }

    /// `length` uninitialised elements; a kernel that reads one is reported.
    ///
    /// # Panics
    /// When the device is full.
    pub fn alloc_uninit<T: Element>(&self, length: usize) -> EmuBuffer<T> {
        self.try_alloc_uninit(length).unwrap_or_else(|error| panic!("{error}"))
    }

    /// `length` uninitialised elements.
    ///
    /// # Errors
    /// [`EmulatorError::OutOfMemory`]; [`EmulatorError::DeviceLost`].
    pub fn try_alloc_uninit<T: Element>(
        &self,
        length: usize,
    ) -> Result<EmuBuffer<T>, EmulatorError> {
        self.try_alloc_uninit_like(length, 0)
    }

    /// The same from an address on that is as far from a multiple of 16 as `address` is.
    ///
    /// # Errors
    /// As [`Emulator::try_alloc_uninit`].
    pub fn try_alloc_uninit_like<T: Element>(
        &self,
        length: usize,
        address: u64,
    ) -> Result<EmuBuffer<T>, EmulatorError> {
        self.heap().check_alive(&self.options)?;
        EmuBuffer::new(self, length, address % 16, false)
    }

    /// `length` zeros, which take host memory only where they are written.
    ///
    /// # Panics
    /// When the device is full.
    pub fn alloc_zeroed<T: Element>(&self, length: usize) -> EmuBuffer<T> {
        let buffer = EmuBuffer::new(self, length, 0, true);
        buffer.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a kernel on `grid` blocks of `block` threads with `shared_bytes` of dynamic shared
    /// memory each, after everything that is in any stream, and returns when all of them are done.
    ///
    /// # Errors
    /// The first defect met, or a launch that no device would take. Memory then holds what was
    /// written until there. What failed in a stream before is reported instead.
    pub fn launch<K: Kernel>(
        &self,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        shared_bytes: u32,
        args: K::Args,
    ) -> Result<(), EmulatorError> {
        let shape = (grid.into(), block.into(), shared_bytes);
        self.check_launch::<K>(shape)?;
        let operation = self.alone(K::NAME)?;
        let mut heap = self.heap();
        heap.begin(operation);
        self.options.run::<K>(shape, args, &mut heap)
    }

    /// Refuses what no device would take.
    fn check_launch<K: Kernel>(&self, shape: Shape) -> Result<(), EmulatorError> {
        let (grid, block, shared_bytes) = shape;
        let refuse = |reason: String| Err(EmulatorError::InvalidLaunch { kernel: K::NAME, reason });
        if grid.x == 0 || grid.y == 0 || grid.x > i32::MAX as u32 || grid.y > 65_535 {
            return refuse(format!(
                "a grid of {grid} blocks: x must be 1 to 2^31 - 1, y 1 to 65535"
            ));
        }
        if block.count() == 0 || block.count() > u64::from(MAX_BLOCK_THREADS) {
            return refuse(format!(
                "a block of {block} threads: 1 to {MAX_BLOCK_THREADS} are possible"
            ));
        }
        if shared_bytes > MAX_SHARED_BYTES {
            return refuse(format!(
                "{shared_bytes} bytes of shared memory: at most {MAX_SHARED_BYTES} are possible"
            ));
        }
        Ok(())
    }
}

impl EmulatorOptions {
    fn run<K: Kernel>(
        &self,
        (grid, block, shared_bytes): Shape,
        args: K::Args,
        heap: &mut Heap,
    ) -> Result<(), EmulatorError> {
        heap.check_alive(self)?;
        heap.launches += 1;
        let launch = block::Launch {
            kernel: K::NAME,
            grid,
            block,
            shared_bytes,
            options: *self,
            body: &|| K::emulate(args),
        };
        let mut rng = Rng::of(self.seed, heap.launches);
        block::run_grid(&launch, heap, &mut rng)
    }
}

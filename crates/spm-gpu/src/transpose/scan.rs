//! Exclusive scan over several levels of blocks (`gpu-kernels/src/transpose/scan.rs`).

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::device::DevicePtrMut;
use spm_gpu_kernels::transpose::{ScanAdd, ScanBlocks, scan_blocks_bytes};

use super::parameters::checked_over;
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::memory::{DeviceBuffer, check_operand};
use crate::stream::Stream;

const ID: &str = "scan";

/// The exclusive scan of one length (R3 IV-A): word i becomes the sum of the words before it,
/// modulo 2^32.
#[derive(Debug)]
pub(crate) struct Scan {
    length: usize,
    device: Device,
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    length: u32,
    launch: Launch,
    /// One word for each block.
    totals: DeviceBuffer<u32>,
}

impl Scan {
    /// Allocates the totals; `block` threads (a power of two) scan twice as many words.
    ///
    /// # Errors
    /// A block that is no power of two or that the device does not take; too little memory.
    pub(crate) fn new(device: &Device, length: usize, block: usize) -> Result<Self, PlanError> {
        if !block.is_power_of_two() {
            let reason = format!("block must be a power of two; found {block}");
            return Err(PlanError::Unsupported { kernel: ID, reason });
        }
        let (mut levels, mut left) = (Vec::new(), length);
        loop {
            let blocks = left.div_ceil(2 * block).max(1);
            let shared = scan_blocks_bytes(block as u32);
            levels.push(Level {
                length: left as u32,
                launch: checked_over(ID, device, blocks, 1, block, shared)?,
                totals: DeviceBuffer::uninitialized(device, blocks)?,
            });
            if blocks == 1 {
                return Ok(Self { length, device: device.clone(), levels });
            }
            left = blocks;
        }
    }

    /// Bytes of device memory.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.totals.bytes() as u64).sum()
    }

    /// Puts the scan of `data` in place into the stream.
    ///
    /// # Errors
    /// Another length or device; a device that fails.
    pub(crate) fn enqueue(
        &mut self,
        data: &mut DeviceBuffer<u32>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check_operand("data", &self.device, data, self.length)?;
        scan(&mut self.levels, data.ptr_mut(), stream)
    }
}

fn scan(levels: &mut [Level], data: DevicePtrMut<u32>, stream: &Stream) -> Result<(), GpuError> {
    let Some((level, above)) = levels.split_first_mut() else { return Ok(()) };
    let &mut Level { length, launch, ref mut totals } = level;
    let args = ScanBlocks { length, data, totals: totals.ptr_mut() };
    // SAFETY: `length` words of data, and a total for each block of the launch.
    unsafe { stream.device().launch::<ScanBlocks>(launch, stream, args)? };
    if above.is_empty() {
        return Ok(());
    }
    scan(above, totals.ptr_mut(), stream)?;
    let args = ScanAdd { length, before: totals.ptr(), data };
    // SAFETY: as above.
    unsafe { stream.device().launch::<ScanAdd>(launch.with_shared_bytes(0), stream, args) }
}

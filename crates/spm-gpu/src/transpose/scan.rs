//! Exclusive scan over several levels of blocks (`gpu-kernels/src/transpose/scan.rs`).

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::device::DevicePtrMut;
use spm_gpu_kernels::transpose::{
    ScanAdd, ScanBlocks, ScanShort, scan_blocks_bytes, scan_short_bytes,
};

use super::parameters::checked_over;
use crate::device::Device;
use crate::error::GpuError;
use crate::host_words::HostWords;
use crate::launch::Launch;
use crate::memory::{DeviceBuffer, check_operand};
use crate::stream::Stream;

const ID: &str = "scan";
/// Words that one block scans faster than three launches are made.
const SHORT: usize = 1 << 17;
/// Threads of that block, and of each of many.
const SHORT_BLOCK: usize = 1024;
const BLOCK: usize = 256;

/// The exclusive scan of one length: word i becomes the sum of the words before it, modulo 2^32.
#[derive(Debug)]
pub(crate) struct Scan {
    length: usize,
    device: Device,
    way: Way,
}

#[derive(Debug)]
enum Way {
    OneBlock(Launch),
    /// R3 IV-A.
    Levels(Vec<Level>),
}

#[derive(Debug)]
struct Level {
    length: u32,
    launch: Launch,
    /// One word for each block.
    totals: DeviceBuffer<u32>,
}

impl Scan {
    /// The one of the fewest launches that pay.
    ///
    /// # Errors
    /// A device that does not take its blocks; too little memory.
    pub(crate) fn fitting(device: &Device, length: usize) -> Result<Self, PlanError> {
        if length > SHORT {
            return Self::new(device, length, BLOCK);
        }
        let launch = checked_over(ID, device, 1, 1, SHORT_BLOCK, scan_short_bytes())?;
        Ok(Self { length, device: device.clone(), way: Way::OneBlock(launch) })
    }

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
                return Ok(Self { length, device: device.clone(), way: Way::Levels(levels) });
            }
            left = blocks;
        }
    }

    /// Bytes of device memory.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        match &self.way {
            Way::OneBlock(_) => 0,
            Way::Levels(levels) => levels.iter().map(|level| level.totals.bytes() as u64).sum(),
        }
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
        match &mut self.way {
            Way::Levels(levels) => scan(levels, data.ptr_mut(), stream),
            &mut Way::OneBlock(launch) => {
                let args = ScanShort {
                    length: self.length as u32,
                    data: data.ptr_mut(),
                    stride: 0,
                    ends_count: 0,
                    ends: data.ptr_mut(),
                };
                // SAFETY: `length` words of data, and no other.
                unsafe { stream.device().launch::<ScanShort>(launch, stream, args) }
            }
        }
    }

    /// Scans `data` in place; every `stride`-th word of it then, from the first on.
    ///
    /// # Errors
    /// As [`Scan::enqueue`]; [`GpuError::Shape`] for no word or a stride of 0.
    pub(crate) fn every(
        &mut self,
        data: &mut DeviceBuffer<u32>,
        stride: usize,
        stream: &Stream,
    ) -> Result<Vec<u32>, GpuError> {
        let count = self.length.div_ceil(stride.max(1));
        let launch = match self.way {
            Way::OneBlock(launch) if stride > 0 && count <= HostWords::COUNT => launch,
            _ => {
                self.enqueue(data, stream)?;
                return data.every(stride);
            }
        };
        check_operand("data", &self.device, data, self.length)?;
        let mut words = HostWords::new(&self.device)?;
        let args = ScanShort {
            length: self.length as u32,
            data: data.ptr_mut(),
            stride: stride as u32,
            ends_count: count as u32,
            ends: words.ptr_mut(),
        };
        // SAFETY: `length` words of data, in which every end is, and room for the ends.
        unsafe { stream.device().launch::<ScanShort>(launch, stream, args)? };
        words.read(count, stream)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_scans_as_many_do() {
        let device = Device::emulated(Default::default());
        let stream = Stream::new(&device).unwrap();
        for length in [0, 1, 15, 16, 17, 16_384, 16_385, 40_000, SHORT, SHORT + 1] {
            let words: Vec<u32> = (0..length as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
            let add = |sum: &mut u32, &word: &u32| {
                let before = *sum;
                *sum = before.wrapping_add(word);
                Some(before)
            };
            let expected: Vec<u32> = words.iter().scan(0, add).collect();
            for block in [None, Some(64)] {
                let scan = match block {
                    None => Scan::fitting(&device, length),
                    Some(block) => Scan::new(&device, length, block),
                };
                let (mut scan, new) =
                    (scan.unwrap(), || DeviceBuffer::from_slice(&device, &words).unwrap());
                let mut data = new();
                scan.enqueue(&mut data, &stream).unwrap();
                assert_eq!(data.to_vec().unwrap(), expected, "{length} words, {block:?}");
                for stride in [1, 7, 5000].into_iter().filter(|_| length > 0) {
                    let mut data = new();
                    let every: Vec<u32> = expected.iter().copied().step_by(stride).collect();
                    assert_eq!(scan.every(&mut data, stride, &stream).unwrap(), every);
                    assert_eq!(data.to_vec().unwrap(), expected);
                }
                assert!(scan.every(&mut data, 0, &stream).is_err());
            }
        }
    }
}

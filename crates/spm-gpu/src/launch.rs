//! Launches: grid, block and shared memory, their limits, and their way to a device.

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, Value};
use spm_gpu_kernels::{Dim3, Kernel};

use crate::device::{Backend, Device};
use crate::error::GpuError;
use crate::info::{DeviceInfo, LaunchLimits};
use crate::stream::Stream;

/// Checks parameters before a plan computes sizes from them: that the kernel has them, and that the device takes
/// blocks of so many threads.
pub(crate) fn check_parameters(
    info: &KernelInfo,
    parameters: &Parameters,
    device: &Device,
) -> Result<(), PlanError> {
    info.check_parameters(parameters)?;
    match parameters.get("block") {
        // 0 is a choice of some kernels; the others refuse it.
        Some(Value::Count(block)) => Launch::over(info.id, device, 1, 1, block.max(1)).map(|_| ()),
        _ => Ok(()),
    }
}

/// What L2 does with the lines that a kernel reads by its streaming loads: the arrays of a matrix, each element of which is
/// read once in a product. Kernels without such loads are the same either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Loads {
    /// They leave L2 first, so that a matrix that is larger than L2 leaves room for x and y. A matrix that fits would not
    /// stay there either, once L2 is full of other data.
    #[default]
    Streamed,
    /// They are kept like others, for the next product.
    Cached,
}

impl Loads {
    /// For a product that reads and writes so many bytes, vectors included: cached if they take at most four fifths of L2.
    pub(crate) fn fitting(device: &DeviceInfo, bytes: u64) -> Self {
        if bytes <= device.l2_bytes / 5 * 4 { Self::Cached } else { Self::Streamed }
    }
}

/// Blocks, threads of a block, dynamic shared memory of a block, and what the loads of a matrix do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks of the grid.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// What L2 does with the matrix.
    pub loads: Loads,
}

impl Launch {
    /// A launch without dynamic shared memory, with streamed loads.
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        let (grid, block) = (grid.into(), block.into());
        Self { grid, block, shared_bytes: 0, loads: Loads::default() }
    }

    /// The same with `shared_bytes` of dynamic shared memory for each block.
    #[must_use]
    pub fn with_shared_bytes(self, shared_bytes: u32) -> Self {
        Self { shared_bytes, ..self }
    }

    /// The same with these loads of a matrix.
    #[must_use]
    pub fn with_loads(self, loads: Loads) -> Self {
        Self { loads, ..self }
    }

    /// The same with `blocks` in y.
    #[must_use]
    pub(crate) fn with_grid_y(self, blocks: u32) -> Self {
        Self { grid: (self.grid.x, blocks).into(), ..self }
    }

    /// A grid of blocks of shape `block` for `items` items, `per_block` in each block; at least one
    /// block.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] for blocks or a grid that the device cannot take.
    pub fn over(
        kernel: &'static str,
        device: &Device,
        items: usize,
        per_block: usize,
        block: impl Block,
    ) -> Result<Self, PlanError> {
        let limits = device.info().limits;
        let blocks = items.div_ceil(per_block.max(1)).max(1);
        let grid = u32::try_from(blocks).unwrap_or(u32::MAX);
        let launch = Self::new(grid, block.dim());
        launch.check(kernel, &limits).map_err(|error| PlanError::Unsupported {
            kernel,
            reason: match error {
                GpuError::LaunchLimit { what, limit, found, .. } => {
                    format!("{what}: {found}, this device takes 1 to {limit}")
                }
                error => error.to_string(),
            },
        })?;
        let threads = u64::from(grid) * launch.block.count();
        if launch.block.y == 1 && threads > 1 << 32 {
            let reason = format!("{items} items need {threads} threads, more than 32 bits number");
            return Err(PlanError::Unsupported { kernel, reason });
        }
        Ok(launch)
    }

    /// Checks the launch against the limits of a device.
    pub(crate) fn check(
        &self,
        kernel: &'static str,
        limits: &LaunchLimits,
    ) -> Result<(), GpuError> {
        let threads = self.block.count();
        for (what, found, limit, least) in [
            ("threads of a block", threads, limits.block_threads, 1),
            ("blocks in x", self.grid.x.into(), limits.grid_x, 1),
            ("blocks in y", self.grid.y.into(), limits.grid_y, 1),
            ("bytes of shared memory", self.shared_bytes.into(), limits.shared_bytes, 0),
        ] {
            let limit = u64::from(limit);
            if found < least || found > limit {
                return Err(GpuError::LaunchLimit { kernel, what, limit, found });
            }
        }
        Ok(())
    }
}

impl Device {
    /// Puts kernel `K` into the stream and returns without waiting for it. The emulator, unless it
    /// defers ([`EmulatorOptions::deferred`](spm_gpu_kernels::emulator::EmulatorOptions::deferred)), runs it before it returns.
    ///
    /// # Errors
    /// A launch beyond the limits of the device, a stream of another device; from the emulator,
    /// what the kernel did wrong.
    ///
    /// # Safety
    /// The arguments keep the kernel's contract: sizes describe the arrays, indices stay inside,
    /// and what the pointers point to lies on this device and lives until the stream is done with
    /// the kernel. (The memory of a dropped [`crate::DeviceBuffer`] does.)
    pub unsafe fn launch<K: Kernel>(
        &self,
        launch: Launch,
        stream: &Stream,
        args: K::Args,
    ) -> Result<(), GpuError>
    where
        K::Args: Send,
    {
        stream.check_device(self)?;
        launch.check(K::NAME, &self.info().limits)?;
        let Launch { grid, block, shared_bytes, .. } = launch;
        match (self.backend(), stream.emulated()) {
            // SAFETY: the caller's promise, and the limits were checked.
            (Backend::Cuda(cuda), _) => unsafe {
                cuda.launch::<K>(self.info(), launch, stream.as_raw(), args)
            },
            (Backend::Emulator(_), Some(stream)) => {
                Ok(stream.launch::<K>(grid, block, shared_bytes, args)?)
            }
            (Backend::Emulator(_), None) => Err(GpuError::OtherDevice { what: "stream" }),
        }
    }
}

/// A launch of enough threads for any device, which stride over `items`.
pub(crate) fn stride_over(items: usize) -> Launch {
    /// Threads of a block, and the most blocks.
    const BLOCK: usize = 256;
    const MOST_BLOCKS: usize = 1 << 16;
    Launch::new(items.div_ceil(BLOCK).clamp(1, MOST_BLOCKS) as u32, BLOCK as u32)
}

/// Threads of a warp.
pub(crate) const WARP: usize = 32;

/// Warps of a block of `block` threads.
///
/// # Errors
/// A number of threads that is not a multiple of 32.
pub(crate) fn warps(kernel: &'static str, block: usize) -> Result<usize, PlanError> {
    if block.is_multiple_of(WARP) {
        return Ok(block / WARP);
    }
    let reason =
        format!("block must be a multiple of {WARP}, the threads of a warp; found {block}");
    Err(PlanError::Unsupported { kernel, reason })
}

/// Threads of a block in a plan: one number, or (x, y).
pub trait Block {
    /// The dimensions of the block; a number beyond 32 bits becomes the largest.
    fn dim(self) -> Dim3;
}

impl Block for usize {
    fn dim(self) -> Dim3 {
        u32::try_from(self).unwrap_or(u32::MAX).into()
    }
}

impl Block for (usize, usize) {
    fn dim(self) -> Dim3 {
        let narrow = |size| u32::try_from(size).unwrap_or(u32::MAX);
        (narrow(self.0), narrow(self.1)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_into_l2_is_cached() {
        let device = DeviceInfo { l2_bytes: 50, ..DeviceInfo::emulated(1, LaunchLimits::EMULATED) };
        assert_eq!(Loads::fitting(&device, 40), Loads::Cached);
        assert_eq!(Loads::fitting(&device, 41), Loads::Streamed);
    }

    #[test]
    fn enough_blocks_and_never_none() {
        let device = Device::emulated(Default::default());
        let blocks = |items| Launch::over("k", &device, items, 128, 128).map(|l| l.grid.x);
        assert_eq!(blocks(0), Ok(1));
        assert_eq!(blocks(128), Ok(1));
        assert_eq!(blocks(129), Ok(2));
    }

    #[test]
    fn a_block_that_no_device_takes_is_refused_with_the_limit() {
        let device = Device::emulated(Default::default());
        let error = Launch::over("k", &device, 5, 2048, 2048).unwrap_err().to_string();
        assert_eq!(error, "k: threads of a block: 2048, this device takes 1 to 1024");
        assert!(Launch::over("k", &device, 5, 1, 0).is_err());
        assert!(Launch::over("k", &device, usize::MAX, 1, 32).is_err());
    }

    /// A kernel numbers its threads with 32 bits, a device its blocks with 31.
    #[test]
    fn grids_beyond_32_bits_are_refused() {
        let device = Device::emulated(Default::default());
        let error = |items, per_block, block: usize| {
            Launch::over("k", &device, items, per_block, block).err().map(|e| e.to_string())
        };
        assert_eq!(error(1 << 32, 1024, 1024), None);
        let threads = error((1 << 32) + 1, 1024, 1024).unwrap();
        assert!(threads.contains("4294968320 threads, more than 32 bits number"), "{threads}");
        assert_eq!(error(1 << 27, 4, 128), None, "a warp for each row");
        assert!(error((1 << 27) + 1, 4, 128).is_some());
        let most = i32::MAX as usize;
        assert_eq!(error(most, 1, 1), None);
        let blocks = error(most + 1, 1, 1).unwrap();
        assert!(blocks.contains("blocks in x: 2147483648"), "{blocks}");
        // Blocks of two dimensions number their rows themselves.
        assert!(Launch::over("k", &device, most * 8, 8, (32, 8)).is_ok());
        assert!(Launch::over("k", &device, most * 8 + 1, 8, (32, 8)).is_err());
    }
}

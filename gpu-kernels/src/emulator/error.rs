//! Errors and kernel defects that the emulator reports.

use thiserror::Error;

use crate::Dim3;

/// Why a launch, or an allocation, failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// A defect of the kernel.
    #[error("kernel {kernel}, block {block}, thread {thread}: {defect}")]
    Kernel {
        /// Name of the PTX entry.
        kernel: &'static str,
        /// Index of the block in the grid.
        block: Dim3,
        /// Index of the thread in its block.
        thread: Dim3,
        /// The defect.
        defect: Defect,
    },
    /// A defect of an operation in a stream that is not a kernel.
    #[error("{operation}: {defect}")]
    Operation {
        /// `"zeroing"`, `"copy"`.
        operation: &'static str,
        /// The defect.
        defect: Defect,
    },
    /// A launch that no device accepts.
    #[error("kernel {kernel}: {reason}")]
    InvalidLaunch {
        /// Name of the PTX entry.
        kernel: &'static str,
        /// The reason, with the sizes involved.
        reason: String,
    },
    /// The device's memory is full.
    #[error("out of device memory: {requested} bytes asked for, {free} free")]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes free.
        free: u64,
    },
    /// The device is lost (`EmulatorOptions::launches`).
    #[error("the device is lost")]
    DeviceLost,
}

/// Kinds of kernel defects.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Defect {
    /// A thread waits at `sync_threads` for a thread that ended or that waits elsewhere.
    #[error("waits at the barrier of {at}, which thread {missing} does not reach: it {instead}")]
    BarrierNotReached {
        /// Source file and line of the barrier.
        at: String,
        /// A thread that does not reach the barrier.
        missing: Dim3,
        /// Where that thread or lane is.
        instead: String,
    },
    /// A lane waits at a warp operation for a lane of its mask that ended or that waits elsewhere.
    #[error(
        "waits at {operation} of {at} with mask {mask:#010x}, which lane {missing} does not reach: it {instead}"
    )]
    WarpOperationNotReached {
        /// Name of the operation.
        operation: &'static str,
        /// Source file and line.
        at: String,
        /// The lanes that must take part.
        mask: u32,
        /// A lane that does not reach the operation.
        missing: u32,
        /// Where that thread or lane is.
        instead: String,
    },
    /// A lane calls a warp operation whose mask does not name it.
    #[error("lane {lane} calls {operation} at {at} with mask {mask:#010x}, which does not name it")]
    NotInMask {
        /// Name of the operation.
        operation: &'static str,
        /// Source file and line.
        at: String,
        /// The caller.
        lane: u32,
        /// Its mask.
        mask: u32,
    },
    /// A lane takes the value of a lane that does not take part.
    #[error(
        "{operation} at {at} reads lane {source_lane}, which does not take part (mask {mask:#010x})"
    )]
    InactiveLane {
        /// Name of the operation.
        operation: &'static str,
        /// Source file and line.
        at: String,
        /// The lane read.
        source_lane: u32,
        /// The lanes that take part.
        mask: u32,
    },
    /// An access to global memory outside every live buffer.
    #[error("{access} of {bytes} bytes at {address:#x} {why}")]
    OutOfBounds {
        /// `"load"`, `"store"`, ...
        access: &'static str,
        /// First byte.
        address: u64,
        /// Size of the access.
        bytes: u32,
        /// The nearest buffer, or that there is none.
        why: String,
    },
    /// An access at an address that is not a multiple of its size.
    #[error("{access} at {address:#x} is not aligned to {alignment} bytes")]
    Misaligned {
        /// `"load"`, `"store"`, ..., with the state space.
        access: &'static str,
        /// First byte.
        address: u64,
        /// The required alignment.
        alignment: u32,
    },
    /// A read of memory that was not written.
    #[error("{access} of {bytes} bytes at {address:#x} reads memory that was never written")]
    Uninitialized {
        /// `"load"`, ..., with the state space.
        access: &'static str,
        /// First byte: an address, or an offset in shared memory.
        address: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// A launch both overwrites memory and reads it through the read-only path (`DevicePtr`, a
    /// texture). On a device it may read either value.
    #[error(
        "{access} of {bytes} bytes at {address:#x}: the launch both overwrites this memory and reads it through the read-only path"
    )]
    NotReadOnly {
        /// The later of the two accesses: `"load"`, `"store"`, ...
        access: &'static str,
        /// First byte.
        address: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// An index beyond the end of an array in shared memory.
    #[error("index {index} of an array of {length} elements in shared memory")]
    SharedIndex {
        /// The index.
        index: u32,
        /// Number of elements.
        length: u32,
    },
    /// An access beyond the shared memory that the launch asked for.
    #[error("{access} of {bytes} bytes at offset {offset} of {available} bytes of shared memory")]
    SharedOutOfBounds {
        /// `"load"`, `"store"`, ...
        access: &'static str,
        /// First byte.
        offset: u32,
        /// Size of the access.
        bytes: u32,
        /// Shared memory of the block.
        available: u32,
    },
    /// A data race: two threads access a word of shared memory, at least one writes, and nothing
    /// orders them.
    #[error("{access} at offset {offset} of shared memory races with {earlier} by thread {other}")]
    SharedRace {
        /// `"load"`, `"store"`, ...
        access: &'static str,
        /// Offset of the word in bytes.
        offset: u32,
        /// The access of the other thread.
        earlier: &'static str,
        /// The other thread.
        other: Dim3,
    },
    /// A data race between streams: two operations of different streams access a buffer, at least
    /// one writes, and neither an event nor a wait of the host orders them.
    #[error(
        "{access} at {address:#x} races with {earlier} in another stream, which uses the same buffer"
    )]
    StreamRace {
        /// `"load"`, `"store"`, ...
        access: &'static str,
        /// First byte.
        address: u64,
        /// The other operation: a kernel, `"zeroing"` or `"copy"`.
        earlier: &'static str,
    },
    /// The thread exceeds the step limit, so it is probably in an endless loop.
    #[error("made more than {limit} steps: a loop without an end?")]
    StepLimit {
        /// The limit ([`super::EmulatorOptions::step_limit`]).
        limit: u64,
    },
    /// The kernel panicked (an arithmetic overflow, an index): on a device, undefined behaviour.
    #[error("panicked: {message}")]
    Panic {
        /// The panic's message.
        message: String,
    },
}

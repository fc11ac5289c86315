//! ScanTrans: histograms of chunks of entries (inter), positions inside a chunk (intra), and scans
//! (R3 III-C; Wang, Liu, Hou, Feng, ICS 2016, algorithm 1).
//!
//! The paper's inter has (threads + 1) x columns counters, too many for the 10^5 threads of a GPU.
//! Here the algorithm runs twice, with blocks instead of threads: first for ranges of columns, then
//! for the columns of each range, whose counters always fit the shared memory of a block.
//!
//! 1. inter[chunk][range] = entries of the chunk in the range, counted in shared memory.
//! 2. The vertical scan of each column of inter; its total is the number of entries of the range.
//! 3. Each block moves its chunk to the ranges, tile by tile. The intra position of an entry comes
//!    from the counts of its warp. A tile is sorted in shared memory before it is written.
//! 4. to 6.: the same for the pieces of each range, by columns.
//!
//! Minimum traffic for f64: 4 + 12 + 14 + 2 + 14 + 12 bytes an entry.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, Value};

use super::KERNEL;
use super::cut::Wish;
use super::parameters::{CHUNKS, block};
use super::radix::Sorted;
use crate::matrix::DeviceCsr;
use crate::plan::DeviceReal;
use crate::procedure::{Planned, boxed};

const BLOCK: ParameterSpec = ParameterSpec {
    name: "block",
    meaning: "threads of a block, a multiple of 32; a tile has up to 12 entries for each of them; 0 takes what suits entries and ranges",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(256), Value::Count(512), Value::Count(1024)],
};

const RANGES: ParameterSpec = ParameterSpec {
    name: "ranges",
    meaning: "ranges of columns, at most; 0 takes those with the entries of a tile",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(64)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "scan-trans",
    source: "R3 III-C; Wang, Liu, Hou, Feng, ICS 2016, algorithm 1",
    summary: "column-range counts of chunks, scanned; then column counts of the pieces of a range",
    parameters: &[BLOCK, RANGES, CHUNKS],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(a: DeviceCsr<T>, parameters: &Parameters) -> Planned<T> {
    let ranges = parameters.count(RANGES.name);
    let wish = Wish {
        block: if parameters.count(BLOCK.name) == 0 { 0 } else { block(INFO.id, parameters)? },
        width: if ranges == 0 { 0 } else { a.cols().div_ceil(ranges).max(1) },
        chunks: parameters.count(CHUNKS.name),
        sort_buckets: false,
    };
    Ok(boxed(match wish.block {
        0 => Sorted::fitted(INFO.id, a, &wish)?,
        _ => Sorted::new(INFO.id, a, &wish)?,
    }))
}

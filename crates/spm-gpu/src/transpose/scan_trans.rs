//! ScanTrans: histograms of parts of the entries (inter), places inside a part (intra), and scans
//! (R3 III-C; Wang, Liu, Hou, Feng, ICS 2016, algorithm 1).
//!
//! The paper's inter is (threads + 1) x columns, which no GPU with its 10^5 threads has room for.
//! Here it is done twice, with blocks in the place of threads: first for ranges of columns, then for
//! the columns of each range, of which there are never more than the shared memory of a block can
//! count:
//!
//! 1. inter[chunk][range] = entries of the chunk in the range, counted in shared memory
//! 2. the vertical scan: each column of inter; its total is what the range holds
//! 3. each block moves its chunk to the ranges, tile by tile: the intra place of an entry comes from
//!    the counts of its warp, and a tile is put in order in shared memory before it is written
//! 4. to 6.: the same for the pieces of each range, by columns.
//!
//! Least traffic for f64: 4 + 12 + 14 + 2 + 14 + 12 bytes an entry.

use spm_formats::kernel::{
    Backend, KernelInfo, Operation, ParameterSpec, Parameters, PlanError, Value,
};

use super::column_buckets::Sorted;
use super::cut::Wish;
use super::parameters::{CHUNKS, block};
use super::{BoxedPlan, boxed};
use crate::device::Device;
use crate::matrix::DeviceCsr;
use crate::plan::DeviceScalar;

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
    operation: Operation::Transpose,
    backend: Backend::Gpu,
    source: "R3 III-C; Wang, Liu, Hou, Feng, ICS 2016, algorithm 1",
    summary: "counts of chunks by column range, scanned; then of pieces of a range by column",
    parameters: &[BLOCK, RANGES, CHUNKS],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: DeviceCsr<T>,
    parameters: &Parameters,
) -> Result<BoxedPlan<T>, PlanError> {
    let ranges = parameters.count(RANGES.name);
    let wish = Wish {
        block: if parameters.count(BLOCK.name) == 0 { 0 } else { block(INFO.id, parameters)? },
        width: if ranges == 0 { 0 } else { a.cols().div_ceil(ranges).max(1) },
        chunks: parameters.count(CHUNKS.name),
        sort_buckets: false,
    };
    Ok(boxed(match wish.block {
        0 => Sorted::fitted(INFO.id, device, a, &wish)?,
        _ => Sorted::new(INFO.id, device, a, &wish)?,
    }))
}

//! Conversions on the device from CSR to the formats of the kernels.

mod bsr;
mod column_blocks;
mod diagonals;
mod dictionary;
mod ell_columns;
mod padded;
mod pattern;
mod segments;
mod sellp;
mod stats;
mod values;

use bsr::BlockSample;
pub(crate) use bsr::{BsrBlocks, BsrOptions, DeviceBsr, detect_blocks};
pub(crate) use column_blocks::{ColumnBlockShape, DeviceColumnBlocks};
pub(crate) use diagonals::{DeviceDia, DiagonalSample};
pub(crate) use dictionary::DeviceDictionary;
pub(crate) use ell_columns::DeviceEllColumns;
pub(crate) use pattern::PatternSample;
pub(crate) use segments::DeviceSegments;
pub(crate) use sellp::{DeviceSellp, MeasuredSellp, SellpOptions, StoredValues};
pub(crate) use stats::{RowStats, Survey, ValueStats};
pub(crate) use values::{
    COMPRESSED, DeviceReducedValues, NEW_VALUES, NOT_PLANNED, ValueKind, ValuePositions,
    entry_numbers,
};

use spm_formats::kernel::PlanError;

use crate::device::Device;
use crate::launch::{Launch, WARP};
use crate::memory::DeviceBuffer;
use crate::stream::Stream;
use crate::transpose::Scan;

const ID: &str = "convert";
/// Threads of a block.
const BLOCK: usize = 256;

/// A launch of one thread for each of `items`.
fn threads(device: &Device, items: usize) -> Result<Launch, PlanError> {
    Launch::over(ID, device, items, BLOCK, BLOCK)
}

/// A launch of one warp for each of `items`.
fn warps(device: &Device, items: usize) -> Result<Launch, PlanError> {
    Launch::over(ID, device, items, BLOCK / WARP, BLOCK)
}

/// Exclusive scan: replaces each word by the sum of those before it.
fn scan(data: &mut DeviceBuffer<u32>, stream: &Stream) -> Result<(), PlanError> {
    let mut scan = Scan::fitting(stream.device(), data.len())?;
    Ok(scan.enqueue(data, stream)?)
}

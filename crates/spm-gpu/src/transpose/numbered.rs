//! `auto` for matrices of complex numbers: the numbers of the entries are transposed in place of the values,
//! which then follow in one pass.

use std::mem;

use spm_formats::kernel::{KernelInfo, Parameters};

use super::auto;
use super::buckets::{ColumnSort, Entries};
use super::radix::{default_wish, fitted_sort};
use crate::convert::{ValuePositions, entry_numbers};
use crate::error::GpuError;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceCsc, DeviceScalar};
use crate::procedure::{Planned, Procedure, boxed};
use crate::stream::Stream;

pub(super) const INFO: KernelInfo = KernelInfo {
    summary: "radix over the numbers of the entries, with parameters from the column extents and the bucket sizes; complex values follow in one pass",
    ..auto::INFO
};

struct Numbered<T> {
    a: DeviceCsr<T>,
    /// `None` for a matrix without entries.
    sort: Option<ColumnSort<f32>>,
    /// The numbers of the entries as bits, in CSR order, and where they end; `None` for a pattern.
    numbers: Option<(DeviceBuffer<f32>, ValuePositions)>,
    /// The numbers in CSC order; during a launch with the other arrays of its output.
    moved: DeviceCsc<f32>,
}

pub(super) fn plan<T: DeviceScalar>(a: DeviceCsr<T>, _: &Parameters) -> Planned<T> {
    let (device, entries) = (a.device(), a.entries());
    let stream = Stream::of_planning(device)?;
    let mut numbers = None;
    if !a.values.is_empty() {
        let positions = ValuePositions::unknown(device, entries, entries)?;
        numbers = Some((entry_numbers(entries, &stream)?, positions));
    }
    let mut sort = None;
    if entries > 0 {
        let of_sort = of_sort(&a, numbers.as_ref().map(|(numbers, _)| numbers));
        sort = Some(fitted_sort(INFO.id, device, (a.rows(), a.cols()), &of_sort, &default_wish())?);
    }
    stream.synchronize()?;
    let moved = DeviceCsc {
        col_ptr: DeviceBuffer::uninitialized(device, 0)?,
        row_ind: DeviceBuffer::uninitialized(device, 0)?,
        values: DeviceBuffer::uninitialized(device, a.values.len())?,
    };
    Ok(boxed(Numbered { a, sort, numbers, moved }))
}

/// The entries with numbers as values.
fn of_sort<'a, T: DeviceScalar>(
    a: &'a DeviceCsr<T>,
    numbers: Option<&'a DeviceBuffer<f32>>,
) -> Entries<'a, f32> {
    Entries::Csr { row_ptr: &a.row_ptr, columns: &a.col_ind, values: numbers }
}

impl<T: DeviceScalar> Procedure<T> for Numbered<T> {
    fn matrix(&self) -> &DeviceCsr<T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        let sort = self.sort.as_ref().map_or(0, ColumnSort::workspace_bytes);
        let numbers = self.numbers.as_ref().map_or(0, |(numbers, positions)| {
            numbers.bytes() + positions.bytes() + self.moved.values.bytes()
        });
        sort + numbers as u64
    }

    fn enqueue(&mut self, output: &mut DeviceCsc<T>, stream: &Stream) -> Result<(), GpuError> {
        let Self { a, sort, numbers, moved } = self;
        let Some(sort) = sort else { return output.col_ptr.enqueue_zero(stream) };
        let mut lend = |moved: &mut DeviceCsc<f32>| {
            mem::swap(&mut moved.col_ptr, &mut output.col_ptr);
            mem::swap(&mut moved.row_ind, &mut output.row_ind);
        };
        let of_sort = of_sort(a, numbers.as_ref().map(|(numbers, _)| numbers));
        lend(moved);
        let sorted = sort.enqueue(&of_sort, moved, stream);
        lend(moved);
        sorted?;
        let Some((_, positions)) = numbers else { return Ok(()) };
        positions.find(&moved.values, stream)?;
        positions.set(&a.values, &mut output.values, stream)
    }

    fn choice(&self) -> Option<String> {
        self.sort.as_ref().map(|sort| auto::label(sort.cut()))
    }
}

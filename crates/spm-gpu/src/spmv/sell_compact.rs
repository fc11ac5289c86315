//! Plans of `gpu-kernels/src/spmv/sell_compact.rs`.

use spm_formats::convert::csr_to_sell;
use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::{
    CompactColumns, SellCompactEqualSorted, SellCompactEqualUnsorted, SellCompactSorted,
    SellCompactUnsorted,
};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, R2_BLOCKS, SIGMA, block};
use crate::launch::Launch;
use crate::launch::WARP;
use crate::matrix::{DeviceMatrix, DeviceSell, DeviceValues, check_stored_elements, permutation};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned, Problem};
use crate::product::Target;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell-compact",
    source: "own",
    summary: "SELL-32-sigma with columns of 0, 8, 16 or 32 bits, as each chunk needs",
    parameters: &[block(256, R2_BLOCKS), SIGMA, DROP_EQUAL],
    ..KERNEL
};

struct CompactSell<T> {
    shape: (usize, usize),
    chunks: DeviceBuffer<[u32; 4]>,
    bases: DeviceBuffer<u32>,
    offsets: DeviceBuffer<u32>,
    /// The row at each position; `None` where every row is at its own.
    permutation: Option<DeviceBuffer<u32>>,
    row_lengths: DeviceBuffer<u32>,
    values: DeviceValues<T>,
}

impl<T: DeviceReal> DeviceMatrix for CompactSell<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn bytes(&self) -> u64 {
        let columns = self.chunks.bytes() + self.bases.bytes() + self.offsets.bytes();
        let permutation = self.permutation.as_ref().map_or(0, DeviceBuffer::bytes);
        // Without values only the lengths tell what is padding.
        let lengths = match self.values {
            DeviceValues::Stored(_) => 0,
            DeviceValues::Equal(_) => self.row_lengths.bytes(),
        };
        (columns + permutation + lengths + self.values.bytes()) as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        match self.values {
            DeviceValues::Stored(_) => self.row_lengths.bytes() as u64,
            DeviceValues::Equal(_) => 0,
        }
    }
}

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, budget, .. } = problem;
    let warps = problem.warps()?;
    let chunk = DeviceSell::<T>::CHUNK;
    let chunks = a.rows().div_ceil(chunk);
    let launch = problem.launch(chunks, warps, warps * WARP)?;
    let sell = csr_to_sell(a, chunk, parameters.count(SIGMA.name), budget)?;
    DeviceSell::<T>::check_stored_elements(INFO.id, &sell)?;
    let longest = sell.row_lengths().iter().max().map_or(0, |&length| length as usize);
    check_stored_elements(INFO.id, longest)?;
    let columns = CompactColumns::of(sell.chunk_offsets(), sell.row_lengths(), sell.col_ind());
    let columns = columns.ok_or_else(|| {
        let reason = "column offsets of more than 2^37 bytes".to_owned();
        problem.unsupported(reason)
    })?;
    let drop_equal = parameters.switch(DROP_EQUAL.name);
    let a = CompactSell {
        shape: (a.rows(), a.cols()),
        chunks: DeviceBuffer::from_slice(device, &columns.chunks)?,
        bases: DeviceBuffer::from_slice(device, &columns.bases)?,
        offsets: DeviceBuffer::from_slice(device, &columns.offsets)?,
        permutation: permutation(device, &sell)?,
        row_lengths: DeviceBuffer::from_slice(device, sell.row_lengths())?,
        values: DeviceValues::new(device, a.values(), sell.values(), drop_equal)?,
    };
    let launch = problem.loading(&a, launch);
    Ok(problem.product(a, 0, move |a, x, y, stream| enqueue(a, launch, x, y, stream)))
}

fn enqueue<T: DeviceReal>(
    a: &CompactSell<T>,
    launch: Launch,
    x: &DeviceBuffer<T>,
    y: &mut Target<'_, T>,
    stream: &crate::Stream,
) -> Result<(), crate::GpuError> {
    macro_rules! launch {
        ($kernel:ident { $($more:ident: $value:expr),* }) => {{
            let args = $kernel {
                rows: a.shape.0 as u32,
                cols: a.shape.1 as u32,
                chunks: a.chunks.ptr(),
                bases: a.bases.ptr(),
                offsets: a.offsets.ptr(),
                row_lengths: a.row_lengths.ptr(),
                x: x.ptr(),
                y: y.output(),
                $($more: $value),*
            };
            // SAFETY: a SELL-32 matrix made from verified CSR arrays, with its columns shortened,
            // and vectors of the lengths of its shape.
            unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
        }};
    }
    match (&a.values, &a.permutation) {
        (DeviceValues::Stored(values), Some(permutation)) => {
            launch!(SellCompactSorted { values: values.ptr(), permutation: permutation.ptr() })
        }
        (DeviceValues::Stored(values), None) => {
            launch!(SellCompactUnsorted { values: values.ptr() })
        }
        (&DeviceValues::Equal(value), Some(permutation)) => {
            launch!(SellCompactEqualSorted { value: value, permutation: permutation.ptr() })
        }
        (&DeviceValues::Equal(value), None) => launch!(SellCompactEqualUnsorted { value: value }),
    }
}

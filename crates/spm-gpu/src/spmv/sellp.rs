//! Plan of `gpu-kernels/src/spmv/sellp.rs`.

use spm_formats::FormatError;
use spm_formats::kernel::{KernelInfo, ParameterSpec, PlanError, Value};
use spm_gpu_kernels::convert::MOST_SIGMA;
use spm_gpu_kernels::spmv::{
    Sellp, SellpCoded, SellpCodedSorted, SellpEqual, SellpEqualSorted, SellpSingle,
    SellpSingleSorted, SellpSorted, coded_shared_bytes,
};

use super::KERNEL;
use super::parameters::{CODES, DROP_EQUAL, R2_BLOCKS, SINGLE_VALUES, block, row_lanes};
use crate::convert::{
    DeviceReducedValues, DeviceSellp, MeasuredSellp, SellpOptions, StoredValues, ValueKind,
};
use crate::launch::Launch;
use crate::launch::WARP;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::Target;
use crate::source::Source;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sellp",
    source: "own; Anzt, Tomov, Dongarra, UT-EECS-14-727, 2014",
    summary: "SELL-P, 1 to 32 threads for each row, chunks with few diagonals stored by diagonal, compressed columns and values",
    parameters: &[
        block(256, R2_BLOCKS),
        LANES,
        SORTED,
        DIAGONALS,
        COMPACT,
        DROP_EQUAL,
        CODES,
        SINGLE_VALUES,
    ],
    ..KERNEL
};

const LANES: ParameterSpec =
    row_lanes("threads of a row; auto takes enough of them to fill the device");

/// Rows of a window.
pub(super) const SORTED: ParameterSpec = ParameterSpec {
    name: "sigma",
    meaning: "rows of a window that is sorted by length, a power of two up to 1024; 1 does not sort",
    default: Value::Count(1),
    studied: &[Value::Count(1), Value::Count(256), Value::Count(1024)],
};

/// Whether chunks may be stored by diagonal.
pub(super) const DIAGONALS: ParameterSpec = ParameterSpec::on(
    "diagonals",
    "stored elements by diagonal, without columns, in chunks whose entries lie on few",
);

const COMPACT: ParameterSpec =
    ParameterSpec::on("compact", "columns of 8, 16 or 32 bits, as each chunk needs; off keeps 32");

/// As many threads per row as keep the device busy, with at least two entries for each thread.
fn fitting_lanes<T: DeviceReal>(a: &Source<T>) -> usize {
    // Three eighths of what it runs at once.
    let enough = 3 * a.csr.device().info().resident_threads() / 8;
    let wanted = enough.div_ceil(a.csr.rows().max(1)).next_power_of_two();
    let most = (a.mean_row() / 2).max(1);
    wanted.min(1 << most.ilog2()).min(WARP)
}

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { a, budget, .. } = problem;
    let measured = measured(a, problem, |elements| {
        let element_bytes = size_of::<T>() + size_of::<u32>();
        budget.check("SELL-P", a.csr.entries(), elements.into(), element_bytes, 0)?;
        Ok(true)
    })?;
    measured.expect("the budget refuses by an error").plan(problem)
}

/// A plan that is not made yet.
pub(super) struct Measured<'a, T> {
    pub(super) matrix: MeasuredSellp<'a, T>,
    launch: Launch,
}

impl<T: DeviceReal> Measured<'_, T> {
    /// The plan for the problem that was measured.
    pub(super) fn plan(self, problem: DeviceProblem<'_, T>) -> Planned<T> {
        let a = self.matrix.convert()?;
        let launch = problem.loading(&a, self.launch);
        Ok(problem.product(a, 0, move |a, x, y, stream| enqueue(a, launch, x, y, stream)))
    }
}

/// For the matrix of the problem, `a`; `None` if `accept` refuses the number of stored elements.
pub(super) fn measured<'a, T: DeviceReal>(
    a: &'a Source<T>,
    problem: DeviceProblem<'_, T>,
    accept: impl FnOnce(u64) -> Result<bool, PlanError>,
) -> Result<Option<Measured<'a, T>>, PlanError> {
    let parameters = problem.parameters;
    let warps = problem.warps()?;
    let lanes = parameters.choice("threads-per-row").parse().unwrap_or_else(|_| fitting_lanes(a));
    let chunks = a.csr.rows().div_ceil(WARP / lanes);
    let launch = problem.launch(chunks, warps, warps * WARP)?;
    let (drop_equal, single) =
        (parameters.switch(DROP_EQUAL.name), parameters.switch(SINGLE_VALUES.name));
    let sigma = parameters.count(SORTED.name);
    if !sigma.is_power_of_two() || sigma > MOST_SIGMA as usize {
        let expected = "a power of two up to 1024 rows";
        return Err(
            FormatError::InvalidParameter { what: SORTED.name, expected, found: sigma }.into()
        );
    }
    let values = ValueKind::choose(a.values()?, drop_equal, single);
    let coded = parameters.switch(CODES.name) && !matches!(values, ValueKind::Equal(_));
    let dictionary = if coded { a.dictionary()? } else { None };
    let launch = match dictionary {
        Some(_) => launch.with_shared_bytes(coded_shared_bytes::<T>()),
        None => launch,
    };
    let options = SellpOptions {
        lanes,
        compact: parameters.switch("compact"),
        diagonals: parameters.switch(DIAGONALS.name),
        sigma,
        longest_row: a.stats.longest_row,
        values,
        dictionary,
        new_values: a.new_values,
    };
    let matrix = MeasuredSellp::new(&a.csr, options, accept)?;
    Ok(matrix.map(|matrix| Measured { matrix, launch }))
}

fn enqueue<T: DeviceReal>(
    a: &DeviceSellp<T>,
    launch: Launch,
    x: &DeviceBuffer<T>,
    y: &mut Target<'_, T>,
    stream: &crate::Stream,
) -> Result<(), crate::GpuError> {
    macro_rules! launch {
        ($kernel:ident { $($field:ident: $value:expr),* }) => {{
            let args = $kernel {
                rows: a.shape.0 as u32,
                cols: a.shape.1 as u32,
                log_lanes: a.log_lanes,
                headers: a.headers.ptr(),
                bases: a.bases.ptr(),
                offsets: a.offsets.ptr(),
                fills: a.fills.ptr(),
                row_ptr: a.row_ptr.ptr(),
                $($field: $value,)*
                x: x.ptr(),
                y: y.output(),
            };
            // SAFETY: a SELL-P matrix made from verified CSR arrays, and vectors of the lengths of
            // its shape.
            unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
        }};
    }
    let (log_sigma, order) = (a.log_sigma, a.order.ptr());
    macro_rules! in_order {
        ($in_order:ident, $sorted:ident { $($field:ident: $value:expr),* }) => {
            if log_sigma == 0 {
                launch!($in_order { $($field: $value),* })
            } else {
                launch!($sorted { $($field: $value,)* log_sigma: log_sigma, order: order })
            }
        };
    }
    match &a.values {
        StoredValues::Coded(codes, values) => {
            in_order!(SellpCoded, SellpCodedSorted { codes: codes.ptr(), table: values.ptr() })
        }
        StoredValues::Reduced(DeviceReducedValues::Stored(values)) => {
            in_order!(Sellp, SellpSorted { values: values.ptr() })
        }
        StoredValues::Reduced(DeviceReducedValues::Single(values)) => {
            in_order!(SellpSingle, SellpSingleSorted { values: values.ptr() })
        }
        &StoredValues::Reduced(DeviceReducedValues::Equal(value)) => {
            in_order!(SellpEqual, SellpEqualSorted { value: value })
        }
    }
}

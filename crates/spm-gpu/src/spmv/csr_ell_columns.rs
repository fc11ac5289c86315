//! Plan of `gpu-kernels/src/spmv/csr_ell_columns.rs`.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Value};
use spm_gpu_kernels::spmv::{
    CsrEllColumns4, CsrEllColumns4Equal, CsrEllColumns4Wide, CsrEllColumns4WideEqual,
    CsrEllColumns8, CsrEllColumns8Equal, CsrEllColumns8Wide, CsrEllColumns8WideEqual,
};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, row_lanes};
use crate::convert::DeviceEllColumns;
use crate::launch::WARP;
use crate::matrix::PlanCsr;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::source::Source;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-ell-columns",
    source: "own",
    summary: "CSR with the columns in a fixed number of stored elements for each thread, 1 to 32 threads for each row",
    parameters: &[BLOCK, LANES, COMPACT, DROP_EQUAL],
    ..KERNEL
};

const BLOCK: ParameterSpec = ParameterSpec {
    name: "block",
    meaning: "threads of a block; auto takes two blocks for each multiprocessor, or larger ones",
    default: Value::Choice("auto"),
    studied: &[
        Value::Choice("auto"),
        Value::Choice("256"),
        Value::Choice("512"),
        Value::Choice("1024"),
    ],
};

const LANES: ParameterSpec =
    row_lanes("threads of a row; auto takes as many as have stored elements for the longest row");

const COMPACT: ParameterSpec = ParameterSpec::on(
    "compact",
    "columns of 16 bits, or their distances from the row, where they fit; off keeps 32",
);

/// Stored columns of a thread, if every row fits one thread and otherwise.
const FEW_ELEMENTS: usize = 4;
const ELEMENTS: usize = 8;
/// Minimum and maximum threads of a block; smaller blocks do not start faster.
const BLOCKS: std::ops::RangeInclusive<usize> = 128..=1024;

/// The number of threads per row whose stored columns hold the longest row, if 32 suffice.
pub(super) fn fitting_lanes<T: DeviceReal>(a: &Source<T>) -> usize {
    a.stats.longest_row.div_ceil(ELEMENTS).next_power_of_two().min(WARP)
}

/// Threads for all rows.
pub(super) fn threads<T: DeviceReal>(a: &Source<T>) -> usize {
    a.csr.rows() * fitting_lanes(a)
}

/// Stored columns.
pub(super) fn elements<T: DeviceReal>(a: &Source<T>) -> usize {
    threads(a) * elements_of(a)
}

fn elements_of<T: DeviceReal>(a: &Source<T>) -> usize {
    if a.stats.longest_row <= FEW_ELEMENTS { FEW_ELEMENTS } else { ELEMENTS }
}

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, budget, .. } = problem;
    let lanes = parameters.choice("threads-per-row").parse().unwrap_or_else(|_| fitting_lanes(a));
    let elements = elements_of(a);
    let (rows, threads) = (a.csr.rows(), a.csr.rows() * lanes);
    let block = parameters.choice("block").parse().unwrap_or_else(|_| {
        let fitting = threads.div_ceil(2 * device.info().multiprocessors as usize);
        fitting.next_multiple_of(WARP).clamp(*BLOCKS.start(), *BLOCKS.end())
    });
    let compact = parameters.switch(COMPACT.name);
    let word = size_of::<u32>() / if compact { 2 } else { 1 };
    budget.check(
        "columns in stored elements",
        a.csr.entries(),
        (threads * elements) as u128,
        word,
        0,
    )?;
    let launch = problem.launch(threads, block, block)?;
    // Times 0 the value of an empty stored element must be 0.
    let finite = |value: &T| value.to_f64().is_finite();
    let equal = a.values()?.equal.filter(|_| parameters.switch(DROP_EQUAL.name)).filter(finite);
    let a = DeviceEllColumns::new(
        PlanCsr::new(a)?,
        equal,
        (lanes, elements),
        a.stats.longest_row,
        compact,
        launch,
    )?;
    let (rows, lanes) = (rows as u32, lanes as u32);
    let launch = problem.loading(&a, launch);
    Ok(problem.product(a, 0, move |a, x, y, stream| {
        macro_rules! launch {
            ($kernel:ident { $($field:ident: $value:expr),* }) => {{
                let args = $kernel {
                    rows,
                    lanes,
                    rest: a.rest.into(),
                    words: a.words.ptr(),
                    row_ptr: a.csr.row_ptr(),
                    col_ind: a.csr.col_ind(),
                    $($field: $value,)*
                    x: x.ptr(),
                    y: y.output(),
                };
                // SAFETY: verified CSR arrays, stored elements for each thread of this launch, and
                // vectors of the lengths of their shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        let values = a.csr.values();
        match (elements, a.relative, a.equal) {
            (FEW_ELEMENTS, Some(relative), None) => {
                launch!(CsrEllColumns4 { relative: relative, values: values })
            }
            (FEW_ELEMENTS, Some(relative), Some(value)) => {
                launch!(CsrEllColumns4Equal { relative: relative, value: value })
            }
            (FEW_ELEMENTS, None, None) => launch!(CsrEllColumns4Wide { values: values }),
            (FEW_ELEMENTS, None, Some(value)) => launch!(CsrEllColumns4WideEqual { value: value }),
            (_, Some(relative), None) => {
                launch!(CsrEllColumns8 { relative: relative, values: values })
            }
            (_, Some(relative), Some(value)) => {
                launch!(CsrEllColumns8Equal { relative: relative, value: value })
            }
            (_, None, None) => launch!(CsrEllColumns8Wide { values: values }),
            (_, None, Some(value)) => launch!(CsrEllColumns8WideEqual { value: value }),
        }
    }))
}

//! Parameters that several SpMV kernels share.

use spm_formats::CsrView;
use spm_formats::kernel::{ParameterSpec, Parameters, Value};

use crate::launch::WARP;
use crate::plan::DeviceScalar;

/// 128 to 1024 in steps of 128 (R0).
pub(super) const R0_BLOCKS: &[Value] = &[
    Value::Count(128),
    Value::Count(256),
    Value::Count(384),
    Value::Count(512),
    Value::Count(640),
    Value::Count(768),
    Value::Count(896),
    Value::Count(1024),
];
/// 192, 256, 384 (R1).
pub(super) const R1_BLOCKS: &[Value] = &[Value::Count(192), Value::Count(256), Value::Count(384)];
/// 32 x 8, 16, 32 (R1).
pub(super) const R1_WARP_BLOCKS: &[Value] =
    &[Value::Count(256), Value::Count(512), Value::Count(1024)];
/// 128, 256, 512, 1024 (R2).
pub(super) const R2_BLOCKS: &[Value] =
    &[Value::Count(128), Value::Count(256), Value::Count(512), Value::Count(1024)];

/// Threads of a block.
pub(super) const fn block(default: usize, studied: &'static [Value]) -> ParameterSpec {
    ParameterSpec {
        name: "block",
        meaning: "threads of a block",
        default: Value::Count(default),
        studied,
    }
}

/// Whether a product stops at the length of a row of a padded format (R1 4.3.2).
pub(crate) const ROW_LENGTHS: ParameterSpec =
    ParameterSpec::on("row-lengths", "stop at the length of a row; off multiplies the padding");

/// Rows of a block of HLL.
pub(super) const HACK: ParameterSpec = ParameterSpec {
    name: "hack",
    meaning: "rows of a block of the format",
    default: Value::Count(32),
    studied: &[Value::Count(16), Value::Count(32), Value::Count(64)],
};

/// Whether one value is stored if all values are equal.
pub(super) const DROP_EQUAL: ParameterSpec =
    ParameterSpec::on("drop-equal", "store one value instead of an array if all values are equal");

/// Whether few distinct values are stored by number.
pub(super) const CODES: ParameterSpec =
    ParameterSpec::on("codes", "store a byte for each value where at most 255 are distinct");

/// Whether values are stored in single precision if that is exact.
pub(super) const SINGLE_VALUES: ParameterSpec = ParameterSpec::on(
    "single-values",
    "store values in single precision if each of them is exact there",
);

/// The parameter for the threads per row; `meaning` says what `auto` takes.
pub(crate) const fn row_lanes(meaning: &'static str) -> ParameterSpec {
    ParameterSpec {
        name: "threads-per-row",
        meaning,
        default: Value::Choice("auto"),
        studied: &[
            Value::Choice("auto"),
            Value::Choice("1"),
            Value::Choice("2"),
            Value::Choice("4"),
            Value::Choice("8"),
            Value::Choice("16"),
            Value::Choice("32"),
        ],
    }
}

/// Threads per row of CSR.
pub(super) const LANES: ParameterSpec = row_lanes(
    "threads of a row; auto takes a quarter of the mean row length, rounded up to a power of two",
);

/// The requested threads per row, or those that fit the mean length of the rows that have entries.
pub(super) fn lanes<T: DeviceScalar>(a: CsrView<'_, T>, parameters: &Parameters) -> usize {
    parameters.choice("threads-per-row").parse().unwrap_or_else(|_| {
        let filled = a.row_ptr().windows(2).filter(|pair| pair[0] < pair[1]).count();
        fitting_lanes(a.nnz() / filled.max(1))
    })
}

/// Four entries for each thread of a row of the mean length.
pub(super) fn fitting_lanes(mean_row: usize) -> usize {
    mean_row.div_ceil(4).next_power_of_two().min(WARP)
}

/// Rows of a window of SELL-C-sigma.
pub(super) const SIGMA: ParameterSpec = ParameterSpec {
    name: "sigma",
    meaning: "rows of a window that is sorted by length; 1 does not sort",
    default: Value::Count(1024),
    studied: &[
        Value::Count(1),
        Value::Count(32),
        Value::Count(256),
        Value::Count(1024),
        Value::Count(16384),
    ],
};

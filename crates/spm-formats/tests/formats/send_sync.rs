//! Which values may be shared between threads and moved to others: all of them.

use spm_formats::cache::{CacheError, Source};
use spm_formats::convert::{ConversionInput, ConversionKernel, ConversionPlan, Converted};
use spm_formats::kernel::{
    KernelInfo, ParameterError, Parameters, PlanError, ProductPlan, RunError, Scaling,
    TransposeOutput, TransposePlan,
};
use spm_formats::matrix_market::{MatrixFile, MatrixMarketError, ReadOptions};
use spm_formats::stats::MatrixStats;
use spm_formats::{
    Bsr, Coo, Csc, Csr, CsrSource, CsrView, Ell, FormatError, Hll, MemoryBudget, Sell, UnpaddedEll,
    UnpaddedRow,
};

fn send_and_sync<E: Send + Sync + ?Sized>() {}

#[test]
fn everything_is_send_and_sync() {
    send_and_sync::<Coo<f64>>();
    send_and_sync::<Csr<f64>>();
    send_and_sync::<Csc<f64>>();
    send_and_sync::<CsrView<'_, f64>>();
    send_and_sync::<CsrSource<'_, f64>>();
    send_and_sync::<Scaling<f64>>();
    send_and_sync::<Ell<f64>>();
    send_and_sync::<UnpaddedEll<f64>>();
    send_and_sync::<UnpaddedRow<f64>>();
    send_and_sync::<Hll<f64>>();
    send_and_sync::<Sell<f64>>();
    send_and_sync::<Bsr<f64>>();
    send_and_sync::<MemoryBudget>();
    send_and_sync::<FormatError>();

    send_and_sync::<MatrixFile<f64>>();
    send_and_sync::<ReadOptions>();
    send_and_sync::<MatrixMarketError>();
    send_and_sync::<Source>();
    send_and_sync::<CacheError>();

    send_and_sync::<ConversionInput<'_, f64>>();
    send_and_sync::<ConversionKernel<f64>>();
    send_and_sync::<ConversionPlan<'_, f64>>();
    send_and_sync::<Converted<f64>>();

    send_and_sync::<KernelInfo>();
    send_and_sync::<Parameters>();
    send_and_sync::<ParameterError>();
    send_and_sync::<PlanError>();
    send_and_sync::<RunError>();
    send_and_sync::<TransposeOutput<f64>>();

    send_and_sync::<MatrixStats>();
}

/// Many threads may run a product; a transposition holds workspace that a run writes.
#[test]
fn plans_of_products_are_shared_and_transpositions_move() {
    fn send<E: Send + ?Sized>() {}
    send_and_sync::<dyn ProductPlan<f64>>();
    send::<dyn TransposePlan<f64>>();
}

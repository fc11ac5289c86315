//! Which values may be shared between threads and moved to others.

use spm_formats::cache::CacheError;
use spm_formats::convert::ConversionPlan;
use spm_formats::matrix_market::{MatrixFile, MatrixMarketError};
use spm_formats::{Coo, Csc, Csr, CsrView, Ell, FormatError, Hll, MemoryBudget, Sell, UnpaddedEll};

fn send_and_sync<E: Send + Sync>() {}

#[test]
fn everything_is_send_and_sync() {
    send_and_sync::<Coo<f64>>();
    send_and_sync::<Csr<f64>>();
    send_and_sync::<Csc<f64>>();
    send_and_sync::<CsrView<'_, f64>>();
    send_and_sync::<Ell<f64>>();
    send_and_sync::<UnpaddedEll<f64>>();
    send_and_sync::<Hll<f64>>();
    send_and_sync::<Sell<f64>>();
    send_and_sync::<MemoryBudget>();
    send_and_sync::<MatrixFile<f64>>();
    send_and_sync::<ConversionPlan<'_, f64>>();
    send_and_sync::<MatrixMarketError>();
    send_and_sync::<CacheError>();
    send_and_sync::<FormatError>();
}

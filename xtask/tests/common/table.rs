//! What a run of `bench` has recorded.

use std::collections::BTreeSet;
use std::path::Path;

use spm_study::results::{self, CaseKey, RESULTS_FILE, Row};

/// The whole rows of a results folder; none where there is no table yet.
pub(crate) fn rows(out: &Path) -> Vec<Row> {
    results::read(&out.join(RESULTS_FILE)).unwrap_or_default()
}

/// Which cases the rows are.
pub(crate) fn keys(rows: &[Row]) -> BTreeSet<CaseKey> {
    rows.iter().map(Row::key).collect()
}

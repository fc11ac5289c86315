//! What a run leaves behind: `results.csv`, `environment.json` and `matrices/*.json`.

mod matrix;
mod renamed;
mod row;
mod table;

pub use matrix::{MatrixFile, Spy};
pub use row::{Baseline, CaseKey, Row, Status};
pub use table::{Writer, read};

/// File name of the case table inside a results folder.
pub const RESULTS_FILE: &str = "results.csv";
/// File name of the machine's description inside a results folder.
pub const ENVIRONMENT_FILE: &str = "environment.json";
/// Folder of the matrices' descriptions inside a results folder.
pub const MATRICES_FOLDER: &str = "matrices";
/// What a matrix name starts with when the matrix was generated.
pub const SYNTHETIC: &str = spm_testing::generate::PREFIX;

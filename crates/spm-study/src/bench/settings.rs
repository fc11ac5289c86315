//! How a run measures.

use std::time::Duration;

use crate::catalogue::Report;

use super::timing::{Sampling, Scope};
use crate::input::Input;

/// Type of the values that a run computes with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Precision {
    /// Double.
    #[default]
    F64,
    /// Single.
    F32,
}

impl Precision {
    /// Both.
    pub const ALL: [Self; 2] = [Self::F64, Self::F32];

    /// Name in `results.csv` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
        }
    }
}

/// How a run measures.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Repetitions.
    pub sampling: Sampling,
    /// What the clock encloses.
    pub scope: Scope,
    /// Type of the values.
    pub precision: Precision,
    /// Evict caches before each sample.
    pub cold: bool,
    /// Where x comes from.
    pub input: Input,
    /// The report whose settings these are.
    pub report: Option<Report>,
}

impl Settings {
    /// What `environment.json` records of them.
    pub fn describe(&self) -> serde_json::Map<String, serde_json::Value> {
        let Sampling { warm_up, iterations, min_time, max_time } = self.sampling;
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).ok();
        let described = serde_json::json!({
            "report": self.report.map(|report| report.to_string()),
            "x": self.input.describe(),
            "scope": self.scope.name(),
            "precision": self.precision.name(),
            "cache": if self.cold { "cold" } else { "hot" },
            "iterations": iterations,
            "warm_up": warm_up,
            "min_time_ms": milliseconds(min_time),
            "max_time_ms": milliseconds(max_time),
        });
        match described {
            serde_json::Value::Object(fields) => fields,
            _ => unreachable!("written as an object"),
        }
    }
}

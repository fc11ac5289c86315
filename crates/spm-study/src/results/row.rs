//! One case and what identifies it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::SYNTHETIC;

/// How a case ended.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Agrees with the reference; the times count.
    #[default]
    Ok,
    /// Broke: an error of the device, a panic, ...
    Failed,
    /// Does not apply: refused by the memory budget, no such library, ...
    Skipped,
    /// Ran and disagreed with the reference: it has no speed.
    Mismatch,
}

impl Status {
    /// Name as in `results.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Mismatch => "mismatch",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One case: one line of `results.csv`, fields in the order of its columns.
///
/// A number that does not apply (threads on a GPU) or was not measured (a failed case) is `None`
/// and an empty field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Experiment, for example `spmv-cpu-threads`.
    pub experiment: String,
    /// Matrix; `synthetic:NAME` when it was generated.
    pub matrix: String,
    /// Rows of the matrix.
    pub rows: u64,
    /// Columns of the matrix.
    pub cols: u64,
    /// Stored entries, explicit zeros included, symmetric ones expanded.
    pub entries: u64,
    /// Operation: `spmv`, `spmm`, `transpose`, `conversion`, `read`.
    pub op: String,
    /// `cpu` or `gpu`.
    pub backend: String,
    /// Kernel id, for example `csr-rows`.
    pub kernel: String,
    /// `name=value,name=value`, without brackets.
    pub params: String,
    /// Columns of X in SpMM.
    pub k: Option<u64>,
    /// CPU threads.
    pub threads: Option<u64>,
    /// GPU threads in a block.
    pub block: Option<u64>,
    /// Timed iterations.
    pub iterations: Option<u64>,
    /// Median seconds of an iteration: the quoted time.
    pub median_s: Option<f64>,
    /// Least seconds of an iteration.
    pub min_s: Option<f64>,
    /// 10th percentile of the seconds.
    pub p10_s: Option<f64>,
    /// 90th percentile of the seconds.
    pub p90_s: Option<f64>,
    /// 2 x entries (x k) / median, in 10^9 operations a second.
    pub gflops: Option<f64>,
    /// Least traffic of the format / median, in 10^9 bytes a second.
    pub gbytes_per_s: Option<f64>,
    /// `gbytes_per_s` over the bandwidth of the same device in the same run with a working set of that
    /// size. Tables of earlier versions have it over the copy bandwidth of memory, whatever the size.
    pub roofline_fraction: Option<f64>,
    /// Seconds of the serial kernel over the median.
    pub speedup_vs_serial: Option<f64>,
    /// Speedup over threads.
    pub efficiency: Option<f64>,
    /// Seconds of planning (conversion, partition, workspace).
    pub plan_s: Option<f64>,
    /// Bytes that the plan holds.
    pub memory_bytes: Option<u64>,
    /// Largest relative error against the reference.
    pub max_rel_err: Option<f64>,
    /// Mean relative error against the reference.
    pub mean_rel_err: Option<f64>,
    /// Largest error as a multiple of the rounding bound; more than 1 is a mismatch.
    pub bound_err: Option<f64>,
    /// How the case ended.
    pub status: Status,
    /// Why it did not end well, in one line.
    pub reason: String,
    /// What the clock enclosed, see [`crate::bench::Scope`]. Empty means `kernel`.
    #[serde(default)]
    pub scope: String,
    /// `hot` or `cold`. Empty means `hot`.
    #[serde(default)]
    pub cache: String,
    /// What a kernel that chooses by itself (`auto`) has chosen.
    #[serde(default)]
    pub choice: String,
    /// Type of the values: `f64` or `f32`. Empty means `f64`.
    #[serde(default)]
    pub precision: String,
    /// Ranks of a distributed product.
    #[serde(default)]
    pub ranks: Option<u64>,
    /// GPUs of a distributed product.
    #[serde(default)]
    pub gpus: Option<u64>,
    /// Bytes of x that a rank receives, on the rank that receives most.
    #[serde(default)]
    pub halo_bytes: Option<u64>,
    /// Ranks that a rank receives from, at most.
    #[serde(default)]
    pub neighbours: Option<u64>,
    /// Seconds of packing and exchanging with nothing beside.
    #[serde(default)]
    pub exchange_s: Option<f64>,
    /// The part of `exchange_s` that the local product hides, from 0 to 1.
    #[serde(default)]
    pub overlap: Option<f64>,
    /// Seconds of a message between two ranks without its bytes.
    #[serde(default)]
    pub latency_s: Option<f64>,
    /// 10^9 bytes a second of messages between two ranks.
    #[serde(default)]
    pub link_gbytes_per_s: Option<f64>,
}

impl Row {
    /// What makes two lines the same case: a case that has a line, however it ended, is not run
    /// again.
    pub fn key(&self) -> CaseKey {
        CaseKey {
            experiment: self.experiment.clone(),
            matrix: self.matrix.clone(),
            op: self.op.clone(),
            backend: self.backend.clone(),
            kernel: self.kernel.clone(),
            params: self.params.clone(),
            k: self.k,
            threads: self.threads,
            block: self.block,
            scope: self.scope.clone(),
            cache: self.cache.clone(),
            precision: self.precision.clone(),
            ranks: self.ranks,
        }
    }

    /// Which serial case a speedup is counted from: that of the same matrix, operation, X, state of
    /// the caches and type.
    pub fn baseline(&self) -> Baseline {
        let layout = self.param("layout").filter(|_| self.op == "spmm");
        Baseline {
            matrix: self.matrix.clone(),
            op: self.op.clone(),
            k: self.k,
            layout: layout.map(str::to_owned),
            cache: self.cache.clone(),
            precision: self.precision.clone(),
        }
    }

    /// Whether the matrix was generated.
    pub fn synthetic(&self) -> bool {
        self.matrix.starts_with(SYNTHETIC)
    }

    /// The value of one parameter of `params`.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params
            .split(',')
            .filter_map(|assignment| assignment.split_once('='))
            .find(|(n, _)| n.trim() == name)
            .map(|(_, value)| value.trim())
    }
}

impl CaseKey {
    /// The same case, whichever experiment asks for it.
    pub fn without_experiment(self) -> Self {
        Self { experiment: String::new(), ..self }
    }
}

/// Identity of a case, see [`Row::key`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CaseKey {
    experiment: String,
    matrix: String,
    op: String,
    backend: String,
    kernel: String,
    params: String,
    k: Option<u64>,
    threads: Option<u64>,
    block: Option<u64>,
    scope: String,
    cache: String,
    precision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<u64>,
}

/// What cases have in common with the serial case that their speedups are counted from, see
/// [`Row::baseline`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Baseline {
    matrix: String,
    op: String,
    k: Option<u64>,
    layout: Option<String>,
    cache: String,
    precision: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_name() {
        let row = Row { params: "grid=10x4,schedule=static".into(), ..Row::default() };
        assert_eq!(row.param("schedule"), Some("static"));
        assert_eq!(row.param("simd"), None);
    }
}

//! Distributed products, for `cargo xtask bench scaling`: what is multiplied and what is measured, on ranks of any
//! kind.

mod gpus;
mod model;
mod ranks;

use std::path::Path;

use serde::{Deserialize, Serialize};
use spm_dist::{
    Boxes, Communicator, DistCsr, DistError, Kernel, Partition, Rows, Times, largest,
    matrix_market, npz,
};
use spm_formats::matrix_market::{ReadOptions, read_csr};
use spm_formats::timing::Timing;
use spm_formats::{Csr, cache};
use spm_testing::distributed::{definite, element, error_of, value};
use spm_testing::generate;

use crate::results::{Row, SYNTHETIC};

pub use gpus::{on_devices, open_gpus};
pub use model::{MODELLED, Model};
pub use ranks::{on_rank, on_threads};

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Work {
    /// y = Ax.
    #[default]
    Spmv,
    /// Y = AX, row-major, with so many columns.
    Spmm(usize),
    /// An iteration of conjugate gradients, on a symmetric positive definite stencil.
    Cg,
}

impl Work {
    /// Products with k columns.
    pub fn columns_of(k: usize) -> Self {
        if k == 1 { Self::Spmv } else { Self::Spmm(k) }
    }

    /// What a row of results was timed for.
    pub fn of(row: &Row) -> Self {
        if row.op == Self::Cg.op() {
            return Self::Cg;
        }
        Self::columns_of(row.k.map_or(1, |k| k as usize))
    }

    /// The column `op` of results.
    pub fn op(self) -> &'static str {
        match self {
            Self::Spmv => "spmv",
            Self::Spmm(_) => "spmm",
            Self::Cg => "cg",
        }
    }

    /// Columns of X and Y.
    pub fn columns(self) -> usize {
        match self {
            Self::Spmm(k) => k,
            Self::Spmv | Self::Cg => 1,
        }
    }
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Spmm(k) => write!(f, "{}={k}", self.op()),
            _ => f.write_str(self.op()),
        }
    }
}

impl std::str::FromStr for Work {
    type Err = String;

    /// `spmv`, `spmm=32` or `cg`.
    fn from_str(text: &str) -> Result<Self, String> {
        let spmm = || text.strip_prefix("spmm=")?.parse().ok().filter(|&k| k > 0).map(Self::Spmm);
        match text {
            "spmv" => Ok(Self::Spmv),
            "cg" => Ok(Self::Cg),
            _ => spmm().ok_or_else(|| format!("{text}: expected spmv, spmm=COLUMNS or cg")),
        }
    }
}

impl TryFrom<String> for Work {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Work> for String {
    fn from(work: Work) -> Self {
        work.to_string()
    }
}

/// Iterations of conjugate gradients that a sample times, behind those that it begins with: few enough that the
/// residual stays a normal number.
const CG_ITERATIONS: usize = 100;
/// Iterations before them, with the vectors that are made for them.
const CG_START: usize = 10;

/// Seconds of an iteration, from the seconds and iterations of a short run and of a longer one.
fn per_iteration(short: (f64, usize), long: (f64, usize)) -> f64 {
    (long.0 - short.0) / long.1.saturating_sub(short.1).max(1) as f64
}

/// How ranks are timed.
#[derive(Debug, Clone, Copy)]
pub struct Timed<'a> {
    /// The kernel of all ranks.
    pub kernel: &'a Kernel,
    /// What is timed, one after the other.
    pub work: &'a [Work],
    /// About so many seconds for each.
    pub seconds: f64,
}

/// A matrix and how it is divided over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// `stencil27[n=100]`, which the ranks generate themselves; a file `NAME.mtx` or `NAME.npz`, of which each
    /// reads a part; or the label of any other generator.
    pub matrix: &'a str,
    /// The stencil has n points a side for each rank, and not for all of them.
    pub weak: bool,
}

impl Subject<'_> {
    /// Runs `measure` for each kind of work, with the matrix it is for. Collective.
    fn for_each<R>(
        &self,
        comm: &impl Communicator,
        work: &[Work],
        mut measure: impl FnMut(DistCsr<f64>, Work) -> Result<R, DistError>,
    ) -> Result<Vec<R>, DistError> {
        let mut general: Option<DistCsr<f64>> = None;
        let matrix_for = |&work: &Work| {
            let divided = |(partition, rows): (Partition, Rows<f64>)| {
                DistCsr::new(comm, &partition, &partition, rows)
            };
            let a = match (work, &general) {
                (Work::Cg, _) => divided(self.definite(comm)?)?,
                (_, Some(a)) => a.clone(),
                (_, None) => general.insert(divided(self.rows(comm)?)?).clone(),
            };
            measure(a, work)
        };
        work.iter().map(matrix_for).collect()
    }

    /// The boxes that the ranks have of a stencil.
    fn boxes(&self, ranks: usize) -> Option<Boxes> {
        let n = side_of(self.matrix)?;
        Some(if self.weak { Boxes::of_equal_size(n, ranks) } else { Boxes::new([n; 3], ranks) })
    }

    /// A stencil with values for conjugate gradients.
    fn definite(&self, comm: &impl Communicator) -> Result<(Partition, Rows<f64>), DistError> {
        let Some(boxes) = self.boxes(comm.size()) else {
            return Err(self.wrong("conjugate gradients are timed on stencil27[n=SIDE]"));
        };
        Ok((boxes.partition(), boxes.stencil27(comm.rank(), definite)?))
    }

    fn wrong(&self, reason: impl std::fmt::Display) -> DistError {
        DistError::File(format!("{}: {reason}", self.matrix))
    }

    /// The division and this rank's rows.
    ///
    /// # Errors
    /// No such matrix, or one that cannot be divided so.
    pub fn rows(&self, comm: &impl Communicator) -> Result<(Partition, Rows<f64>), DistError> {
        if let Some(boxes) = self.boxes(comm.size()) {
            return Ok((boxes.partition(), boxes.stencil27(comm.rank(), value)?));
        }
        if self.weak {
            return Err(self.wrong("weak scaling is for stencil27[n=SIDE]"));
        }
        match self.ending() {
            Some("npz") => return npz::read(comm, self.matrix),
            Some("mtx") => return matrix_market::read(comm, self.matrix, &ReadOptions::default()),
            _ => {}
        }
        let a = self.generated()?;
        let rows = Partition::by_entries(a.row_ptr(), comm.size());
        let own = Rows::of(a.view(), rows.range(comm.rank()));
        Ok((rows, own))
    }

    /// The matrix in results: the name of a file without its endings, or what is generated.
    pub fn label(&self) -> String {
        if self.ending().is_none() {
            return format!("{SYNTHETIC}{}", self.matrix);
        }
        let name = Path::new(self.matrix).file_name().unwrap_or_default().to_string_lossy();
        name.split('.').next().unwrap_or_default().to_owned()
    }

    /// The ending of a file's name.
    fn ending(&self) -> Option<&str> {
        let ending = Path::new(self.matrix).extension()?.to_str()?;
        matches!(ending, "npz" | "mtx").then_some(ending)
    }

    /// The matrix in one piece.
    fn whole(&self) -> Result<Csr<f64>, DistError> {
        match self.ending() {
            Some("npz") => {
                cache::load_npz(self.matrix).map_err(|error| DistError::File(error.to_string()))
            }
            Some(_) => read_csr(self.matrix, &ReadOptions::default())
                .map_err(|error| DistError::File(error.to_string())),
            None => self.generated(),
        }
    }

    fn generated(&self) -> Result<Csr<f64>, DistError> {
        if let Some(n) = side_of(self.matrix) {
            let rows = Boxes::new([n; 3], 1).stencil27(0, value)?;
            let row_ptr = rows.row_ptr().iter().map(|&end| end as u32).collect();
            let col_ind = rows.col_ind().iter().map(|&col| col as u32).collect();
            let size = rows.rows();
            return Ok(Csr::new((size, size), row_ptr, col_ind, rows.values().to_vec())?);
        }
        let spec = generate::named(self.matrix).map_err(|error| self.wrong(error))?;
        spec.generate().map_err(|error| self.wrong(error))
    }
}

/// The n of `stencil27[n=100]`.
pub fn side_of(matrix: &str) -> Option<u64> {
    let side = matrix.strip_prefix("stencil27[n=")?.strip_suffix(']')?.parse().ok()?;
    (side > 0).then_some(side)
}

/// What one number of ranks took. Seconds and bytes are those of the rank with the most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// What was timed. For an iteration of conjugate gradients the parts are those of its product.
    #[serde(default)]
    pub work: Work,
    /// Rows of the matrix, all ranks together.
    pub rows: u64,
    /// Entries of the matrix, all ranks together.
    pub entries: u64,
    /// The kernel and its parameters.
    pub kernel: String,
    /// How boundary elements get from GPU to GPU.
    #[serde(default)]
    pub transport: Option<String>,
    /// Timed products or iterations.
    pub iterations: u64,
    /// Median seconds of a product or an iteration.
    pub median_s: f64,
    /// Least seconds.
    pub min_s: f64,
    /// 10th percentile of the seconds.
    pub p10_s: f64,
    /// 90th percentile of the seconds.
    pub p90_s: f64,
    /// Seconds of planning.
    pub plan_s: f64,
    /// Bytes that the operator holds: on a GPU, of device memory.
    pub memory_bytes: u64,
    /// Bytes that a product or an iteration moves at least.
    pub bytes_moved: u64,
    /// Largest error as a multiple of the rounding bound.
    pub bound_err: f64,
    /// Rows with ghost entries.
    #[serde(default)]
    pub boundary_rows: u64,
    /// Bytes of ghost entries.
    pub halo_bytes: u64,
    /// Ranks that a rank receives from or sends to.
    pub neighbours: u64,
    /// Seconds of packing and exchanging with nothing beside.
    pub exchange_s: f64,
    /// Seconds of packing: beside the local block on CPU cores, alone on GPUs.
    pub pack_s: f64,
    /// Seconds of the local block.
    pub local_s: f64,
    /// Seconds of waiting for messages, as `pack_s`.
    pub wait_s: f64,
    /// Seconds of the boundary rows.
    pub boundary_s: f64,
    /// Seconds of a message without its bytes, if it was measured.
    #[serde(default)]
    pub latency_s: Option<f64>,
    /// Bytes a second of a message, if they were measured.
    #[serde(default)]
    pub link: Option<f64>,
}

/// Sizes of a divided matrix, of which each is that of the rank with the most, and those of all ranks together.
#[derive(Debug, Clone, Copy, Default)]
struct Division {
    rows: u64,
    entries: u64,
    boundary_rows: u64,
    halo_bytes: u64,
    neighbours: u64,
}

impl Division {
    /// For products with k columns. Collective.
    fn of(comm: &impl Communicator, a: &DistCsr<f64>, k: usize) -> Result<Self, DistError> {
        let mut entries = [a.local_nnz() as f64];
        comm.sum(&mut entries)?;
        let halo = a.halo();
        Ok(Self {
            rows: a.row_partition().total(),
            entries: entries[0] as u64,
            boundary_rows: most(comm, a.boundary_rows() as u64)?,
            halo_bytes: most(comm, (halo.ghosts().len() * k * size_of::<f64>()) as u64)?,
            neighbours: most(comm, halo.neighbours() as u64)?,
        })
    }
}

/// The largest of all ranks. Collective.
fn most(comm: &impl Communicator, value: u64) -> Result<u64, DistError> {
    Ok(largest(comm, value as f64)? as u64)
}

/// What was measured of products, as [`Numbers`] have it.
struct Run {
    work: Work,
    kernel: String,
    transport: Option<String>,
    iterations: usize,
    timing: Timing,
    plan_s: f64,
    memory_bytes: u64,
    bytes_moved: u64,
    bound_err: f64,
    exchange_s: f64,
    parts: Times,
    /// Seconds of a message without its bytes, and bytes a second.
    link: Option<(f64, f64)>,
}

impl Numbers {
    fn new(division: Division, run: Run) -> Self {
        let Division { rows, entries, boundary_rows, halo_bytes, neighbours } = division;
        let Run { timing, parts, .. } = run;
        Self {
            work: run.work,
            rows,
            entries,
            kernel: run.kernel,
            transport: run.transport,
            iterations: run.iterations as u64,
            median_s: timing.median_s,
            min_s: timing.min_s,
            p10_s: timing.p10_s,
            p90_s: timing.p90_s,
            plan_s: run.plan_s,
            memory_bytes: run.memory_bytes,
            bytes_moved: run.bytes_moved,
            bound_err: run.bound_err,
            boundary_rows,
            halo_bytes,
            neighbours,
            exchange_s: run.exchange_s,
            pack_s: parts.pack,
            local_s: parts.local,
            wait_s: parts.wait,
            boundary_s: parts.boundary,
            latency_s: run.link.map(|(latency, _)| latency),
            link: run.link.map(|(_, link)| link),
        }
    }

    /// The part of the exchange that the local block hides, from 0 to 1; `None` without ghost entries, and for an
    /// iteration of conjugate gradients, which has more in it than a product.
    ///
    /// On CPU cores the parts are those of products with overlap: what is left of the exchange is packing and
    /// waiting. On GPUs they are measured one after the other: what is left is how much longer a product takes
    /// than its local block and its boundary rows.
    pub fn overlap(&self) -> Option<f64> {
        let left = match self.transport {
            None => self.pack_s + self.wait_s,
            Some(_) => self.median_s - self.local_s - self.boundary_s,
        };
        (self.halo_bytes > 0 && self.work != Work::Cg)
            .then(|| (1.0 - left / self.exchange_s).clamp(0.0, 1.0))
    }
}

/// Factors of the columns of X: powers of two, so that each column of Y is the first one times its factor.
fn factor(col: usize) -> f64 {
    [1.0, 2.0, 4.0, 0.5][col % 4]
}

/// This rank's rows of X, row-major with k columns.
fn operand(first: u64, rows: usize, k: usize) -> Vec<f64> {
    let row = |i: usize| (0..k).map(move |col| element(first + i as u64) * factor(col));
    (0..rows).flat_map(row).collect()
}

/// [`error_of`] of Y = AX, for the rows of `a` and X of [`operand`]: of one element of each row, in its turn that of
/// each column.
fn error_of_columns(a: &DistCsr<f64>, y: &[f64], k: usize) -> f64 {
    let rows = a.to_rows();
    let of_row = |(row, y): (usize, &[f64])| y[row % k] / factor(row % k);
    let y: Vec<f64> = y.chunks_exact(k).enumerate().map(of_row).collect();
    error_of((rows.row_ptr(), rows.col_ind(), rows.values()), &y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_are_read_and_printed() {
        for (text, work) in [("spmv", Work::Spmv), ("spmm=32", Work::Spmm(32)), ("cg", Work::Cg)] {
            assert_eq!((text.parse(), work.to_string()), (Ok(work), text.to_owned()));
        }
        for wrong in ["spmm", "spmm=0", "spmm=x", "", "SPMV"] {
            assert!(wrong.parse::<Work>().unwrap_err().contains("spmm=COLUMNS"), "{wrong}");
        }
    }

    #[test]
    fn a_column_that_is_wrong_is_found() {
        let worst = spm_dist::threads::run(1, |comm| {
            let subject = Subject { matrix: "stencil27[n=3]", weak: false };
            let (partition, rows) = subject.rows(comm)?;
            let a = DistCsr::new(comm, &partition, &partition, rows)?;
            let x = operand(0, 27, 2);
            let mut y = vec![0.0; 54];
            let rows = a.to_rows();
            for (row, ends) in rows.row_ptr().windows(2).enumerate() {
                for at in ends[0]..ends[1] {
                    for col in 0..2 {
                        let x = x[2 * rows.col_ind()[at] as usize + col];
                        y[2 * row + col] += rows.values()[at] * x;
                    }
                }
            }
            let right = error_of_columns(&a, &y, 2);
            // Row 25, column 1.
            y[51] *= 1.0 + 1e-12;
            Ok((right, error_of_columns(&a, &y, 2)))
        });
        let (right, wrong) = worst.unwrap()[0];
        assert!(right <= 1.0 && wrong > 1.0, "{right} {wrong}");
    }

    #[test]
    fn files_are_divided_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cant.mtx.f64.npz");
        let a: Csr<f64> = generate::named("mesh2[n=6]").unwrap().generate().unwrap();
        spm_formats::cache::save_npz(&path, a.view()).unwrap();
        let text = folder.path().join("cant.mtx");
        spm_formats::matrix_market::write_csr(&text, a.view(), &[]).unwrap();
        for path in [path, text] {
            let subject = Subject { matrix: path.to_str().unwrap(), weak: false };
            let rows = spm_dist::threads::run(2, |comm| Ok(subject.rows(comm)?.1));
            let rows = rows.unwrap();
            assert_eq!(rows[0].rows() + rows[1].rows(), a.rows());
            assert_eq!(rows[1].nnz(), a.nnz() - rows[0].nnz());
            assert_eq!(subject.label(), "cant");
            assert_eq!(subject.whole().unwrap(), a);
        }
        let generated = Subject { matrix: "stencil27[n=2.5]", weak: false };
        assert_eq!(generated.label(), "synthetic:stencil27[n=2.5]");
    }

    #[test]
    fn sides_are_read() {
        assert_eq!(side_of("stencil27[n=12]"), Some(12));
        for other in ["stencil27[n=0]", "stencil27", "stencil5[n=3]", "stencil27[n=3,m=2]"] {
            assert_eq!(side_of(other), None);
        }
    }
}

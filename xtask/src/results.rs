//! What a run leaves behind: `results.csv`, `environment.json` and `matrices/*.json`.
//!
//! `results.csv` has one line per case and is only ever appended to. A line is written in one piece
//! and flushed to the disk before the next case starts, so a run that is killed loses no finished
//! case. A last line without its newline is the trace of a kill: readers ignore it, and the next
//! writer cuts it off.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::files::write_whole;

/// File name of the case table inside a results folder.
pub const RESULTS_FILE: &str = "results.csv";
/// File name of the machine's description inside a results folder.
pub const ENVIRONMENT_FILE: &str = "environment.json";
/// Folder of the matrices' descriptions inside a results folder.
pub const MATRICES_FOLDER: &str = "matrices";
/// What a matrix name starts with when the matrix was generated.
pub const SYNTHETIC: &str = spm_formats::generate::PREFIX;

/// How a case ended.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Agrees with the oracle; the times count.
    #[default]
    Ok,
    /// Broke: an error of the device, a panic, ...
    Failed,
    /// Does not apply: refused by the memory budget, no such library, ...
    Skipped,
    /// Ran and disagreed with the oracle: it has no speed.
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
    /// `gbytes_per_s` over the copy bandwidth of the same device in the same run.
    pub roofline_fraction: Option<f64>,
    /// Seconds of the serial kernel over the median.
    pub speedup_vs_serial: Option<f64>,
    /// Speedup over threads.
    pub efficiency: Option<f64>,
    /// Seconds of planning (conversion, partition, workspace).
    pub plan_s: Option<f64>,
    /// Bytes that the plan holds.
    pub memory_bytes: Option<u64>,
    /// Largest relative error against the oracle.
    pub max_rel_err: Option<f64>,
    /// Mean relative error against the oracle.
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

/// Appends rows to a `results.csv`, each on the disk before [`Writer::append`] returns.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
}

impl Writer {
    /// Opens `path`, creating it and its folder; a torn last line is cut off.
    ///
    /// # Errors
    /// The file cannot be written, or is a table with other columns.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let context = || format!("cannot open {}", path.display());
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .with_context(context)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(context)?;
        let whole = complete_lines(&text);
        if whole < text.len() {
            file.set_len(whole as u64).with_context(context)?;
            file.seek(SeekFrom::End(0)).with_context(context)?;
        }
        let header = line(&Row::default(), true)?;
        let header = &header[..=header.iter().position(|&b| b == b'\n').unwrap_or(0)];
        let mut writer = Self { file, path: path.to_owned() };
        if whole == 0 {
            writer.write(header)?;
        } else {
            ensure!(
                text.starts_with(header),
                "{}: columns differ from this version's; move the file away or choose another --out",
                path.display()
            );
        }
        Ok(writer)
    }

    /// Writes one row in one piece and waits until the disk has it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, row: &Row) -> anyhow::Result<()> {
        // A line break inside a field would make a torn line undetectable.
        let mut row = row.clone();
        for field in [&mut row.reason, &mut row.matrix, &mut row.params] {
            if field.contains(['\n', '\r']) {
                *field = field.split_whitespace().collect::<Vec<_>>().join(" ");
            }
        }
        self.write(&line(&row, false)?)
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file
            .write_all(bytes)
            .and_then(|()| self.file.sync_data())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn line(row: &Row, header: bool) -> anyhow::Result<Vec<u8>> {
    let mut csv = csv::WriterBuilder::new().has_headers(header).from_writer(Vec::new());
    csv.serialize(row)?;
    Ok(csv.into_inner()?)
}

/// Bytes up to and with the last newline.
fn complete_lines(text: &[u8]) -> usize {
    text.iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1)
}

/// Every whole row of a `results.csv`; a torn last line is ignored.
///
/// # Errors
/// The file cannot be read, or a whole line is not a row: the error names file and line.
pub fn read(path: &Path) -> anyhow::Result<Vec<Row>> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let whole = &text[..complete_lines(&text)];
    csv::Reader::from_reader(whole)
        .deserialize()
        .collect::<Result<_, _>>()
        .with_context(|| format!("{} is not a table of results", path.display()))
}

/// What `matrices/NAME.json` says of one matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MatrixFile {
    /// Name as in `results.csv`.
    pub name: String,
    /// Measures by name (`rows`, `row_length_mean`, `bandwidth`, ...), printed as they come.
    #[serde(default)]
    pub stats: BTreeMap<String, serde_json::Value>,
    /// Rows with a length in `low..=high`, as `[low, high, count]`, ascending.
    #[serde(default)]
    pub row_length_histogram: Vec<(u64, u64, u64)>,
    /// Entries by position, on a coarse grid.
    #[serde(default)]
    pub spy: Option<Spy>,
}

/// Number of entries in each cell of a grid laid over the matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spy {
    /// Cells from top to bottom.
    pub rows: usize,
    /// Cells from left to right.
    pub cols: usize,
    /// `counts[row][col]`.
    pub counts: Vec<Vec<u64>>,
}

impl MatrixFile {
    /// Where the description of a matrix lies inside a results folder; characters that a file name
    /// cannot hold everywhere become `_`.
    pub fn path(results: &Path, matrix: &str) -> PathBuf {
        let name: String = matrix
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
            .collect();
        results.join(MATRICES_FOLDER).join(format!("{name}.json"))
    }

    /// Writes the description to its place in `results`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, results: &Path) -> anyhow::Result<()> {
        let path = Self::path(results, &self.name);
        let folder = results.join(MATRICES_FOLDER);
        std::fs::create_dir_all(&folder)
            .and_then(|()| write_whole(&path, serde_json::to_vec(self)?))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Every description in `results`, by name; a folder that is not there holds none.
    ///
    /// # Errors
    /// A file is unreadable or not a description.
    pub fn read_all(results: &Path) -> anyhow::Result<Vec<Self>> {
        let folder = results.join(MATRICES_FOLDER);
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "json") {
                let context = || format!("{} is not a matrix description", path.display());
                let text = std::fs::read(&path).with_context(context)?;
                all.push(serde_json::from_slice::<Self>(&text).with_context(context)?);
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(matrix: &str) -> Row {
        Row {
            experiment: "spmv-cpu-threads".into(),
            matrix: matrix.into(),
            params: "grid=10x4,schedule=static".into(),
            threads: Some(2),
            median_s: Some(1.25e-5),
            ..Row::default()
        }
    }

    #[test]
    fn columns_follow_the_contract() {
        let header = String::from_utf8(line(&Row::default(), true).unwrap()).unwrap();
        let header = header.lines().next().unwrap();
        assert!(header.starts_with(
            "experiment,matrix,rows,cols,entries,op,backend,kernel,params,k,threads,block,\
             iterations,median_s,min_s,p10_s,p90_s,gflops,gbytes_per_s,roofline_fraction,\
             speedup_vs_serial,efficiency,plan_s,memory_bytes,max_rel_err,mean_rel_err,bound_err,\
             status,reason"
        ));
    }

    #[test]
    fn rows_come_back_and_a_torn_line_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/results.csv");
        let failed =
            Row { status: Status::Failed, reason: "two\nlines, \"quoted\"".into(), ..row("b") };
        {
            let mut writer = Writer::open(&path).unwrap();
            writer.append(&row("a")).unwrap();
            writer.append(&failed).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        let expected = [row("a"), Row { reason: "two lines, \"quoted\"".into(), ..failed }];
        // Killed anywhere inside the last line: the line before stays.
        let last = complete_lines(&whole[..whole.len() - 1]);
        for cut in last..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(read(&path).unwrap(), expected[..1], "cut at {cut}");
        }
        Writer::open(&path).unwrap().append(&expected[1]).unwrap();
        assert_eq!(read(&path).unwrap(), expected);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        // Killed inside the header: as if nothing had been written.
        std::fs::write(&path, &whole[..20]).unwrap();
        assert_eq!(read(&path).unwrap(), []);
        Writer::open(&path).unwrap().append(&expected[0]).unwrap();
        assert_eq!(read(&path).unwrap(), expected[..1]);
    }

    #[test]
    fn other_tables_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        let error = Writer::open(&path).unwrap_err().to_string();
        assert!(error.contains("columns differ"), "{error}");
        let error = format!("{:#}", read(&path).unwrap_err());
        assert!(error.contains("results.csv") && error.contains("line: 2"), "{error}");
    }

    #[test]
    fn parameters_are_found_by_name() {
        assert_eq!(row("a").param("schedule"), Some("static"));
        assert_eq!(row("a").param("simd"), None);
    }

    #[test]
    fn matrix_files_come_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(MatrixFile::read_all(folder.path()).unwrap(), []);
        let matrix = MatrixFile {
            name: "synthetic:cant".into(),
            stats: BTreeMap::from([("rows".to_owned(), 3.into())]),
            row_length_histogram: vec![(0, 0, 1), (1, 2, 2)],
            spy: Some(Spy { rows: 1, cols: 2, counts: vec![vec![3, 0]] }),
        };
        matrix.write(folder.path()).unwrap();
        assert_eq!(MatrixFile::read_all(folder.path()).unwrap(), [matrix]);
    }
}

//! `results.csv`: one line per case, only ever appended to.
//!
//! A line is written in one piece and flushed to the disk before the next case starts, so a run that is
//! killed loses no finished case. A last line without its newline is the trace of a kill: readers
//! ignore it, and the next writer cuts it off.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::{Row, renamed};

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
        let header = &header()?;
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

/// The first line of a table.
fn header() -> anyhow::Result<Vec<u8>> {
    let mut lines = line(&Row::default(), true)?;
    let end = lines.iter().position(|&b| b == b'\n');
    lines.truncate(end.map_or(0, |end| end + 1));
    Ok(lines)
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
    let mut table = csv::Reader::from_reader(whole);
    let ours = header()?;
    let ours = String::from_utf8_lossy(&ours);
    // Columns only ever came to the end, so that an older table has the first of today's.
    let found = table.byte_headers().with_context(|| format!("{}:1", path.display()))?;
    if let Some((name, found)) =
        ours.trim().split(',').zip(found).find(|(name, found)| name.as_bytes() != *found)
    {
        bail!(
            "{}:1: expected the column {name}, found {:?}: not a table of results",
            path.display(),
            String::from_utf8_lossy(found)
        );
    }
    let rows = table.deserialize().map(|row| {
        row.map(|mut row| {
            renamed::rename(&mut row);
            row
        })
    });
    rows.collect::<Result<_, _>>()
        .with_context(|| format!("{} is not a table of results", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::Status;
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
        assert!(
            error.ends_with(
                "results.csv:1: expected the column experiment, found \"a\": not a table of results"
            ),
            "{error}"
        );
        let mut torn = header().unwrap();
        torn.extend(b"a,b\n");
        std::fs::write(&path, torn).unwrap();
        let error = format!("{:#}", read(&path).unwrap_err());
        assert!(error.contains("results.csv") && error.contains("line: 2"), "{error}");
    }
}

//! The collection's index file `ssstats.csv`: what is known of every matrix.
//!
//! Line 1 is the number of matrices, line 2 a date, then one line per matrix with 13 fields:
//! group, name, rows, columns, numeric nonzeros, is real, is binary, is from a 2D/3D problem,
//! is positive definite, pattern symmetry, numerical symmetry, kind, entries with explicit zeros.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail, ensure};

use super::fetch::{Fetcher, Request};
use super::partial::Partial;

/// Name of the index on the server (below `files/`) and in the destination folder.
pub(super) const FILE_NAME: &str = "ssstats.csv";

/// An index older than this is fetched again.
pub(super) const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The index of all 2,900 matrices takes 0.3 MB; what is far larger is not the index.
const MAX_BYTES: u64 = 64 << 20;

/// What the file of a matrix stores of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// Nothing.
    Pattern,
    /// One number.
    Real,
    /// Two numbers.
    Complex,
}

impl Values {
    /// Numbers that stand behind the two indices of an entry.
    pub(super) fn numbers(self) -> u64 {
        match self {
            Self::Pattern => 0,
            Self::Real => 1,
            Self::Complex => 2,
        }
    }
}

/// One matrix of the collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// Group: `Williams`.
    pub group: String,
    /// Name, not always unique: `cant`.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// Entries after symmetric expansion, explicit zeros included.
    pub entries: u64,
    /// What the file stores of each entry.
    pub values: Values,
}

impl Record {
    /// Most digits that the two indices of an entry have together.
    pub(super) fn index_digits(&self) -> u64 {
        let digits = |n: u64| u64::from(n.checked_ilog10().unwrap_or(0)) + 1;
        digits(self.rows) + digits(self.cols)
    }
}

/// Whether `text` can be a group or a name: it becomes a part of a path and of an address.
pub(super) fn is_plain_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('.')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+".contains(c))
}

/// Reads the text of an index file.
///
/// # Errors
/// With the line number when the layout is another one, and when the first line promises another
/// number of matrices than follow.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<Record>> {
    let mut lines = text.splitn(3, '\n');
    let count = lines.next().unwrap_or_default().trim();
    let count: usize = count
        .parse()
        .ok()
        .with_context(|| format!("line 1: expected the number of matrices, found {count:?}"))?;
    lines.next().context("line 2: expected a date, found the end of the file")?;
    let body = lines.next().unwrap_or_default();
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(body.as_bytes());
    let mut records = Vec::new();
    for (i, row) in reader.records().enumerate() {
        let line = i + 3;
        let row = row.with_context(|| format!("line {line}"))?;
        records.push(parse_row(&row).with_context(|| format!("line {line}"))?);
    }
    ensure!(
        records.len() == count,
        "line 1 promises {count} matrices, but {} follow: the file is cut short or mixed up",
        records.len()
    );
    Ok(records)
}

fn parse_row(row: &csv::StringRecord) -> anyhow::Result<Record> {
    ensure!(row.len() == 13, "expected 13 fields, found {}", row.len());
    let number = |field: usize, what: &str| -> anyhow::Result<u64> {
        row[field].trim().parse().ok().with_context(|| {
            format!("field {}: expected {what}, found {:?}", field + 1, &row[field])
        })
    };
    let name = |field: usize, what: &str| -> anyhow::Result<String> {
        let text = row[field].trim();
        ensure!(is_plain_name(text), "field {}: {text:?} cannot be a {what}", field + 1);
        Ok(text.to_owned())
    };
    let values = match (number(5, "0 or 1 for real")?, number(6, "0 or 1 for binary")?) {
        (_, 1) => Values::Pattern,
        (1, _) => Values::Real,
        _ => Values::Complex,
    };
    Ok(Record {
        group: name(0, "group")?,
        name: name(1, "name")?,
        rows: number(2, "the number of rows")?,
        cols: number(3, "the number of columns")?,
        entries: number(12, "the number of entries")?,
        values,
    })
}

/// The index in `dest`, fetched first when there is none or when it is older than [`MAX_AGE`].
///
/// An old index serves, with a warning on stderr, when no server gives a newer one.
///
/// # Errors
/// When there is no readable index and none can be fetched.
pub(super) fn load(dest: &Path, fetcher: &mut Fetcher) -> anyhow::Result<Vec<Record>> {
    let path = dest.join(FILE_NAME);
    if age(&path).is_some_and(|age| age < MAX_AGE)
        && let Ok(records) = read(&path)
    {
        return Ok(records);
    }
    match refresh(dest, fetcher) {
        Ok(records) => Ok(records),
        Err(error) => match read(&path) {
            Ok(records) => {
                eprintln!(
                    "warning: the index is older than {} days and could not be refreshed: {error:#}",
                    MAX_AGE.as_secs() / 86_400
                );
                Ok(records)
            }
            Err(_) => Err(error.context("cannot fetch the index of the collection")),
        },
    }
}

fn age(path: &Path) -> Option<Duration> {
    let modified = path.metadata().and_then(|metadata| metadata.modified()).ok()?;
    SystemTime::now().duration_since(modified).ok()
}

fn read(path: &Path) -> anyhow::Result<Vec<Record>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn refresh(dest: &Path, fetcher: &mut Fetcher) -> anyhow::Result<Vec<Record>> {
    let partial = Partial::new(&dest.join(FILE_NAME));
    // Half an index of last month is of no use for this month's.
    partial.discard()?;
    let request =
        Request { path: &format!("files/{FILE_NAME}"), label: "index", max_bytes: Some(MAX_BYTES) };
    fetcher.fetch(&request, &partial)?;
    match read(partial.path()) {
        Ok(records) => {
            partial.finish()?;
            Ok(records)
        }
        Err(error) => {
            partial.discard()?;
            bail!("the server's index is not in the known layout: {error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "2\n08-Oct-2020 17:09:58\n";
    const CANT: &str = "Williams,cant,62451,62451,4007383,1,0,1,1,1,1,2D/3D problem,4007383\n";
    const ARC130: &str = "HB,arc130,130,130,1037,1,0,1,0,0.75,0,materials problem,1282\n";

    #[test]
    fn entries_count_explicit_zeros() {
        let records = parse(&format!("{HEAD}{CANT}{ARC130}")).unwrap();
        let expected = Record {
            group: "HB".into(),
            name: "arc130".into(),
            rows: 130,
            cols: 130,
            entries: 1282,
            values: Values::Real,
        };
        assert_eq!(records[1], expected);
        assert_eq!((records[0].name.as_str(), records[0].entries), ("cant", 4_007_383));
    }

    #[test]
    fn pattern_and_complex_are_told_apart() {
        let rows = "HB,ash219,219,85,438,1,1,0,0,0,0,least squares problem,438\n\
                    HB,young1c,841,841,4089,0,0,1,0,1,0.8,acoustics problem,4089\r\n";
        let records = parse(&format!("{HEAD}{rows}")).unwrap();
        assert_eq!(records[0].values, Values::Pattern);
        assert_eq!(records[1].values, Values::Complex);
    }

    #[test]
    fn other_layouts_are_refused_with_the_line() {
        let error = |text: &str| format!("{:#}", parse(text).unwrap_err());
        assert!(error("<html>\n").contains("line 1: expected the number of matrices"));
        assert!(error(&format!("{HEAD}{CANT}")).contains("promises 2 matrices, but 1 follow"));
        let absurd = error(&format!("{}\ndate\n{CANT}", usize::MAX));
        assert!(absurd.contains("but 1 follow"), "{absurd}");
        let short = error(&format!("{HEAD}{CANT}HB,arc130,130\n"));
        assert_eq!(short, "line 4: expected 13 fields, found 3");
        let escaping = error(&format!("{HEAD}{CANT}{}", ARC130.replace("HB", "../..")));
        assert_eq!(escaping, "line 4: field 1: \"../..\" cannot be a group");
        let word = error(&format!("{HEAD}{CANT}{}", ARC130.replace("1282", "many")));
        assert!(word.contains("field 13: expected the number of entries"), "{word}");
    }

    #[test]
    fn names_that_leave_the_folder_are_not_plain() {
        for name in ["channel-500x100x100-b050", "598a", "c-18", "GD98_c"] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a\\b", "a b", "a%2f", "é"] {
            assert!(!is_plain_name(name), "{name}");
        }
    }
}

//! What a dry run says: which matrices, how large, what is already there.

use std::fmt::Write;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{HumanBytes, HumanCount};

use super::index::Record;
use super::install::{Keep, Place};
use super::lock::LockFile;
use super::select::Target;

/// Reads `500M`, `2G`, `64MiB`, `1000`: k, M, G, T are powers of 1000; KiB, MiB, GiB, TiB of 1024.
///
/// # Errors
/// When the text is none of these or the number does not fit.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().trim_end_matches('b') {
        "" => 1,
        "k" => 1000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return Err("expected a number such as 1000, 250k, 500M, 2G or 64MiB".into()),
    };
    let number: u64 = number.parse().map_err(|_| "expected a number such as 500M".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "the number is too large".to_owned())
}

/// About what NAME.mtx takes: one line an entry, 18 characters a number. A symmetric file, which
/// stores one triangle, takes half of it.
fn text_bytes(matrix: &Record) -> u64 {
    matrix.entries.saturating_mul(matrix.index_digits() + 2 + 18 * matrix.values.numbers())
}

/// The table of a dry run.
pub(super) fn table(targets: &[Target], dest: &Path, lock: &LockFile, keep: Keep) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header([
        "matrix",
        "rows",
        "columns",
        "entries",
        "text up to",
        "archive",
        "verified by",
        "state",
    ]);
    let (mut text, mut there) = (0_u64, 0);
    for target in targets {
        let matrix = &target.record;
        let place = Place::new(dest, target);
        let locked = lock.get(&target.id());
        let complete = place.is_complete(locked, keep);
        let partial = place.partial_bytes();
        let state = match (complete, partial) {
            (true, _) => "there".to_owned(),
            (false, 0) => "to fetch".to_owned(),
            (false, bytes) => format!("{} fetched", HumanBytes(bytes)),
        };
        if complete {
            there += 1;
        } else {
            text = text.saturating_add(text_bytes(matrix));
        }
        table.add_row([
            target.id(),
            HumanCount(matrix.rows).to_string(),
            HumanCount(matrix.cols).to_string(),
            HumanCount(matrix.entries).to_string(),
            HumanBytes(text_bytes(matrix)).to_string(),
            locked.map_or("?".into(), |locked| HumanBytes(locked.tar_gz_bytes).to_string()),
            if target.sha256.is_some() { "SHA-256".into() } else { "dimensions".into() },
            state,
        ]);
    }
    for column in 1..=5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut output = format!("{table}\n");
    let to_fetch = targets.len() - there;
    writeln!(
        output,
        "{to_fetch} to fetch, {there} there already. Unpacked, those to fetch take up to about {}.\n\
         The size of an archive (?) is known once it has been fetched.",
        HumanBytes(text)
    )
    .expect("writing to a string");
    output
}

#[cfg(test)]
mod tests {
    use super::super::index::Values;
    use super::*;

    #[test]
    fn sizes_with_units() {
        assert_eq!(parse_size("1000"), Ok(1000));
        assert_eq!(parse_size("250k"), Ok(250_000));
        assert_eq!(parse_size("500MB"), Ok(500_000_000));
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("2 G"), Ok(2_000_000_000));
        for text in ["", "M", "-1", "1.5G", "3 apples", "99999999999999999999", "99999999T"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn text_is_about_what_the_file_takes() {
        let (group, name) = ("Williams".to_owned(), "cant".to_owned());
        let (rows, cols, entries) = (62451, 62451, 4_007_383);
        let matrix = Record { group, name, rows, cols, entries, values: Values::Real };
        assert_eq!(text_bytes(&matrix), entries * (5 + 5 + 2 + 18));
        assert_eq!(text_bytes(&Record { entries: u64::MAX, ..matrix }), u64::MAX);
    }
}

//! Parses the header of a Matrix Market file: banner, comments and size line.

use nom::branch::alt;
use nom::bytes::complete::{tag_no_case, take_while1};
use nom::character::complete::{digit1, space0, space1};
use nom::combinator::{eof, opt, recognize};
use nom::sequence::{pair, preceded, terminated};
use nom::{IResult, Parser};

use super::error::{Fault, Problem, quoted};
use super::kinds::{Field, Format, Symmetry};
use super::{Mode, ReadOptions};
use crate::FormatError;
use crate::check::check_limits;

/// The header of a Matrix Market file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Layout of the entries.
    pub format: Format,
    /// Type of the values.
    pub field: Field,
    /// Which entries are left out.
    pub symmetry: Symmetry,
    /// Number of rows.
    pub rows: u32,
    /// Number of columns.
    pub cols: u32,
    /// Number of entries that the text holds: as declared (coordinate), or as the sizes and the
    /// symmetry imply (array). Entries left out by symmetry are not counted.
    pub entries: u32,
    /// Comment lines of the header in their order, without the `%`.
    pub comments: Vec<String>,
}

/// A header, and where the entries start.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) header: Header,
    /// Offset of the first line that is neither blank nor a comment.
    pub(crate) body: usize,
    /// Number of that line.
    pub(crate) line: u64,
}

/// Lines with their numbers from 1, without line ends (LF or CRLF).
struct Lines<'a> {
    text: &'a [u8],
    offset: usize,
    line: u64,
}

impl<'a> Lines<'a> {
    fn peek(&self) -> Option<(&'a [u8], usize)> {
        let rest = &self.text[self.offset..];
        if rest.is_empty() {
            return None;
        }
        let (line, taken) = match memchr::memchr(b'\n', rest) {
            Some(end) => (&rest[..end], end + 1),
            None => (rest, rest.len()),
        };
        Some((line.strip_suffix(b"\r").unwrap_or(line), taken))
    }

    fn skip(&mut self, taken: usize) {
        self.offset += taken;
        self.line += 1;
    }

    /// Passes blank and comment lines; returns the next other line without consuming it.
    fn next_content(&mut self, comments: &mut Vec<String>) -> Option<(&'a [u8], usize)> {
        while let Some((line, taken)) = self.peek() {
            let content = line.trim_ascii_start();
            if let Some(comment) = content.strip_prefix(b"%") {
                comments.push(String::from_utf8_lossy(comment).into_owned());
            } else if !content.is_empty() {
                return Some((line, taken));
            }
            self.skip(taken);
        }
        None
    }
}

fn word(input: &[u8]) -> IResult<&[u8], &[u8]> {
    preceded(space1, take_while1(|byte: u8| !byte.is_ascii_whitespace())).parse(input)
}

/// The start of the banner line, up to and without the blanks before "matrix".
fn banner_start(input: &[u8], mode: Mode) -> IResult<&[u8], &[u8]> {
    match mode {
        Mode::Strict => tag_no_case("%%MatrixMarket").parse(input),
        Mode::Lenient => {
            let tag = alt((tag_no_case("%%MatrixMarket"), tag_no_case("%MatrixMarket")));
            preceded(space0, tag).parse(input)
        }
    }
}

fn integer(input: &[u8]) -> IResult<&[u8], &[u8]> {
    preceded(space0, recognize(pair(opt(tag_no_case("-")), digit1))).parse(input)
}

fn size_line<const N: usize>(input: &[u8]) -> IResult<&[u8], [&[u8]; N]> {
    let mut numbers = [&input[..0]; N];
    let mut rest = input;
    for (position, number) in numbers.iter_mut().enumerate() {
        if position > 0 {
            rest = space1.parse(rest)?.0;
        }
        (rest, *number) = integer(rest)?;
    }
    let (rest, _) = terminated(space0, eof).parse(rest)?;
    Ok((rest, numbers))
}

/// Reads one word of the banner.
fn banner_word<'a, W>(
    rest: &mut &'a [u8],
    expected: &str,
    read: impl FnOnce(&[u8]) -> Option<W>,
) -> Result<W, Fault> {
    let fault = |found: String| Fault::new(1, Problem::Banner, expected, found);
    let (after, text): (&'a [u8], &'a [u8]) = word(rest).map_err(|_| fault(end_or_quoted(rest)))?;
    *rest = after;
    read(text).ok_or_else(|| fault(quoted(text)))
}

fn end_or_quoted(rest: &[u8]) -> String {
    let rest = rest.trim_ascii();
    if rest.is_empty() { "the end of the line".to_owned() } else { quoted(rest) }
}

fn parse_banner(line: &[u8], mode: Mode) -> Result<(Format, Field, Symmetry), Fault> {
    let (mut rest, _) = banner_start(line, mode).map_err(|_| {
        Fault::new(1, Problem::Banner, "a banner that starts with %%MatrixMarket", quoted(line))
    })?;
    banner_word(&mut rest, "the object \"matrix\"", |text| {
        text.eq_ignore_ascii_case(b"matrix").then_some(())
    })?;
    let format =
        banner_word(&mut rest, "the format \"coordinate\" or \"array\"", Format::from_word)?;
    let field = banner_word(
        &mut rest,
        "the field \"real\", \"double\", \"integer\", \"unsigned-integer\", \"complex\" or \
         \"pattern\"",
        |text| {
            if text.eq_ignore_ascii_case(b"double") {
                return Some(Field::Real);
            }
            Field::from_word(text)
        },
    )?;
    let symmetry = banner_word(
        &mut rest,
        "the symmetry \"general\", \"symmetric\", \"skew-symmetric\" or \"hermitian\"",
        Symmetry::from_word,
    )?;
    let fault = |expected, found: &str| Err(Fault::new(1, Problem::Banner, expected, found));
    if !rest.trim_ascii().is_empty() {
        return fault("the end of the banner", &quoted(rest.trim_ascii()));
    }
    if format == Format::Array && field == Field::Pattern {
        return fault("values in a matrix in array format", "the field \"pattern\"");
    }
    if field == Field::Pattern && matches!(symmetry, Symmetry::SkewSymmetric | Symmetry::Hermitian)
    {
        let found = format!("\"{symmetry}\"");
        return fault("the symmetry \"general\" or \"symmetric\" for a pattern", &found);
    }
    if symmetry == Symmetry::Hermitian && field != Field::Complex && mode == Mode::Strict {
        let found = format!("\"{field}\"");
        return fault("the field \"complex\" for a hermitian matrix", &found);
    }
    Ok((format, field, symmetry))
}

/// One number of the size line; beyond 64 bits it reads as the largest.
fn parse_size(what: &str, text: &[u8], line: u64) -> Result<u64, Fault> {
    if text.starts_with(b"-") {
        return Err(Fault::new(
            line,
            Problem::Size,
            format!("a {what} of 0 or more"),
            quoted(text),
        ));
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    Ok(number.unwrap_or(u64::MAX))
}

/// The fault of sizes that [`check_limits`] refuses.
pub(super) fn too_large(line: u64, error: &FormatError) -> Fault {
    let FormatError::TooLarge { what, size, limit } = error else {
        return Fault::new(line, Problem::TooLarge, "sizes of 32 bits", error.to_string());
    };
    let found = if *size == u64::MAX { "more than 64 bits".to_owned() } else { size.to_string() };
    Fault::new(line, Problem::TooLarge, format!("a {what} of at most {limit}"), found)
}

/// Number of values in the text of an array.
fn array_entries(symmetry: Symmetry, rows: u64, cols: u64) -> u64 {
    match symmetry {
        Symmetry::General => rows * cols,
        // Square and below 2^32, as checked by the caller: nothing overflows.
        Symmetry::SkewSymmetric => rows * rows.saturating_sub(1) / 2,
        Symmetry::Symmetric | Symmetry::Hermitian => rows * rows / 2 + rows.div_ceil(2),
    }
}

/// Parses everything before the first entry; `None` when `text` is not `complete` and the header
/// may go on after it.
pub(crate) fn parse_header(
    text: &[u8],
    complete: bool,
    options: &ReadOptions,
) -> Result<Option<Parsed>, Fault> {
    let mut lines = Lines { text, offset: 0, line: 1 };
    let (banner, taken) = lines.peek().unwrap_or((b"", 0));
    let (format, field, symmetry) = parse_banner(banner, options.mode)?;
    lines.skip(taken);

    let mut comments = Vec::new();
    let expected = match format {
        Format::Coordinate => "a size line of rows, columns and entries",
        Format::Array => "a size line of rows and columns",
    };
    let size = lines.next_content(&mut comments);
    let line = lines.line;
    let Some((size, taken)) = size else {
        if !complete {
            return Ok(None);
        }
        return Err(Fault::new(line, Problem::Size, expected, "the end of the file"));
    };
    let malformed = |_| Fault::new(line, Problem::Size, expected, quoted(size.trim_ascii()));
    let (rows, cols, entries) = match format {
        Format::Coordinate => {
            let (_, [rows, cols, entries]) = size_line::<3>(size).map_err(malformed)?;
            (rows, cols, Some(entries))
        }
        Format::Array => {
            let (_, [rows, cols]) = size_line::<2>(size).map_err(malformed)?;
            (rows, cols, None)
        }
    };
    let limits = |rows, cols, entries| {
        check_limits(rows, cols, entries).map_err(|error| too_large(line, &error))
    };
    let rows = parse_size("number of rows", rows, line)?;
    let cols = parse_size("number of columns", cols, line)?;
    limits(rows, cols, 0)?;
    for (what, size) in [("number of rows", rows), ("number of columns", cols)] {
        let limit = u64::from(options.max_dimension);
        if size > limit {
            return Err(too_large(line, &FormatError::TooLarge { what, size, limit }));
        }
    }
    if symmetry != Symmetry::General && rows != cols {
        let expected = format!("as many columns as rows in a {symmetry} matrix");
        return Err(Fault::new(line, Problem::Size, expected, format!("{rows} x {cols}")));
    }
    let entries = match entries {
        Some(text) => parse_size("number of entries", text, line)?,
        None => {
            // With those that symmetry implies.
            limits(rows, cols, rows * cols)?;
            array_entries(symmetry, rows, cols)
        }
    };
    limits(rows, cols, entries)?;
    let (rows, cols, entries) = (rows as u32, cols as u32, entries as u32);
    if format == Format::Coordinate && entries > 0 && (rows == 0 || cols == 0) {
        let found = format!("{entries} entries in a {rows} x {cols} matrix");
        return Err(Fault::new(line, Problem::Size, "0 entries in an empty matrix", found));
    }
    lines.skip(taken);
    // Comments right after the size line are still before the entries, hence harmless.
    if lines.next_content(&mut comments).is_none() && !complete {
        return Ok(None);
    }
    let header = Header { format, field, symmetry, rows, cols, entries, comments };
    Ok(Some(Parsed { header, body: lines.offset, line: lines.line }))
}

//! Parses the entries of one chunk of lines.

use super::Mode;
use super::error::{Fault, Problem, quoted};
use super::header::Header;
use super::kinds::{Field, Format, Symmetry};
use super::number::{self, NumberFault, byte_at, is_blank, token_end};
use crate::{RealScalar, Scalar};

/// A piece of the text: whole lines.
pub(super) struct Chunk<'a> {
    pub(super) text: &'a [u8],
    pub(super) lines: u64,
    pub(super) first_line: u64,
}

/// The destination of the entries of one chunk. Array files have no row and column indices.
pub(super) struct Slots<'a, T> {
    pub(super) rows: &'a mut [u32],
    pub(super) cols: &'a mut [u32],
    pub(super) values: &'a mut [T],
}

impl<'a, T> Slots<'a, T> {
    /// The destinations of the next `entries` entries, and those after them.
    pub(super) fn split_at(self, entries: usize) -> (Self, Self) {
        let (rows, more_rows) = self.rows.split_at_mut(entries.min(self.rows.len()));
        let (cols, more_cols) = self.cols.split_at_mut(entries.min(self.cols.len()));
        let (values, more_values) = self.values.split_at_mut(entries);
        let rest = Self { rows: more_rows, cols: more_cols, values: more_values };
        (Self { rows, cols, values }, rest)
    }
}

/// A value and where it ends, or what is wrong with the number at a place.
type Read<T> = Result<(T, usize), (NumberFault, usize)>;

/// Reads one value that starts at the given place.
trait Values<T> {
    fn read(&self, text: &[u8], at: usize) -> Read<T>;
    /// What a value is called in errors.
    fn expected(&self) -> &'static str;
}

struct Real {
    lenient: bool,
}

struct Integer {
    unsigned: bool,
}

struct Complex {
    lenient: bool,
}

struct Pattern;

/// One decimal number.
#[inline(always)]
fn decimal<R: RealScalar>(text: &[u8], at: usize, lenient: bool) -> Read<R> {
    if let Some(read) = number::short_decimal(text, at) {
        return Ok(read);
    }
    let end = token_end(text, at);
    let value = number::any_decimal(&text[at..end], lenient).map_err(|fault| (fault, at))?;
    Ok((value, end))
}

/// A real number as a matrix element.
#[inline(always)]
fn real<T: Scalar>((value, end): (T::Real, usize)) -> (T, usize) {
    (T::from_parts(value, T::Real::ZERO), end)
}

impl<T: Scalar> Values<T> for Real {
    #[inline(always)]
    fn read(&self, text: &[u8], at: usize) -> Read<T> {
        decimal(text, at, self.lenient).map(real)
    }

    fn expected(&self) -> &'static str {
        "a real value"
    }
}

impl<T: Scalar> Values<T> for Complex {
    #[inline(always)]
    fn read(&self, text: &[u8], at: usize) -> Read<T> {
        let (re, end) = decimal(text, at, self.lenient)?;
        let (im, end) = decimal(text, skip_blanks(text, end), self.lenient)?;
        Ok((T::from_parts(re, im), end))
    }

    fn expected(&self) -> &'static str {
        "a complex value, which is two real ones"
    }
}

impl<T: Scalar> Values<T> for Integer {
    fn read(&self, text: &[u8], at: usize) -> Read<T> {
        if !number::is_integer(&text[at..token_end(text, at)], self.unsigned) {
            return Err((NumberFault::Malformed, at));
        }
        decimal(text, at, false).map(real)
    }

    fn expected(&self) -> &'static str {
        if self.unsigned { "an unsigned integer value" } else { "an integer value" }
    }
}

impl<T: Scalar> Values<T> for Pattern {
    #[inline(always)]
    fn read(&self, _text: &[u8], at: usize) -> Read<T> {
        Ok((T::ONE, at))
    }

    fn expected(&self) -> &'static str {
        "no value"
    }
}

/// Parses the entries of a chunk into their destinations; returns their number.
pub(super) fn parse_chunk<T: Scalar>(
    header: &Header,
    mode: Mode,
    chunk: &Chunk<'_>,
    slots: Slots<'_, T>,
) -> Result<usize, Fault> {
    let parser = Parser { header, mode, chunk };
    let lenient = mode == Mode::Lenient;
    match header.field {
        Field::Pattern => parser.parse(&Pattern, slots),
        Field::Integer | Field::UnsignedInteger if !lenient => {
            parser.parse(&Integer { unsigned: header.field == Field::UnsignedInteger }, slots)
        }
        Field::Complex => parser.parse(&Complex { lenient }, slots),
        _ => parser.parse(&Real { lenient }, slots),
    }
}

struct Parser<'a> {
    header: &'a Header,
    mode: Mode,
    chunk: &'a Chunk<'a>,
}

impl Parser<'_> {
    fn parse<T: Scalar>(
        &self,
        values: &impl Values<T>,
        slots: Slots<'_, T>,
    ) -> Result<usize, Fault> {
        let text = self.chunk.text;
        let coordinate = self.header.format == Format::Coordinate;
        let general = self.header.symmetry == Symmetry::General;
        let mut line = self.chunk.first_line;
        let mut entry = 0;
        let mut at = 0;
        while at < text.len() {
            at = skip_blanks(text, at);
            let first = byte_at(text, at);
            if first == b'\n' {
                at += 1;
                line += 1;
                continue;
            }
            if first == b'%' {
                self.check_comment(text, at, line)?;
                at = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end + 1);
                line += 1;
                continue;
            }
            if entry == slots.values.len() {
                return Err(self.too_many(text, at, line));
            }
            if coordinate {
                let (row, end) = self.index(text, at, line, "row", self.header.rows)?;
                at = skip_blanks(text, end);
                let (col, end) = self.index(text, at, line, "column", self.header.cols)?;
                at = skip_blanks(text, end);
                slots.rows[entry] = row;
                slots.cols[entry] = col;
            }
            let value = values.read(text, at);
            let (value, end) = value.map_err(|(fault, at)| {
                value_fault::<T::Real>(text, at, line, values.expected(), fault)
            })?;
            slots.values[entry] = value;
            if coordinate && !general {
                self.check_symmetry(slots.rows[entry], slots.cols[entry], value, line)?;
            }
            at = skip_blanks(text, end);
            if byte_at(text, at) != b'\n' {
                let found = quoted(&text[at..token_end(text, at)]);
                return Err(Fault::new(line, Problem::ExtraToken, "the end of the line", found));
            }
            at += 1;
            line += 1;
            entry += 1;
        }
        Ok(entry)
    }

    #[inline(always)]
    fn index(
        &self,
        text: &[u8],
        at: usize,
        line: u64,
        axis: &str,
        bound: u32,
    ) -> Result<(u32, usize), Fault> {
        match number::unsigned(text, at) {
            Some((index @ 1.., end)) if index <= u64::from(bound) => Ok(((index - 1) as u32, end)),
            _ => Err(index_fault(text, at, line, axis, bound)),
        }
    }

    /// Comments before the first entry belong to the header and never come here.
    #[cold]
    fn check_comment(&self, text: &[u8], at: usize, line: u64) -> Result<(), Fault> {
        if self.mode == Mode::Lenient {
            return Ok(());
        }
        let found = quoted(line_from(text, at));
        let expected = "no comment after the first entry";
        Err(Fault::new(line, Problem::Comment, expected, found))
    }

    #[cold]
    fn too_many(&self, text: &[u8], at: usize, line: u64) -> Fault {
        let expected = format!("the end of the file after {} entries", self.header.entries);
        let found = quoted(line_from(text, at));
        Fault::new(line, Problem::EntryCount, expected, found)
    }

    fn check_symmetry<T: Scalar>(
        &self,
        row: u32,
        col: u32,
        value: T,
        line: u64,
    ) -> Result<(), Fault> {
        if self.mode == Mode::Lenient {
            return Ok(());
        }
        let symmetry = self.header.symmetry;
        if row < col {
            let expected = format!("no entry above the diagonal of a {symmetry} matrix");
            let found = format!("row {}, column {}", u64::from(row) + 1, u64::from(col) + 1);
            return Err(Fault::new(line, Problem::Symmetry, expected, found));
        }
        if symmetry == Symmetry::SkewSymmetric && row == col && value != T::ZERO {
            let expected = "0 on the diagonal of a skew-symmetric matrix";
            return Err(Fault::new(line, Problem::Symmetry, expected, value.to_string()));
        }
        if symmetry == Symmetry::Hermitian && row == col && value.im() != T::Real::ZERO {
            return Err(not_real(line, row, value));
        }
        Ok(())
    }
}

/// An imaginary part on the diagonal of a hermitian matrix, in row `row` from 0.
#[cold]
pub(super) fn not_real<T: Scalar>(line: u64, row: u32, value: T) -> Fault {
    let expected = "real numbers on the diagonal of a hermitian matrix";
    let found = format!("{value} in row {}", u64::from(row) + 1);
    Fault::new(line, Problem::Symmetry, expected, found)
}

#[inline(always)]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while is_blank(byte_at(text, at)) {
        at += 1;
    }
    at
}

/// What is left of a line.
fn line_from(text: &[u8], at: usize) -> &[u8] {
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
    text[at..end].trim_ascii_end()
}

/// The token at `at` as an error shows it.
fn found_at(text: &[u8], at: usize) -> String {
    if byte_at(text, at) == b'\n' {
        return "the end of the line".to_owned();
    }
    quoted(&text[at..token_end(text, at)])
}

#[cold]
fn index_fault(text: &[u8], at: usize, line: u64, axis: &str, bound: u32) -> Fault {
    let expected = format!("a {axis} index from 1 to {bound}");
    Fault::new(line, Problem::Index, expected, found_at(text, at))
}

#[cold]
fn value_fault<T: Scalar>(
    text: &[u8],
    at: usize,
    line: u64,
    expected: &str,
    fault: NumberFault,
) -> Fault {
    let expected = match fault {
        NumberFault::Malformed => expected.to_owned(),
        NumberFault::OutOfRange => format!("{expected} in the range of {}", T::NAME),
    };
    Fault::new(line, Problem::Value, expected, found_at(text, at))
}

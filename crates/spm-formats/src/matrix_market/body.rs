//! Parses the entries of a Matrix Market file in parallel.
//!
//! The text is divided into chunks at line ends. The lines are counted first, which gives every
//! chunk its line number and its position in the arrays. The result, also an error, therefore does
//! not depend on the chunks.

use std::ops::Range;

use super::Mode;
use super::entries::{Chunk, Slots, not_real, parse_chunk};
use super::error::{Fault, Problem};
use super::header::{Header, too_large};
use super::kinds::{Field, Format, Symmetry};
use super::number::is_blank;
use crate::check::check_limits;
use crate::{Scalar, huge_pages, parallel};

/// Entries as they stand in the text, filled block by block.
pub(crate) struct Body<'h, T> {
    header: &'h Header,
    mode: Mode,
    chunk_bytes: usize,
    /// Number of the next line.
    line: u64,
    rows: Vec<u32>,
    cols: Vec<u32>,
    values: Vec<T>,
}

/// Row indices, column indices, values.
pub(crate) type Triplets<T> = (Vec<u32>, Vec<u32>, Vec<T>);

impl<'h, T: Scalar> Body<'h, T> {
    /// `line` is the number of the first line of the body; `bytes` the length of the text from
    /// there, where it is known.
    pub(crate) fn new(
        header: &'h Header,
        mode: Mode,
        chunk_bytes: usize,
        line: u64,
        bytes: Option<usize>,
    ) -> Result<Self, Fault> {
        let mut body = Self {
            header,
            mode,
            chunk_bytes: chunk_bytes.max(1),
            line,
            rows: Vec::new(),
            cols: Vec::new(),
            values: Vec::new(),
        };
        // The declared number of entries is believed as far as the text can hold them.
        let shortest_line = match (header.format, header.field) {
            (Format::Array, Field::Complex) => b"1 1\n".len(),
            (Format::Array, _) => b"1\n".len(),
            (Format::Coordinate, Field::Pattern) => b"1 1\n".len(),
            (Format::Coordinate, Field::Complex) => b"1 1 1 1\n".len(),
            (Format::Coordinate, _) => b"1 1 1\n".len(),
        };
        let entries = header.entries as usize;
        if bytes.is_some_and(|bytes| entries <= bytes / shortest_line + 1) {
            if header.format == Format::Coordinate {
                reserve(&mut body.rows, entries)?;
                reserve(&mut body.cols, entries)?;
                huge_pages::advise(&mut body.rows);
                huge_pages::advise(&mut body.cols);
            }
            reserve(&mut body.values, entries)?;
            huge_pages::advise(&mut body.values);
        }
        Ok(body)
    }

    /// Parses whole lines (the last of the file may lack its line end).
    pub(crate) fn append(&mut self, text: &[u8]) -> Result<(), Fault> {
        let before = self.values.len();
        let missing = self.header.entries as usize - before;
        let pieces = split_at_lines(text, self.chunk_bytes);
        let mut chunks: Vec<Chunk<'_>> = parallel::map(pieces.len(), 1, |piece| {
            let text = pieces[piece];
            Chunk { text, lines: count_lines(text), first_line: 0 }
        });
        let mut line = self.line;
        for chunk in &mut chunks {
            chunk.first_line = line;
            line += chunk.lines;
        }
        self.line = line;

        // A line holds at most one entry. When there are more lines than entries missing, those
        // that hold none are told apart, so that nothing is allocated for them.
        let mut entries: Vec<usize> = chunks.iter().map(|chunk| chunk.lines as usize).collect();
        if entries.iter().sum::<usize>() > missing {
            entries = parallel::map(chunks.len(), 1, |chunk| count_entry_lines(chunks[chunk].text));
        }
        let mut total = 0;
        for entries in &mut entries {
            *entries = (*entries).min(missing - total);
            total += *entries;
        }

        if self.header.format == Format::Coordinate {
            grow(&mut self.rows, before + total, 0)?;
            grow(&mut self.cols, before + total, 0)?;
        }
        grow(&mut self.values, before + total, T::ZERO)?;
        let from = |length: usize| before.min(length);
        let (rows_from, cols_from) = (from(self.rows.len()), from(self.cols.len()));
        let mut free = Slots {
            rows: &mut self.rows[rows_from..],
            cols: &mut self.cols[cols_from..],
            values: &mut self.values[before..],
        };
        let mut work = Vec::with_capacity(chunks.len());
        for (&entries, chunk) in entries.iter().zip(chunks) {
            let (slots, rest) = free.split_at(entries);
            work.push((chunk, slots, Ok(0)));
            free = rest;
        }
        let (header, mode) = (self.header, self.mode);
        parallel::for_each_mut(&mut work, 1, |_, (chunk, slots, filled)| {
            let Slots { rows, cols, values } = slots;
            *filled = parse_chunk(header, mode, chunk, Slots { rows, cols, values });
        });
        // The first fault in the order of the text, whichever was found first.
        let filled: Vec<usize> =
            work.into_iter().map(|(_, _, filled)| filled).collect::<Result<_, Fault>>()?;
        if filled != entries {
            self.close_gaps(before, &entries, &filled);
        }
        Ok(())
    }

    /// Moves entries together where lines held none.
    fn close_gaps(&mut self, before: usize, reserved: &[usize], filled: &[usize]) {
        let (mut from, mut to) = (before, before);
        for (reserved, filled) in reserved.iter().zip(filled) {
            if self.header.format == Format::Coordinate {
                self.rows.copy_within(from..from + filled, to);
                self.cols.copy_within(from..from + filled, to);
            }
            self.values.copy_within(from..from + filled, to);
            from += reserved;
            to += filled;
        }
        self.rows.truncate(to);
        self.cols.truncate(to);
        self.values.truncate(to);
    }

    /// The entries so far, as they stand in the text.
    pub(crate) fn into_entries(self) -> Triplets<T> {
        (self.rows, self.cols, self.values)
    }

    /// The entries of the whole matrix, those left out by symmetry appended.
    pub(crate) fn finish(mut self) -> Result<Triplets<T>, Fault> {
        let header = self.header;
        let (declared, found) = (header.entries as usize, self.values.len());
        if found < declared {
            let line = self.line.saturating_sub(1).max(1);
            let expected = format!("{declared} entries");
            let found = format!("the end of the file after {found}");
            return Err(Fault::new(line, Problem::EntryCount, expected, found));
        }
        if header.format == Format::Array {
            (self.rows, self.cols) = array_positions(header)?;
            self.check_diagonal()?;
        }
        self.mirror()?;
        Ok((self.rows, self.cols, self.values))
    }

    /// Checks the diagonal of a hermitian array, whose positions were not known before. So is its line.
    fn check_diagonal(&self) -> Result<(), Fault> {
        if self.header.symmetry != Symmetry::Hermitian || self.mode == Mode::Lenient {
            return Ok(());
        }
        let mut entries = self.rows.iter().zip(&self.cols).zip(&self.values);
        match entries.find(|((row, col), value)| row == col && value.im() != T::Real::ZERO) {
            Some(((row, _), value)) => Err(not_real(1, *row, *value)),
            None => Ok(()),
        }
    }

    fn mirror(&mut self) -> Result<(), Fault> {
        let header = self.header;
        if header.symmetry == Symmetry::General {
            return Ok(());
        }
        let stored = self.values.len();
        let off_diagonal = |entries: Range<usize>| {
            let pairs = self.rows[entries.clone()].iter().zip(&self.cols[entries]);
            pairs.filter(|(row, col)| row != col).count() as u64
        };
        let mirrored = parallel::reduce(stored, 1, 0, &off_diagonal, |a, b| a + b) as usize;
        let total = stored + mirrored;
        check_limits(header.rows.into(), header.cols.into(), total as u64)
            .map_err(|error| too_large(1, &error))?;
        reserve(&mut self.rows, mirrored)?;
        reserve(&mut self.cols, mirrored)?;
        reserve(&mut self.values, mirrored)?;
        let symmetry = header.symmetry;
        for i in 0..stored {
            let (row, col, value) = (self.rows[i], self.cols[i], self.values[i]);
            if row != col {
                self.rows.push(col);
                self.cols.push(row);
                self.values.push(symmetry.mirrored(value));
            }
        }
        Ok(())
    }
}

/// Room for exactly `more` more elements.
fn reserve<E>(array: &mut Vec<E>, more: usize) -> Result<(), Fault> {
    array.try_reserve_exact(more).map_err(|_| out_of_memory::<E>(array.len() + more))
}

/// Lengthens to `length` elements; the room grows by steps, as the number of calls is not known.
fn grow<E: Copy>(array: &mut Vec<E>, length: usize, element: E) -> Result<(), Fault> {
    array.try_reserve(length - array.len()).map_err(|_| out_of_memory::<E>(length))?;
    array.resize(length, element);
    Ok(())
}

#[cold]
fn out_of_memory<E>(entries: usize) -> Fault {
    let expected = format!("{} bytes of memory for {entries} entries", entries * size_of::<E>());
    Fault::new(1, Problem::Memory, expected, "less")
}

/// Cuts text after line ends into pieces of about `bytes` bytes.
fn split_at_lines(text: &[u8], bytes: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(text.len() / bytes + 1);
    let mut rest = text;
    while !rest.is_empty() {
        let end = match rest.get(bytes - 1..).and_then(|tail| memchr::memchr(b'\n', tail)) {
            Some(offset) => bytes + offset,
            None => rest.len(),
        };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Number of lines, an unfinished last one included.
fn count_lines(text: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', text).count() as u64;
    ends + u64::from(text.last().is_some_and(|&byte| byte != b'\n'))
}

/// Number of lines that are neither blank nor comments.
fn count_entry_lines(text: &[u8]) -> usize {
    let holds_entry = |line: &&[u8]| {
        line.iter().find(|&&byte| !is_blank(byte)).is_some_and(|&first| first != b'%')
    };
    text.split(|&byte| byte == b'\n').filter(holds_entry).count()
}

/// Positions of the values of an array: by columns, those implied by symmetry left out.
fn array_positions(header: &Header) -> Result<(Vec<u32>, Vec<u32>), Fault> {
    let first_row = |col: u32| match header.symmetry {
        Symmetry::General => 0,
        Symmetry::Symmetric | Symmetry::Hermitian => col,
        Symmetry::SkewSymmetric => col + 1,
    };
    let positions =
        (0..header.cols).flat_map(|col| (first_row(col)..header.rows).map(move |row| (row, col)));
    let (mut rows, mut cols) = (Vec::new(), Vec::new());
    reserve(&mut rows, header.entries as usize)?;
    reserve(&mut cols, header.entries as usize)?;
    // Not a step more: 2^32 columns without a row are two numbers in the header.
    for (row, col) in positions.take(header.entries as usize) {
        rows.push(row);
        cols.push(col);
    }
    Ok((rows, cols))
}

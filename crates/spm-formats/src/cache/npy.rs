//! NumPy's `.npy` format (version 1.0 and up) for scalars and vectors.

use std::io::{self, Read};

use super::Fault;
use crate::Scalar;

/// Elements that are converted at a time.
pub(super) const PIECE: usize = 1 << 13;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Maximum length of a header; any array that is read here has a shorter one.
const LONGEST_HEADER: usize = 4096;

/// The header of an array.
#[derive(Debug, Clone)]
pub(super) struct Header {
    /// Type of the elements: `<i4`, `<f8`, ...
    descr: String,
    /// Number of elements; 1 for a scalar.
    elements: u64,
    /// Bytes that follow the header.
    bytes: u64,
}

/// A header of format version 1.0; `shape` as Python writes a tuple.
pub(super) fn header(descr: &str, shape: &str) -> Vec<u8> {
    let mut dictionary =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The elements start at a multiple of 64 bytes, after a line end.
    let length = (MAGIC.len() + 4 + dictionary.len() + 1).next_multiple_of(64) - MAGIC.len() - 4;
    dictionary.push_str(&" ".repeat(length - 1 - dictionary.len()));
    dictionary.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&(length as u16).to_le_bytes());
    header.extend_from_slice(dictionary.as_bytes());
    header
}

impl Header {
    /// Reads the header of an array of `bytes` bytes altogether.
    pub(super) fn read(file: &mut impl Read, bytes: u64) -> Result<Self, Fault> {
        let malformed = |found: String| Fault::new("an array of NumPy", found);
        let mut start = [0; 8];
        file.read_exact(&mut start)?;
        if !start.starts_with(MAGIC) {
            return Err(malformed("something else".to_owned()));
        }
        let (length, prefix) = if start[6] == 1 {
            let mut length = [0; 2];
            file.read_exact(&mut length)?;
            (usize::from(u16::from_le_bytes(length)), 10)
        } else {
            let mut length = [0; 4];
            file.read_exact(&mut length)?;
            (u32::from_le_bytes(length) as usize, 12)
        };
        if length > LONGEST_HEADER {
            return Err(malformed(format!("a header of {length} bytes")));
        }
        let mut text = vec![0; length];
        file.read_exact(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let (Some(descr), Some(shape)) =
            (between(&text, "'descr': '", "'"), between(&text, "'shape': (", ")"))
        else {
            return Err(malformed(format!("the header {:?}", text.trim_end())));
        };
        let sizes: Vec<&str> =
            shape.split(',').map(str::trim).filter(|size| !size.is_empty()).collect();
        let elements = match sizes[..] {
            [] => Ok(1),
            [size] => size.parse().map_err(|_| malformed(format!("the shape ({shape})"))),
            _ => Err(Fault::new("an array of one dimension", format!("the shape ({shape})"))),
        }?;
        let bytes = bytes.saturating_sub((prefix + length) as u64);
        Ok(Self { descr: descr.to_owned(), elements, bytes })
    }

    /// Checks the size of the elements against that of the array.
    fn count(&self, width: usize) -> Result<usize, Fault> {
        if self.elements.checked_mul(width as u64) != Some(self.bytes) {
            let expected = format!("{} elements of {width} bytes", self.elements);
            return Err(Fault::new(expected, format!("{} bytes", self.bytes)));
        }
        usize::try_from(self.elements)
            .map_err(|_| Fault::new("elements that fit memory", self.elements.to_string()))
    }

    /// Number of elements.
    pub(super) fn elements(&self) -> u64 {
        self.elements
    }

    /// Bytes of an element, as many as the array has elements of.
    pub(super) fn width(&self) -> Result<u64, Fault> {
        let digits = self.descr.trim_start_matches(|c: char| !c.is_ascii_digit());
        let width = digits.parse().map_err(|_| self.wrong_type("of a fixed size"))?;
        self.count(width)?;
        Ok(width as u64)
    }

    /// The header of an array of some of the elements.
    pub(super) fn part(&self, elements: u64) -> Result<Self, Fault> {
        Ok(Self { descr: self.descr.clone(), elements, bytes: elements * self.width()? })
    }

    fn wrong_type(&self, expected: &str) -> Fault {
        Fault::new(format!("elements of type {expected}"), self.descr.clone())
    }
}

/// The part of `text` after `before` and up to `after`.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

/// Reads `WIDTH`-byte elements; their number has been checked against the size of the file.
fn elements<E, const WIDTH: usize>(
    header: &Header,
    file: &mut dyn Read,
    convert: impl Fn([u8; WIDTH]) -> E,
) -> Result<Vec<E>, Fault> {
    let mut left = header.count(WIDTH)?;
    let mut elements = Vec::new();
    elements.try_reserve_exact(left).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut piece = vec![0; WIDTH * PIECE.min(left)];
    while left > 0 {
        let count = left.min(PIECE);
        let bytes = &mut piece[..WIDTH * count];
        file.read_exact(bytes)?;
        let (whole, _) = bytes.as_chunks::<WIDTH>();
        elements.extend(whole.iter().map(|&bytes| convert(bytes)));
        left -= count;
    }
    Ok(elements)
}

/// Reads a short text: a scalar of type `|S..` or `<U..`.
pub(super) fn text(header: &Header, file: &mut dyn Read) -> Result<String, Fault> {
    if header.bytes > 64 || header.elements != 1 {
        return Err(Fault::new("a short text", format!("{} bytes", header.bytes)));
    }
    let mut bytes = Vec::new();
    file.take(64).read_to_end(&mut bytes)?;
    match header.descr.as_bytes() {
        [b'|', b'S', ..] => {}
        // Four bytes a character, of which ASCII uses the first.
        [b'<', b'U', ..] => bytes = bytes.into_iter().step_by(4).collect(),
        _ => return Err(header.wrong_type("|S or <U")),
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a few integers.
pub(super) fn integers(header: &Header, file: &mut dyn Read) -> Result<Vec<i64>, Fault> {
    match header.descr.as_str() {
        "<i8" => elements(header, file, i64::from_le_bytes),
        "<i4" => elements(header, file, |bytes| i64::from(i32::from_le_bytes(bytes))),
        _ => Err(header.wrong_type("<i8 or <i4")),
    }
}

/// Reads indices or pointers.
pub(super) fn indices(header: &Header, file: &mut dyn Read) -> Result<Vec<u32>, Fault> {
    let (indices, largest) = match header.descr.as_str() {
        "<u4" => (elements(header, file, u32::from_le_bytes)?, u32::MAX),
        "<i4" => (elements(header, file, u32::from_le_bytes)?, i32::MAX as u32),
        "<i8" => {
            let wide = elements(header, file, u64::from_le_bytes)?;
            let narrow = wide.iter().map(|&index| u32::try_from(index)).collect();
            let outside = |_| Fault::new("indices of 32 bits", "one outside");
            (Result::map_err(narrow, outside)?, u32::MAX)
        }
        _ => return Err(header.wrong_type("<i4, <u4 or <i8")),
    };
    if indices.iter().max().is_some_and(|&index| index > largest) {
        return Err(Fault::new("indices of 0 or more", "a negative one"));
    }
    Ok(indices)
}

/// Reads indices or pointers of a matrix that no process has as a whole.
pub(super) fn wide_indices(header: &Header, file: &mut dyn Read) -> Result<Vec<u64>, Fault> {
    let narrow = |bytes| u64::from(u32::from_le_bytes(bytes));
    let (indices, largest) = match header.descr.as_str() {
        "<u4" => (elements(header, file, narrow)?, u64::MAX),
        "<i4" => (elements(header, file, narrow)?, i32::MAX as u64),
        "<i8" => (elements(header, file, u64::from_le_bytes)?, i64::MAX as u64),
        _ => return Err(header.wrong_type("<i4, <u4 or <i8")),
    };
    if indices.iter().any(|&index| index > largest) {
        return Err(Fault::new("indices of 0 or more", "a negative one"));
    }
    Ok(indices)
}

/// The type of values of `T`.
pub(super) fn descr<T: Scalar>() -> &'static str {
    match (T::IS_COMPLEX, T::BYTES) {
        (false, 4) => "<f4",
        (false, _) => "<f8",
        (true, 8) => "<c8",
        (true, _) => "<c16",
    }
}

/// Reads values, which must be of type `T`.
pub(super) fn values<T: Scalar>(header: &Header, file: &mut dyn Read) -> Result<Vec<T>, Fault> {
    let expected = descr::<T>();
    if header.descr != expected {
        return Err(header.wrong_type(expected));
    }
    let real = T::Real::from_f64;
    let single = |bytes| real(f32::from_le_bytes(bytes).into());
    let double = |bytes| real(f64::from_le_bytes(bytes));
    let zero = T::Real::ZERO;
    match expected {
        "<f4" => elements(header, file, |bytes| T::from_parts(single(bytes), zero)),
        "<f8" => elements(header, file, |bytes| T::from_parts(double(bytes), zero)),
        "<c8" => elements(header, file, |bytes: [u8; 8]| {
            let (parts, _) = bytes.as_chunks();
            T::from_parts(single(parts[0]), single(parts[1]))
        }),
        _ => elements(header, file, |bytes: [u8; 16]| {
            let (parts, _) = bytes.as_chunks();
            T::from_parts(double(parts[0]), double(parts[1]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back() {
        let bytes = header("<i4", "(3,)");
        assert_eq!(bytes.len() % 64, 0);
        let read = Header::read(&mut &bytes[..], bytes.len() as u64 + 12).unwrap();
        assert_eq!((read.descr.as_str(), read.elements, read.bytes), ("<i4", 3, 12));
        assert_eq!(integers(&read, &mut &[1, 0, 0, 0].repeat(3)[..]).unwrap(), [1; 3]);
    }

    /// A file with a hole is longer than memory, and its length is no lie.
    #[test]
    fn elements_beyond_memory_are_an_error() {
        let elements = 1_u64 << 57;
        let bytes = header("<i8", &format!("({elements},)"));
        let header = Header::read(&mut &bytes[..], bytes.len() as u64 + 8 * elements).unwrap();
        let fault = integers(&header, &mut io::repeat(0)).unwrap_err();
        assert!(matches!(fault, Fault::Io(error) if error.kind() == io::ErrorKind::OutOfMemory));
    }
}

//! Numbers in text: the common short forms at once, everything else through the standard library.
//!
//! All results are correctly rounded, in `f32` as in `f64`.

use crate::Scalar;

/// Powers of ten that `f64` holds exactly.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Blanks inside a line. CR is one, which makes CRLF a line end.
#[inline(always)]
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// Whether a token ends before `byte`.
#[inline(always)]
pub(crate) fn ends_token(byte: u8) -> bool {
    is_blank(byte) || byte == b'\n'
}

/// `text[at]`; the end of the text reads as a line end.
#[inline(always)]
pub(crate) fn byte_at(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(b'\n')
}

/// Where the token that starts at `at` ends.
pub(crate) fn token_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|&byte| ends_token(byte)).map_or(text.len(), |length| at + length)
}

/// Accumulates decimal digits into `number`, wrapping; returns where they end.
#[inline(always)]
fn digits(text: &[u8], mut at: usize, number: &mut u64) -> usize {
    loop {
        let digit = byte_at(text, at).wrapping_sub(b'0');
        if digit > 9 {
            return at;
        }
        *number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
}

/// An unsigned number of any length at `at` and where it ends; saturates at `u64::MAX`.
#[inline(always)]
pub(crate) fn unsigned(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    let end = digits(text, at, &mut number);
    if end == at || !ends_token(byte_at(text, end)) {
        return None;
    }
    if end - at > 19 {
        // Leading zeros, or beyond 64 bits.
        let exact = std::str::from_utf8(&text[at..end]).ok().and_then(|token| token.parse().ok());
        number = exact.unwrap_or(u64::MAX);
    }
    Some((number, end))
}

/// A decimal number at `at` and where its token ends, if it is of a form that needs no more than
/// one rounding: digits that fit the significand, and a small power of ten (Clinger's fast path).
#[inline(always)]
pub(crate) fn short_decimal<T: Scalar>(text: &[u8], mut at: usize) -> Option<(T, usize)> {
    let first = byte_at(text, at);
    let negative = first == b'-';
    at += usize::from(negative || first == b'+');
    let mut significand = 0;
    let start = at;
    at = digits(text, at, &mut significand);
    let mut count = at - start;
    let mut exponent = 0;
    if byte_at(text, at) == b'.' {
        let fraction = at + 1;
        at = digits(text, fraction, &mut significand);
        count += at - fraction;
        exponent = -((at - fraction) as i64);
    }
    if count == 0 || count > 19 {
        return None;
    }
    if byte_at(text, at) | 0x20 == b'e' {
        at += 1;
        let sign = byte_at(text, at);
        at += usize::from(sign == b'-' || sign == b'+');
        let mut written = 0;
        let end = digits(text, at, &mut written);
        if end == at || end - at > 4 {
            return None;
        }
        at = end;
        exponent += if sign == b'-' { -(written as i64) } else { written as i64 };
    }
    if !ends_token(byte_at(text, at)) {
        return None;
    }
    let (exact, power) = if T::BYTES == 4 { (1 << 24, 10) } else { (1 << 53, 22) };
    if significand > exact || exponent.abs() > power {
        return None;
    }
    // Both factors are exact in `T`, so the product or quotient is rounded once.
    let significand = T::from_f64(significand as f64);
    let ten = T::from_f64(POWERS_OF_TEN[exponent.unsigned_abs() as usize]);
    let magnitude = if exponent < 0 { significand / ten } else { significand * ten };
    Some((if negative { -magnitude } else { magnitude }, at))
}

/// Why a token is not a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFault {
    /// It is not a number of the kind expected.
    Malformed,
    /// A finite number in the text would become infinite.
    OutOfRange,
}

/// Any token that the standard library takes for a number: also `nan`, `inf`, `infinity`, in any
/// case and with a sign.
///
/// `lenient` also takes Fortran's `D` for the exponent's `E`, and lets numbers beyond the range of
/// `T` become infinite.
#[cold]
pub(crate) fn any_decimal<T: Scalar>(token: &[u8], lenient: bool) -> Result<T, NumberFault> {
    let token = std::str::from_utf8(token).map_err(|_| NumberFault::Malformed)?;
    let parsed = match token.parse::<T>() {
        Err(_) if lenient => token.replace(['d', 'D'], "e").parse().ok(),
        other => other.ok(),
    };
    let value = parsed.ok_or(NumberFault::Malformed)?;
    let written_infinite = token.trim_start_matches(['+', '-']).starts_with(['i', 'I', 'n', 'N']);
    if value.is_finite() || written_infinite || lenient {
        Ok(value)
    } else {
        Err(NumberFault::OutOfRange)
    }
}

/// Whether a token is an integer: digits after an optional sign (no minus when `unsigned`).
#[inline]
pub(crate) fn is_integer(token: &[u8], unsigned: bool) -> bool {
    let digits = match token {
        [b'+', digits @ ..] => digits,
        [b'-', digits @ ..] if !unsigned => digits,
        digits => digits,
    };
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

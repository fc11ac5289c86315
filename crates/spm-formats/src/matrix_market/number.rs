//! Parses numbers, eight digits at a time; unusual forms are parsed by the standard library.
//!
//! All results are correctly rounded, in `f32` and in `f64`.

use crate::RealScalar;

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

/// Eight bytes from `at`, the first one lowest; line ends after the end of the text.
#[inline(always)]
fn eight_bytes(text: &[u8], at: usize) -> u64 {
    if let Some(bytes) = text.get(at..at + 8) {
        return u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    u64::from_le_bytes(std::array::from_fn(|offset| byte_at(text, at + offset)))
}

/// Value of eight decimal digits, the first one (the most significant) in the lowest byte: pairs,
/// then fours, then all eight are joined by one multiplication each.
#[inline(always)]
fn join_digits(digits: u64) -> u64 {
    const PAIRS: u64 = 0x00ff_00ff_00ff_00ff;
    const FOURS: u64 = 0x0000_ffff_0000_ffff;
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & PAIRS;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & FOURS;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

const POWERS_OF_TEN: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Appends the few decimal digits at `at` to `number`, wrapping; returns where they end.
///
/// One by one: neighbouring lines have numbers of the same length, so that the processor foresees
/// the end and goes on with what follows before these digits are joined.
#[inline(always)]
fn few_digits(text: &[u8], mut at: usize, number: &mut u64) -> usize {
    loop {
        let digit = byte_at(text, at).wrapping_sub(b'0');
        if digit > 9 {
            return at;
        }
        *number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
}

/// Appends the many decimal digits at `at` to `number`, wrapping; returns where they end.
#[inline(always)]
fn digits(text: &[u8], mut at: usize, number: &mut u64) -> usize {
    loop {
        let bytes = eight_bytes(text, at) ^ 0x3030_3030_3030_3030;
        // The top bit of the first byte above 9; later bytes may be disturbed by its carry.
        let others = (bytes.wrapping_add(0x7676_7676_7676_7676) | bytes) & 0x8080_8080_8080_8080;
        if others == 0 {
            *number = number.wrapping_mul(100_000_000).wrapping_add(join_digits(bytes));
            at += 8;
            continue;
        }
        // No branch on 0 digits here: after 16 digits that would be a coin toss.
        let count = others.trailing_zeros() as usize / 8;
        let value = join_digits(bytes << (56 - 8 * count) << 8);
        *number = number.wrapping_mul(POWERS_OF_TEN[count]).wrapping_add(value);
        return at + count;
    }
}

/// An unsigned number of any length at `at` and where it ends; saturates at `u64::MAX`.
#[inline(always)]
pub(crate) fn unsigned(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    let end = few_digits(text, at, &mut number);
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

/// The largest power of five (and of its reciprocal) in [`POWERS_OF_FIVE`].
const LARGEST_POWER: i32 = 54;

/// The upper 128 bits of 5^q for `q` from -54 to 54, scaled to `[2^127, 2^128)`; exact from 0 on,
/// rounded up from -27 to -1, rounded down below.
static POWERS_OF_FIVE: [u128; 2 * LARGEST_POWER as usize + 1] = powers_of_five();

const fn powers_of_five() -> [u128; 2 * LARGEST_POWER as usize + 1] {
    let mut table = [0; 2 * LARGEST_POWER as usize + 1];
    let mut power: u128 = 1;
    let mut q = 0;
    while q <= LARGEST_POWER {
        table[(LARGEST_POWER + q) as usize] = power << power.leading_zeros();
        if q > 0 {
            // 2^(z + 127) / 5^q by long division, where 2^(z - 1) < 5^q < 2^z.
            let mut remainder = 1u128 << (127 - power.leading_zeros());
            let mut quotient: u128 = 0;
            let mut bit = 0;
            while bit < 128 {
                remainder <<= 1;
                quotient <<= 1;
                if remainder >= power {
                    remainder -= power;
                    quotient |= 1;
                }
                bit += 1;
            }
            table[(LARGEST_POWER - q) as usize] = quotient + (q <= 27) as u128;
        }
        if q < LARGEST_POWER {
            power *= 5;
        }
        q += 1;
    }
    table
}

/// ±`significand` x 10^`power`, correctly rounded, or `None` outside the range of the table and of
/// normal numbers (D. Lemire, "Number parsing at a gigabyte per second", 2021, Algorithm 1).
#[inline(always)]
fn scaled<T: RealScalar>(negative: bool, significand: u64, power: i32) -> Option<T> {
    let single = T::BYTES == 4;
    // Stored bits of the significand, exponent bias, and the powers for which `significand` can
    // lie exactly between two numbers.
    let (bits, bias, ties) = if single { (23, 127, -17..=10) } else { (52, 1023, -4..=23) };
    if significand == 0 {
        return Some(if negative { -T::ZERO } else { T::ZERO });
    }
    if power.abs() > LARGEST_POWER {
        return None;
    }
    let shift = significand.leading_zeros();
    let normalised = significand << shift;
    let five = POWERS_OF_FIVE[(LARGEST_POWER + power) as usize];
    let mut product = u128::from(normalised) * (five >> 64);
    if (product >> 64) as u64 & (u64::MAX >> (bits + 3)) == u64::MAX >> (bits + 3) {
        // The bits below could still carry into those kept.
        product += (u128::from(normalised) * (five & u128::from(u64::MAX))) >> 64;
        if product as u64 == u64::MAX && power < -27 {
            return None;
        }
    }
    let (high, low) = ((product >> 64) as u64, product as u64);
    let top = (high >> 63) as i32;
    let drop = top + 64 - bits - 3;
    let mut kept = high >> drop;
    // floor(power x log2(10)) + 63, for powers up to 350 in magnitude.
    let exponent = ((217_706 * power) >> 16) + 63 + top - shift as i32 + bias;
    if exponent <= 0 {
        return None;
    }
    if low <= 1 && ties.contains(&power) && kept & 3 == 1 && kept << drop == high {
        // Exactly between two numbers, the lower one even.
        kept &= !1;
    }
    kept = (kept + (kept & 1)) >> 1;
    // A carry out of the significand adds 1 to the exponent, which is what it should do.
    let pattern = ((exponent as u64 - 1) << bits) + kept;
    let infinite = (2 * bias as u64 + 1) << bits;
    if pattern >= infinite {
        return None;
    }
    Some(T::from_f64(if single {
        f64::from(f32::from_bits(pattern as u32 | u32::from(negative) << 31))
    } else {
        f64::from_bits(pattern | u64::from(negative) << 63)
    }))
}

/// A decimal number of at most 19 digits and a moderate exponent at `at`, and where its token
/// ends; `None` for everything else, which [`any_decimal`] reads.
#[inline(always)]
pub(crate) fn short_decimal<T: RealScalar>(text: &[u8], mut at: usize) -> Option<(T, usize)> {
    let first = byte_at(text, at);
    let negative = first == b'-';
    at += usize::from(negative || first == b'+');
    let mut significand = 0;
    let start = at;
    at = few_digits(text, at, &mut significand);
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
    let after = byte_at(text, at);
    if !ends_token(after) {
        if after | 0x20 != b'e' {
            return None;
        }
        at += 1;
        let sign = byte_at(text, at);
        at += usize::from(sign == b'-' || sign == b'+');
        let mut written = 0;
        let end = few_digits(text, at, &mut written);
        if end == at || end - at > 4 || !ends_token(byte_at(text, end)) {
            return None;
        }
        at = end;
        exponent += if sign == b'-' { -(written as i64) } else { written as i64 };
    }
    Some((scaled(negative, significand, exponent as i32)?, at))
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
pub(crate) fn any_decimal<T: RealScalar>(token: &[u8], lenient: bool) -> Result<T, NumberFault> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compares with the standard library, bit by bit; returns whether the fast path was taken.
    fn agrees<T: RealScalar>(token: &str) -> bool {
        let text = format!("{token} ");
        let expected: T = token.parse().unwrap_or_else(|_| panic!("{token}"));
        let Some((value, end)) = short_decimal::<T>(text.as_bytes(), 0) else {
            return false;
        };
        assert_eq!(end, token.len(), "{token}");
        assert_eq!(value.to_bits64(), expected.to_bits64(), "{} {token}", T::NAME);
        true
    }

    #[test]
    fn exact_halves_round_to_even() {
        // Neighbours of 2^53 + 1, 2^24 + 1 and of halves with small powers of ten.
        for token in [
            "9007199254740991",
            "9007199254740992",
            "9007199254740993",
            "9007199254740994",
            "9007199254740995",
            "900719925474099.3",
            "90071992547409930",
            "900719925474099.25",
            "16777217",
            "16777219",
            "1677721.7",
            "1677721.9",
            "167772170",
            "0.5",
            "-0.0",
            "0",
            "1e22",
            "1e23",
            "8.5e22",
            "123456789012345678e-18",
            "1e54",
            "1e-54",
            "9e-38",
            "3.4e38",
            "9223372036854775807",
            "9999999999999999999",
            "1.7976931348623157",
            "5e-324",
            "1e-45",
        ] {
            agrees::<f64>(token);
            agrees::<f32>(token);
        }
        assert!(agrees::<f64>("9007199254740993"));
        assert!(agrees::<f32>("16777217"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn decimals_agree_with_the_standard_library(
            significand in prop_oneof![any::<u64>(), 0..1u64 << 54, 0..100_000u64],
            power in -70..70i32,
        ) {
            let token = format!("{significand}e{power}");
            agrees::<f64>(&token);
            agrees::<f32>(&token);
        }

        #[test]
        fn shortest_text_reads_back(bits in any::<u64>()) {
            let (double, single) = (f64::from_bits(bits), f32::from_bits(bits as u32));
            if double.is_finite() {
                agrees::<f64>(&format!("{double:e}"));
            }
            if single.is_finite() {
                agrees::<f32>(&format!("{single:e}"));
            }
        }

        #[test]
        fn fractions_agree_with_the_standard_library(value in -1000.0..1000.0f64, places in 0..17usize) {
            agrees::<f64>(&format!("{value:.places$}"));
            agrees::<f32>(&format!("{value:.places$}"));
        }

        #[test]
        fn halfway_singles_agree(bits in 0x2000_0000..0x5f00_0000u32) {
            let middle = (f64::from(f32::from_bits(bits)) + f64::from(f32::from_bits(bits + 1))) / 2.0;
            agrees::<f32>(&format!("{middle:e}"));
        }
    }
}

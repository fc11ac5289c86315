//! The words of a banner: how the entries are laid out, what a value is, which entries are left out.

use crate::Scalar;

/// How the entries are laid out in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One entry a line: row, column, value.
    Coordinate,
    /// All values of a dense matrix, column by column.
    Array,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// A decimal number; `double` in the banner means the same.
    Real,
    /// An integer, rounded to the nearest value of the element type.
    Integer,
    /// A non-negative integer, rounded to the nearest value of the element type.
    UnsignedInteger,
    /// A pair of decimal numbers, the real and the imaginary part.
    Complex,
    /// No values: every stored entry is 1.
    Pattern,
}

/// Which entries the text leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Symmetry {
    /// None.
    General,
    /// Those above the diagonal: `a(j, i) = a(i, j)`.
    Symmetric,
    /// Those on and above the diagonal: `a(j, i) = -a(i, j)`.
    SkewSymmetric,
    /// Those above the diagonal: `a(j, i)` is the conjugate of `a(i, j)`.
    Hermitian,
}

macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),+) => {
        impl $type {
            /// The word as it stands in a banner.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub(super) fn from_word(word: &[u8]) -> Option<Self> {
                $(if word.eq_ignore_ascii_case($word.as_bytes()) {
                    return Some(Self::$variant);
                })+
                None
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.word())
            }
        }
    };
}

words!(Format: Coordinate = "coordinate", Array = "array");
words!(Field: Real = "real", Integer = "integer", UnsignedInteger = "unsigned-integer",
    Complex = "complex", Pattern = "pattern");
words!(Symmetry: General = "general", Symmetric = "symmetric",
    SkewSymmetric = "skew-symmetric", Hermitian = "hermitian");

impl Symmetry {
    /// The value at (`col`, `row`) that the symmetry implies for an entry, if it implies one.
    pub(super) fn implied<T: Scalar>(self, row: u32, col: u32, value: T) -> Option<T> {
        (self != Self::General && row != col).then(|| self.mirrored(value))
    }

    /// The value at (j, i) that the symmetry implies for `value` at (i, j).
    #[inline(always)]
    pub(super) fn mirrored<T: Scalar>(self, value: T) -> T {
        match self {
            Self::General | Self::Symmetric => value,
            Self::SkewSymmetric => -value,
            Self::Hermitian => value.conj(),
        }
    }
}

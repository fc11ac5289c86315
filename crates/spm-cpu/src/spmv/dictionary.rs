//! Values by number: a table of the distinct values of a matrix, so that an entry takes one byte.

use spm_formats::{Scalar, parallel, partition};

use crate::Threads;
use crate::simd::FEW;

/// Maximum number of distinct values, 0 included, so that a code takes 8 bits.
pub(super) const MOST: usize = 1 << u8::BITS;
/// Entries for each value of the table from which on it is small beside their codes.
const LEAST_USES: usize = 16;
/// Slots of the hash table, a power of 2: so many that hardly a value is not in its own, which processors predict, and
/// that they stay in the first-level cache.
const SLOTS: usize = 16 * MOST;
/// Entries that one task reads, or that are looked up before their number is compared with what is allowed.
pub(super) const CHUNK: usize = 1 << 12;
/// Entries that are read before there are tasks: a few hundred general values decide.
const HEAD: usize = 1 << 10;

/// The distinct values of a matrix, bit by bit. The code of a value is its position.
#[derive(Debug, Clone)]
pub(super) struct Dictionary<T> {
    /// 0 first, which is the value of padding; [`FEW`] at least, the last ones unused.
    values: Vec<T>,
    distinct: usize,
    /// Open addressing: a code plus 1 at the hash of its value, or in the next slot that was free; 0
    /// where free.
    slots: Box<[u16; SLOTS]>,
}

impl<T: Scalar> Dictionary<T> {
    /// Of 0 alone, whose code is 0.
    pub(super) fn new() -> Self {
        let mut new = Self { values: vec![T::ZERO; FEW], distinct: 0, slots: Box::new([0; SLOTS]) };
        new.insert(T::ZERO);
        new
    }

    /// The dictionary of these values; nothing where they have more distinct ones than `most`. With
    /// general values a few hundred are read, otherwise each once.
    pub(super) fn of(values: &[T], most: usize) -> Option<Self> {
        let parts = rayon::current_num_threads();
        Self::of_parts(values, most, parts, |part| parallel::map(parts, 1, part))
    }

    /// [`Dictionary::of`] on the threads of a plan.
    pub(super) fn on(threads: &Threads, values: &[T], most: usize) -> Option<Self> {
        let parts = threads.count();
        Self::of_parts(values, most, parts, |part| threads.map(parts, part))
    }

    /// Of values in so many parts, what is in each of which `map` collects.
    fn of_parts(
        values: &[T],
        most: usize,
        parts: usize,
        map: impl FnOnce(&(dyn Fn(usize) -> Option<Self> + Sync)) -> Vec<Option<Self>>,
    ) -> Option<Self> {
        let (head, rest) = values.split_at(values.len().min(HEAD));
        let head = Self::new().with_at_most(most, head)?;
        let found = map(&|part| {
            let mut values = rest[partition::even(rest.len(), parts, part)].chunks(CHUNK);
            values.try_fold(head.clone(), |all, values| all.with_at_most(most, values))
        });
        let all = found
            .into_iter()
            .try_fold(Self::new(), |all, part| all.with_at_most(most, part?.distinct()))?;
        all.pays(values.len()).then_some(all)
    }

    /// [`Dictionary::with`]; nothing where there are more than `most` distinct values then.
    fn with_at_most(self, most: usize, values: &[T]) -> Option<Self> {
        self.with(values).filter(|all| all.distinct <= most)
    }

    /// Whether the table is small beside the codes of so many entries.
    pub(super) fn pays(&self, entries: usize) -> bool {
        entries >= LEAST_USES * self.values.len()
    }

    /// With these values in the order in which they occur; nothing where that are too many.
    pub(super) fn with(mut self, values: &[T]) -> Option<Self> {
        let mut rest = values.iter();
        while let Some(&new) = rest.find(|&&value| self.find(value).is_err()) {
            if !self.insert(new) {
                return None;
            }
        }
        Some(self)
    }

    /// Whether there was room.
    fn insert(&mut self, value: T) -> bool {
        if let Err(free) = self.find(value) {
            if self.distinct == MOST {
                return false;
            }
            if self.distinct < self.values.len() {
                self.values[self.distinct] = value;
            } else {
                self.values.push(value);
            }
            self.distinct += 1;
            self.slots[free] = self.distinct as u16;
        }
        true
    }

    /// The code of a value, or the slot that is free for it.
    fn find(&self, value: T) -> Result<u8, usize> {
        let bits = value.to_bits128();
        // Fibonacci hashing.
        let mixed = (bits as u64 ^ (bits >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = mixed >> (u64::BITS - SLOTS.ilog2());
        let mut slot = hash as usize;
        loop {
            let code = match self.slots[slot] {
                0 => return Err(slot),
                filled => filled - 1,
            };
            if self.values[usize::from(code)].to_bits128() == bits {
                return Ok(code as u8);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The code of a value of the matrix.
    pub(super) fn code(&self, value: T) -> u8 {
        self.find(value).expect("a value of the matrix")
    }

    /// The distinct values.
    fn distinct(&self) -> &[T] {
        &self.values[..self.distinct]
    }

    /// Bytes besides the table.
    pub(super) fn rest_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

impl<T> Dictionary<T> {
    /// What codes are looked up in: [`FEW`] values at least.
    pub(super) fn table(&self) -> &[T] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_distinct_bit_by_bit() {
        let nan = f64::from_bits(f64::NAN.to_bits() | 1);
        let distinct = [0.0, -0.0, 1.0, f64::NAN, nan, f64::INFINITY, f64::MIN_POSITIVE];
        let values: Vec<f64> = distinct[1..].iter().copied().cycle().take(512).collect();
        let dictionary = Dictionary::of(&values, MOST).unwrap();
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(dictionary.distinct()), bits(&distinct));
        assert_eq!((dictionary.table().len(), dictionary.code(0.0)), (FEW, 0));
        for (code, &value) in distinct.iter().enumerate() {
            assert_eq!(usize::from(dictionary.code(value)), code);
        }
        // Less than sixteen entries for each value of the table.
        assert!(Dictionary::of(&values[..511], MOST).is_none());
        assert!(Dictionary::of(&values, 7).is_some() && Dictionary::of(&values, 6).is_none());
    }

    /// 255 values and 0, wherever the last one is; one more is too many.
    #[test]
    fn a_table_of_256_values_is_full() {
        let most = MOST - 1;
        for count in [most, most + 1] {
            for last in [count, HEAD + 7, 5000, CHUNK + HEAD, 5 * CHUNK] {
                let mut values: Vec<f32> =
                    (0..6 * CHUNK).map(|i| 1.0 + (i % (count - 1)) as f32).collect();
                values[last] = -1.0;
                let found = Dictionary::of(&values, MOST);
                let on_threads = Dictionary::on(&Threads::new(3), &values, MOST);
                assert_eq!(
                    on_threads.map(|all| all.distinct),
                    found.as_ref().map(|all| all.distinct)
                );
                assert_eq!(found.is_some(), count == most, "{count} values, the last at {last}");
                assert_eq!(Dictionary::new().with(&values).is_some(), count == most);
                let Some(found) = found else { continue };
                assert!(values.iter().all(|&v| found.table()[usize::from(found.code(v))] == v));
            }
        }
    }
}

//! Cold caches: what a product costs when nothing of it was used a moment ago.

use std::hint::black_box;

use rayon::prelude::*;

/// A buffer that is larger than the caches; walking it evicts everything else.
#[derive(Debug)]
pub struct Eviction {
    buffer: Vec<u64>,
}

impl Eviction {
    /// A buffer of `bytes` bytes; twice the last-level cache is enough.
    pub fn new(bytes: usize) -> Self {
        Self { buffer: vec![1; bytes / size_of::<u64>()] }
    }

    /// Writes the whole buffer, a part on each core: what a core's own cache holds goes, too.
    pub fn evict(&mut self) {
        let part = self.buffer.len().div_ceil(rayon::current_num_threads()).max(1);
        self.buffer.par_chunks_mut(part).for_each(|part| {
            for word in part {
                *word = word.wrapping_add(1);
            }
        });
        black_box(&self.buffer);
    }
}

/// What to do before a sample.
pub fn evicting(eviction: Option<&mut Eviction>) -> Option<impl FnMut()> {
    eviction.map(|eviction| || eviction.evict())
}

/// What the system says of a cache of the first core, such as its `level`, `type` or `size`.
pub(super) fn described(index: usize, file: &str) -> Option<String> {
    let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}");
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).ok()
}

/// Bytes of the largest cache that the system names, or 64 MiB.
pub fn last_level_bytes() -> usize {
    let sizes = (0..8).filter_map(|index| bytes(&described(index, "size")?));
    sizes.max().unwrap_or(64 << 20)
}

/// Reads a size as the system prints it, such as `48K`.
fn bytes(text: &str) -> Option<usize> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let scale = match unit {
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("48K"), Some(48 << 10));
        assert_eq!(bytes("32M"), Some(32 << 20));
        assert!(["", "48", "K", "48T"].iter().all(|text| bytes(text).is_none()));
        assert!(last_level_bytes() >= 1 << 10);
    }
}

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

/// Bytes of the largest cache that the system names, or 64 MiB.
pub fn last_level_bytes() -> usize {
    let size = |index: usize| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        let text = text.trim();
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
        let scale = match unit {
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return None,
        };
        digits.parse::<usize>().ok().map(|n| n * scale)
    };
    (0..8).filter_map(size).max().unwrap_or(64 << 20)
}

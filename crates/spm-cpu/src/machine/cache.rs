//! The sizes of the processor's caches, as it says itself.

use std::sync::OnceLock;

/// Bytes of the largest cache, shared or not; `usize::MAX` where the processor does not say.
pub(crate) fn last_level_cache() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| largest().unwrap_or(usize::MAX))
}

// Newer compilers take the calls for safe, those of the minimum version do not.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unused_unsafe)]
fn largest() -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    /// The leaves that list caches: of Intel's processors, and of AMD's.
    const LEAVES: [u32; 2] = [0x4, 0x8000_001d];

    let caches = |leaf: u32| {
        // SAFETY: every processor of this architecture has the instruction.
        let last = unsafe { __cpuid(leaf & 0x8000_0000) }.eax;
        // A list ends with type 0; no processor has more than a few caches.
        // SAFETY: as above.
        let of = (0..16).map(move |cache| unsafe { __cpuid_count(leaf, cache) });
        let of = of.take_while(|cache| cache.eax & 0x1f != 0);
        let bits = |register: u32, from: u32, to: u32| {
            (register >> from & ((1 << (to - from)) - 1)) as usize
        };
        let bytes = move |cache: std::arch::x86_64::CpuidResult| {
            let (ways, partitions) = (bits(cache.ebx, 22, 32) + 1, bits(cache.ebx, 12, 22) + 1);
            ways * partitions * (bits(cache.ebx, 0, 12) + 1) * (cache.ecx as usize + 1)
        };
        (last >= leaf).then(|| of.map(bytes).max()).flatten()
    };
    LEAVES.into_iter().filter_map(caches).max()
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn largest() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_has_a_sensible_size() {
        let bytes = last_level_cache();
        assert!(bytes == usize::MAX || (1 << 15..=1 << 34).contains(&bytes), "{bytes}");
    }
}

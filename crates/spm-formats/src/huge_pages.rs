//! Large arrays on huge pages, which have fewer page faults when they are filled, and fewer TLB
//! misses when they are filled out of order.

/// Bytes of a huge page of x86-64 and of most other processors.
pub const HUGE_PAGE: usize = 2 << 20;

/// Asks the system for huge pages for `memory`, as numpy does for its arrays. Random accesses to
/// hundreds of megabytes then spend less time on address translation, and the first touch is
/// faster.
///
/// The call affects pages that have not been touched, on Linux with transparent huge pages at
/// `madvise`. Elsewhere it does nothing.
pub fn prefer<T>(memory: &mut [T]) {
    let start = memory.as_mut_ptr().cast::<u8>();
    let skip = start.align_offset(HUGE_PAGE);
    let bytes = size_of_val(memory).saturating_sub(skip) / HUGE_PAGE * HUGE_PAGE;
    if bytes > 0 {
        // SAFETY: whole pages inside the slice. The advice does not change their contents; refusing
        // it is no error.
        #[cfg(all(target_os = "linux", not(miri)))]
        unsafe {
            libc::madvise(start.add(skip).cast(), bytes, libc::MADV_HUGEPAGE);
        }
    }
}

/// Bytes of an array below which huge pages do not help a conversion.
const WORTHWHILE: usize = 8 << 20;

/// `len` zeros, on huge pages if the system has them.
pub(crate) fn zeroed<E: Copy>(zero: E, len: usize) -> Vec<E> {
    let mut zeros = vec![zero; len];
    if len * size_of::<E>() >= WORTHWHILE {
        prefer(&mut zeros);
    }
    zeros
}

/// Asks for huge pages for what `array` has reserved and not filled.
#[cfg(any(feature = "io", test))]
pub(crate) fn advise<E>(array: &mut Vec<E>) {
    let free = array.spare_capacity_mut();
    if size_of_val(free) >= WORTHWHILE {
        prefer(free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_memory_may_be_advised() {
        for len in [0, 1, 5 << 20] {
            let mut memory = vec![1_u8; len];
            prefer(&mut memory);
            assert!(memory.iter().all(|&byte| byte == 1));
        }
    }

    #[test]
    fn advice_changes_no_value() {
        for len in [0, 1, (8 << 20) / 8 - 1, 3 << 20] {
            let mut array = zeroed(0_u64, len);
            assert_eq!(array.len(), len);
            assert!(array.iter().all(|&value| value == 0));
            array.reserve_exact(2 << 20);
            array.push(7);
            advise(&mut array);
            assert_eq!(array.last(), Some(&7));
        }
    }
}

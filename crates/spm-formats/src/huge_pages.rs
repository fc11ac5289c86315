//! Large arrays on huge pages, which have fewer page faults when they are filled, and fewer TLB
//! misses when they are filled out of order.

/// `len` zeros, on huge pages if the system has them.
pub(crate) fn zeroed<E: Copy>(zero: E, len: usize) -> Vec<E> {
    let zeros = vec![zero; len];
    advise(&zeros);
    zeros
}

/// Asks for huge pages for the memory that `array` has reserved; affects pages not touched yet.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn advise<E>(array: &Vec<E>) {
    const PAGE: usize = 4096;
    /// Bytes below which huge pages do not help.
    const WORTHWHILE: usize = 8 << 20;

    let bytes = array.capacity() * size_of::<E>();
    if bytes < WORTHWHILE {
        return;
    }
    let start = array.as_ptr().cast::<u8>();
    let skip = start.addr().next_multiple_of(PAGE) - start.addr();
    let length = (bytes - skip) / PAGE * PAGE;
    // SAFETY: skip < PAGE <= bytes, so the range lies inside the allocation of `array`; the advice
    // changes which pages the system backs it with, not what they hold. A refusal is no harm either.
    unsafe { libc::madvise(start.add(skip).cast_mut().cast(), length, libc::MADV_HUGEPAGE) };
}

/// Does nothing: only Linux has this call, and Miri does not support it.
#[cfg(any(not(target_os = "linux"), miri))]
pub(crate) fn advise<E>(_array: &Vec<E>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_changes_no_value() {
        for len in [0, 1, (8 << 20) / 8 - 1, 3 << 20] {
            let mut array = zeroed(0_u64, len);
            assert_eq!(array.len(), len);
            assert!(array.iter().all(|&value| value == 0));
            array.reserve_exact(2 << 20);
            array.push(7);
            advise(&array);
            assert_eq!(array.last(), Some(&7));
        }
    }
}

//! New values for a pattern: how plans copy them, on their own threads.

use spm_formats::kernel::PlanError;
use spm_formats::{Bsr, CsrSource, NewValues, Scalar, partition};

use crate::Threads;
use crate::disjoint::Disjoint;

mod lanes;
mod stores;

pub(crate) use lanes::Lanes;
pub(crate) use stores::Stores;

/// Copies an array as long as the other, each part by one thread.
pub(crate) fn copy<T: Scalar>(threads: &Threads, from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "arrays of one length");
    let stores = Stores::for_bytes(2 * size_of_val(from), threads);
    let to = Disjoint::new(to);
    stores.run(threads, |part| {
        let range = partition::even(from.len(), threads.count(), part);
        // SAFETY: the parts do not overlap.
        stores.copy(&from[range.clone()], unsafe { to.range(range) });
    });
}

/// Gives a matrix that is multiplied straight from CSR new values, on the threads of its plan.
pub(crate) fn set<T: Scalar>(
    a: &mut CsrSource<'_, T>,
    new: NewValues<'_, T>,
    threads: Option<&Threads>,
) -> Result<(), PlanError> {
    a.set_values(new, |view, own| match (own, threads) {
        (Some(own), Some(threads)) => copy(threads, view.values(), own),
        (Some(own), None) => own.copy_from_slice(view.values()),
        (None, _) => {}
    })
}

/// Pieces of the block rows of a thread, so that the values of one stay in a cache.
const PIECES: usize = 16;

/// Gives a matrix and its dense blocks new values, on the threads of their plan; the block rows of thread t are
/// `bounds[t]..bounds[t + 1]`.
pub(crate) fn set_blocks<T: Scalar>(
    a: &mut CsrSource<'_, T>,
    bsr: &mut Bsr<T>,
    new: NewValues<'_, T>,
    (threads, shares): (&Threads, &[usize]),
    bounds: &[usize],
) -> Result<(), PlanError> {
    let of_thread = |ends: &[usize]| {
        let (first, count) = (ends[0], ends[1] - ends[0]);
        (0..PIECES).map(move |piece| first + partition::even(count, PIECES, piece).start)
    };
    let stores = Stores::for_new(&new, size_of_val(bsr.values()), threads);
    a.set_values(new, |a, own| {
        let bounds: Vec<usize> = shares.iter().map(|&share| bounds[share]).collect();
        let mut ends: Vec<usize> = bounds.windows(2).flat_map(of_thread).collect();
        ends.extend(bounds.last());
        let mut pieces = bsr.parts_mut(&ends);
        let (pieces, own) = (Disjoint::new(&mut pieces), own.map(Disjoint::new));
        stores.run(threads, |part| {
            // SAFETY: each part has its own pieces.
            for piece in unsafe { pieces.range(part * PIECES..(part + 1) * PIECES) } {
                piece.set_values(a.values());
                if let Some(own) = own {
                    // SAFETY: the rows of pieces do not overlap.
                    unsafe { stores.copy_rows(&a, piece.rows(), own) };
                }
            }
        });
    })
}

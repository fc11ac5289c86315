//! Products allocate nothing, after the first one.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{distribute, matrices};
use spm_dist::threads::run;
use spm_dist::{Communicator, DistOperator, Options};

struct Counting;

thread_local! {
    /// Allocations of this thread.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator, which counts besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, block: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, block) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn products_allocate_nothing() {
    for (name, a) in matrices() {
        for columns in [1, 3] {
            run(3, |comm| {
                let mut options = Options::default();
                (options.columns, options.transpose) = (columns, columns == 1);
                let a = distribute(comm, &a)?;
                let (rows, cols) = (a.local_rows() * columns, a.local_cols() * columns);
                let mut op = DistOperator::new(comm, a, &options)?;
                let (x, b, mut y) = (vec![1.0; cols], vec![1.0; rows], vec![0.0; rows]);
                let mut t = vec![0.0; cols];
                let mut round = || {
                    op.apply(&x, &mut y)?;
                    op.residual(&x, &b, &mut y)?;
                    op.apply_scaled(2.0, &x, -1.0, &mut y)?;
                    if columns == 1 { op.apply_transpose(&b, &mut t) } else { Ok(()) }
                };
                round()?;
                let before = ALLOCATIONS.get();
                (0..3).try_for_each(|_| round())?;
                assert_eq!(ALLOCATIONS.get(), before, "{name} {columns} rank {}", comm.rank());
                Ok(())
            })
            .unwrap();
        }
    }
}

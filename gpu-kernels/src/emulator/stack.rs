//! The stacks of the emulated threads.

use std::io;

use corosensei::stack::{DefaultStack, Stack, StackPointer};

/// Kernels keep their data in registers; a panic needs the space.
const BYTES: usize = 64 * 1024;
/// Stacks begin at pages, so that the frames of all threads would be in the same few sets of the cache.
/// Each begins this many bytes below the one before, which goes through all sets.
const SHIFT: usize = 5 * 64;
const PAGE: usize = 4096;

/// A stack that begins some bytes below its end.
pub(super) struct ShiftedStack {
    whole: DefaultStack,
    offset: usize,
}

impl ShiftedStack {
    pub(super) fn new(index: usize) -> io::Result<Self> {
        Ok(Self { whole: DefaultStack::new(BYTES)?, offset: index * SHIFT % PAGE })
    }
}

// SAFETY: the upper part of the stack is left out; the offset is less than a page, of which the stack has
// several, and a multiple of the alignment of a stack.
unsafe impl Stack for ShiftedStack {
    fn base(&self) -> StackPointer {
        let base = self.whole.base().get() - self.offset;
        StackPointer::new(base).expect("a stack is not at the lowest addresses")
    }

    fn limit(&self) -> StackPointer {
        self.whole.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        self.whole.teb_fields()
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.whole.update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}

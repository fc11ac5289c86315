//! Text in blocks of whole lines, from memory, from a mapped file or from a stream.

use std::io::{self, Read};

/// A text that is read from front to back.
pub(crate) trait Blocks {
    /// The next whole lines, about `bytes` bytes or a line where that is longer, or everything
    /// that is left; and whether the text ends with them.
    fn fill(&mut self, bytes: usize) -> io::Result<(&[u8], bool)>;

    /// Passes the first `bytes` bytes of the block last returned.
    fn consume(&mut self, bytes: usize);

    /// Bytes of the text that are left, where that is known.
    fn bytes_left(&self) -> Option<usize>;
}

/// Text in memory.
pub(crate) struct Slice<'a>(pub(crate) &'a [u8]);

impl Blocks for Slice<'_> {
    fn fill(&mut self, bytes: usize) -> io::Result<(&[u8], bool)> {
        let end = self.0.get(bytes.max(1) - 1..).and_then(|tail| memchr::memchr(b'\n', tail));
        let end = end.map_or(self.0.len(), |offset| bytes.max(1) + offset);
        Ok((&self.0[..end], end == self.0.len()))
    }

    fn consume(&mut self, bytes: usize) {
        self.0 = &self.0[bytes..];
    }

    fn bytes_left(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// A memory-mapped file whose pages are given back once they are read.
pub(crate) struct Mapped<'a> {
    map: &'a memmap2::Mmap,
    consumed: usize,
    released: usize,
}

impl<'a> Mapped<'a> {
    pub(crate) fn new(map: &'a memmap2::Mmap) -> Self {
        Self { map, consumed: 0, released: 0 }
    }
}

impl Blocks for Mapped<'_> {
    fn fill(&mut self, bytes: usize) -> io::Result<(&[u8], bool)> {
        let mut rest = Slice(&self.map[self.consumed..]);
        let (length, last) = rest.fill(bytes).map(|(block, last)| (block.len(), last))?;
        // One call instead of a page fault every few pages; where the system does not know it, the
        // faults do.
        #[cfg(target_os = "linux")]
        drop(self.map.advise_range(memmap2::Advice::PopulateRead, self.consumed, length));
        Ok((&self.map[self.consumed..self.consumed + length], last))
    }

    fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
        #[cfg(unix)]
        {
            // Whole pages of any size in use (a multiple of 64 KiB is one of every page size up
            // to that), so that a text larger than memory does not crowd it out.
            let until = self.consumed & !0xffff;
            if until > self.released {
                let (from, length) = (self.released, until - self.released);
                // SAFETY: the map is a read-only view of a file: pages dropped from it come back
                // from the file when touched again.
                let advised = unsafe {
                    self.map.unchecked_advise_range(
                        memmap2::UncheckedAdvice::DontNeed,
                        from,
                        length,
                    )
                };
                // Advice only: the text reads the same when it is not taken.
                drop(advised);
                self.released = until;
            }
        }
    }

    fn bytes_left(&self) -> Option<usize> {
        Some(self.map.len() - self.consumed)
    }
}

/// Text that comes out of a decompressor: only one block of it is in memory.
pub(crate) struct Stream<R> {
    source: R,
    buffer: Vec<u8>,
    consumed: usize,
    ended: bool,
}

impl<R: Read> Stream<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), consumed: 0, ended: false }
    }
}

impl<R: Read> Blocks for Stream<R> {
    fn fill(&mut self, bytes: usize) -> io::Result<(&[u8], bool)> {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        let mut wanted = bytes.max(1);
        loop {
            while self.buffer.len() < wanted && !self.ended {
                let missing = (wanted - self.buffer.len()) as u64;
                self.ended = self.source.by_ref().take(missing).read_to_end(&mut self.buffer)? == 0;
            }
            if self.ended {
                return Ok((&self.buffer, true));
            }
            if let Some(end) = memchr::memrchr(b'\n', &self.buffer) {
                // Lines longer than the rest of the block are the next block's business.
                return Ok((&self.buffer[..=end], false));
            }
            wanted = 2 * self.buffer.len();
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    fn bytes_left(&self) -> Option<usize> {
        None
    }
}

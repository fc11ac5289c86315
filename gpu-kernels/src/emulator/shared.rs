//! Shared memory of one block, with a record of written bytes and of the latest access to each
//! word.

use super::Defect;
use super::heap::Bytes;
use super::warp::LANES;

/// Bytes of a unit of race detection: the smallest element.
const WORD: u32 = 2;

/// An access: the thread, and the counts of block and warp barriers before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) thread: u32,
    pub(super) block_epoch: u32,
    pub(super) warp_epoch: u32,
}

impl Moment {
    fn is_of_warp_of(self, other: Moment) -> bool {
        self.thread / LANES == other.thread / LANES
    }

    /// Whether nothing orders an earlier access before this one.
    fn races_with(self, earlier: Moment) -> bool {
        self.thread != earlier.thread
            && self.block_epoch == earlier.block_epoch
            && !(self.is_of_warp_of(earlier) && self.warp_epoch != earlier.warp_epoch)
    }
}

#[derive(Clone, Copy, Default)]
struct Word {
    last_write: Option<Moment>,
    write_was_atomic: bool,
    last_read: Option<Moment>,
    /// The latest read by another lane of the same warp as the last reader.
    lane_read: Option<Moment>,
    /// The latest read by another warp. A later write races with one of these three reads, or with
    /// none.
    warp_read: Option<Moment>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Load,
    Store,
    Atomic,
}

impl Use {
    fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Atomic => "atomic operation",
        }
    }
}

/// A race: the access of the other thread, and that thread.
pub(super) struct Race {
    pub(super) earlier: &'static str,
    pub(super) other: u32,
    pub(super) offset: u32,
}

pub(super) enum SharedError {
    Defect(Defect),
    Race(&'static str, Race),
}

impl From<Defect> for SharedError {
    fn from(defect: Defect) -> Self {
        Self::Defect(defect)
    }
}

pub(super) struct SharedMemory {
    bytes: Vec<u8>,
    written: Vec<bool>,
    words: Vec<Word>,
    /// Bytes that have been accessed since the reset: those before this offset.
    used: usize,
    detect_races: bool,
}

impl SharedMemory {
    pub(super) fn new(bytes: u32, detect_races: bool) -> Self {
        let bytes = bytes as usize;
        Self {
            bytes: vec![0; bytes],
            written: vec![false; bytes],
            words: vec![
                Word::default();
                if detect_races { bytes.div_ceil(WORD as usize) } else { 0 }
            ],
            used: 0,
            detect_races,
        }
    }

    /// Resets to the state at the start of a block.
    pub(super) fn reset(&mut self) {
        self.written[..self.used].fill(false);
        if self.detect_races {
            self.words[..self.used.div_ceil(WORD as usize)].fill(Word::default());
        }
        self.used = 0;
    }

    fn check(
        &mut self,
        using: Use,
        offset: u32,
        size: u32,
        alignment: u32,
        now: Moment,
    ) -> Result<(), SharedError> {
        let access = using.name();
        if !offset.is_multiple_of(alignment) {
            let address = u64::from(offset);
            return Err(Defect::Misaligned { access, address, alignment }.into());
        }
        let available = self.bytes.len() as u32;
        if u64::from(offset) + u64::from(size) > u64::from(available) {
            return Err(Defect::SharedOutOfBounds { access, offset, bytes: size, available }.into());
        }
        let range = offset as usize..(offset + size) as usize;
        self.used = self.used.max(range.end);
        if using != Use::Store && !self.written[range].iter().all(|&w| w) {
            let address = u64::from(offset);
            return Err(Defect::Uninitialized { access, address, bytes: size }.into());
        }
        if self.detect_races {
            for word in offset / WORD..(offset + size).div_ceil(WORD) {
                self.words[word as usize].note(using, now).map_err(|(earlier, other)| {
                    SharedError::Race(access, Race { earlier, other, offset: word * WORD })
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn load<const N: usize>(
        &mut self,
        using: Use,
        offset: u32,
        alignment: u32,
        now: Moment,
    ) -> Result<Bytes<N>, SharedError> {
        self.check(using, offset, N as u32, alignment, now)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes[offset as usize..offset as usize + N]);
        Ok(Bytes(bytes))
    }

    pub(super) fn store<const N: usize>(
        &mut self,
        using: Use,
        offset: u32,
        alignment: u32,
        value: Bytes<N>,
        now: Moment,
    ) -> Result<(), SharedError> {
        self.check(using, offset, N as u32, alignment, now)?;
        let range = offset as usize..offset as usize + N;
        self.bytes[range.clone()].copy_from_slice(&value.0);
        self.written[range].fill(true);
        Ok(())
    }
}

impl Word {
    fn note(&mut self, using: Use, now: Moment) -> Result<(), (&'static str, u32)> {
        let both_atomic = using == Use::Atomic && self.write_was_atomic;
        if let Some(write) = self.last_write
            && !both_atomic
            && now.races_with(write)
        {
            let earlier = if self.write_was_atomic { Use::Atomic } else { Use::Store };
            return Err((earlier.name(), write.thread));
        }
        if using == Use::Load {
            if let Some(read) = self.last_read {
                if !now.is_of_warp_of(read) {
                    (self.lane_read, self.warp_read) = (None, Some(read));
                } else if read.thread != now.thread {
                    self.lane_read = Some(read);
                }
            }
            self.last_read = Some(now);
            return Ok(());
        }
        for read in [self.last_read, self.lane_read, self.warp_read].into_iter().flatten() {
            if now.races_with(read) {
                return Err((Use::Load.name(), read.thread));
            }
        }
        self.last_write = Some(now);
        self.write_was_atomic = using == Use::Atomic;
        Ok(())
    }
}

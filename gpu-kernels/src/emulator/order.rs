//! Race detection between streams by vector clocks (Lamport, "Time, clocks, and the ordering of
//! events in a distributed system", CACM 21(7), 1978).
//!
//! The clock of an operation covers the operations that are done before it starts in any schedule:
//! the earlier ones of its stream, those before an event that the stream waited for, and those that
//! the host waited for before it enqueued the operation. Two operations on a buffer, at least one
//! of them a write, must be ordered.

use std::collections::BTreeMap;

use super::Defect;

/// A vector clock: all operations of earlier epochs are done, and of each stream the first `done`.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock {
    epoch: u64,
    done: BTreeMap<u64, u64>,
}

impl Clock {
    /// Adds the operations that `other` covers.
    pub(super) fn join(&mut self, other: &Self) {
        if other.epoch > self.epoch {
            self.clone_from(other);
        } else if other.epoch == self.epoch {
            for (&stream, &count) in &other.done {
                let known = self.done.entry(stream).or_default();
                *known = count.max(*known);
            }
        }
    }

    /// Marks all operations so far as done and begins a new epoch.
    pub(super) fn everything(&mut self) {
        self.epoch += 1;
        self.done.clear();
    }

    /// The next operation of a stream, which is done before the later ones of that stream.
    pub(super) fn step(&mut self, stream: u64, name: &'static str) -> Operation {
        let count = self.done.entry(stream).or_default();
        *count += 1;
        let entry = Entry { name, epoch: self.epoch, stream, number: *count };
        Operation { entry, clock: Some(self.clone()) }
    }

    fn knows(&self, earlier: &Entry) -> bool {
        earlier.epoch < self.epoch
            || self.done.get(&earlier.stream).is_some_and(|&done| earlier.number <= done)
    }
}

/// An operation that accesses memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Operation {
    entry: Entry,
    /// The operations done before it; `None` if they are not traced.
    clock: Option<Clock>,
}

impl Operation {
    /// The same without race reports.
    pub(super) fn untraced(self) -> Self {
        Self { clock: None, ..self }
    }
}

/// The first of `earlier` that may still run, as an error.
fn unordered<'a>(clock: &Clock, mut earlier: impl Iterator<Item = &'a Entry>) -> Result<(), Entry> {
    earlier.find(|entry| !clock.knows(entry)).map_or(Ok(()), |&entry| Err(entry))
}

/// The identity of an operation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    name: &'static str,
    epoch: u64,
    stream: u64,
    number: u64,
}

impl Entry {
    #[inline(always)]
    fn is(&self, other: &Self) -> bool {
        self.number == other.number && self.stream == other.stream && self.epoch == other.epoch
    }

    pub(super) fn defect(&self, access: &'static str, address: u64) -> Defect {
        Defect::StreamRace { access, address, earlier: self.name }
    }
}

/// The latest operations on a buffer.
#[derive(Debug, Default)]
pub(super) struct Trace {
    writer: Option<Entry>,
    /// Since that.
    readers: Vec<Entry>,
}

impl Trace {
    /// Notes a read; an error where nothing orders it after an earlier write.
    #[inline(always)]
    pub(super) fn read(&mut self, operation: &Operation) -> Result<(), Entry> {
        let is_last = |entry: Option<&Entry>| entry.is_some_and(|e| e.is(&operation.entry));
        if is_last(self.writer.as_ref()) || is_last(self.readers.last()) {
            return Ok(());
        }
        self.note_read(operation)
    }

    fn note_read(&mut self, operation: &Operation) -> Result<(), Entry> {
        let Some(clock) = &operation.clock else { return Ok(()) };
        // Who knows this read knows what it knows.
        self.readers.retain(|reader| !clock.knows(reader));
        self.readers.push(operation.entry);
        unordered(clock, self.writer.iter())
    }

    /// Notes a write; an error where nothing orders it after an earlier use.
    #[inline(always)]
    pub(super) fn write(&mut self, operation: &Operation) -> Result<(), Entry> {
        if self.readers.is_empty() && self.writer.is_some_and(|e| e.is(&operation.entry)) {
            return Ok(());
        }
        self.note_write(operation)
    }

    fn note_write(&mut self, operation: &Operation) -> Result<(), Entry> {
        let Some(clock) = &operation.clock else { return Ok(()) };
        let ordered = unordered(clock, self.readers.iter().chain(&self.writer));
        self.readers.clear();
        self.writer = Some(operation.entry);
        ordered
    }
}

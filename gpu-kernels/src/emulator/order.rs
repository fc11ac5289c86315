//! Which operations of different streams come one after the other, whatever the schedule.
//!
//! Each operation knows those that are done before it starts: the earlier ones of its stream, those
//! before an event that the stream waited for, and those that the host waited for before it put the
//! operation into the stream (Lamport, "Time, clocks, and the ordering of events in a distributed
//! system", CACM 21(7), 1978; vector clocks). Two operations that use a buffer, one of them writing,
//! must not be unordered.

use std::collections::BTreeMap;

use super::Defect;

/// Operations that are done: all of earlier epochs, and of each stream the first so many.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock {
    epoch: u64,
    done: BTreeMap<u64, u64>,
}

impl Clock {
    /// Adds what `other` knows.
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

    /// All operations so far are done: a new epoch begins.
    pub(super) fn everything(&mut self) {
        self.epoch += 1;
        self.done.clear();
    }

    /// The next operation of a stream, done before what comes after it there.
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

/// An operation that uses memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Operation {
    entry: Entry,
    /// What is done before it; unknown where nobody asks.
    clock: Option<Clock>,
}

impl Operation {
    /// The same without a report of those that nothing orders.
    pub(super) fn untraced(self) -> Self {
        Self { clock: None, ..self }
    }
}

/// The first of `earlier` that may still run, as an error.
fn unordered<'a>(clock: &Clock, mut earlier: impl Iterator<Item = &'a Entry>) -> Result<(), Entry> {
    earlier.find(|entry| !clock.knows(entry)).map_or(Ok(()), |&entry| Err(entry))
}

/// An operation, as those after it remember it.
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

/// The operations that used a buffer last.
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

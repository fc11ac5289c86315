//! Parameters of the loops that hand iterations to threads, as R0 3.2 and R1 1.3 have them.

use std::ops::Range;

use spm_formats::kernel::{ParameterSpec, Parameters, Schedule, Value};

use crate::Threads;

/// How rows, blocks or tiles go to threads.
pub(super) const SCHEDULE: ParameterSpec = ParameterSpec {
    name: "schedule",
    meaning: "static: each thread its share beforehand; dynamic: first come, first served",
    default: Value::Schedule(Schedule::Dynamic),
    studied: &[Value::Schedule(Schedule::Static), Value::Schedule(Schedule::Dynamic)],
};

/// R0 3.2 found that the size hardly matters unless it is very small, and took the order of 10^3
/// rows.
pub(super) const CHUNK: ParameterSpec = ParameterSpec {
    name: "chunk",
    meaning: "rows in a chunk; 0: by the folding when dynamic, one piece a thread when static",
    default: Value::Count(0),
    studied: &[
        Value::Count(0),
        Value::Count(1),
        Value::Count(10),
        Value::Count(100),
        Value::Count(1000),
        Value::Count(10_000),
    ],
};

/// R1 1.3's `FAIR_CHUNKS_FOLDING`.
pub(super) const FOLDING: ParameterSpec = ParameterSpec {
    name: "folding",
    meaning: "chunks that a dynamic schedule cuts the iterations into, for each thread",
    default: Value::Count(4),
    studied: &[Value::Count(4)],
};

/// R1's `gridRows`.
pub(super) const BLOCKS: ParameterSpec = ParameterSpec {
    name: "blocks",
    meaning: "blocks of consecutive rows, their sizes differing by one at most",
    default: Value::Count(10),
    studied: &[
        Value::Count(4),
        Value::Count(5),
        Value::Count(10),
        Value::Count(13),
        Value::Count(14),
    ],
};

/// R1's `gridRows` x `gridCols`.
pub(super) const GRID: ParameterSpec = ParameterSpec {
    name: "grid",
    meaning: "row blocks x column blocks",
    default: Value::Grid(10, 4),
    studied: &[
        Value::Grid(5, 8),
        Value::Grid(10, 4),
        Value::Grid(4, 10),
        Value::Grid(14, 3),
        Value::Grid(13, 3),
    ],
};

/// As many blocks as [`BLOCKS`] says, but no more than there are rows: further ones would be empty.
pub(super) fn blocks(parameters: &Parameters, rows: usize) -> usize {
    parameters.count(BLOCKS.name).min(rows.max(1))
}

/// A loop of a plan: how many iterations, and how they are handed out.
#[derive(Debug, Clone)]
pub(super) struct Loop {
    threads: Threads,
    iterations: usize,
    schedule: Schedule,
    chunk: usize,
}

impl Loop {
    /// The loop that [`SCHEDULE`], [`FOLDING`] and, where the kernel has it, [`CHUNK`] describe.
    pub(super) fn new(threads: &Threads, iterations: usize, parameters: &Parameters) -> Self {
        let schedule = parameters.schedule(SCHEDULE.name);
        let chunk = match (parameters.get(CHUNK.name), schedule) {
            (Some(Value::Count(chunk)), _) if chunk > 0 => chunk,
            (_, Schedule::Static) => 0,
            // R1 1.3 divides the iterations by the folding; here for each thread, so that more
            // than `folding` threads find work.
            (_, Schedule::Dynamic) => {
                let chunks = parameters.count(FOLDING.name).saturating_mul(threads.count());
                (iterations / chunks).max(1)
            }
        };
        Self { threads: threads.clone(), iterations, schedule, chunk }
    }

    /// Calls `body` with ranges of iterations that do not overlap and cover all.
    pub(super) fn run(&self, body: impl Fn(Range<usize>) + Sync) {
        self.threads.for_each_chunk(self.iterations, self.schedule, self.chunk, body);
    }

    pub(super) fn threads(&self) -> &Threads {
        &self.threads
    }
}

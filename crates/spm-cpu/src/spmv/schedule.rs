//! Loop schedules: parameters for the distribution of iterations to threads, as in R0 3.2 and R1
//! 1.3.

use std::ops::Range;

use spm_formats::kernel::{ParameterSpec, Parameters, Schedule, Value};

use crate::Threads;

/// How rows, blocks or tiles are distributed to threads.
pub(super) const SCHEDULE: ParameterSpec = ParameterSpec {
    name: "schedule",
    meaning: "static: chunks assigned beforehand; dynamic: a free thread takes the next chunk",
    default: Value::Schedule(Schedule::Dynamic),
    studied: &[Value::Schedule(Schedule::Static), Value::Schedule(Schedule::Dynamic)],
};

/// The chunk size. R0 3.2 found that it hardly matters unless it is very small, and used about 10^3
/// rows.
pub(super) const CHUNK: ParameterSpec = ParameterSpec {
    name: "chunk",
    meaning: "rows in a chunk; 0: by the folding if dynamic, one chunk for each thread if static",
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

/// R1 1.3's `FAIR_CHUNKS_FOLDING`: chunks for each thread of a dynamic schedule.
pub(super) const FOLDING: ParameterSpec = ParameterSpec {
    name: "folding",
    meaning: "chunks for each thread of a dynamic schedule",
    default: Value::Count(4),
    studied: &[Value::Count(4)],
};

/// The number of row blocks (R1's `gridRows`).
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

/// The grid of tiles (R1's `gridRows` x `gridCols`).
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

/// The value of [`BLOCKS`], but at most the number of rows, because further blocks would be empty.
pub(super) fn blocks(parameters: &Parameters, rows: usize) -> usize {
    parameters.count(BLOCKS.name).min(rows.max(1))
}

/// A parallel loop of a plan: the number of iterations and their schedule.
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

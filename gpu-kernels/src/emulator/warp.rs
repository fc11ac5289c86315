//! Warp operations: shuffles, votes, matches and warp barriers.

use std::panic::Location;
use std::ptr;

use super::Defect;

/// Lanes of a warp.
pub(super) const LANES: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Down,
    Up,
    Xor,
    Idx,
}

/// A warp operation, with the arguments that must be the same on all its lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Shuffle(ShuffleMode),
    Ballot,
    Any,
    All,
    MatchAny,
    Sync,
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Shuffle(ShuffleMode::Down) => "shuffle_down",
            Self::Shuffle(ShuffleMode::Up) => "shuffle_up",
            Self::Shuffle(ShuffleMode::Xor) => "shuffle_xor",
            Self::Shuffle(ShuffleMode::Idx) => "shuffle_idx",
            Self::Ballot => "ballot",
            Self::Any => "any",
            Self::All => "all",
            Self::MatchAny => "match_any",
            Self::Sync => "sync_warp",
        }
    }
}

/// One lane's call of a warp operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) operation: Operation,
    pub(crate) mask: u32,
    pub(crate) value: u64,
    /// Delta, lane mask or source lane of a shuffle.
    pub(crate) argument: u32,
    /// Segment width of a shuffle.
    pub(crate) width: u32,
    pub(crate) at: &'static Location<'static>,
}

impl Call {
    /// Whether two lanes call the same operation.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.mask == other.mask
            && is_same_place(self.at, other.at)
    }

    fn source(&self, mode: ShuffleMode, lane: u32) -> u32 {
        let first = lane & !(self.width - 1);
        let last = first + self.width - 1;
        let source = match mode {
            ShuffleMode::Down => lane.saturating_add(self.argument),
            ShuffleMode::Up => {
                return if self.argument > lane - first { lane } else { lane - self.argument };
            }
            ShuffleMode::Xor => lane ^ self.argument,
            ShuffleMode::Idx => first + (self.argument & (self.width - 1)),
        };
        if source > last { lane } else { source }
    }
}

/// Whether two locations are one. Almost always they are one object, too.
pub(super) fn is_same_place(a: &'static Location<'static>, b: &'static Location<'static>) -> bool {
    ptr::eq(a, b) || a == b
}

/// The result of a vote or barrier, which is the same for all lanes, given the calls of those that take
/// part.
pub(super) fn vote(calls: &[Option<Call>], operation: Operation) -> Option<u64> {
    let mut present = calls.iter().flatten();
    match operation {
        Operation::Any => Some(u64::from(present.any(|c| c.value != 0))),
        Operation::All => Some(u64::from(present.all(|c| c.value != 0))),
        Operation::Ballot => Some(bits(calls, |c| c.value != 0)),
        Operation::Sync => Some(0),
        Operation::Shuffle(_) | Operation::MatchAny => None,
    }
}

/// The result of the operation for `lane`, given the calls of the lanes that take part.
pub(super) fn result(calls: &[Option<Call>], lane: u32) -> Result<u64, Defect> {
    let Some(call) = calls[lane as usize] else { return Ok(0) };
    match call.operation {
        Operation::Shuffle(mode) => {
            let source = call.source(mode, lane);
            match calls.get(source as usize) {
                Some(Some(other)) => Ok(other.value),
                _ => Err(Defect::InactiveLane {
                    operation: call.operation.name(),
                    at: call.at.to_string(),
                    source_lane: source,
                    mask: call.mask,
                }),
            }
        }
        Operation::MatchAny => Ok(bits(calls, |c| c.value == call.value)),
        operation => Ok(vote(calls, operation).unwrap_or(0)),
    }
}

fn bits(calls: &[Option<Call>], holds: impl Fn(&Call) -> bool) -> u64 {
    (0..).zip(calls).filter(|(_, c)| c.as_ref().is_some_and(&holds)).fold(0, |b, (l, _)| b | 1 << l)
}

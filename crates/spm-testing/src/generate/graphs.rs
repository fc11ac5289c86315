//! Patterns of graphs that are drawn edge by edge: R-MAT, power networks, Markov chains.

use rayon::prelude::*;

use super::GenerateError;
use super::error::at_most;
use super::pattern::{Pattern, entry};
use super::random::Random;
use spm_formats::csr::check_limits;

/// An R-MAT graph (Chakrabarti, Zhan, Faloutsos: "R-MAT: a recursive model for graph mining", SDM
/// 2004) with the quadrants of Graph500: 0.57, 0.19, 0.19, 0.05.
pub(super) fn rmat(
    scale: usize,
    edges: usize,
    symmetric: bool,
    seed: u64,
) -> Result<Pattern, GenerateError> {
    at_most("scale", scale, 31)?;
    let n = 1usize << scale;
    check_limits(n as u64, n as u64, 2 * edges as u64)?;
    let draw = |edge: usize| {
        let mut random = Random::new(seed, edge as u64);
        (0..scale).fold((0, 0), |(row, col), _| {
            let (down, right) = match random.below(100) {
                0..57 => (0, 0),
                57..76 => (0, 1),
                76..95 => (1, 0),
                _ => (1, 1),
            };
            (2 * row + down, 2 * col + right)
        })
    };
    let drawn = (0..edges).into_par_iter().map(draw);
    let entries = if symmetric {
        drawn.flat_map_iter(|(row, col)| [entry(row, col), entry(col, row)]).collect()
    } else {
        drawn.map(|(row, col)| entry(row, col)).collect()
    };
    Pattern::from_entries(n, n, entries)
}

/// A power network: every bus but the first hangs on an earlier one, most often a near one, and
/// `extra` lines close loops of every size.
pub(super) fn power(n: usize, extra: usize, seed: u64) -> Result<Pattern, GenerateError> {
    let lines = n.saturating_add(extra);
    check_limits(n as u64, n as u64, lines.saturating_mul(2).saturating_add(n) as u64)?;
    let ends = |line: usize| {
        let mut random = Random::new(seed, line as u64);
        if line == 0 || n < 2 {
            return (0, 0);
        }
        let (bus, magnitudes) = if line < n { (line, 6) } else { (1 + random.below(n - 1), 14) };
        let magnitude = random.below(magnitudes);
        let reach = 1 + random.below(1 << magnitude);
        (bus, bus.saturating_sub(reach))
    };
    let lines = (0..if n == 0 { 0 } else { lines }).into_par_iter().map(ends);
    let couplings = lines.flat_map_iter(|(a, b)| [entry(a, b), entry(b, a)]);
    let entries = couplings.chain((0..n).into_par_iter().map(|bus| entry(bus, bus))).collect();
    Pattern::from_entries(n, n, entries)
}

/// Queues of fewer than `states` customers, one behind the other: a customer arrives anywhere,
/// leaves from anywhere, or moves to the next queue.
pub(super) fn markov(states: usize, queues: usize) -> Result<Pattern, GenerateError> {
    let rows = u32::try_from(queues).ok().and_then(|queues| states.checked_pow(queues));
    let rows = rows.ok_or_else(|| GenerateError::Parameter {
        what: "queues",
        problem: "makes the matrix too large".to_owned(),
    })?;
    check_limits(rows as u64, rows as u64, 0)?;
    // The number of a state has the length of queue q as its digit of weight states^q.
    let targets = |row: usize| {
        let weights = std::iter::successors(Some(1), move |weight| Some(weight * states));
        let digits = weights.take(queues).map(move |weight| (weight, row / weight % states));
        let arrive =
            digits.clone().filter(move |&(_, d)| d + 1 < states).map(move |(w, _)| row + w);
        let leave = digits.clone().filter(|&(_, d)| d > 0).map(move |(w, _)| row - w);
        let moves = digits.clone().zip(digits.skip(1));
        let moves = moves
            .filter(move |&((_, from), (_, to))| from > 0 && to + 1 < states)
            .map(move |((w, _), (next, _))| row - w + next);
        std::iter::once(row).chain(arrive).chain(leave).chain(moves)
    };
    Pattern::with_length_of(
        rows,
        rows,
        |row| targets(row).count() as u64,
        |row, columns| {
            columns.iter_mut().zip(targets(row)).for_each(|(column, to)| *column = to as u32);
            columns.sort_unstable();
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rmat_is_skewed_and_symmetric_on_request() {
        let directed = rmat(10, 20_000, false, 3).unwrap();
        assert!((10_000..20_000).contains(&directed.indices.len()));
        let longest = (0..1024).map(|row| directed.row(row).len()).max().unwrap();
        assert!(longest > 10 * directed.indices.len() / 1024, "{longest}");
        let undirected = rmat(10, 20_000, true, 3).unwrap();
        for row in 0..1024 {
            let mirrored = |&col: &u32| undirected.row(col as usize).contains(&(row as u32));
            assert!(undirected.row(row).iter().all(mirrored));
        }
        assert!(rmat(32, 1, false, 1).is_err() && rmat(5, usize::MAX / 4, false, 1).is_err());
    }

    #[test]
    fn a_power_network_is_connected() {
        let n = 3000;
        let pattern = power(n, 1000, 5).unwrap();
        let (mut reached, mut pending) = (vec![false; n], vec![0]);
        while let Some(bus) = pending.pop() {
            if !std::mem::replace(&mut reached[bus], true) {
                pending.extend(pattern.row(bus).iter().map(|&other| other as usize));
            }
        }
        assert!(reached.iter().all(|&reached| reached));
        assert!((3 * n..n + 2 * (n + 1000)).contains(&pattern.indices.len()));
        assert!(power(0, 5, 1).unwrap().indices.is_empty());
        assert_eq!(power(1, 5, 1).unwrap().indices, [0]);
    }

    #[test]
    fn customers_arrive_leave_and_move() {
        let pattern = markov(3, 2).unwrap();
        // One customer in each queue: weights 1 and 3.
        assert_eq!(pattern.row(4), [1, 3, 4, 5, 6, 7]);
        assert_eq!(pattern.row(0), [0, 1, 3]);
        assert_eq!(markov(4, 1).unwrap().row(3), [2, 3]);
        assert!(markov(10, 30).is_err() && markov(10, usize::MAX).is_err());
    }
}

//! What `auto` times, and in which order, by the machine model.

use std::ptr;

use spm_formats::Scalar;
use spm_formats::kernel::{ParameterSpec, Parameters, Value, split_label};

use crate::race;
use crate::simd::{GATHER, PREFETCH};
use crate::spmv::predict::OnThreads;
use crate::spmv::{self, SpmvKernel, bsr_rows, csr_merge, sell_compact, sell_tiles};

/// How far the model may be wrong about two kernels: one that it says to take so many times as long is not
/// timed.
const FAR: f64 = 2.0;
/// Times the best one by the model up to which a conversion is near it.
const NEAR: f64 = 1.15;
/// Products that planning is expected to take at most. A fifth of the 50 that it may take is left for what takes longer than
/// expected. The fastest conversion by the model and what converts nothing are timed anyway.
pub(super) const PLANNING: f64 = 40.0;
/// Seconds that planning may take where that many products take less.
pub(super) const LEAST: f64 = 5e-3;
/// Products that share planning in the order of the candidates. A plan that is raced for serves many more than its planning
/// takes; but what is slow to plan and hardly faster should not take the time of all others.
const SERVED: f64 = 10.0 * PLANNING;

/// The threads that a candidate is timed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// One thread.
    Caller,
    /// The thread pool.
    All,
    /// The thread pool and one thread.
    Both,
}

/// A kernel that may be the fastest, with its parameters.
#[derive(Debug, Clone)]
pub(super) struct Candidate<T> {
    pub(super) kernel: SpmvKernel<T>,
    pub(super) parameters: Parameters,
    pub(super) on: On,
    /// Seconds of a product by the model, on all threads or on one.
    pub(super) expected: f64,
    /// What a time on one thread counts beside one on all.
    pub(super) weight: f64,
    /// What planning and timing it takes.
    pub(super) cost: Cost,
    /// Whether it is left out where that is too long.
    pub(super) is_optional: bool,
    /// Whether it reads the arrays of the candidate before, and is timed only in the way that was the fastest of
    /// that one.
    pub(super) follows: bool,
}

/// The parameters that plans may change without being made again.
const CHANGED: [&ParameterSpec; 2] = [&GATHER, &PREFETCH];

/// Seconds by the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) planning: f64,
    pub(super) timing: f64,
}

impl Cost {
    /// Of a conversion that is timed in each of its ways.
    fn of(way: &OnThreads) -> Self {
        let (id, _) = split_label(&way.alone.label);
        let kernel = spmv::find::<f64>(id).expect("the model knows registered kernels");
        let has =
            |of: &&ParameterSpec| kernel.info.parameters.iter().any(|own| own.name == of.name);
        let changes = CHANGED.iter().copied().filter(has).map(|of| of.studied.len() - 1);
        let timing = race::trial(way.seconds(), 1 + changes.sum::<usize>());
        Self { planning: way.all.planning, timing }
    }

    fn all(self) -> f64 {
        self.planning + self.timing
    }
}

impl<T: Scalar> Candidate<T> {
    fn new(way: &OnThreads) -> Self {
        let (id, text) = split_label(&way.alone.label);
        let kernel = spmv::find::<T>(id).expect("the model knows registered kernels");
        let parameters = kernel.info.parse_parameters(text).expect("parameters of the kernel");
        let (alone, all) = (way.alone.seconds, way.all.seconds);
        let on = match () {
            () if way.all.threads == 1 || alone * FAR < all => On::Caller,
            () if all * FAR < alone => On::All,
            () => On::Both,
        };
        let weight = race::weight(alone, all);
        let (expected, cost) = (way.seconds(), Cost::of(way));
        let (is_optional, follows) = (false, false);
        Self { kernel, parameters, on, expected, weight, cost, is_optional, follows }
    }

    /// The ways to run it besides the first one, each of which changes one parameter.
    pub(super) fn changes(&self) -> impl Iterator<Item = Change> {
        CHANGED.into_iter().flat_map(|of| {
            let now = self.parameters.get(of.name);
            let others =
                now.map(|now| of.studied.iter().copied().filter(move |&value| value != now));
            others.into_iter().flatten().map(|value| (of.name, value))
        })
    }
}

/// A parameter that a plan may change without being made again, and its value.
pub(super) type Change = (&'static str, Value);

/// The candidates: the fastest conversion by the model, what converts nothing, and other conversions that
/// may be as fast.
pub(super) fn candidates<T: Scalar>(ways: &[OnThreads]) -> Vec<Candidate<T>> {
    let direct = Candidate::new(&ways[0]);
    let kernel = SpmvKernel::new(csr_merge::INFO, csr_merge::plan);
    let parameters = kernel.info.defaults();
    let merge = Candidate { kernel, parameters, follows: true, ..direct };
    let mut converted = entrants(ways).into_iter().map(Candidate::new);
    let first = converted.next();
    let rest = converted.map(|of| Candidate { is_optional: true, ..of });
    first.into_iter().chain([direct, merge]).chain(rest).collect()
}

/// The conversions that may be the fastest: first those that are near the best one by the model, last those that take far
/// too long, each group in the order of what the model says of a product and its share of planning. `ways` begins with the
/// one straight from CSR.
///
/// Tiles and the fastest chunks of whole rows count as near each other: they differ in how they wait for an x that is far, of which
/// the model knows least. Blocks come before all that are near: the model knows one stream of equal blocks best, and says too little of
/// lists that rows share, whose values are read as several streams.
fn entrants(ways: &[OnThreads]) -> Vec<&OnThreads> {
    let best = best(ways);
    let fastest = |id: &str| {
        let of_kernel = ways.iter().filter(|way| split_label(&way.alone.label).0 == id);
        of_kernel.min_by(|a, b| a.seconds().total_cmp(&b.seconds()))
    };
    let tiles = fastest(sell_tiles::INFO.id);
    let chunks = tiles.and_then(|_| fastest(sell_compact::INFO.id));
    let is_either =
        |way: &OnThreads| [tiles, chunks].into_iter().flatten().any(|of| ptr::eq(of, way));
    let has_blocks = |way: &OnThreads| split_label(&way.alone.label).0 == bsr_rows::INFO.id;
    let mut entrants: Vec<_> = ways[1..].iter().filter(|way| way.seconds() < FAR * best).collect();
    let share = |way: &OnThreads| way.seconds() + way.all.planning / SERVED;
    let group = |way: &OnThreads| match () {
        () if way.all.planning > FAR * LEAST.max(PLANNING * best) => 3,
        () if way.seconds() < NEAR * best && has_blocks(way) => 0,
        () if way.seconds() < NEAR * best || is_either(way) => 1,
        () => 2,
    };
    entrants.sort_by(|a, b| group(a).cmp(&group(b)).then_with(|| share(a).total_cmp(&share(b))));
    entrants
}

/// Seconds of a product in the fastest of `ways` by the model.
fn best(ways: &[OnThreads]) -> f64 {
    ways.iter().map(OnThreads::seconds).fold(f64::INFINITY, f64::min)
}

/// Seconds of the race between `ways`, the first of which is straight from CSR.
pub(in crate::spmv) fn predicted_race(ways: &[OnThreads]) -> f64 {
    let (direct, best) = (&ways[0], best(ways));
    let straight = race::trial(direct.seconds(), 3) + race::last(best, direct.alone.seconds, 2);
    let mut costs = entrants(ways).into_iter().map(|way| Cost::of(way).all());
    let mut race = straight + costs.next().unwrap_or(0.0);
    for cost in costs {
        race += if race + cost < LEAST.max(PLANNING * best) { cost } else { 0.0 };
    }
    race
}

#[cfg(test)]
pub(super) mod tests {
    use spm_formats::Csr;
    use spm_testing::generate;

    use super::*;
    use crate::machine::Rates;
    use crate::spmv::predict::{self, Prediction};

    pub(in crate::spmv::auto) fn matrix(name: &str) -> Csr<f64> {
        generate::named(name).unwrap().generate().unwrap()
    }

    /// The candidates on three threads.
    pub(in crate::spmv::auto) fn of_three(a: &Csr<f64>, rates: &Rates) -> Vec<Candidate<f64>> {
        candidates(&predict::on_threads(&a.view(), 3, rates))
    }

    #[test]
    fn the_model_says_what_is_timed() {
        let of = |name: &str, rates: &str| -> Vec<_> {
            let candidates = of_three(&matrix(name), &rates.parse().unwrap());
            candidates.into_iter().map(|of| (split_label(of.kernel.info.id).0, of.on)).collect()
        };
        let text = Rates::of_three_threads().to_string();
        let change = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        };
        let ids = |of: &[(&'static str, On)]| of.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        // What converts nothing is always there, behind the fastest conversion.
        let usual = of("uniform[rows=20000,cols=20000,entries=280000]", &text);
        assert_eq!(ids(&usual)[..3], ["sell-compact", "csr-nnz-balanced", "csr-merge"]);
        assert!(usual.len() > 3 && usual.iter().all(|(_, on)| *on == On::All), "{usual:?}");
        // Conversions whose products take far longer: none.
        let fast = change("\nsell", "\nsell").replace(" 2e-10 4e-10", " 2e-7 4e-10");
        let fast = fast
            .replace(" 4e-10 1e-5 1e-8 5e-9", " 4e-7 1e-5 1e-8 5e-9")
            .replace(" 3e-10 4e-10", " 3e-7 4e-10");
        let few = of("uniform[rows=20000,cols=20000,entries=280000]", &fast);
        assert_eq!(ids(&few), ["csr-nnz-balanced", "csr-merge"]);
        // Threads that start late, and threads that may just be worth it.
        let on = |start: &str| of("stencil5[n=90]", &change("start 1e-5", start));
        assert!(on("start 1e0").iter().all(|(_, on)| *on == On::Caller));
        assert!(on("start 1e-5").iter().any(|(_, on)| *on == On::Both), "{:?}", on("start 1e-5"));
    }

    /// A conversion beyond the first one must not take too long, by the model and the products so far.
    #[test]
    fn planning_is_limited() {
        let a = matrix("uniform[rows=20000,cols=20000,entries=280000]");
        let rates = Rates::of_three_threads();
        let candidates = of_three(&a, &rates);
        assert_eq!(candidates.iter().filter(|of| !of.is_optional).count(), 3);
        assert!(candidates.len() > 3 && candidates[3..].iter().all(|of| of.cost.planning > 0.0));
        // The same is predicted: of a small matrix all conversions, of a large one the first where they take
        // long.
        let converted = |name: &str, rates: &Rates| {
            let ways = predict::on_threads(&matrix(name).view(), 3, rates);
            let straight = race::trial(ways[0].seconds(), 3)
                + race::last(best(&ways), ways[0].alone.seconds, 2);
            let costs: Vec<f64> =
                entrants(&ways).into_iter().map(|way| Cost::of(way).all()).collect();
            (predicted_race(&ways) - straight, costs)
        };
        let (race, costs) = converted("uniform[rows=2000,cols=2000,entries=20000]", &rates);
        assert!(costs.len() > 1 && (race / costs.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let slow = rates.to_string().replace("fresh 2e9", "fresh 1e6").parse().unwrap();
        let (race, costs) = converted("uniform[rows=20000,cols=20000,entries=280000]", &slow);
        assert!(costs.len() > 1 && (race / costs[0] - 1.0).abs() < 1e-9);
    }

    /// A way by what the model says of a product and of planning.
    fn way(label: &str, seconds: f64, planning: f64) -> OnThreads {
        let label = label.to_owned();
        let of = Prediction { label, threads: 1, seconds, planning, bytes: 0.0 };
        OnThreads { alone: of.clone(), all: of }
    }

    fn order(ways: &[OnThreads]) -> Vec<&str> {
        entrants(ways).into_iter().map(|way| way.all.label.as_str()).collect()
    }

    /// Whatever the model says of others in between.
    #[test]
    fn tiles_and_the_fastest_chunks_of_whole_rows_are_near_each_other() {
        let others = || [way("csr", 10e-3, 0.0), way("csr-compact", 6.5e-3, 1e-3)];
        let chunks = || {
            [
                way("sell-compact[sigma=1]", 7.6e-3, 1e-3),
                way("sell-compact[sigma=256]", 7.2e-3, 2e-3),
            ]
        };
        let near =
            ["sell-tiles", "sell-compact[sigma=256]", "csr-compact", "sell-compact[sigma=1]"];
        let tiles = |seconds| [way("sell-tiles", seconds, 0.01)];
        let ways: Vec<_> = others().into_iter().chain(chunks()).chain(tiles(5e-3)).collect();
        assert_eq!(order(&ways), near);
        // Without tiles, and with tiles that take far too long.
        let ways: Vec<_> = others().into_iter().chain(chunks()).collect();
        assert_eq!(order(&ways)[0], "csr-compact");
        let ways: Vec<_> = others().into_iter().chain(chunks()).chain(tiles(14e-3)).collect();
        assert_eq!(order(&ways).len(), 3);
    }

    #[test]
    fn conversions_that_are_near_come_in_the_order_of_what_they_take() {
        // 4 % less for a product, 3.5 times as much for planning.
        let ways = [way("csr", 10e-3, 0.0), way("tiles", 6.9e-3, 0.21), way("sell", 7.2e-3, 0.06)];
        assert_eq!(order(&ways), ["sell", "tiles"]);
        let ways = [way("csr", 10e-3, 0.0), way("sell", 7.2e-3, 0.06), way("tiles", 6.0e-3, 0.09)];
        assert_eq!(order(&ways), ["tiles", "sell"]);
        // Unless it takes more than twice as long as all of planning may.
        let ways = [way("csr", 10e-3, 0.0), way("sell", 7.2e-3, 0.06), way("tiles", 6.0e-3, 0.47)];
        assert_eq!(order(&ways), ["tiles", "sell"]);
        let ways = [way("csr", 10e-3, 0.0), way("sell", 7.2e-3, 0.06), way("tiles", 6.0e-3, 0.49)];
        assert_eq!(order(&ways), ["sell", "tiles"]);
    }

    #[test]
    fn blocks_come_before_others_that_are_near() {
        let lists = || way("csr-compact", 6.0e-3, 1e-3);
        let others = || [way("csr", 10e-3, 0.0), lists(), way("sell-compact", 6.5e-3, 0.02)];
        let blocks = |seconds, planning| [way("bsr-rows[block=4]", seconds, planning)];
        let order = |of: [OnThreads; 1]| {
            let ways: Vec<_> = others().into_iter().chain(of).collect();
            order(&ways).first().map(|label| (*label).to_owned())
        };
        assert_eq!(order(blocks(6.8e-3, 0.1)).as_deref(), Some("bsr-rows[block=4]"));
        // Unless they are not near, or take too long to make.
        assert_eq!(order(blocks(7.0e-3, 0.1)).as_deref(), Some("csr-compact"));
        assert_eq!(order(blocks(6.8e-3, 0.5)).as_deref(), Some("csr-compact"));
    }
}

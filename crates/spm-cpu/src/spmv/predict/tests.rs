use spm_formats::Csr;
use spm_testing::generate;

use super::*;
use crate::PlanOptions;

const MATRICES: [&str; 13] = [
    // A row of 9000 entries.
    "arrow[n=9000,width=1]",
    "stencil27[n=20]",
    "stencil5[n=150]",
    "stencil5[n=150,values=ones]",
    "stencil5[n=150,values=few]",
    "uniform[rows=30000,cols=300,entries=60000,values=few]",
    "blocks[n=10,block=3]",
    "powerlaw[rows=20000,cols=20000,entries=100000,longest=1500]",
    "uniform[rows=20000,cols=140000,entries=280000]",
    "uniform[rows=30000,cols=300,entries=60000]",
    "diagonal[n=30000]",
    "uniform[rows=30000,cols=20000,entries=3000]",
    // Symmetric; eight rows do not repeat a pattern.
    "mesh3[n=20]",
];

fn matrix(name: &str) -> Csr<f64> {
    generate::named(name).unwrap().generate().unwrap()
}

/// Each prediction is one of a kernel that takes the matrix, and its bytes are those of the plan.
#[test]
fn bytes_are_those_of_the_plans() {
    let options = PlanOptions::with_threads(1);
    for name in MATRICES {
        let a = matrix(name);
        let predictions = predict(a.view(), 1, &Rates::typical());
        for of in std::iter::once(&predictions.direct).chain(&predictions.converted) {
            let (id, parameters) = split_label(&of.label);
            let kernel = super::super::find::<f64>(id).unwrap();
            let parameters = kernel.info.parse_parameters(parameters).unwrap();
            let plan = kernel.plan(&a, &parameters, &options).unwrap();
            let ratio = of.bytes / plan.footprint().bytes_moved as f64;
            assert!((0.75..1.3).contains(&ratio), "{name}, {}: {ratio}", of.label);
        }
    }
}

/// A row with two thirds of all entries: one thread sums it, or all do.
#[test]
fn long_rows_that_are_split_do_not_hold_threads_up() {
    let rows = 3000;
    let row_ptr: Vec<u32> = (0..=rows).map(|row| row + (row > 0) as u32 * 2 * rows).collect();
    let columns = (0..=2 * rows).chain(1..rows).collect();
    let a = Csr::new((3000, 6001), row_ptr, columns, vec![1.5; 9000]).unwrap();
    let rates = Rates::of_three_threads();
    let structure = Structure::sample(&a.view(), 3);
    let ways = structure.ways(&a.view(), 3);
    let slower = |kernel: &str| {
        let way = ways.iter().find(|way| way.label.starts_with(kernel)).unwrap();
        let [even, uneven] = [1.0, balance(&a.view(), 3)]
            .map(|balance| structure.predict(&a.view(), way, 3, balance, &rates).seconds);
        uneven / even
    };
    assert!(slower("csr-nnz-balanced") > 1.2, "{}", slower("csr-nnz-balanced"));
    assert_eq!(slower("sell-compact"), 1.0);
}

/// The planning of conversions is measured on all threads, that of what the threads of the product make on one.
#[test]
fn threads_share_the_planning_of_parts() {
    let rates = Rates::of_three_threads();
    let planning = |name: &str, kernel: &str, threads| {
        let a = matrix(name);
        let ways = on_threads(&a.view(), threads, &rates);
        ways.iter().find(|way| way.all.label.starts_with(kernel)).unwrap().all.planning
    };
    for kernel in ["sell-symmetric", "sell-compact", "csr-compact"] {
        let [one, three] = [1, 3].map(|threads| planning("stencil27[n=20]", kernel, threads));
        assert!(three < 0.6 * one, "{kernel}: {three}, {one}");
    }
    let [one, three] = [1, 3].map(|threads| planning("blocks[n=10,block=3]", "bsr", threads));
    assert_eq!(three, one);
}

/// Rows with the same columns have one list: planning it is not that of as many entries in rows of their own.
#[test]
fn rows_with_the_same_columns_are_planned_once() {
    let planning = |name: &str| {
        let a = matrix(name);
        let predictions = predict(a.view(), 1, &Rates::typical());
        predictions.of("csr-compact[gather=scalar]").unwrap().planning / a.nnz() as f64
    };
    assert!(planning("blocks[n=12,block=6]") < 0.5 * planning("stencil27[n=20]"));
}

#[test]
fn the_structure_decides_which_kernels_are_predicted() {
    let labels = |name| {
        let predictions = predict(matrix(name).view(), 1, &Rates::typical());
        let labels = predictions.converted.iter().map(|of| of.label.clone());
        labels.collect::<Vec<_>>().join(" ")
    };
    let has = |name, kernel| labels(name).contains(kernel);
    assert!(has("stencil27[n=20]", "sell-symmetric") && !has("stencil27[n=20]", "sigma=256"));
    assert!(!has("uniform[rows=20000,cols=20000,entries=280000]", "sell-symmetric"));
    assert!(has("blocks[n=10,block=3]", "bsr-rows[block=3,prefetch=off]"));
    assert!(!has("stencil27[n=20]", "bsr-rows"));
    assert!(has("uniform[rows=30000,cols=20000,entries=3000]", "dcsr-rows"));
    assert!(!has("uniform[rows=30000,cols=300,entries=60000]", "dcsr-rows"));
    assert!(has("powerlaw[rows=20000,cols=20000,entries=100000,longest=1500]", "sigma=4096"));
    assert!(has("uniform[rows=20000,cols=140000,entries=280000]", "sell-tiles"));
    assert!(!has("stencil5[n=150]", "sell-tiles"));
    let predictions = predict(matrix("stencil27[n=20]").view(), 1, &Rates::typical());
    let label = "sell-compact[sigma=1,gather=scalar,prefetch=on]";
    assert!(predictions.of(label).unwrap().label.starts_with("sell-compact[sigma=1,"));
    assert_eq!(predictions.of("csr-nnz-balanced[simd=on]"), Some(&predictions.direct));
    assert_eq!(predictions.of("sell-compact[sigma=256,gather=scalar]"), None);
    // Few values are stored as codes or as they are.
    let few = labels("uniform[rows=9000,cols=9000,entries=90000,values=few]");
    assert!(few.contains("codes=table") && few.contains("codes=registers"), "{few}");
    assert!(!has("uniform[rows=9000,cols=9000,entries=90000]", "codes=table"));
    // Values that are not symmetric in a pattern that is.
    let mut a = matrix("stencil27[n=20]");
    a.values_mut().iter_mut().enumerate().for_each(|(i, value)| *value += i as f64);
    let predictions = predict(a.view(), 1, &Rates::typical());
    assert!(predictions.converted.iter().all(|of| of.label != "sell-symmetric"));
}

#[test]
fn rates_make_the_times() {
    let a = matrix("uniform[rows=20000,cols=140000,entries=280000]");
    let text = Rates::typical().to_string();
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        predict(a.view(), 1, &text.replace(from, to).parse().unwrap())
    };
    let usual = predict(a.view(), 1, &Rates::typical());
    // Memory that is slower than all arithmetic.
    let slow = with("read-one 4e10 4e10 3e10 2e10 1.5e10 1e10", "read-one 1e6 1e6 1e6 1e6 1e6 1e6");
    assert!((slow.direct.seconds / (slow.direct.bytes / 1e6) - 1.0).abs() < 0.1);
    // x is far from cache.
    let far = with(
        "gather-one 5e-10 7e-10 1.5e-9 4e-9 7e-9 1e-8",
        "gather-one 5e-10 7e-10 1.5e-9 4e-9 7e-9 1e-6",
    );
    assert_eq!(far.direct.seconds, usual.direct.seconds, "x has 1 MiB");
    let far = with("gather-one 5e-10 7e-10 1.5e-9 4e-9", "gather-one 5e-10 7e-10 1.5e-9 4e-6");
    assert!(far.direct.seconds > 10.0 * usual.direct.seconds);
    assert!(far.converted[0].label.starts_with("sell-tiles"), "{:?}", far.converted[0]);
    // Each line of a tile's part of x comes from there once, of three tiles.
    let of_tiles = usual.converted.iter().find(|of| of.label.starts_with("sell-tiles"));
    let more = far.converted[0].seconds - of_tiles.unwrap().seconds;
    assert!((0.02..3.0 * 8192.0 * 4e-6).contains(&more), "{more}");
    // Whoever waits for x has more loads in flight by vector gathers.
    let scalar = text.replace("2e-10 4e-10 1e-5 1e-8 1e-8 1", "2e-10 4e-10 1e-5 1e-8 1e-8 0");
    let gathers = |a: &Csr<f64>| {
        let predictions = predict(a.view(), 1, &scalar.parse().unwrap());
        let of = predictions.converted.iter().find(|of| of.label.starts_with("sell-compact"));
        of.unwrap().label.contains("gather=vector")
    };
    assert!(gathers(&a) && !gathers(&matrix("mesh3[n=20]")));
    let planned = with(
        "sell-tiles 3e-9 3e-10 4e-10 1e-5 1e-8 2e-8",
        "sell-tiles 3e-9 3e-10 4e-10 1e-5 1e-8 2e-6",
    );
    let planning = |of: &Predictions| {
        of.converted.iter().find(|of| of.label.starts_with("sell-tiles")).unwrap().planning
    };
    let more = planning(&planned) - planning(&usual);
    assert!((more / (280_000.0 * 1.98e-6) - 1.0).abs() < 1e-6, "{more}");
    // One that takes so long is not in the race.
    assert!(planned.race < usual.race, "{} {}", planned.race, usual.race);
    // Three bands, which two threads make.
    let tall = matrix("uniform[rows=140000,cols=600000,entries=280000]");
    let planning_on = |threads: &str, plan: &str| {
        let text = text.replace("threads 1", threads).replace("4e-10 1e-5 1e-8 2e-8", plan);
        planning(&predict(tall.view(), 2, &text.parse().unwrap()))
    };
    let [one, two] = ["threads 1", "threads 2"].map(|threads| {
        planning_on(threads, "4e-10 1e-5 1e-8 2e-6") - planning_on(threads, "4e-10 1e-5 1e-8 2e-8")
    });
    assert!((one / two - 2.0).abs() < 1e-6, "{one}, {two}");
}

/// Traffic and arithmetic that take equally long take 1.4 times as long together.
#[test]
fn traffic_and_arithmetic_overlap_in_part() {
    let a = matrix("stencil5[n=150]");
    let text = Rates::typical()
        .to_string()
        .replace("gather-one 5e-10 7e-10 1.5e-9 4e-9 7e-9 1e-8", "gather-one 0 0 0 0 0 0");
    let (memory, arithmetic) = ("read-one 4e10 4e10 3e10 2e10 1.5e10 1e10", "csr 3e-9 3.5e-10");
    let seconds = |without: &[(&str, &str)]| {
        let change = |text: String, (from, to): &(&str, &str)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        };
        let text = without.iter().fold(text.clone(), change);
        predict(a.view(), 1, &text.parse().unwrap()).direct.seconds
    };
    let no_memory = (memory, "read-one 1e30 1e30 1e30 1e30 1e30 1e30");
    let no_arithmetic = [(arithmetic, "csr 0 0"), ("misprediction 4e-9", "misprediction 0")];
    let [of_memory, of_arithmetic] = [seconds(&no_arithmetic), seconds(&[no_memory])];
    assert!(of_memory > 1e-5 && of_arithmetic > 1e-5);
    assert!((seconds(&[]) / of_memory.hypot(of_arithmetic) - 1.0).abs() < 1e-9);
}

/// Lines of a grid as long as the distances of a sample, and a grid whose lines are not.
#[test]
fn a_sample_does_not_follow_the_lines_of_a_grid() {
    let text = Rates::typical().to_string();
    assert!(text.contains("misprediction 4e-9"), "{text}");
    let rates: Rates = text.replace("misprediction 4e-9", "misprediction 4e-6").parse().unwrap();
    let of_a_row = |n: usize| {
        let a = matrix(&format!("stencil7[n={n}]"));
        predict(a.view(), 1, &rates).converted.iter().map(|of| of.seconds).fold(0.0, f64::max)
            / a.rows() as f64
    };
    let ratio = of_a_row(64) / of_a_row(67);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}

/// Threads are used where they save more than their start costs.
#[test]
fn the_number_of_threads_is_chosen() {
    let text = Rates::typical().to_string();
    let two = text.replace("threads 1", "threads 2").replace(
        "read-all 4e10 4e10 3e10 2e10 1.5e10 1e10",
        "read-all 8e10 8e10 6e10 4e10 3e10 2e10",
    );
    let two: Rates = two.parse().unwrap();
    let of = |name, threads| predict(matrix(name).view(), threads, &two).direct;
    assert_eq!(of("diagonal[n=300]", 2).threads, 1);
    let large = of("stencil27[n=20]", 2);
    assert_eq!(large.threads, 2);
    assert!(large.seconds < 0.65 * of("stencil27[n=20]", 1).seconds);
    assert!(one_thread_suffices(300, 300, 2, &two));
    assert!(one_thread_suffices(0, 0, 0, &two) && !one_thread_suffices(30_000, 1 << 20, 2, &two));
}

/// A long row is no padding: it is summed by itself. The first one is in the sample here.
#[test]
fn long_rows_are_not_in_chunks() {
    let predictions = predict(matrix("arrow[n=9000,width=2]").view(), 1, &Rates::typical());
    let stored = predictions.of("sell-compact[sigma=1]").unwrap().bytes;
    assert!(stored < 1.1 * predictions.direct.bytes, "{stored} {:?}", predictions.direct);
}

/// A window of sorted rows belongs to one thread: there are several for each thread, of fewer rows than sigma.
#[test]
fn windows_of_sorted_rows_occupy_all_threads() {
    let a = matrix("ratings[rows=3000,cols=500,entries=60000,longest=400]");
    let two = Rates::typical().to_string().replace("threads 1", "threads 2");
    let two = two.replace("read-all 4e10 4e10 3e10", "read-all 8e10 8e10 6e10");
    let two = two.replace("start 1e-5", "start 1e-9").parse().unwrap();
    let predictions = predict(a.view(), 2, &two);
    let threads_of = |label| predictions.of(label).unwrap().threads;
    assert_eq!(threads_of("sell-compact[sigma=4096]"), 2);
    assert_eq!(threads_of("sell-compact[sigma=256]"), 2);
}

#[test]
fn bands_of_tiles_occupy_all_threads() {
    let has_tiles = |name: &str, threads| {
        let predictions = predict(matrix(name).view(), threads, &Rates::typical());
        predictions.converted.iter().any(|of| of.label.starts_with("sell-tiles"))
    };
    // Nine windows of 512 rows.
    let skewed = "powerlaw[rows=4400,cols=4400,entries=90000,longest=4000]";
    assert!(has_tiles(skewed, 2) && !has_tiles(skewed, 1));
    // Rows of one length need no sorting.
    assert!(!has_tiles("stencil5[n=50]", 2));
}

#[test]
fn the_choice_is_the_least_total() {
    let one = |label: &str, seconds, planning| Prediction {
        label: label.into(),
        threads: 1,
        seconds,
        planning,
        bytes: 0.0,
    };
    let converted = vec![one("a", 5.0, 1000.0), one("b", 6.0, 100.0)];
    let mut all = Predictions { direct: one("direct", 10.0, 0.0), converted, race: 3000.0 };
    let label = |all: &Predictions, products, clock| match all.choose(products, clock) {
        Choice::Direct => "direct".to_owned(),
        Choice::Convert(of) => of.label.clone(),
        Choice::Race => "race".to_owned(),
    };
    assert_eq!(all.pays_from(), Some(29));
    for clock in [false, true] {
        assert_eq!(label(&all, 0, clock), "direct");
        assert_eq!(label(&all, 28, clock), "direct");
        assert_eq!(label(&all, 29, clock), "b");
        assert_eq!(label(&all, 899, clock), "b");
        assert_eq!(label(&all, 901, clock), "a");
    }
    assert_eq!(label(&all, u64::MAX, false), "a");
    assert_eq!(label(&all, 100_000, true), "race");
    all.converted.clear();
    assert_eq!((all.pays_from(), label(&all, u64::MAX, false).as_str()), (None, "direct"));
}

#[test]
fn a_transposed_copy_is_made_where_it_pays() {
    let of = |direct, copied, copying| {
        let (converted, converting) = (copied, 0.0);
        TransposedPredictions { direct, copied, copying, converted, converting }
    };
    let slow = of(10.0, 5.0, 41.0);
    assert_eq!(slow.copy_after(None), Some(5));
    assert_eq!((slow.copy_after(Some(9)), slow.copy_after(Some(10))), (None, Some(0)));
    assert_eq!(of(10.0, 9.9, 1.0).copy_after(None), None);
    assert_eq!(of(10.0, 9.9, 1.0).copy_after(Some(u64::MAX)), None);
    // A conversion of the copy, which pays from 23 products on.
    let fast = TransposedPredictions { converted: 5.0, converting: 100.0, ..of(10.0, 9.9, 1.0) };
    let known = |products| fast.copy_after(Some(products));
    assert_eq!((fast.copy_after(None), known(22), known(23)), (Some(1), None, Some(0)));
    let a = matrix("uniform[rows=20000,cols=140000,entries=280000]");
    for threads in [1, 2] {
        let all = predict_transposed(a.view(), threads, &Rates::typical());
        assert!(all.direct > 0.0 && all.copied > 0.0 && all.copying > all.copied, "{all:?}");
    }
}

#[test]
fn any_matrix_has_predictions() {
    for (rows, cols) in [(0, 0), (0, 9), (9, 0), (5000, 1)] {
        let a = Csr::<f32>::empty(rows, cols).unwrap();
        let predictions = predict(a.view(), 3, &Rates::typical());
        let of = std::iter::once(&predictions.direct).chain(&predictions.converted);
        assert!(of.into_iter().all(|of| of.seconds.is_finite() && of.planning.is_finite()));
    }
    let one_long_row: Vec<u32> = (0..10_000).collect();
    let a = Csr::new((1, 10_000), vec![0, 10_000], one_long_row, vec![1.0; 10_000]).unwrap();
    assert!(predict(a.view(), 2, &Rates::typical()).direct.seconds > 0.0);
}

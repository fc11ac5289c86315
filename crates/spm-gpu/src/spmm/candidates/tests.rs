//! Which candidates the structure, the width and the layout leave.

use std::sync::Arc;

use spm_formats::{Csr, convert};
use spm_testing::{edge_cases, generate};

use super::*;
use crate::convert::Survey;
use crate::matrix::DeviceCsr;
use crate::problem::Problem;
use crate::spmm::auto;

/// Something like an H200.
const LARGE_DEVICE: Sizes = Sizes { resident: 1 << 18, l2_bytes: 60 << 20 };

fn source(name: &str) -> Source<f64> {
    of_matrix(&generate::named(name).unwrap().generate::<f64>().unwrap())
}

fn of_matrix(a: &Csr<f64>) -> Source<f64> {
    let device = Device::emulated(Default::default());
    let a = DeviceCsr::new(&device, a.view()).unwrap();
    Source::shared(Arc::new(a), false, |a, _| Survey::of_rows(a)).unwrap()
}

fn of(a: &Source<f64>, k: usize, layout: Layout) -> Vec<Candidate<f64>> {
    let budget = &MemoryBudget::default();
    let formats = Formats {
        sells: &|sigma, most| sells(a, sigma, most, budget),
        blocks: &|| blocks(a, budget),
    };
    chosen(Structure::of(a), LARGE_DEVICE, DenseShape { k, layout }, formats)
}

fn labels(a: &Source<f64>, k: usize, layout: Layout) -> Vec<String> {
    of(a, k, layout).into_iter().map(|candidate| candidate.label).collect()
}

#[test]
fn every_candidate_is_planned_on_the_device_and_takes_its_parameters() {
    for name in [
        "stencil5[n=9]",
        "banded[n=700,lower=20,upper=20]",
        "powerlaw[rows=900,cols=900,entries=2500,longest=400]",
        "mesh2[n=12,unknowns=3]",
        "uniform[rows=20000,cols=20000,entries=60000]",
    ] {
        let a = source(name);
        for (k, layout) in [2, 3, 4, 8, 32, 33, 64]
            .into_iter()
            .flat_map(|k| [(k, Layout::RowMajor), (k, Layout::ColumnMajor)])
        {
            let candidates = of(&a, k, layout);
            assert!((1..=4).contains(&candidates.len()), "{name}, {k}");
            for candidate in candidates {
                let (dense, device) = (DenseShape { k, layout }, a.csr.device());
                let (parameters, budget) = (&auto::INFO.defaults(), &MemoryBudget::default());
                let info = &auto::INFO;
                let problem =
                    Problem { info, device, a: &a, dense, parameters, budget, new_values: false };
                let plan = candidate.plan(problem);
                assert!(plan.is_ok(), "{}, {dense:?}", candidate.label);
            }
        }
    }
}

#[test]
fn statistics_decide_where_a_launch_takes_the_time() {
    let long = source("banded[n=700,lower=20,upper=20]");
    for (k, layout, expected) in [
        (4, Layout::RowMajor, "csr-row-split"),
        (8, Layout::ColumnMajor, "csr-vector"),
        (32, Layout::ColumnMajor, "csr-vector"),
    ] {
        assert_eq!(labels(&long, k, layout), [expected], "{k}");
    }
    let short = source("stencil5[n=20]");
    assert_eq!(labels(&short, 4, Layout::RowMajor), ["sell-row-split[sigma=1]"]);
}

/// Structure, k, layout, stored elements of SELL for each entry, unsorted and sorted; candidates.
type Case<'a> = (Structure, usize, Layout, (f64, f64), &'a [&'a str]);

/// Every branch, with matrices of all sizes.
#[test]
fn structure_width_and_layout_decide() {
    const SMALL: Structure =
        Structure { rows: 1000, cols: 1000, entries: 5000, mean_row: 5, longest_row: 9 };
    const LARGE: Structure =
        Structure { rows: 1 << 18, cols: 1 << 18, entries: 1 << 20, mean_row: 4, longest_row: 9 };
    let skewed = Structure { longest_row: 9000, ..LARGE };
    let skewed_short = Structure { longest_row: 9000, mean_row: 3, ..LARGE };
    let long = Structure { rows: 30_000, entries: 600_000, mean_row: 20, ..LARGE };
    let huge = Structure { entries: 1 << 24, mean_row: 64, longest_row: 64, ..LARGE };
    let middle = Structure { rows: 30_000, cols: 30_000, entries: 300_000, ..LARGE };
    let small_long = Structure { mean_row: 30, entries: 30_000, ..SMALL };
    let small_longer = Structure { mean_row: 200, entries: 200_000, ..SMALL };
    let (rows, columns) = (Layout::RowMajor, Layout::ColumnMajor);
    let (even, odd) = ("csr-nonzero-split[columns=2]", "csr-nonzero-split[columns=1]");
    let (lanes, entry_lanes) = ("csr-row-split", "csr-vector");
    let thread = |columns: usize| format!("sell-thread-per-row[columns={columns},sigma=1]");
    let [thread_2, thread_4, thread_8] = [2, 4, 8].map(thread);
    let (sell, sorted) = ("sell-row-split[sigma=1]", "sell-row-split[sigma=1024]");
    let wide = "sell-row-split[columns=2,sigma=1]";
    let (sell_four, even_four) =
        ("sell-row-split[columns=4,sigma=1]", "csr-nonzero-split[columns=4]");
    let most = "sell-row-split[block=64,columns=4,sigma=1]";
    let tiled = "csr-nonzero-split[columns=2,tile=16]";
    let tiled_odd = "csr-nonzero-split[columns=1,tile=16]";
    let sell_tiled = "sell-row-split[tile=16,sigma=1]";
    let sorted_tiled = "sell-row-split[tile=16,sigma=1024]";
    let [stream, small_stream, large_stream] =
        ["csr-stream", "csr-stream[block=64]", "csr-stream[block=256]"];
    let cases: &[Case] = &[
        (skewed, 8, columns, (9.0, 9.0), &[stream, "csr-segmented-sum"]),
        (skewed_short, 8, rows, (9.0, 9.0), &[stream]),
        (skewed_short, 33, rows, (9.0, 9.0), &[stream, odd, tiled_odd]),
        (Structure { longest_row: 900, ..SMALL }, 16, rows, (9.0, 9.0), &[stream]),
        (Structure { longest_row: 900, ..SMALL }, 64, rows, (9.0, 9.0), &[large_stream]),
        (Structure { longest_row: 900, ..SMALL }, 65, rows, (9.0, 9.0), &[stream]),
        (skewed, 32, columns, (9.0, 9.0), &[stream, even, tiled]),
        (skewed, 16, rows, (9.0, 9.0), &[stream, even]),
        // Column-major.
        (small_long, 8, columns, (1.0, 1.0), &[entry_lanes]),
        (small_long, 16, columns, (1.0, 1.0), &[entry_lanes]),
        (SMALL, 8, columns, (9.0, 9.0), &[entry_lanes, lanes, even]),
        (SMALL, 8, columns, (1.2, 1.0), &[&thread_4]),
        (Structure { mean_row: 2, ..SMALL }, 2, columns, (1.2, 1.0), &[&thread_2]),
        (long, 2, columns, (1.2, 1.0), &[sell, entry_lanes, &thread_2]),
        (long, 3, columns, (1.2, 1.0), &[sell, entry_lanes, &thread_4]),
        (long, 9, columns, (1.2, 1.0), &[sell, odd, &thread_4]),
        (LARGE, 8, columns, (1.2, 1.0), &[sell, entry_lanes, &thread_8, &thread_4]),
        // Row-major.
        (small_long, 8, rows, (1.0, 1.0), &[lanes]),
        (small_long, 16, rows, (1.0, 1.0), &[lanes, stream]),
        (Structure { mean_row: 12, ..SMALL }, 8, rows, (1.0, 1.0), &[lanes]),
        (Structure { mean_row: 11, ..SMALL }, 8, rows, (1.0, 1.0), &[sell]),
        (Structure { mean_row: 12, ..SMALL }, 16, rows, (1.0, 1.0), &[sell]),
        (Structure { mean_row: 64, ..small_long }, 4, rows, (1.0, 1.0), &[lanes]),
        (Structure { mean_row: 65, ..small_long }, 4, rows, (1.0, 1.0), &[lanes, stream]),
        (Structure { entries: 1 << 17, ..LARGE }, 8, rows, (1.0, 1.0), &[small_stream]),
        (Structure { entries: 1 << 17, ..LARGE }, 32, rows, (1.0, 1.0), &[small_stream]),
        (Structure { entries: 1 << 17, ..skewed }, 32, rows, (9.0, 9.0), &[stream, even, tiled]),
        (Structure { entries: 1 << 19, ..LARGE }, 8, rows, (1.0, 1.0), &[sell]),
        (Structure { entries: 1 << 19, ..LARGE }, 12, rows, (1.0, 1.0), &[sell, stream]),
        (Structure { entries: 1 << 19, ..LARGE }, 16, rows, (1.0, 1.0), &[sell_four, even_four]),
        (Structure { entries: 1 << 19, ..LARGE }, 32, rows, (1.0, 1.0), &[sell, even, sell_tiled]),
        (Structure { entries: 1 << 19, ..skewed }, 16, rows, (9.0, 9.0), &[stream, even_four]),
        (LARGE, 16, rows, (1.0, 1.0), &[sell_four]),
        (Structure { rows: 1 << 19, ..LARGE }, 8, rows, (1.0, 1.0), &[sell_four]),
        (Structure { rows: 1 << 19, ..LARGE }, 9, rows, (1.0, 1.0), &[sell, stream]),
        (Structure { rows: 1 << 19, ..LARGE }, 6, rows, (1.0, 1.0), &[sell]),
        (Structure { rows: (1 << 19) - 1, ..LARGE }, 8, rows, (1.0, 1.0), &[sell]),
        (Structure { rows: 1 << 19, ..LARGE }, 8, rows, (1.2, 1.0), &[sorted]),
        (Structure { rows: 1 << 19, mean_row: 20, ..LARGE }, 8, rows, (1.0, 1.0), &[sell]),
        (LARGE, 24, rows, (1.0, 1.0), &[sell_four, even, sell_tiled]),
        (LARGE, 31, rows, (1.0, 1.0), &[sell, odd, sell_tiled]),
        (long, 16, rows, (1.2, 1.0), &[sell, lanes, stream]),
        (SMALL, 8, rows, (1.2, 1.0), &[sell]),
        (Structure { entries: 900, ..SMALL }, 8, rows, (1.2, 1.0), &[sell]),
        (SMALL, 32, rows, (1.2, 1.0), &[wide]),
        (
            Structure { rows: 1 << 13, entries: 40_000, ..SMALL },
            32,
            rows,
            (1.2, 1.0),
            &[sell, wide],
        ),
        (SMALL, 33, rows, (1.2, 1.0), &[sell]),
        (small_long, 32, rows, (1.0, 1.0), &[wide]),
        (small_longer, 32, rows, (1.0, 1.0), &[wide, lanes, stream]),
        (small_longer, 64, rows, (1.0, 1.0), &[wide, large_stream]),
        (long, 8, rows, (1.2, 1.0), &[sell, lanes]),
        (Structure { mean_row: 33, ..long }, 8, rows, (1.2, 1.0), &[sell, lanes, stream]),
        (Structure { rows: 70_000, ..long }, 8, rows, (1.2, 1.0), &[sell]),
        (long, 8, rows, (9.0, 1.0), &[stream, lanes]),
        (LARGE, 8, rows, (1.2, 1.2), &[sorted]),
        (LARGE, 8, rows, (1.2, 1.6), &[stream, lanes]),
        (LARGE, 32, rows, (1.2, 1.6), &[stream, even, tiled]),
        (LARGE, 32, rows, (1.0, 1.0), &[sell, even, sell_tiled]),
        (LARGE, 32, rows, (1.2, 1.5), &[sorted, even, sorted_tiled]),
        (LARGE, 34, rows, (1.0, 1.0), &[sell, lanes, even, sell_tiled]),
        (LARGE, 33, rows, (1.0, 1.0), &[sell, odd, sell_tiled]),
        (LARGE, 64, rows, (1.0, 1.0), &[lanes, sell, even, sell_tiled]),
        (LARGE, 64, rows, (1.1, 1.0), &[lanes, even, sorted_tiled]),
        (LARGE, 64, rows, (1.1, 1.6), &[lanes, even, tiled]),
        (LARGE, 65, rows, (1.0, 1.0), &[sell, odd, sell_tiled]),
        (middle, 32, rows, (1.0, 1.0), &[sell, wide]),
        (middle, 64, rows, (1.0, 1.0), &[sell, wide]),
        (Structure { rows: 40_000, ..middle }, 64, rows, (1.1, 1.0), &[lanes, even]),
        (Structure { mean_row: 20, ..middle }, 64, rows, (1.0, 1.0), &[lanes, sell, even]),
        (
            Structure { cols: 1 << 20, ..middle },
            64,
            rows,
            (1.0, 1.0),
            &[sell, wide, lanes, even, sell_tiled],
        ),
        (huge, 32, rows, (1.0, 1.0), &[sell, even, sell_tiled]),
        (huge, 8, rows, (1.0, 1.0), &[sell, most]),
        (huge, 7, rows, (1.0, 1.0), &[sell]),
    ];
    for (number, &(a, k, layout, (unsorted, sorted), expected)) in cases.iter().enumerate() {
        let padded = |sigma: usize, most: f64| {
            assert!(sigma == 1 || sigma == SIGMA);
            (if sigma == 1 { unsorted } else { sorted }) <= most
        };
        let formats = Formats { sells: &padded, blocks: &|| None };
        let candidates = chosen::<f64>(a, LARGE_DEVICE, DenseShape { k, layout }, formats);
        let labels: Vec<_> = candidates.iter().map(|candidate| &candidate.label).collect();
        assert_eq!(labels, expected, "case {number}: {a:?}, {k} {layout:?}");
    }
}

/// Dense blocks: after SELL or CSR for a row-major X, in its place for a column-major one; not looked for where rows are
/// skewed, and where the launch takes the time.
#[test]
fn dense_blocks_decide() {
    const SMALL: Structure =
        Structure { rows: 999, cols: 999, entries: 40_000, mean_row: 40, longest_row: 60 };
    const LARGE: Structure =
        Structure { rows: 192_000, cols: 192_000, entries: 8_000_000, ..SMALL };
    let small_longer = Structure { entries: 200_000, mean_row: 200, ..SMALL };
    let huge = Structure { rows: 3_000_000, cols: 3_000_000, entries: 1 << 27, ..LARGE };
    let skewed = Structure { longest_row: 9000, ..LARGE };
    let (rows, columns) = (Layout::RowMajor, Layout::ColumnMajor);
    let in_blocks = |columns: &str| format!("bsr-row-split[{columns}size=3]");
    let [any, two, four] = ["", "columns=2,", "columns=4,"].map(in_blocks);
    let (sell, wide) = ("sell-row-split[sigma=1]", "sell-row-split[columns=2,sigma=1]");
    let thread = |columns: usize| format!("sell-thread-per-row[columns={columns},sigma=1]");
    let [thread_2, thread_4, thread_8] = [2, 4, 8].map(thread);
    let cases: &[(Structure, usize, Layout, bool, &[&str])] = &[
        (LARGE, 2, rows, true, &[sell, &any]),
        (LARGE, 7, rows, true, &[sell, &any]),
        (LARGE, 8, rows, true, &[sell, &two, &four]),
        (LARGE, 32, rows, true, &[sell, &two, &four]),
        (LARGE, 32, rows, false, &["csr-stream", &two, &four]),
        (huge, 2, rows, true, &[sell, &any]),
        (huge, 32, rows, true, &[sell, &four]),
        (SMALL, 16, rows, true, &["csr-row-split", "csr-stream", &two]),
        (LARGE, 64, rows, true, &["csr-row-split", sell, &two, &four]),
        (LARGE, 64, rows, false, &["csr-row-split", &two, &four]),
        (small_longer, 32, rows, true, &[wide, "csr-row-split", "csr-stream", &two]),
        (Structure { mean_row: 5, ..small_longer }, 32, rows, true, &[wide, &two]),
        (LARGE, 2, columns, true, &[&any, &thread_2]),
        (LARGE, 32, columns, true, &[&two, &four, &thread_8, &thread_4]),
        (huge, 32, columns, true, &[&four, &thread_8, &thread_4]),
    ];
    for (number, &(a, k, layout, padded_little, expected)) in cases.iter().enumerate() {
        let formats = Formats { sells: &|_, _| padded_little, blocks: &|| Some(3) };
        let candidates = chosen::<f64>(a, LARGE_DEVICE, DenseShape { k, layout }, formats);
        let labels: Vec<_> = candidates.iter().map(|candidate| &candidate.label).collect();
        assert_eq!(labels, expected, "case {number}: {a:?}, {k} {layout:?}");
    }
    let short = Structure { mean_row: 5, ..SMALL };
    for (a, k, layout) in [
        (SMALL, 8, rows),
        (SMALL, 32, rows),
        (short, 16, rows),
        (short, 16, columns),
        (skewed, 32, rows),
    ] {
        let formats = Formats { sells: &|_, _| true, blocks: &|| panic!("looked for blocks") };
        chosen::<f64>(a, LARGE_DEVICE, DenseShape { k, layout }, formats);
    }
}

/// A matrix is made to blocks where it has about as many as a sample says.
#[test]
fn blocks_are_found_and_counted() {
    let (budget, little) = (MemoryBudget::default(), MemoryBudget::bytes(100));
    assert_eq!(blocks(&source("stencil5[n=20]"), &budget), None);
    let mesh = source("mesh2[n=12,unknowns=3]");
    assert_eq!(blocks(&mesh, &little), None);
    assert_eq!(blocks(&mesh, &budget), Some(3));
    // Once for all plans.
    assert!(mesh.bsr_if(3, &little, |_| panic!("made again")).unwrap().is_some());
    // A sample has every second block row: whole blocks in those, an entry of each in the others.
    let rows = 0..64 * 3;
    let entries = rows.flat_map(|row: u32| {
        let whole = row / 3 % 2 != 1;
        let cols = (0..60).filter(move |col| whole || (row % 3 == 1 && col % 3 == 1));
        cols.map(move |col| (row, col))
    });
    let a = edge_cases::with_entries::<f64>((64 * 3, 60), entries);
    let a = of_matrix(&convert::coo_to_csr(&a));
    assert_eq!(a.blocks().unwrap().unwrap().size, 3);
    assert_eq!(blocks(&a, &budget), None);
}

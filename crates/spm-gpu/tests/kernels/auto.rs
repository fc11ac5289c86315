//! SpMV's `auto` on emulated devices of all kinds, with times that are given: every branch, and the
//! right result of each choice. (That of SpMM is beside its code; that of transpositions does not time.)

use spm_formats::kernel::Parameters;
use spm_formats::{Complex, Coo, Csr, convert};
use spm_gpu::{Device, DeviceScalar, EmulatedDevice, PlanOptions, Rates, spmv};
use spm_gpu_kernels::emulator::EmulatorOptions;
use spm_testing::edge_cases::with_entries;
use spm_testing::exact::{self, Whole};
use spm_testing::{generate, reference};

use crate::common::spmv::run;

/// A tenth of an H200, so that smaller matrices are large for it.
fn device(seconds: &[f64]) -> Device {
    let device = EmulatedDevice {
        l2_bytes: 5 << 20,
        multiprocessors: 13,
        seconds: seconds.to_vec(),
        rates: Some(Rates { launch_s: 2.5e-6, l2: 5e11, memory: 4e11 }),
    };
    Device::emulated_as(EmulatorOptions::default(), device)
}

/// What `auto` chooses for the pattern with values of this kind, when products take these times one
/// after another; the product is checked.
fn choice(name: &str, kind: Whole, parameters: &str, seconds: &[f64]) -> String {
    choice_for::<f64>(name, kind, parameters, seconds)
}

fn choice_for<T: DeviceScalar>(
    name: &str,
    kind: Whole,
    parameters: &str,
    seconds: &[f64],
) -> String {
    let pattern = generate::named(name).unwrap().generate::<T>().unwrap();
    choice_of(&exact::matrix(&convert::csr_to_coo(pattern.view()), kind), parameters, seconds)
}

fn choice_of<T: DeviceScalar>(a: &Coo<T>, parameters: &str, seconds: &[f64]) -> String {
    let x = exact::vector(a.cols());
    let (csr, expected) = (convert::coo_to_csr(a), reference::spmv(a, &x));
    let kernel = spmv::find::<T>("auto").unwrap();
    let parameters: Parameters = kernel.info.parse_parameters(parameters).unwrap();
    let device = device(seconds);
    let mut plan = kernel.plan(&device, csr.view(), &parameters, &PlanOptions::default()).unwrap();
    let choice = plan.choice().unwrap();
    let y = run(&mut *plan, &x).unwrap();
    assert_eq!(exact::difference(&y, &expected), None, "{seconds:?}, {choice}");
    choice
}

#[track_caller]
fn expect(expected: &str, name: &str, kind: Whole, seconds: &[f64]) {
    let choice = choice(name, kind, "", seconds);
    assert!(choice.starts_with(expected), "{name}, {kind:?}, {seconds:?}: {choice}");
}

/// Few entries in rows of much the same length: nothing is timed.
#[test]
fn small_matrices() {
    expect("csr-ell-columns", "stencil27[n=12]", Whole::Wide, &[]);
    expect("csr-ell-columns", "stencil5[n=60]", Whole::Wide, &[]);
    expect("csr-ell-columns", "stencil5[n=60]", Whole::Equal, &[]);
    // Most rows have no entry.
    let empty = "uniform[rows=9000,cols=9000,entries=600]";
    expect("csr-subwarp-per-row[block=256,threads-per-row=1", empty, Whole::Wide, &[]);
    // Stored elements for the longest row would be mostly empty: twice the threads per row while there
    // are few threads.
    let ragged = "powerlaw[rows=3000,cols=3000,entries=18000,longest=40]";
    expect("csr-subwarp-per-row[block=256,threads-per-row=4", ragged, Whole::Wide, &[]);
}

/// More rows than the near half of the cache holds, most of them without entries: segments for hardly any entries, else
/// a thread for each row; not timed.
#[test]
fn hypersparse_matrices() {
    let name = "uniform[rows=150000,cols=150000,entries=3000]";
    expect("csr-segmented-sum", name, Whole::Wide, &[2e-6, 1e-6]);
    let name = "uniform[rows=150000,cols=150000,entries=60000]";
    expect("csr-subwarp-per-row[block=256,threads-per-row=1", name, Whole::Wide, &[2e-6, 1e-6]);
}

/// Few entries and a long row: threads for the longest row with columns of their own where these are few and have few
/// steps, else segments, not timed; where they are more than run at once, threads per row by the clock beside segments.
#[test]
fn small_skewed_matrices() {
    let name = "powerlaw[rows=6000,cols=6000,entries=30000,longest=110]";
    let two = "csr-subwarp-per-row[block=256,threads-per-row=2";
    expect(two, name, Whole::Wide, &[1e-6, 2e-6]);
    expect("csr-segmented-sum", name, Whole::Wide, &[2e-6, 1e-6]);
    let long = "powerlaw[rows=3000,cols=3000,entries=15000,longest=2000]";
    expect("csr-segmented-sum", long, Whole::Wide, &[1e-6, 2e-6]);
    // Few steps, and many.
    let name = "powerlaw[rows=200,cols=800,entries=1500,longest=400]";
    expect("csr-ell-columns", name, Whole::Wide, &[]);
    let name = "powerlaw[rows=200,cols=800,entries=2500,longest=790]";
    expect("csr-segmented-sum", name, Whole::Wide, &[]);
    // The same steps on few threads and on many.
    let name = "powerlaw[rows=800,cols=3000,entries=4000,longest=300]";
    expect("csr-segmented-sum", name, Whole::Wide, &[]);
    // Segments are of the rows with entries, whose list takes time if there are others.
    let first_row_long = |shortest: u32| -> Coo<f64> {
        let length = |row: u32| if row == 0 { 350 } else { 3.min(shortest + row % 4) };
        let entries = (0..500).flat_map(|row| (0..length(row)).map(move |col| (row, col)));
        exact::matrix(&with_entries((500, 400), entries), Whole::Wide)
    };
    assert!(choice_of(&first_row_long(0), "", &[]).starts_with("csr-ell-columns"));
    assert!(choice_of(&first_row_long(1), "", &[]).starts_with("csr-segmented-sum"));
}

/// Complex matrices: few entries, a long row among few and among short ones, many entries in regular rows.
#[test]
fn complex_matrices() {
    let expect = |expected: &str, name: &str, seconds: &[f64]| {
        let choice = choice_for::<Complex<f64>>(name, Whole::Small, "", seconds);
        assert!(choice.starts_with(expected), "{name}, {seconds:?}: {choice}");
    };
    expect("csr-subwarp-per-row[threads-per-row=8]", "stencil27[n=6]", &[]);
    let skewed = "powerlaw[rows=3000,cols=3000,entries=15000,longest=2000]";
    expect("csr-segmented-sum", skewed, &[3e-6, 2e-6, 1e-6]);
    expect("csr-subwarp-per-row", skewed, &[2e-6, 1e-6, 3e-6]);
    let regular = "banded[n=1400,lower=20,upper=20]";
    // SELL, blocks, two numbers of threads per row.
    expect("sell[sigma=1]", regular, &[1e-6, 2e-6, 3e-6, 3e-6]);
}

/// Many entries on few diagonals: not timed.
#[test]
fn diagonals() {
    let name = "stencil5[n=105]";
    expect("dia-thread-per-row", name, Whole::Wide, &[]);
    expect("dia-thread-per-row", name, Whole::Equal, &[]);
    // 1.55 stored elements for each entry, in the cache.
    expect("dia-thread-per-row", "stencil9[n=110,drop=40]", Whole::Wide, &[]);
    // Outside the cache equal and few values are left out, which that format cannot.
    let outside = "banded[n=200000,lower=1,upper=1]";
    let stored = choice(outside, Whole::Wide, "compact=off", &[]);
    assert!(stored.starts_with("dia-thread-per-row"), "{stored}");
    let equal = choice(outside, Whole::Equal, "", &[]);
    assert!(!equal.starts_with("dia-thread-per-row"), "{equal}");
}

/// Many entries in dense blocks: not timed where the blocks are full and the rows much of one length.
#[test]
fn dense_blocks() {
    expect("bsr-subwarp-per-row[block=128,size=4", "mesh2[n=26,unknowns=4]", Whole::Wide, &[]);
    // Equal values are left out, which that format cannot.
    expect("sellp", "mesh2[n=30,unknowns=4]", Whole::Equal, &[]);
    // Blocks of two rows are too small.
    let pairs = choice("mesh2[n=46,unknowns=2,order=random]", Whole::Wide, "", &[2e-3, 1e-3, 3e-3]);
    assert!(!pairs.starts_with("bsr-subwarp-per-row"), "{pairs}");
    // Every 12th entry is missing: SELL-P, then blocks, two numbers of threads per row.
    let whole = generate::named("mesh2[n=28,unknowns=4]").unwrap().generate::<f64>().unwrap();
    let kept = (0_u32..).zip(whole.iter()).filter(|(entry, _)| entry % 12 > 0);
    let kept = kept.map(|(_, (row, col, _))| (row as u32, col as u32));
    let holed: Coo<f64> = exact::matrix(&with_entries(whole.shape(), kept), Whole::Wide);
    let choice = choice_of(&holed, "", &[2e-3, 1e-3, 3e-3, 3e-3, 3e-3, 3e-3]);
    assert!(choice.starts_with("bsr-subwarp-per-row[block=128,size=4"), "{choice}");
    let choice = choice_of(&holed, "", &[1e-3, 2e-3, 3e-3, 3e-3, 3e-3, 3e-3]);
    assert!(choice.starts_with("sellp"), "{choice}");
    let choice =
        choice_for::<Complex<f64>>("mesh2[n=26,unknowns=4]", Whole::Small, "", &[1e-6, 3e-6, 3e-6]);
    assert!(choice.starts_with("bsr-subwarp-per-row"), "{choice}");
}

/// In the near half of the cache: SELL-P where it takes little more than CSR, not timed. Without values it is timed where rows
/// are of different lengths.
#[test]
fn rows_near_each_other() {
    expect("sellp", "banded[n=2100,lower=20,upper=20]", Whole::Wide, &[]);
    for name in ["mesh2[n=120,order=rcm]", "kkt[n=100,constraints=3000]"] {
        expect("sellp", name, Whole::Wide, &[]);
        expect("sellp", name, Whole::Equal, &[1e-3, 2e-3, 3e-3]);
        expect("csr-subwarp-per-row", name, Whole::Equal, &[2e-3, 1e-3, 3e-3]);
    }
    // Elements without an entry take half as much again: threads per row, and segments where these are far from the bandwidth.
    let padded = "uniform[rows=9000,cols=250,entries=90000]";
    expect("csr-subwarp-per-row", padded, Whole::Wide, &[1e-3, 2e-3]);
    expect("csr-segmented-sum", padded, Whole::Wide, &[2e-3, 1e-3]);
    expect("csr-subwarp-per-row", padded, Whole::Wide, &[3e-6, 1e-6]);
    // A fifth more bytes.
    let longer = "uniform[rows=6500,cols=400,entries=90000]";
    expect("csr-subwarp-per-row", longer, Whole::Wide, &[1e-3, 2e-3]);
    // Without values, and with columns of a byte, twice as many elements take few bytes.
    let narrow = "uniform[rows=14000,cols=250,entries=84000]";
    expect("csr-subwarp-per-row", narrow, Whole::Equal, &[1e-3, 2e-3]);
}

/// Little more than small matrices: columns of their own where a thread has few elements, else threads for each row.
#[test]
fn few_entries_in_rows_of_different_lengths() {
    expect("csr-ell-columns", "banded[n=1400,lower=20,upper=20]", Whole::Wide, &[]);
    // Six stored columns for each thread, and four.
    expect("csr-subwarp-per-row", "mesh2[n=100,order=rcm]", Whole::Wide, &[]);
    expect("csr-ell-columns", "masked7[n=23,holes=30]", Whole::Wide, &[]);
    // A thread for each row would leave some idle; two do, but four would not begin at once.
    let threads = |count: usize| format!("csr-subwarp-per-row[block=256,threads-per-row={count}");
    expect(&threads(2), "uniform[rows=15000,cols=250,entries=55000]", Whole::Wide, &[]);
    expect(&threads(2), "uniform[rows=9000,cols=250,entries=54000]", Whole::Wide, &[]);
    expect(&threads(4), "uniform[rows=4000,cols=250,entries=27000]", Whole::Wide, &[]);
}

/// x is read all over: twice the threads for each row, and no SELL-P. Segments where a row is long, and blocks of columns where
/// rows have entries enough in each.
#[test]
fn scattered_rows() {
    for name in ["uniform[rows=9000,cols=20000,entries=80000]", "mesh2[n=120,order=random]"] {
        let four = "csr-subwarp-per-row[block=256,threads-per-row=4";
        // Whatever the clock says of segments and of SELL-P.
        expect(four, name, Whole::Wide, &[2e-3, 1e-3]);
        expect(four, name, Whole::Equal, &[1e-3, 2e-3]);
    }
    let two = "csr-subwarp-per-row[block=256,threads-per-row=2";
    expect(two, "uniform[rows=10000,cols=20000,entries=55000]", Whole::Wide, &[]);
    // The first row has 64 entries, the others 8 far from each other.
    let length = |row: u32| if row == 0 { 64 } else { 8 };
    let col = |row: u32, k: u32| 2500 * k + row.wrapping_mul(0x9e37_79b9) % 2500;
    let entries =
        |row: u32| (0..length(row)).map(move |k| (row, if row == 0 { k } else { col(row, k) }));
    let uneven: Coo<f64> =
        exact::matrix(&with_entries((10_000, 20_000), (0..10_000).flat_map(entries)), Whole::Wide);
    assert!(choice_of(&uneven, "", &[1e-3, 2e-3]).starts_with("csr-subwarp-per-row"));
    assert!(choice_of(&uneven, "", &[2e-3, 1e-3]).starts_with("csr-segmented-sum"));
    // All of x in L1; beyond, and far from the bandwidth: blocks of columns, and no others.
    let in_l1 = "uniform[rows=4000,cols=20000,entries=100000]";
    expect("csr-subwarp-per-row", in_l1, Whole::Wide, &[2e-3, 1e-3]);
    let long = "uniform[rows=4000,cols=30000,entries=100000]";
    expect("csr-column-blocks", long, Whole::Wide, &[1e-3, 5e-4, 1e-5]);
    expect("csr-subwarp-per-row", long, Whole::Wide, &[1e-3, 2e-3, 1e-5]);
    expect("csr-subwarp-per-row", long, Whole::Wide, &[3e-6, 2e-6]);
}

/// A matrix that the cache does not hold: rows sorted where they are of different lengths, and the segmented sum in place
/// of threads for each row.
#[test]
fn beyond_the_cache() {
    let name = "mesh2[n=190,order=rcm]";
    // Near the bandwidth: no more than the sorted rows.
    let sorted = choice_of(&general(name), "", &[9e-6]);
    assert!(sorted.contains("sellp") && sorted.contains("sigma=256"), "{sorted}");
    // Without shorter columns nothing is shorter than CSR.
    let whole = choice(name, Whole::Wide, "compact=off", &[9e-6, 8e-6]);
    assert!(whole.starts_with("csr-segmented-sum"), "{whole}");
}

/// The same with few distinct values or equal ones: SELL-P in the order of the rows, not timed; of equal values threads for
/// each row instead where rows are short, if they are not on few diagonals.
#[test]
fn reduced_values_beyond_the_cache() {
    let short = "mesh2[n=190,order=rcm]";
    let coded = choice(short, Whole::Small, "", &[]);
    assert!(coded.contains("sigma=1,") && coded.contains("codes=on"), "{coded}");
    let in_order = "sellp[block=256,threads-per-row=auto,sigma=1,";
    expect("csr-subwarp-per-row", short, Whole::Equal, &[]);
    expect(in_order, "mesh2[n=300]", Whole::Equal, &[]);
    expect(in_order, "mesh3[n=25,order=rcm]", Whole::Equal, &[]);
    // Dense blocks have no chunks by diagonal, if they are not those of a band.
    let diagonals = |name: &str| choice(name, Whole::Equal, "", &[]).contains("diagonals=on");
    assert!(!diagonals("mesh2[n=40,unknowns=5]") && diagonals("banded[n=9000,lower=20,upper=20]"));
    // Rows that would be stored with many empty places are sorted.
    let uneven =
        choice("powerlaw[rows=20000,cols=20000,entries=250000,longest=90]", Whole::Small, "", &[]);
    assert!(uneven.contains("sellp") && uneven.contains("sigma=256"), "{uneven}");
    // Columns that are far from each other take more bytes in SELL-P.
    let far = "uniform[rows=20000,cols=250000,entries=300000]";
    expect("csr-subwarp-per-row", far, Whole::Equal, &[1e-5]);
    // A long row may decide: by the clock.
    let skewed = "powerlaw[rows=50000,cols=20000,entries=350000,longest=5000]";
    expect("csr-segmented-sum", skewed, Whole::Equal, &[3e-3, 2e-3, 1e-3]);
    let mildly = "powerlaw[rows=70000,cols=70000,entries=250000,longest=40]";
    expect("csr-subwarp-per-row", mildly, Whole::Equal, &[]);
}

/// A matrix whose values need all bits, and are all different.
fn general(name: &str) -> Coo<f64> {
    let a = generate::named(name).unwrap().generate::<f64>().unwrap();
    let values = (1..=a.nnz()).map(|k| (k * ((1 << 26) + 1) % (1 << 36)) as f64).collect();
    let (row_ptr, col_ind) = (a.row_ptr().to_vec(), a.col_ind().to_vec());
    convert::csr_to_coo(Csr::new(a.shape(), row_ptr, col_ind, values).unwrap().view())
}

/// The same by the bytes of SELL-P: more than those of CSR, or a little fewer.
#[test]
fn beyond_the_cache_by_bytes() {
    let expect_general = |expected: &str, name: &str, seconds: &[f64]| {
        let choice = choice_of(&general(name), "", seconds);
        assert!(choice.starts_with(expected), "{name}, {seconds:?}: {choice}");
    };
    // Columns beyond 16 bits: SELL-P is not timed.
    let more = "mesh2[n=330,order=random]";
    expect_general("csr-segmented-sum", more, &[1e-3, 2e-3]);
    let fewer = "road[n=70000,edges=150000]";
    expect_general("sellp", fewer, &[1e-5, 2e-5]);
    expect_general("csr-segmented-sum", fewer, &[2e-5, 1e-5]);
    // With a long row it is not timed either.
    expect_general("csr-segmented-sum", "power[n=70000,extra=24000]", &[1e-5, 2e-5]);
}

/// Some entries of each row in each column block, beyond the near half of the cache: column blocks where the best of the others
/// takes longer than their bytes.
#[test]
fn short_parts_of_column_blocks() {
    let name = "uniform[rows=20000,cols=30000,entries=230000]";
    // Well ahead of SELL-P nothing else is timed; a little ahead segments may be faster.
    let a = general(name);
    let expect_general = |expected: &str, seconds: &[f64]| {
        let choice = choice_of(&a, "", seconds);
        assert!(choice.starts_with(expected), "{seconds:?}: {choice}");
    };
    expect_general("csr-column-blocks", &[1e-3, 5e-4, 1e-6]);
    expect_general("csr-segmented-sum", &[1e-3, 9e-4, 5e-4]);
    expect_general("csr-segmented-sum", &[1e-5, 9e-6, 1e-6]);
    // Of equal values segments are not faster than threads for each row.
    expect("csr-column-blocks", name, Whole::Equal, &[1e-3, 9e-4]);
    expect("csr-subwarp-per-row", name, Whole::Equal, &[1e-3, 2e-3]);
    expect("csr-subwarp-per-row", name, Whole::Equal, &[1e-5, 1e-6]);
    // A long row does not hold them up.
    let skewed = "powerlaw[rows=6000,cols=30000,entries=230000,longest=10000]";
    expect("csr-column-blocks", skewed, Whole::Wide, &[1e-3, 5e-4]);
    expect("csr-segmented-sum", skewed, Whole::Wide, &[1e-3, 2e-3]);
    // Less than an entry in each.
    let name = "uniform[rows=20000,cols=350000,entries=230000]";
    let choice = choice_of(&general(name), "", &[2e-3, 1e-3, 1e-6]);
    assert!(choice.starts_with("csr-segmented-sum"), "{choice}");
    expect("csr-subwarp-per-row", name, Whole::Equal, &[]);
}

/// Many entries and a long row: segments alone.
#[test]
fn large_skewed_matrices() {
    let name = "powerlaw[rows=6000,cols=6000,entries=54000,longest=3000]";
    expect("csr-segmented-sum", name, Whole::Wide, &[1e-3, 1e-6]);
    // Entries enough for blocks of columns, which the long row would hold up.
    let dense = "powerlaw[rows=2000,cols=30000,entries=56000,longest=10000]";
    expect("csr-segmented-sum", dense, Whole::Wide, &[1e-3, 1e-6]);
}

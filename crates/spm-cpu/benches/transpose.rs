//! CSR to CSC by every kernel, on matrices of different structure, and the procedures that
//! ScanTrans and MergeTrans are made of, alone. Throughput is the smallest traffic; there are no
//! floating-point operations.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spm_cpu::transpose::procedures;
use spm_cpu::{PlanOptions, Threads, transpose};
use spm_formats::kernel::TransposeOutput;
use spm_testing::generate;

const MATRICES: [&str; 4] = [
    "stencil5[n=3]",
    "stencil27[n=40]",
    "powerlaw[rows=400000,cols=400000,entries=1240000,longest=3000]",
    "uniform[rows=100000,cols=100000,entries=1500000]",
];

fn kernels(criterion: &mut Criterion) {
    let options = PlanOptions::default();
    for label in MATRICES {
        let recipe = generate::named(label).expect("a known kind");
        let a = recipe.generate::<f64>().expect("sizes that fit");
        let mut output = TransposeOutput::new(a.cols(), a.nnz());
        let mut group = criterion.benchmark_group(format!("transpose/{label}"));
        for kernel in transpose::registry::<f64>() {
            let plan = kernel.plan(a.view(), &kernel.info.defaults(), &options);
            // One of a kernel that is not for this matrix.
            let Ok(mut plan) = plan else { continue };
            group.throughput(Throughput::Bytes(plan.footprint().bytes_moved));
            group.bench_function(BenchmarkId::from_parameter(kernel.info.id), |bencher| {
                bencher.iter(|| plan.run(&mut output).expect("arrays of the right size"));
            });
        }
    }
}

/// On 2^22 elements, about as many as the larger matrices have entries.
fn alone(criterion: &mut Criterion) {
    const ELEMENTS: usize = 1 << 22;
    const BINS: usize = 1 << 16;
    let threads = Threads::all_cores();
    let mut sums = vec![0; threads.count()];
    let mut group = criterion.benchmark_group("transpose-procedures");
    let words = |count: usize| Throughput::Bytes((count * ELEMENTS * size_of::<u32>()) as u64);

    group.throughput(words(2));
    let mut ones = vec![0; ELEMENTS];
    group.bench_function("exclusive_scan", |bencher| {
        bencher.iter(|| {
            // Sums of sums would overflow.
            ones.fill(1);
            procedures::exclusive_scan(&threads, &mut ones, &mut sums)
        });
    });

    let columns: Vec<u32> = (0..ELEMENTS).map(|i| (i * 7919 % BINS) as u32).collect();
    let (mut pointers, mut counts) = (vec![0; BINS + 1], vec![0; BINS * threads.count()]);
    group.throughput(words(1));
    group.bench_function("index_to_pointers", |bencher| {
        bencher.iter(|| {
            let (pointers, counts) = (&mut pointers, &mut counts);
            procedures::index_to_pointers(&threads, &columns, pointers, counts, &mut sums);
        });
    });
    let mut index = vec![0; ELEMENTS];
    group.bench_function("pointers_to_index", |bencher| {
        bencher.iter(|| procedures::pointers_to_index(&threads, &pointers, &mut index));
    });

    let unsorted: Vec<u64> =
        (0_u64..).zip(&columns).map(|(i, &col)| (u64::from(col) << 32) | i).collect();
    let (mut keys, mut merged) = (unsorted.clone(), unsorted.clone());
    group.throughput(words(4));
    group.bench_function("segmented_sort", |bencher| {
        bencher.iter(|| {
            keys.copy_from_slice(&unsorted);
            procedures::segmented_sort(&threads, &mut keys, 1 << 12);
        });
    });
    group.bench_function("merge", |bencher| {
        bencher.iter(|| procedures::merge(&threads, &keys, &mut merged, 1 << 12));
    });
    group.finish();
}

criterion_group!(benches, kernels, alone);
criterion_main!(benches);

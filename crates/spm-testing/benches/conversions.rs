//! Every conversion of the registry, with its bytes (input and result once each) and entries.
//!
//! `cargo bench -p spm-testing --bench conversions -- 'coo-to-csr/'`

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spm_formats::convert::{ConversionInput, csr_to_coo, csr_to_csc, registry};
use spm_formats::{Coo, Csr, MemoryBudget};
use spm_testing::generate;
use spm_testing::reference::is_exactly;

/// Small enough for the row scans; even rows; short rows; no locality; long and empty rows.
const MATRICES: [&str; 5] = [
    "uniform[rows=800,cols=800,entries=24000]",
    "blocks[n=16,block=3]",
    "road[n=400000,edges=565000]",
    "uniform[rows=100000,cols=100000,entries=1500000]",
    "powerlaw[rows=400000,cols=400000,entries=1240000,longest=3000]",
];

/// The triplets sorted by row, by column as in Matrix Market files, and in no order.
fn orders(csr: &Csr<f64>) -> [(&'static str, Coo<f64>); 3] {
    let by_row = csr_to_coo(csr.view());
    let transposed = csr_to_csc(csr.view()).into_transposed();
    // The rows of the transpose are our columns.
    let by_column = csr_to_coo(transposed.view());
    let (cols, rows, values) = by_column.into_arrays();
    let by_column = Coo::new(csr.rows(), csr.cols(), rows, cols, values).expect("valid triplets");
    [("by-row", by_row.clone()), ("by-column", by_column), ("shuffled", shuffle(&by_row))]
}

/// Fisher-Yates with a fixed linear congruential generator.
fn shuffle(coo: &Coo<f64>) -> Coo<f64> {
    let mut order: Vec<usize> = (0..coo.entries()).collect();
    let mut state = 1_u64;
    for i in (1..order.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, ((state >> 33) % (i as u64 + 1)) as usize);
    }
    let pick = |indices: &[u32]| order.iter().map(|&i| indices[i]).collect();
    let values = order.iter().map(|&i| coo.values()[i]).collect();
    let (rows, cols) = (pick(coo.row_ind()), pick(coo.col_ind()));
    Coo::new(coo.rows(), coo.cols(), rows, cols, values).expect("a permutation of valid triplets")
}

fn conversions(criterion: &mut Criterion) {
    let budget = MemoryBudget::default();
    for name in MATRICES {
        let recipe = generate::named(name).expect("a known recipe");
        let csr: Csr<f64> = recipe.generate().expect("the recipe is sound");
        for (order, coo) in orders(&csr) {
            let input = ConversionInput { coo: &coo, csr: csr.view() };
            for kernel in registry() {
                // Conversions from CSR do not see the order of triplets.
                if kernel.info.id.starts_with("csr-") && order != "by-row" {
                    continue;
                }
                let parameters = kernel.info.defaults();
                let Ok(plan) = kernel.plan(input, &parameters, &budget) else { continue };
                assert!(
                    plan.run().is_ok_and(|converted| is_exactly(&converted, &coo)),
                    "wrong result"
                );
                let mut group = criterion.benchmark_group(kernel.info.label(&parameters));
                group.throughput(Throughput::ElementsAndBytes {
                    elements: coo.entries() as u64,
                    bytes: plan.footprint().bytes_moved,
                });
                group.bench_function(BenchmarkId::new(order, name), |bencher| {
                    bencher.iter_with_large_drop(|| plan.run());
                });
                group.finish();
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = conversions
}
criterion_main!(benches);

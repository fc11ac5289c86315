//! Products of the main kernels on matrices of different structure. Throughput is the smallest
//! traffic that a kernel's format allows; its elements are floating-point operations.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spm_cpu::{PlanOptions, spmv};
use spm_testing::generate;

const MATRICES: [&str; 6] = [
    "stencil5[n=3]",
    "stencil27[n=40]",
    "blocks[n=16,block=3]",
    "powerlaw[rows=400000,cols=400000,entries=1240000,longest=3000]",
    "uniform[rows=100000,cols=100000,entries=1500000]",
    "uniform[rows=1000000,cols=1000000,entries=50000]",
];

const KERNELS: [&str; 11] = [
    "csr-serial",
    "csr-rows",
    "csr-nnz-balanced",
    "csr-merge",
    "dcsr-rows",
    "hll-blocks",
    "sell",
    "csr-compact",
    "sell-compact",
    "sell-tiles",
    "auto",
];

fn spmv(criterion: &mut Criterion) {
    let options = PlanOptions::default();
    for label in MATRICES {
        let recipe = generate::named(label).expect("a known kind");
        let a = recipe.generate::<f64>().expect("sizes that fit");
        let x: Vec<f64> = (0..a.cols()).map(|j| (j as f64 * 0.7).sin()).collect();
        let mut y = vec![0.0; a.rows()];
        let mut group = criterion.benchmark_group(format!("spmv/{label}"));
        for id in KERNELS {
            let kernel = spmv::find::<f64>(id).expect("a registered kernel");
            let plan = kernel.plan(a.view(), &kernel.info.defaults(), &options);
            let plan = plan.expect("a kernel for every matrix");
            let (elements, bytes) = (2 * a.nnz() as u64, plan.footprint().bytes_moved);
            group.throughput(Throughput::ElementsAndBytes { elements, bytes });
            group.bench_function(BenchmarkId::from_parameter(id), |bencher| {
                bencher.iter(|| plan.run(&x, &mut y).expect("vectors of the right length"));
            });
        }
    }
}

criterion_group!(benches, spmv);
criterion_main!(benches);

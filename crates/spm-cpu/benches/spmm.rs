//! Y = A X of the main kernels, row-major, on matrices of different structure. Throughput is the
//! smallest traffic that a kernel's format allows; its elements are floating-point operations.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spm_cpu::{PlanOptions, spmm};
use spm_formats::{DenseShape, Layout};
use spm_testing::generate;

const MATRICES: [&str; 4] = [
    "stencil5[n=3]",
    "stencil27[n=40]",
    "powerlaw[rows=400000,cols=400000,entries=1240000,longest=3000]",
    "uniform[rows=100000,cols=100000,entries=1500000]",
];

const KERNELS: [&str; 5] = ["csr-serial", "csr-rows", "ell-rows-unpadded", "csr-blocked", "auto"];

fn spmm(criterion: &mut Criterion) {
    let options = PlanOptions::default();
    for label in MATRICES {
        let recipe = generate::named(label).expect("a known kind");
        let a = recipe.generate::<f64>().expect("sizes that fit");
        for k in [8, 64] {
            let dense = DenseShape { k, layout: Layout::RowMajor };
            let x: Vec<f64> = (0..a.cols() * k).map(|i| (i as f64 * 0.7).sin()).collect();
            let mut y = vec![0.0; a.rows() * k];
            let mut group = criterion.benchmark_group(format!("spmm/{label}/k={k}"));
            for id in KERNELS {
                let kernel = spmm::find::<f64>(id).expect("a registered kernel");
                let plan = kernel.plan(a.view(), dense, &kernel.info.defaults(), &options);
                let plan = plan.expect("a kernel for every matrix");
                let elements = 2 * (a.nnz() * k) as u64;
                let bytes = plan.footprint().bytes_moved;
                group.throughput(Throughput::ElementsAndBytes { elements, bytes });
                group.bench_function(BenchmarkId::from_parameter(id), |bencher| {
                    bencher.iter(|| plan.run(&x, &mut y).expect("matrices of the right size"));
                });
            }
        }
    }
}

criterion_group!(benches, spmm);
criterion_main!(benches);

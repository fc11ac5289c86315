//! Times SpMV kernels on generated matrices.
use std::time::Instant;

use spm_cpu::{PlanOptions, spmv};
use spm_formats::{generate, kernel::split_label};

fn median(run: &mut dyn FnMut(), seconds: f64) -> f64 {
    run();
    let start = Instant::now();
    run();
    let repetitions = (1e-4 / start.elapsed().as_secs_f64().max(1e-8)).ceil().max(1.0) as usize;
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 5 || start.elapsed().as_secs_f64() < seconds {
        let begin = Instant::now();
        for _ in 0..repetitions {
            run();
        }
        times.push(begin.elapsed().as_secs_f64() / repetitions as f64);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let mut args = std::env::args().skip(1);
    let threads: usize = args.next().unwrap().parse().unwrap();
    let labels = args.next().unwrap();
    let kernels: Vec<String> = args.collect();
    let options = PlanOptions::with_threads(threads);
    for label in labels.split('+') {
        let recipe = generate::named(label).unwrap();
        let a = recipe.generate::<f64>().unwrap();
        let x: Vec<f64> = (0..a.cols()).map(|j| (j as f64 * 0.7).sin()).collect();
        let mut y = vec![0.0; a.rows()];
        println!("{recipe}: {} x {}, {}", a.rows(), a.cols(), a.nnz());
        for kernel in &kernels {
            let (id, text) = split_label(kernel);
            let k = spmv::find::<f64>(id).unwrap();
            let start = Instant::now();
            match k.plan(&a.view(), &k.info.parse_parameters(text).unwrap(), &options) {
                Err(error) => println!("  {kernel:40} {error}"),
                Ok(mut plan) => {
                    let planned = start.elapsed().as_secs_f64();
                    let bytes = plan.footprint().bytes_moved as f64;
                    let t = median(&mut || plan.run(&x, &mut y).unwrap(), 0.2);
                    println!(
                        "  {kernel:40} {:10.2} us {:6.3} ns/entry {:6.1} GB/s, planned in {:.0} ms {}",
                        t * 1e6,
                        t * 1e9 / a.nnz() as f64,
                        bytes / t * 1e-9,
                        planned * 1e3,
                        plan.choice().unwrap_or_default()
                    );
                }
            }
        }
    }
}

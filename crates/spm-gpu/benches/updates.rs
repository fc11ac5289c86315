//! What alpha, beta, another addend and new values cost, beside y = A x, on the first GPU:
//!
//! ```text
//! cargo bench -p spm-gpu --bench updates [-- MATRIX...]
//! ```
//!
//! MATRIX is a generator as in `cargo xtask generate`. Times are the medians of one launch each, of device
//! time, in microseconds; for every matrix those of the kernel that `auto` chooses, and of the kernel that it
//! chooses for values that change.

use std::error::Error;
use std::time::Duration;

use spm_formats::Csr;
use spm_formats::kernel::Scaling;
use spm_formats::timing::Sampling;
use spm_gpu::{Device, DeviceBuffer, PlanOptions, Stream, spmv};
use spm_testing::generate;

const MATRICES: [&str; 8] = [
    "stencil27[n=100]",
    "stencil7[n=160]",
    "mesh3[n=110]",
    "uniform[rows=500000,cols=500000,entries=10000000]",
    "powerlaw[rows=500000,cols=500000,entries=8000000,longest=5000]",
    "rmat[scale=19,edges=8000000]",
    "banded[n=1000000,lower=8,upper=8]",
    "stencil27[n=30]",
];

type Any = Box<dyn Error>;

fn main() -> Result<(), Any> {
    let Ok(device) = Device::open(0) else {
        println!("no GPU: nothing is measured");
        return Ok(());
    };
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let matrices = if named.is_empty() { MATRICES.map(str::to_owned).to_vec() } else { named };
    println!(
        "| matrix | kernel | y = A x | y = 2 A x - y | r = b - A x | ratios | set_values | products |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for matrix in matrices {
        let a = match generate::named(&matrix) {
            Ok(recipe) => recipe.generate::<f64>()?,
            Err(error) => {
                println!("| {matrix} | {error} |");
                continue;
            }
        };
        for new_values in [false, true] {
            measure(&device, &matrix, &a, new_values)?;
        }
    }
    Ok(())
}

fn measure(device: &Device, matrix: &str, a: &Csr<f64>, new_values: bool) -> Result<(), Any> {
    let kernel = spmv::find::<f64>("auto").expect("a registered kernel");
    let options = PlanOptions { new_values, ..PlanOptions::default() };
    let mut plan = kernel.plan(device, a.view(), &kernel.info.defaults(), &options)?;
    let stream = Stream::new(device)?;
    let ones = |length: usize| DeviceBuffer::from_slice(device, &vec![1.0_f64; length]);
    let (x, b, mut y) = (ones(a.cols())?, ones(a.rows())?, ones(a.rows())?);
    let (min_time, max_time) = (Duration::from_millis(50), Duration::from_secs(2));
    let sampling = Sampling { warm_up: 10, iterations: 200, min_time, max_time };
    let micros = |seconds: f64| seconds * 1e6;
    let mut products = [f64::INFINITY; 3];
    // Interleaved; the least of the medians counts.
    for _ in 0..3 {
        let plain = spm_gpu::time(&stream, &sampling, |s| plan.launch(&x, &mut y, s))?;
        let scaling = Scaling::new(2.0, -1.0);
        let scaled =
            spm_gpu::time(&stream, &sampling, |s| plan.launch_scaled(scaling, &x, &mut y, s))?;
        let scaling = Scaling::new(-1.0, 1.0);
        let adding =
            spm_gpu::time(&stream, &sampling, |s| plan.launch_adding(scaling, &x, &b, &mut y, s))?;
        for (product, timing) in products.iter_mut().zip([plain, scaled, adding]) {
            *product = product.min(micros(timing.median_s));
        }
    }
    let values = DeviceBuffer::from_slice(device, a.values())?;
    let update = match plan.set_values(&values, &stream) {
        Ok(()) => {
            let timing = spm_gpu::time(&stream, &sampling, |s| plan.set_values(&values, s))?;
            Some(micros(timing.median_s))
        }
        Err(_) => None,
    };
    let [plain, scaled, adding] = products;
    let ratios = format!("{:.3}, {:.3}", scaled / plain, adding / plain);
    let choice = plan.choice().unwrap_or_default();
    print!("| {matrix} | {choice} | {plain:.2} | {scaled:.2} | {adding:.2} | {ratios} | ");
    match update {
        Some(update) => println!("{update:.2} | {:.2} |", update / plain),
        None => println!("refused | |"),
    }
    Ok(())
}

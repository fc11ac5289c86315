//! Time from opening the first GPU to the first product, and to that of all kernels:
//!
//! ```text
//! CUDA_CACHE_DISABLE=1 cargo bench -p spm-gpu --bench startup
//! ```
//!
//! The driver compiles each kernel at its first launch, and keeps the result between programs unless the
//! variable tells it not to: with it the times are those of the first program on a machine.

use std::error::Error;
use std::time::Instant;

use spm_gpu::{Device, DeviceBuffer, PlanOptions, Stream, spmv};
use spm_testing::generate;

fn main() -> Result<(), Box<dyn Error>> {
    let a = generate::named("stencil27[n=40]")?.generate::<f64>()?;
    for id in ["csr-subwarp-per-row", "auto"] {
        let start = Instant::now();
        let Ok(device) = Device::open(0) else {
            println!("no GPU: nothing is measured");
            return Ok(());
        };
        let opened = start.elapsed();
        let kernel = spmv::find::<f64>(id).expect("a registered kernel");
        let options = PlanOptions::default();
        let mut plan = kernel.plan(&device, a.view(), &kernel.info.defaults(), &options)?;
        let planned = start.elapsed();
        let stream = Stream::new(&device)?;
        let x = DeviceBuffer::from_slice(&device, &vec![1.0; a.cols()])?;
        let mut y = DeviceBuffer::<f64>::zeroed(&device, a.rows())?;
        plan.launch(&x, &mut y, &stream)?;
        y.to_vec()?;
        let product = start.elapsed();
        println!(
            "{id}: device open after {opened:.1?}, planned after {planned:.1?}, product after {product:.1?}"
        );
    }
    let device = Device::open(0)?;
    let start = Instant::now();
    device.load_kernels()?;
    println!("all kernels: {:.1?}", start.elapsed());
    Ok(())
}

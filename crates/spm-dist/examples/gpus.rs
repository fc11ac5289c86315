//! Times products and conjugate gradients on GPUs, for ranks that are threads of this process.
//!
//! `cargo run --release -p spm-dist --features gpu --example gpus -- [SIDE] [RANKS] [GPUS] [KERNEL]`, for example
//! `160 1,2,4 4 auto`: a 27-point stencil on SIDE^3 points, divided into slabs. Rank r has GPU r modulo GPUS:
//! with fewer GPUs than ranks this measures what the exchange costs, not how products scale. Without a GPU the
//! emulator does the work; its times say nothing.

use std::error::Error;
use std::time::Instant;

use spm_dist::gpu::{DeviceOperator, DeviceOptions, Nccl, Transport, conjugate_gradients};
use spm_dist::threads::{self, ThreadCommunicator};
use spm_dist::{
    CgOptions, Communicator, DistCsr, DistError, Kernel, Partition, Rows, Times, largest,
};
use spm_gpu::{Device, DeviceVector, Stream};
use spm_testing::allocations::{Counting, of_this_thread};
use spm_testing::distributed::element;

/// Counts allocations: a product makes none.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The rows of a rank: 27 points, diagonally dominant, values that differ.
fn stencil(n: u64, comm: &impl Communicator) -> Result<DistCsr<f64>, DistError> {
    let points = n * n * n;
    let rows = Partition::even(points, comm.size());
    let matrix = Rows::generate(rows.range(comm.rank()), points, |i, row| {
        let (x, y, z) = (i % n, i / n % n, i / n / n);
        let around = |at: u64| at.saturating_sub(1)..(at + 2).min(n);
        for z in around(z) {
            for y in around(y) {
                for x in around(x) {
                    let j = (z * n + y) * n + x;
                    let off = -1.0 + ((i ^ j) % 64) as f64 / 128.0;
                    row.push((j, if i == j { 27.0 } else { off }));
                }
            }
        }
    })?;
    DistCsr::new(comm, &rows, &rows, matrix)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Of all elements of y, the same for any division.
fn digest(comm: &impl Communicator, first: u64, y: &[f64]) -> Result<u64, DistError> {
    let mix = |(i, y): (usize, &f64)| {
        let at = (first + i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (at ^ y.to_bits()).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29)
    };
    let sum = y.iter().enumerate().map(mix).fold(0, u64::wrapping_add);
    let all = comm.all_gather(&sum.to_le_bytes())?;
    let number = |bytes: &Vec<u8>| u64::from_le_bytes(bytes[..].try_into().unwrap_or([0; 8]));
    Ok(all.iter().map(number).fold(0, u64::wrapping_add))
}

/// Seconds of a product on the slowest rank, put into the stream one after another.
fn seconds_of(
    comm: &impl Communicator,
    mut product: impl FnMut() -> Result<(), DistError>,
    end: &Stream,
    rounds: usize,
) -> Result<f64, DistError> {
    product()?;
    let mut times = Vec::new();
    for _ in 0..7 {
        end.synchronize()?;
        comm.all_gather(&[])?;
        let start = Instant::now();
        (0..rounds).try_for_each(|_| product())?;
        end.synchronize()?;
        times.push(largest(comm, start.elapsed().as_secs_f64() / rounds as f64)?);
    }
    Ok(median(&mut times))
}

/// One line of the table.
fn measure(
    comm: &ThreadCommunicator,
    device: &Device,
    a: &DistCsr<f64>,
    options: &DeviceOptions,
) -> Result<(), DistError> {
    let planned = Instant::now();
    let mut op = DeviceOperator::new(comm, device, a.clone(), options)?;
    let planned = planned.elapsed().as_secs_f64();
    let rounds = if device.is_emulated() { 2 } else { 100 };
    let stream = Stream::new(device)?;
    let first = a.col_partition().range(comm.rank()).start;
    let x: Vec<f64> = (0..a.local_cols() as u64).map(|i| element(first + i)).collect();
    let x = DeviceVector::from_slice(&stream, &x)?;
    let mut y = DeviceVector::zeros(&stream, a.local_rows())?;
    let seconds = seconds_of(comm, || op.apply(&x, &mut y), &stream, rounds)?;
    let before = of_this_thread();
    (0..5).try_for_each(|_| op.apply(&x, &mut y))?;
    let allocations = largest(comm, (of_this_thread() - before) as f64 / 5.0)?;
    let mut parts: [Vec<f64>; 4] = Default::default();
    for _ in 0..21 {
        comm.all_gather(&[])?;
        let Times { pack, local, wait, boundary } = op.apply_in_parts(&x, &mut y)?;
        for (all, one) in parts.iter_mut().zip([pack, local, wait, boundary]) {
            all.push(largest(comm, one)?);
        }
    }
    let [pack, local, wait, boundary] = parts.map(|mut part| median(&mut part) * 1e6);
    let bytes = comm.all_gather(&op.bytes_moved().to_le_bytes())?;
    let bytes: u64 =
        bytes.iter().map(|b| u64::from_le_bytes(b[..].try_into().unwrap_or([0; 8]))).sum();
    let digest = digest(comm, first, &y.to_vec()?)?;

    let b = DeviceVector::from_slice(&stream, &vec![1.0; a.local_rows()])?;
    let mut solution = DeviceVector::zeros(&stream, a.local_rows())?;
    let start = Instant::now();
    let iterations = CgOptions { tolerance: 0.0, max_iterations: rounds };
    conjugate_gradients(comm, &mut op, &b, &mut solution, &iterations)?;
    stream.synchronize()?;
    let iteration = largest(comm, start.elapsed().as_secs_f64() / rounds as f64)? * 1e6;
    let ghosts = a.halo().ghosts().len();
    if comm.rank() == 0 {
        let (ranks, transport) = (comm.size(), op.transport().to_string());
        let (us, tb) = (seconds * 1e6, bytes as f64 / seconds * 1e-12);
        println!(
            "{ranks:>5} {transport:>9} {us:>10.1} {tb:>6.2} {pack:>7.1} {wait:>9.1} {local:>9.1} \
             {boundary:>9.1} {iteration:>9.1} {ghosts:>8} {allocations:>6} {planned:>6.2} {digest:016x} {}",
            op.kernel()
        );
        if op.boundary_kernel() != op.kernel() {
            println!("{:>120} {}", "boundary rows:", op.boundary_kernel());
        }
    }
    Ok(())
}

/// The plan of one device, without any rank.
fn alone(
    comm: &ThreadCommunicator,
    device: &Device,
    a: &DistCsr<f64>,
    label: &str,
) -> Result<(), DistError> {
    let rows = a.to_rows();
    let (row_ptr, col_ind) = (rows.row_ptr(), rows.col_ind());
    let narrow = |values: &[u64]| values.iter().map(|&value| value as u32).collect::<Vec<u32>>();
    let row_ptr: Vec<u32> = row_ptr.iter().map(|&end| end as u32).collect();
    let shape = (a.local_rows(), a.local_cols());
    let a = spm_formats::Csr::new(shape, row_ptr, narrow(col_ind), rows.values().to_vec())?;
    let (id, parameters) = spm_formats::kernel::split_label(label);
    let Some(kernel) = spm_gpu::spmv::find::<f64>(id) else { return Ok(()) };
    let parameters = kernel.info.parse_parameters(parameters);
    let parameters = parameters.map_err(|error| DistError::File(error.to_string()))?;
    let mut plan = kernel.plan(device, a.view(), &parameters, &Default::default())?;
    let stream = Stream::new(device)?;
    let x: Vec<f64> = (0..a.cols()).map(|i| 0.5 + (i % 17) as f64 / 17.0).collect();
    let x = DeviceVector::from_slice(&stream, &x)?;
    let mut y = DeviceVector::zeros(&stream, a.rows())?;
    let rounds = if device.is_emulated() { 2 } else { 100 };
    let product = || Ok(plan.launch(x.elements(), y.elements_mut(), &stream)?);
    let seconds = seconds_of(comm, product, &stream, rounds)?;
    let digest = digest(comm, 0, &y.to_vec()?)?;
    let tb = plan.footprint().bytes_moved as f64 / seconds * 1e-12;
    println!("    -     alone {:>10.1} {tb:>6.2} {:>78} {digest:016x}", seconds * 1e6, "");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let argument = |position: usize, default: &str| {
        std::env::args().nth(position).unwrap_or_else(|| default.to_owned())
    };
    let (side, gpus) = (argument(1, "6").parse::<u64>()?, argument(3, "1").parse::<usize>()?);
    let label = argument(4, "csr-subwarp-per-row[threads-per-row=8]");
    let ranks = argument(2, "1,2,4");
    let ranks = ranks.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let devices: Vec<Device> = match (0..gpus.max(1) as u32).map(Device::open).collect() {
        Ok(devices) => devices,
        Err(error) => {
            println!("the emulator: {error}");
            vec![Device::emulated(Default::default())]
        }
    };
    println!("{side}^3 points, {} x {}", devices.len(), devices[0].info().name);
    println!(
        "ranks transport product_us   TB/s pack_us exchange_ local_us boundary_ cg_iter_us  ghosts alloc/ plan_s \
         digest           kernel"
    );
    for ranks in ranks {
        threads::run(ranks, |comm| {
            let device = &devices[comm.rank() % devices.len()];
            let a = stencil(side, comm)?;
            let mut options = DeviceOptions::default();
            options.kernel = match &*label {
                "auto" => Kernel::Auto,
                label => Kernel::Fixed(label.to_owned()),
            };
            if ranks == 1 {
                alone(comm, device, &a, &label)?;
            }
            let nccl = if ranks <= devices.len() {
                Nccl::new(comm, device)
            } else {
                Err(DistError::Unprepared("fewer GPUs than ranks"))
            };
            let mut transports = vec![Transport::Peers, Transport::Staged];
            match nccl {
                Ok(nccl) => {
                    options.nccl = Some(nccl);
                    transports.push(Transport::Nccl);
                }
                Err(error) if comm.rank() == 0 => println!("no NCCL: {error}"),
                Err(_) => {}
            }
            for transport in transports.into_iter().chain([Transport::Auto]) {
                options.transport = transport;
                measure(comm, device, &a, &options)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

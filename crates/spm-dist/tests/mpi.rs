//! Products and faults on ranks that are processes. `.ci/mpi` starts this program under `mpirun`; alone
//! it is one rank.
//!
//! Usage: PROGRAM [FAULT], where FAULT is `panic`, `abort`, `error`, `matrix`, `partition` or `length`: such a run
//! has to fail.

mod common;

use std::error::Error;
use std::process::ExitCode;

use common::{distribute, matrices, sliced};
use spm_cpu::{PlanOptions, spmv};
use spm_dist::gpu::{DeviceOperator, DeviceOptions, Transport};
use spm_dist::mpi::{self, MpiCommunicator};
use spm_dist::{
    CgOptions, Communicator, DistCsr, DistOperator, Kernel, Options, Partition, Rows,
    conjugate_gradients,
};
use spm_formats::Csr;
use spm_formats::kernel::ProductPlan;
use spm_gpu::{Device, DeviceVector, EmulatorOptions, Stream};
use spm_testing::edge_cases::vector;

fn main() -> ExitCode {
    let fault = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    mpi::run(|comm| match fault.as_deref() {
        None => {
            messages(comm)?;
            products(comm)?;
            products_on_devices(comm)?;
            solution(comm)?;
            if comm.rank() == 0 {
                println!("mpi: {} ranks passed", comm.size());
            }
            Ok(())
        }
        Some(fault) => faults(comm, fault),
    })
}

/// The calls below the products.
fn messages(comm: &MpiCommunicator) -> Result<(), Box<dyn Error>> {
    let (rank, size) = (comm.rank(), comm.size());
    let all = comm.all_gather(&vec![rank as u8; rank])?;
    assert!(all.iter().enumerate().all(|(other, bytes)| *bytes == vec![other as u8; other]));
    // Each rank to the next one, and an empty message to itself.
    let next = (rank + 1) % size;
    let text = [rank as u8, 7];
    let outgoing: &[(usize, &[u8])] =
        if size > 1 { &[(next, &text), (rank, &[])] } else { &[(rank, &[])] };
    let incoming = comm.exchange(outgoing)?;
    let before = (rank + size - 1) % size;
    assert!(incoming.contains(&(rank, Vec::new())));
    assert!(size == 1 || incoming.contains(&(before, vec![before as u8, 7])));
    let mut sums = [1.0, rank as f64];
    comm.sum(&mut sums)?;
    assert_eq!(sums, [size as f64, (size * (size - 1) / 2) as f64]);
    if size > 1 {
        let mut channel = comm.channel(&[(next, 3)], &[(before, 3)])?;
        for round in 0..5_u8 {
            channel.outgoing().copy_from_slice(&[rank as u8, round, 9]);
            channel.start()?;
            while round % 2 == 0 && !channel.poll()? {}
            channel.wait()?;
            assert_eq!(channel.incoming(), [before as u8, round, 9]);
        }
    }
    Ok(())
}

/// The bits of one device, the transpose and new values.
fn products(comm: &MpiCommunicator) -> Result<(), Box<dyn Error>> {
    for (name, a) in matrices() {
        let x = vector::<f64>(a.cols());
        let kernel = spmv::find::<f64>("csr-nnz-balanced").expect("a kernel");
        let plan = kernel.plan(&a, &kernel.info.defaults(), &PlanOptions::with_threads(1))?;
        let mut expected = vec![0.0; a.rows()];
        plan.run(&x, &mut expected)?;
        let mine = distribute(comm, &a)?;
        let expected = sliced(&expected, mine.row_partition(), comm.rank(), 1);
        let x = sliced(&x, mine.col_partition(), comm.rank(), 1);
        let mut options = Options::default();
        options.kernel = Kernel::Fixed("csr-nnz-balanced".to_owned());
        options.transpose = true;
        let mut op = DistOperator::new(comm, mine, &options)?;
        let mut y = vec![f64::NAN; expected.len()];
        for _ in 0..3 {
            op.apply(&x, &mut y)?;
            let same = y.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{name} on rank {}", comm.rank());
        }
        // The transpose twice.
        assert_eq!(
            op.matrix().transposed(comm)?.transposed(comm)?.to_rows(),
            op.matrix().to_rows()
        );
        // (A^T y, x) = (y, A x)
        let mut t = vec![0.0; x.len()];
        op.apply_transpose(&y, &mut t)?;
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut products = [dot(&t, &x), dot(&y, &y)];
        comm.sum(&mut products)?;
        assert!((products[0] - products[1]).abs() <= 1e-9 * products[1].max(1.0), "{name}");
    }
    Ok(())
}

/// The same on emulated devices, through host memory; copies between devices are not possible.
fn products_on_devices(comm: &MpiCommunicator) -> Result<(), Box<dyn Error>> {
    let label = "csr-thread-per-row";
    for (name, a) in matrices() {
        let device = Device::emulated(EmulatorOptions { deferred: true, ..Default::default() });
        let stream = Stream::new(&device)?;
        let x = vector::<f64>(a.cols());
        let kernel = spm_gpu::spmv::find::<f64>(label).expect("a kernel");
        let parameters = kernel.info.defaults();
        let plan = kernel.plan_on_host(&device, a.view(), &parameters, &Default::default())?;
        let mut expected = vec![0.0; a.rows()];
        plan.run(&x, &mut expected)?;
        let mine = distribute(comm, &a)?;
        let expected = sliced(&expected, mine.row_partition(), comm.rank(), 1);
        let x = sliced(&x, mine.col_partition(), comm.rank(), 1);
        let x = DeviceVector::from_slice(&stream, &x)?;
        let mut y = DeviceVector::zeros(&stream, expected.len())?;
        let mut options = DeviceOptions::default();
        options.kernel = Kernel::Fixed(label.to_owned());
        let mut op = DeviceOperator::new(comm, &device, mine.clone(), &options)?;
        assert_eq!(op.transport(), Transport::Staged);
        for _ in 0..3 {
            op.apply(&x, &mut y)?;
        }
        let found = y.to_vec()?;
        let same = found.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{name} on rank {}", comm.rank());
        options.transport = Transport::Peers;
        let refused = DeviceOperator::new(comm, &device, mine, &options).unwrap_err();
        assert!(refused.to_string().contains("need one process"), "{refused}");
    }
    Ok(())
}

/// Conjugate gradients on a generated matrix.
fn solution(comm: &MpiCommunicator) -> Result<(), Box<dyn Error>> {
    let (n, rank) = (500, comm.rank());
    let rows = Partition::even(n, comm.size());
    let matrix = Rows::generate(rows.range(rank), n, |i, row| {
        row.extend((i > 0).then(|| (i - 1, -1.0)));
        row.push((i, 2.5));
        row.extend((i + 1 < n).then_some((i + 1, -1.0)));
    })?;
    let a = DistCsr::new(comm, &rows, &rows, matrix)?;
    let mut op = DistOperator::new(comm, a, &Options::default())?;
    let exact: Vec<f64> = rows.range(rank).map(|i| (i % 7) as f64 - 3.0).collect();
    let (mut b, mut x) = (vec![0.0; exact.len()], vec![0.0; exact.len()]);
    op.apply(&exact, &mut b)?;
    let end = conjugate_gradients(comm, &mut op, &b, &mut x, &CgOptions::default())?;
    assert!(end.converged, "{end:?}");
    assert!(x.iter().zip(&exact).all(|(x, exact)| (x - exact).abs() < 1e-6));
    Ok(())
}

/// What ends all ranks with one message.
fn faults(comm: &MpiCommunicator, fault: &str) -> Result<(), Box<dyn Error>> {
    let n = 30;
    let entries = (0..n).flat_map(|i| [(i, i, 2.0), (i, (i + 1) % n, -1.0)]);
    let a = Csr::from_triplets((n, n), entries)?;
    let guilty = comm.rank() + 1 == comm.size();
    if fault == "partition" {
        // For another number of ranks: refused before any exchange.
        let rows = Partition::even(n as u64, comm.size() + 1);
        let mine = Rows::of(a.view(), rows.range(comm.rank()));
        DistCsr::new(comm, &rows, &rows, mine)?;
    }
    if fault == "matrix" {
        // One rank has a matrix with another number of columns.
        let cols = Partition::even((n + usize::from(guilty)) as u64, comm.size());
        let rows = Partition::even(n as u64, comm.size());
        let own = rows.range(comm.rank());
        let mine = Rows::generate(own, cols.total(), |i, row| row.push((i, 1.0)))?;
        DistCsr::new(comm, &rows, &cols, mine)?;
    }
    let mut op = DistOperator::new(comm, distribute(comm, &a)?, &Options::default())?;
    let (x, mut y) = (vec![1.0; op.matrix().local_cols()], vec![0.0; op.matrix().local_rows()]);
    for round in 0..1_000_000 {
        if guilty && round == 3 {
            match fault {
                "panic" => panic!("a fault on purpose"),
                // As a signal or a lack of memory ends it: nothing is unwound.
                "abort" => std::process::abort(),
                "error" => return Err("the disk is full".into()),
                "length" => op.apply(&x[1..], &mut y)?,
                _ => return Err(format!("no fault is called {fault}").into()),
            }
        }
        op.apply(&x, &mut y)?;
    }
    Ok(())
}

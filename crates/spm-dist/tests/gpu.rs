//! Products on devices: ranks that share an emulated device or have one each, with streams in different orders
//! and delayed messages, against one device, bit by bit. With a GPU the same on that GPU.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{by_rank, distribute, gathered, matrices, sliced};
use spm_dist::gpu::{DeviceOperator, DeviceOptions, Nccl, Transport, conjugate_gradients};
use spm_dist::threads::{Delivery, ThreadCommunicator, run, run_with};
use spm_dist::{CgOptions, Communicator, DistCsr, DistError, Kernel, Partition, Rows};
use spm_formats::kernel::{Scaling, split_label};
use spm_formats::{Complex, Csr, DenseShape, Layout, MemoryBudget};
use spm_gpu::{Device, DeviceBuffer, DeviceVector, EmulatorOptions, GpuError, Stream, spmm, spmv};
use spm_testing::edge_cases::vector;

/// Kernels that sum each row by itself, with parameters that do not depend on the matrix.
const ROW_WISE: [&str; 4] = [
    "csr-subwarp-per-row[threads-per-row=4]",
    "csr-thread-per-row",
    "csr-warp-per-row",
    "hll-thread-per-row",
];

/// The devices of ranks.
#[derive(Debug, Clone)]
enum Devices {
    /// All ranks have this one.
    Shared(Device),
    /// Each has an emulated one of its own.
    Emulated(EmulatorOptions),
    /// Each has the GPU of its number, or, where there are fewer, a handle of its own of the first one.
    Opened,
}

impl Devices {
    fn of_rank(&self, rank: usize) -> Device {
        match self {
            Self::Shared(device) => device.clone(),
            Self::Opened => {
                let own = Device::open(u32::try_from(rank).unwrap());
                own.or_else(|_| Device::open(0)).unwrap()
            }
            Self::Emulated(options) => {
                Device::emulated(EmulatorOptions { seed: options.seed + rank as u64, ..*options })
            }
        }
    }
}

/// Work in streams that is done in an order of this seed, when something waits for it.
fn deferred(seed: u64) -> EmulatorOptions {
    EmulatorOptions { seed, deferred: true, ..EmulatorOptions::default() }
}

/// Ranks, the seed that delays messages, devices, and a transport.
struct Setting {
    ranks: usize,
    seed: Option<u64>,
    devices: Devices,
    transport: Transport,
}

fn settings() -> Vec<Setting> {
    let shared = |options| Devices::Shared(Device::emulated(options));
    let mut all = Vec::new();
    let mut add = |ranks, seed, devices, transport| {
        all.push(Setting { ranks, seed, devices, transport });
    };
    use Transport::{Auto, Peers, Staged};
    add(1, None, shared(deferred(1)), Peers);
    add(1, None, shared(Default::default()), Staged);
    add(2, None, shared(deferred(2)), Auto);
    add(2, Some(1), Devices::Emulated(deferred(3)), Peers);
    add(3, Some(2), shared(deferred(4)), Peers);
    add(3, Some(3), shared(deferred(5)), Staged);
    add(4, Some(4), Devices::Emulated(Default::default()), Staged);
    add(4, None, shared(deferred(6)), Peers);
    add(7, Some(5), shared(deferred(7)), Peers);
    add(7, Some(6), Devices::Emulated(deferred(8)), Peers);
    match Device::available() {
        Ok(device) => {
            for (ranks, transport) in [(1, Peers), (2, Peers), (3, Staged), (4, Auto), (7, Peers)] {
                add(ranks, None, Devices::Shared(device.clone()), transport);
            }
            add(3, Some(9), Devices::Opened, Peers);
            add(3, Some(9), Devices::Opened, Staged);
            let _alone = NCCL.lock().unwrap_or_else(PoisonError::into_inner);
            match (Device::open(1), run(1, |comm| Nccl::new(comm, &device).map(drop))) {
                (Ok(_), Ok(_)) => add(2, None, Devices::Opened, Transport::Nccl),
                (Ok(_), Err(error)) => println!("without NCCL: {error}"),
                (Err(_), _) => println!("without NCCL: one GPU"),
            }
            println!("on {} too", device.info().name);
        }
        Err(error) => println!("on the emulator only: {error}"),
    }
    all
}

/// Held while NCCL is used: ranks of several tests on the same devices may wait for each other.
static NCCL: Mutex<()> = Mutex::new(());

impl Setting {
    fn alone(&self) -> Option<MutexGuard<'static, ()>> {
        (self.transport == Transport::Nccl)
            .then(|| NCCL.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs `body` on each rank with its device; the parts of the results, one after the other.
    fn run(
        &self,
        body: impl Fn(&ThreadCommunicator, Device) -> Result<Vec<f64>, DistError> + Sync,
    ) -> Vec<f64> {
        let _alone = self.alone();
        let parts = run_with(self.ranks, Delivery { seed: self.seed }, |comm| {
            body(comm, self.devices.of_rank(comm.rank()))
        });
        parts.unwrap().concat()
    }

    /// Collective.
    fn options(
        &self,
        comm: &ThreadCommunicator,
        device: &Device,
        kernel: Kernel,
    ) -> Result<DeviceOptions, DistError> {
        let mut options = DeviceOptions::default();
        (options.kernel, options.transport) = (kernel, self.transport);
        if self.transport == Transport::Nccl {
            options.nccl = Some(Nccl::new(comm, device)?);
        }
        Ok(options)
    }

    fn name(&self) -> String {
        format!("{} ranks, {}, {:?}", self.ranks, self.transport, self.devices)
    }

    /// A device for what is expected: that of the ranks where they share one.
    fn one_device(&self) -> Device {
        match &self.devices {
            Devices::Shared(device) if !device.is_emulated() => device.clone(),
            Devices::Opened => Device::open(0).unwrap(),
            _ => Device::emulated(Default::default()),
        }
    }
}

/// Y = alpha A X + beta Y on one device.
fn on_one_device(
    device: &Device,
    a: &Csr<f64>,
    label: &str,
    k: usize,
    scaling: Scaling<f64>,
    x: &[f64],
    y: &[f64],
) -> Vec<f64> {
    let (id, parameters) = split_label(label);
    let mut plan = if k == 1 {
        let kernel = spmv::find::<f64>(id).unwrap();
        let parameters = kernel.info.parse_parameters(parameters).unwrap();
        kernel.plan(device, a.view(), &parameters, &Default::default()).unwrap()
    } else {
        let kernel = spmm::find::<f64>(id).unwrap();
        let parameters = kernel.info.parse_parameters(parameters).unwrap();
        let dense = DenseShape { k, layout: Layout::RowMajor };
        kernel.plan(device, a.view(), dense, &parameters, &Default::default()).unwrap()
    };
    let x = DeviceBuffer::from_slice(device, x).unwrap();
    let mut y = DeviceBuffer::from_slice(device, y).unwrap();
    let stream = Stream::new(device).unwrap();
    plan.launch_scaled(scaling, &x, &mut y, &stream).unwrap();
    stream.synchronize().unwrap();
    y.to_vec().unwrap()
}

/// Every third matrix, others for each setting, because an emulated device takes its time.
fn some(setting: usize) -> impl Iterator<Item = (String, Csr<f64>)> {
    matrices().into_iter().skip(setting % 3).step_by(3)
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_bit_is_that_of_one_device() {
    let scalings = [Scaling::OVERWRITE, Scaling::new(-0.3, 1.7), Scaling::new(0.0, 0.5)];
    for (number, setting) in settings().iter().enumerate() {
        let label = ROW_WISE[number % ROW_WISE.len()];
        for (name, a) in some(number) {
            let x = vector::<f64>(a.cols());
            let mut expected = vector::<f64>(a.rows() + 3)[3..].to_vec();
            let before = expected.clone();
            for scaling in scalings {
                let one = setting.one_device();
                expected = on_one_device(&one, &a, label, 1, scaling, &x, &expected);
            }
            let found = setting.run(|comm, device| {
                let a = distribute(comm, &a)?;
                // x and y in two streams; no host waits between the products.
                let streams = [Stream::new(&device)?, Stream::new(&device)?];
                let x = sliced(&x, a.col_partition(), comm.rank(), 1);
                let x = DeviceVector::from_slice(&streams[0], &x)?;
                let y = sliced(&before, a.row_partition(), comm.rank(), 1);
                let mut y = DeviceVector::from_slice(&streams[1], &y)?;
                let options = setting.options(comm, &device, fixed(label))?;
                let mut op = DeviceOperator::new(comm, &device, a, &options)?;
                for scaling in scalings {
                    op.apply_scaled(scaling.alpha, &x, scaling.beta, &mut y)?;
                }
                Ok(y.to_vec()?)
            });
            let context = format!("{name} {label} {}", setting.name());
            assert_eq!(bits(&found), bits(&expected), "{context}");
        }
    }
}

/// x changes between products, whose boundary elements must not be those of the next one.
#[test]
fn a_chain_of_products_has_the_bits_of_one_device() {
    let label = ROW_WISE[0];
    for (number, setting) in settings().iter().enumerate() {
        let square = matrices().into_iter().filter(|(_, a)| a.rows() == a.cols());
        for (name, a) in square.skip(number % 2).step_by(2) {
            let one = setting.one_device();
            let (mut expected, b) = (vector::<f64>(a.cols()), vector::<f64>(a.rows()));
            let before = expected.clone();
            for _ in 0..4 {
                let scaling = Scaling::new(-1.0, 1.0);
                expected = on_one_device(&one, &a, label, 1, scaling, &expected, &b);
            }
            let found = setting.run(|comm, device| {
                let a = distribute(comm, &a)?;
                let [x, b] =
                    [&before, &b].map(|all| sliced(all, a.col_partition(), comm.rank(), 1));
                let streams = [Stream::new(&device)?, Stream::new(&device)?];
                let mut x = DeviceVector::from_slice(&streams[0], &x)?;
                let mut y = DeviceVector::zeros(&streams[1], x.len())?;
                let b = DeviceVector::from_slice(&streams[0], &b)?;
                let options = setting.options(comm, &device, fixed(label))?;
                let mut op = DeviceOperator::new(comm, &device, a, &options)?;
                for _ in 0..2 {
                    op.residual(&x, &b, &mut y)?;
                    // Only after the product has read it.
                    x.fill(f64::NAN)?;
                    op.residual(&y, &b, &mut x)?;
                    y.fill(f64::NAN)?;
                }
                Ok(x.to_vec()?)
            });
            assert_eq!(bits(&found), bits(&expected), "{name} {}", setting.name());
        }
    }
}

#[test]
fn wide_products_have_the_bits_of_one_device() {
    let label = "csr-thread-per-element-v1";
    for (number, setting) in settings().iter().enumerate() {
        let k = [2, 5, 3, 1][number % 4];
        for (name, a) in some(number) {
            let label = if k == 1 { ROW_WISE[0] } else { label };
            let (x, y) = (vector::<f64>(a.cols() * k), vector::<f64>(a.rows() * k));
            let scaling = Scaling::new(0.5, -2.0);
            let expected = on_one_device(&setting.one_device(), &a, label, k, scaling, &x, &y);
            let found = setting.run(|comm, device| {
                let a = distribute(comm, &a)?;
                let stream = Stream::new(&device)?;
                let x = sliced(&x, a.col_partition(), comm.rank(), k);
                let y = sliced(&y, a.row_partition(), comm.rank(), k);
                let x = DeviceVector::from_slice(&stream, &x)?;
                let mut y = DeviceVector::from_slice(&stream, &y)?;
                let mut options = setting.options(comm, &device, fixed(label))?;
                options.columns = k;
                let mut op = DeviceOperator::new(comm, &device, a, &options)?;
                op.apply_scaled(0.5, &x, -2.0, &mut y)?;
                Ok(y.to_vec()?)
            });
            assert_eq!(bits(&found), bits(&expected), "{name} {k} {}", setting.name());
        }
    }
}

/// Whole numbers, whose sums are exact in any order; new values, and no memory for products.
#[test]
fn the_choice_of_rank_0_and_new_values_are_exact_on_whole_numbers() {
    for (number, setting) in settings().iter().enumerate().step_by(2) {
        for (name, a) in some(number / 2) {
            let a = a.map(|&value| (value * 8.0).round());
            let new = a.map(|&value| 1.0 - value);
            let x: Vec<f64> = (0..a.cols()).map(|i| (i % 7) as f64 - 2.0).collect();
            let z: Vec<f64> = (0..a.rows()).map(|i| (i % 5) as f64 - 1.0).collect();
            let mut expected = vec![0.0; 2 * a.rows()];
            let mut transposed = vec![-1.0; a.cols()];
            for (row, col, value) in a.iter() {
                transposed[col] += 2.0 * (1.0 - value) * z[row];
                expected[row] += value * x[col];
                expected[a.rows() + row] += (1.0 - value) * x[col];
            }
            let _alone = setting.alone();
            let parts = run_with(setting.ranks, Delivery { seed: setting.seed }, |comm| {
                let device = setting.devices.of_rank(comm.rank());
                // All equal values may be stored once.
                let mine = distribute(comm, &a.map(|_| 1.0))?;
                let z = sliced(&z, mine.row_partition(), comm.rank(), 1);
                let [of_a, of_new] = [&a, &new].map(|a| distribute(comm, a).map(|a| a.to_rows()));
                let (of_a, of_new) = (of_a?.values().to_vec(), of_new?.values().to_vec());
                let stream = Stream::new(&device)?;
                let x = sliced(&x, mine.col_partition(), comm.rank(), 1);
                let x = DeviceVector::from_slice(&stream, &x)?;
                let mut y = DeviceVector::zeros(&stream, mine.local_rows())?;
                // z and the product with the transpose in two other streams.
                let z = DeviceVector::from_slice(&Stream::new(&device)?, &z)?;
                let mut t = DeviceVector::zeros(&Stream::new(&device)?, mine.local_cols())?;
                t.fill(1.0)?;
                let mut options = setting.options(comm, &device, Kernel::Auto)?;
                options.transpose = true;
                let mut op = DeviceOperator::new(comm, &device, mine, &options)?;
                assert_eq!(gathered(comm, op.kernel()).len(), 1);
                assert_ne!(op.transport(), Transport::Auto);
                assert!(op.set_values(&[1.0]).is_err() != (of_a.len() == 1));
                op.set_values(&of_a)?;
                op.apply(&x, &mut y)?;
                let first = y.to_vec()?;
                op.set_values(&of_new)?;
                assert_eq!(op.matrix().to_rows().values(), of_new);
                let free = |comm: &ThreadCommunicator| -> Result<u64, DistError> {
                    comm.all_gather(&[])?;
                    let free = device.memory()?.0;
                    comm.all_gather(&[])?;
                    Ok(free)
                };
                let before = free(comm)?;
                op.apply(&x, &mut y)?;
                op.apply_transpose_scaled(2.0, &z, -1.0, &mut t)?;
                let times = op.apply_in_parts(&x, &mut y)?;
                assert!(times.pack + times.local + times.wait + times.boundary > 0.0);
                assert_eq!(free(comm)?, before, "a product takes no device memory");
                Ok((first, y.to_vec()?, t.to_vec()?))
            });
            let parts = parts.unwrap();
            let found_t: Vec<f64> = parts.iter().flat_map(|part| part.2.clone()).collect();
            assert_eq!(found_t, transposed, "{name} {}", setting.name());
            let found: Vec<f64> = parts.iter().flat_map(|part| part.0.clone()).collect();
            let found_new: Vec<f64> = parts.iter().flat_map(|part| part.1.clone()).collect();
            let expected = (&expected[..a.rows()], &expected[a.rows()..]);
            assert_eq!((&*found, &*found_new), expected, "{name} {}", setting.name());
        }
    }
}

/// A choice that boundary rows do not take stays that of the local block.
#[test]
fn boundary_rows_that_do_not_take_the_choice_have_another_kernel() {
    let (n, of_rank) = (1800, 600);
    // Every third row is a boundary row. One of them is long, so that a format which gives all rows as many
    // stored elements goes beyond the budget.
    let entries = (0..n).flat_map(|i: usize| {
        let block = i - i % of_rank;
        let cols: Vec<usize> = match (i % of_rank, i % 3) {
            (0, _) => (0..n).step_by(6).collect(),
            (_, 0) => vec![i, (i + of_rank) % n],
            _ => vec![block + i % 7, block + 10 + i % 11, block + 300 + i % 13],
        };
        cols.into_iter().map(move |j| (i, j, 1.0))
    });
    let a = Csr::from_triplets((n, n), entries).unwrap();
    let x: Vec<f64> = (0..n).map(|i| (i % 7) as f64 - 2.0).collect();
    let mut expected = vec![0.0; n];
    a.iter().for_each(|(row, col, value)| expected[row] += value * x[col]);
    let kernels = |budget: MemoryBudget| {
        let parts = run(3, |comm| {
            let rows = Partition::even(n as u64, 3);
            let mine = Rows::of(a.view(), rows.range(comm.rank()));
            let device = Device::emulated(Default::default());
            let a = DistCsr::new(comm, &rows, &rows, mine)?;
            let mut options = DeviceOptions::default();
            options.plan.budget = budget.clone();
            let mut op = DeviceOperator::new(comm, &device, a, &options)?;
            let stream = Stream::new(&device)?;
            let x = DeviceVector::from_slice(&stream, &sliced(&x, &rows, comm.rank(), 1))?;
            let mut y = DeviceVector::zeros(&stream, x.len())?;
            op.apply(&x, &mut y)?;
            let kernels = (op.kernel().to_owned(), op.boundary_kernel().to_owned());
            assert_eq!(gathered(comm, &format!("{kernels:?}")).len(), 1);
            Ok((kernels, y.to_vec()?))
        });
        let parts = parts.unwrap();
        assert_eq!(by_rank(&parts, |part| &part.1), expected);
        parts[0].0.clone()
    };
    let (local, boundary) = kernels(MemoryBudget::unlimited());
    assert_eq!(local, boundary);
    let (kept, boundary) = kernels(MemoryBudget::bytes(48 << 10));
    assert_eq!((&kept, &*boundary), (&local, "csr-subwarp-per-row"));
}

/// Complex whole numbers, A and its transpose.
#[test]
fn complex_products_are_exact_on_whole_numbers() {
    let number = |re: usize, im: usize| Complex::new((re % 5) as f64 - 2.0, (im % 7) as f64 - 3.0);
    let a = Csr::from_triplets(
        (90, 90),
        (0..450).map(|i: usize| (i / 5, (i * i + i % 5 * 17) % 90, number(i, 3 * i))),
    );
    let a = a.unwrap();
    let x: Vec<Complex<f64>> = (0..90).map(|i| number(2 * i, i)).collect();
    let mut expected = vec![Complex::new(0.0, 0.0); 180];
    for (row, col, &value) in a.iter() {
        expected[row] += value * x[col];
        expected[90 + col] += value * x[row];
    }
    for transport in [Transport::Peers, Transport::Staged] {
        let device = Device::emulated(deferred(3));
        let parts = run(3, |comm| {
            let rows = Partition::even(90, 3);
            let own = rows.range(comm.rank());
            let a = DistCsr::new(comm, &rows, &rows, Rows::of(a.view(), own.clone()))?;
            let mut options = DeviceOptions::default();
            (options.transport, options.transpose) = (transport, true);
            let mut op = DeviceOperator::new(comm, &device, a, &options)?;
            let stream = Stream::new(&device)?;
            let x = DeviceVector::from_slice(&stream, &x[own.start as usize..own.end as usize])?;
            let mut y = DeviceVector::zeros(&stream, x.len())?;
            let mut t = DeviceVector::zeros(&stream, x.len())?;
            op.apply(&x, &mut y)?;
            op.apply_transpose(&x, &mut t)?;
            Ok((y.to_vec()?, t.to_vec()?))
        });
        let parts = parts.unwrap();
        let y = parts.iter().flat_map(|part| part.0.clone());
        let t = parts.iter().flat_map(|part| part.1.clone());
        assert_eq!(y.chain(t).collect::<Vec<_>>(), expected, "{transport}");
    }
}

fn ring(n: usize) -> Csr<f64> {
    let entries = (0..n).flat_map(|i| [(i, i, 2.0), (i, (i + 1) % n, -1.0)]);
    Csr::from_triplets((n, n), entries).unwrap()
}

type Prepared = (DeviceOperator<f64>, DeviceVector<f64>, DeviceVector<f64>);

/// The operator and vectors of a rank, for a ring.
fn prepared(
    comm: &ThreadCommunicator,
    device: &Device,
    options: &DeviceOptions,
) -> Result<Prepared, DistError> {
    let a = distribute(comm, &ring(12))?;
    let stream = Stream::new(device)?;
    let x = DeviceVector::zeros(&stream, a.local_cols())?;
    let y = DeviceVector::zeros(&stream, a.local_rows())?;
    Ok((DeviceOperator::new(comm, device, a, options)?, x, y))
}

/// A rank that ends between products ends those that wait for it, and they say so at every further product.
#[test]
fn a_rank_that_ends_is_named() {
    for transport in [Transport::Peers, Transport::Staged] {
        let device = Device::emulated(deferred(1));
        let mut options = DeviceOptions::default();
        options.transport = transport;
        let result = run(3, |comm| {
            let (mut op, x, mut y) = prepared(comm, &device, &options)?;
            for round in 0.. {
                if comm.rank() == 1 && round == 3 {
                    return Err(DistError::File("the disk is full".to_owned()));
                }
                if let Err(error) = op.apply(&x, &mut y) {
                    assert_eq!(op.apply(&x, &mut y).unwrap_err(), error);
                    assert!(matches!(error, DistError::Comm(_)), "{error:?}");
                    return Err(error);
                }
            }
            Ok(())
        });
        assert_eq!(result.unwrap_err().to_string(), "rank 1: the disk is full", "{transport}");
    }
}

/// A device that is lost on one rank.
#[test]
fn a_device_that_fails_ends_all_ranks() {
    for transport in [Transport::Peers, Transport::Staged] {
        let mut options = DeviceOptions::default();
        options.transport = transport;
        let result = run(3, |comm| {
            let launches = if comm.rank() == 2 { 60 } else { u64::MAX };
            let device = Device::emulated(EmulatorOptions { launches, ..Default::default() });
            let (mut op, x, mut y) = prepared(comm, &device, &options)?;
            loop {
                op.apply(&x, &mut y)?;
                y.to_vec()?;
            }
            #[allow(unreachable_code, reason = "the type of the result")]
            Ok(())
        });
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with("rank 2: emulator: ") && error.contains("lost"), "{error}");
    }
}

#[test]
fn what_does_not_fit_is_refused_on_every_rank() {
    let device = Device::emulated(Default::default());
    let refusal = |options: &(dyn Fn(usize) -> DeviceOptions + Sync)| {
        let result = run(3, |comm| prepared(comm, &device, &options(comm.rank())).map(drop));
        let error = result.unwrap_err();
        assert!(error.is_shared(), "{error:?}");
        error.to_string()
    };
    let options = || DeviceOptions::default();
    let fixed = |label: &str| with_kernel(options(), label);
    assert!(
        refusal(&|_| fixed("csr-fastest")).starts_with("rank 0: csr-subwarp-per-row: no kernel")
    );
    assert!(refusal(&|_| fixed("csr-thread-per-row[lanes=3]")).contains("lanes"));
    let other = refusal(&|rank| {
        let mut options = options();
        options.transport = if rank == 2 { Transport::Staged } else { Transport::Peers };
        options
    });
    assert!(other.starts_with("rank 2: has ") && other.contains("transport staged"), "{other}");
    run(2, |comm| {
        let (mut op, x, mut y) = prepared(comm, &device, &options())?;
        let other = Device::emulated(Default::default());
        let stream = Stream::new(&other)?;
        let far = DeviceVector::zeros(&stream, x.len())?;
        let error = op.apply(&far, &mut y).unwrap_err();
        assert_eq!(error, GpuError::OtherDevice { what: "x" }.into());
        let short = DeviceVector::zeros(x.stream(), x.len() - 1)?;
        assert!(matches!(op.apply(&short, &mut y), Err(DistError::Run(_))));
        assert!(op.residual(&x, &short, &mut y).is_err());
        let unprepared = op.apply_transpose(&y, &mut DeviceVector::zeros(x.stream(), x.len())?);
        assert!(matches!(unprepared, Err(DistError::Unprepared(_))));
        // Nothing has begun.
        op.apply(&x, &mut y)
    })
    .unwrap();
}

#[test]
fn conjugate_gradients_end_at_the_solution() {
    let n = 120;
    for setting in settings().into_iter().step_by(3) {
        let exact: Vec<f64> = (0..n).map(|i| (i % 7) as f64 - 3.0).collect();
        let found = setting.run(|comm, device| {
            let rows = Partition::even(n, comm.size());
            let matrix = Rows::generate(rows.range(comm.rank()), n, |i, row| {
                row.extend((i > 0).then(|| (i - 1, -1.0)));
                row.push((i, 2.5));
                row.extend((i + 1 < n).then_some((i + 1, -1.0)));
            })?;
            let exact = sliced(&exact, &rows, comm.rank(), 1);
            let a = DistCsr::new(comm, &rows, &rows, matrix)?;
            let options = setting.options(comm, &device, fixed("csr-thread-per-row"))?;
            let mut op = DeviceOperator::new(comm, &device, a, &options)?;
            let stream = Stream::new(&device)?;
            let exact = DeviceVector::from_slice(&stream, &exact)?;
            let mut b = DeviceVector::zeros(&stream, exact.len())?;
            let mut x = DeviceVector::zeros(&Stream::new(&device)?, exact.len())?;
            op.apply(&exact, &mut b)?;
            let end = conjugate_gradients(comm, &mut op, &b, &mut x, &CgOptions::default())?;
            assert!(end.converged && end.iterations > 5, "{end:?}");
            Ok(x.to_vec()?)
        });
        let near = found.iter().zip(&exact).all(|(x, exact)| (x - exact).abs() < 1e-6);
        assert!(near, "{}", setting.name());
    }
}

/// Without the library, or for an emulated device, every rank says so.
#[test]
fn nccl_that_is_absent_is_an_error_on_every_rank() {
    let device = Device::emulated(Default::default());
    let error = run(2, |comm| Nccl::new(comm, &device).map(drop)).unwrap_err();
    assert!(error.is_shared() && error.to_string().contains("NCCL is absent: "), "{error:?}");
    let mut options = DeviceOptions::default();
    options.transport = Transport::Nccl;
    let error = run(2, |comm| prepared(comm, &device, &options).map(drop)).unwrap_err();
    assert!(error.to_string().contains("no ranks of NCCL"), "{error}");
}

fn fixed(label: &str) -> Kernel {
    Kernel::Fixed(label.to_owned())
}

fn with_kernel(mut options: DeviceOptions, label: &str) -> DeviceOptions {
    options.kernel = fixed(label);
    options
}

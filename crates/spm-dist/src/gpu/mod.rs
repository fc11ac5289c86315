//! Products on NVIDIA GPUs: each rank has a device, on which its rows of A, x and y lie.
//!
//! [`DeviceOperator`] is [`DistOperator`](crate::DistOperator) for vectors in device memory. Several ranks may
//! have one device. A [`Transport`] carries the boundary elements: copies between the devices of one process,
//! messages of the [`Communicator`](crate::Communicator) through host memory, or NCCL.
//!
//! ```
//! use spm_dist::gpu::{DeviceOperator, DeviceOptions};
//! use spm_dist::{Communicator, DistCsr, Partition, Rows, threads};
//! use spm_gpu::{Device, DeviceVector, Stream};
//!
//! // The second difference of 1000 points on 3 ranks. With several GPUs: `Device::open(rank)`.
//! let device = Device::available().unwrap_or_else(|_| Device::emulated(Default::default()));
//! let n = 1000;
//! threads::run(3, |comm| {
//!     let rows = Partition::even(n, comm.size());
//!     let mine = Rows::generate(rows.range(comm.rank()), n, |i, row| {
//!         row.extend((i > 0).then(|| (i - 1, -1.0)));
//!         row.push((i, 2.0));
//!         row.extend((i + 1 < n).then_some((i + 1, -1.0)));
//!     })?;
//!     let a = DistCsr::new(comm, &rows, &rows, mine)?;
//!     let mut op = DeviceOperator::new(comm, &device, a, &DeviceOptions::default())?;
//!     let stream = Stream::new(&device)?;
//!     let x = DeviceVector::from_slice(&stream, &vec![1.0; op.matrix().local_cols()])?;
//!     let mut y = DeviceVector::zeros(&stream, op.matrix().local_rows())?;
//!     op.apply(&x, &mut y)?;
//!     // The boundary of the interval is at both ends.
//!     let ends = y.to_vec()?.iter().filter(|&&y| y == 1.0).count();
//!     assert_eq!(ends, usize::from(comm.rank() != 1));
//!     Ok(())
//! })?;
//! # Ok::<(), spm_dist::DistError>(())
//! ```

mod cg;
mod exchange;
mod nccl;
mod operator;
mod peers;
mod plans;
mod staged;

pub use cg::conjugate_gradients;
pub use nccl::Nccl;
pub use operator::{DeviceOperator, DeviceOptions};

/// How boundary elements get from one device to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Transport {
    /// The one of those possible that took the least time when the operator was made, for messages of its
    /// sizes, on the slowest rank.
    #[default]
    Auto,
    /// Copies between devices, or on one device, where all ranks are in one process: no host memory is used,
    /// and no host waits for a device.
    Peers,
    /// Through host memory, by messages of the communicator.
    Staged,
    /// NCCL, by the ranks of [`DeviceOptions::nccl`].
    Nccl,
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Peers => "peers",
            Self::Staged => "staged",
            Self::Nccl => "nccl",
        })
    }
}

//! The device of an operator.

use std::sync::{Mutex, PoisonError};

use spm_gpu::{GpuError, Stream};

/// Where the products of an operator run: [`Builder::device`](crate::Builder::device).
///
/// ```
/// use spm::{Device, Operator};
///
/// let a = spm::from_triplets((2, 2), [(0_usize, 0_usize, 2.0), (1, 1, 3.0)])?;
/// // On the first GPU, or on CPU cores where there is none.
/// let op = Operator::builder(a).device(Device::auto()).build()?;
/// let mut y = [0.0; 2];
/// op.apply(&[1.0, 1.0], &mut y)?;
/// assert_eq!(y, [2.0, 3.0]);
/// # Ok::<(), spm::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Device(Choice);

#[derive(Debug, Clone)]
enum Choice {
    Auto,
    Cpu,
    Gpu(u32),
    Opened(spm_gpu::Device),
}

impl Device {
    /// The first GPU, if there is one that can be used and holds the matrix; CPU cores otherwise.
    /// [`Description::device`](crate::Description::device) says which it is, and why.
    ///
    /// Neither the size of the matrix nor where the vectors are has a say. A product with vectors in host
    /// memory copies them to the GPU and back: where that takes longer than the product on CPU cores, as
    /// for small matrices, [`Device::cpu`] is faster. [`Vector`](crate::Vector)s are not copied.
    pub fn auto() -> Self {
        Self(Choice::Auto)
    }

    /// CPU cores.
    pub fn cpu() -> Self {
        Self(Choice::Cpu)
    }

    /// GPU number `ordinal` of this machine, from 0. Its absence is an error of
    /// [`Builder::build`](crate::Builder::build).
    pub fn gpu(ordinal: u32) -> Self {
        Self(Choice::Gpu(ordinal))
    }

    /// A GPU that is emulated on the host, slowly: the kernels and the memory of a GPU, to test a program
    /// on a machine without one. Clones are the same GPU; every call makes another one.
    pub fn emulated() -> Self {
        spm_gpu::Device::emulated(Default::default()).into()
    }
}

/// A device that the caller has opened, or an emulated one with the caller's options.
impl From<spm_gpu::Device> for Device {
    fn from(device: spm_gpu::Device) -> Self {
        Self(Choice::Opened(device))
    }
}

/// An open GPU.
#[derive(Debug, Clone)]
pub(crate) struct Gpu {
    pub(crate) device: spm_gpu::Device,
    /// The stream of the vectors.
    pub(crate) stream: Stream,
}

/// Where an operator is to be planned.
pub(crate) enum Place {
    Cpu,
    /// `required`: on no account on CPU cores.
    Gpu {
        gpu: Result<Gpu, GpuError>,
        required: bool,
    },
}

impl Device {
    /// Opens the GPU, if it is one. A recipe for one of both decides where this leaves it open.
    pub(crate) fn open(&self, recipe_is_gpu: Option<bool>) -> Place {
        let (gpu, required) = match &self.0 {
            Choice::Cpu => return Place::Cpu,
            Choice::Auto if recipe_is_gpu == Some(false) => return Place::Cpu,
            Choice::Auto => (shared(0), recipe_is_gpu == Some(true)),
            Choice::Gpu(ordinal) => (shared(*ordinal), true),
            Choice::Opened(device) => (Gpu::new(device.clone()), true),
        };
        Place::Gpu { gpu, required }
    }
}

impl Gpu {
    fn new(device: spm_gpu::Device) -> Result<Self, GpuError> {
        device.load_kernels()?;
        let stream = Stream::new(&device)?;
        Ok(Self { device, stream })
    }
}

/// The GPUs that operators have asked for by number.
static OPENED: Mutex<Vec<(u32, Gpu)>> = Mutex::new(Vec::new());

/// GPU `ordinal`, which all operators share, so that vectors of one are vectors of the others.
fn shared(ordinal: u32) -> Result<Gpu, GpuError> {
    // A list of open devices is whole after a panic.
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, gpu)) = opened.iter().find(|(of, _)| *of == ordinal) {
        return Ok(gpu.clone());
    }
    let gpu = Gpu::new(spm_gpu::Device::open(ordinal)?)?;
    opened.push((ordinal, gpu.clone()));
    Ok(gpu)
}

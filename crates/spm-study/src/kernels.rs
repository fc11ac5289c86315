//! The kernels of all registries.

use spm_formats::convert;
use spm_formats::kernel::KernelInfo;

use crate::bench::{gpu, reading};

/// Every kernel of every registry.
pub fn all() -> Vec<KernelInfo> {
    let mut all: Vec<KernelInfo> =
        spm_cpu::spmv::registry::<f64>().iter().map(|k| k.info).collect();
    all.extend(spm_cpu::spmm::registry::<f64>().iter().map(|k| k.info));
    all.extend(spm_cpu::transpose::registry::<f64>().iter().map(|k| k.info));
    all.extend(convert::registry::<f64>().iter().map(|k| k.info));
    all.extend(reading::KERNELS);
    all.extend(gpu::kernels());
    all
}

/// The procedures that R3's transpositions are made of: they run on keys, not on matrices.
pub fn procedures() -> Vec<KernelInfo> {
    spm_gpu::transpose::primitives::registry().iter().map(|p| p.info).collect()
}

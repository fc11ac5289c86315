//! Planning of a case: from its specification to a plan with operands, on either backend.

use std::collections::HashMap;

use spm_cpu::Threads;
use spm_formats::MemoryBudget;
use spm_formats::kernel::{Backend, PlanError};
use spm_gpu::{Device, DeviceReal};
use spm_gpu_kernels::emulator::EmulatorOptions;

use super::case::{CaseSpec, Planned};
use super::{cpu, gpu};
use crate::matrix::Matrix;

/// What cases are planned with.
#[derive(Debug)]
pub struct Resources {
    /// Thread pools by their number of threads.
    pools: HashMap<usize, Threads>,
    /// What padded formats may take.
    budget: MemoryBudget,
    /// The device, or why there is none.
    device: Result<Device, String>,
}

impl Resources {
    /// Opens the first device, if `gpu` asks for it.
    pub fn new(budget: MemoryBudget, gpu: bool) -> Self {
        let device = if gpu {
            Device::available().map_err(|error| error.to_string())
        } else {
            Err("not asked for".to_owned())
        };
        Self { pools: HashMap::new(), budget, device }
    }

    /// With the emulator as the device.
    pub fn emulated(budget: MemoryBudget) -> Self {
        Self::on(Device::emulated(EmulatorOptions::default()), budget)
    }

    /// With this device.
    pub fn on(device: Device, budget: MemoryBudget) -> Self {
        let device = Ok(device);
        Self { pools: HashMap::new(), budget, device }
    }

    /// The device, or why there is none.
    pub fn device(&self) -> Result<&Device, &str> {
        self.device.as_ref().map_err(String::as_str)
    }
}

/// Plans `spec` for `matrix`.
///
/// # Errors
/// A kernel that does not apply, padding beyond the budget, no such kernel, no device.
pub fn plan<'a, T: DeviceReal>(
    spec: &CaseSpec,
    matrix: &'a Matrix<T>,
    resources: &mut Resources,
) -> Result<Planned<'a>, PlanError> {
    let budget = resources.budget.clone().for_matrix(&matrix.name);
    match spec.info.backend {
        Backend::Gpu => {
            let device =
                resources.device().map_err(|reason| PlanError::device(reason.to_owned()))?;
            gpu::plan(spec, matrix, device, &spm_gpu::PlanOptions { budget, ..Default::default() })
        }
        Backend::Cpu => {
            let start = || Threads::new(spec.threads);
            let threads = resources.pools.entry(spec.threads).or_insert_with(start).clone();
            cpu::plan(spec, matrix, &spm_cpu::PlanOptions { threads, budget })
        }
    }
}

//! The kernels as PTX, made by `cargo xtask build-ptx` and embedded.

use crate::device::DeviceInfo;
use crate::error::{CudaVersion, GpuError};

/// One embedded PTX.
#[derive(Debug)]
pub(crate) struct Ptx {
    /// The architecture that it was compiled for.
    pub(crate) target: &'static str,
    /// The least compute capability that runs it.
    capability: (u32, u32),
    pub(crate) text: &'static str,
}

/// The most specific first.
static EMBEDDED: [Ptx; 2] = [
    Ptx { target: "sm_90", capability: (9, 0), text: include_str!("../ptx/spm_sm90.ptx") },
    Ptx { target: "sm_70", capability: (7, 0), text: include_str!("../ptx/spm_sm70.ptx") },
];

impl Ptx {
    /// The most specific PTX that the device and its driver take.
    pub(crate) fn for_device(info: &DeviceInfo) -> Result<&'static Self, GpuError> {
        let (major, minor) = info.compute_capability;
        let mut fitting = EMBEDDED.iter().filter(|ptx| ptx.capability <= (major, minor)).peekable();
        if fitting.peek().is_none() {
            return Err(GpuError::DeviceTooOld { name: info.name.clone(), major, minor });
        }
        let mut needs = info.driver;
        for ptx in fitting {
            needs = ptx.needs();
            if needs <= info.driver {
                return Ok(ptx);
            }
        }
        Err(GpuError::DriverTooOld { needs, found: info.driver })
    }

    /// The first CUDA whose driver knows the version of the PTX: 7.x came with 11.x, 8.x with 12.x.
    fn needs(&self) -> CudaVersion {
        let version = self.text.lines().find_map(|line| line.trim().strip_prefix(".version "));
        let number = |text: Option<&str>| text.and_then(|t| t.trim().parse::<u32>().ok());
        let mut parts = version.unwrap_or_default().split('.');
        let (major, minor) = (number(parts.next()), number(parts.next()));
        CudaVersion { major: major.unwrap_or_default() + 4, minor: minor.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::LaunchLimits;

    fn device(compute_capability: (u32, u32), driver: (u32, u32)) -> DeviceInfo {
        DeviceInfo {
            name: "a card".to_owned(),
            compute_capability,
            driver: CudaVersion { major: driver.0, minor: driver.1 },
            ..DeviceInfo::emulated(1 << 30, LaunchLimits::EMULATED)
        }
    }

    #[test]
    fn the_ptx_follows_compute_capability_and_driver() {
        let target = |info: DeviceInfo| Ptx::for_device(&info).map(|ptx| ptx.target);
        assert_eq!(target(device((9, 0), (13, 0))), Ok("sm_90"));
        assert_eq!(target(device((10, 0), (13, 0))), Ok("sm_90"));
        assert_eq!(target(device((8, 6), (12, 4))), Ok("sm_70"));
        assert_eq!(target(device((7, 0), (12, 0))), Ok("sm_70"));
        assert!(matches!(
            target(device((7, 0), (10, 2))),
            Err(GpuError::DriverTooOld { found: CudaVersion { major: 10, minor: 2 }, .. })
        ));
        assert!(matches!(
            target(device((6, 1), (13, 0))),
            Err(GpuError::DeviceTooOld { major: 6, minor: 1, .. })
        ));
    }
}

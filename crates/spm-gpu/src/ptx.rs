//! The embedded PTX of the kernels, made by `cargo xtask build-ptx`.

use crate::error::{CudaVersion, GpuError};
use crate::info::DeviceInfo;

/// The architecture that the PTX was compiled for. The driver compiles it for the device there is.
pub(crate) const TARGET: &str = "sm_70";

/// The minimum compute capability that runs it.
const CAPABILITY: (u32, u32) = (7, 0);

const TEXT: &str = include_str!("../ptx/spm_sm70.ptx");

/// The PTX, if the device and its driver take it.
pub(crate) fn for_device(info: &DeviceInfo) -> Result<&'static str, GpuError> {
    let (major, minor) = info.compute_capability;
    if (major, minor) < CAPABILITY {
        return Err(GpuError::DeviceTooOld { name: info.name.clone(), major, minor });
    }
    let needs = needs();
    if info.driver < needs {
        return Err(GpuError::DriverTooOld { needs, found: info.driver });
    }
    Ok(TEXT)
}

/// The first CUDA whose driver knows the version of the PTX: 7.x came with 11.x, 8.x with 12.x.
fn needs() -> CudaVersion {
    let version = TEXT.lines().find_map(|line| line.trim().strip_prefix(".version "));
    let number = |text: Option<&str>| text.and_then(|t| t.trim().parse::<u32>().ok());
    let mut parts = version.unwrap_or_default().split('.');
    let (major, minor) = (number(parts.next()), number(parts.next()));
    CudaVersion { major: major.unwrap_or_default() + 4, minor: minor.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::LaunchLimits;

    fn device(compute_capability: (u32, u32), driver: (u32, u32)) -> DeviceInfo {
        DeviceInfo {
            name: "a card".to_owned(),
            compute_capability,
            driver: CudaVersion { major: driver.0, minor: driver.1 },
            ..DeviceInfo::emulated(1 << 30, LaunchLimits::EMULATED)
        }
    }

    #[test]
    fn the_ptx_wants_compute_capability_and_driver() {
        for (capability, driver) in [((9, 0), (13, 0)), ((8, 6), (12, 4)), ((7, 0), (11, 4))] {
            assert_eq!(for_device(&device(capability, driver)), Ok(TEXT));
        }
        assert_eq!(needs(), CudaVersion { major: 11, minor: 4 });
        assert!(matches!(
            for_device(&device((7, 0), (11, 3))),
            Err(GpuError::DriverTooOld { found: CudaVersion { major: 11, minor: 3 }, .. })
        ));
        assert!(matches!(
            for_device(&device((6, 1), (13, 0))),
            Err(GpuError::DeviceTooOld { major: 6, minor: 1, .. })
        ));
    }
}

//! The embedded PTX of the kernels, made by `cargo xtask build-ptx`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use crate::error::{CudaVersion, GpuError};
use crate::info::DeviceInfo;
use crate::launch::Loads;

/// The architecture of the PTX. The driver compiles it for the device there is.
const TARGET: &str = "sm_75";

/// What of it the architecture before does not know: hints of loads.
const HINT: &str = ".L2::128B";

/// A streaming load: L1 does not keep its line, and L2 drops it first.
const STREAMING_LOAD: &str = "ld.global.nc.L1::no_allocate";

/// A load whose line both keep.
const CACHED_LOAD: &str = "ld.global.nc";

/// The architecture before, and the minimum compute capability.
const TARGET_BEFORE: &str = "sm_70";
const CAPABILITY: (u32, u32) = (7, 0);

const TEXT: &str = include_str!("../ptx/spm_sm75.ptx");

/// What begins the text of a kernel.
const ENTRY: &str = ".visible .entry ";

/// The PTX of one kernel, if the device and its driver take it. The driver compiles all of a text before it
/// launches any kernel of it: 7 seconds for all kernels on an H200.
pub(crate) fn of_kernel(
    info: &DeviceInfo,
    name: &'static str,
    loads: Loads,
) -> Result<String, GpuError> {
    check(info)?;
    let (header, kernels) = kernels();
    let text = kernels.get(name).ok_or(GpuError::MissingKernel { name })?;
    let text = match loads {
        Loads::Streamed => Cow::Borrowed(*text),
        Loads::Cached => Cow::Owned(text.replace(STREAMING_LOAD, CACHED_LOAD)),
    };
    Ok(match target(info) {
        TARGET => format!("{header}{text}"),
        before => format!("{}{}", header.replace(TARGET, before), text.replace(HINT, "")),
    })
}

/// The architecture of the PTX for a device.
pub(crate) fn target(info: &DeviceInfo) -> &'static str {
    if info.compute_capability < (7, 5) { TARGET_BEFORE } else { TARGET }
}

/// All kernels, those with streaming loads in both forms.
pub(crate) fn forms() -> impl Iterator<Item = (&'static str, Loads)> {
    kernels().1.iter().flat_map(|(&name, text)| {
        let cached = text.contains(STREAMING_LOAD).then_some((name, Loads::Cached));
        cached.into_iter().chain([(name, Loads::Streamed)])
    })
}

/// What stands before the first kernel, and the kernels by name. They share nothing but the declaration of
/// shared memory: all of their functions are inlined.
fn kernels() -> &'static (&'static str, HashMap<&'static str, &'static str>) {
    static KERNELS: OnceLock<(&str, HashMap<&str, &str>)> = OnceLock::new();
    KERNELS.get_or_init(|| {
        let mut starts: Vec<usize> = TEXT.match_indices(ENTRY).map(|(at, _)| at).collect();
        starts.push(TEXT.len());
        let named = |ends: &[usize]| {
            let text = &TEXT[ends[0]..ends[1]];
            let name = &text[ENTRY.len()..];
            (name.split('(').next().unwrap_or(name).trim(), text)
        };
        (&TEXT[..starts[0]], starts.windows(2).map(named).collect())
    })
}

/// Whether the device and its driver take the PTX.
fn check(info: &DeviceInfo) -> Result<(), GpuError> {
    let (major, minor) = info.compute_capability;
    if (major, minor) < CAPABILITY {
        return Err(GpuError::DeviceTooOld { name: info.name.clone(), major, minor });
    }
    let needs = needs();
    if info.driver < needs {
        return Err(GpuError::DriverTooOld { needs, found: info.driver });
    }
    Ok(())
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
            assert_eq!(check(&device(capability, driver)), Ok(()));
        }
        assert_eq!(needs(), CudaVersion { major: 11, minor: 4 });
        assert!(matches!(
            check(&device((7, 0), (11, 3))),
            Err(GpuError::DriverTooOld { found: CudaVersion { major: 11, minor: 3 }, .. })
        ));
        assert!(matches!(
            check(&device((6, 1), (13, 0))),
            Err(GpuError::DeviceTooOld { major: 6, minor: 1, .. })
        ));
    }

    #[test]
    fn kernels_are_apart() {
        let (header, kernels) = kernels();
        let length: usize = kernels.values().map(|text| text.len()).sum();
        assert_eq!(header.len() + length, TEXT.len());
        let extern_words = [".func", ".global", ".const", ".weak"];
        assert!(!extern_words.iter().any(|word| header.contains(word)), "{header}");
        let info = device((9, 0), (13, 0));
        for (name, loads) in forms() {
            let text = of_kernel(&info, name, loads).unwrap();
            assert!(text.starts_with(header) && text.trim_end().ends_with('}'), "{name}");
            assert_eq!(text.matches(".entry").count(), 1, "{name}");
            assert!(!text[header.len()..].contains("\n.func"), "{name}");
            assert!(!(loads == Loads::Cached && text.contains(STREAMING_LOAD)), "{name}");
        }
        let of = |wanted: &str| forms().filter(|&(name, _)| name == wanted).count();
        assert_eq!((of("spmv_sellp_f64"), of("spmm_csr_row_split_4_f64")), (2, 1));
        let [streamed, cached] = [Loads::Streamed, Loads::Cached]
            .map(|loads| of_kernel(&info, "spmv_sellp_f64", loads).unwrap());
        assert!(streamed.contains(STREAMING_LOAD));
        assert_eq!(streamed.replace(STREAMING_LOAD, CACHED_LOAD), cached);
        let (name, of_volta) = ("spmm_csr_row_split_4_f64", device((7, 0), (12, 9)));
        let of = |info| of_kernel(info, name, Loads::Streamed).unwrap();
        let [with, without] = [&info, &of_volta].map(of);
        assert!(
            with.contains("\n.target sm_75\n") && with.contains("ld.global.nc.L2::128B.v2.b64")
        );
        assert!(without.contains("\n.target sm_70\n") && without.contains("ld.global.nc.v2.b64"));
        assert!(!without.contains("L2::"), "{without}");
        let missing = of_kernel(&info, "no_such_kernel", Loads::Cached);
        assert!(matches!(missing, Err(GpuError::MissingKernel { name: "no_such_kernel" })));
    }
}

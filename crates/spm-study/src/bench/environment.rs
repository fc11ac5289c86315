//! Where a run was made: written to `environment.json` beside the results.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use spm_cpu::Threads;
use spm_formats::kernel::Schedule;
use spm_gpu::Device;

use super::cache::described;
use super::gpu;
use super::timing::{Sampling, sample};
use crate::suite::workspace_root;

/// Everything that a figure needs to be read by.
#[derive(Debug, Clone, Serialize)]
pub struct Environment {
    /// Seconds since 1970 at the start.
    pub started_unix: u64,
    /// The command line.
    pub command: String,
    /// Host name.
    pub host: String,
    /// Kernel and distribution.
    pub system: String,
    /// Processor.
    pub cpu: Cpu,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// GPU, or why there is none.
    pub gpu: serde_json::Value,
    /// Compiler that built this program.
    pub compiler: String,
    /// Source revision, with `-dirty` if the tree had changes.
    pub revision: String,
    /// Version of spm.
    pub version: &'static str,
    /// Copy bandwidth in GB/s, bytes read and bytes written both counted, by threads.
    pub copy_bandwidth_gb_per_s: BTreeMap<String, f64>,
    /// The same for copies inside device memory.
    pub gpu_copy_bandwidth_gb_per_s: Option<f64>,
    /// Seed and range of x, cache state, sampling: what the run was asked for.
    pub settings: serde_json::Value,
    /// Runs with other settings that this one goes on from: when, command, revision, settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<serde_json::Value>,
}

/// The runs that the results folder of this `environment.json` holds already, those with these
/// settings excepted.
pub fn earlier(path: &Path, settings: &serde_json::Value) -> Vec<serde_json::Value> {
    let text = std::fs::read(path).unwrap_or_default();
    let Ok(before) = serde_json::from_slice::<serde_json::Value>(&text) else { return Vec::new() };
    let mut runs = before["earlier"].as_array().cloned().unwrap_or_default();
    let fields = ["started_unix", "command", "revision", "settings"];
    runs.push(fields.iter().map(|&field| (field.to_owned(), before[field].clone())).collect());
    runs.retain(|run| run["settings"] != *settings);
    runs
}

/// The processor as the system describes it.
#[derive(Debug, Clone, Serialize)]
pub struct Cpu {
    /// Model name.
    pub model: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Vector extensions that kernels may choose from.
    pub simd: Vec<&'static str>,
    /// Cache sizes as the system prints them, by level.
    pub caches: Vec<String>,
}

impl Environment {
    /// Looks at the machine and measures its copy bandwidth for each of `thread_counts`.
    pub fn observe(
        thread_counts: &[usize],
        device: Result<&Device, &str>,
        settings: serde_json::Value,
    ) -> Self {
        let system = sysinfo::System::new_with_specifics(
            sysinfo::RefreshKind::nothing()
                .with_cpu(sysinfo::CpuRefreshKind::nothing())
                .with_memory(sysinfo::MemoryRefreshKind::everything()),
        );
        let unknown = || "unknown".to_owned();
        let model = system.cpus().first().map(|cpu| cpu.brand().to_owned());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            started_unix: now.map_or(0, |d| d.as_secs()),
            command: std::env::args().skip(1).collect::<Vec<_>>().join(" "),
            host: sysinfo::System::host_name().unwrap_or_else(unknown),
            system: format!(
                "{}, {}",
                sysinfo::System::kernel_long_version(),
                sysinfo::System::long_os_version().unwrap_or_else(unknown)
            ),
            cpu: Cpu {
                model: model.unwrap_or_else(unknown),
                cores: cores(),
                simd: simd(),
                caches: caches(),
            },
            memory_bytes: system.total_memory(),
            gpu: gpu::describe(device),
            gpu_copy_bandwidth_gb_per_s: device.ok().and_then(|d| gpu::copy_bandwidth(d).ok()),
            compiler: env!("SPM_COMPILER").to_owned(),
            revision: revision().unwrap_or_else(unknown),
            version: env!("CARGO_PKG_VERSION"),
            copy_bandwidth_gb_per_s: thread_counts
                .iter()
                .filter_map(|&count| {
                    Some((count.to_string(), copy_bandwidth(&Threads::new(count))?))
                })
                .collect(),
            settings,
            earlier: Vec::new(),
        }
    }

    /// The copy bandwidth measured with `threads` threads, in GB/s.
    pub fn copy_bandwidth(&self, threads: usize) -> Option<f64> {
        self.copy_bandwidth_gb_per_s.get(&threads.to_string()).copied()
    }
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What git says of the sources, wherever the run was started.
fn revision() -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(workspace_root()).args(["describe", "--always", "--dirty", "--abbrev=12"]);
    let output = git.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn simd() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    for (name, present) in [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vl", is_x86_feature_detected!("avx512vl")),
    ] {
        if present {
            found.push(name);
        }
    }
    found
}

fn caches() -> Vec<String> {
    (0..8)
        .map_while(|index| {
            let (level, kind) = (described(index, "level")?, described(index, "type")?);
            Some(format!("L{level} {kind} {}", described(index, "size")?))
        })
        .collect()
}

/// Median bandwidth of copying one large array to another, in GB/s read plus written; `None` where
/// memory does not hold the arrays.
fn copy_bandwidth(threads: &Threads) -> Option<f64> {
    // Far beyond any cache's share of one core, yet allocated in a moment.
    const ELEMENTS: usize = 1 << 25;
    let array = |element: f64| {
        let mut array = Vec::new();
        array.try_reserve_exact(ELEMENTS).ok()?;
        array.resize(ELEMENTS, element);
        Some(array)
    };
    let (source, mut target) = (array(1.0)?, array(0.0)?);
    let sampling = Sampling {
        warm_up: 1,
        iterations: 5,
        min_time: Duration::ZERO,
        max_time: Duration::from_secs(2),
    };
    let timing = sample(&sampling, None::<fn()>, || {
        let target: Vec<_> = target
            .chunks_mut(ELEMENTS.div_ceil(threads.count()))
            .map(std::sync::Mutex::new)
            .collect();
        let chunk = ELEMENTS.div_ceil(threads.count());
        threads.for_each_chunk(target.len(), Schedule::Static, 1, |parts| {
            for part in parts {
                let mut target = target[part].lock().expect("nobody panics while copying");
                let source = &source[part * chunk..][..target.len()];
                target.copy_from_slice(black_box(source));
            }
        });
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(timing) = timing;
    Some((2 * ELEMENTS * size_of::<f64>()) as f64 / timing.median_s / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        let environment = Environment::observe(&[1], Err("none"), serde_json::json!({ "seed": 1 }));
        assert!(environment.cpu.cores >= 1);
        assert!(environment.compiler.starts_with("rustc 1."), "{}", environment.compiler);
        assert!(environment.memory_bytes > 1 << 20);
        assert!(environment.copy_bandwidth(1).is_some_and(|b| b > 0.1 && b < 1e4));
        assert_eq!(environment.copy_bandwidth(7), None);
    }

    #[test]
    fn runs_with_other_settings_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("environment.json");
        assert_eq!(earlier(&path, &serde_json::json!(1)), [serde_json::Value::Null; 0]);
        let run = |settings: u8| serde_json::json!({ "command": "c", "settings": settings });
        let mut second = run(2);
        second["earlier"] = serde_json::json!([run(1)]);
        std::fs::write(&path, second.to_string()).unwrap();
        let settings = |new: u8| -> Vec<serde_json::Value> {
            let runs = earlier(&path, &new.into());
            runs.iter().map(|run| run["settings"].clone()).collect()
        };
        assert_eq!(settings(3), [1, 2]);
        assert_eq!(settings(2), [1]);
        assert_eq!(settings(1), [2]);
    }
}

//! Where a run was made: written to `environment.json` beside the results.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use spm_cpu::Threads;
use spm_gpu::Device;

use super::bandwidth::{self, Level};
use super::cache::described;
use super::gpu;
use crate::files::write_whole;
use crate::results::ENVIRONMENT_FILE;
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
    /// Bandwidth by working set, the larger of which gives the two above.
    pub bandwidth_gb_per_s: Bandwidths,
    /// Seed and range of x, cache state, sampling: what the run was asked for.
    pub settings: serde_json::Value,
    /// Runs with other settings that this one goes on from: when, command, revision, settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<serde_json::Value>,
}

/// Bandwidth by working set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Bandwidths {
    /// By the number of threads.
    #[serde(default)]
    pub cpu: BTreeMap<String, Vec<Level>>,
    /// Inside device memory and the device's caches.
    #[serde(default)]
    pub gpu: Vec<Level>,
}

impl Bandwidths {
    /// Measures that of each number of threads, about a second each, and that of the device if there is one.
    pub fn measure(thread_counts: &[usize], device: Result<&Device, &str>) -> Self {
        let cpu = |&count: &usize| (count.to_string(), bandwidth::of_threads(&Threads::new(count)));
        Self {
            cpu: thread_counts.iter().map(cpu).collect(),
            gpu: device.ok().and_then(|d| bandwidth::of_device(d).ok()).unwrap_or_default(),
        }
    }

    /// The bandwidth in GB/s that bounds a case that moves `bytes`, with some threads on the CPU, or on
    /// the device.
    pub fn roof(&self, threads: Option<u64>, bytes: f64) -> Option<f64> {
        match threads {
            Some(threads) => bandwidth::roof(self.cpu.get(&threads.to_string())?, bytes),
            None => bandwidth::roof(&self.gpu, bytes),
        }
    }
}

/// The runs that the results folder of this `environment.json` holds already, those with these
/// settings excepted.
fn earlier(path: &Path, settings: &serde_json::Value) -> Vec<serde_json::Value> {
    let text = std::fs::read(path).unwrap_or_default();
    let Ok(before) = serde_json::from_slice::<serde_json::Value>(&text) else { return Vec::new() };
    let mut runs = before["earlier"].as_array().cloned().unwrap_or_default();
    let fields = ["started_unix", "command", "revision", "settings"];
    runs.push(fields.iter().map(|&field| (field.to_owned(), before[field].clone())).collect());
    runs.retain(|run| run["settings"] != *settings);
    runs
}

/// Looks at the machine as [`Environment::observe`] does, and writes `environment.json` into a results folder, which
/// is made if it is not there.
///
/// # Errors
/// A folder or a file that cannot be written.
pub fn record(
    folder: &Path,
    bandwidths: Bandwidths,
    device: Result<&Device, &str>,
    settings: serde_json::Value,
) -> anyhow::Result<Environment> {
    let path = folder.join(ENVIRONMENT_FILE);
    let cannot = || format!("cannot write {}", path.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    let mut environment = Environment::observe(bandwidths, device, settings);
    environment.earlier = earlier(&path, &environment.settings);
    write_whole(&path, serde_json::to_vec_pretty(&environment)?).with_context(cannot)?;
    Ok(environment)
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
    /// Looks at the machine, whose bandwidths were measured or are empty.
    pub fn observe(
        bandwidth_gb_per_s: Bandwidths,
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
        let of_memory = |levels: &[Level]| levels.last().map(|level| level.copy);
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
            gpu_copy_bandwidth_gb_per_s: of_memory(&bandwidth_gb_per_s.gpu),
            compiler: env!("SPM_COMPILER").to_owned(),
            revision: revision().unwrap_or_else(unknown),
            version: env!("CARGO_PKG_VERSION"),
            copy_bandwidth_gb_per_s: bandwidth_gb_per_s
                .cpu
                .iter()
                .filter_map(|(count, levels)| Some((count.clone(), of_memory(levels)?)))
                .collect(),
            bandwidth_gb_per_s,
            settings,
            earlier: Vec::new(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        let bandwidths = Bandwidths::measure(&[1], Err("none"));
        let environment =
            Environment::observe(bandwidths, Err("none"), serde_json::json!({ "seed": 1 }));
        assert!(environment.cpu.cores >= 1);
        assert!(environment.compiler.starts_with("rustc 1."), "{}", environment.compiler);
        assert!(environment.memory_bytes > 1 << 20);
        assert!((0.1..1e4).contains(&environment.copy_bandwidth_gb_per_s["1"]));
        let roof = |threads, bytes| environment.bandwidth_gb_per_s.roof(threads, bytes);
        assert!(roof(Some(1), 1e5) >= roof(Some(1), 1e12) && roof(Some(1), 1e12).is_some());
        assert_eq!((roof(Some(7), 1.0), roof(None, 1.0)), (None, None));
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

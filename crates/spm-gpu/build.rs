//! Where the linker finds the libcuda that `cust` asks for, if nowhere else: a file without symbols
//! in `link/lib64` (src/driver.rs has the symbols).

use std::env;
use std::path::{Path, PathBuf};

/// Folders that linkers search by themselves.
const SYSTEM: [&str; 6] =
    ["/usr/local/lib64", "/usr/local/lib", "/usr/lib64", "/lib64", "/usr/lib", "/lib"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for variable in ["CUDA_LIBRARY_PATH", "LIBRARY_PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let toolkits = toolkits();
    let own = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("link/lib64");
    // Searched only where there is no other, which a program that links libcuda itself means.
    if !libraries(&toolkits).any(|folder| folder.join("libcuda.so").exists()) {
        println!("cargo::rustc-link-search=native={}", own.display());
    }
}

/// Where `cust` looks for a CUDA toolkit.
fn toolkits() -> Vec<PathBuf> {
    let mut toolkits = listed("CUDA_LIBRARY_PATH");
    toolkits.push("/opt/cuda".into());
    let installed = Path::new("/usr/local").read_dir().into_iter().flatten().flatten();
    toolkits.extend(installed.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == "cuda" || name.starts_with("cuda-")
    }));
    toolkits
}

/// Where the linker looks for a libcuda.
fn libraries(toolkits: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let toolkits = toolkits.iter().flat_map(|toolkit| {
        ["lib64", "lib64/stubs", "targets/x86_64-linux/lib", "targets/x86_64-linux/lib/stubs"]
            .map(|folder| toolkit.join(folder))
    });
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let system = SYSTEM.into_iter().flat_map(move |folder| {
        [PathBuf::from(folder), Path::new(folder).join(format!("{architecture}-linux-gnu"))]
    });
    toolkits.chain(system).chain(listed("LIBRARY_PATH"))
}

/// The folders in a variable.
fn listed(variable: &str) -> Vec<PathBuf> {
    env::split_paths(&env::var_os(variable).unwrap_or_default()).collect()
}

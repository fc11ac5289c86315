//! As the build script of a crate that links libcuda: where it lies. Here, the stand-in.

fn main() {
    println!("cargo::rerun-if-env-changed=STAND_IN");
    if let Some(folder) = std::env::var_os("STAND_IN") {
        println!("cargo::rustc-link-search=native={}", folder.to_string_lossy());
        println!("cargo::rustc-link-arg-bin=links_libcuda=-lother");
    }
}

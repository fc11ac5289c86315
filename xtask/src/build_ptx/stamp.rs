//! What a PTX file says of its origin: compiler, and a digest of the sources it was made from.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use sha2::{Digest, Sha256};

use spm_study::hash::hexadecimal;

/// Sources that only the host compiles: they cannot change the PTX.
const HOST_ONLY: [&str; 2] = ["emulator", "emulated.rs"];

/// The stamp in the first lines of a PTX file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Version of rustc and LLVM.
    pub(super) compiler: String,
    /// SHA-256 of the kernel sources and the code generation arguments, in hexadecimal.
    pub(super) digest: String,
}

impl Stamp {
    /// The lines that go before the assembly.
    pub(super) fn header(&self, capability: u32) -> String {
        format!(
            "// The kernels of spm for compute capability {}.{}, made by `cargo xtask build-ptx`.\n\
             // compiler: {}\n\
             // sources: sha256 {}\n",
            capability / 10,
            capability % 10,
            self.compiler,
            self.digest
        )
    }

    /// Reads the stamp of a PTX file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| {
            format!("reading {}; `cargo xtask build-ptx` makes it", path.display())
        })?;
        Self::parse(&text)
            .with_context(|| format!("{} has no stamp in its first lines", path.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().take(3).find_map(|line| line.strip_prefix(name));
        Some(Self {
            compiler: field("// compiler: ")?.to_owned(),
            digest: field("// sources: sha256 ")?.to_owned(),
        })
    }
}

/// The digest of everything that shapes the PTX: the sources that the device compiles, in the order
/// of their paths, and the arguments.
pub(super) fn digest(kernels: &Path, arguments: &[String]) -> anyhow::Result<String> {
    let source = kernels.join("src");
    let mut files = Vec::new();
    collect(&source, &mut files)?;
    files.sort();
    ensure!(!files.is_empty(), "no kernel sources in {}", source.display());
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    for argument in arguments {
        add(argument.as_bytes());
    }
    for file in files {
        let name = file.strip_prefix(&source)?.to_string_lossy().replace('\\', "/");
        add(name.as_bytes());
        add(&fs::read(&file).with_context(|| format!("reading {}", file.display()))?);
    }
    Ok(hexadecimal(hash))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| HOST_ONLY.iter().any(|host| name == *host)) {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_reads_back() {
        let stamp = Stamp { compiler: "rustc 1.0, LLVM 2".into(), digest: "ab".into() };
        let text = format!("{}.version 7.8\n", stamp.header(90));
        assert!(text.starts_with("// The kernels of spm for compute capability 9.0,"));
        assert_eq!(Stamp::parse(&text), Some(stamp));
        assert_eq!(Stamp::parse(".version 7.8\n"), None);
    }

    #[test]
    fn the_digest_sees_kernels_and_arguments_but_not_the_emulator() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join("src").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let now = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
            digest(folder.path(), &arguments).unwrap()
        };
        write("lib.rs", "mod a;");
        write("a.rs", "1");
        let first = now(&["x"]);
        assert_eq!(first.len(), 64);
        write("emulator/mod.rs", "host only");
        write("device/emulated.rs", "host only");
        assert_eq!(now(&["x"]), first);
        assert_ne!(now(&["y"]), first);
        write("a.rs", "2");
        assert_ne!(now(&["x"]), first);
    }
}

//! Finds a rustc that can compile for the device: one with the sources of `core`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names a compiler that goes before all others.
const VARIABLE: &str = "SPM_DEVICE_RUSTC";

/// A usable compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compiler {
    /// The program.
    pub(super) rustc: PathBuf,
    /// Its version and LLVM's, as it stands in the stamp.
    pub(super) identity: String,
}

/// Finds a compiler; among the usable ones, one of `preferred` (identities) goes first, unless the
/// variable names another.
///
/// # Errors
/// What was looked at, and the commands that install one.
pub(super) fn find<'a>(preferred: impl Iterator<Item = &'a str>) -> Result<Compiler, String> {
    if let Some(rustc) = std::env::var_os(VARIABLE) {
        let rustc = PathBuf::from(rustc);
        return examine(&rustc).map_err(|why| {
            format!("{VARIABLE}={}: {why}\n\n{}", rustc.display(), how_to_install())
        });
    }
    let mut usable = Vec::new();
    let mut refused = String::new();
    for rustc in candidates() {
        match examine(&rustc) {
            Ok(compiler) => usable.push(compiler),
            Err(why) => refused += &format!("\n  {}: {why}", rustc.display()),
        }
    }
    for identity in preferred {
        if let Some(position) = usable.iter().position(|c| c.identity == identity) {
            return Ok(usable.swap_remove(position));
        }
    }
    usable.into_iter().next().ok_or_else(|| {
        format!(
            "No compiler for the device (nvptx64-nvidia-cuda). Looked at:{refused}\n\n{}",
            how_to_install()
        )
    })
}

fn how_to_install() -> String {
    format!(
        "Any one of these makes one available:\n  \
         rustup toolchain install nightly --profile minimal --component rust-src\n  \
         apt-get install --no-install-recommends rustc-web rust-web-src     (Debian)\n  \
         {VARIABLE}=/path/to/rustc     (1.96 or later, with the component rust-src)"
    )
}

/// A nightly of rustup, the distribution's compiler, the toolchain in use.
fn candidates() -> Vec<PathBuf> {
    let ask = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    };
    let mut candidates = Vec::new();
    candidates.extend(ask("rustup", &["which", "--toolchain", "nightly", "rustc"]));
    candidates.push(PathBuf::from("/usr/bin/rustc"));
    candidates.extend(ask("rustup", &["which", "rustc"]));
    candidates.dedup();
    candidates
}

fn examine(rustc: &Path) -> Result<Compiler, String> {
    let ask = |argument: &[&str]| {
        let output = Command::new(rustc).args(argument).output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}", output.status, said.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let sysroot = PathBuf::from(ask(&["--print", "sysroot"])?);
    let core = sysroot.join("lib/rustlib/src/rust/library/core/Cargo.toml");
    if !core.exists() {
        return Err(format!("no sources of core (rust-src) below {}", sysroot.display()));
    }
    let version = ask(&["-vV"])?;
    let llvm = version.lines().find_map(|line| line.strip_prefix("LLVM version: "));
    let first = version.lines().next().unwrap_or_default();
    // A compiler of a distribution says how it was built, after the commit and its date.
    let name = first.find(") (").map_or(first, |end| &first[..=end]);
    Ok(Compiler {
        rustc: rustc.to_owned(),
        identity: format!("{name}, LLVM {}", llvm.unwrap_or("unknown")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_none_says_why() {
        let why = examine(Path::new("/no/such/rustc")).unwrap_err();
        assert!(why.contains("No such file"), "{why}");
        let why = examine(Path::new("/bin/false")).unwrap_err();
        assert_eq!(why, "exit status: 1: ");
    }

    #[test]
    fn the_advice_names_a_command_for_each_way() {
        let advice = how_to_install();
        assert!(advice.contains("rustup toolchain install nightly"));
        assert!(advice.contains("apt-get install"));
        assert!(advice.contains("SPM_DEVICE_RUSTC="));
    }
}

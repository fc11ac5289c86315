//! `ptxas`, which needs no GPU: whether the PTX assembles, registers and spills.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// What one kernel takes of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    /// Registers of a thread.
    pub(super) registers: u32,
    /// Bytes that a thread stores to local memory for want of registers.
    pub(super) spilled_bytes: u32,
}

/// The assembler to use: `named`, or the one on the PATH, or none.
///
/// # Errors
/// When `named` does not run.
pub(super) fn find(named: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let program = named.unwrap_or(Path::new("ptxas"));
    let runs = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    ensure!(runs || named.is_none(), "{} does not run", program.display());
    Ok(runs.then(|| program.to_owned()))
}

/// Assembles `ptx` for `cpu` and returns what each entry uses.
///
/// # Errors
/// What the assembler says.
pub(super) fn assemble(
    ptxas: &Path,
    ptx: &str,
    cpu: &str,
) -> anyhow::Result<HashMap<String, Usage>> {
    let mut child = Command::new(ptxas)
        .args(["--verbose", "--output-file", "/dev/null", "--gpu-name", cpu, "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("starting ptxas")?;
    let mut input = child.stdin.take().context("ptxas has an input")?;
    let text = ptx.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output()?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{report}");
    writer.join().ok().context("writing to ptxas")??;
    Ok(parse(&report))
}

fn parse(report: &str) -> HashMap<String, Usage> {
    let mut usage: HashMap<String, Usage> = HashMap::new();
    let mut entry = String::new();
    for line in report.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            entry = rest.split('\'').next().unwrap_or(rest).to_owned();
        } else if line.contains("bytes spill stores") {
            usage.entry(entry.clone()).or_default().spilled_bytes =
                number_before(line, " bytes spill stores");
        } else if line.contains(" registers") {
            usage.entry(entry.clone()).or_default().registers = number_before(line, " registers");
        }
    }
    usage
}

fn number_before(line: &str, what: &str) -> u32 {
    let before = line.split(what).next().unwrap_or_default();
    before.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_report() {
        let report = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 8 bytes cumulative stack size
ptxas info    : Compile time = 4.116 ms
ptxas info    : Compiling entry function 'a' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers
";
        let usage = parse(report);
        assert_eq!(usage["a"], Usage { registers: 30, spilled_bytes: 0 });
        assert_eq!(usage["b"], Usage { registers: 255, spilled_bytes: 16 });
    }
}

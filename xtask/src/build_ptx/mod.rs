//! `cargo xtask build-ptx`: the kernels of `gpu-kernels` to PTX.
//!
//! The result is committed and embedded in `spm-gpu`, so that nobody who only uses the kernels
//! needs a device compiler; `--check` fails when the kernels have changed since. The recipe is
//! explained in docs/gpu-toolchain.md.

mod assembler;
mod compiler;
mod guard;
mod stamp;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use comfy_table::{Table, presets};
use spm_gpu_kernels::{MOST_REGISTERS, RESIDENT_BLOCKS, ROLLED_ENTRIES};

use compiler::Compiler;
use stamp::Stamp;

use spm_study::files::write_whole;
use spm_study::output::{print, say};
use spm_study::suite::workspace_root;

/// The committed file, below the workspace.
const PTX: &str = "crates/spm-gpu/ptx/spm_sm75.ptx";

/// The compute capability that the text asks for: 75 for 7.5, whose loads have hints for L2. `spm-gpu` takes the hints
/// out for 7.0, Volta.
const CAPABILITY: u32 = 75;

/// What the compiler makes code for: 7.0.
const CPU: &str = "sm_70";

/// What the PTX is assembled for, to see its registers: the least that CUDA 13 knows, and Hopper.
const ASSEMBLED_FOR: [&str; 2] = ["sm_75", "sm_90"];

/// Arguments of `build-ptx`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Change nothing; fail when the committed PTX was made from other sources, or differs from
    /// what the same compiler makes of them now.
    #[arg(long)]
    check: bool,
    /// Also assemble the PTX with this `ptxas` and print registers and spills; no GPU is needed.
    /// Default: the one on the PATH, if there is one.
    #[arg(long, value_name = "PROGRAM")]
    ptxas: Option<PathBuf>,
}

/// The compiler's arguments that shape the code; part of the digest.
///
/// PTX 7.4 because the compiler's default for the capability lacks cache hints on loads.
///
/// Rust does not mark functions as convergent, only LLVM's intrinsics are. What may copy a call
/// into both arms of a branch before everything is inlined is therefore switched off: the
/// jump threading of MIR (which was seen to copy a barrier), the splitting of call sites and
/// the threading of small blocks.
fn codegen_arguments() -> Vec<String> {
    vec![
        format!("-Ctarget-cpu={CPU}"),
        "-Zmir-enable-passes=-JumpThreading".to_owned(),
        "-Cllvm-args=-callsite-splitting-duplication-threshold=0 \
         -simplifycfg-max-small-block-size=0"
            .to_owned(),
        "-Ctarget-feature=+ptx74".to_owned(),
    ]
}

/// Builds, or checks, the PTX.
///
/// # Errors
/// No device compiler, kernels that do not compile, PTX that a guard refuses, and with `--check`
/// a committed file that is stale or different.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let workspace = &workspace_root();
    let path = workspace.join(PTX);
    let assembler = assembler::find(args.ptxas.as_deref())?;
    let digest = stamp::digest(&workspace.join("gpu-kernels"), &codegen_arguments())?;
    if args.check {
        check_digest(&path, &digest)?;
    }
    let committed = Stamp::read(&path).ok();
    let compiler = match compiler::find(committed.iter().map(|stamp| stamp.compiler.as_str())) {
        Ok(compiler) => compiler,
        Err(missing) if args.check => {
            say(format_args!(
                "{missing}\n\nThe digest of the kernel sources is that of the committed PTX;"
            ))?;
            say(format_args!("the PTX itself was not rebuilt."))?;
            return Ok(());
        }
        Err(missing) => bail!(missing),
    };
    say(format_args!("device compiler: {} ({})", compiler.identity, compiler.rustc.display()))?;
    let unoptimised = compile(workspace, &compiler, Purpose::Reference)?;
    let assembly = compile(workspace, &compiler, Purpose::Product)?;
    let stamp = Stamp { compiler: compiler.identity.clone(), digest };
    let text = format!("{}{}", stamp.header(CAPABILITY), direct(&tidy(&raised(&assembly))));
    let entries = guard::check(&text, &unoptimised)?;
    print_usage(&entries, &text, assembler.as_deref())?;
    if !args.check {
        write_whole(&path, &text).with_context(|| format!("writing {}", path.display()))?;
        say(format_args!("wrote {} ({} KiB)", path.display(), text.len() / 1024))?;
    } else if committed.as_ref().is_some_and(|c| c.compiler == compiler.identity) {
        let old = fs::read_to_string(&path)?;
        ensure!(
            old == text,
            "{} is not what {} makes of the kernels now; run `cargo xtask build-ptx` and commit \
             the result",
            path.display(),
            compiler.identity
        );
        say(format_args!("{}: digest and bytes agree", path.display()))?;
    } else {
        say(format_args!(
            "{}: digest agrees; bytes not compared, another compiler made it ({})",
            path.display(),
            committed.as_ref().map_or("unknown", |c| c.compiler.as_str())
        ))?;
    }
    Ok(())
}

/// Prints a table of the entries, with registers and spills where there is an assembler.
fn print_usage(
    entries: &[guard::Entry],
    text: &str,
    assembler: Option<&Path>,
) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header([
        "entry",
        "assembled for",
        "barriers",
        "warp operations",
        "registers",
        "spilled bytes",
    ]);
    let cpus = if assembler.is_some() { &ASSEMBLED_FOR[..] } else { &["-"] };
    for cpu in cpus {
        let usage = assembler.map(|ptxas| {
            assembler::assemble(ptxas, text, cpu).with_context(|| format!("assembling for {cpu}"))
        });
        let usage = usage.transpose()?;
        for entry in entries {
            let used = usage.as_ref().and_then(|u| u.get(&entry.name));
            table.add_row([
                entry.name.clone(),
                (*cpu).to_owned(),
                entry.barriers.to_string(),
                entry.warp_operations.to_string(),
                used.map_or_else(|| "-".to_owned(), |u| u.registers.to_string()),
                used.map_or_else(|| "-".to_owned(), |u| u.spilled_bytes.to_string()),
            ]);
        }
    }
    print(&format!("{table}\n"))?;
    Ok(())
}

/// Fails when the committed PTX at `path` was made from other sources than those of `now`.
fn check_digest(path: &Path, now: &str) -> anyhow::Result<()> {
    let stamp = Stamp::read(path)?;
    ensure!(
        stamp.digest == now,
        "{} is stale: made from sources with digest {}, now it is {now}; run `cargo xtask build-ptx` \
         and commit the result",
        path.display(),
        stamp.digest
    );
    Ok(())
}

/// What a compilation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The PTX itself.
    Product,
    /// Without any optimisation: what the source says, for the guard to compare with.
    Reference,
}

/// Compiles the kernels and returns the compiler's assembly.
fn compile(workspace: &Path, compiler: &Compiler, purpose: Purpose) -> anyhow::Result<String> {
    let folder = workspace.join("target/ptx").join(CPU);
    fs::create_dir_all(&folder)?;
    let (name, optimisation): (_, &[&str]) = match purpose {
        Purpose::Product => ("spm.s", &[]),
        Purpose::Reference => ("unoptimised.s", &["-Copt-level=0", "-Zmir-opt-level=0"]),
    };
    let output = folder.join(name);
    if !output.exists() {
        forget_build(&folder)?;
    }
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace)
        .args(["rustc", "--quiet", "--package", "spm-gpu-kernels", "--lib"])
        .args(["--crate-type", "staticlib", "--profile", "ptx"])
        .args(["--target", "nvptx64-nvidia-cuda", "-Zbuild-std=core", "--target-dir"])
        .arg(&folder)
        .arg("--")
        .args(codegen_arguments())
        .args(optimisation)
        .arg(format!("--emit=asm={}", output.display()))
        // Flags of the host's build would change the device's, and paths would change its bytes.
        .env("CARGO_ENCODED_RUSTFLAGS", format!("--remap-path-prefix={}=/spm", workspace.display()))
        .env_remove("RUSTFLAGS")
        // Incremental compilation cuts the crate into other units of code.
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("RUSTC", &compiler.rustc)
        .env("RUSTC_BOOTSTRAP", "1");
    let status = command.status().context("starting cargo for the device build")?;
    ensure!(status.success(), "the kernels do not compile for {CPU} (see above)");
    fs::read_to_string(&output).with_context(|| format!("reading {}", output.display()))
}

/// Makes cargo compile the kernels again: its own record knows nothing of the assembly file.
fn forget_build(folder: &Path) -> anyhow::Result<()> {
    let records = folder.join("nvptx64-nvidia-cuda/ptx/.fingerprint");
    if !records.exists() {
        return Ok(());
    }
    for record in fs::read_dir(&records)? {
        let path = record?.path();
        if path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("spm-gpu-kernels-")) {
            fs::remove_dir_all(path)?;
        }
    }
    Ok(())
}

/// The assembly with the directives for [`MOST_REGISTERS`], [`RESIDENT_BLOCKS`] and [`ROLLED_ENTRIES`].
fn direct(assembly: &str) -> String {
    let mut text = String::with_capacity(assembly.len());
    let mut directives = String::new();
    for line in assembly.lines() {
        text.push_str(line);
        text.push('\n');
        if let Some(name) = line.strip_prefix(".visible .entry ") {
            directives = of_entry(name);
        }
        // The end of the parameters.
        if line == ")" || line.ends_with("()") {
            text.push_str(&std::mem::take(&mut directives));
        }
    }
    text
}

/// The directives of an entry.
fn of_entry(name: &str) -> String {
    let registers = MOST_REGISTERS.iter().find(|(start, _)| name.starts_with(start));
    let resident = RESIDENT_BLOCKS.iter().find(|(start, _)| name.starts_with(start));
    let mut directives = match (registers, resident) {
        (Some((_, registers)), _) => format!(".maxnreg {registers}\n"),
        (None, Some((_, (threads, blocks)))) => {
            format!(".maxntid {threads}, 1, 1\n.minnctapersm {blocks}\n")
        }
        (None, None) => String::new(),
    };
    if ROLLED_ENTRIES.iter().any(|start| name.starts_with(start)) {
        directives.push_str(".pragma \"nounroll\";\n");
    }
    directives
}

/// The assembly for [`CAPABILITY`].
fn raised(assembly: &str) -> String {
    assembly.replacen(&format!(".target {CPU}"), &format!(".target sm_{CAPABILITY}"), 1)
}

/// The assembly without the comments that only make it larger.
fn tidy(assembly: &str) -> String {
    let mut text = String::with_capacity(assembly.len());
    let noise = |line: &str| {
        line.is_empty()
            || line == "//"
            || line.starts_with("// Generated by LLVM")
            || line.starts_with("// .globl")
    };
    for line in assembly.lines().filter(|line| !noise(line.trim())) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

//! Faults injected into `bench`: no finished row may be lost, doubled or cut. docs/testing.md has the
//! table of what was injected and what came.
#![cfg(unix)]

#[path = "common/signals.rs"]
mod signals;
#[path = "common/table.rs"]
mod table;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use signals::{kills, moment, send};
use spm_study::results::{ENVIRONMENT_FILE, MATRICES_FOLDER, RESULTS_FILE, Row, Status};
use table::{keys, rows};

const MATRICES: [&str; 2] = ["cage4", "stencil5[n=30]"];

/// Adds the arguments of a run, or of the rest of one.
fn with_arguments(
    mut command: Command,
    matrices: &[&str],
    out: &Path,
    iterations: &str,
) -> Command {
    command.args(["bench", "spmv-cpu-partitions"]).args(matrices).args(["--threads", "2"]);
    command.args(["--no-bandwidth", "--min-time-ms", "1", "--iterations", iterations, "--resume"]);
    command.arg("--out").arg(out);
    command.env_remove("RUST_BACKTRACE").stdout(Stdio::null());
    command
}

fn bench(out: &Path, iterations: &str) -> Command {
    bench_of(&MATRICES, out, iterations)
}

fn bench_of(matrices: &[&str], out: &Path, iterations: &str) -> Command {
    let command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let mut command = with_arguments(command, matrices, out, iterations);
    command.stderr(Stdio::null());
    command
}

/// A run under a limit of the shell, such as `ulimit -v 500000`.
fn limited(limit: &str, out: &Path) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{limit}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_xtask")]);
    with_arguments(command, &MATRICES, out, FEW).output().unwrap()
}

/// Quick cases.
const FEW: &str = "3";
/// The first case takes longer than a test.
const MANY: &str = "1000000000";

/// Everything that has a final name is whole.
fn assert_whole(out: &Path) {
    let read = |path: &Path| -> serde_json::Value {
        serde_json::from_slice(&fs::read(path).unwrap()).expect("a whole file")
    };
    if out.join(ENVIRONMENT_FILE).exists() {
        assert!(read(&out.join(ENVIRONMENT_FILE)).is_object());
    }
    for file in fs::read_dir(out.join(MATRICES_FOLDER)).into_iter().flatten() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "json") {
            assert!(read(&path).is_object());
        }
    }
    if out.join("report.html").exists() {
        let page = fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.trim_end().ends_with("</html>"));
    }
}

/// Every case of `expected` is there once.
fn assert_complete(rows: &[Row], expected: &[Row]) {
    assert_eq!(rows.len(), expected.len(), "a case is missing or there twice");
    assert_eq!(keys(rows), keys(expected));
    assert!(rows.iter().all(|row| row.status == Status::Ok), "{rows:?}");
}

fn one_run(folder: &Path) -> (Vec<Row>, Duration) {
    let begin = Instant::now();
    assert!(bench(&folder.join("whole"), FEW).status().unwrap().success());
    (rows(&folder.join("whole")), begin.elapsed())
}

/// As many runs as `SPM_KILLS` says are killed at random moments and go on.
#[test]
fn signals_at_any_moment_lose_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let (expected, whole) = one_run(folder.path());
    let mut folders = 0;
    let mut out = folder.path().join("cut0");
    let mut kept = Vec::new();
    for kill in 0..kills() {
        let mut child = bench(&out, FEW).spawn().unwrap();
        sleep(moment(whole));
        let signal = if kill % 2 == 0 { "-KILL" } else { "-TERM" };
        send(signal, &child);
        let finished = child.wait().unwrap().success();
        assert_whole(&out);
        let now = rows(&out);
        assert_eq!(now[..kept.len()], kept[..], "a finished row was lost or changed");
        kept = now;
        if finished {
            assert_complete(&kept, &expected);
            folders += 1;
            out = folder.path().join(format!("cut{folders}"));
            kept.clear();
        }
    }
    assert!(bench(&out, FEW).status().unwrap().success());
    assert_eq!(rows(&out)[..kept.len()], kept[..]);
    assert_complete(&rows(&out), &expected);
}

/// With less memory than it needs a run ends with an error, and goes on when there is more.
#[cfg(target_os = "linux")]
#[test]
fn a_memory_limit_loses_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let (expected, _) = one_run(folder.path());
    let out = folder.path().join("out");
    let mut kept = Vec::new();
    let mut refused = 0;
    // In KiB of address space.
    for limit in [20_000, 100_000, 200_000, 400_000, 600_000, 800_000] {
        let output = limited(&format!("ulimit -v {limit}"), &out);
        assert_whole(&out);
        let now = rows(&out);
        assert_eq!(now[..kept.len()], kept[..], "a finished row was lost or changed");
        assert!(now.iter().all(|row| row.status == Status::Ok), "{now:?}");
        kept = now;
        // Below what the program itself takes the system ends it, without a word.
        refused += usize::from(!output.status.success());
    }
    assert!(refused > 0, "20 MB were enough");
    assert!(bench(&out, FEW).status().unwrap().success());
    assert_complete(&rows(&out), &expected);
}

#[cfg(target_os = "linux")]
#[test]
fn a_matrix_beyond_memory_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.mtx");
    let header = "%%MatrixMarket matrix coordinate real general\n100000 100000 300000000\n1 1 1\n";
    fs::write(&path, header).unwrap();
    // Long enough for its entries, without taking any of the disk.
    fs::File::options().write(true).open(&path).unwrap().set_len(2_400_000_000).unwrap();
    let script = "ulimit -v 1000000; exec \"$0\" info \"$1\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_xtask")]).arg(&path);
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected =
        "large.mtx:1: expected 1200000000 bytes of memory for 300000000 entries, found less";
    assert!(stderr.lines().count() == 1 && stderr.contains(expected), "{stderr}");
}

/// A limit on the size of files stands for a full disk: the write that crosses it fails.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_line_and_loses_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let (expected, _) = one_run(folder.path());
    let out = folder.path().join("out");
    let mut kept = Vec::new();
    // In KiB; the description of the machine alone takes about 5.
    for limit in [0, 4, 8, 12] {
        let output = limited(&format!("trap '' XFSZ; ulimit -f {limit}"), &out);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().last().unwrap_or_default();
        assert!(!output.status.success());
        assert!(
            last.starts_with("error: cannot write") && last.contains("File too large"),
            "{stderr}"
        );
        assert_whole(&out);
        let now = rows(&out);
        assert_eq!(now[..kept.len()], kept[..], "a finished row was lost or changed");
        kept = now;
    }
    assert!(!kept.is_empty());
    assert!(bench(&out, FEW).status().unwrap().success());
    assert_complete(&rows(&out), &expected);
}

#[test]
fn a_folder_that_cannot_be_written_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    for out in [file.join("out").as_path(), Path::new("/proc/results")] {
        let output = limited("true", out);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(stderr.lines().count() <= 2, "{stderr}");
        let line = stderr.lines().last().unwrap();
        assert!(line.starts_with(&format!("error: cannot create {}", out.display())), "{line}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut first = bench(&out, MANY).spawn().unwrap();
    let begin = Instant::now();
    while !out.join(RESULTS_FILE).exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing begins");
        sleep(Duration::from_millis(5));
    }
    let output = limited("true", &out);
    first.kill().unwrap();
    first.wait().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("another bench is running in"), "{stderr}");
}

/// Starts three runs, one after the other, and kills each when it is in the work of this name.
fn die_three_times(mut run: impl FnMut() -> Command, out: &Path, name: &str) {
    for attempt in 1..=3 {
        let mut child = run().spawn().unwrap();
        let begin = Instant::now();
        let in_the_work = || -> Option<bool> {
            let text = fs::read(out.join("unfinished.json")).ok()?;
            let record: serde_json::Value = serde_json::from_slice(&text).ok()?;
            Some(record["work"].as_str()?.contains(name) && record["attempts"] == attempt)
        };
        while in_the_work() != Some(true) {
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not begin: {name}");
            sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// A case in which three processes have died is given up, and the run goes on behind it.
#[test]
fn a_deadly_case_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (expected, _) = one_run(folder.path());
    let out = folder.path().join("out");
    die_three_times(|| bench(&out, MANY), &out, "spmv-cpu-partitions");
    let output = limited("true", &out);
    assert!(!output.status.success(), "a given up case is a failure");
    let rows = rows(&out);
    assert_eq!(rows.len(), expected.len());
    assert_eq!((rows[0].status, rows[0].key()), (Status::Failed, expected[0].key()));
    assert!(rows[0].reason.starts_with("given up: 3 processes ended in it"), "{}", rows[0].reason);
    assert!(rows[1..].iter().all(|row| row.status == Status::Ok));
}

/// So is a matrix: its cases have rows that say so, and no later run loads it.
#[test]
fn a_deadly_matrix_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // Large enough to be killed before it is there.
    let deadly = "stencil27[n=40]";
    let run = || bench_of(&[deadly, MATRICES[0]], &out, FEW);
    die_three_times(run, &out, &format!("load synthetic:{deadly}"));
    assert!(!run().status().unwrap().success(), "a matrix that was given up is a failure");
    let rows = rows(&out);
    let (given_up, others): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row.matrix.contains(deadly));
    assert!(!others.is_empty() && others.iter().all(|row| row.status == Status::Ok));
    assert_eq!(given_up.len(), others.len(), "a row for each case");
    for row in given_up {
        assert_eq!((row.status, row.entries), (Status::Failed, 0));
        assert!(row.reason.starts_with("given up: 3 processes ended in it"), "{}", row.reason);
    }
    assert!(run().status().unwrap().success(), "nothing is left to do");
    assert_eq!(self::rows(&out), rows);
    assert!(!out.join("unfinished.json").exists());
}

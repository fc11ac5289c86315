//! `bench` as a user runs it: killed in the middle and resumed, and never over earlier results.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use xtask::results::{self, CaseKey, RESULTS_FILE, Row, Status};

const MATRICES: [&str; 3] = ["cage4", "stencil5[n=30]", "road[n=2000,edges=2800]"];

fn bench(out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["bench", "spmv-cpu-partitions"]).args(MATRICES);
    command.args(["--threads", "2", "--iterations", "3", "--min-time-ms", "1", "--out"]).arg(out);
    command.args(more).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn rows(out: &Path) -> Vec<Row> {
    results::read(&out.join(RESULTS_FILE)).unwrap_or_default()
}

fn keys(rows: &[Row]) -> BTreeSet<CaseKey> {
    rows.iter().map(Row::key).collect()
}

#[test]
fn a_killed_run_resumes_to_the_same_cases() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    assert!(bench(&whole, &[]).status().unwrap().success());
    let expected = rows(&whole);
    assert!(expected.iter().all(|row| row.status == Status::Ok), "{expected:?}");
    assert!(whole.join("report.html").is_file() && whole.join("environment.json").is_file());

    // Kill with a growing number of rows on the disk; each time the finished ones stay.
    let mut kept = Vec::new();
    for goal in [1, expected.len() / 2, expected.len() - 2] {
        let mut child = bench(&cut, &["--resume"]).spawn().unwrap();
        let begin = Instant::now();
        while rows(&cut).len() < goal && begin.elapsed() < Duration::from_secs(60) {
            sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let now = rows(&cut);
        assert!(now.len() >= goal, "{} of {goal} rows", now.len());
        assert_eq!(now[..kept.len()], kept[..], "a finished row was lost or changed");
        kept = now;
    }
    assert!(bench(&cut, &["--resume"]).status().unwrap().success());
    let resumed = rows(&cut);
    assert_eq!(resumed.len(), expected.len(), "a case is missing or there twice");
    assert_eq!(keys(&resumed), keys(&expected));
    // Speedups survive the interruption: the serial time is read back.
    assert!(resumed.iter().all(|row| row.speedup_vs_serial.is_some()));
}

#[test]
fn earlier_results_are_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    for _ in 0..2 {
        assert!(bench(&out, &["--backend", "cpu"]).status().unwrap().success());
    }
    assert_eq!(keys(&rows(&out)), keys(&rows(&folder.path().join("results.1"))));
}

#[test]
fn a_wrong_name_is_one_clear_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["bench", "spmv-cpu-partitions", "no-such-matrix"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("error: no-such-matrix: no such file"), "{text}");
}

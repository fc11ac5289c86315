//! `bench` as a user runs it: killed in the middle and resumed, and never over earlier results.

#[cfg(unix)]
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "common/signals.rs"]
mod signals;
#[path = "common/table.rs"]
mod table;

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use signals::send;
use spm_study::results::{Row, Status};
use table::{keys, rows};

const MATRICES: [&str; 3] = ["cage4", "stencil5[n=30]", "road[n=2000,edges=2800]"];

fn bench(out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["bench", "spmv-cpu-partitions"]).args(MATRICES);
    command.args(["--threads", "2", "--iterations", "3", "--min-time-ms", "1", "--no-bandwidth"]);
    command.arg("--out").arg(out).args(more).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Numbers of threads whose bandwidth a run has measured.
fn threads_with_bandwidth(out: &Path) -> usize {
    let text = std::fs::read(out.join("environment.json")).unwrap();
    let environment: serde_json::Value = serde_json::from_slice(&text).unwrap();
    environment["bandwidth_gb_per_s"]["cpu"].as_object().unwrap().len()
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
fn x_is_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let (x, out) = (folder.path().join("x.mtx"), folder.path().join("out"));
    let file = x.to_str().unwrap();
    let more = ["--backend", "cpu", "--x-range", "-2,5", "--seed", "9", "--write-x", file];
    assert!(bench(&out, &more).status().unwrap().success());
    let text = std::fs::read_to_string(&x).unwrap();
    assert!(text.starts_with("%%MatrixMarket matrix array real general\n2000 1\n"), "{text:.60}");
    let settings = |out: &Path| -> serde_json::Value {
        let text = std::fs::read(out.join("environment.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()["settings"]["x"].clone()
    };
    assert_eq!(settings(&out), serde_json::json!({ "low": -2.0, "high": 5.0, "seed": 9 }));

    let (again, copy) = (folder.path().join("again"), folder.path().join("copy.mtx"));
    let more = ["--backend", "cpu", "--read-x", file, "--write-x", copy.to_str().unwrap()];
    assert!(bench(&again, &more).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), text);
    assert_eq!(settings(&again)["elements"], 2000);
    // Errors against the reference are those of the same x.
    let errors = |out: &Path| rows(out).iter().map(|row| row.bound_err).collect::<Vec<_>>();
    assert_eq!(errors(&out), errors(&again));

    std::fs::write(
        &x,
        "%%MatrixMarket matrix array real general\n9 1\n1\n2\n3\n4\n5\n6\n7\n8\n9\n",
    )
    .unwrap();
    let mut short = bench(&again, &["--backend", "cpu", "--read-x", file]);
    let output = short.stderr(Stdio::piped()).output().unwrap();
    assert!(!output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("x has 9 elements, 900 are needed"), "{stderr}");
    assert!(rows(&again).iter().all(|row| row.matrix == "synthetic:cage4"));
}

#[test]
fn a_report_is_repeated_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("suite");
    std::fs::create_dir(&suite).unwrap();
    let text = "%%MatrixMarket matrix coordinate pattern general\n3 3 4\n1 1\n2 3\n3 1\n3 2\n";
    std::fs::write(suite.join("small.mtx"), text).unwrap();
    let out = folder.path().join("out");
    let run = |report: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(["bench-all", "--report", report, "--threads", "2", "--resume"]);
        command
            .args(["--no-bandwidth", "--suite"])
            .arg(&suite)
            .arg("--out")
            .arg(&out)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(command.status().unwrap().success());
    };
    run("R1");
    let cpu = |rows: Vec<Row>| rows.into_iter().filter(|r| r.backend == "cpu").collect::<Vec<_>>();
    let first = cpu(rows(&out));
    assert_eq!(first.len(), 45);
    assert!(first.iter().all(|r| r.status == Status::Ok && r.iterations == Some(25)), "{first:?}");
    run("r3");
    let second = cpu(rows(&out));
    let r3 = &second[45..];
    assert!(!r3.is_empty() && r3.iter().all(|r| r.precision == "f32" && r.iterations == Some(5)));
    let environment = std::fs::read(out.join("environment.json")).unwrap();
    let environment: serde_json::Value = serde_json::from_slice(&environment).unwrap();
    assert_eq!(environment["settings"]["scope"], "call");
    assert_eq!(environment["earlier"][0]["settings"]["report"], "R1");
    assert_eq!(environment["earlier"][0]["settings"]["x"]["low"], -3e-5);
}

#[test]
fn the_wide_suite_ends_with_the_distribution_of_its_ratios() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("wide");
    let line = "bench wide --half all --max-entries 3000 --backend cpu --op spmv,spmm --k 4 \
                --threads 1 --iterations 1 --min-time-ms 0 --out";
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(line.split_whitespace()).arg(&out).stderr(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success());
    let rows = rows(&out);
    let matrices: HashSet<&str> = rows.iter().map(|row| row.matrix.as_str()).collect();
    assert!(matrices.len() >= 3, "{matrices:?}");
    assert!(rows.iter().all(|row| row.experiment == "wide" && row.entries <= 3000));
    let text = String::from_utf8(output.stdout).unwrap();
    for comparison in ["spmv cpu threads=1", "spmm cpu k=4 threads=1"] {
        let all = text.lines().find(|line| line.starts_with(&format!("{comparison}  ")));
        let fields: Vec<&str> = all.unwrap()[comparison.len()..].split_whitespace().collect();
        assert_eq!(fields[..2], ["all", &matrices.len().to_string()], "{text}");
    }
    // Drawn again, as after a run that was killed.
    let again = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("report").arg(&out).output().unwrap();
    let again = String::from_utf8(again.stdout).unwrap();
    let distribution = |text: &str| text.split_once("auto against").map(|(_, end)| end.to_owned());
    assert_eq!(distribution(&again), distribution(&text));
    let page = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(page.contains("auto against the best peer on unseen matrices"));
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

/// Arguments that make no run, each with the beginning of what is said.
#[test]
fn wrong_arguments_are_explained_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n";
    for path in ["a/m.mtx", "b/m.mtx"] {
        let path = folder.path().join(path);
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(path, matrix).unwrap();
    }
    let one = "bench spmv-cpu-partitions ";
    for (line, expected) in [
        ("bench spmv", "error: no experiment is called spmv"),
        ("bench-all --experiments spmv", "error: no experiment is called spmv"),
        ("bench-all --report R2 --experiments spmm-cpu", "error: no experiment is left"),
        ("bench-all --suite nowhere", "error: cannot read the folder nowhere"),
        ("bench spmv-cpu-partitions cage4 --backend gpu", "error: no case is left"),
        ("kernels --op spmw", "error: invalid value 'spmw' for '--op <OP>'"),
        (&format!("{one} no-such-matrix"), "error: no-such-matrix: no such file"),
        (&format!("{one} stencil5[m=3]"), "error: stencil5[m=3]: stencil5 takes n"),
        (&format!("{one} a/m.mtx b/m.mtx"), "error: a/m.mtx and b/m.mtx are both called m"),
        (&format!("{one} cage4 --threads 0"), "error: invalid value '0' for '--threads"),
        (&format!("{one} cage4 --backend tpu"), "error: invalid value 'tpu' for '--backend"),
        (&format!("{one} cage4 --iterations 0"), "error: --iterations must be at least 1"),
        (&format!("{one} cage4 --read-x x.mtx"), "error: x.mtx: "),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .current_dir(folder.path())
            .args(line.split_whitespace())
            .output()
            .unwrap();
        assert!(!output.status.success(), "{line}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with(expected), "{line}: {text}");
        assert!(!folder.path().join("results").exists(), "{line}");
    }
}

/// `cargo xtask kernels | head`
#[cfg(unix)]
#[test]
fn who_has_seen_enough_is_no_error() {
    for line in ["kernels --markdown", "bench-all --dry-run --suite reports --report R1"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(line.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !text.contains("panicked"), "{line}: {text}");
    }
}

#[test]
fn a_run_says_what_it_does_and_a_line_for_each_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = bench(&out, &["--backend", "cpu"]).stdout(Stdio::piped()).output().unwrap();
    assert!(output.status.success());
    assert_eq!(threads_with_bandwidth(&out), 0, "it was told not to measure it");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("spm 0.1.0, rustc 1."), "{stdout}");
    assert!(
        lines[1].starts_with("3 matrices, 1 experiment, 8 cases of each on cpu: roughly "),
        "{stdout}"
    );
    assert!(lines[3].starts_with("[1/3] synthetic:cage4: 49 entries, 8 cases in "), "{stdout}");
    assert!(lines[5].contains("; fastest SpMV: cpu ") && lines[5].ends_with(" GFLOPS"), "{stdout}");
    assert!(lines[6].starts_with("24 cases measured"), "{stdout}");
}

/// As Ctrl-C in a terminal.
#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_the_page_of_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // Long cases: the one that is going on ends, the others do not begin.
    let mut long = Command::new(env!("CARGO_BIN_EXE_xtask"));
    long.args(["bench", "spmv-cpu-partitions"]).args(MATRICES).args(["--threads", "2"]);
    long.args(["--backend", "cpu", "--no-bandwidth", "--min-time-ms", "400", "--out"]).arg(&out);
    let mut child = long.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while rows(&out).is_empty() && begin.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(5));
    }
    send("-INT", &child);
    assert!(!child.wait().unwrap().success());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("ending after this case") && said.contains("--resume"), "{said}");
    let measured = rows(&out).len();
    assert!((1..24).contains(&measured), "{measured} cases");
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("synthetic:cage4"));
    assert!(bench(&out, &["--resume", "--backend", "cpu"]).status().unwrap().success());
    assert_eq!(rows(&out).len(), 24);
}

/// The program that opens pages is a script here, which writes down what it is given.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_is_measured_and_its_page_is_opened() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["bin", "suite"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    let opened = path("opened");
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > '{}'\n", opened.display());
    std::fs::write(path("bin/xdg-open"), script).unwrap();
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path("bin/xdg-open"), permissions).unwrap();
    let text = "%%MatrixMarket matrix coordinate pattern general\n3 3 4\n1 1\n2 3\n3 1\n3 2\n";
    std::fs::write(path("suite/small.mtx"), text).unwrap();
    let paths = format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("bench-all").arg(path("suite")).arg("--out").arg(path("out"));
    command.args([
        "--experiments",
        "spmv-cpu-partitions",
        "--threads",
        "2",
        "--iterations",
        "3",
        "--open",
    ]);
    assert!(command.env("PATH", paths).stdout(Stdio::null()).status().unwrap().success());
    let begin = Instant::now();
    while !opened.is_file() && begin.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(5));
    }
    let text = std::fs::read_to_string(opened).unwrap();
    assert!(text.is_empty() || text == path("out/report.html").to_str().unwrap(), "{text}");
    assert!(rows(&path("out")).iter().all(|row| row.matrix == "small"));
    assert_eq!(threads_with_bandwidth(&path("out")), 2, "on one thread and on two");
}

#[test]
fn compare_fails_on_a_regression_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, factor: f64| {
        let out = folder.path().join(name);
        std::fs::create_dir(&out).unwrap();
        let mut writer = spm_study::results::Writer::open(&out.join("results.csv")).unwrap();
        for matrix in 0..8 {
            let times = |seconds: f64| {
                (
                    Some(seconds * factor),
                    Some(0.99 * seconds * factor),
                    Some(1.01 * seconds * factor),
                )
            };
            let (median_s, p10_s, p90_s) = times(1e-3 * f64::from(matrix + 1));
            let (matrix, kernel) = (format!("m{matrix}"), "csr-rows".to_owned());
            let (op, backend) = ("spmv".to_owned(), "cpu".to_owned());
            let row = Row { matrix, kernel, op, backend, median_s, p10_s, p90_s, ..Row::default() };
            writer.append(&row).unwrap();
        }
        out
    };
    let (a, b) = (write("a", 1.0), write("b", 1.5));
    let compare = |a: &Path, b: &Path, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let output = command.arg("compare").arg(a).arg(b).args(more).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (passes, said) = compare(&a, &b, &[]);
    assert!(!passes && said.contains("regression: cpu spmv csr-rows: 0.667×"), "{said}");
    assert!(b.join("compare.html").is_file() && said.contains("compare.html"));
    assert!(compare(&b, &a, &[]).0 && compare(&a, &a, &[]).0);
    assert!(compare(&a, &b, &["--threshold", "60"]).0);
}

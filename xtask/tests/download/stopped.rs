//! Runs that are stopped at any moment, and two at once.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::server::{Response, Server, archive, matrix};
use crate::signals::{kills, moment, send};
use crate::{Run, cage4_archive, finished, serve_slowly_at_first};

#[test]
fn killed_in_the_middle_and_run_again_gives_the_same() {
    stopped_and_run_again("-KILL");
}

/// Ctrl-C sends this one.
#[test]
fn interrupted_in_the_middle_and_run_again_gives_the_same() {
    // A shell that starts the tests in the background has them, and the runs, ignore this signal.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    if mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0) {
        println!("skipped: SIGINT is ignored here");
        return;
    }
    stopped_and_run_again("-INT");
}

fn stopped_and_run_again(signal: &str) {
    let contents = archive(&[
        ("cage4/cage4.mtx", &matrix(9, 9, 49)),
        ("cage4/x", &{
            let mut noise = matrix(1000, 1000, 20_000);
            noise.truncate(300_000);
            noise
        }),
    ]);
    let whole = contents.clone();
    let server = serve_slowly_at_first(contents, Duration::from_millis(20));
    let run = Run::new(&[&server]);
    let mut child = run.spawn(&["cage4", "--keep-archives"]);
    let partial = run.path("vanHeukelum/cage4.tar.gz.part");
    let deadline = Instant::now() + Duration::from_secs(30);
    while partial.metadata().map_or(0, |metadata| metadata.len()) < 10_000 {
        assert!(Instant::now() < deadline, "nothing arrives");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(send(signal, &child));
    assert!(!child.wait().unwrap().success());
    assert_eq!(finished(run.dest.path()), Vec::<PathBuf>::new());
    let arrived = partial.metadata().unwrap().len() as usize;
    assert!(arrived < whole.len());

    run.succeed(&["cage4", "--keep-archives"]);
    assert_eq!(server.requests()[1].range_start(), Some(arrived));
    assert_eq!(fs::read(run.path("vanHeukelum/cage4.tar.gz")).unwrap(), whole);
    assert_eq!(fs::read(run.path("vanHeukelum/cage4.mtx")).unwrap(), matrix(9, 9, 49));
}

/// As many runs as `SPM_KILLS` says are stopped at random moments and run again.
#[test]
fn signals_at_any_moment_leave_no_half_file() {
    let text = matrix(1000, 1000, 10_000);
    let contents = archive(&[("cage4/cage4.mtx", &matrix(9, 9, 49)), ("cage4/x", &text)]);
    let whole = contents.clone();
    for kill in 0..kills() {
        let server = serve_slowly_at_first(contents.clone(), Duration::from_millis(5));
        let run = Run::new(&[&server]);
        let mut child = run.spawn(&["cage4", "--keep-archives"]);
        std::thread::sleep(moment(Duration::from_millis(5 * whole.len() as u64 / 1000 + 50)));
        let signal = ["-KILL", "-TERM", "-INT"][kill % 3];
        send(signal, &child);
        child.wait().unwrap();
        let expected = [("cage4.tar.gz", &whole), ("cage4.mtx", &matrix(9, 9, 49))];
        let is_whole = |name: &str, contents: &Vec<u8>| {
            fs::read(run.path("vanHeukelum").join(name)).is_ok_and(|bytes| bytes == *contents)
        };
        for (name, contents) in expected {
            let there = run.path("vanHeukelum").join(name).exists();
            assert!(!there || is_whole(name, contents), "half of {name}");
        }
        run.succeed(&["cage4", "--keep-archives"]);
        assert!(expected.iter().all(|(name, contents)| is_whole(name, contents)));
    }
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let contents = cage4_archive();
    let server = Server::start(move |_, request| {
        Response::file(request, &contents, "\"1\"").slowly(10, Duration::from_millis(50))
    });
    let run = Run::new(&[&server]);
    let mut first = run.spawn(&["cage4"]);
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.requests().is_empty() {
        assert!(Instant::now() < deadline, "no request arrives");
        std::thread::sleep(Duration::from_millis(5));
    }
    let line = run.fail(&["cage4"]);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(line.contains("another download is running"), "{line}");
}

//! `download-suitesparse` as a process, against a server on 127.0.0.1.

#[path = "../common/server.rs"]
mod server;
#[path = "../common/signals.rs"]
mod signals;
mod stopped;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use server::{Request, Response, Server, archive, matrix};
use tempfile::TempDir;

/// A matrix of the catalogue: 9 x 9, 49 entries. Its archive here has another hash.
const CAGE4: &str = "vanHeukelum/cage4";
const CAGE4_PATH: &str = "/MM/vanHeukelum/cage4.tar.gz";

fn cage4_archive() -> Vec<u8> {
    archive(&[("cage4/cage4.mtx", &matrix(9, 9, 49))])
}

/// A run of the command into a folder of its own.
struct Run {
    dest: TempDir,
    mirrors: Vec<String>,
}

impl Run {
    fn new(servers: &[&Server]) -> Self {
        let mirrors = servers.iter().map(|server| server.base.clone()).collect();
        Self { dest: tempfile::tempdir().unwrap(), mirrors }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.arg("download-suitesparse").args(arguments).arg("--dest").arg(self.dest.path());
        for mirror in &self.mirrors {
            command.args(["--mirror", mirror]);
        }
        command.arg("--only-mirrors");
        if !arguments.contains(&"--retries") {
            command.args(["--retries", "2", "--retry-wait", "0.01"]);
        }
        for variable in ["http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(variable).env_remove(variable.to_uppercase());
        }
        command.env_remove("RUST_BACKTRACE").stdin(Stdio::null());
        command
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dest.path().join(below)
    }

    /// Runs without an error; returns stdout.
    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs into an error of one line, which it returns; before it are lines about retries only, and
    /// nothing may look finished.
    fn fail(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "it succeeded");
        let stderr = String::from_utf8(output.stderr).unwrap();
        let (retries, others): (Vec<&str>, Vec<&str>) =
            stderr.lines().partition(|line| line.contains("; again in "));
        assert_eq!(others.len(), 1, "not one line: {stderr}");
        assert!(retries.iter().all(|line| line.contains("http://")), "{stderr}");
        assert_eq!(finished(self.dest.path()), Vec::<PathBuf>::new(), "looks finished");
        others[0].to_owned()
    }
}

/// Files that a reader would take for complete matrices or archives.
fn finished(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(finished(&path));
        } else if path.extension().is_some_and(|extension| extension == "mtx" || extension == "gz")
        {
            found.push(path);
        }
    }
    found
}

/// The first answer comes in pieces of 1000 bytes with pauses.
fn serve_slowly_at_first(contents: Vec<u8>, pause: Duration) -> Server {
    Server::start(move |n, request| {
        let response = Response::file(request, &contents, "\"1\"");
        if n == 0 { response.slowly(1000, pause) } else { response }
    })
}

/// The archive, of which each of the first `answers` has `bytes` bytes.
fn serve_cut(answers: usize, bytes: usize) -> Server {
    let contents = cage4_archive();
    Server::start(move |n, request| {
        let response = Response::file(request, &contents, "\"1\"");
        if n < answers { response.cut_after(bytes) } else { response }
    })
}

fn serve(contents: Vec<u8>) -> Server {
    Server::start(move |_, request| Response::file(request, &contents, "\"1\""))
}

#[test]
fn a_matrix_arrives_and_a_second_run_downloads_nothing() {
    let server = serve(cage4_archive());
    let run = Run::new(&[&server]);
    let output = run.output(&["cage4"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.starts_with("warning: vanHeukelum/cage4: the archive's SHA-256"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("CC-BY 4.0") && stdout.contains("Davis and Hu 2011"), "{stdout}");
    assert!(stdout.contains("Kolodziej et al. 2019"), "{stdout}");
    assert_eq!(fs::read(run.path("vanHeukelum/cage4.mtx")).unwrap(), matrix(9, 9, 49));
    let names: Vec<_> = fs::read_dir(run.path("vanHeukelum")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");

    let request = &server.requests()[0];
    assert_eq!(request.path, CAGE4_PATH);
    let agent = request.header("user-agent").unwrap();
    assert!(agent.starts_with("spm/") && agent.ends_with("(+ sparse matrix kernels)"), "{agent}");

    let again = run.succeed(&[CAGE4]);
    assert!(again.starts_with("Nothing to download: 1 matrix already in"), "{again}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_lock_file_records_another_hash_and_knows_it_again() {
    let server = serve(cage4_archive());
    let run = Run::new(&[&server]);
    run.succeed(&["cage4"]);
    let lock = fs::read_to_string(run.path("suitesparse.lock.json")).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    let entry = &lock[CAGE4];
    assert_eq!(entry["verified"], "dimensions");
    assert_eq!(entry["tar_gz_bytes"], cage4_archive().len());
    assert_eq!(entry["sha256_tar_gz"].as_str().unwrap().len(), 64);
    assert_eq!(entry["url"], format!("{}{CAGE4_PATH}", server.base));

    fs::remove_file(run.path("vanHeukelum/cage4.mtx")).unwrap();
    let output = run.output(&["cage4"]);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("as in the earlier download"));
}

#[test]
fn wrong_contents_under_a_wrong_hash_are_refused() {
    let server = serve(archive(&[("cage4/cage4.mtx", &matrix(9, 9, 48))]));
    let line = Run::new(&[&server]).fail(&["cage4"]);
    assert!(line.contains("48 entries (general), the collection says 49"), "{line}");
    assert!(line.contains("SHA-256 is not the catalogue's"), "{line}");
}

#[test]
fn not_found_is_one_line_and_is_not_asked_again() {
    let server = Server::start(|_, _| Response::new(404, "nothing here"));
    let line = Run::new(&[&server]).fail(&["cage4"]);
    assert!(line.contains("vanHeukelum/cage4") && line.contains("404 Not Found"), "{line}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn another_server_is_asked_when_the_first_has_nothing() {
    let first = Server::start(|_, _| Response::new(404, ""));
    let second = serve(cage4_archive());
    Run::new(&[&first, &second]).succeed(&["cage4"]);
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
}

#[test]
fn a_name_that_cannot_be_looked_up_is_tried_twice() {
    let mut run = Run::new(&[]);
    run.mirrors = vec!["http://no-such-host.invalid".to_owned(); 2];
    let output = run.output(&[CAGE4, "--retries", "9", "--retry-wait", "0.01"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && stderr.contains("no server can be reached"), "{stderr}");
    assert_eq!(stderr.matches("; again in 0.01 s").count(), 2, "{stderr}");
    assert!(stderr.lines().next().unwrap().starts_with("vanHeukelum/cage4: http://"), "{stderr}");
}

#[test]
fn a_server_error_passes() {
    let contents = cage4_archive();
    let server = Server::start(move |n, request| match n {
        0 => Response::new(500, ""),
        1 => Response::new(503, ""),
        _ => Response::file(request, &contents, "\"1\""),
    });
    Run::new(&[&server]).succeed(&["cage4"]);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_server_error_that_stays_is_given_up() {
    let server = Server::start(|_, _| Response::new(502, ""));
    let line = Run::new(&[&server]).fail(&["cage4"]);
    assert!(line.contains("502 Bad Gateway (3 attempts)"), "{line}");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn retry_after_is_obeyed() {
    let contents = cage4_archive();
    let server = Server::start(move |n, request| match n {
        0 => Response::new(429, "").header("Retry-After", 1),
        _ => Response::file(request, &contents, "\"1\""),
    });
    let start = Instant::now();
    Run::new(&[&server]).succeed(&["cage4"]);
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn retry_after_of_hours_is_reported() {
    let server = Server::start(|_, _| Response::new(503, "").header("Retry-After", 7200));
    let line = Run::new(&[&server]).fail(&["cage4"]);
    assert!(line.contains("asks to wait 7200 s"), "{line}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn nobody_there_is_one_line_for_many_matrices() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let run = Run {
        dest: tempfile::tempdir().unwrap(),
        mirrors: vec![format!("http://127.0.0.1:{port}")],
    };
    let line = run.fail(&["--report", "R0"]);
    assert!(line.contains("no server can be reached"), "{line}");
}

#[test]
fn a_body_cut_short_is_resumed() {
    let whole = cage4_archive();
    let server = serve_cut(2, 100);
    let run = Run::new(&[&server]);
    run.succeed(&["cage4", "--keep-archives"]);
    let starts: Vec<_> = server.requests().iter().map(Request::range_start).collect();
    assert_eq!(starts, [None, Some(100), Some(200)]);
    assert_eq!(server.requests()[1].header("if-range"), Some("\"1\""));
    assert_eq!(fs::read(run.path("vanHeukelum/cage4.tar.gz")).unwrap(), whole);
}

#[test]
fn a_body_that_is_always_cut_short_is_given_up_and_resumed_later() {
    let length = cage4_archive().len();
    let server = serve_cut(3, 50);
    let run = Run::new(&[&server]);
    let line = run.fail(&["cage4"]);
    assert!(line.contains(&format!("after 150 of {length} bytes")), "{line}");
    run.succeed(&["cage4"]);
    assert_eq!(server.requests()[3].range_start(), Some(150));
}

#[test]
fn a_file_that_changed_meanwhile_is_fetched_afresh() {
    let (old, new) = (archive(&[("cage4/cage4.mtx", b"old")]), cage4_archive());
    let server = Server::start(move |n, request| match n {
        0 => Response::file(request, &old, "\"old\"").cut_after(60),
        _ => Response::file(request, &new, "\"new\""),
    });
    let run = Run::new(&[&server]);
    run.succeed(&["cage4"]);
    assert_eq!(fs::read(run.path("vanHeukelum/cage4.mtx")).unwrap(), matrix(9, 9, 49));
}

#[test]
fn another_total_length_is_noticed_without_an_etag() {
    let contents = cage4_archive();
    let server = Server::start(move |n, request| match (n, request.range_start()) {
        (0, _) => Response::new(200, contents.clone()).cut_after(60),
        (_, Some(start)) => Response::new(206, &contents[start..])
            .header("Content-Range", format!("bytes {start}-998/999")),
        _ => Response::new(200, contents.clone()),
    });
    Run::new(&[&server]).succeed(&["cage4"]);
    let starts: Vec<_> = server.requests().iter().map(Request::range_start).collect();
    assert_eq!(starts, [None, Some(60), None]);
}

#[test]
fn a_length_that_never_fits_is_given_up() {
    let contents = cage4_archive();
    let server = Server::start(move |_, request| match request.range_start() {
        None => Response::new(200, contents.clone()).header("ETag", "\"1\"").cut_after(60),
        // The rest and then some.
        Some(start) => Response::new(206, [&contents[start..], b"more"].concat()).header(
            "Content-Range",
            format!("bytes {start}-{}/{}", contents.len() - 1, contents.len()),
        ),
    });
    let line = Run::new(&[&server]).fail(&["cage4"]);
    assert!(line.contains("(3 attempts)"), "{line}");
}

#[test]
fn redirects_are_followed_to_another_host_with_the_range() {
    let contents = cage4_archive();
    let files = Server::start(move |n, request| {
        let response = Response::file(request, &contents, "\"1\"");
        if n == 0 { response.cut_after(100) } else { response }
    });
    let target = format!("{}/elsewhere.tar.gz", files.base);
    let front = Server::start(move |_, _| Response::new(301, "").header("Location", &target));
    Run::new(&[&front]).succeed(&["cage4"]);
    assert_eq!(files.requests()[1].range_start(), Some(100));
    assert_eq!(files.requests()[1].path, "/elsewhere.tar.gz");
}

#[test]
fn a_redirect_loop_is_one_line() {
    let server =
        Server::start(|_, request| Response::new(302, "").header("Location", &request.path));
    let line = Run::new(&[&server]).fail(&["cage4"]);
    assert!(line.contains("redirects go round in a circle"), "{line}");
}

#[test]
fn an_archive_without_the_matrix_is_refused_and_removed() {
    let server = serve(archive(&[("cage4/cage4_b.mtx", b"b")]));
    let run = Run::new(&[&server]);
    let line = run.fail(&["cage4"]);
    assert!(line.contains("the archive has no cage4.mtx"), "{line}");
    assert!(!run.path("vanHeukelum/cage4.tar.gz.part").exists());
}

#[test]
fn members_outside_of_the_folder_are_refused() {
    for path in ["../cage4.mtx", "/tmp/cage4.mtx", "cage4/../../x_b.mtx"] {
        let good = matrix(9, 9, 49);
        let server = serve(archive(&[(path, &good), ("cage4/cage4.mtx", &good)]));
        let run = Run::new(&[&server]);
        let line = run.fail(&["cage4", "--keep-extras"]);
        assert!(line.contains("a member outside of its folder"), "{line}");
        assert!(!run.path("x_b.mtx").exists());
    }
}

#[test]
fn a_matrix_far_beyond_its_entries_is_refused_as_a_bomb() {
    let bomb = vec![b' '; 8 << 20];
    let server = serve(archive(&[("cage4/cage4.mtx", &bomb)]));
    let line = Run::new(&[&server]).fail(&["cage4"]);
    assert!(
        line.contains("49 entries need at most") && line.contains("decompression bomb"),
        "{line}"
    );
}

#[test]
fn an_archive_far_beyond_its_matrix_is_refused_as_a_bomb() {
    let bomb = vec![0; 100 << 20];
    let server = serve(archive(&[("cage4/x", &bomb), ("cage4/cage4.mtx", &matrix(9, 9, 49))]));
    let line = Run::new(&[&server]).fail(&["cage4"]);
    assert!(line.contains("unpacks to more than") && line.contains("decompression bomb"), "{line}");
}

#[test]
fn damaged_archives_are_refused_and_fetched_afresh() {
    let good = cage4_archive();
    let mut flipped = good.clone();
    let checksum = flipped.len() - 6;
    flipped[checksum] ^= 1;
    let short = good[..good.len() / 2].to_vec();
    for contents in [flipped, short, b"<html>not an archive</html>".to_vec()] {
        let server = serve(contents);
        let run = Run::new(&[&server]);
        let line = run.fail(&["cage4"]);
        assert!(line.contains("the archive is damaged"), "{line}");
        run.fail(&["cage4"]);
        assert_eq!(server.requests()[1].range_start(), None);
    }
}

#[test]
fn extras_are_kept_on_request() {
    let files: [(&str, &[u8]); 3] = [
        ("cage4/cage4_b.mtx", b"right-hand side"),
        ("cage4/cage4.mtx", &matrix(9, 9, 49)),
        ("cage4/cage4_coord.mtx", b"coordinates"),
    ];
    let server = serve(archive(&files));
    let run = Run::new(&[&server]);
    run.succeed(&["cage4"]);
    assert!(!run.path("vanHeukelum/cage4").exists());
    run.succeed(&["cage4", "--keep-extras"]);
    let kept = fs::read(run.path("vanHeukelum/cage4/cage4_b.mtx")).unwrap();
    assert_eq!(kept, b"right-hand side");
    assert!(run.path("vanHeukelum/cage4/cage4_coord.mtx").exists());
    assert!(!run.path("vanHeukelum/cage4/cage4.mtx").exists());
    assert!(run.succeed(&["cage4", "--keep-extras"]).starts_with("Nothing to download"));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn max_bytes_leaves_out_what_the_server_says_is_larger() {
    let server = serve(cage4_archive());
    let run = Run::new(&[&server]);
    let stdout = run.succeed(&["cage4", "--max-bytes", "10"]);
    assert!(stdout.contains("left out, its archive takes"), "{stdout}");
    assert_eq!(finished(run.dest.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_dry_run_fetches_nothing() {
    let server = serve(cage4_archive());
    let run = Run::new(&[&server]);
    let stdout = run.succeed(&["--dry-run"]);
    assert!(stdout.contains("vanHeukelum/cage4") && stdout.contains("71 to fetch"), "{stdout}");
    let stdout = run.succeed(&["--dry-run", "--max-entries", "100"]);
    assert!(stdout.contains("1 to fetch") && stdout.contains("70 matrices left out"), "{stdout}");
    assert_eq!(server.requests().len(), 0);
    assert_eq!(fs::read_dir(run.dest.path()).unwrap().count(), 0);
}

const INDEX: &str = "3\n08-Oct-2020 17:09:58\n\
    HB,tiny,3,3,5,1,0,0,0,1,0,test problem,5\n\
    Pothen,barth4,6019,6019,23492,1,1,0,0,1,1,structural problem,23492\n\
    AG-Monien,barth4,6019,6019,40965,1,1,0,0,1,1,2D/3D problem,40965\n";

#[test]
fn the_index_finds_other_matrices_and_is_kept() {
    let contents = archive(&[("tiny/tiny.mtx", &matrix(3, 3, 5))]);
    let server = Server::start(move |_, request| match request.path.as_str() {
        "/files/ssstats.csv" => Response::new(200, INDEX),
        "/MM/HB/tiny.tar.gz" => Response::file(request, &contents, "\"1\""),
        _ => Response::new(404, ""),
    });
    let run = Run::new(&[&server]);
    run.succeed(&["tiny"]);
    assert_eq!(fs::read(run.path("HB/tiny.mtx")).unwrap(), matrix(3, 3, 5));
    run.succeed(&["HB/tiny"]);
    assert_eq!(server.requests().len(), 2, "index and matrix, once each");

    let old = std::time::SystemTime::now() - Duration::from_secs(31 * 24 * 60 * 60);
    fs::File::open(run.path("ssstats.csv")).unwrap().set_modified(old).unwrap();
    run.succeed(&["tiny"]);
    assert_eq!(server.requests().len(), 3, "the index again");
}

#[test]
fn an_ambiguous_name_lists_its_groups() {
    let server = Server::start(|_, _| Response::new(200, INDEX));
    let line = Run::new(&[&server]).fail(&["barth4"]);
    assert!(
        line.contains("barth4 is not unique; say which: Pothen/barth4, AG-Monien/barth4"),
        "{line}"
    );
}

#[test]
fn an_unknown_name_is_one_line() {
    let server = Server::start(|_, _| Response::new(200, INDEX));
    let line = Run::new(&[&server]).fail(&["nonesuch"]);
    assert!(line.contains("the collection has no matrix called nonesuch"), "{line}");
}

/// /dev/full takes no byte: "no space left on device".
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_line_and_can_be_resumed() {
    let server = serve(cage4_archive());
    for file in ["cage4.tar.gz.part", "cage4.mtx.part"] {
        let run = Run::new(&[&server]);
        fs::create_dir(run.path("vanHeukelum")).unwrap();
        let full = run.path("vanHeukelum").join(file);
        std::os::unix::fs::symlink("/dev/full", &full).unwrap();
        let line = run.fail(&["--report", "R0", "cage4", "--max-entries", "100"]);
        assert!(line.contains("No space left on device") && line.contains(file), "{line}");
        let _ = fs::remove_file(full);
        run.succeed(&["cage4"]);
    }
}

#[test]
fn help_names_every_option() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["download-suitesparse", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for option in [
        "--report",
        "--max-bytes",
        "--max-entries",
        "--dry-run",
        "--dest",
        "--mirror",
        "--keep-extras",
        "--keep-archives",
        "Examples:",
    ] {
        assert!(help.contains(option), "{option}: {help}");
    }
}

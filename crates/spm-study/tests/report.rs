//! The report of a synthetic results folder: whole, well-formed, self-contained.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use spm_study::report;
use spm_study::results::{self, Row};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/results")
}

/// Writes the fixture's report into a fresh folder.
fn rendered() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let page = report::write_to(&fixture(), folder.path()).unwrap();
    (folder, page)
}

/// Every start tag has its end tag, in order; returns all attributes as (tag, name, value).
fn attributes(html: &str) -> Vec<(String, String, String)> {
    use quick_xml::events::Event;
    let void = ["meta", "link"];
    let mut reader = quick_xml::Reader::from_str(html);
    let mut open: Vec<String> = Vec::new();
    let mut out = Vec::new();
    loop {
        match reader
            .read_event()
            .unwrap_or_else(|e| panic!("not well-formed at byte {}: {e}", reader.buffer_position()))
        {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag) if void.contains(&name(&tag).as_str()) => {
                collect(&tag, &mut out);
            }
            Event::Start(tag) => {
                collect(&tag, &mut out);
                open.push(name(&tag));
            }
            Event::Empty(tag) => panic!("<{}/> does not end in HTML", name(&tag)),
            Event::End(tag) => {
                let tag = String::from_utf8(tag.name().as_ref().to_vec()).unwrap();
                assert_eq!(open.pop(), Some(tag), "at byte {}", reader.buffer_position());
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    out
}

fn name(tag: &quick_xml::events::BytesStart<'_>) -> String {
    String::from_utf8(tag.name().as_ref().to_vec()).unwrap()
}

fn collect(tag: &quick_xml::events::BytesStart<'_>, out: &mut Vec<(String, String, String)>) {
    for attribute in tag.attributes() {
        let attribute = attribute.expect("attributes are quoted and not repeated");
        out.push((
            name(tag),
            String::from_utf8(attribute.key.as_ref().to_vec()).unwrap(),
            String::from_utf8(attribute.value.to_vec()).unwrap(),
        ));
    }
}

#[test]
fn the_page_is_well_formed_and_asks_for_nothing() {
    let (_folder, page) = rendered();
    let html = fs::read_to_string(page).unwrap();
    let attributes = attributes(html.strip_prefix("<!DOCTYPE html>").unwrap());
    for (tag, name, value) in &attributes {
        let requests = matches!(name.as_str(), "src" | "srcset" | "data" | "poster")
            || (name == "href" && tag != "a");
        assert!(!requests || value.starts_with("data:"), "<{tag} {name}={value:?}>");
        assert!(!name.starts_with("on"), "<{tag} {name}> is a script");
    }
    assert!(!html.contains("<script") && !html.contains("@import") && !html.contains("url("));
    // Every link within the page has its target, and ids are unique.
    let mut ids = BTreeMap::new();
    for (_, _, id) in attributes.iter().filter(|a| a.1 == "id") {
        *ids.entry(id.as_str()).or_insert(0) += 1;
    }
    assert!(ids.values().all(|n| *n == 1), "{ids:?}");
    for (_, _, href) in attributes.iter().filter(|a| a.0 == "a" && a.1 == "href") {
        assert!(
            href.strip_prefix('#').map_or(href.starts_with("https://"), |id| ids.contains_key(id)),
            "{href}"
        );
    }
    for number in ["NaN", "inf\"", "Infinity"] {
        assert!(!html.contains(number), "{number} on the page");
    }
}

#[test]
fn every_section_of_the_report_is_there() {
    let (folder, page) = rendered();
    let html = fs::read_to_string(page).unwrap();
    for id in [
        "summary",
        "environment",
        "roofline",
        "r0",
        "r1",
        "r2",
        "r3",
        "r4",
        "matrices",
        "failures",
        "method",
        "licence",
        "spmv-cpu-threads",
        "transpose-gpu",
    ] {
        assert!(html.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    for table in [
        "r0-table-1",
        "r0-table-4",
        "r0-figures-11-12",
        "r1-figure-1",
        "r1-figure-2",
        "r3-figure-14",
        "r3-figure-15",
        "r3-figures-6-8-10-12",
        "r2-claims",
        "summary",
    ] {
        assert!(folder.path().join(format!("tables/{table}.csv")).is_file(), "{table}");
    }
    assert!(html.contains("CC-BY 4.0") && html.contains("38(1)") && html.contains("joss.01244"));
    // Nothing was read in the fixture: one line says how to.
    assert!(html.contains("cargo xtask bench matrix-market"));
}

#[test]
fn every_row_is_in_a_table() {
    let (folder, _) = rendered();
    let rows = results::read(&fixture().join(results::RESULTS_FILE)).unwrap();
    assert!(rows.len() > 2000);
    let mut by_experiment: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &rows {
        by_experiment.entry(&row.experiment).or_default().push(row);
    }
    for (experiment, rows) in by_experiment {
        let path = folder.path().join(format!("tables/{experiment}-cases.csv"));
        let mut table = csv::Reader::from_path(&path).unwrap();
        let headers = table.headers().unwrap().clone();
        let at = |name: &str| headers.iter().position(|h| h == name);
        let (matrix, median) = (at("matrix").unwrap(), at("median").unwrap());
        let written: Vec<(String, Option<f64>)> = table
            .records()
            .map(|r| r.unwrap())
            .map(|r| (r[matrix].to_owned(), r[median].parse().ok()))
            .collect();
        let expected: Vec<(String, Option<f64>)> =
            rows.iter().map(|r| (r.matrix.clone(), r.median_s)).collect();
        assert_eq!(written, expected, "{experiment}");
    }
    let failures = fs::read_to_string(folder.path().join("tables/failures.csv")).unwrap();
    for reason in ["ELLPACK would take 23.8 GiB", "rounding bound at row 17", "no device"] {
        assert!(failures.contains(reason), "{reason}");
    }
}

#[test]
fn figures_are_files_of_their_own() {
    let (folder, _) = rendered();
    let mut count = 0;
    for entry in fs::read_dir(folder.path().join("figures")).unwrap() {
        let path = entry.unwrap().path();
        let svg = fs::read_to_string(&path).unwrap();
        assert!(!attributes(&svg).is_empty(), "{}", path.display());
        assert!(svg.contains("xmlns=\"http://www.w3.org/2000/svg\"") && svg.contains("--s1"));
        count += 1;
    }
    assert!(count > 30, "{count} figures");
    let markdown = fs::read_to_string(folder.path().join("report.md")).unwrap();
    for line in markdown.lines().filter_map(|l| l.strip_prefix("![")) {
        let file = line.split_once("](").unwrap().1.trim_end_matches(')');
        assert!(folder.path().join(file).is_file(), "{file}");
    }
}

#[test]
fn empty_results_make_a_page_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let page = report::write(folder.path()).unwrap();
    let html = fs::read_to_string(page).unwrap();
    attributes(html.strip_prefix("<!DOCTYPE html>").unwrap());
    assert!(html.contains("Nothing was measured yet."));
    assert!(html.contains("cargo xtask bench-all"));
    assert!(html.contains("not measured"));
    // A table of which only a torn line is left is empty as well.
    fs::write(folder.path().join(results::RESULTS_FILE), "experiment,mat").unwrap();
    report::write(folder.path()).unwrap();
}

/// The first row of the fixture with other values in some columns.
fn table_of(folder: &Path, change: impl Fn(&mut Row)) {
    let mut row = results::read(&fixture().join(results::RESULTS_FILE)).unwrap().swap_remove(0);
    change(&mut row);
    results::Writer::open(&folder.join(results::RESULTS_FILE)).unwrap().append(&row).unwrap();
}

#[test]
fn whatever_the_table_says_stays_in_the_folder() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("results");
    table_of(&folder, |row| row.experiment = "../../a <b>".to_owned());
    let html = fs::read_to_string(report::write(&folder).unwrap()).unwrap();
    attributes(html.strip_prefix("<!DOCTYPE html>").unwrap());
    assert!(folder.join("tables/experiment-.._.._a__b_-cases.csv").is_file());
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1, "a file beside the folder");
}

#[test]
fn numbers_at_the_ends_of_f64_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    for (threads, value) in [(1, f64::MAX), (2, f64::MIN_POSITIVE), (3, 5e-324), (0, f64::NAN)] {
        table_of(folder.path(), |row| {
            row.threads = Some(threads);
            (row.median_s, row.gflops) = (Some(1.0), Some(value));
            (row.gbytes_per_s, row.speedup_vs_serial) = (Some(1.0), Some(value));
            row.entries = u64::MAX;
        });
    }
    let html = fs::read_to_string(report::write(folder.path()).unwrap()).unwrap();
    attributes(html.strip_prefix("<!DOCTYPE html>").unwrap());
}

#[test]
fn damaged_folders_are_one_line_that_names_the_file() {
    for (file, text, expected) in [
        ("results.csv", "a,b\n1,2\n", "results.csv:1: expected the column experiment"),
        ("environment.json", "{", "environment.json is not JSON"),
        ("matrices/m.json", "{}", "matrices/m.json is not a matrix description"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("matrices")).unwrap();
        fs::write(folder.path().join(file), text).unwrap();
        let error = format!("{:#}", report::write(folder.path()).unwrap_err());
        assert!(error.contains(expected), "{error}");
        assert!(!folder.path().join("report.html").exists());
    }
}

/// A report goes where somebody keeps a paper, too.
#[test]
fn only_files_of_an_earlier_report_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("figures")).unwrap();
    fs::write(path("figures/mine.svg"), "mine").unwrap();
    report::write_to(&fixture(), folder.path()).unwrap();
    let (table, figure) =
        ("tables/spmv-cpu-threads-cases.csv", "figures/spmv-cpu-threads-threads.svg");
    assert!(path(table).is_file() && path(figure).is_file());
    let empty = tempfile::tempdir().unwrap();
    report::write_to(empty.path(), folder.path()).unwrap();
    assert!(!path(table).exists() && !path(figure).exists());
    assert_eq!(fs::read_to_string(path("figures/mine.svg")).unwrap(), "mine");
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let error = report::write(Path::new("no/such/folder")).unwrap_err().to_string();
    assert!(error.contains("no/such/folder") && error.contains("bench-all"), "{error}");
}

/// A headless browser with its profile in `folder`, which asks the network for nothing by itself; a
/// machine without one skips the test, and says so.
fn browser(folder: &Path) -> Option<Command> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|b| Command::new(b).arg("--version").output().is_ok_and(|o| o.status.success()));
    let Some(found) = found else {
        println!("skipped: no headless browser here");
        return None;
    };
    let mut command = Command::new(found);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()));
    Some(command)
}

/// Whoever prints the page gets all of it, folded parts included.
#[test]
fn the_page_prints() {
    let (folder, page) = rendered();
    let Some(mut browser) = browser(folder.path()) else { return };
    let pdf = folder.path().join("report.pdf");
    let output = browser
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let pdf = fs::read(&pdf).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(pdf.starts_with(b"%PDF-"), "{said}");
    let count = |word: &[u8]| pdf.windows(word.len()).filter(|bytes| *bytes == word).count();
    let pages = count(b"/Type /Page") - count(b"/Type /Pages");
    assert!(pages >= 10, "{pages} pages");
}

/// Lays the page out in a headless browser, as wide as a phone, and lets it measure itself.
#[test]
fn a_phone_shows_the_page_without_sideways_scrolling() {
    let (folder, page) = rendered();
    let Some(mut browser) = browser(folder.path()) else { return };
    // The page itself has no script; the copy that measures has one.
    let probe = "<script>addEventListener('load', () => {\
        document.querySelectorAll('details').forEach(d => d.open = true);\
        const wide = document.documentElement.scrollWidth;\
        const asked = performance.getEntriesByType('resource').map(e => e.name)\
            .filter(n => !n.startsWith('data:'));\
        parent.postMessage('width=' + wide + ' of ' + innerWidth\
            + ' requests=' + asked.length + ' ' + asked.join(' '), '*');\
        });</script></body>";
    let html = fs::read_to_string(page).unwrap().replace("</body>", probe);
    let copy = folder.path().join("probe.html");
    fs::write(&copy, html).unwrap();
    // Headless windows are never narrower than 500 px; a frame is.
    let frame = folder.path().join("frame.html");
    fs::write(
        &frame,
        "<!DOCTYPE html><body><script>\
         addEventListener('message', e => { document.body.textContent = e.data; });\
         </script><iframe src='probe.html' style='width:400px;height:800px;border:0'></iframe></body>",
    )
    .unwrap();
    let output = browser
        .args(["--virtual-time-budget=20000", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("file://{}", frame.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(
        dom.contains("width=400 of 400 requests=0"),
        "{dom}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

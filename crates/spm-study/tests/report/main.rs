//! The report of a synthetic results folder: whole, well-formed, self-contained.

mod browser;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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

/// A page without its only script, which is at its end, and the script.
fn split_script(html: &str) -> (String, &str) {
    let (head, rest) = html.split_once("<script>").expect("a page has a script");
    let (script, tail) = rest.split_once("</script>").unwrap();
    assert!(!tail.contains("<script"));
    (format!("{head}{tail}"), script)
}

/// Every start tag has its end tag, in order; returns all attributes as (tag, name, value).
fn attributes(html: &str) -> Vec<(String, String, String)> {
    use quick_xml::events::Event;
    let without;
    let html = match html.strip_prefix("<!DOCTYPE html>") {
        Some(page) => {
            without = split_script(page).0;
            &without
        }
        None => html,
    };
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
    let attributes = attributes(&html);
    for (tag, name, value) in &attributes {
        let requests = matches!(name.as_str(), "src" | "srcset" | "data" | "poster")
            || (name == "href" && tag != "a");
        // Marks are shapes of the page itself.
        let own = tag == "use" && value.starts_with('#');
        assert!(!requests || own || value.starts_with("data:"), "<{tag} {name}={value:?}>");
        assert!(!name.starts_with("on"), "<{tag} {name}> is a script");
    }
    assert!(!html.contains("@import") && !html.contains("url("));
    let (document, script) = split_script(&html);
    for asks in ["fetch", "XMLHttpRequest", "import", "innerHTML", "eval("] {
        assert!(!script.contains(asks), "the script has {asks}");
    }
    assert!(script.len() < 20_000, "{} bytes of script", script.len());
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
        assert!(!document.contains(number), "{number} on the page");
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
        assert!(html.contains(&format!("<section id=\"{id}\"")), "{id}");
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
    attributes(&html);
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

/// Distributed products: measured rows, strong on CPU cores and weak on one GPU, and what is modelled of them.
#[test]
fn scaling_is_drawn_measured_and_modelled_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = results::Writer::open(&folder.path().join(results::RESULTS_FILE)).unwrap();
    let mut write = |experiment: &str, backend: &str, ranks: u64, median_s: f64| {
        let several = ranks > 1;
        let row = Row {
            experiment: experiment.to_owned(),
            matrix: "synthetic:stencil27[n=100]".to_owned(),
            rows: 1_000_000,
            cols: 1_000_000,
            entries: 26_463_592,
            op: "spmv".to_owned(),
            backend: backend.to_owned(),
            kernel: "csr-rows".to_owned(),
            median_s: Some(median_s),
            gflops: Some(2.0 * 26.463592e6 / median_s / 1e9),
            gbytes_per_s: Some(3e8 / median_s / 1e9),
            efficiency: Some(9.0),
            ranks: Some(ranks),
            gpus: Some(if backend == "gpu" { ranks } else { 0 }),
            halo_bytes: Some(if several { 80_000 } else { 0 }),
            neighbours: Some(ranks - 1),
            exchange_s: several.then_some(4e-5),
            overlap: several.then_some(0.5),
            latency_s: several.then_some(1e-6),
            link_gbytes_per_s: several.then_some(10.0),
            ..Row::default()
        };
        writer.append(&row).unwrap();
    };
    write("scaling-strong", "cpu", 1, 16e-3);
    write("scaling-strong", "cpu", 4, 5e-3);
    write("scaling-strong", "cpu", 2, 8e-3);
    write("scaling-weak", "gpu", 1, 8e-5);
    let html = fs::read_to_string(report::write(folder.path()).unwrap()).unwrap();
    attributes(&html);
    let (_, section) = html.split_once("<section id=\"scaling\"").expect("a section");
    let section = section.split_once("</section>").unwrap().0;
    // Two panels each, with a mark for each measured row; two dashed lines in each panel, without marks.
    assert_eq!(section.matches("<div class=\"panel\"").count(), 4);
    assert_eq!(
        section.matches("measured on ").count(),
        2 * 4 + 2,
        "marks, and what the models are fitted to"
    );
    let dashed = " dashed\"><path class=\"line\"";
    assert_eq!(section.matches(dashed).count(), 2 * 4 + 2, "and the two in the legend");
    let legend =
        section.split_once("<ul class=\"legend\">").unwrap().1.split_once("</ul>").unwrap().0;
    assert!(!legend.split_once(dashed).unwrap().1.contains("class=\"mark\""), "{legend}");
    assert!(section.contains("measured on 4 ranks\n5.00 ms, efficiency 80"), "{section}");
    assert!(section.contains("CPU strong, SpMV, stencil27[n=100]: efficiency, %"));
    assert!(section.contains("copies over NVLink, measured between two H200"));
    // They are no experiments without a panel of their own.
    assert!(!html.contains("experiment-scaling"));

    let mut table = csv::Reader::from_path(folder.path().join("tables/scaling-cases.csv")).unwrap();
    let lines: Vec<Vec<String>> =
        table.records().map(|line| line.unwrap().iter().map(str::to_owned).collect()).collect();
    let headers = table.headers().unwrap().clone();
    let at = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let of = |how: &str, backend: &str| {
        let take = |line: &&Vec<String>| line[at("how")] == how && line[at("backend")] == backend;
        let number = |text: &String| text.parse::<f64>().unwrap();
        let pair =
            |line: &Vec<String>| (number(&line[at("ranks")]), number(&line[at("efficiency")]));
        lines.iter().filter(take).map(pair).collect::<Vec<_>>()
    };
    assert_eq!(of("measured", "cpu"), [(1.0, 1.0), (2.0, 1.0), (4.0, 0.8)]);
    assert_eq!(of("measured", "gpu"), [(1.0, 1.0)]);
    for backend in ["cpu", "gpu"] {
        let modelled = of("modelled", backend);
        assert_eq!((modelled.len(), modelled[0]), (8, (1.0, 1.0)), "{backend}");
        assert_eq!(modelled[7].0, 16_384.0);
        assert!(modelled.iter().all(|&(_, efficiency)| efficiency > 0.0 && efficiency <= 1.0));
    }
}

#[test]
fn whatever_the_table_says_stays_in_the_folder() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("results");
    table_of(&folder, |row| row.experiment = "../../a <b>".to_owned());
    let html = fs::read_to_string(report::write(&folder).unwrap()).unwrap();
    attributes(&html);
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
    attributes(&html);
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

/// Two types of values are never compared: each has its sections, and the page a switch.
#[test]
fn results_of_two_precisions_have_a_switch() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = results::Writer::open(&folder.path().join(results::RESULTS_FILE)).unwrap();
    for row in results::read(&fixture().join(results::RESULTS_FILE)).unwrap().into_iter().take(60) {
        writer.append(&row).unwrap();
        writer.append(&Row { precision: "f32".to_owned(), ..row }).unwrap();
    }
    let html = fs::read_to_string(report::write(folder.path()).unwrap()).unwrap();
    attributes(&html);
    for part in [
        "id=\"precision-f64\" value=\"f64\" checked",
        "id=\"precision-f32\"",
        "<section id=\"summary-f64\" data-p=\"f64\">",
        "<section id=\"summary-f32\" data-p=\"f32\">",
        "<section id=\"environment\">",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let (one, _) = rendered();
    assert!(
        !fs::read_to_string(one.path().join("report.html"))
            .unwrap()
            .contains("precision-f64\" value")
    );
}

//! Each package is whole: no source file includes a file of another package, so that a published package
//! builds and tests by itself.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// What names a file beside the one it is written in.
const INCLUSIONS: [&str; 4] = ["include!(", "include_str!(", "include_bytes!(", "#[path ="];

/// The folders with a Cargo.toml, and all Rust files, below a folder; build outputs are left out.
fn walk(folder: &Path, packages: &mut Vec<PathBuf>, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(&path, packages, sources);
            }
        } else if name == "Cargo.toml" {
            packages.push(folder.to_owned());
        } else if name.ends_with(".rs") {
            sources.push(path);
        }
    }
}

/// `path` without `.` and `..`.
fn resolved(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => assert!(out.pop(), "{}", path.display()),
            other => out.push(other),
        }
    }
    out
}

/// The files that a source text includes, as they are written there.
fn included(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for inclusion in INCLUSIONS {
        for (at, _) in text.match_indices(inclusion) {
            // A literal, possibly the first one of a `concat!`.
            let rest = text[at..].split([')', ']']).next().unwrap_or_default();
            found.extend(rest.split('"').nth(1));
        }
    }
    found
}

#[test]
fn no_source_reaches_outside_its_package() {
    let root = resolved(concat!(env!("CARGO_MANIFEST_DIR"), "/..").as_ref());
    let (mut packages, mut sources) = (Vec::new(), Vec::new());
    walk(&root, &mut packages, &mut sources);
    let (mut outside, mut checked) = (Vec::new(), 0);
    for source in sources {
        let of = |package: &&PathBuf| source.starts_with(package);
        // The innermost: the workspace's own Cargo.toml is above all.
        let Some(package) = packages.iter().filter(of).max_by_key(|p| p.as_os_str().len()) else {
            continue;
        };
        let text = fs::read_to_string(&source).unwrap();
        for file in included(&text) {
            checked += 1;
            if !resolved(&source.parent().unwrap().join(file)).starts_with(package) {
                outside.push(format!("{}: {file}", source.display()));
            }
        }
    }
    assert!(checked > 10, "only {checked} inclusions found");
    assert!(outside.is_empty(), "{}", outside.join("\n"));
}

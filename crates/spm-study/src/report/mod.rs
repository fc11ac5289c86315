//! The report: a results folder to one HTML page with plots, Markdown, CSV and SVG.

mod bars;
mod closing;
mod draw;
mod environment;
mod experiments;
mod files;
mod html;
mod load;
mod model;
mod plot;
mod published;
mod scale;
mod structure;
mod summary;
mod svg;
pub mod wide;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use self::load::Results;
use self::model::Document;

/// Writes the report of a results folder into that folder; returns the page's path.
///
/// # Errors
/// As [`write_to`].
pub fn write(results: &Path) -> anyhow::Result<PathBuf> {
    write_to(results, results)
}

/// Writes the report of `results` into `out`; returns the page's path.
///
/// # Errors
/// The folder is not there, a file in it is damaged, or the output cannot be written.
pub fn write_to(results: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    ensure!(
        results.is_dir(),
        "{} is not a folder; `cargo xtask bench-all` makes one",
        results.display()
    );
    let document = document(&Results::load(results)?);
    std::fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    files::write(&document, out)?;
    let page = out.join("report.html");
    crate::files::write_whole(&page, html::page(&document))
        .with_context(|| format!("cannot write {}", page.display()))?;
    Ok(page)
}

fn document(results: &Results) -> Document {
    let date = environment::date(&results.environment).unwrap_or_else(|| "date unknown".into());
    let mut sections = vec![
        summary::section(results),
        environment::section(results),
        environment::roofline(results),
    ];
    sections.extend(wide::section(results));
    sections.extend(published::sections(results));
    sections.extend(experiments::sections(results));
    sections.extend([
        structure::section(results),
        closing::failures(results),
        closing::method(),
        closing::licence(),
    ]);
    Document {
        title: "Sparse matrix kernels, measured".into(),
        subtitle: format!(
            "{} cases on {} matrices, {date}",
            model::grouped(results.rows.len() as u64),
            load::matrices(results.rows.iter()).len()
        ),
        sections,
    }
}

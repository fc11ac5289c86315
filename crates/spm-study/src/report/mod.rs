//! The report: a results folder to one HTML page with plots, Markdown, CSV and SVG.

mod bars;
mod closing;
pub mod compare;
mod draw;
mod environment;
mod experiments;
mod files;
mod html;
mod load;
mod model;
mod overview;
mod plot;
mod published;
mod roofline;
mod scale;
mod scaling;
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

/// The headings of the table of contents.
mod group {
    pub(super) const RESULTS: &str = "Results";
    pub(super) const EXPERIMENTS: &str = "Experiments";
    pub(super) const PUBLISHED: &str = "Published and ours";
    pub(super) const MATRICES: &str = "Matrices";
    pub(super) const RUN: &str = "This run";
}

fn document(results: &Results) -> Document {
    let date = environment::date(&results.environment).unwrap_or_else(|| "date unknown".into());
    let precisions = results.precisions();
    let mut sections = Vec::new();
    for precision in &precisions {
        let mut of_precision = measured(&results.of_precision(precision));
        if precisions.len() > 1 {
            of_precision.iter_mut().for_each(|section| section.of_precision(precision));
        }
        sections.extend(of_precision);
    }
    let run = [
        closing::failures(results),
        environment::section(results),
        closing::method(),
        closing::licence(),
    ];
    sections.extend(run.map(|section| section.in_group(group::RUN)));
    Document {
        title: "Sparse matrix kernels, measured".into(),
        subtitle: format!(
            "{} cases on {} matrices, {date}",
            model::grouped(results.rows.len() as u64),
            load::matrices(results.rows.iter()).len()
        ),
        precisions,
        backends: load::distinct(results.rows.iter().map(|r| r.backend.clone())),
        sections,
    }
}

/// The sections that tell of measurements, for results with values of one type.
fn measured(results: &Results) -> Vec<model::Section> {
    let mut sections = vec![summary::section(results), roofline::section(results)];
    sections.extend(wide::section(results));
    sections.extend(scaling::section(results));
    let mut sections: Vec<_> = sections.into_iter().map(|s| s.in_group(group::RESULTS)).collect();
    let experiments = experiments::sections(results).into_iter();
    sections.extend(experiments.map(|s| s.in_group(group::EXPERIMENTS)));
    let published = published::sections(results).into_iter();
    sections.extend(published.map(|s| s.in_group(group::PUBLISHED)));
    sections.push(structure::section(results).in_group(group::MATRICES));
    sections
}

//! The same document as Markdown, CSV tables and SVG figures.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::model::{Block, Document, Table};
use crate::files::{plain, remove_if_there, write_whole};

/// Writes `report.md`, `tables/*.csv` and `figures/*.svg` below `folder`.
pub(super) fn write(document: &Document, folder: &Path) -> anyhow::Result<()> {
    let context = |path: &Path| format!("cannot write {}", path.display());
    remove_earlier(folder)?;
    for sub in ["tables", "figures"] {
        let sub = folder.join(sub);
        fs::create_dir_all(&sub).with_context(|| context(&sub))?;
    }
    let mut markdown = format!("# {}\n\n{}\n", document.title, document.subtitle);
    for section in &document.sections {
        let _ = write!(markdown, "\n## {}\n", section.title);
        blocks(&mut markdown, &section.blocks, folder)?;
    }
    let path = folder.join("report.md");
    write_whole(&path, markdown).with_context(|| context(&path))
}

/// Removes the tables and figures that an earlier report of the folder links to, and no others: the
/// folder may be one in which somebody keeps figures of their own.
fn remove_earlier(folder: &Path) -> anyhow::Result<()> {
    let Ok(markdown) = fs::read_to_string(folder.join("report.md")) else { return Ok(()) };
    for link in markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let Some((sub, file)) = link.split_once('/') else { continue };
        let ending = if sub == "tables" { ".csv" } else { ".svg" };
        if ["tables", "figures"].contains(&sub) && plain(file) == file && file.ends_with(ending) {
            let path = folder.join(link);
            remove_if_there(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

fn blocks(markdown: &mut String, blocks: &[Block], folder: &Path) -> anyhow::Result<()> {
    for block in blocks {
        match block {
            Block::Heading(text) => {
                let _ = write!(markdown, "\n### {text}\n");
            }
            Block::Text(text) => {
                let _ = write!(markdown, "\n{text}\n");
            }
            Block::List(items) => {
                markdown.push('\n');
                for item in items {
                    let _ = writeln!(markdown, "- {item}");
                }
            }
            Block::Missing { what, command } => {
                let _ = write!(markdown, "\n_{what}_ `{command}`\n");
            }
            Block::Table(table) => {
                let path = folder.join("tables").join(format!("{}.csv", table.id));
                write_whole(&path, csv_table(table)?)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                self::table(markdown, table);
            }
            Block::Figure(figure) => {
                let path = folder.join("figures").join(format!("{}.svg", figure.id));
                write_whole(&path, figure.standalone())
                    .with_context(|| format!("cannot write {}", path.display()))?;
                let _ = write!(
                    markdown,
                    "\n![{title}](figures/{id}.svg)\n\n{title} {caption}\n",
                    title = figure.title,
                    id = figure.id,
                    caption = figure.caption
                );
            }
            Block::Links { text, links } => {
                let links: Vec<String> = links
                    .iter()
                    .map(|l| format!("[{}](tables/{}.csv)", l.text, l.target))
                    .collect();
                let _ = write!(markdown, "\n{text} {}\n", links.join(", "));
            }
            Block::Details { summary, blocks, .. } => {
                let _ = write!(markdown, "\n#### {summary}\n");
                self::blocks(markdown, blocks, folder)?;
            }
        }
    }
    Ok(())
}

fn csv_table(table: &Table) -> anyhow::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(&table.columns)?;
    for row in &table.rows {
        csv.write_record(row.iter().map(super::model::Cell::raw))?;
    }
    Ok(csv.into_inner()?)
}

fn table(markdown: &mut String, table: &Table) {
    let safe = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let _ = write!(markdown, "\n**{0}** ([CSV](tables/{1}.csv))\n\n|", table.title, table.id);
    for column in &table.columns {
        let _ = write!(markdown, " {} |", safe(column));
    }
    markdown.push_str("\n|");
    for numeric in table.numeric() {
        markdown.push_str(if numeric { " ---: |" } else { " --- |" });
    }
    markdown.push('\n');
    for row in &table.rows {
        markdown.push('|');
        for cell in row {
            let text = safe(&cell.display());
            let bold = if matches!(cell, super::model::Cell::Best(_)) { "**" } else { "" };
            let _ = write!(markdown, " {bold}{text}{bold} |");
        }
        markdown.push('\n');
    }
    if !table.note.is_empty() {
        let _ = write!(markdown, "\n{}\n", table.note);
    }
}

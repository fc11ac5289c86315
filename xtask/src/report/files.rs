//! The same document as Markdown, CSV tables and SVG figures.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::model::{Block, Document, Table};
use crate::files::write_whole;

/// Writes `report.md`, `tables/*.csv` and `figures/*.svg` below `folder`; tables and figures of an
/// earlier report go.
pub(super) fn write(document: &Document, folder: &Path) -> anyhow::Result<()> {
    let context = |path: &Path| format!("cannot write {}", path.display());
    for (sub, ending) in [("tables", "csv"), ("figures", "svg")] {
        let sub = folder.join(sub);
        fs::create_dir_all(&sub).with_context(|| context(&sub))?;
        for entry in fs::read_dir(&sub)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == ending) {
                fs::remove_file(&path).with_context(|| context(&path))?;
            }
        }
    }
    let mut markdown = format!("# {}\n\n{}\n", document.title, document.subtitle);
    for section in &document.sections {
        let _ = write!(markdown, "\n## {}\n", section.title);
        blocks(&mut markdown, &section.blocks, folder)?;
    }
    let path = folder.join("report.md");
    write_whole(&path, markdown).with_context(|| context(&path))
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
                csv_table(table, &path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                self::table(markdown, table);
            }
            Block::Figure(figure) => {
                let path = folder.join("figures").join(format!("{}.svg", figure.id));
                fs::write(&path, figure.standalone())
                    .with_context(|| format!("cannot write {}", path.display()))?;
                let _ = write!(
                    markdown,
                    "\n![{title}](figures/{id}.svg)\n\n{title} {caption}\n",
                    title = figure.title,
                    id = figure.id,
                    caption = figure.caption
                );
            }
            Block::Details { summary, blocks } => {
                let _ = write!(markdown, "\n#### {summary}\n");
                self::blocks(markdown, blocks, folder)?;
            }
        }
    }
    Ok(())
}

fn csv_table(table: &Table, path: &Path) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_path(path)?;
    csv.write_record(table.columns.iter().map(|c| &c.name))?;
    for row in &table.rows {
        csv.write_record(row.iter().map(super::model::Cell::raw))?;
    }
    csv.flush()?;
    Ok(())
}

fn table(markdown: &mut String, table: &Table) {
    let safe = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let _ = write!(markdown, "\n**{}**\n\n|", table.title);
    for column in &table.columns {
        let _ = write!(markdown, " {} |", safe(&column.name));
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

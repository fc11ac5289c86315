//! The document as one HTML page that needs nothing else: no font, no request, and no script to be
//! read. Its script adds what hovering shows, sorted and filtered tables, and links to a state of the page.

use std::fmt::Write as _;

use super::model::{Block, Cell, Document, Section, Table};
use super::svg::{Figure, MARK_SHAPES, PALETTE, backend_attribute, escape};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Longer tables are folded.
const OPEN_ROWS: usize = 40;
/// Folded tables with up to this many rows are opened in print; the others are in `tables/`.
const PRINTED_ROWS: usize = 120;
/// Columns of a table that can be set flush right.
const MOST_COLUMNS: usize = 40;

/// The page's text.
pub(super) fn page(document: &Document) -> String {
    let mut out = String::new();
    let title = escape(&document.title);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <meta name=\"color-scheme\" content=\"light dark\"/>\
         <link rel=\"icon\" href=\"data:,\"/>\
         <title>{title}</title><style>{PALETTE}{STYLE}"
    );
    for column in 1..=MOST_COLUMNS {
        let _ = write!(out, ".n{column} tr>:nth-child({column}){{text-align:right}}");
    }
    let _ = write!(
        out,
        "</style></head><body>{MARK_SHAPES}<a class=\"skip\" href=\"#content\">Skip the contents</a>\
         <div class=\"side\"><header><h1>{title}</h1><p>{}</p></header>",
        escape(&document.subtitle)
    );
    let backends: Vec<(String, String)> =
        document.backends.iter().map(|b| (b.clone(), b.to_uppercase())).collect();
    let both = ("both".to_owned(), "Both".to_owned());
    switch(&mut out, "backend", "Backend", &[&[both], &*backends].concat());
    let precisions: Vec<(String, String)> =
        document.precisions.iter().map(|p| (p.clone(), p.clone())).collect();
    switch(&mut out, "precision", "Precision", &precisions);
    contents(&mut out, &document.sections);
    out.push_str("</div><main id=\"content\">");
    for section in &document.sections {
        self::section(&mut out, section);
    }
    let _ = writeln!(out, "</main><script>{SCRIPT}</script></body></html>");
    out
}

/// One of several that is shown; the first is chosen. Nothing where there is nothing to choose.
fn switch(out: &mut String, name: &str, title: &str, choices: &[(String, String)]) {
    // Both, and one: no choice either.
    if choices.len() < 2 || (choices.len() == 2 && choices[0].0 == "both") {
        return;
    }
    let _ = write!(out, "<fieldset class=\"switch\"><legend>{title}</legend>");
    for (i, (value, label)) in choices.iter().enumerate() {
        let checked = if i == 0 { " checked=\"checked\"" } else { "" };
        let (value, label) = (escape(value), escape(label));
        let _ = write!(
            out,
            "<label><input type=\"radio\" name=\"{name}\" id=\"{name}-{value}\" value=\"{value}\"{checked}></input>\
             {label}</label>"
        );
    }
    out.push_str("</fieldset>");
}

/// The table of contents, in its groups.
fn contents(out: &mut String, sections: &[Section]) {
    out.push_str("<nav aria-label=\"Contents\"><details open=\"open\"><summary>Contents</summary>");
    let mut group = "";
    for section in sections {
        if section.group != group {
            if !group.is_empty() {
                out.push_str("</ul>");
            }
            group = section.group;
            let _ = write!(out, "<p>{}</p><ul>", escape(group));
        }
        let _ = write!(
            out,
            "<li{}><a href=\"#{}\">{}</a></li>",
            attributes(section),
            escape(&section.id),
            escape(&section.title)
        );
    }
    if !group.is_empty() {
        out.push_str("</ul>");
    }
    out.push_str("</details></nav>");
}

/// What the switches show and hide a section by.
fn attributes(section: &Section) -> String {
    // spmv-cpu-threads, transpose-gpu; spmv-cpu-vs-gpu is of both.
    let words: Vec<&str> = section.id.split('-').collect();
    let mut attributes = match (words.contains(&"cpu"), words.contains(&"gpu")) {
        (true, false) => backend_attribute("cpu"),
        (false, true) => backend_attribute("gpu"),
        _ => String::new(),
    };
    if !section.precision.is_empty() {
        let _ = write!(attributes, " data-p=\"{}\"", escape(&section.precision));
    }
    attributes
}

fn section(out: &mut String, section: &Section) {
    let (id, title) = (escape(&section.id), escape(&section.title));
    let _ = write!(
        out,
        "<section id=\"{id}\"{}><h2>{title} <a class=\"anchor\" href=\"#{id}\" \
         aria-label=\"Link to {title}\">#</a></h2>",
        attributes(section)
    );
    blocks(out, &section.blocks);
    out.push_str("</section>\n");
}

fn blocks(out: &mut String, blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Heading(text) => {
                let _ = write!(out, "<h3>{}</h3>", escape(text));
            }
            Block::Text(text) => {
                let _ = write!(out, "<p>{}</p>", inline(text));
            }
            Block::List(items) => {
                out.push_str("<ul>");
                for item in items {
                    let _ = write!(out, "<li{}>{}</li>", backend_attribute(item), inline(item));
                }
                out.push_str("</ul>");
            }
            Block::Missing { what, command } => {
                let _ = write!(
                    out,
                    "<p class=\"missing\">{} <code>{}</code></p>",
                    escape(what),
                    escape(command)
                );
            }
            Block::Table(table) => self::table(out, table),
            Block::Figure(figure) => self::figure(out, figure),
            Block::Links { text, links } => {
                let _ = write!(out, "<p>{}", inline(text));
                for (i, link) in links.iter().enumerate() {
                    let _ = write!(
                        out,
                        "{} <a href=\"#table-{}\" data-q=\"{}\">{}</a>",
                        if i > 0 { "," } else { "" },
                        escape(&link.target),
                        escape(&link.words),
                        escape(&link.text)
                    );
                }
                out.push_str("</p>");
            }
            Block::Details { id, summary, blocks } => {
                let id = match &**id {
                    "" => String::new(),
                    id => format!(" id=\"{}\"", escape(id)),
                };
                let _ = write!(out, "<details{id}><summary>{}</summary>", inline(summary));
                self::blocks(out, blocks);
                out.push_str("</details>");
            }
        }
    }
}

/// Text with `code` between backquotes and links from bare https addresses.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (i, piece) in text.split('`').enumerate() {
        if i % 2 == 1 {
            let _ = write!(out, "<code>{}</code>", escape(piece));
            continue;
        }
        for (j, word) in piece.split(' ').enumerate() {
            if j > 0 {
                out.push(' ');
            }
            let link = word.trim_end_matches(['.', ',', ';', ')']);
            if link.starts_with("https://") {
                let (link, rest) = (escape(link), escape(&word[link.len()..]));
                let _ = write!(out, "<a href=\"{link}\">{link}</a>{rest}");
            } else {
                out.push_str(&escape(word));
            }
        }
    }
    out
}

fn table(out: &mut String, table: &Table) {
    let measured: Vec<usize> =
        (0..table.rows.len()).filter(|row| !table.folded.contains(row)).collect();
    let fold = measured.len() > OPEN_ROWS;
    if fold {
        let class = if table.rows.len() <= PRINTED_ROWS { " class=\"prints\"" } else { "" };
        let _ = write!(
            out,
            "<details{class}><summary>{} ({} rows)</summary>",
            escape(&table.title),
            measured.len()
        );
    }
    if !measured.is_empty() {
        rows(out, table, &measured, &format!("table-{}", table.id), &table.title);
    }
    if !table.note.is_empty() {
        let _ = write!(out, "<p class=\"note\">{}</p>", inline(&table.note));
    }
    if fold {
        out.push_str("</details>");
    }
    if !table.folded.is_empty() {
        let title = format!("{}: {}", table.title, table.folded_as);
        let summary = format!("{} {}", table.folded.len(), table.folded_as);
        let _ = write!(out, "<details><summary>{}</summary>", escape(&summary));
        let id = if measured.is_empty() { "table" } else { "folded" };
        rows(out, table, &table.folded, &format!("{id}-{}", table.id), &title);
        out.push_str("</details>");
    }
}

/// Some rows of a table.
fn rows(out: &mut String, table: &Table, rows: &[usize], id: &str, title: &str) {
    let numeric = table.numeric();
    let right: Vec<String> = (0..numeric.len().min(MOST_COLUMNS))
        .filter(|&column| numeric[column])
        .map(|column| format!("n{}", column + 1))
        .collect();
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" id=\"{}\" aria-label=\"{1}\">\
         <table class=\"{2}\"><caption>{1}</caption><thead><tr>",
        escape(id),
        escape(title),
        right.join(" ")
    );
    for column in &table.columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(column));
    }
    out.push_str("</tr></thead><tbody>");
    let backend = table.columns.iter().position(|c| c == "backend");
    for row in rows.iter().map(|&row| &table.rows[row]) {
        let of = backend.map_or_else(String::new, |b| backend_attribute(&row[b].raw()));
        let _ = write!(out, "<tr{of}>");
        for cell in row {
            let class = match cell {
                Cell::Best(_) => " class=\"best\"",
                Cell::Prose(_) => " class=\"wide\"",
                _ => "",
            };
            let text = escape(&cell.display());
            let text = match cell {
                Cell::Code(_) => format!("<code>{text}</code>"),
                Cell::Link(_, target) => format!("<a href=\"#{}\">{text}</a>", escape(target)),
                _ => text,
            };
            let _ = write!(out, "<td{class}>{text}</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn figure(out: &mut String, figure: &Figure) {
    let _ = write!(out, "<figure class=\"plot\" id=\"figure-{}\">", escape(&figure.id));
    let _ = write!(out, "<figcaption><b>{}</b>", escape(&figure.title));
    if !figure.caption.is_empty() {
        let _ = write!(out, " {}", inline(&figure.caption));
    }
    out.push_str("</figcaption>");
    if !figure.legend.is_empty() {
        out.push_str("<ul class=\"legend\">");
        for (mark, name) in figure.legend_items() {
            let _ = write!(out, "<li{}>{mark}{}</li>", backend_attribute(name), escape(name));
        }
        out.push_str("</ul>");
    }
    out.push_str(if figure.pairs {
        "<div class=\"panels pairs\">"
    } else {
        "<div class=\"panels\">"
    });
    for panel in &figure.panels {
        out.push_str(&panel.inline());
    }
    out.push_str("</div></figure>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_text_knows_code_and_links() {
        assert_eq!(
            inline("run `a<b` at https://sparse.tamu.edu/."),
            "run <code>a&lt;b</code> at \
             <a href=\"https://sparse.tamu.edu/\">https://sparse.tamu.edu/</a>."
        );
    }
}

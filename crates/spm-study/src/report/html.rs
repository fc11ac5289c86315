//! The document as one HTML page that needs nothing else: no script, no font, no request.

use std::fmt::Write as _;

use super::model::{Block, Cell, Document, Section, Table};
use super::svg::{Figure, PALETTE, escape};

const STYLE: &str = include_str!("page.css");
/// Longer tables are folded.
const OPEN_ROWS: usize = 40;
/// Folded tables with up to this many rows are opened in print; the others are in `tables/`.
const PRINTED_ROWS: usize = 120;

/// The page's text.
pub(super) fn page(document: &Document) -> String {
    let mut out = String::new();
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <meta name=\"color-scheme\" content=\"light dark\"/>\
         <link rel=\"icon\" href=\"data:,\"/>\
         <title>{title}</title><style>{PALETTE}{STYLE}</style></head><body>\
         <header><h1>{title}</h1><p>{subtitle}</p></header>\
         <nav aria-label=\"Contents\"><ol>",
        title = escape(&document.title),
        subtitle = escape(&document.subtitle)
    );
    for section in &document.sections {
        let _ = write!(
            out,
            "<li><a href=\"#{}\">{}</a></li>",
            escape(&section.id),
            escape(&section.title)
        );
    }
    out.push_str("</ol></nav><main>");
    for section in &document.sections {
        self::section(&mut out, section);
    }
    out.push_str("</main></body></html>\n");
    out
}

fn section(out: &mut String, section: &Section) {
    let _ =
        write!(out, "<section id=\"{}\"><h2>{}</h2>", escape(&section.id), escape(&section.title));
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
                    let _ = write!(out, "<li>{}</li>", inline(item));
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
            Block::Details { summary, blocks } => {
                let _ = write!(out, "<details><summary>{}</summary>", escape(summary));
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
    let fold = table.rows.len() > OPEN_ROWS;
    if fold {
        let class = if table.rows.len() <= PRINTED_ROWS { " class=\"prints\"" } else { "" };
        let _ = write!(
            out,
            "<details{class}><summary>{} ({} rows)</summary>",
            escape(&table.title),
            table.rows.len()
        );
    }
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table>\
         <caption>{0}</caption><thead><tr>",
        escape(&table.title)
    );
    let numeric = table.numeric();
    for (column, numeric) in table.columns.iter().zip(&numeric) {
        let class = if *numeric { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(column));
    }
    out.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        out.push_str("<tr>");
        for (cell, numeric) in row.iter().zip(&numeric) {
            let class = match (cell, numeric) {
                (Cell::Best(_), _) => " class=\"n best\"",
                (Cell::Prose(_), _) => " class=\"wide\"",
                (_, true) => " class=\"n\"",
                _ => "",
            };
            let text = escape(&cell.display());
            if matches!(cell, Cell::Code(_)) {
                let _ = write!(out, "<td{class}><code>{text}</code></td>");
            } else {
                let _ = write!(out, "<td{class}>{text}</td>");
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    if !table.note.is_empty() {
        let _ = write!(out, "<p class=\"note\">{}</p>", inline(&table.note));
    }
    if fold {
        out.push_str("</details>");
    }
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
            let _ = write!(out, "<li>{mark}{}</li>", escape(name));
        }
        out.push_str("</ul>");
    }
    out.push_str("<div class=\"panels\">");
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

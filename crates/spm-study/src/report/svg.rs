//! Figures as SVG: panels of a size that a phone shows whole, coloured by CSS classes.
//!
//! A general plotting library writes fixed colours and sizes; here colours are custom properties
//! (`--s1`, `--ink`, ...) that the page's style sheet, or the one put into a separate SVG file, sets
//! for light and dark, and every mark carries its value as a `<title>` that browsers show on
//! hovering.

use std::fmt::Write as _;

/// Width of a panel in user units; the page scales it.
pub(super) const PANEL_WIDTH: f64 = 380.0;
/// Colours of the palette; series beyond take dashes and other marks.
const COLOURS: usize = 8;
const MARKS: usize = 5;

/// The custom properties and classes that figures use.
pub(super) const PALETTE: &str = include_str!("palette.css");

/// A figure; also a file `figures/ID.svg`.
#[derive(Debug, Default)]
pub(super) struct Figure {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) caption: String,
    /// Series names in the order of their colours.
    pub(super) legend: Vec<String>,
    pub(super) panels: Vec<Panel>,
}

/// One set of axes.
#[derive(Debug, Default, Clone)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) height: f64,
    /// SVG elements in a frame of [`PANEL_WIDTH`] by `height`.
    pub(super) body: String,
}

impl Panel {
    /// The panel as an element of a page.
    pub(super) fn inline(&self) -> String {
        format!(
            "<svg viewBox=\"0 0 {PANEL_WIDTH} {}\" role=\"img\" aria-label=\"{}\">{}</svg>",
            number(self.height),
            escape(&self.title),
            self.body
        )
    }
}

impl Figure {
    /// The figure as a file of its own: panels in a grid, legend below.
    pub(super) fn standalone(&self) -> String {
        let columns = self.panels.len().clamp(1, 3);
        let width = columns as f64 * PANEL_WIDTH;
        let mut body = text(12.0, 22.0, "start", "title", &self.title);
        let mut y = 34.0;
        for row in self.panels.chunks(columns) {
            for (i, panel) in row.iter().enumerate() {
                let x = number(i as f64 * PANEL_WIDTH);
                let _ = write!(
                    body,
                    "<g transform=\"translate({x} {})\">{}</g>",
                    number(y),
                    panel.body
                );
            }
            y += row.iter().map(|p| p.height).fold(0.0, f64::max) + 8.0;
        }
        let mut x = 12.0;
        for (i, name) in self.legend.iter().enumerate() {
            let advance = 32.0 + 7.0 * name.chars().count() as f64;
            if x + advance > width && x > 12.0 {
                x = 12.0;
                y += 18.0;
            }
            let _ = write!(body, "<g transform=\"translate({} {})\">", number(x), number(y));
            body.push_str(&swatch(i));
            body.push_str(&text(22.0, 12.0, "start", "", name));
            body.push_str("</g>");
            x += advance;
        }
        let height = y + 24.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" \
             height=\"{h}\" class=\"plot\"><style>{PALETTE}</style>\
             <rect class=\"paper\" width=\"{w}\" height=\"{h}\"></rect>{body}</svg>\n",
            w = number(width),
            h = number(height)
        )
    }

    /// The legend's marks and names.
    pub(super) fn legend_items(&self) -> impl Iterator<Item = (String, &str)> {
        self.legend.iter().enumerate().map(|(i, name)| {
            let mark = format!(
                "<svg class=\"swatch\" viewBox=\"0 0 18 16\" width=\"18\" height=\"16\" \
                 aria-hidden=\"true\">{}</svg>",
                swatch(i)
            );
            (mark, name.as_str())
        })
    }
}

fn swatch(series: usize) -> String {
    let class = series_class(series);
    format!(
        "<g class=\"{class}\"><path class=\"line\" d=\"M0 8H18\"></path>{}</g>",
        mark(series, 9.0, 8.0, None)
    )
}

/// Class names that set colour and dash of a series.
pub(super) fn series_class(series: usize) -> String {
    let dash = if (series / COLOURS) % 2 == 1 { " dashed" } else { "" };
    format!("s{}{dash}", series % COLOURS + 1)
}

/// The mark of a series at a point, with what hovering shows.
pub(super) fn mark(series: usize, x: f64, y: f64, title: Option<&str>) -> String {
    let title = title.map_or_else(String::new, |title| format!("<title>{}</title>", escape(title)));
    let (x0, y0) = (number(x), number(y));
    let path = |d: String| format!("<path class=\"mark\" d=\"{d}\">{title}</path>");
    match series % MARKS {
        0 => format!("<circle class=\"mark\" cx=\"{x0}\" cy=\"{y0}\" r=\"3\">{title}</circle>"),
        1 => path(format!("M{} {}h5.4v5.4h-5.4z", number(x - 2.7), number(y - 2.7))),
        2 => path(format!("M{x0} {}l3.5 6h-7z", number(y - 3.6))),
        3 => path(format!("M{x0} {}l3.6 3.8l-3.6 3.8l-3.6 -3.8z", number(y - 3.8))),
        _ => path(format!("M{x0} {}l3.5 -6h-7z", number(y + 3.6))),
    }
}

/// A text element; `class` may be empty.
pub(super) fn text(x: f64, y: f64, anchor: &str, class: &str, content: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let anchor =
        if anchor == "start" { String::new() } else { format!(" text-anchor=\"{anchor}\"") };
    format!(
        "<text x=\"{}\" y=\"{}\"{anchor}{class}>{}</text>",
        number(x),
        number(y),
        escape(content)
    )
}

/// A straight line.
pub(super) fn rule(x1: f64, y1: f64, x2: f64, y2: f64, class: &str) -> String {
    format!(
        "<path class=\"{class}\" d=\"M{} {}L{} {}\"></path>",
        number(x1),
        number(y1),
        number(x2),
        number(y2)
    )
}

/// A coordinate without needless digits.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Text that is safe between tags and inside double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 has no place for other control characters, not even escaped.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Shortens a label from its end.
pub(super) fn clip(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        label.to_owned()
    } else {
        label.chars().take(most.saturating_sub(1)).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_clipped() {
        assert_eq!(escape("a<b & \"c\"\u{1}"), "a&lt;b &amp; &quot;c&quot;\u{fffd}");
        assert_eq!(clip("webbase-1M", 6), "webba…");
        assert_eq!(clip("cant", 6), "cant");
    }

    #[test]
    fn series_differ_in_colour_mark_or_dash() {
        let looks: std::collections::BTreeSet<_> =
            (0..40).map(|s| (series_class(s), s % MARKS)).collect();
        assert_eq!(looks.len(), 40);
    }
}

//! Figures as SVG: panels that are as wide as the page lets them be, coloured by CSS classes.
//!
//! Places along x are percentages of the space between the margins, so that a panel grows with the page
//! while its text and marks keep their sizes. Colours are custom properties (`--s1`, `--ink`, ...) that
//! the page's style sheet, or the one put into a separate SVG file, sets for light and dark. Every mark
//! carries its value as a `<title>`, which browsers show on hovering. Plotting libraries that were tried
//! instead are in docs/decisions.md.

use std::fmt::Write as _;

/// Width of a panel in a file of its own, and the narrowest that its labels are made for.
const PANEL_WIDTH: f64 = 380.0;
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
    /// The number of the last series that are dashed lines without marks: those of a model.
    pub(super) modelled: usize,
    /// Whether two panels belong beside each other.
    pub(super) pairs: bool,
}

/// One set of axes.
#[derive(Debug, Default, Clone)]
pub(super) struct Panel {
    pub(super) title: String,
    /// Height in pixels.
    pub(super) height: f64,
    /// Pixels to the left and to the right of the axes.
    pub(super) margins: (f64, f64),
    /// SVG elements: places along x are percentages of the width between the margins, all else is
    /// pixels.
    pub(super) body: String,
}

impl Panel {
    /// The panel as an element of a page.
    pub(super) fn inline(&self) -> String {
        let (left, right) = self.margins;
        format!(
            "<div class=\"panel\"{}><svg height=\"{}\" style=\"--l:{}px;--r:{}px\" role=\"img\" \
             aria-label=\"{}\">{}</svg></div>",
            backend_attribute(&self.title),
            number(self.height),
            number(left),
            number(right),
            escape(&self.title),
            self.body
        )
    }

    /// The panel as an element of an SVG file, its left upper corner at a place.
    fn placed(&self, x: f64, y: f64) -> String {
        let (left, right) = self.margins;
        format!(
            "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" overflow=\"visible\">{}</svg>",
            number(x + left),
            number(y),
            number(PANEL_WIDTH - left - right),
            number(self.height),
            self.body
        )
    }
}

/// `cpu` or `gpu` where a label begins with that word: what the page's switch of backends shows and
/// hides.
pub(super) fn backend_of(label: &str) -> Option<&'static str> {
    let label = label.strip_prefix("On the ").unwrap_or(label);
    let word = label.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    ["cpu", "gpu"].into_iter().find(|backend| word.eq_ignore_ascii_case(backend))
}

/// The attribute for [`backend_of`], or nothing.
pub(super) fn backend_attribute(label: &str) -> String {
    backend_of(label).map_or_else(String::new, |backend| format!(" data-b=\"{backend}\""))
}

impl Figure {
    /// The figure as a file of its own: panels in a grid, legend below.
    pub(super) fn standalone(&self) -> String {
        let columns = self.panels.len().clamp(1, if self.pairs { 2 } else { 3 });
        let width = columns as f64 * PANEL_WIDTH;
        let mut body = text(12.0, 22.0, "start", "title", &self.title);
        let mut y = 34.0;
        for row in self.panels.chunks(columns) {
            for (i, panel) in row.iter().enumerate() {
                body.push_str(&panel.placed(i as f64 * PANEL_WIDTH, y));
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
            body.push_str(&self.swatch(i));
            body.push_str(&text(22.0, 12.0, "start", "", name));
            body.push_str("</g>");
            x += advance;
        }
        let height = y + 24.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" \
             height=\"{h}\" class=\"plot\"><style>{PALETTE}</style>{MARK_SHAPES}\
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
                self.swatch(i)
            );
            (mark, name.as_str())
        })
    }

    fn swatch(&self, series: usize) -> String {
        let (class, line) = (series_class(series), "<path class=\"line\" d=\"M0 8H18\"></path>");
        if series + self.modelled >= self.legend.len() {
            return format!("<g class=\"{class} dashed\">{line}</g>");
        }
        let mark = series % MARKS;
        format!(
            "<g class=\"{class}\">{line}<use class=\"mark\" href=\"#m{mark}\" x=\"9\" y=\"8\"></use></g>"
        )
    }
}

/// Class names that set colour and dash of a series.
pub(super) fn series_class(series: usize) -> String {
    let dash = if (series / COLOURS) % 2 == 1 { " dashed" } else { "" };
    format!("s{}{dash}", series % COLOURS + 1)
}

/// Shapes of marks, which a page or a file defines once.
pub(super) const MARK_SHAPES: &str = "<svg width=\"0\" height=\"0\" class=\"shapes\" aria-hidden=\"true\"><defs>\
    <circle id=\"m0\" r=\"3.2\"></circle><path id=\"m1\" d=\"M-2.8 -2.8h5.6v5.6h-5.6z\"></path>\
    <path id=\"m2\" d=\"M0 -3.7l3.6 6.2h-7.2z\"></path><path id=\"m3\" d=\"M0 -3.9l3.7 3.9l-3.7 3.9l-3.7 -3.9z\"></path>\
    <path id=\"m4\" d=\"M0 3.7l3.6 -6.2h-7.2z\"></path></defs></svg>";

/// The mark of a series at a point (x in percent), with what hovering shows.
pub(super) fn mark(series: usize, x: f64, y: f64, title: &str) -> String {
    format!(
        "<use class=\"mark\" href=\"#m{}\" x=\"{}%\" y=\"{}\"><title>{}</title></use>",
        series % MARKS,
        percent(x),
        number(y),
        escape(title)
    )
}

/// A text element; `x` comes with its unit, `class` may be empty.
fn text_at(x: &str, y: f64, anchor: &str, class: &str, content: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let anchor =
        if anchor == "start" { String::new() } else { format!(" text-anchor=\"{anchor}\"") };
    format!("<text x=\"{x}\" y=\"{}\"{anchor}{class}>{}</text>", number(y), escape(content))
}

/// A text element in pixels.
pub(super) fn text(x: f64, y: f64, anchor: &str, class: &str, content: &str) -> String {
    text_at(&number(x), y, anchor, class, content)
}

/// Characters of a panel's title that fit above the narrowest panel (21rem).
const TITLE_LENGTH: usize = 46;

/// The title of a panel whose plot begins `left` pixels from its edge; where it is shortened, hovering shows
/// all of it.
pub(super) fn panel_title(left: f64, title: &str) -> String {
    let shown = clip(title, TITLE_LENGTH);
    let element = text(4.0 - left, 14.0, "start", "title", &shown);
    if shown == title {
        return element;
    }
    element.replace("</text>", &format!("<title>{}</title></text>", escape(title)))
}

/// A text element with x in percent.
pub(super) fn label(x: f64, y: f64, anchor: &str, class: &str, content: &str) -> String {
    text_at(&format!("{}%", percent(x)), y, anchor, class, content)
}

/// A straight line, x in percent.
pub(super) fn rule(x1: f64, y1: f64, x2: f64, y2: f64, class: &str) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{}%\" y1=\"{}\" x2=\"{}%\" y2=\"{}\"></line>",
        percent(x1),
        number(y1),
        percent(x2),
        number(y2)
    )
}

/// Paths with x in percent and y in pixels, which [`curve`] makes: stretched to the width of the panel,
/// their strokes not.
pub(super) fn curves(height: f64, paths: &str) -> String {
    let height = number(height);
    format!(
        "<svg width=\"100%\" height=\"{height}\" viewBox=\"0 0 100 {height}\" \
         preserveAspectRatio=\"none\" overflow=\"visible\">{paths}</svg>"
    )
}

/// A line through points, x in percent; nothing for fewer than two points.
pub(super) fn curve(points: impl Iterator<Item = (f64, f64)>, class: &str, title: &str) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{} {}", percent(x), number(y));
    }
    if !path.contains('L') {
        return String::new();
    }
    let title = escape(title);
    format!(
        "<path class=\"{class}\" vector-effect=\"non-scaling-stroke\" d=\"{path}\"><title>{title}</title></path>"
    )
}

/// A percentage with the digits that a wide screen shows.
pub(super) fn percent(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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

/// Shortens a label in its middle: generated matrices differ in the numbers at the end.
pub(super) fn clip(label: &str, most: usize) -> String {
    let count = label.chars().count();
    if count <= most {
        return label.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    label.chars().take(head).chain(['…']).chain(label.chars().skip(count - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_clipped() {
        assert_eq!(escape("a<b & \"c\"\u{1}"), "a&lt;b &amp; &quot;c&quot;\u{fffd}");
        assert_eq!(clip("webbase-1M", 6), "web…1M");
        assert_eq!(clip("cant", 6), "cant");
        let long = format!("uniform[{}]", "rows=1,".repeat(20));
        let shown = clip(&long, TITLE_LENGTH);
        assert!(panel_title(48.0, &long).contains(&format!(">{shown}<title>{long}</title>")));
    }

    #[test]
    fn a_label_that_begins_with_a_backend_belongs_to_it() {
        for label in ["cpu csr-rows", "GPU: roof", "On the GPU take", "gpu"] {
            assert!(backend_of(label).is_some(), "{label}");
        }
        assert_eq!(backend_of("cpuset"), None);
        assert_eq!(backend_of("all matrices"), None);
        assert_eq!(backend_attribute("CPU x"), " data-b=\"cpu\"");
    }

    #[test]
    fn series_differ_in_colour_mark_or_dash() {
        let looks: std::collections::BTreeSet<_> =
            (0..40).map(|s| (series_class(s), s % MARKS)).collect();
        assert_eq!(looks.len(), 40);
    }

    /// Linear RGB of `#rrggbb`.
    fn linear(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let c = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn apply(matrix: [[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(v).map(|(m, x)| m * x).sum())
    }

    /// Contrast ratio of WCAG 2.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |c| apply([[0.2126, 0.7152, 0.0722]; 3], linear(c))[0] + 0.05;
        let (a, b) = (luminance(a), luminance(b));
        a.max(b) / a.min(b)
    }

    /// Coordinates in which distances are differences that people see (Ottosson 2020).
    fn oklab(rgb: [f64; 3]) -> [f64; 3] {
        const LMS: [[f64; 3]; 3] = [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ];
        const LAB: [[f64; 3]; 3] = [
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ];
        apply(LAB, apply(LMS, rgb).map(|x| x.max(0.0).cbrt()))
    }

    #[test]
    fn colours_have_contrast_and_the_colour_blind_tell_them_apart() {
        // Machado, Oliveira and Fernandes 2009, severity 1.
        let sights = [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ];
        let themes: Vec<&str> = PALETTE.split(":root {").skip(1).collect();
        assert_eq!(themes.len(), 3);
        for theme in themes {
            let colour = |name: &str| {
                let from = theme.find(&format!("--{name}: #")).unwrap() + name.len() + 4;
                &theme[from..from + 7]
            };
            for (text, ground) in [
                ("ink", "paper"),
                ("soft", "paper"),
                ("link", "paper"),
                ("soft", "tint"),
                ("link", "tint"),
            ] {
                let contrast = contrast(colour(text), colour(ground));
                assert!(contrast >= 4.5, "{text} on {ground}: {contrast}");
            }
            let series: Vec<&str> = (1..=COLOURS).map(|s| colour(&format!("s{s}"))).collect();
            for (i, a) in series.iter().enumerate() {
                assert!(contrast(a, colour("paper")) >= 3.0, "{a}");
                for b in &series[..i] {
                    for sight in sights {
                        let (p, q) =
                            (oklab(apply(sight, linear(a))), oklab(apply(sight, linear(b))));
                        let distance =
                            p.iter().zip(q).map(|(p, q)| (p - q).powi(2)).sum::<f64>().sqrt();
                        assert!(distance >= 0.05, "{a} and {b}: {distance}");
                    }
                }
            }
        }
    }
}

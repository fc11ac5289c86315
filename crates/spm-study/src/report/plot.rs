//! Plots over two numeric axes: lines over threads, blocks or k, and the roofline.

use std::fmt::Write as _;

use super::scale::{Kind, Scale};
use super::svg::{PANEL_WIDTH, Panel, escape, mark, number, rule, series_class, text};

/// One line or cloud of points.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    /// Place in the legend, and so the colour.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

/// A point with what hovering shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) tip: String,
}

/// Axes with lines and marks.
#[derive(Debug)]
pub(super) struct XyPlot {
    pub(super) title: String,
    pub(super) x_label: String,
    pub(super) y_label: String,
    pub(super) x_kind: Kind,
    pub(super) y_kind: Kind,
    /// Lines with marks, in the colours of the legend.
    pub(super) lines: Vec<Series>,
    /// Thin lines behind, one per matrix.
    pub(super) faint: Vec<Series>,
    /// Plain lines that bound the points.
    pub(super) roof: Vec<Series>,
    /// Marks without lines.
    pub(super) clouds: Vec<Series>,
    /// A dotted horizontal line, such as speedup 1.
    pub(super) reference: Option<f64>,
    /// The values of x that were measured; grid lines stand there instead of at round values.
    pub(super) x_ticks: Vec<f64>,
    pub(super) height: f64,
}

impl Default for XyPlot {
    fn default() -> Self {
        Self {
            title: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            x_kind: Kind::Linear,
            y_kind: Kind::Linear,
            lines: Vec::new(),
            faint: Vec::new(),
            roof: Vec::new(),
            clouds: Vec::new(),
            reference: None,
            x_ticks: Vec::new(),
            height: 250.0,
        }
    }
}

const LEFT: f64 = 48.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;

impl XyPlot {
    fn points(&self) -> impl Iterator<Item = &Point> {
        [&self.lines, &self.faint, &self.roof, &self.clouds]
            .into_iter()
            .flatten()
            .flat_map(|s| &s.points)
    }

    /// Draws it; no points, no panel.
    pub(super) fn panel(&self) -> Option<Panel> {
        self.points().next()?;
        let (right, bottom) = (PANEL_WIDTH - RIGHT, self.height - BOTTOM);
        let xs = self.points().map(|p| p.x).chain(self.x_ticks.iter().copied());
        let x = Scale::around(self.x_kind, xs, LEFT + 6.0, right);
        let ys = self.points().map(|p| p.y).chain(self.reference);
        let y = Scale::around(self.y_kind, ys, bottom, TOP);
        let mut body = text(4.0, 14.0, "start", "title", &self.title);
        body.push_str(&text(4.0, 30.0, "start", "", &self.y_label));
        body.push_str(&text(right, self.height - 6.0, "end", "", &self.x_label));
        self.axes(&mut body, &x, &y, right, bottom);
        if let Some(reference) = self.reference {
            body.push_str(&rule(LEFT, y.at(reference), right, y.at(reference), "one"));
        }
        for series in &self.faint {
            line(&mut body, series, &x, &y, "faint");
        }
        for series in &self.roof {
            line(&mut body, series, &x, &y, "axis");
        }
        for series in &self.lines {
            let _ = write!(body, "<g class=\"{}\">", series_class(series.index));
            line(&mut body, series, &x, &y, "line");
            marks(&mut body, series, &x, &y);
            body.push_str("</g>");
        }
        for series in &self.clouds {
            let _ = write!(body, "<g class=\"{}\">", series_class(series.index));
            marks(&mut body, series, &x, &y);
            body.push_str("</g>");
        }
        Some(Panel { title: self.title.clone(), height: self.height, body })
    }

    fn axes(&self, body: &mut String, x: &Scale, y: &Scale, right: f64, bottom: f64) {
        for (value, label) in y.ticks() {
            let at = y.at(value);
            body.push_str(&rule(LEFT, at, right, at, "grid"));
            body.push_str(&text(LEFT - 5.0, at + 3.5, "end", "", &label));
        }
        let ticks: Vec<(f64, String)> = if self.x_ticks.is_empty() {
            x.ticks()
        } else {
            self.x_ticks.iter().map(|v| (*v, format!("{v}"))).collect()
        };
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in ticks {
            let at = x.at(value);
            body.push_str(&rule(at, bottom, at, bottom + 4.0, "axis"));
            let half = 3.2 * label.chars().count() as f64;
            if at - half >= free_from {
                body.push_str(&text(at, bottom + 15.0, "middle", "", &label));
                free_from = at + half + 3.0;
            }
        }
        body.push_str(&rule(LEFT, bottom, right, bottom, "axis"));
    }
}

fn line(body: &mut String, series: &Series, x: &Scale, y: &Scale, class: &str) {
    let mut path = String::new();
    for p in series.points.iter().filter(|p| x.shows(p.x) && y.shows(p.y)) {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{} {}", number(x.at(p.x)), number(y.at(p.y)));
    }
    if path.contains('L') {
        let name = escape(&series.name);
        let _ = write!(body, "<path class=\"{class}\" d=\"{path}\"><title>{name}</title></path>");
    }
}

fn marks(body: &mut String, series: &Series, x: &Scale, y: &Scale) {
    for p in series.points.iter().filter(|p| x.shows(p.x) && y.shows(p.y)) {
        body.push_str(&mark(series.index, x.at(p.x), y.at(p.y), Some(&p.tip)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[(f64, f64)]) -> Series {
        let points =
            points.iter().map(|&(x, y)| Point { x, y, tip: format!("{x}: {y}") }).collect();
        Series { index: 0, name: "a<b".into(), points }
    }

    #[test]
    fn an_empty_plot_is_no_panel() {
        assert!(XyPlot::default().panel().is_none());
    }

    #[test]
    fn points_that_a_logarithm_cannot_take_are_left_out() {
        let plot = XyPlot {
            y_kind: Kind::Log,
            lines: vec![series(&[(1.0, 0.0), (2.0, 10.0), (3.0, 100.0)])],
            ..XyPlot::default()
        };
        let body = plot.panel().unwrap().body;
        assert_eq!(body.matches("<circle").count(), 2);
        assert!(body.contains("a&lt;b") && !body.contains("NaN") && !body.contains("inf"));
    }
}

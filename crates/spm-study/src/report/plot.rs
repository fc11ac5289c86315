//! Plots over two numeric axes: lines over threads, blocks or k, and the roofline.

use std::fmt::Write as _;

use super::scale::{Kind, Scale};
use super::svg::{
    Panel, backend_attribute, curve, curves, label, mark, panel_title, rule, series_class, text,
};

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
    /// Dashed lines without marks: what was computed and not measured.
    pub(super) modelled: Vec<Series>,
    /// Marks without lines.
    pub(super) clouds: Vec<Series>,
    /// A dotted horizontal line, such as speedup 1.
    pub(super) reference: Option<f64>,
    /// The values of x that were measured; grid lines stand there instead of at round values.
    pub(super) x_ticks: Vec<f64>,
    /// Dotted vertical lines with their names, such as the sizes of caches.
    pub(super) marked_x: Vec<(f64, String)>,
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
            modelled: Vec::new(),
            clouds: Vec::new(),
            reference: None,
            x_ticks: Vec::new(),
            marked_x: Vec::new(),
            height: 250.0,
        }
    }
}

const LEFT: f64 = 48.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;
/// Pixels between the axes of the narrowest panel: labels that would collide there are left out.
const NARROW: f64 = 300.0;

impl XyPlot {
    fn points(&self) -> impl Iterator<Item = &Point> {
        [&self.lines, &self.faint, &self.roof, &self.modelled, &self.clouds]
            .into_iter()
            .flatten()
            .flat_map(|s| &s.points)
    }

    /// Draws it; no points, no panel.
    pub(super) fn panel(&self) -> Option<Panel> {
        self.points().next()?;
        let bottom = self.height - BOTTOM;
        let xs = self.points().map(|p| p.x).chain(self.x_ticks.iter().copied());
        let x = Scale::around(self.x_kind, xs, 1.5, 100.0);
        let ys = self.points().map(|p| p.y).chain(self.reference);
        let y = Scale::around(self.y_kind, ys, bottom, TOP);
        let mut body = panel_title(LEFT, &self.title);
        body.push_str(&text(4.0 - LEFT, 30.0, "start", "", &self.y_label));
        body.push_str(&label(100.0, self.height - 6.0, "end", "", &self.x_label));
        self.axes(&mut body, &x, &y, bottom);
        for (value, name) in self.marked_x.iter().filter(|(value, _)| x.holds(*value)) {
            let at = x.at(*value);
            let _ = write!(body, "<g{}>", backend_attribute(name));
            body.push_str(&rule(at, TOP, at, bottom, "one"));
            body.push_str(&label(at, TOP - 2.0, "middle", "small", name));
            body.push_str("</g>");
        }
        if let Some(reference) = self.reference {
            body.push_str(&rule(0.0, y.at(reference), 100.0, y.at(reference), "one"));
        }
        let mut paths = String::new();
        let line = |series: &Series, class: &str| {
            let shown = series.points.iter().filter(|p| x.shows(p.x) && y.shows(p.y));
            curve(shown.map(|p| (x.at(p.x), y.at(p.y))), class, &series.name)
        };
        paths.extend(self.faint.iter().map(|series| line(series, "faint")));
        for (class, all) in [("roof", &self.roof), ("line", &self.lines)] {
            for series in all {
                let _ = write!(paths, "{}{}</g>", group(series), line(series, class));
            }
        }
        for series in &self.modelled {
            let class = series_class(series.index);
            let _ = write!(paths, "<g class=\"{class} dashed\">{}</g>", line(series, "line"));
        }
        if !paths.is_empty() {
            body.push_str(&curves(self.height, &paths));
        }
        for series in self.lines.iter().chain(&self.clouds) {
            body.push_str(&group(series));
            for p in series.points.iter().filter(|p| x.shows(p.x) && y.shows(p.y)) {
                body.push_str(&mark(series.index, x.at(p.x), y.at(p.y), &p.tip));
            }
            body.push_str("</g>");
        }
        let margins = (LEFT, RIGHT);
        Some(Panel { title: self.title.clone(), height: self.height, margins, body })
    }

    fn axes(&self, body: &mut String, x: &Scale, y: &Scale, bottom: f64) {
        for (value, name) in y.ticks() {
            let at = y.at(value);
            body.push_str(&rule(0.0, at, 100.0, at, "grid"));
            body.push_str(&text(-5.0, at + 3.5, "end", "", &name));
        }
        let ticks: Vec<(f64, String)> = if self.x_ticks.is_empty() {
            x.ticks()
        } else {
            self.x_ticks.iter().map(|v| (*v, format!("{v}"))).collect()
        };
        let mut free_from = f64::NEG_INFINITY;
        for (value, name) in ticks {
            let at = x.at(value);
            body.push_str(&rule(at, bottom, at, bottom + 4.0, "axis"));
            let half = 3.2 * name.chars().count() as f64;
            let pixels = at / 100.0 * NARROW;
            if pixels - half >= free_from {
                body.push_str(&label(at, bottom + 15.0, "middle", "", &name));
                free_from = pixels + half + 3.0;
            }
        }
        body.push_str(&rule(0.0, bottom, 100.0, bottom, "axis"));
    }
}

/// Opens the group of a series, which sets its colour.
fn group(series: &Series) -> String {
    format!("<g class=\"{}\"{}>", series_class(series.index), backend_attribute(&series.name))
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
    fn what_is_modelled_is_dashed_and_has_no_marks() {
        let points = [(1.0, 1.0), (2.0, 3.0)];
        let plot = XyPlot { modelled: vec![series(&points)], ..XyPlot::default() };
        let body = plot.panel().unwrap().body;
        assert!(body.contains("<g class=\"s1 dashed\"><path class=\"line\""), "{body}");
        assert!(!body.contains("<use"));
        // It stretches the axes as what is measured does.
        let measured = XyPlot { lines: vec![series(&points)], ..XyPlot::default() };
        let path =
            |body: &str| body.split_once(" d=\"").unwrap().1.split('"').next().unwrap().to_owned();
        assert_eq!(path(&body), path(&measured.panel().unwrap().body));
    }

    #[test]
    fn points_that_a_logarithm_cannot_take_are_left_out() {
        let plot = XyPlot {
            y_kind: Kind::Log,
            lines: vec![series(&[(1.0, 0.0), (2.0, 10.0), (3.0, 100.0)])],
            ..XyPlot::default()
        };
        let body = plot.panel().unwrap().body;
        assert_eq!(body.matches("<use").count(), 2);
        assert!(body.contains("a&lt;b") && !body.contains("NaN") && !body.contains("inf"));
    }
}

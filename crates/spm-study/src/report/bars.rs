//! Plots over matrices: one line of the panel per matrix, bars or marks per series.

use std::fmt::Write as _;

use super::scale::{Kind, Scale};
use super::svg::{PANEL_WIDTH, Panel, clip, escape, mark, number, rule, series_class, text};

/// Values of some series for each of many names.
#[derive(Debug, Default)]
pub(super) struct BarPlot {
    pub(super) title: String,
    /// What the values are, with unit.
    pub(super) x_label: String,
    /// Name and one value per series, in the order of the legend.
    pub(super) groups: Vec<(String, Vec<Option<f64>>)>,
    /// A dotted line, such as speedup 1.
    pub(super) reference: Option<f64>,
}

/// Names in a panel; more go into further panels on the same scale.
const MOST_GROUPS: usize = 26;
/// Beyond this spread of the values equal steps would hide the small ones.
const LOG_SPREAD: f64 = 30.0;
/// Beyond this number of series bars become too thin.
const MOST_BARS: usize = 4;

const LEFT: f64 = 118.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 8.0;

impl BarPlot {
    /// Draws it in as many panels as it takes. Bars start at zero; where the values spread over
    /// more than a decade and a half, or the series are many, marks on a logarithmic axis or on one
    /// line tell more.
    pub(super) fn panels(&self) -> Vec<Panel> {
        let values = || {
            let all = self.groups.iter().flat_map(|g| g.1.iter().flatten().copied());
            all.filter(|v| v.is_finite() && *v > 0.0)
        };
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(0.0, f64::max);
        if high == 0.0 {
            return Vec::new();
        }
        let series = self.groups.iter().map(|g| g.1.len()).max().unwrap_or(0);
        let kind = if high / low > LOG_SPREAD { Kind::Log } else { Kind::Linear };
        let bars = kind == Kind::Linear && series <= MOST_BARS;
        let scale = Scale::around(kind, values().chain(self.reference), LEFT, PANEL_WIDTH - RIGHT);
        let panels = self.groups.len().div_ceil(MOST_GROUPS);
        // Even panels rather than full ones and a stump.
        let size = self.groups.len().div_ceil(panels.max(1)).max(1);
        let mut out = Vec::new();
        for (i, groups) in self.groups.chunks(size).enumerate() {
            let title = if panels > 1 {
                format!("{} ({} of {panels})", self.title, i + 1)
            } else {
                self.title.clone()
            };
            out.push(self.panel(title, groups, &scale, bars, series));
        }
        out
    }

    fn panel(
        &self,
        title: String,
        groups: &[(String, Vec<Option<f64>>)],
        scale: &Scale,
        bars: bool,
        series: usize,
    ) -> Panel {
        let step = if bars { 6.0 + 6.0 * series.max(1) as f64 } else { 15.0 };
        let height = TOP + step * groups.len() as f64 + BOTTOM;
        let bottom = height - BOTTOM;
        let mut body = text(4.0, 14.0, "start", "title", &title);
        body.push_str(&text(4.0, 29.0, "start", "", &self.x_label));
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in scale.ticks() {
            let at = scale.at(value);
            body.push_str(&rule(at, TOP - 4.0, at, bottom, "grid"));
            let half = 3.2 * label.chars().count() as f64;
            if at - half >= free_from {
                body.push_str(&text(at, TOP - 7.0, "middle", "", &label));
                free_from = at + half + 3.0;
            }
        }
        if let Some(reference) = self.reference {
            let at = scale.at(reference);
            body.push_str(&rule(at, TOP - 4.0, at, bottom, "one"));
        }
        for (g, (name, values)) in groups.iter().enumerate() {
            let top = TOP + step * g as f64;
            let label = clip(name, 19);
            let _ = write!(
                body,
                "<g><title>{}</title>{}</g>",
                escape(name),
                text(LEFT - 6.0, top + step / 2.0 + 3.5, "end", "name", &label)
            );
            if !bars {
                let y = top + step / 2.0;
                body.push_str(&rule(LEFT, y, PANEL_WIDTH - RIGHT, y, "grid"));
            }
            for (s, value) in values.iter().enumerate() {
                let Some(value) = value.filter(|v| scale.shows(*v)) else { continue };
                let tip = format!("{name}: {}", super::model::significant(value));
                let x = scale.at(value);
                let _ = write!(body, "<g class=\"{}\">", series_class(s));
                if bars {
                    let _ = write!(
                        body,
                        "<rect class=\"bar\" x=\"{LEFT}\" y=\"{}\" width=\"{}\" height=\"5\">\
                         <title>{}</title></rect>",
                        number(top + 3.0 + 6.0 * s as f64),
                        number((x - LEFT).max(0.5)),
                        escape(&tip)
                    );
                } else {
                    body.push_str(&mark(s, x, top + step / 2.0, Some(&tip)));
                }
                body.push_str("</g>");
            }
        }
        body.push_str(&rule(LEFT, TOP - 4.0, LEFT, bottom, "axis"));
        Panel { title, height, body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(values: &[f64]) -> BarPlot {
        let groups = values.iter().map(|v| (format!("m{v}"), vec![Some(*v), None])).collect();
        BarPlot { title: "t".into(), groups, ..BarPlot::default() }
    }

    #[test]
    fn close_values_are_bars_and_spread_ones_are_marks() {
        let close = plot(&[1.0, 2.0]).panels();
        assert_eq!((close.len(), close[0].body.matches("<rect").count()), (1, 2));
        let spread = plot(&[0.01, 200.0]).panels();
        assert_eq!((spread.len(), spread[0].body.matches("<circle").count()), (1, 2));
    }

    #[test]
    fn many_names_are_cut_into_even_panels() {
        let values: Vec<f64> = (1..=60).map(f64::from).collect();
        let panels = plot(&values).panels();
        assert_eq!(panels.len(), 3);
        let marks: usize = panels.iter().map(|p| p.body.matches("<circle").count()).sum();
        assert_eq!(marks, 60);
        assert!(panels[2].title.ends_with("(3 of 3)"));
    }

    #[test]
    fn nothing_to_show_is_no_panel() {
        assert!(plot(&[]).panels().is_empty());
        assert!(plot(&[0.0]).panels().is_empty());
    }
}

//! Plots over matrices: one line of the panel per matrix, bars or marks per series.

use std::fmt::Write as _;

use super::scale::{Kind, Scale};
use super::svg::{
    Panel, backend_attribute, clip, escape, label, mark, number, panel_title, percent, rule,
    series_class, text,
};

/// One value with what hovering shows.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) value: f64,
    pub(super) tip: String,
    /// Written above the bar; empty for nothing.
    pub(super) note: String,
}

impl Bar {
    /// A bar without a note.
    pub(super) fn new(value: f64, tip: impl Into<String>) -> Self {
        Self { value, tip: tip.into(), note: String::new() }
    }
}

/// Values of some series for each of many names.
#[derive(Debug, Default)]
pub(super) struct BarPlot {
    pub(super) title: String,
    /// What the values are, with unit.
    pub(super) x_label: String,
    /// Names of the series.
    pub(super) series: Vec<String>,
    /// Name and one value per series, in the order of the legend.
    pub(super) groups: Vec<(String, Vec<Option<Bar>>)>,
    /// A dotted line, such as speedup 1.
    pub(super) reference: Option<f64>,
    /// Marks even where bars would do.
    pub(super) marks: bool,
    /// Values of other plots that are to have the same scale.
    pub(super) also: Vec<f64>,
}

/// Names in a panel; more go into further panels on the same scale.
const MOST_GROUPS: usize = 26;
/// Beyond this spread of the values equal steps would hide the small ones.
const LOG_SPREAD: f64 = 30.0;
/// Beyond this number of series bars become too thin.
const MOST_BARS: usize = 4;

const RIGHT: f64 = 16.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 8.0;
/// Characters of a name, and pixels of one.
const NAME: usize = 24;
const CHARACTER: f64 = 7.0;

impl BarPlot {
    /// Draws it in as many panels as it takes. Bars start at zero; where the values spread over
    /// more than a decade and a half, or the series are many, marks on a logarithmic axis or on one
    /// line tell more.
    pub(super) fn panels(&self) -> Vec<Panel> {
        let bars = || self.groups.iter().flat_map(|g| g.1.iter().flatten());
        let all = || bars().map(|b| b.value).chain(self.also.iter().copied());
        let values = || all().filter(|v| v.is_finite() && *v > 0.0);
        if self.groups.is_empty() {
            return Vec::new();
        }
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(0.0, f64::max);
        if high == 0.0 {
            return Vec::new();
        }
        let noted = bars().any(|b| !b.note.is_empty());
        let series = self.groups.iter().map(|g| g.1.len()).max().unwrap_or(0);
        let kind = if high / low > LOG_SPREAD { Kind::Log } else { Kind::Linear };
        let bars = kind == Kind::Linear && series <= MOST_BARS && !self.marks;
        let scale = Scale::around(kind, values().chain(self.reference), 0.0, 100.0);
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
            let most = self.groups.iter().map(|g| g.1.iter().flatten().count()).max().unwrap_or(0);
            let step = match (bars, noted) {
                // Bars with notes stand close; the others have the same place in every group.
                (true, true) => 19.0 * most.max(1) as f64 + 4.0,
                (true, false) => 6.0 + 6.0 * series.max(1) as f64,
                (false, _) => 15.0,
            };
            out.push(self.panel(title, groups, &scale, bars, step));
        }
        out
    }

    fn panel(
        &self,
        title: String,
        groups: &[(String, Vec<Option<Bar>>)],
        scale: &Scale,
        bars: bool,
        step: f64,
    ) -> Panel {
        let longest = groups.iter().map(|g| g.0.chars().count()).max().unwrap_or(0).min(NAME);
        let left = 14.0 + CHARACTER * longest as f64;
        let height = TOP + step * groups.len() as f64 + BOTTOM;
        let bottom = height - BOTTOM;
        let mut body = panel_title(left, &title);
        body.push_str(&text(4.0 - left, 29.0, "start", "", &self.x_label));
        for (value, name) in scale.ticks() {
            let at = scale.at(value);
            body.push_str(&rule(at, TOP - 4.0, at, bottom, "grid"));
            body.push_str(&label(at, TOP - 7.0, "middle", "", &name));
        }
        if let Some(reference) = self.reference {
            let at = scale.at(reference);
            body.push_str(&rule(at, TOP - 4.0, at, bottom, "one"));
        }
        for (g, (name, values)) in groups.iter().enumerate() {
            let top = TOP + step * g as f64;
            let _ = write!(
                body,
                "<g{}><title>{}</title>{}",
                backend_attribute(name),
                escape(name),
                text(-6.0, top + step / 2.0 + 3.5, "end", "name", &clip(name, NAME))
            );
            if !bars {
                let y = top + step / 2.0;
                body.push_str(&rule(0.0, y, 100.0, y, "grid"));
            }
            let mut noted = 0.0;
            for (s, bar) in values.iter().enumerate() {
                let Some(bar) = bar.as_ref().filter(|b| scale.shows(b.value)) else { continue };
                let x = scale.at(bar.value);
                let backend = self.series.get(s).map_or_else(String::new, |n| backend_attribute(n));
                let _ = write!(body, "<g class=\"{}\"{backend}>", series_class(s));
                if bars {
                    let (offset, thick) = if bar.note.is_empty() {
                        (3.0 + 6.0 * s as f64, 5.0)
                    } else {
                        noted += 1.0;
                        (14.0 + 19.0 * (noted - 1.0), 6.0)
                    };
                    let _ = write!(
                        body,
                        "<rect class=\"bar\" x=\"0\" y=\"{}\" width=\"{}%\" height=\"{thick}\">\
                         <title>{}</title></rect>",
                        number(top + offset),
                        percent(x.max(0.2)),
                        escape(&bar.tip)
                    );
                    if !bar.note.is_empty() {
                        body.push_str(&text(2.0, top + offset - 3.0, "start", "name", &bar.note));
                    }
                } else {
                    body.push_str(&mark(s, x, top + step / 2.0, &bar.tip));
                }
                body.push_str("</g>");
            }
            body.push_str("</g>");
        }
        body.push_str("<path class=\"axis\" d=\"");
        let _ = write!(body, "M0 {}V{}\"></path>", number(TOP - 4.0), number(bottom));
        Panel { title, height, margins: (left, RIGHT), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(values: &[f64]) -> BarPlot {
        let bar = |v: &f64| vec![Some(Bar::new(*v, "tip")), None];
        let groups = values.iter().map(|v| (format!("m{v}"), bar(v))).collect();
        BarPlot { title: "t".into(), groups, ..BarPlot::default() }
    }

    #[test]
    fn close_values_are_bars_and_spread_ones_are_marks() {
        let close = plot(&[1.0, 2.0]).panels();
        assert_eq!((close.len(), close[0].body.matches("<rect").count()), (1, 2));
        let spread = plot(&[0.01, 200.0]).panels();
        assert_eq!((spread.len(), spread[0].body.matches("<use").count()), (1, 2));
    }

    #[test]
    fn many_names_are_cut_into_even_panels() {
        let values: Vec<f64> = (1..=60).map(f64::from).collect();
        let panels = plot(&values).panels();
        assert_eq!(panels.len(), 3);
        let marks: usize = panels.iter().map(|p| p.body.matches("<use").count()).sum();
        assert_eq!(marks, 60);
        assert!(panels[2].title.ends_with("(3 of 3)"));
    }

    #[test]
    fn nothing_to_show_is_no_panel() {
        assert!(plot(&[]).panels().is_empty());
        assert!(plot(&[0.0]).panels().is_empty());
    }
}

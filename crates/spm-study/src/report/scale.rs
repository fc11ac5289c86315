//! From values to positions along an axis, with ticks at round values.

use super::model::significant;

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Equal steps, from zero where the values are not negative.
    Linear,
    /// Powers of ten.
    Log,
    /// Powers of two: thread counts and block sizes.
    Log2,
}

/// Nothing that is measured is larger, or, on a logarithmic axis, smaller than its inverse; ends of
/// axes and distances of ticks computed from larger numbers would overflow.
const MOST: f64 = 1e100;

/// One axis: `low..high` onto `from..to`.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// An axis that holds `values`; those that a logarithm cannot take are ignored.
    pub(super) fn around(
        kind: Kind,
        values: impl Iterator<Item = f64>,
        from: f64,
        to: f64,
    ) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values.filter(|v| v.is_finite() && (kind == Kind::Linear || *v > 0.0)) {
            let near = |v: f64| v.clamp(1.0 / MOST, MOST);
            let v = if kind == Kind::Linear { v.clamp(-MOST, MOST) } else { near(v) };
            low = low.min(v);
            high = high.max(v);
        }
        if low > high {
            (low, high) = if kind == Kind::Linear { (0.0, 1.0) } else { (1.0, 10.0) };
        }
        match kind {
            Kind::Linear => {
                low = low.min(0.0);
                if high <= low {
                    high = low + 1.0;
                }
                let step = round_step((high - low) / 4.0);
                high = (high / step - 1e-9).ceil() * step;
                low = (low / step + 1e-9).floor() * step;
            }
            Kind::Log => {
                // To the next 1, 2 or 5 outwards.
                low = round_down(low);
                high = round_up(high);
                if high / low < 9.0 {
                    (low, high) = (low / 2.0, high * 2.0);
                }
            }
            Kind::Log2 => {
                if high / low < 1.5 {
                    (low, high) = (low / 2.0, high * 2.0);
                }
            }
        }
        Self { kind, low, high, from, to }
    }

    /// Position of a value; values outside lie at the ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let fraction = match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log | Kind::Log2 => {
                (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
            }
        };
        self.from + fraction.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Whether the axis can show the value.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.kind == Kind::Linear || value > 0.0)
    }

    /// Whether the value lies between the ends of the axis.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Values worth a grid line, with their labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values: Vec<f64> = match self.kind {
            Kind::Linear => {
                let step = round_step((self.high - self.low) / 4.0);
                let count = ((self.high - self.low) / step).round() as usize;
                (0..=count).map(|i| self.low + i as f64 * step).collect()
            }
            Kind::Log => {
                let decades = (self.high / self.low).log10();
                let factors: &[f64] = if decades <= 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let skip = if decades > 7.0 { 2 } else { 1 };
                let first = self.low.log10().floor() as i32;
                let last = self.high.log10().ceil() as i32;
                (first..=last)
                    .filter(|d| decades <= 7.0 || d % skip == 0)
                    .flat_map(|d| factors.iter().map(move |f| f * 10f64.powi(d)))
                    .filter(|v| *v >= self.low * 0.999 && *v <= self.high * 1.001)
                    .collect()
            }
            Kind::Log2 => {
                let first = self.low.log2().ceil() as i32;
                let last = self.high.log2().floor() as i32;
                (first..=last).map(|p| 2f64.powi(p)).collect()
            }
        };
        values.into_iter().map(|v| (v, label(v))).collect()
    }
}

fn label(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e5).contains(&magnitude) {
        // Round values: no trailing zeros.
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        significant(value).replace(".0e", "e")
    }
}

/// The nearest of 1, 2, 2.5, 5 times a power of ten, not below `raw`.
fn round_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|f| f * power)
        .find(|step| *step >= raw * 0.999)
        .unwrap_or(10.0 * power)
}

fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|f| f * power).find(|v| *v <= value * 1.001).unwrap_or(power)
}

fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|f| f * power)
        .find(|v| *v >= value * 0.999)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_start_at_zero_and_end_round() {
        let scale = Scale::around(Kind::Linear, [0.7, 9.3].into_iter(), 0.0, 100.0);
        assert_eq!((scale.low, scale.high), (0.0, 10.0));
        assert_eq!(scale.at(5.0), 50.0);
        let labels: Vec<_> = scale.ticks().into_iter().map(|t| t.1).collect();
        assert_eq!(labels, ["0", "2.5", "5", "7.5", "10"]);
    }

    #[test]
    fn logarithmic_axes_have_round_ticks_inside() {
        let scale = Scale::around(Kind::Log, [0.003, 40.0, 0.0, f64::NAN].into_iter(), 10.0, 0.0);
        assert_eq!((scale.low, scale.high), (0.002, 50.0));
        let labels: Vec<_> = scale.ticks().into_iter().map(|t| t.1).collect();
        assert_eq!(labels, ["0.01", "0.1", "1", "10"]);
        assert!(scale.at(0.002) > scale.at(50.0));
        assert!(!scale.shows(0.0) && scale.shows(1e-9));
    }

    #[test]
    fn powers_of_two_and_degenerate_axes() {
        let scale = Scale::around(Kind::Log2, [1.0, 40.0].into_iter(), 0.0, 1.0);
        let labels: Vec<_> = scale.ticks().into_iter().map(|t| t.1).collect();
        assert_eq!(labels, ["1", "2", "4", "8", "16", "32"]);
        for kind in [Kind::Linear, Kind::Log, Kind::Log2] {
            let extremes = vec![-f64::MAX, f64::MIN_POSITIVE, 5e-324, f64::MAX];
            for values in [vec![], vec![3.0], vec![0.0], vec![f64::MAX], extremes] {
                let scale = Scale::around(kind, values.iter().copied(), 0.0, 1.0);
                assert!(scale.at(3.0).is_finite(), "{kind:?} {values:?}");
                let ticks = scale.ticks().len();
                assert!((1..1000).contains(&ticks), "{kind:?} {values:?}: {ticks}");
            }
        }
    }
}

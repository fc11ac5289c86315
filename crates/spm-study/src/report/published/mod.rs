//! The five published reports: their printed numbers, and their tables and figures redrawn from ours.

mod claims;
mod compare;
mod findings;
mod overview;
mod r0;
mod r1;
mod r2;
mod r3;
mod r4;

use serde::Deserialize;

use super::load::Results;
use super::model::Section;

/// One number as a report prints it; see data/published/README.md.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Printed {
    pub(super) source: String,
    #[serde(default)]
    pub(super) matrix: String,
    /// As printed, for R3's random matrices and its `cant`; absent elsewhere.
    #[serde(default)]
    pub(super) rows: Option<u64>,
    #[serde(default)]
    pub(super) cols: Option<u64>,
    #[serde(default)]
    pub(super) entries: Option<u64>,
    /// The report's name of the implementation, or of the procedure.
    #[serde(alias = "procedure")]
    pub(super) series: String,
    pub(super) op: String,
    pub(super) backend: String,
    pub(super) kernel: String,
    /// Elements that a procedure of R3 works on.
    #[serde(default)]
    pub(super) elements: Option<u64>,
    #[serde(default)]
    pub(super) block: Option<u64>,
    pub(super) quantity: String,
    pub(super) value: String,
    pub(super) unit: String,
    pub(super) scope: String,
}

impl Printed {
    /// The value in seconds where it is a time, else as it is; `None` where the print has a dash.
    pub(super) fn number(&self) -> Option<f64> {
        let value: f64 = self.value.parse().ok()?;
        Some(if self.unit == "ms" { value / 1e3 } else { value })
    }
}

/// One statement of a report's text.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Claim {
    pub(super) id: String,
    pub(super) source: String,
    pub(super) claim: String,
    pub(super) value: String,
    pub(super) unit: String,
    pub(super) scope: String,
    /// Why the hardware makes the statement hold, and why it does not; both empty for a statement
    /// that nothing of ours measures.
    pub(super) why_confirmed: String,
    pub(super) why_contradicted: String,
}

impl Claim {
    /// The reason for what our runs say.
    fn why(&self, verdict: findings::Verdict) -> &str {
        match verdict {
            findings::Verdict::Contradicts => &self.why_contradicted,
            findings::Verdict::Confirms | findings::Verdict::Stands => &self.why_confirmed,
        }
    }
}

macro_rules! data {
    ($file:literal) => {
        include_str!(concat!("../../../data/published/", $file))
    };
}

fn parse<T: for<'a> Deserialize<'a>>(text: &str) -> Vec<T> {
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .expect("the files of data/published are part of the program and tested")
}

/// The printed numbers of one table or figure, for example `R0 table 1`.
pub(super) fn printed(source: &str) -> Vec<Printed> {
    let text = match source {
        "R0 table 1" => data!("r0_table1.csv"),
        "R0 table 2" => data!("r0_table2.csv"),
        "R0 table 3" => data!("r0_table3.csv"),
        "R0 table 4" => data!("r0_table4.csv"),
        "R1 figure 1" => data!("r1_figure1.csv"),
        "R1 figure 2" => data!("r1_figure2.csv"),
        "R3 figure 6" => data!("r3_figure6.csv"),
        "R3 figure 8" => data!("r3_figure8.csv"),
        "R3 figure 10" => data!("r3_figure10.csv"),
        "R3 figure 12" => data!("r3_figure12.csv"),
        "R3 figure 14" => data!("r3_figure14.csv"),
        "R3 figure 15" => data!("r3_figure15.csv"),
        other => panic!("no report prints {other}"),
    };
    parse(text)
}

/// The statements of a report, `R0` to `R4`.
pub(super) fn claims_of(report: &str) -> Vec<Claim> {
    let all: Vec<Claim> = parse(data!("claims.csv"));
    all.into_iter().filter(|c| c.source.starts_with(report)).collect()
}

/// An overview, then one section per report.
pub(super) fn sections(results: &Results) -> Vec<Section> {
    vec![
        overview::section(results),
        r0::section(results),
        r1::section(results),
        r2::section(results),
        r3::section(results),
        r4::section(results),
    ]
}

/// What a scope encloses, in words.
pub(super) fn scope_words(scope: &str) -> &'static str {
    match scope {
        "kernel" => "kernel alone, by events",
        "launch" => "launch and synchronization by host clock, no copies",
        "call" => "whole call by host clock, allocation and copies included",
        "host" => "product on the CPU by host clock",
        _ => "scope not stated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printed_number_is_there_and_parses() {
        for (source, count) in [
            ("R0 table 1", 60),
            ("R0 table 2", 60),
            ("R0 table 3", 60),
            ("R0 table 4", 60),
            ("R1 figure 1", 640),
            ("R1 figure 2", 512),
            ("R3 figure 6", 3),
            ("R3 figure 8", 3),
            ("R3 figure 10", 4),
            ("R3 figure 12", 4),
            ("R3 figure 14", 70),
            ("R3 figure 15", 70),
        ] {
            let rows = printed(source);
            assert_eq!(rows.len(), count, "{source}");
            for row in rows.iter().filter(|r| r.quantity != "best" && !r.value.is_empty()) {
                assert!(row.number().is_some_and(|v| v >= 0.0), "{row:?}");
                assert_eq!(row.source, source);
            }
        }
    }

    #[test]
    fn printed_matrices_are_those_of_the_catalogue() {
        for source in ["R0 table 1", "R0 table 4", "R1 figure 1", "R1 figure 2", "R3 figure 14"] {
            for row in printed(source).iter().filter(|r| !r.matrix.starts_with("random-")) {
                assert!(crate::catalogue::find(&row.matrix).is_some(), "{source}: {}", row.matrix);
            }
        }
    }

    #[test]
    fn speedups_of_r3_are_the_ratios_of_its_times() {
        let times = printed("R3 figure 14");
        let speedups = printed("R3 figure 15");
        for (time, speedup) in times.iter().zip(&speedups) {
            assert_eq!((&time.matrix, &time.series), (&speedup.matrix, &speedup.series));
            let serial = times
                .iter()
                .find(|t| t.matrix == time.matrix && t.series == "Serial")
                .and_then(Printed::number)
                .unwrap();
            let ratio = serial / time.number().unwrap();
            assert!((ratio - speedup.number().unwrap()).abs() < 0.02, "{speedup:?}: {ratio}");
        }
    }
}

//! All five reports at once: what of their statements holds here, and their numbers against ours.

use super::super::load::{Results, geometric_mean};
use super::super::model::{Cell, Section, Table};
use super::claims::{Judged, VERDICTS, judged, statements};
use super::{compare, printed};

/// The reports, and the tables and figures with numbers that they print.
const REPORTS: [(&str, &[&str]); 5] = [
    ("R0", &["R0 table 1", "R0 table 2", "R0 table 3", "R0 table 4"]),
    ("R1", &["R1 figure 1", "R1 figure 2"]),
    ("R2", &[]),
    (
        "R3",
        &[
            "R3 figure 6",
            "R3 figure 8",
            "R3 figure 10",
            "R3 figure 12",
            "R3 figure 14",
            "R3 figure 15",
        ],
    ),
    ("R4", &[]),
];

pub(super) fn section(results: &Results) -> Section {
    let mut section = Section::new("published", "All five reports");
    section.text(
        "Each statement of the five reports is confirmed by this run, contradicted by it, or not testable \
         here. Their machines were others: a time or a speed that they print has no verdict and stands \
         beside ours.",
    );
    let mut counts = Table::new(
        "published-statements",
        "Statements of the reports",
        &["report", "statements", VERDICTS[0], VERDICTS[1], VERDICTS[2], "of these not measured"],
    );
    let mut all = Vec::new();
    for (report, _) in REPORTS {
        let of_report = judged(results, report);
        let count = |takes: &dyn Fn(&Judged) -> bool| {
            Cell::Count(of_report.iter().filter(|j| takes(j)).count() as u64)
        };
        let mut row = vec![
            Cell::Link(report.to_owned(), report.to_lowercase()),
            Cell::Count(of_report.len() as u64),
        ];
        row.extend(VERDICTS.map(|verdict| count(&|j| j.verdict == verdict)));
        row.push(count(&|j| !j.measured));
        counts.push(row);
        all.extend(of_report);
    }
    section.table(counts).table(numbers(results));
    section.table(statements(
        "published-claims",
        "Every statement: confirmed, contradicted or not testable here",
        &all,
    ));
    section
}

/// The printed numbers of each table and figure against ours.
fn numbers(results: &Results) -> Table {
    let mut table = Table::new(
        "published-numbers",
        "Printed tables and figures",
        &["where", "numbers", "ours beside", "of these faster", "ours over theirs"],
    );
    for (report, sources) in REPORTS {
        for source in sources {
            let numbers: Vec<_> =
                printed(source).into_iter().filter(|p| p.number().is_some()).collect();
            let ratios: Vec<f64> = numbers
                .iter()
                .filter_map(|p| compare::ratio(p, compare::ours(results, p)?))
                .collect();
            table.push(vec![
                Cell::Link((*source).to_owned(), report.to_lowercase()),
                Cell::Count(numbers.len() as u64),
                Cell::Count(ratios.len() as u64),
                Cell::Count(ratios.iter().filter(|r| **r > 1.0).count() as u64),
                Cell::option(geometric_mean(ratios.into_iter()), Cell::Ratio),
            ]);
        }
    }
    table.note(
        "Ours over theirs: speed, geometric mean over the numbers that have one of ours beside them. The \
         figures of each report are drawn beside ours, at the same size and on the same scale, in its \
         section.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_has_a_verdict_and_a_reason() {
        for (report, sources) in REPORTS {
            let judged = judged(&Results::default(), report);
            assert!(!judged.is_empty(), "{report}");
            for j in &judged {
                assert!(VERDICTS.contains(&j.verdict) && !j.reason.is_empty(), "{}", j.claim.id);
                assert!(!j.measured || j.verdict == VERDICTS[2], "{}: of no results", j.claim.id);
            }
            assert!(sources.iter().all(|source| source.starts_with(report)));
        }
        let section = section(&Results::default());
        let tables = section
            .blocks
            .iter()
            .filter(|b| matches!(b, super::super::super::model::Block::Table(_)));
        assert_eq!(tables.count(), 3);
    }
}

//! Which matrices are meant.

use crate::catalogue::{self, CatalogueEntry, Report, ValueField};
use anyhow::bail;

use super::index::{Record, Values};

/// A matrix to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// What the collection says of it.
    pub record: Record,
    /// SHA-256 of its archive where the catalogue has it.
    pub sha256: Option<&'static str>,
}

impl Target {
    /// `GROUP/NAME`.
    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.record.group, self.record.name)
    }
}

impl From<&'static CatalogueEntry> for Target {
    fn from(entry: &'static CatalogueEntry) -> Self {
        let values = match entry.field {
            ValueField::Pattern => Values::Pattern,
            ValueField::Real | ValueField::Integer => Values::Real,
        };
        let record = Record {
            group: entry.group.clone(),
            name: entry.name.clone(),
            rows: entry.rows as u64,
            cols: entry.cols as u64,
            entries: entry.entries as u64,
            values,
        };
        Self { record, sha256: Some(&entry.sha256_tar_gz) }
    }
}

/// The matrices of `reports` and those called `names` (`GROUP/NAME`, or a name that is unique), each
/// once; the whole catalogue when both are empty. `index` is called only for a name that the
/// catalogue does not have.
///
/// # Errors
/// When a name means no matrix or several, or when the index is needed and not to be had.
pub(super) fn select(
    names: &[String],
    reports: &[Report],
    index: impl FnOnce() -> anyhow::Result<Vec<Record>>,
) -> anyhow::Result<Vec<Target>> {
    let mut targets: Vec<Target> = if names.is_empty() && reports.is_empty() {
        catalogue::all().iter().map(Target::from).collect()
    } else {
        reports.iter().flat_map(|report| report.matrices()).map(Target::from).collect()
    };
    let mut index = Some(index);
    let mut records = Vec::new();
    for name in names {
        if let Some(entry) = in_catalogue(name) {
            targets.push(entry.into());
            continue;
        }
        if let Some(index) = index.take() {
            records = index()?;
        }
        targets.push(Target { record: in_index(name, &records)?.clone(), sha256: None });
    }
    let mut seen = std::collections::HashSet::new();
    targets.retain(|target| seen.insert(target.id()));
    Ok(targets)
}

/// None of the catalogue's names has a namesake in the collection.
fn in_catalogue(name: &str) -> Option<&'static CatalogueEntry> {
    match name.split_once('/') {
        Some((group, name)) => catalogue::find(name).filter(|entry| entry.group == group),
        None => catalogue::find(name),
    }
}

fn in_index<'a>(name: &str, records: &'a [Record]) -> anyhow::Result<&'a Record> {
    let id = |record: &Record| format!("{}/{}", record.group, record.name);
    let list = |records: &[&Record]| {
        records.iter().map(|record| id(record)).collect::<Vec<_>>().join(", ")
    };
    let matching = |same: fn(&str, &str) -> bool| -> Vec<&'a Record> {
        records
            .iter()
            .filter(|record| match name.split_once('/') {
                Some((group, name)) => same(&record.group, group) && same(&record.name, name),
                None => same(&record.name, name),
            })
            .collect()
    };
    match matching(|a, b| a == b)[..] {
        [record] => Ok(record),
        [] => {
            let near = matching(str::eq_ignore_ascii_case);
            if near.is_empty() {
                bail!("the collection has no matrix called {name}");
            }
            bail!("the collection has no matrix called {name}; there is {}", list(&near));
        }
        ref several => bail!("{name} is not unique; say which: {}", list(several)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(group: &str, name: &str) -> Record {
        let (group, name) = (group.to_owned(), name.to_owned());
        Record { group, name, rows: 3, cols: 3, entries: 5, values: Values::Real }
    }

    fn index() -> anyhow::Result<Vec<Record>> {
        Ok(vec![
            record("AG-Monien", "barth4"),
            record("Pothen", "barth4"),
            record("HB", "1138_bus"),
            record("Williams", "cant"),
        ])
    }

    fn no_index() -> anyhow::Result<Vec<Record>> {
        bail!("the index was asked for")
    }

    fn ids(targets: anyhow::Result<Vec<Target>>) -> Vec<String> {
        targets.unwrap().iter().map(Target::id).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn nothing_said_means_the_catalogue() {
        let targets = select(&[], &[], no_index).unwrap();
        assert_eq!(targets.len(), 71);
        assert!(targets.iter().all(|target| target.sha256.is_some()));
    }

    #[test]
    fn reports_overlap_and_names_add() {
        let two = select(&[], &[Report::R2, Report::R2], no_index);
        assert_eq!(two.unwrap().len(), Report::R2.matrices().count());
        let more = select(&names(&["cage4"]), &[Report::R2], no_index).unwrap();
        assert!(more.iter().any(|target| target.id() == "vanHeukelum/cage4"));
        assert!(
            more.len() > Report::R2.matrices().count()
                || Report::R2.matrices().any(|m| m.name == "cage4")
        );
    }

    #[test]
    fn the_catalogue_needs_no_index() {
        let twice = names(&["cant", "Williams/cant"]);
        assert_eq!(ids(select(&twice, &[], no_index)), ["Williams/cant"]);
    }

    #[test]
    fn the_rest_of_the_collection_comes_from_the_index() {
        let targets = select(&names(&["HB/1138_bus", "Pothen/barth4"]), &[], index);
        assert_eq!(ids(targets), ["HB/1138_bus", "Pothen/barth4"]);
        let targets = select(&names(&["1138_bus"]), &[], index).unwrap();
        assert_eq!(targets[0].sha256, None);
    }

    #[test]
    fn doubtful_names_are_explained() {
        let error = |name| select(&names(&[name]), &[], index).unwrap_err().to_string();
        assert_eq!(
            error("barth4"),
            "barth4 is not unique; say which: AG-Monien/barth4, Pothen/barth4"
        );
        assert_eq!(
            error("Cant"),
            "the collection has no matrix called Cant; there is Williams/cant"
        );
        assert_eq!(error("HB/cant"), "the collection has no matrix called HB/cant");
    }
}

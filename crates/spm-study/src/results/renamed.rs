//! Kernel ids and parameters that have been renamed: older tables of results are read with today's
//! names.

use super::Row;

/// Old id, today's id, of kernels for GPUs.
const KERNELS: [(&str, &str); 7] = [
    ("csr-segments", "csr-segmented-sum"),
    ("csr-column-lanes", "csr-row-split"),
    ("csr-row-groups", "csr-nonzero-split"),
    ("csr-entry-lanes", "csr-vector"),
    ("sell-column-lanes", "sell-row-split"),
    ("column-buckets", "radix"),
    ("csr-slots", "csr-ell-columns"),
];

/// Old name, today's name, of parameters of kernels for GPUs.
const PARAMETERS: [(&str, &str); 2] = [("lanes", "threads-per-row"), ("narrow", "single-values")];

fn today<'a>(names: &[(&'static str, &'static str)], name: &'a str) -> &'a str {
    names.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new)
}

/// Gives a row of an older table today's names.
pub(super) fn rename(row: &mut Row) {
    if row.backend != "gpu" {
        return;
    }
    row.kernel = today(&KERNELS, &row.kernel).to_owned();
    let assignments = row.params.split(',').map(|assignment| match assignment.split_once('=') {
        Some((name, value)) => format!("{}={value}", today(&PARAMETERS, name)),
        None => assignment.to_owned(),
    });
    row.params = assignments.collect::<Vec<_>>().join(",");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(backend: &str, kernel: &str, params: &str) -> (String, String) {
        let mut row = Row {
            backend: backend.into(),
            kernel: kernel.into(),
            params: params.into(),
            ..Row::default()
        };
        rename(&mut row);
        (row.kernel, row.params)
    }

    #[test]
    fn old_names_become_todays_and_others_stay() {
        let pair = |kernel: &str, params: &str| (kernel.to_owned(), params.to_owned());
        assert_eq!(
            renamed("gpu", "csr-segments", "entries=4,narrow=off"),
            pair("csr-segmented-sum", "entries=4,single-values=off")
        );
        assert_eq!(renamed("gpu", "sellp", "lanes=2"), pair("sellp", "threads-per-row=2"));
        assert_eq!(renamed("gpu", "csr-merge", ""), pair("csr-merge", ""));
        assert_eq!(renamed("cpu", "csr-blocked", "narrow=on"), pair("csr-blocked", "narrow=on"));
    }
}

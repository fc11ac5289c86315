//! The sections at the end: failures, method, licence.

use std::collections::BTreeMap;

use super::load::{Results, variant};
use super::model::{Cell, Section, Table};
use crate::results::Status;

/// Every case that did not end well, alike ones together.
pub(super) fn failures(results: &Results) -> Section {
    let mut section = Section::new("failures", "Failures");
    // Threads and block sizes of one failure are one line.
    let mut alike: BTreeMap<(Status, &str, String, &str, &str), u64> = BTreeMap::new();
    for row in results.rows.iter().filter(|r| r.status != Status::Ok) {
        let kernel = format!("{} {} {}", row.op, row.backend, variant(row));
        let key =
            (row.status, row.experiment.as_str(), kernel, row.matrix.as_str(), row.reason.as_str());
        *alike.entry(key).or_default() += 1;
    }
    if alike.is_empty() {
        section.text("None: every case ran and agreed with the reference.");
        return section;
    }
    let mut table = Table::new(
        "failures",
        "Cases that failed, do not apply (skipped) or disagreed with the reference",
        &["status", "experiment", "kernel", "matrix", "cases", "reason"],
    );
    for ((status, experiment, kernel, matrix, reason), cases) in alike {
        table.push(vec![
            Cell::text(status.name()),
            Cell::text(experiment),
            Cell::text(kernel),
            Cell::text(matrix),
            Cell::Count(cases),
            Cell::text(reason),
        ]);
    }
    section.table(table);
    section
}

/// How everything was measured.
pub(super) fn method() -> Section {
    let mut section = Section::new("method", "Method");
    section.list(
        [
            "Every case is checked against a sequential product with compensated summation before \
             it is timed; a kernel whose error exceeds the rounding bound of its sums has no speed \
             and is listed under Failures.",
            "After a warm-up a case runs its iterations and at least a minimum time. The median is \
             quoted; least, 10th and 90th percentile are kept.",
            "CPU kernels are timed by a monotonic clock around the product, GPU kernels by CUDA \
             events around the kernel alone, unless the scope of a case says otherwise: `launch` is \
             a host clock around launch and synchronization, `call` one from CSR and x in host \
             memory to y there, with conversion, allocation and the copies both ways.",
            "Cases follow one another on hot caches; where a case says `cold`, a buffer larger than \
             the last-level cache of its device is overwritten before each iteration.",
            "x is uniform in the range of the settings, from the seed there, or read from the file \
             named there.",
            "Operations are 2 x stored entries (x k for SpMM), explicit zeros included, padding not.",
            "Bytes are the least traffic that the format allows: each stored array once, x once, y \
             once. The fraction of the roof is bytes per second over the bandwidth of the same device in \
             the same run, measured with a working set of that size or larger.",
            "Speedup is over the serial CSR product (serial transposition, serial conversion) of \
             the same run; efficiency is speedup over threads.",
            "Matrices named `synthetic:` are generated: rows, entries and row lengths of the \
             SuiteSparse matrix of that name, not its pattern.",
            "Means over matrices are geometric. Comparisons are ratios inside one run; a published \
             figure stands beside ours with what its clock enclosed, and on other hardware.",
        ]
        .map(str::to_owned)
        .to_vec(),
    );
    section
}

/// Where the matrices come from.
pub(super) fn licence() -> Section {
    let mut section = Section::new("licence", "Matrices: licence and citations");
    section.text(
        "The SuiteSparse Matrix Collection (https://sparse.tamu.edu) is published under CC-BY 4.0 \
         (https://creativecommons.org/licenses/by/4.0/). Work that uses its matrices cites:",
    );
    section.list(
        [
            "T. A. Davis and Y. Hu, The University of Florida Sparse Matrix Collection, ACM \
             Transactions on Mathematical Software 38(1), article 1, 2011, \
             https://doi.org/10.1145/2049662.2049663.",
            "S. P. Kolodziej, M. Aznaveh, M. Bullock, J. David, T. A. Davis, M. Henderson, Y. Hu and \
             R. Sandstrom, The SuiteSparse Matrix Collection Website Interface, Journal of Open \
             Source Software 4(35), 1244, 2019, https://doi.org/10.21105/joss.01244.",
        ]
        .map(str::to_owned)
        .to_vec(),
    );
    section
}

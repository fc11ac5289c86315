//! `bench-all --report R0`: one report's matrices, kernels, parameters, repetitions, x and clock.

use crate::catalogue::Report;
use spm_formats::kernel::Operation;

use super::experiments::{self, ColumnRule, Experiment, R1_CPU_OPTIONS, Selection, ThreadRule};
use super::settings::Precision;
use super::timing::Scope;
use crate::input::Input;
use crate::suite::Source;
use Selection::{Kernel, Study};

const SPMV: Operation = Operation::Spmv;
const SPMM: Operation = Operation::Spmm;

/// How a report measured.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Which report.
    pub report: Report,
    /// Its experiments, under the names of ours, cut to what it has. The serial product, from which
    /// speedups are counted, is always among them.
    pub experiments: Vec<Experiment>,
    /// Timed iterations of a case.
    pub iterations: usize,
    /// What its clock enclosed.
    pub scope: Scope,
    /// Type of its values.
    pub precision: Precision,
    /// Range of its x, smallest element and bound.
    pub range: (f64, f64),
}

impl Setup {
    /// The setup of a report. What R4 does not print (k, 30 iterations, whole numbers of 1 to 10 in X,
    /// events) is that of its authors' published source; R2 does not say what its x is.
    pub fn of(report: Report) -> Self {
        let r0 = Self {
            report,
            experiments: r0().to_vec(),
            iterations: 3,
            scope: Scope::Launch,
            precision: Precision::F64,
            range: Input::RANGE,
        };
        match report {
            Report::R0 => r0,
            Report::R1 => {
                let options = Experiment {
                    redraws: "R1 4.2.2-4.2.5 percentages",
                    selections: &R1_CPU_OPTIONS,
                    ..known("spmv-cpu-options")
                };
                let experiments = vec![known("spmv-cpu-partitions"), options, r1_gpu_options()];
                Self { experiments, iterations: 25, range: (-3e-5, 3e-5), ..r0 }
            }
            Report::R2 => {
                Self { experiments: r2().to_vec(), iterations: 10, scope: Scope::Kernel, ..r0 }
            }
            Report::R3 => {
                let primitives = experiments::find("transpose-primitives").copied();
                Self {
                    experiments: r3().into_iter().chain(primitives).collect(),
                    iterations: 5,
                    scope: Scope::Call,
                    precision: Precision::F32,
                    ..r0
                }
            }
            Report::R4 => Self {
                experiments: r4().to_vec(),
                iterations: 30,
                scope: Scope::Kernel,
                range: (1.0, 10.0),
                ..r0
            },
        }
    }
}

fn known(name: &str) -> Experiment {
    *experiments::find(name).expect("an experiment of the list")
}

/// A report's matrices: the downloaded file, or its analogue; R3's random ones are generated.
///
/// # Errors
/// A name that nothing is called; those of the catalogue are.
pub fn matrices(report: Report) -> anyhow::Result<Vec<Source>> {
    let random: &[&str] = if report == Report::R3 { &R3_RANDOM } else { &[] };
    let names = report.matrices().map(|entry| entry.name.as_str());
    names.chain(random.iter().copied()).map(Source::parse).collect()
}

/// The random matrices of R3's figure 14, by size; the first two sizes were each drawn twice.
const R3_RANDOM: [&str; 5] = [
    "uniform[rows=100000,cols=100000,entries=10000000,seed=1]",
    "uniform[rows=100000,cols=100000,entries=10000000,seed=2]",
    "uniform[rows=150000,cols=200000,entries=5000000,seed=1]",
    "uniform[rows=150000,cols=200000,entries=5000000,seed=2]",
    "uniform[rows=500000,cols=500000,entries=10000000,seed=1]",
];

/// 1 to all cores; blocks of 128 to 1024 threads. Its tables are the best of these.
fn r0() -> [Experiment; 3] {
    [
        Experiment {
            redraws: "R0 figures 3, 4, 7, 8, 11, 12, tables 1, 3",
            selections: &[
                Kernel(SPMV, "csr-serial", &[""]),
                Kernel(SPMV, "csr-rows", &["schedule=dynamic,chunk=1000"]),
                Kernel(SPMV, "ell-rows", &["schedule=dynamic,chunk=1000,row-lengths=off"]),
            ],
            threads: ThreadRule::Sweep,
            columns: ColumnRule::None,
            ..known("spmv-cpu-threads")
        },
        Experiment {
            redraws: "R0 3.2, sizes of a chunk",
            selections: &[
                Kernel(SPMV, "csr-serial", &[""]),
                Study(SPMV, "csr-rows", "chunk", "schedule=dynamic"),
            ],
            threads: ThreadRule::All,
            columns: ColumnRule::None,
            ..known("spmv-cpu-options")
        },
        Experiment {
            redraws: "R0 figures 5, 6, 9 to 12, tables 2, 4",
            selections: &[
                Study(SPMV, "csr-warp-per-row-shared", "block", ""),
                Study(SPMV, "ell-thread-per-row", "block", ""),
            ],
            threads: ThreadRule::Device,
            columns: ColumnRule::None,
            ..known("spmv-gpu-block-size")
        },
    ]
}

/// Row lengths on and off; 192, 256, 384 threads, and 8, 16, 32 warps.
fn r1_gpu_options() -> Experiment {
    Experiment {
        redraws: "R1 4.3, figure 2 (table), summary",
        selections: &[
            Kernel(SPMV, "csr-thread-per-row", &["block=192", "block=256", "block=384"]),
            Kernel(SPMV, "csr-warp-per-row", &["block=256", "block=512", "block=1024"]),
            Kernel(SPMV, "ell-thread-per-row", R1_ROWS),
            Kernel(SPMV, "ell-thread-per-row-rowmajor", R1_ROWS),
            Kernel(
                SPMV,
                "ell-warp-per-row",
                &[
                    "block=256,row-lengths=off",
                    "block=512,row-lengths=off",
                    "block=1024,row-lengths=off",
                    "block=256,row-lengths=on",
                    "block=512,row-lengths=on",
                    "block=1024,row-lengths=on",
                ],
            ),
        ],
        threads: ThreadRule::Device,
        columns: ColumnRule::None,
        ..known("spmv-gpu-options")
    }
}

const R1_ROWS: &[&str] = &[
    "block=192,row-lengths=off",
    "block=256,row-lengths=off",
    "block=384,row-lengths=off",
    "block=192,row-lengths=on",
    "block=256,row-lengths=on",
    "block=384,row-lengths=on",
];

/// 1 to all cores; hack sizes 16, 32, 64; blocks of 128, 256, 512, 1024 threads.
fn r2() -> [Experiment; 2] {
    [
        Experiment {
            redraws: "R2 figures 3-17",
            selections: &[
                Kernel(SPMV, "csr-serial", &[""]),
                Kernel(SPMV, "csr-nnz-balanced", &[""]),
                Kernel(SPMV, "hll-blocks", &["hack=16", "hack=32", "hack=64"]),
            ],
            threads: ThreadRule::Sweep,
            columns: ColumnRule::None,
            ..known("spmv-cpu-threads")
        },
        Experiment {
            redraws: "R2 figures 18-25",
            selections: &[
                Kernel(
                    SPMV,
                    "csr-thread-per-row-texture",
                    &["block=128", "block=256", "block=512", "block=1024"],
                ),
                Kernel(
                    SPMV,
                    "hll-thread-per-row-texture",
                    &[
                        "block=128,hack=16",
                        "block=256,hack=16",
                        "block=512,hack=16",
                        "block=1024,hack=16",
                        "block=128,hack=32",
                        "block=256,hack=32",
                        "block=512,hack=32",
                        "block=1024,hack=32",
                        "block=128,hack=64",
                        "block=256,hack=64",
                        "block=512,hack=64",
                        "block=1024,hack=64",
                    ],
                ),
            ],
            threads: ThreadRule::Device,
            columns: ColumnRule::None,
            ..known("spmv-gpu-block-size")
        },
    ]
}

/// The serial one, both of the paper's, and cuSPARSE's.
fn r3() -> [Experiment; 2] {
    [
        Experiment {
            redraws: "R3 III-A",
            selections: &[Kernel(Operation::Transpose, "serial", &[""])],
            threads: ThreadRule::OneAndAll,
            columns: ColumnRule::None,
            ..known("transpose-cpu")
        },
        Experiment {
            redraws: "R3 figures 14, 15",
            selections: &[
                Kernel(Operation::Transpose, "scan-trans", &[""]),
                Kernel(Operation::Transpose, "merge-trans", &[""]),
                Kernel(Operation::Transpose, "cusparse-default", &[""]),
                Kernel(Operation::Transpose, "cusparse-alg1", &[""]),
                Kernel(Operation::Transpose, "cusparse-alg2", &[""]),
            ],
            threads: ThreadRule::Device,
            columns: ColumnRule::None,
            ..known("transpose-gpu")
        },
    ]
}

/// Blocks of 512 threads, sub-warps of 2; 1 to all cores.
fn r4() -> [Experiment; 3] {
    [
        Experiment {
            redraws: "R4 1.3, 3.2, 4.2",
            selections: &[
                Kernel(SPMM, "csr-serial", &[""]),
                Kernel(SPMM, "ell-serial", &[""]),
                Kernel(SPMM, "ell-serial-unpadded", &[""]),
                Kernel(SPMM, "csr-rows", &[""]),
                Kernel(SPMM, "ell-rows", &[""]),
                Kernel(SPMM, "ell-rows-unpadded", &[""]),
            ],
            threads: ThreadRule::Sweep,
            columns: ColumnRule::R4,
            ..known("spmm-cpu")
        },
        Experiment {
            redraws: "R4 3.1, 4.1",
            selections: &[
                Kernel(Operation::Conversion, "coo-to-csr-row-scan", &[""]),
                Kernel(Operation::Conversion, "coo-to-csr-single-pass", &[""]),
                Kernel(Operation::Conversion, "coo-to-ell-padded", &[""]),
                Kernel(Operation::Conversion, "coo-to-ell-unpadded", &[""]),
                Kernel(Operation::Conversion, "coo-to-ell-single-pass", &[""]),
            ],
            threads: ThreadRule::OneAndAll,
            columns: ColumnRule::None,
            ..known("conversions")
        },
        Experiment {
            redraws: "R4 3.3, 4.3",
            selections: &[
                Kernel(SPMM, "csr-thread-per-element-v1", &[""]),
                Kernel(SPMM, "csr-thread-per-element-v2", &[""]),
                Kernel(SPMM, "csr-thread-per-element-v3", &[""]),
                Kernel(SPMM, "csr-warp-per-element", &[""]),
                Kernel(SPMM, "csr-subwarp-per-element", &[""]),
                Kernel(SPMM, "csr-adaptive", &[""]),
                Kernel(SPMM, "csr-warp-per-row", &[""]),
                Kernel(SPMM, "csr-adaptive-subblocks", &[""]),
                Kernel(SPMM, "ell-thread-per-element", &[""]),
                Kernel(SPMM, "ell-subwarp-per-element", &[""]),
            ],
            threads: ThreadRule::Device,
            columns: ColumnRule::R4,
            ..known("spmm-gpu")
        },
    ]
}

#[cfg(test)]
mod tests {
    use spm_formats::kernel::Backend;

    use super::*;

    fn labels(report: Report) -> Vec<String> {
        let experiments = Setup::of(report).experiments;
        let cases = experiments.iter().flat_map(|e| e.cases(4, None, Scope::Launch));
        cases.map(|case| format!("{} {}", case.info.backend, case.info.id)).collect()
    }

    #[test]
    fn each_report_has_its_kernels_and_no_other() {
        for report in Report::ALL {
            let experiments = Setup::of(report).experiments;
            let mut kernels = Vec::new();
            for case in experiments.iter().flat_map(|e| e.cases(4, None, Scope::Kernel)) {
                let info = case.info;
                let own = info.source.contains(&report.to_string());
                // The serial product is nobody's and everybody's.
                assert!(own || info.id == "csr-serial", "{report}: {} {}", info.backend, info.id);
                kernels.push((info.operation, info.backend, info.id));
            }
            // Whatever a registry ascribes to the report is there. Its way of reading, its formats,
            // what is ours after its layout, and R3's algorithms on the CPU are not experiments of it.
            for info in crate::kernels::all() {
                let ascribed = info
                    .source
                    .split([';', ','])
                    .any(|part| part.trim().starts_with(&report.to_string()));
                let not_run = info.source.starts_with("own")
                    || matches!(info.id, "ell-serial" | "hll-serial") && info.operation == SPMV
                    || report == Report::R3 && info.backend == Backend::Cpu && info.id != "serial";
                if ascribed && !not_run {
                    let key = (info.operation, info.backend, info.id);
                    assert!(kernels.contains(&key), "{report}: {key:?} is missing");
                }
            }
        }
    }

    #[test]
    fn parameters_are_those_of_the_reports() {
        let case_of = |report: Report, id: &str| -> Vec<String> {
            let experiments = Setup::of(report).experiments;
            let cases: Vec<_> =
                experiments.iter().flat_map(|e| e.cases(1, None, Scope::Kernel)).collect();
            let of = cases.iter().filter(|case| case.info.id == id);
            of.map(|case| case.parameters_text()).collect()
        };
        assert_eq!(
            case_of(Report::R0, "ell-rows"),
            ["schedule=dynamic,chunk=1000,folding=4,row-lengths=off,simd=on"]
        );
        assert_eq!(case_of(Report::R0, "csr-warp-per-row-shared").len(), 8);
        assert_eq!(case_of(Report::R1, "ell-thread-per-row").len(), 6);
        // R1 adapts the chunk by folding (1.3); sizes of it are R0's study.
        let chunks = |report| case_of(report, "csr-rows").iter().all(|p| p.contains("chunk=0,"));
        assert!(chunks(Report::R1) && !chunks(Report::R0));
        assert_eq!(case_of(Report::R2, "hll-thread-per-row-texture").len(), 12);
        assert_eq!(case_of(Report::R4, "csr-warp-per-element").len(), 8);
        assert!(labels(Report::R3).contains(&"gpu merge-trans".to_owned()));
    }

    #[test]
    fn matrices_are_the_catalogue_s_and_r3_s_random_ones() {
        let counts = Report::ALL.map(|report| matrices(report).unwrap().len());
        assert_eq!(counts, [30, 64, 5, 14, 30]);
    }
}

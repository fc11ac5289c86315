//! The experiment matrix: which kernels, parameters, threads and widths each experiment takes.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, Value};
use spm_formats::{DenseShape, Layout};

use super::case::CaseSpec;
use super::timing::Scope;
use crate::kernels;

/// One experiment by its name on the command line.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// Name in `results.csv`.
    pub name: &'static str,
    /// What it studies: its heading on the report page.
    pub title: &'static str,
    /// Where it runs; a comparison of both runs on both.
    pub backends: &'static [Backend],
    /// What of the reports it redraws.
    pub redraws: &'static str,
    pub(super) selections: &'static [Selection],
    pub(super) threads: ThreadRule,
    pub(super) columns: ColumnRule,
}

/// Which thread pools a CPU experiment runs on.
#[derive(Debug, Clone, Copy)]
pub(super) enum ThreadRule {
    /// 1, 2, 3, ... up to all cores (powers of two and all cores beyond 16).
    Sweep,
    /// R0's 4, 8, 16 and 32 as far as there are cores, and all cores.
    R0,
    /// One thread and all cores.
    OneAndAll,
    /// All cores.
    All,
    /// Not a matter of threads: the serial kernel runs on one, the others on a device.
    Device,
}

/// Which X an SpMM experiment multiplies.
#[derive(Debug, Clone, Copy)]
pub(super) enum ColumnRule {
    /// Not an SpMM.
    None,
    /// k = 1, 4, 8, 32, 64 row-major, and 4, 32 column-major.
    Sweep,
    /// R4's k = 1, 3, 4, 8, 12, 16, 32, 64, row-major (its text does not say; from the authors'
    /// published source).
    R4,
    /// k = 4, 8, 16, 32, 64, row-major.
    RowMajor,
}

/// Kernels of an experiment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Selection {
    /// One kernel; each string is one set of parameters (`""`: defaults).
    Kernel(Operation, &'static str, &'static [&'static str]),
    /// One kernel; one case for each studied value of the parameter, the others at the default
    /// that the string sets.
    Study(Operation, &'static str, &'static str, &'static str),
    /// Every kernel of the operation at its defaults.
    AllDefaults(Operation),
    /// `auto` as it is, and with lossless compression off where that can be said.
    Widths(Operation),
    /// Every procedure of R3 IV with every studied value of its parameters, on data of its own.
    Procedures,
}

use Selection::{AllDefaults, Kernel, Procedures, Study, Widths};

const SPMV: Operation = Operation::Spmv;
const CPU: &[Backend] = &[Backend::Cpu];
const GPU: &[Backend] = &[Backend::Gpu];

/// The options of R1 4.2.2 to 4.2.5.
pub(super) const R1_CPU_OPTIONS: [Selection; 21] = [
    Kernel(SPMV, "csr-serial", &[""]),
    Study(SPMV, "csr-rows", "simd", "schedule=static"),
    Study(SPMV, "csr-rows", "schedule", "simd=off"),
    Study(SPMV, "csr-row-blocks", "simd", ""),
    Study(SPMV, "csr-row-blocks", "schedule", "simd=off"),
    Study(SPMV, "csr-tiles", "simd", "grid=10x4"),
    Study(SPMV, "csr-tiles", "schedule", "grid=10x4,simd=off"),
    Study(SPMV, "csr-tiles", "grid", "simd=off"),
    Study(SPMV, "csr-tiles-copied", "simd", "grid=10x4"),
    Study(SPMV, "csr-tiles-copied", "schedule", "grid=10x4,simd=off"),
    Study(SPMV, "csr-tiles-copied", "grid", "simd=off"),
    Study(SPMV, "ell-rows", "simd", ""),
    Study(SPMV, "ell-rows", "schedule", "simd=off"),
    Study(SPMV, "ell-rows", "row-lengths", "simd=off"),
    Study(SPMV, "ell-row-blocks", "simd", ""),
    Study(SPMV, "ell-row-blocks", "schedule", "simd=off"),
    Study(SPMV, "ell-row-blocks", "row-lengths", "simd=off"),
    Study(SPMV, "ell-tiles", "simd", "grid=10x4"),
    Study(SPMV, "ell-tiles", "schedule", "grid=10x4,simd=off"),
    Study(SPMV, "ell-tiles", "row-lengths", "grid=10x4,simd=off"),
    Study(SPMV, "ell-tiles", "grid", "simd=off"),
];

/// Those, and R0's sizes of a chunk (3.2).
const CPU_OPTIONS: [Selection; R1_CPU_OPTIONS.len() + 1] = {
    let mut all =
        [Study(SPMV, "csr-rows", "chunk", "schedule=dynamic,simd=off"); R1_CPU_OPTIONS.len() + 1];
    let mut i = 0;
    while i < R1_CPU_OPTIONS.len() {
        all[i] = R1_CPU_OPTIONS[i];
        i += 1;
    }
    all
};

/// Every experiment, CPU first, in the order in which `bench-all` runs them.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "spmv-cpu-threads",
        title: "SpMV on the CPU over the number of threads",
        backends: CPU,
        redraws: "R0 figures 3, 4; R2 figures 3-8, 12-17",
        selections: &[
            Kernel(SPMV, "csr-serial", &[""]),
            Kernel(SPMV, "csr-rows", &[""]),
            Kernel(SPMV, "csr-nnz-balanced", &[""]),
            Kernel(SPMV, "ell-rows", &[""]),
            Study(SPMV, "hll-blocks", "hack", ""),
            Kernel(SPMV, "auto", &[""]),
        ],
        threads: ThreadRule::Sweep,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmv-cpu-speedup",
        title: "Speedup of SpMV on the CPU over the serial CSR product",
        backends: CPU,
        redraws: "R0 tables 1, 3, figures 7, 8",
        selections: &[
            Kernel(SPMV, "csr-serial", &[""]),
            Kernel(SPMV, "csr-rows", &["schedule=dynamic,chunk=1000"]),
            Kernel(SPMV, "ell-rows", &["schedule=dynamic"]),
        ],
        threads: ThreadRule::R0,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmv-cpu-partitions",
        title: "One- and two-dimensional partitions on the CPU",
        backends: CPU,
        redraws: "R1 figure 1 (table), BEST GFLOPS, BEST IMPL",
        selections: &[
            Kernel(SPMV, "csr-serial", &[""]),
            Kernel(SPMV, "csr-rows", &["simd=off"]),
            Kernel(SPMV, "csr-row-blocks", &["blocks=10,simd=off"]),
            Kernel(SPMV, "csr-tiles", &["grid=10x4,simd=off"]),
            Kernel(SPMV, "csr-tiles-copied", &["grid=10x4,simd=off"]),
            Kernel(SPMV, "ell-rows", &["row-lengths=on,simd=off"]),
            Kernel(SPMV, "ell-row-blocks", &["blocks=10,row-lengths=on,simd=off"]),
            Kernel(SPMV, "ell-tiles", &["grid=10x4,row-lengths=on,simd=off"]),
        ],
        threads: ThreadRule::All,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmv-cpu-options",
        title: "SIMD reduction, stored row lengths, grid and schedule on the CPU",
        backends: CPU,
        redraws: "R1 4.2.2-4.2.5 percentages, R0 3.2 chunk sizes",
        selections: &CPU_OPTIONS,
        threads: ThreadRule::All,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmv-hack-size",
        title: "Hack size of HLL",
        backends: CPU,
        redraws: "R2 VII-B 3, VII-D 1",
        selections: &[
            Kernel(SPMV, "csr-serial", &[""]),
            Kernel(SPMV, "hll-serial", &[""]),
            Study(SPMV, "hll-blocks", "hack", ""),
        ],
        threads: ThreadRule::OneAndAll,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmv-cpu-formats",
        title: "Formats against each other on the CPU",
        backends: CPU,
        redraws: "R2 figures 9-11",
        selections: &[AllDefaults(SPMV)],
        threads: ThreadRule::All,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmm-cpu",
        title: "Sparse matrix times tall dense matrix on the CPU",
        backends: CPU,
        redraws: "R4 1.3, 3.2, 4.2",
        selections: &[AllDefaults(Operation::Spmm)],
        threads: ThreadRule::All,
        columns: ColumnRule::Sweep,
    },
    Experiment {
        name: "transpose-cpu",
        title: "Transposition on the CPU",
        backends: CPU,
        redraws: "R3 III-A, III-C, III-D on CPU cores",
        selections: &[AllDefaults(Operation::Transpose)],
        threads: ThreadRule::OneAndAll,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "conversions",
        title: "Conversions between formats",
        backends: CPU,
        redraws: "R4 3.1, 4.1",
        selections: &[AllDefaults(Operation::Conversion)],
        threads: ThreadRule::OneAndAll,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "matrix-market",
        title: "Reading Matrix Market files",
        backends: CPU,
        redraws: "R0 2.1, R2 II-A, R4 2",
        selections: &[AllDefaults(Operation::Read)],
        threads: ThreadRule::OneAndAll,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmv-gpu-block-size",
        title: "Block size on the GPU",
        backends: GPU,
        redraws: "R0 figures 5, 6; R2 figures 18-23",
        selections: &[
            Study(SPMV, "csr-warp-per-row-shared", "block", ""),
            Study(SPMV, "csr-warp-per-row", "block", ""),
            Study(SPMV, "csr-thread-per-row", "block", ""),
            Study(SPMV, "csr-thread-per-row-texture", "block", ""),
            Study(SPMV, "ell-thread-per-row", "block", ""),
            Study(SPMV, "ell-thread-per-row-rowmajor", "block", ""),
            Study(SPMV, "ell-warp-per-row", "block", ""),
            Study(SPMV, "hll-thread-per-row-texture", "block", ""),
        ],
        threads: ThreadRule::Device,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmv-gpu-formats",
        title: "Formats against each other on the GPU",
        backends: GPU,
        redraws: "R0 tables 2, 4, figures 9, 10; R2 figures 24, 25",
        selections: &[AllDefaults(SPMV)],
        threads: ThreadRule::Device,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmv-gpu-options",
        title: "Stored row lengths and block shapes on the GPU",
        backends: GPU,
        redraws: "R1 4.3, figure 2 (table), summary",
        selections: &[
            Study(SPMV, "csr-thread-per-row", "block", ""),
            Study(SPMV, "csr-warp-per-row", "block", ""),
            Study(SPMV, "ell-thread-per-row", "row-lengths", "block=192"),
            Study(SPMV, "ell-thread-per-row-rowmajor", "row-lengths", "block=192"),
            Study(SPMV, "ell-warp-per-row", "row-lengths", "block=256"),
            Study(SPMV, "hll-thread-per-row-texture", "hack", ""),
            Study(SPMV, "hll-thread-per-row", "hack", ""),
        ],
        threads: ThreadRule::Device,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmv-cpu-vs-gpu",
        title: "CPU against GPU",
        backends: &[Backend::Cpu, Backend::Gpu],
        redraws: "R0 figures 11, 12",
        selections: &[
            Kernel(SPMV, "csr-serial", &[""]),
            Kernel(SPMV, "csr-rows", &["schedule=dynamic,chunk=1000"]),
            Kernel(SPMV, "ell-rows", &["schedule=dynamic"]),
            Kernel(SPMV, "csr-warp-per-row-shared", &[""]),
            Kernel(SPMV, "ell-thread-per-row", &[""]),
            Kernel(SPMV, "auto", &[""]),
        ],
        threads: ThreadRule::R0,
        columns: ColumnRule::None,
    },
    Experiment {
        name: "spmm-gpu",
        title: "Sparse matrix times tall dense matrix on the GPU",
        backends: GPU,
        redraws: "R4 3.3, 4.3",
        selections: &[AllDefaults(Operation::Spmm)],
        threads: ThreadRule::Device,
        columns: ColumnRule::Sweep,
    },
    Experiment {
        name: "transpose-gpu",
        title: "Transposition on the GPU",
        backends: GPU,
        redraws: "R3 figures 14, 15",
        selections: &[AllDefaults(Operation::Transpose)],
        threads: ThreadRule::Device,
        columns: ColumnRule::None,
    },
    Experiment {
        name: super::procedures::EXPERIMENT,
        title: "The procedures that transpositions are made of",
        backends: GPU,
        redraws: "R3 figures 6, 8, 10, 12",
        selections: &[Procedures],
        threads: ThreadRule::Device,
        columns: ColumnRule::None,
    },
];

/// `auto` against its peers on the wide suite; not a part of `bench-all`, whose matrices are others.
pub const WIDE: Experiment = Experiment {
    name: "wide",
    title: "auto against the best peer on unseen matrices",
    backends: &[Backend::Cpu, Backend::Gpu],
    redraws: "nothing; on the wide suite unless matrices are named",
    selections: &[
        Kernel(SPMV, "csr-serial", &[""]),
        Kernel(SPMV, "csr-rows", &[""]),
        Kernel(SPMV, "cusparse-csr-alg1", &[""]),
        Kernel(SPMV, "cusparse-csr-alg2", &[""]),
        Kernel(
            SPMV,
            "cusparse-sell",
            &["slice=2", "slice=4", "slice=8", "slice=16", "slice=32", "slice=64", "slice=128"],
        ),
        Widths(SPMV),
        Kernel(Operation::Spmm, "csr-serial", &[""]),
        Kernel(Operation::Spmm, "csr-rows", &[""]),
        Kernel(Operation::Spmm, "cusparse-csr-alg1", &[""]),
        Kernel(Operation::Spmm, "cusparse-csr-alg2", &[""]),
        Kernel(Operation::Spmm, "cusparse-csr-alg3", &[""]),
        Widths(Operation::Spmm),
        Kernel(Operation::Transpose, "serial", &[""]),
        Kernel(Operation::Transpose, "cusparse-default", &[""]),
        Kernel(Operation::Transpose, "cusparse-alg1", &[""]),
        Kernel(Operation::Transpose, "cusparse-alg2", &[""]),
        Widths(Operation::Transpose),
    ],
    threads: ThreadRule::OneAndAll,
    columns: ColumnRule::RowMajor,
};

/// What `bench` knows: those of `bench-all`, and [`WIDE`].
pub fn all() -> impl Iterator<Item = &'static Experiment> {
    EXPERIMENTS.iter().chain([&WIDE])
}

/// The experiment of this name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    all().find(|e| e.name == name)
}

impl Experiment {
    /// Its cases on a machine with `cores` cores, or on just `threads` threads if given. The serial
    /// kernel of an operation comes first: speedups are counted from it.
    ///
    /// A kernel that is in no registry gives no case.
    pub fn cases(&self, cores: usize, threads: Option<&[usize]>, scope: Scope) -> Vec<CaseSpec> {
        let pools = threads.map_or_else(|| self.threads.pools(cores), <[usize]>::to_vec);
        let mut cases: Vec<CaseSpec> = Vec::new();
        let selections = self.selections.iter();
        for (info, parameters) in selections.flat_map(|s| s.resolve(self.backends)) {
            let one = is_serial(&info) || info.backend == Backend::Gpu;
            for &threads in if one { &[1][..] } else { &pools } {
                let spmm = info.operation == Operation::Spmm;
                for dense in if spmm { self.columns.widths() } else { vec![None] } {
                    let parameters = parameters.clone();
                    let case = CaseSpec { info, parameters, threads, dense, scope };
                    if !cases.iter().any(|c| c.same(&case)) {
                        cases.push(case);
                    }
                }
            }
        }
        cases
    }
}

/// Whether a kernel runs on one thread whatever the thread pool.
pub fn is_serial(info: &KernelInfo) -> bool {
    info.backend == Backend::Cpu && info.id.split('-').any(|word| word == "serial")
}

impl ThreadRule {
    fn pools(self, cores: usize) -> Vec<usize> {
        let mut pools: Vec<usize> = match self {
            Self::Sweep => {
                (1..=cores).filter(|&t| t <= 16 || t.is_power_of_two() || t % 8 == 0).collect()
            }
            Self::R0 => [4, 8, 16, 32].into_iter().filter(|&t| t < cores).collect(),
            Self::OneAndAll => vec![1],
            Self::All => Vec::new(),
            Self::Device => return vec![1],
        };
        pools.push(cores);
        pools.dedup();
        pools
    }
}

impl ColumnRule {
    fn widths(self) -> Vec<Option<DenseShape>> {
        match self {
            Self::None => vec![None],
            Self::Sweep => {
                let row = [1, 4, 8, 32, 64].map(|k| DenseShape { k, layout: Layout::RowMajor });
                let column = [4, 32].map(|k| DenseShape { k, layout: Layout::ColumnMajor });
                row.into_iter().chain(column).map(Some).collect()
            }
            Self::RowMajor => {
                let layout = Layout::RowMajor;
                [4, 8, 16, 32, 64].map(|k| Some(DenseShape { k, layout })).to_vec()
            }
            Self::R4 => {
                let layout = Layout::RowMajor;
                [1, 3, 4, 8, 12, 16, 32, 64].map(|k| Some(DenseShape { k, layout })).to_vec()
            }
        }
    }
}

impl Selection {
    fn resolve(&self, backends: &[Backend]) -> Vec<(KernelInfo, Parameters)> {
        let infos = |operation| {
            kernels::all()
                .into_iter()
                .filter(move |k| k.operation == operation && backends.contains(&k.backend))
        };
        let parse = |info: &KernelInfo, text: &str| {
            info.parse_parameters(text).expect("the experiment's parameters are the kernel's")
        };
        match *self {
            Kernel(operation, id, sets) => infos(operation)
                .filter(|info| info.id == id)
                .flat_map(|info| sets.iter().map(move |set| (info, parse(&info, set))))
                .collect(),
            Study(operation, id, parameter, set) => infos(operation)
                .filter(|info| info.id == id)
                .flat_map(|info| {
                    let studied = info.parameters.iter().find(|p| p.name == parameter);
                    let values: &[Value] = studied.map_or(&[], |p| p.studied);
                    values
                        .iter()
                        .map(move |&value| (info, parse(&info, set).with(parameter, value)))
                })
                .collect(),
            AllDefaults(operation) => {
                infos(operation).map(|info| (info, info.defaults())).collect()
            }
            Widths(operation) => infos(operation)
                .filter(|info| info.id == "auto")
                .flat_map(|info| {
                    // Its switches are those of compression.
                    let on = info.parameters.iter().filter(|p| p.default == Value::Switch(true));
                    let full =
                        on.fold(info.defaults(), |set, p| set.with(p.name, Value::Switch(false)));
                    [(info, info.defaults()), (info, full)]
                })
                .collect(),
            Procedures => spm_gpu::transpose::primitives::registry()
                .into_iter()
                .flat_map(|p| p.info.variants().into_iter().map(move |set| (p.info, set)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_parses_and_starts_with_its_serial_kernel() {
        for experiment in all() {
            let cases = experiment.cases(4, None, Scope::Kernel);
            assert!(!cases.is_empty(), "{}", experiment.name);
            let cpu_product = |c: &&CaseSpec| {
                let operation = c.info.operation;
                c.info.backend == Backend::Cpu
                    && [SPMV, Operation::Spmm, Operation::Transpose].contains(&operation)
            };
            if let Some(first) = cases.iter().find(cpu_product) {
                assert!(is_serial(&first.info), "{}: {}", experiment.name, first.info.id);
            }
        }
    }

    #[test]
    fn the_wide_experiment_runs_auto_with_and_without_compression() {
        let cases = WIDE.cases(4, None, Scope::Kernel);
        let of = |operation, backend: Backend| {
            let mine = cases.iter().filter(move |c| {
                (c.info.operation, c.info.backend, c.info.id) == (operation, backend, "auto")
            });
            mine.map(|c| (c.threads, c.k(), c.parameters.to_string())).collect::<Vec<_>>()
        };
        let forms = ["compact=on,single-values=on", "compact=off,single-values=off"];
        assert_eq!(of(SPMV, Backend::Gpu), forms.map(|form| (1, 1, form.to_owned())));
        assert_eq!(of(SPMV, Backend::Cpu).iter().map(|c| c.0).collect::<Vec<_>>(), [1, 4]);
        let widths: Vec<usize> = of(Operation::Spmm, Backend::Gpu).iter().map(|c| c.1).collect();
        assert_eq!(widths, [4, 8, 16, 32, 64]);
        assert_eq!(of(Operation::Transpose, Backend::Gpu).len(), 1);
    }

    #[test]
    fn the_thread_sweep_reaches_all_cores() {
        assert_eq!(ThreadRule::Sweep.pools(3), [1, 2, 3]);
        assert_eq!(ThreadRule::R0.pools(20), [4, 8, 16, 20]);
        assert_eq!(ThreadRule::OneAndAll.pools(1), [1]);
        assert_eq!(ThreadRule::All.pools(2), [2]);
        assert_eq!(ThreadRule::Sweep.pools(40).last(), Some(&40));
    }

    #[test]
    fn chosen_threads_replace_the_rule_but_not_for_serial_kernels() {
        let cases = find("spmv-cpu-threads").unwrap().cases(8, Some(&[3]), Scope::Kernel);
        let threads = |id: &str| {
            cases.iter().filter(|c| c.info.id == id).map(|c| c.threads).collect::<Vec<_>>()
        };
        assert_eq!(threads("csr-serial"), [1]);
        assert_eq!(threads("csr-rows"), [3]);
    }
}

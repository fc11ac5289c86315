//! Every registered kernel on a real GPU: checked against the reference, timed by events, one line
//! each, the baselines beside it. One binary, no files needed.
//!
//! ```text
//! gpu_check [OPTION...] [MATRIX...]
//!
//! MATRIX         a .mtx file, or a generator: stencil27[n=160], webbase-1M, ... (default: a few)
//! --op LIST      spmv,spmm,transpose (default: all)
//! --kernel LIST  only these kernels; with parameters, if in brackets: csr-adaptive[block=256]
//! --type T       f32 or f64 (default: f64)
//! --k LIST       columns of X for SpMM (default: 32)
//! --layout LIST  of X and Y for SpMM: row,column (default: row)
//! --sweep        also every studied value of every parameter
//! --check-only   no timing, for compute-sanitizer
//! --emulator     on the emulator instead of a GPU; implies --check-only
//! ```
//!
//! Exits with 1 when a kernel is wrong, with 0 when there is no device.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use spm_formats::convert::csr_to_coo;
use spm_formats::kernel::{
    Footprint, KernelInfo, Parameters, PlanError, TransposeOutput, split_label,
};
use spm_formats::matrix_market::{self, ReadOptions};
use spm_formats::{Coo, Csr, DenseShape, Layout, Scalar};
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsc, DeviceCsr, DeviceReal, GpuError, PlanOptions, Sampling,
    Stream, Timing, cusparse, spmm, spmv, time, transpose,
};
use spm_testing::{generate, reference};

/// What is run when no matrix is named.
const DEFAULTS: [&str; 4] = [
    "stencil27[n=40]",
    "powerlaw[rows=1000000,cols=1000000,entries=2700000,longest=4000]",
    "uniform[rows=500000,cols=500000,entries=10000000]",
    "circuit[n=116835,entries=766396,dense=2,longest=114190]",
];
/// Products of an SpMM that the reference is asked for, about: of more, it computes evenly spread rows.
const MOST_PRODUCTS: usize = 20_000_000;

type AnyError = Box<dyn std::error::Error>;

struct Options {
    operations: Vec<String>,
    kernels: Option<Vec<String>>,
    single: bool,
    ks: Vec<usize>,
    layouts: Vec<Layout>,
    sweep: bool,
    timed: bool,
    emulated: bool,
    matrices: Vec<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, AnyError> {
        let mut options = Self {
            operations: ["spmv", "spmm", "transpose"].map(str::to_owned).to_vec(),
            kernels: None,
            single: false,
            ks: vec![32],
            layouts: vec![Layout::RowMajor],
            sweep: false,
            timed: true,
            emulated: false,
            matrices: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--op" => options.operations = value()?.split(',').map(str::to_owned).collect(),
                "--kernel" => {
                    options.kernels = Some(labels(&value()?));
                }
                "--type" => {
                    options.single = match value()?.as_str() {
                        "f32" => true,
                        "f64" => false,
                        other => return Err(format!("--type is f32 or f64, not {other}").into()),
                    }
                }
                "--k" => {
                    options.ks = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                "--layout" => {
                    let layout = |name: &str| match name {
                        "row" => Ok(Layout::RowMajor),
                        "column" => Ok(Layout::ColumnMajor),
                        other => Err(format!("--layout takes row and column, not {other}")),
                    };
                    options.layouts = value()?.split(',').map(layout).collect::<Result<_, _>>()?;
                }
                "--sweep" => options.sweep = true,
                "--check-only" => options.timed = false,
                "--emulator" => (options.emulated, options.timed) = (true, false),
                _ if argument.starts_with("--") => {
                    return Err(format!("unknown option {argument}").into());
                }
                _ => options.matrices.push(argument),
            }
        }
        if options.matrices.is_empty() {
            options.matrices = DEFAULTS.map(str::to_owned).to_vec();
        }
        Ok(options)
    }

    fn wants(&self, operation: &str, id: &str) -> bool {
        self.operations.iter().any(|o| o == operation)
            && self.kernels.as_ref().is_none_or(|all| all.iter().any(|l| split_label(l).0 == id))
    }

    fn parameter_sets(&self, info: &KernelInfo) -> Result<Vec<Parameters>, AnyError> {
        if self.sweep {
            return Ok(info.variants());
        }
        let Some(labels) = &self.kernels else { return Ok(vec![info.defaults()]) };
        let given = labels.iter().map(|label| split_label(label)).filter(|(id, _)| *id == info.id);
        Ok(given.map(|(_, text)| info.parse_parameters(text)).collect::<Result<_, _>>()?)
    }
}

/// The parts of a list between commas that are not in brackets.
fn labels(list: &str) -> Vec<String> {
    let mut depth = 0;
    let comma = |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    };
    list.split(comma).map(str::to_owned).collect()
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let device = if options.emulated {
        Device::emulated(Default::default())
    } else {
        match Device::available() {
            Ok(device) => device,
            Err(error) if error.is_absent() => {
                println!("no device: {error}");
                return ExitCode::SUCCESS;
            }
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    };
    match run(&device, &options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            println!("{wrong} wrong");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(device: &Device, options: &Options) -> Result<usize, AnyError> {
    let info = device.info();
    let (major, minor) = info.compute_capability;
    println!("{}, compute capability {major}.{minor}, CUDA {}", info.name, info.driver);
    // Where it is not compared with, it is not loaded.
    let compares = |labels: &Vec<String>| labels.iter().any(|label| label.starts_with("cusparse"));
    if options.kernels.as_ref().is_none_or(compares) {
        match cusparse::version(device) {
            Ok((version, path)) => println!("cuSPARSE {version}, {}", path.display()),
            Err(error) => println!("{error}"),
        }
    }
    let start = Instant::now();
    device.load_kernels()?;
    println!("kernels compiled in {:.2} s", start.elapsed().as_secs_f64());
    if options.timed {
        println!("copy bandwidth {:.0} GB/s read and written", copy_bandwidth(device)?);
    }
    let mut check = Check { device, options, stream: Stream::new(device)?, wrong: 0 };
    for name in &options.matrices {
        if options.single {
            check.matrix::<f32>(name)?;
        } else {
            check.matrix::<f64>(name)?;
        }
    }
    Ok(check.wrong)
}

fn copy_bandwidth(device: &Device) -> Result<f64, GpuError> {
    let source = DeviceBuffer::<f64>::zeroed(device, 1 << 27)?;
    let mut target = DeviceBuffer::<f64>::zeroed(device, 1 << 27)?;
    let stream = Stream::new(device)?;
    let timing =
        time(&stream, &Sampling::default(), |stream| target.copy_from_on(&source, stream))?;
    Ok(2.0 * source.bytes() as f64 / timing.median_s / 1e9)
}

fn read<T: Scalar>(name: &str) -> Result<Csr<T>, AnyError> {
    if std::path::Path::new(name).is_file() {
        return Ok(matrix_market::read_csr(name, &ReadOptions::default())?);
    }
    Ok(generate::named(name)?.generate()?)
}

/// One matrix with its reference.
struct Problem<T> {
    csr: Csr<T>,
    coo: Coo<T>,
}

/// Every `step`-th row of a matrix, with its reference; all of them without `coo`.
struct RowSample<T> {
    step: usize,
    coo: Option<Coo<T>>,
}

impl<T: Scalar> RowSample<T> {
    /// One row in `most` or, for fewer than two, all of them.
    fn new(csr: &Csr<T>, most: usize) -> Result<Self, AnyError> {
        if most < 2 {
            return Ok(Self { step: 1, coo: None });
        }
        // Odd, to meet every place of a regular structure.
        let step = most | 1;
        let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (number, row) in (0..csr.rows()).step_by(step).enumerate() {
            let (row_columns, row_values) = csr.row(row);
            rows.extend(std::iter::repeat_n(number as u32, row_columns.len()));
            columns.extend_from_slice(row_columns);
            values.extend_from_slice(row_values);
        }
        let coo = Coo::new(csr.rows().div_ceil(step), csr.cols(), rows, columns, values)?;
        Ok(Self { step, coo: Some(coo) })
    }

    /// These rows of `y`, in the layout of `dense`.
    fn of<'a>(&self, y: &'a [T], csr: &Csr<T>, dense: DenseShape) -> std::borrow::Cow<'a, [T]> {
        if self.coo.is_none() {
            return y.into();
        }
        match dense.layout {
            Layout::RowMajor => y.chunks(dense.k).step_by(self.step).flatten().copied().collect(),
            Layout::ColumnMajor => {
                y.chunks(csr.rows()).flat_map(|c| c.iter().step_by(self.step)).copied().collect()
            }
        }
    }
}

struct Check<'a> {
    device: &'a Device,
    options: &'a Options,
    stream: Stream,
    wrong: usize,
}

/// What is printed of a kernel.
struct Line {
    label: String,
    baseline: bool,
    error: Result<f64, String>,
    timing: Option<Timing>,
    footprint: Footprint,
    flops: u64,
    plan_s: f64,
}

impl Check<'_> {
    fn matrix<T: DeviceReal>(&mut self, name: &str) -> Result<(), AnyError> {
        let csr = read::<T>(name)?;
        println!("\n{name}, {}: {} x {}, {} entries", T::NAME, csr.rows(), csr.cols(), csr.nnz());
        let coo = csr_to_coo(csr.view());
        let problem = Problem { csr, coo };
        self.spmv(&problem)?;
        for &layout in &self.options.layouts {
            for &k in &self.options.ks {
                self.spmm(&problem, DenseShape { k, layout })?;
            }
        }
        self.transpose(&problem)
    }

    fn spmv<T: DeviceReal>(&mut self, problem: &Problem<T>) -> Result<(), AnyError> {
        let Problem { csr, coo } = problem;
        let kernels: Vec<_> = spmv::registry::<T>()
            .into_iter()
            .filter(|kernel| self.options.wants("spmv", kernel.info.id))
            .collect();
        if kernels.is_empty() {
            return Ok(());
        }
        let x = vector::<T>(csr.cols());
        let reference = reference::spmv(coo, &x);
        let x = DeviceBuffer::from_slice(self.device, &x)?;
        let mut lines = Vec::new();
        for kernel in &kernels {
            for parameters in self.options.parameter_sets(&kernel.info)? {
                let start = Instant::now();
                let plan =
                    kernel.plan(self.device, csr.view(), &parameters, &PlanOptions::default());
                let label = kernel.info.label(&parameters);
                let Some(mut plan) = planned(&label, plan)? else { continue };
                let plan_s = start.elapsed().as_secs_f64();
                let mut result = vec![T::from_f64(f64::NAN); csr.rows()];
                let mut y = DeviceBuffer::from_slice(self.device, &result)?;
                let error = plan
                    .launch(&x, &mut y, &self.stream)
                    .and_then(|()| y.copy_to_slice(&mut result))
                    .map(|()| reference::compare(&result, &reference).bound);
                let timing = self.time(|stream| plan.launch(&x, &mut y, stream))?;
                lines.push(Line {
                    label: format!("{label}{}", chosen(plan.choice())),
                    baseline: kernel.baseline,
                    error: error.map_err(|e| e.to_string()),
                    timing,
                    footprint: plan.footprint(),
                    flops: 2 * csr.nnz() as u64,
                    plan_s,
                });
                self.print("spmv", lines.last());
                drop(plan);
                if let (Some(timing), true) = (timing, kernel.info.id == "auto") {
                    let options = PlanOptions::default();
                    let plan = |a: &_| kernel.plan_on_device(a, &parameters, &options);
                    self.plan_on_device(csr, timing, plan)?;
                }
            }
        }
        summary(&lines);
        Ok(())
    }

    /// How long planning takes for a matrix on the device, in products: the median of nine.
    fn plan_on_device<T: DeviceReal, P>(
        &self,
        csr: &Csr<T>,
        timing: Timing,
        plan: impl Fn(&Arc<DeviceCsr<T>>) -> Option<Result<P, PlanError>>,
    ) -> Result<(), AnyError> {
        let view = csr.view();
        let a = Arc::new(DeviceCsr::new(self.device, view)?);
        let mut seconds = Vec::new();
        for _ in 0..9 {
            let start = Instant::now();
            let Some(plan) = plan(&a) else { return Ok(()) };
            let plan = plan?;
            seconds.push(start.elapsed().as_secs_f64());
            drop(plan);
        }
        seconds.sort_by(f64::total_cmp);
        let products = seconds[4] / timing.median_s;
        println!(
            "          planned on the device in {:.2} ms, {products:.0} products",
            1e3 * seconds[4]
        );
        Ok(())
    }

    fn spmm<T: DeviceReal>(
        &mut self,
        problem: &Problem<T>,
        dense: DenseShape,
    ) -> Result<(), AnyError> {
        let Problem { csr, coo } = problem;
        let kernels: Vec<_> = spmm::registry::<T>()
            .into_iter()
            .filter(|kernel| self.options.wants("spmm", kernel.info.id))
            .collect();
        if kernels.is_empty() {
            return Ok(());
        }
        println!("k = {}, {:?}", dense.k, dense.layout);
        let x = vector::<T>(csr.cols() * dense.k);
        let sample = RowSample::new(csr, csr.nnz().saturating_mul(dense.k) / MOST_PRODUCTS)?;
        let reference = reference::spmm(sample.coo.as_ref().unwrap_or(coo), &x, dense);
        let x = DeviceBuffer::from_slice(self.device, &x)?;
        let mut lines = Vec::new();
        for kernel in &kernels {
            for parameters in self.options.parameter_sets(&kernel.info)? {
                let (start, options) = (Instant::now(), PlanOptions::default());
                let plan = kernel.plan(self.device, csr.view(), dense, &parameters, &options);
                let label = kernel.info.label(&parameters);
                let Some(mut plan) = planned(&label, plan)? else { continue };
                let plan_s = start.elapsed().as_secs_f64();
                let mut result = vec![T::from_f64(f64::NAN); csr.rows() * dense.k];
                let mut y = DeviceBuffer::from_slice(self.device, &result)?;
                let error = plan
                    .launch(&x, &mut y, &self.stream)
                    .and_then(|()| y.copy_to_slice(&mut result))
                    .map(|()| {
                        reference::compare(&sample.of(&result, csr, dense), &reference).bound
                    });
                let timing = self.time(|stream| plan.launch(&x, &mut y, stream))?;
                lines.push(Line {
                    label: format!("{label}{}", chosen(plan.choice())),
                    baseline: kernel.baseline,
                    error: error.map_err(|e| e.to_string()),
                    timing,
                    footprint: plan.footprint(),
                    flops: 2 * (csr.nnz() * dense.k) as u64,
                    plan_s,
                });
                self.print("spmm", lines.last());
                drop(plan);
                if let (Some(timing), true) = (timing, kernel.info.id == "auto") {
                    let plan = |a: &_| kernel.plan_on_device(a, dense, &parameters, &options);
                    self.plan_on_device(csr, timing, plan)?;
                }
            }
        }
        summary(&lines);
        Ok(())
    }

    fn transpose<T: DeviceReal>(&mut self, problem: &Problem<T>) -> Result<(), AnyError> {
        let Problem { csr, coo } = problem;
        let kernels: Vec<_> = transpose::registry::<T>()
            .into_iter()
            .filter(|kernel| self.options.wants("transpose", kernel.info.id))
            .collect();
        if kernels.is_empty() {
            return Ok(());
        }
        let (col_ptr, row_ind, values) = reference::transpose(coo);
        let reference = TransposeOutput { col_ptr, row_ind, values };
        let mut lines = Vec::new();
        for kernel in &kernels {
            for parameters in self.options.parameter_sets(&kernel.info)? {
                let start = Instant::now();
                let plan =
                    kernel.plan(self.device, csr.view(), &parameters, &PlanOptions::default());
                let label = kernel.info.label(&parameters);
                let Some(mut plan) = planned(&label, plan)? else { continue };
                let plan_s = start.elapsed().as_secs_f64();
                let mut output = DeviceCsc::new(self.device, csr.cols(), csr.nnz())?;
                let mut result = TransposeOutput::new(csr.cols(), csr.nnz());
                let error = plan
                    .launch(&mut output, &self.stream)
                    .and_then(|()| self.stream.synchronize())
                    .and_then(|()| output.copy_to(&mut result))
                    .map(|()| if result == reference { 0.0 } else { f64::INFINITY });
                let timing = self.time(|stream| plan.launch(&mut output, stream))?;
                lines.push(Line {
                    label: format!("{label}{}", chosen(plan.choice())),
                    baseline: kernel.baseline,
                    error: error.map_err(|e| e.to_string()),
                    timing,
                    footprint: plan.footprint(),
                    flops: csr.nnz() as u64,
                    plan_s,
                });
                self.print("transpose", lines.last());
            }
        }
        summary(&lines);
        Ok(())
    }

    fn time(
        &self,
        launch: impl FnMut(&Stream) -> Result<(), GpuError>,
    ) -> Result<Option<Timing>, GpuError> {
        if !self.options.timed {
            return Ok(None);
        }
        time(&self.stream, &Sampling::default(), launch).map(Some)
    }

    fn print(&mut self, operation: &str, line: Option<&Line>) {
        let Some(line) = line else { return };
        let verdict = match &line.error {
            Ok(bound) if *bound <= reference::BOUND_LIMIT => format!("bound {bound:8.2e}"),
            Ok(bound) => {
                self.wrong += 1;
                format!("WRONG {bound:8.2e}")
            }
            Err(error) => {
                self.wrong += 1;
                format!("FAILED {error}")
            }
        };
        let mark = if line.baseline { '*' } else { ' ' };
        print!("{operation:9}{mark}{:48} {verdict}", line.label);
        if let Some(timing) = &line.timing {
            let giga = |amount: u64| amount as f64 / timing.median_s / 1e9;
            print!(
                "  {:10.2} us  {:7.0} GB/s  {:8.2} G{}",
                timing.median_s * 1e6,
                giga(line.footprint.bytes_moved),
                giga(line.flops),
                if operation == "transpose" { "nnz/s" } else { "FLOPS" }
            );
            print!("  plan {:8.2} ms", line.plan_s * 1e3);
        }
        println!("  {:.1} MB", line.footprint.plan_bytes as f64 / 1e6);
    }
}

/// The plan, or `None` and a line why there is none.
fn planned<P>(label: &str, plan: Result<P, PlanError>) -> Result<Option<P>, PlanError> {
    match plan {
        Ok(plan) => Ok(Some(plan)),
        Err(error @ (PlanError::Unsupported { .. } | PlanError::Format(_))) => {
            println!("          {label:48} skipped: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn chosen(choice: Option<String>) -> String {
    choice.map(|label| format!(" -> {label}")).unwrap_or_default()
}

/// Our best against the best baseline.
fn summary(lines: &[Line]) {
    let best = |baseline: bool| {
        lines
            .iter()
            .filter(|line| line.baseline == baseline)
            .filter(|line| matches!(line.error, Ok(bound) if bound <= reference::BOUND_LIMIT))
            .filter_map(|line| Some((line.timing?.median_s, &line.label)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
    };
    if let (Some((ours, label)), Some((theirs, other))) = (best(false), best(true)) {
        println!("          best {label}: {:.2} times {other}", theirs / ours);
    }
}

/// `length` numbers between -1 and 1, the same every time.
fn vector<T: Scalar>(length: usize) -> Vec<T> {
    let golden = 0.618_033_988_749_894_9;
    (0..length).map(|i| T::from_f64(2.0 * (i as f64 * golden).fract() - 1.0)).collect()
}

//! What every backend says of a kernel, and the shape of a plan.
//!
//! A backend lists its kernels in one registry per operation. The command line, the tests, the
//! benches and the docs table are fed from the [`KernelInfo`] of each entry, so a new kernel is one
//! file and one registry line.

use std::fmt;

use thiserror::Error;

use crate::Layout;

/// What a kernel computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// y = A x.
    Spmv,
    /// Y = A X, X with k columns.
    Spmm,
    /// CSR to CSC.
    Transpose,
    /// One storage format to another.
    Conversion,
    /// A file to a matrix.
    Read,
}

impl Operation {
    /// Name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spmv => "spmv",
            Self::Spmm => "spmm",
            Self::Transpose => "transpose",
            Self::Conversion => "conversion",
            Self::Read => "read",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    /// CPU cores.
    Cpu,
    /// A CUDA device.
    Gpu,
}

impl Backend {
    /// Name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How iterations are handed to threads, in OpenMP's words (R0 3.2, R1 1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Schedule {
    /// Every thread gets its iterations before the loop starts.
    Static,
    /// A thread that is done takes the next chunk.
    Dynamic,
}

/// The value of one kernel parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Value {
    /// A size or a count: `block=256`. 0 is refused unless it is the default.
    Count(usize),
    /// On or off: `simd=on`.
    Switch(bool),
    /// Row blocks times column blocks: `grid=10x4`.
    Grid(usize, usize),
    /// `schedule=static` or `schedule=dynamic`.
    Schedule(Schedule),
    /// One word of the parameter's choices: `vertical=columns`.
    Choice(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Switch(true) => f.write_str("on"),
            Self::Switch(false) => f.write_str("off"),
            Self::Grid(rows, cols) => write!(f, "{rows}x{cols}"),
            Self::Schedule(Schedule::Static) => f.write_str("static"),
            Self::Schedule(Schedule::Dynamic) => f.write_str("dynamic"),
            Self::Choice(word) => f.write_str(word),
        }
    }
}

/// One parameter that a kernel takes.
#[derive(Debug, Clone, Copy)]
pub struct ParameterSpec {
    /// Name before the `=`.
    pub name: &'static str,
    /// What it does, with its unit.
    pub meaning: &'static str,
    /// Taken when the parameter is not given; its variant is the parameter's type.
    pub default: Value,
    /// The values that the reports (or we) studied; experiments sweep them. For a
    /// [`Value::Choice`] these are also the only ones allowed.
    pub studied: &'static [Value],
}

impl ParameterSpec {
    fn parse(&self, text: &str) -> Option<Value> {
        match self.default {
            Value::Count(default) => {
                let count = text.parse().ok()?;
                (count > 0 || default == 0).then_some(Value::Count(count))
            }
            Value::Switch(_) => match text {
                "on" => Some(Value::Switch(true)),
                "off" => Some(Value::Switch(false)),
                _ => None,
            },
            Value::Grid(..) => {
                let (rows, cols) = text.split_once('x')?;
                let (rows, cols) = (rows.parse().ok()?, cols.parse().ok()?);
                (rows > 0 && cols > 0).then_some(Value::Grid(rows, cols))
            }
            Value::Schedule(_) => match text {
                "static" => Some(Value::Schedule(Schedule::Static)),
                "dynamic" => Some(Value::Schedule(Schedule::Dynamic)),
                _ => None,
            },
            Value::Choice(_) => self.studied.iter().copied().find(|v| v.to_string() == text),
        }
    }

    fn expected(&self) -> String {
        match self.default {
            Value::Count(0) => "a number".to_owned(),
            Value::Count(_) => "a positive number".to_owned(),
            Value::Switch(_) => "on or off".to_owned(),
            Value::Grid(..) => "ROWSxCOLS, for example 10x4".to_owned(),
            Value::Schedule(_) => "static or dynamic".to_owned(),
            Value::Choice(_) => {
                self.studied.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ")
            }
        }
    }
}

/// What a registry says of one kernel.
#[derive(Debug, Clone, Copy)]
pub struct KernelInfo {
    /// `<format>-<strategy>`, unique inside (operation, backend).
    pub id: &'static str,
    /// What it computes.
    pub operation: Operation,
    /// Where it runs.
    pub backend: Backend,
    /// The report and section, or the paper, that the algorithm comes from; `"own"` for ours.
    pub source: &'static str,
    /// One line for `cargo xtask kernels`.
    pub summary: &'static str,
    /// Its parameters in the order in which they print.
    pub parameters: &'static [ParameterSpec],
}

impl KernelInfo {
    /// Every parameter at its default.
    pub fn defaults(&self) -> Parameters {
        Parameters(self.parameters.iter().map(|p| (p.name, p.default)).collect())
    }

    /// The defaults, and every studied value of each parameter with the others at their defaults.
    pub fn variants(&self) -> Vec<Parameters> {
        let defaults = self.defaults();
        let others = self.parameters.iter().flat_map(|parameter| {
            let other = parameter.studied.iter().filter(|&&value| value != parameter.default);
            other.map(|&value| defaults.clone().with(parameter.name, value))
        });
        std::iter::once(defaults.clone()).chain(others).collect()
    }

    /// Parses `name=value,name=value`; parameters that are not named keep their defaults.
    ///
    /// # Errors
    /// A name that this kernel does not have, or a value of the wrong type.
    pub fn parse_parameters(&self, text: &str) -> Result<Parameters, ParameterError> {
        let mut parameters = self.defaults();
        for assignment in text.split(',').map(str::trim).filter(|a| !a.is_empty()) {
            let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
            let position =
                self.parameters.iter().position(|p| p.name == name).ok_or_else(|| {
                    ParameterError::Unknown {
                        kernel: self.id,
                        name: name.to_owned(),
                        known: self
                            .parameters
                            .iter()
                            .map(|p| p.name)
                            .collect::<Vec<_>>()
                            .join(", "),
                    }
                })?;
            let spec = &self.parameters[position];
            parameters.0[position].1 =
                spec.parse(value).ok_or_else(|| ParameterError::Invalid {
                    kernel: self.id,
                    name: spec.name,
                    value: value.to_owned(),
                    expected: spec.expected(),
                })?;
        }
        Ok(parameters)
    }

    /// `id` alone, or `id[name=value,...]`.
    pub fn label(&self, parameters: &Parameters) -> String {
        if parameters.0.is_empty() {
            self.id.to_owned()
        } else {
            format!("{}[{parameters}]", self.id)
        }
    }
}

/// Splits `id[name=value,...]` into the id and the text between the brackets.
pub fn split_label(label: &str) -> (&str, &str) {
    match label.split_once('[') {
        Some((id, rest)) => (id, rest.strip_suffix(']').unwrap_or(rest)),
        None => (label, ""),
    }
}

/// A kernel's parameters with their values, in the order of its [`KernelInfo`].
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters(Vec<(&'static str, Value)>);

impl Parameters {
    /// Replaces the value of `name`.
    ///
    /// # Panics
    /// When the kernel has no such parameter or it has another type: a mistake of the program,
    /// not of its user ([`KernelInfo::parse_parameters`] is for users).
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        let slot = self.0.iter_mut().find(|(n, _)| *n == name);
        let slot = slot.unwrap_or_else(|| panic!("the kernel has no parameter {name}"));
        assert!(
            std::mem::discriminant(&slot.1) == std::mem::discriminant(&value),
            "parameter {name} is not of the type of {value}"
        );
        slot.1 = value;
        self
    }

    /// The value of `name`, if the kernel has it.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.0.iter().find(|(n, _)| *n == name).map(|&(_, value)| value)
    }

    /// The names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.0.iter().copied()
    }

    /// A [`Value::Count`] parameter.
    ///
    /// # Panics
    /// When the kernel has no such parameter; so do the other typed getters.
    pub fn count(&self, name: &str) -> usize {
        match self.get(name) {
            Some(Value::Count(count)) => count,
            other => panic!("parameter {name} is {other:?}, expected a count"),
        }
    }

    /// A [`Value::Switch`] parameter.
    ///
    /// # Panics
    /// As [`Parameters::count`].
    pub fn switch(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Switch(on)) => on,
            other => panic!("parameter {name} is {other:?}, expected a switch"),
        }
    }

    /// A [`Value::Grid`] parameter as (row blocks, column blocks).
    ///
    /// # Panics
    /// As [`Parameters::count`].
    pub fn grid(&self, name: &str) -> (usize, usize) {
        match self.get(name) {
            Some(Value::Grid(rows, cols)) => (rows, cols),
            other => panic!("parameter {name} is {other:?}, expected a grid"),
        }
    }

    /// A [`Value::Schedule`] parameter.
    ///
    /// # Panics
    /// As [`Parameters::count`].
    pub fn schedule(&self, name: &str) -> Schedule {
        match self.get(name) {
            Some(Value::Schedule(schedule)) => schedule,
            other => panic!("parameter {name} is {other:?}, expected a schedule"),
        }
    }

    /// A [`Value::Choice`] parameter.
    ///
    /// # Panics
    /// As [`Parameters::count`].
    pub fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Some(Value::Choice(word)) => word,
            other => panic!("parameter {name} is {other:?}, expected a choice"),
        }
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

/// A parameter that a user named wrongly.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The kernel has no parameter of that name.
    #[error("kernel {kernel} has no parameter {name:?}; it has: {known}")]
    Unknown {
        /// Kernel id.
        kernel: &'static str,
        /// The name given.
        name: String,
        /// The names it has.
        known: String,
    },
    /// The value is not one that the parameter takes.
    #[error("kernel {kernel}: {name} must be {expected}, found {value:?}")]
    Invalid {
        /// Kernel id.
        kernel: &'static str,
        /// Parameter name.
        name: &'static str,
        /// The text given.
        value: String,
        /// What it takes.
        expected: String,
    },
}

/// Why a plan could not be made.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The matrix does not go into the format of the kernel.
    #[error(transparent)]
    Format(#[from] crate::FormatError),
    /// The kernel does not apply to this matrix or with these parameters; the reason says why.
    #[error("{kernel}: {reason}")]
    Unsupported {
        /// Kernel id.
        kernel: &'static str,
        /// In words, with the numbers.
        reason: String,
    },
    /// The device failed or has not enough memory.
    #[error("{0}")]
    Device(String),
}

/// Why a planned product was not computed.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A vector or a dense matrix has the wrong number of elements.
    #[error("{what}: expected {expected} elements, found {found}")]
    Shape {
        /// `"x"`, `"y"`, ...
        what: &'static str,
        /// Elements that the plan needs.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// The device failed.
    #[error("{0}")]
    Device(String),
}

/// Checks the length of an argument of a product.
///
/// # Errors
/// [`RunError::Shape`].
pub fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), RunError> {
    if expected == found { Ok(()) } else { Err(RunError::Shape { what, expected, found }) }
}

/// The least that a product moves and what a plan holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// The smallest traffic that the format allows, in bytes per run: each stored array once,
    /// x once, y once. For SpMM: X and Y once.
    pub bytes_moved: u64,
    /// Memory that the plan itself holds, in bytes: converted matrix, partition and workspace,
    /// without the caller's matrix.
    pub plan_bytes: u64,
    /// Bytes of the matrix in the format that the kernel reads, wherever it lies.
    pub matrix_bytes: u64,
}

/// A planned y = A x. Planning converts, partitions and allocates; `run` allocates nothing.
pub trait SpmvPlan<T>: Send {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Traffic and memory.
    fn footprint(&self) -> Footprint;

    /// Overwrites `y` (rows elements) with A `x` (columns elements).
    ///
    /// # Errors
    /// Wrong lengths; a device that fails.
    fn run(&mut self, x: &[T], y: &mut [T]) -> Result<(), RunError>;

    /// The label of the kernel that a plan which chooses for its user (`auto`) has chosen; `None`
    /// for a kernel that is what its id says.
    fn choice(&self) -> Option<String> {
        None
    }
}

/// The dense operands of an SpMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DenseShape {
    /// Columns of X and Y.
    pub k: usize,
    /// Row-major: element (i, j) at `i * k + j`. Column-major: at `j * rows + i`, where `rows` is
    /// that of X (columns of A) or of Y (rows of A).
    pub layout: Layout,
}

impl DenseShape {
    /// Checks that X and Y of an A of `shape` = (rows, columns) have sizes that memory can number,
    /// so that products of those sizes do not overflow.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`](crate::FormatError::TooLarge) for 2^32 columns and more, and for
    /// more bytes than an address has.
    pub fn check<T: crate::Scalar>(self, shape: (usize, usize)) -> Result<(), crate::FormatError> {
        let elements = (shape.0 as u64).saturating_add(shape.1 as u64);
        let most = (isize::MAX as u64 / T::BYTES as u64) / elements.max(1);
        let limit = most.min(u64::from(u32::MAX));
        let size = self.k as u64;
        if size > limit {
            let what = "number of columns of X";
            return Err(crate::FormatError::TooLarge { what, size, limit });
        }
        Ok(())
    }
}

/// A planned Y = A X.
pub trait SpmmPlan<T>: Send {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Columns and layout of X and Y.
    fn dense(&self) -> DenseShape;

    /// Traffic and memory.
    fn footprint(&self) -> Footprint;

    /// Overwrites `y` (rows x k elements) with A `x` (columns x k elements).
    ///
    /// # Errors
    /// Wrong lengths; a device that fails.
    fn run(&mut self, x: &[T], y: &mut [T]) -> Result<(), RunError>;

    /// See [`SpmvPlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

/// The three arrays that a transposition fills: the CSC of A, which is the CSR of its transpose.
#[derive(Debug, Clone, PartialEq)]
pub struct TransposeOutput<T> {
    /// Columns + 1 pointers.
    pub pointers: Vec<u32>,
    /// Row index of each entry, ascending inside a column.
    pub indices: Vec<u32>,
    /// Value of each entry.
    pub values: Vec<T>,
}

impl<T: crate::Scalar> TransposeOutput<T> {
    /// Arrays for a matrix with `cols` columns and `entries` entries.
    pub fn new(cols: usize, entries: usize) -> Self {
        Self {
            pointers: vec![0; cols + 1],
            indices: vec![0; entries],
            values: vec![T::ZERO; entries],
        }
    }

    /// Checks that the arrays have the sizes for `cols` columns and `entries` entries.
    ///
    /// # Errors
    /// [`RunError::Shape`].
    pub fn check(&self, cols: usize, entries: usize) -> Result<(), RunError> {
        check_length("column pointers", cols + 1, self.pointers.len())?;
        check_length("row indices", entries, self.indices.len())?;
        check_length("values", entries, self.values.len())
    }
}

/// A planned transposition of one CSR matrix.
pub trait TransposePlan<T>: Send {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Stored entries of A.
    fn entries(&self) -> usize;

    /// Traffic and memory.
    fn footprint(&self) -> Footprint;

    /// Overwrites all three arrays of `output`.
    ///
    /// # Errors
    /// Wrong lengths; a device that fails.
    fn run(&mut self, output: &mut TransposeOutput<T>) -> Result<(), RunError>;

    /// See [`SpmvPlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: KernelInfo = KernelInfo {
        id: "csr-tiles",
        operation: Operation::Spmv,
        backend: Backend::Cpu,
        source: "R1 1.1.2",
        summary: "",
        parameters: &[
            ParameterSpec {
                name: "grid",
                meaning: "row blocks x column blocks",
                default: Value::Grid(10, 4),
                studied: &[],
            },
            ParameterSpec {
                name: "schedule",
                meaning: "",
                default: Value::Schedule(Schedule::Static),
                studied: &[],
            },
            ParameterSpec {
                name: "vertical",
                meaning: "",
                default: Value::Choice("columns"),
                studied: &[Value::Choice("columns"), Value::Choice("transposed")],
            },
        ],
    };

    #[test]
    fn label_prints_and_parses_back() {
        let parameters = INFO.defaults().with("grid", Value::Grid(5, 8));
        let label = INFO.label(&parameters);
        assert_eq!(label, "csr-tiles[grid=5x8,schedule=static,vertical=columns]");
        let (id, text) = split_label(&label);
        assert_eq!(id, "csr-tiles");
        assert_eq!(INFO.parse_parameters(text), Ok(parameters));
    }

    #[test]
    fn variants_are_the_defaults_and_one_change_each() {
        let variants: Vec<String> = INFO.variants().iter().map(Parameters::to_string).collect();
        assert_eq!(
            variants,
            [
                "grid=10x4,schedule=static,vertical=columns",
                "grid=10x4,schedule=static,vertical=transposed"
            ]
        );
    }

    #[test]
    fn wrong_parameters_say_what_was_expected() {
        let error = INFO.parse_parameters("grid=0x4").unwrap_err().to_string();
        assert_eq!(
            error,
            "kernel csr-tiles: grid must be ROWSxCOLS, for example 10x4, found \"0x4\""
        );
        let error = INFO.parse_parameters("blok=3").unwrap_err().to_string();
        assert_eq!(
            error,
            "kernel csr-tiles has no parameter \"blok\"; it has: grid, schedule, vertical"
        );
        let error = INFO.parse_parameters("vertical=up").unwrap_err().to_string();
        assert!(error.ends_with("vertical must be columns or transposed, found \"up\""), "{error}");
    }
}

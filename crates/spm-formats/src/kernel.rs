//! Kernel descriptions, parameters and plan traits that all backends share.
//!
//! A backend lists its kernels in one registry per operation. The command line, the tests and the
//! benchmarks read the [`KernelInfo`] of each entry, so a new kernel is one file and one registry
//! line.

mod parameters;
mod plan;
mod scaling;

use std::fmt;

pub use parameters::{ParameterError, ParameterSpec, Parameters, Schedule, Value};
pub use plan::{
    DenseShape, DeviceError, Footprint, PlanError, ProductPlan, RunError, TransposeOutput,
    TransposePlan, check_length,
};
pub use scaling::Scaling;

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

/// The description of a kernel in a registry.
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
    /// A description without id, source, summary and parameters, to be completed by struct update.
    pub const fn of(operation: Operation, backend: Backend) -> Self {
        Self { id: "", operation, backend, source: "", summary: "", parameters: &[] }
    }

    /// Every parameter at its default.
    pub fn defaults(&self) -> Parameters {
        Parameters(self.parameters.iter().map(|p| (p.name, p.default)).collect())
    }

    /// The defaults but for some parameters.
    ///
    /// # Panics
    /// As [`Parameters::with`].
    pub fn with(&self, set: &[(&'static str, Value)]) -> Parameters {
        set.iter().fold(self.defaults(), |all, &(name, value)| all.with(name, value))
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
            let (name, text) = assignment.split_once('=').unwrap_or((assignment, ""));
            let Some(position) = self.parameters.iter().position(|p| p.name == name) else {
                let (name, known) = (name.to_owned(), self.parameter_names());
                return Err(ParameterError::Unknown { kernel: self.id, name, known });
            };
            let spec = &self.parameters[position];
            let Some(value) = spec.parse(text) else {
                return Err(ParameterError::Invalid {
                    kernel: self.id,
                    name: spec.name,
                    value: text.to_owned(),
                    expected: spec.expected(),
                });
            };
            parameters.0[position].1 = value;
        }
        Ok(parameters)
    }

    fn parameter_names(&self) -> String {
        self.parameters.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
    }

    /// Checks that these are parameters of this kernel, with values that
    /// [`KernelInfo::parse_parameters`] accepts. A registry calls it before it plans.
    ///
    /// # Errors [`PlanError::Unsupported`]: the parameters of another kernel, or a value that this
    /// kernel does not accept.
    pub fn check_parameters(&self, parameters: &Parameters) -> Result<(), PlanError> {
        let refuse = |reason| Err(PlanError::Unsupported { kernel: self.id, reason });
        if !self.parameters.iter().map(|p| p.name).eq(parameters.iter().map(|(name, _)| name)) {
            let known = self.parameter_names();
            return refuse(format!("expected the parameters \"{known}\", found \"{parameters}\""));
        }
        for (spec, (name, value)) in self.parameters.iter().zip(parameters.iter()) {
            if !spec.admits(value) {
                return refuse(format!("{name} must be {}, found {value}", spec.expected()));
            }
        }
        Ok(())
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

/// Defines `registry` and `find` for the kernels of one operation on one backend: lists of scalar types,
/// the trait that the kernels of a list ask of them, and the kernels.
///
/// A registry names every kernel, so a generic one would compile all of them again in each crate that
/// asks for it. The list of each scalar type is therefore made by a function that is not generic.
#[doc(hidden)]
#[macro_export]
macro_rules! __registry {
    ($(#[$meta:meta])* $kernel:ident<$t:ident: $scalar:ident>
        $($($type:ty),+: $bound:ident [$($entry:expr),* $(,)?])+) => {
        $(#[$meta])*
        pub fn registry<$t: $scalar>() -> Vec<$kernel<$t>> {
            use std::any::{Any, TypeId};
            $({
                fn kernels<$t: $bound>() -> Vec<$kernel<$t>> {
                    vec![$($entry),*]
                }
                $(if TypeId::of::<$t>() == TypeId::of::<$type>() {
                    #[inline(never)]
                    fn list() -> Box<dyn Any> {
                        Box::new(kernels::<$type>())
                    }
                    return *list().downcast().expect("the registry of this scalar type");
                })+
            })+
            Vec::new()
        }

        /// The kernel with this id.
        pub fn find<$t: $scalar>(id: &str) -> Option<$kernel<$t>> {
            registry().into_iter().find(|kernel| kernel.info.id == id)
        }
    };
}
#[doc(hidden)]
pub use crate::__registry as registry;

/// Splits `id[name=value,...]` into the id and the text between the brackets.
pub fn split_label(label: &str) -> (&str, &str) {
    match label.split_once('[') {
        Some((id, rest)) => (id, rest.strip_suffix(']').unwrap_or(rest)),
        None => (label, ""),
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
    fn parameters_are_checked_before_a_plan() {
        let check = |parameters: &Parameters| INFO.check_parameters(parameters);
        assert_eq!(check(&INFO.defaults()), Ok(()));
        let with =
            |name, value| check(&INFO.defaults().with(name, value)).map_err(|e| e.to_string());
        assert_eq!(with("grid", Value::Grid(1, usize::MAX)), Ok(()));
        assert_eq!(
            with("grid", Value::Grid(0, 4)).unwrap_err(),
            "csr-tiles: grid must be ROWSxCOLS, for example 10x4, found 0x4"
        );
        assert_eq!(
            with("vertical", Value::Choice("up")).unwrap_err(),
            "csr-tiles: vertical must be columns or transposed, found up"
        );
        assert_eq!(
            check(&Parameters::default()).unwrap_err().to_string(),
            "csr-tiles: expected the parameters \"grid, schedule, vertical\", found \"\""
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

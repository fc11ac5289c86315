//! Typed and named kernel parameters, with printing and parsing.

use std::fmt;

/// The distribution of loop iterations to threads, named as in OpenMP (R0 3.2, R1 1.3).
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
    /// A switch that is on by default; both values are studied.
    pub const fn on(name: &'static str, meaning: &'static str) -> Self {
        const BOTH: &[Value] = &[Value::Switch(true), Value::Switch(false)];
        Self { name, meaning, default: Value::Switch(true), studied: BOTH }
    }

    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        let value = match self.default {
            Value::Count(_) => text.parse().ok().map(Value::Count),
            Value::Switch(_) => match text {
                "on" => Some(Value::Switch(true)),
                "off" => Some(Value::Switch(false)),
                _ => None,
            },
            Value::Grid(..) => text
                .split_once('x')
                .and_then(|(rows, cols)| Some(Value::Grid(rows.parse().ok()?, cols.parse().ok()?))),
            Value::Schedule(_) => match text {
                "static" => Some(Value::Schedule(Schedule::Static)),
                "dynamic" => Some(Value::Schedule(Schedule::Dynamic)),
                _ => None,
            },
            Value::Choice(_) => self.studied.iter().copied().find(|v| v.to_string() == text),
        };
        value.filter(|&value| self.admits(value))
    }

    /// Whether the value is of the type of the parameter, and one that it takes.
    pub(super) fn admits(&self, value: Value) -> bool {
        match (self.default, value) {
            (Value::Count(default), Value::Count(count)) => count > 0 || default == 0,
            (Value::Grid(..), Value::Grid(rows, cols)) => rows > 0 && cols > 0,
            (Value::Choice(_), Value::Choice(_)) => self.studied.contains(&value),
            (Value::Switch(_), Value::Switch(_)) => true,
            (Value::Schedule(_), Value::Schedule(_)) => true,
            _ => false,
        }
    }

    pub(super) fn expected(&self) -> String {
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

/// A kernel's parameters with their values, in the order of its [`KernelInfo`](super::KernelInfo).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters(pub(super) Vec<(&'static str, Value)>);

impl Parameters {
    /// Replaces the value of `name`.
    ///
    /// # Panics
    /// When the kernel has no such parameter or it has another type. For text from users there is
    /// [`KernelInfo::parse_parameters`](super::KernelInfo::parse_parameters).
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

impl FromIterator<(&'static str, Value)> for Parameters {
    fn from_iter<I: IntoIterator<Item = (&'static str, Value)>>(parameters: I) -> Self {
        Self(parameters.into_iter().collect())
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

/// Why a parameter text was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterError {
    /// The kernel has no parameter of that name.
    Unknown {
        /// Kernel id.
        kernel: &'static str,
        /// The name given.
        name: String,
        /// The names it has.
        known: String,
    },
    /// The value is not one that the parameter takes.
    Invalid {
        /// Kernel id.
        kernel: &'static str,
        /// Parameter name.
        name: &'static str,
        /// The text given.
        value: String,
        /// The values that the parameter accepts.
        expected: String,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { kernel, name, known } => {
                write!(f, "kernel {kernel} has no parameter {name:?}; it has: {known}")
            }
            Self::Invalid { kernel, name, value, expected } => {
                write!(f, "kernel {kernel}: {name} must be {expected}, found {value:?}")
            }
        }
    }
}

impl std::error::Error for ParameterError {}

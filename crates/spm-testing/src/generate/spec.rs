//! A structure class with a seed and values, and its label.

use std::fmt;
use std::str::FromStr;

use super::error::at_most;
use super::kinds::{Class, kinds};
use super::pattern::Pattern;
use super::{GenerateError, Numbering, PREFIX, Values};
use spm_formats::kernel::split_label;
use spm_formats::{Csr, Scalar};

/// A class with options; reads and prints as `kind[name=value,...]`.
///
/// Options of every kind: `seed` (1); `values` ([`Values`]); `drop`, the percentage of entries that
/// are left out, those on the diagonal excepted (0); and, of square matrices, `order`
/// ([`Numbering`]) and `unknowns`, the rows and columns into which each is split after ordering (1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    class: Class,
    seed: u64,
    values: Values,
    drop: usize,
    order: Numbering,
    unknowns: usize,
}

impl Spec {
    /// `class` with seed 1 and the values that suit it: ones for roads, symmetric where the pattern
    /// is, general otherwise.
    pub fn new(class: Class) -> Self {
        let values = class.default_values();
        Self { class, seed: 1, values, drop: 0, order: Numbering::Natural, unknowns: 1 }
    }

    /// Replaces the seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Replaces the values.
    ///
    /// # Errors
    /// Symmetric values for a pattern that is not symmetric.
    pub fn with_values(mut self, values: Values) -> Result<Self, GenerateError> {
        if values == Values::Symmetric && !self.class.is_symmetric() {
            return Err(GenerateError::Parameter {
                what: "values",
                problem: format!(
                    "cannot be symmetric: the pattern of {} is not",
                    self.class.parts().0
                ),
            });
        }
        self.values = values;
        Ok(self)
    }

    /// The class.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The values.
    pub fn values(&self) -> Values {
        self.values
    }

    /// `synthetic:kind[name=value,...]`; [`named`](super::named) reads it back.
    pub fn label(&self) -> String {
        format!("{PREFIX}{self}")
    }

    /// Builds the matrix.
    ///
    /// # Errors
    /// Parameters that contradict each other, sizes beyond 32 bits.
    pub fn generate<T: Scalar>(&self) -> Result<Csr<T>, GenerateError> {
        Ok(self.pattern()?.into_csr(self.values, self.seed))
    }

    fn pattern(&self) -> Result<Pattern, GenerateError> {
        let mut pattern = self.class.pattern(self.seed)?;
        if self.drop > 0 {
            at_most("drop", self.drop, 100)?;
            pattern = pattern.thinned(self.drop, self.class.is_symmetric(), self.seed)?;
        }
        let problem = match self.order {
            Numbering::Natural if self.unknowns == 1 => None,
            _ if pattern.rows != pattern.cols => Some("is for square matrices only"),
            Numbering::CuthillMckee if !self.class.is_symmetric() => {
                Some("cannot be rcm: the pattern is not symmetric")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(GenerateError::Parameter {
                what: if self.unknowns == 1 { "order" } else { "unknowns" },
                problem: problem.to_owned(),
            });
        }
        pattern.renumbered(self.order, self.seed)?.with_unknowns(self.unknowns)
    }
}

/// The options that every kind has, for messages.
const OPTIONS: &str = "seed, values, drop, order and unknowns";

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, sizes) = self.class.parts();
        let kind = kinds().iter().find(|kind| kind.name == name).expect("every class has a kind");
        write!(f, "{name}[")?;
        for (i, (parameter, size)) in kind.parameters.iter().zip(sizes).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{}={size}", parameter.name)?;
        }
        if self.seed != 1 {
            write!(f, ",seed={}", self.seed)?;
        }
        if self.drop != 0 {
            write!(f, ",drop={}", self.drop)?;
        }
        if self.order != Numbering::Natural {
            write!(f, ",order={}", self.order.name())?;
        }
        if self.unknowns != 1 {
            write!(f, ",unknowns={}", self.unknowns)?;
        }
        if self.values != self.class.default_values() {
            write!(f, ",values={}", self.values.name())?;
        }
        f.write_str("]")
    }
}

impl FromStr for Spec {
    type Err = GenerateError;

    /// Sizes that are not given keep the kind's defaults.
    fn from_str(label: &str) -> Result<Self, GenerateError> {
        let (name, assignments) = split_label(label);
        let kind = kinds().iter().find(|kind| kind.name == name).ok_or_else(|| {
            let kinds: Vec<&str> = kinds().iter().map(|kind| kind.name).collect();
            GenerateError::Unknown { name: label.to_owned(), kinds: kinds.join(", ") }
        })?;
        let wrong = |problem| GenerateError::Label { label: label.to_owned(), problem };
        if label.contains('[') != label.ends_with(']') {
            return Err(wrong("the brackets do not match".to_owned()));
        }
        let mut sizes: Vec<usize> = kind.parameters.iter().map(|p| p.default).collect();
        let (mut seed, mut values) = (1, None);
        let (mut drop, mut order, mut unknowns) = (0, Numbering::Natural, 1);
        for assignment in assignments.split(',').map(str::trim).filter(|a| !a.is_empty()) {
            let (key, text) = assignment.split_once('=').unwrap_or((assignment, ""));
            let number = || format!("{key} must be a number, found {text:?}");
            if let Some(i) = kind.parameters.iter().position(|p| p.name == key) {
                sizes[i] = text.parse().map_err(|_| wrong(number()))?;
            } else if key == "seed" {
                seed = text.parse().map_err(|_| wrong(number()))?;
            } else if key == "drop" {
                drop = text.parse().map_err(|_| wrong(number()))?;
            } else if key == "unknowns" {
                unknowns = text.parse().map_err(|_| wrong(number()))?;
            } else if key == "order" {
                let found = Numbering::ALL.into_iter().find(|order| order.name() == text);
                order = found.ok_or_else(|| {
                    wrong(format!("order must be natural, rcm or random, found {text:?}"))
                })?;
            } else if key == "values" {
                let found = Values::ALL.into_iter().find(|values| values.name() == text);
                values = Some(found.ok_or_else(|| {
                    wrong(format!(
                        "values must be general, symmetric, single, few, many or ones, found {text:?}"
                    ))
                })?);
            } else {
                let known: Vec<&str> = kind.parameters.iter().map(|p| p.name).collect();
                let known = known.join(", ");
                return Err(wrong(format!("{name} takes {known}, {OPTIONS}, not {key:?}")));
            }
        }
        let class = Class::from_parts(name, &sizes).expect("every kind has a class");
        let spec = Self { drop, order, unknowns, ..Self::new(class).with_seed(seed) };
        match values {
            Some(values) => spec.with_values(values),
            None => Ok(spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_read_back() {
        for kind in kinds() {
            let spec: Spec = kind.name.parse().unwrap();
            assert_eq!(spec.class().parts().0, kind.name);
            assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec);
            let other = spec.with_seed(77).with_values(Values::Ones).unwrap();
            assert_eq!(other.to_string().parse::<Spec>().unwrap(), other);
        }
        let label = "mesh2[n=9,seed=3,drop=4,order=rcm,unknowns=2,values=many]";
        assert_eq!(label.parse::<Spec>().unwrap().to_string(), label);
        let spec: Spec = "banded[ n=9, upper=0]".parse().unwrap();
        assert_eq!(*spec.class(), Class::Banded { n: 9, lower: 5, upper: 0 });
        assert_eq!(spec.values(), Values::General);
        assert_eq!(spec.to_string(), "banded[n=9,lower=5,upper=0]");
    }

    #[test]
    fn wrong_labels_are_explained() {
        for (label, word) in [
            ("stencil27[m=3]", "\"m\""),
            ("stencil27[order=backward]", "backward"),
            ("stencil27[unknowns=few]", "number"),
            ("stencil27[n=x]", "number"),
            ("stencil27[n=3", "brackets"),
            ("uniform[values=symmetric]", "symmetric"),
            ("road[values=twos]", "twos"),
            ("nosuch[n=3]", "diagonal"),
        ] {
            let error = label.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(word), "{label}: {error}");
        }
    }

    #[test]
    fn classes_have_their_sizes() {
        for (label, rows, cols, entries) in [
            ("diagonal[n=7]", 7, 7, 7),
            ("powerlaw[rows=5000,cols=700,entries=20000,longest=300]", 5000, 700, 20_000),
            ("powerlaw[rows=5000,cols=9000,entries=1000,longest=30]", 5000, 9000, 1000),
            ("road[n=3000,edges=4200]", 3000, 3000, 8400),
            ("circuit[n=4000,entries=30000,dense=2,longest=3500]", 4000, 4000, 30_000),
            ("uniform[rows=30,cols=2000,entries=900]", 30, 2000, 900),
            ("uniform[rows=0,cols=5,entries=0]", 0, 5, 0),
            ("blocks[n=3,block=2]", 54, 54, 7 * 7 * 7 * 4),
            ("stencil27[n=3,unknowns=2,order=rcm]", 54, 54, 7 * 7 * 7 * 4),
            ("ratings[rows=3000,cols=200,entries=9000,longest=150]", 3000, 200, 9000),
            ("hosts[n=3000,entries=20000,longest=400]", 3000, 3000, 20_000),
            ("lp[rows=400,cols=3000,entries=9000,dense=2,longest=900]", 400, 3000, 9000),
            ("markov[states=3,queues=3,order=random]", 27, 27, 27 + 2 * 3 * 18 + 2 * 12),
        ] {
            let spec: Spec = label.parse().unwrap();
            let matrix = spec.generate::<f64>().unwrap();
            assert_eq!(
                (matrix.rows(), matrix.cols(), matrix.nnz()),
                (rows, cols, entries),
                "{label}"
            );
            assert!(matrix.values().iter().all(|&v| v != 0.0 && v.abs() <= 1.0));
        }
    }

    #[test]
    fn contradictions_are_errors() {
        for label in [
            "uniform[rows=3,cols=3,entries=9]",
            "uniform[rows=0,cols=3,entries=1]",
            "powerlaw[cols=10,longest=11]",
            "powerlaw[rows=10,cols=10,entries=200,longest=10]",
            "road[n=10,edges=1000]",
            "road[n=0,edges=1]",
            "circuit[n=10,longest=11]",
            "circuit[n=10,entries=12,dense=1,longest=9]",
            "stencil27[n=5000]",
            "stencil5[n=5,drop=101]",
            "stencil5[n=5,unknowns=0]",
            "uniform[rows=3,cols=4,entries=2,unknowns=2]",
            "uniform[rows=3,cols=4,entries=2,order=random]",
            "rmat[scale=5,edges=10,order=rcm]",
            "rmat[scale=31,edges=4611686018427387904]",
            "power[n=4611686018427387904]",
            "kkt[n=3,constraints=4611686018427387904]",
            "lp[rows=4611686018427387904,cols=10,entries=4,dense=4611686018427387904,longest=0]",
            "atoms[n=4611686018427387904]",
            "mesh3[n=100000]",
            "blockdiagonal[n=4611686018427387904]",
            "arrow[n=100000,width=100000]",
            "banded[n=100000,lower=100000,upper=0]",
            // Refused before anything of that size is computed or allocated.
            "powerlaw[rows=10,cols=18446744073709551615,entries=10,longest=3]",
            "powerlaw[rows=1,cols=1000000000000,entries=1000000000000,longest=1000000000000]",
            "powerlaw[rows=4611686018427387904,entries=0]",
            "road[n=4611686018427387904,edges=0]",
            "circuit[n=4611686018427387904,entries=0,dense=4611686018427387904,longest=0]",
            "uniform[rows=4611686018427387904,cols=4611686018427387904,entries=0]",
        ] {
            assert!(label.parse::<Spec>().unwrap().generate::<f64>().is_err(), "{label}");
        }
    }

    #[test]
    fn symmetric_values_mirror() {
        for label in ["road[n=500,edges=700,values=symmetric]", "stencil9[n=9]", "blocks[n=3]"] {
            let matrix = label.parse::<Spec>().unwrap().generate::<f64>().unwrap();
            let mirrored = matrix.iter().all(|(i, j, v)| matrix.get(j, i) == Some(v));
            assert!(mirrored, "{label}");
        }
    }
}

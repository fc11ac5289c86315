//! The procedures of R3 IV, alone, on data of their own instead of matrices (`transpose-primitives`).

use spm_formats::kernel::{Footprint, PlanError, RunError};
use spm_gpu::Stream;
use spm_gpu::transpose::primitives::{self, PreparedPrimitive};
use spm_testing::reference::ErrorMeasures;

use super::cache::Eviction;
use super::case::{Case, CaseSpec, Planned, exact, missing};
use super::plan::Resources;
use super::timing::{Sampling, Timing};
use crate::results::SYNTHETIC;

/// Name of the experiment.
pub const EXPERIMENT: &str = "transpose-primitives";

/// Elements that the report takes for figure 10, and for figures 6, 8 and 12.
const LENGTHS: [(&str, usize); 2] = [("index-to-pointers", 1_000_000), ("", 20_000_000)];

/// Elements for a procedure.
pub fn length(spec: &CaseSpec) -> usize {
    let of = |&&(id, _): &&(&str, usize)| id.is_empty() || id == spec.info.id;
    LENGTHS.iter().find(of).map_or(0, |&(_, length)| length)
}

/// What stands in the place of the matrix in `results.csv`.
pub fn name(length: usize) -> String {
    format!("{SYNTHETIC}keys-{length}")
}

/// Prepares a procedure.
///
/// # Errors
/// No such procedure, parameters that make no sense, no device, too little memory.
pub fn plan(
    spec: &CaseSpec,
    length: usize,
    resources: &Resources,
) -> Result<Planned<'static>, PlanError> {
    let primitive = primitives::find(spec.info.id).ok_or_else(|| missing(&spec.info))?;
    let device = resources.device().map_err(|reason| PlanError::device(reason.to_owned()))?;
    Planned::new(
        || primitive.prepare(device, length, &spec.parameters),
        |prepared| Ok(Procedure { prepared, stream: Stream::new(device)? }),
    )
}

struct Procedure {
    prepared: Box<dyn PreparedPrimitive>,
    stream: Stream,
}

impl Case for Procedure {
    fn footprint(&self) -> Footprint {
        let bytes = self.prepared.bytes_moved();
        Footprint { bytes_moved: bytes, plan_bytes: bytes, matrix_bytes: 0 }
    }

    fn choice(&self) -> Option<String> {
        None
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        Ok(exact(self.prepared.check(&self.stream)?))
    }

    fn time(&mut self, sampling: &Sampling, _: Option<&mut Eviction>) -> Result<Timing, RunError> {
        let prepared = &mut self.prepared;
        Ok(spm_gpu::time(&self.stream, sampling, |s| prepared.launch(s))?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use spm_formats::MemoryBudget;

    use super::*;
    use crate::bench::{experiments, timing::Scope};

    #[test]
    fn every_procedure_runs_with_every_block_on_the_emulator() {
        let resources = Resources::emulated(MemoryBudget::default());
        let experiment = experiments::find(EXPERIMENT).expect("it is listed");
        let cases = experiment.cases(2, None, Scope::Kernel);
        assert!(cases.len() > 15, "{}", cases.len());
        for spec in &cases {
            let mut planned = plan(spec, 1000, &resources).unwrap();
            let label = spec.info.label(&spec.parameters);
            assert!(planned.case.check().unwrap().acceptable(), "{label}");
            assert!(planned.case.footprint().bytes_moved > 4000, "{label}");
        }
        let once = Sampling {
            warm_up: 0,
            iterations: 1,
            min_time: Duration::ZERO,
            max_time: Duration::from_secs(1),
        };
        let timing = plan(&cases[0], 1000, &resources).unwrap().case.time(&once, None).unwrap();
        assert_eq!(timing.iterations, 1);
    }

    #[test]
    fn lengths_are_those_of_the_figures() {
        let experiment = experiments::find(EXPERIMENT).expect("it is listed");
        for spec in experiment.cases(2, None, Scope::Kernel) {
            let figure_10 = spec.info.id == "index-to-pointers";
            assert_eq!(length(&spec), if figure_10 { 1_000_000 } else { 20_000_000 });
        }
        assert_eq!(name(5), "synthetic:keys-5");
    }
}

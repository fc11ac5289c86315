//! The experiment matrix.

pub mod bandwidth;
pub mod cache;
pub mod case;
mod cpu;
pub mod environment;
pub mod estimate;
pub mod experiments;
pub mod gpu;
mod pacing;
pub mod plan;
pub mod procedures;
pub mod reading;
pub mod reports;
mod run;
pub mod runner;
pub mod settings;
pub mod timing;
pub mod unfinished;

pub use case::{Case, CaseSpec};
pub use experiments::{EXPERIMENTS, Experiment};
pub use plan::{Resources, plan};
pub use run::{Options, run};
pub use settings::Precision;
pub use timing::Scope;

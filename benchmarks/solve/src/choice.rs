//! The kernel that `auto` chooses for SpMV on CPU cores beside every kernel of the registry in each way to run it.

use std::error::Error;
use std::time::Instant;

use spm::{Csr, Rates, RatesFile};
use spm_cpu::PlanOptions;
use spm_cpu::spmv::{self, BoxedPlan, SpmvKernel};
use spm_formats::kernel::{Parameters, split_label};

/// Seconds of one sample of short products at least, and of all samples of one plan about.
const SAMPLE: f64 = 5e-5;
const ALL: f64 = 2e-2;
/// Samples of a plan at least and at most.
const SAMPLES: std::ops::RangeInclusive<usize> = 8..=30;
/// Kernels that are timed once more, in turns with what `auto` has chosen, and how many turns: the least of many times is
/// less than what each of them takes.
const FINALISTS: usize = 3;
const TURNS: usize = 3;
/// Times that `auto` plans. The time of planning is their median, and so is that of a product: one alone is what another guest
/// of the host has made of it.
const PLANS: usize = 3;
/// Parameters that say how a plan runs; each of their studied values is timed.
const WAYS: [&str; 2] = ["gather", "prefetch"];

pub fn head() {
    println!(
        "| matrix | threads | auto | us | planning ms | products | fastest kernel | us | fastest / auto |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: |");
}

pub fn run(name: &str, a: &Csr<f64>, threads: usize, rounds: usize) -> Result<(), Box<dyn Error>> {
    // The rates are measured once on a machine, which is no matrix's planning.
    let rates = Rates::of_this_machine(&RatesFile::default());
    let x: Vec<f64> = (0..a.cols()).map(|col| 0.5 + (col as f64 * 0.618).fract() / 2.0).collect();
    let mut y = vec![0.0; a.rows()];
    let auto = spmv::find::<f64>("auto").expect("a registered kernel");
    let pools: Vec<_> = crate::one_and(threads).map(PlanOptions::with_threads).collect();
    let all = &pools[pools.len() - 1];
    let planned = || {
        let start = Instant::now();
        let plan = auto.plan(a, &auto.info.defaults(), all)?;
        Ok::<_, Box<dyn Error>>((start.elapsed().as_secs_f64(), plan))
    };
    let (mut planning, mut chosen) = (Vec::new(), Vec::new());
    for _ in 0..PLANS {
        let (seconds, plan) = planned()?;
        planning.push(seconds);
        chosen.push((f64::INFINITY, plan.choice().unwrap_or_default(), plan));
    }
    let planning = crate::median(&mut planning, |&seconds| seconds);
    let mut finalists: Vec<(f64, String, BoxedPlan<'_, f64>)> = Vec::new();
    for (kernel, parameters) in candidates(&spmv::predict(a.view(), threads, &rates)) {
        for pool in &pools {
            let Ok(plan) = kernel.plan(a, &parameters, pool) else { continue };
            let of_kernel = seconds(&plan, &x, &mut y, rounds)?;
            let place = finalists.partition_point(|other| other.0 <= of_kernel);
            let threads = pool.threads.count();
            let label = format!("{} on {threads}", kernel.info.label(&parameters));
            finalists.insert(place, (of_kernel, label, plan));
            finalists.truncate(FINALISTS);
        }
    }
    finalists.iter_mut().for_each(|finalist| finalist.0 = f64::INFINITY);
    for _ in 0..TURNS {
        for (fastest, _, plan) in chosen.iter_mut().chain(&mut finalists) {
            *fastest = fastest.min(seconds(plan, &x, &mut y, rounds)?);
        }
    }
    // Two plans of one kernel run the same instructions: what is between their times is what else the host did.
    for (of_choice, choice, _) in &mut chosen {
        let is_same =
            |of: &str| choice.strip_prefix(of).is_some_and(|on| on.starts_with(" thread"));
        let of_same = finalists.iter().filter(|of| is_same(&of.1)).map(|of| of.0);
        *of_choice = of_same.fold(*of_choice, f64::min);
    }
    chosen.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (of_auto, choice, _) = &chosen[PLANS / 2];
    let fastest = finalists.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let fastest = fastest.expect("a kernel that takes any matrix");
    println!(
        "| {name} | {threads} | {} | {:.2} | {:.2} | {:.0} | {} | {:.2} | {:.3} |",
        choice,
        of_auto * 1e6,
        planning * 1e3,
        planning / of_auto,
        fastest.1,
        fastest.0 * 1e6,
        fastest.0 / of_auto,
    );
    Ok(())
}

/// What may be the fastest: the kernels as the machine model would plan them, the other ones by default, each in all
/// of its ways.
fn candidates(predictions: &spmv::Predictions) -> Vec<(SpmvKernel<f64>, Parameters)> {
    let predicted = std::iter::once(&predictions.direct).chain(&predictions.converted);
    let mut labels: Vec<String> = predicted.map(|of| of.label.clone()).collect();
    for SpmvKernel { info, .. } in spmv::registry::<f64>() {
        if info.id != "auto" && !labels.iter().any(|label| split_label(label).0 == info.id) {
            labels.push(info.label(&info.defaults()));
        }
    }
    let of = |label: String| {
        let (id, text) = split_label(&label);
        let kernel = spmv::find::<f64>(id).expect("a registered kernel");
        let mut ways = vec![kernel.info.parse_parameters(text).expect("parameters of the kernel")];
        for spec in kernel.info.parameters.iter().filter(|spec| WAYS.contains(&spec.name)) {
            let each = |way: &Parameters| {
                let way = way.clone();
                spec.studied.iter().map(move |&value| way.clone().with(spec.name, value))
            };
            ways = ways.iter().flat_map(each).collect();
        }
        ways.into_iter().map(move |way| (kernel, way)).collect::<Vec<_>>()
    };
    labels.into_iter().flat_map(of).collect()
}

/// Seconds of the fastest product in so many rounds.
fn seconds(
    plan: &BoxedPlan<'_, f64>,
    x: &[f64],
    y: &mut [f64],
    rounds: usize,
) -> Result<f64, Box<dyn Error>> {
    let mut timed = |calls: usize| -> Result<f64, Box<dyn Error>> {
        let start = Instant::now();
        for _ in 0..calls {
            plan.run(x, y)?;
        }
        Ok(start.elapsed().as_secs_f64() / calls as f64)
    };
    timed(1)?;
    let calls = (SAMPLE / timed(1)?.max(1e-9)).ceil().max(1.0) as usize;
    let mut fastest = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        for sample in 1..=*SAMPLES.end() {
            fastest = fastest.min(timed(calls)?);
            if sample >= *SAMPLES.start() && start.elapsed().as_secs_f64() > ALL {
                break;
            }
        }
    }
    Ok(fastest)
}

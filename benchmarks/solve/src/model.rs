//! What the machine model predicts beside what the clock says.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use spm::{Csr, Operator, Rates, RatesFile, Recipe};
use spm_cpu::spmv::{self, Prediction};

pub fn head() {
    let start = Instant::now();
    let rates = Rates::of_this_machine(&RatesFile::none());
    println!("The machine was measured in {:.0} ms:\n", start.elapsed().as_secs_f64() * 1e3);
    println!("```\n{rates}```\n");
    println!(
        "| matrix | threads | kernel | predicted us | measured us | ratio | planning ms predicted | \
         measured | ratio |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
}

pub fn run(name: &str, a: &Csr<f64>, threads: usize, rounds: usize) -> Result<(), Box<dyn Error>> {
    let a = Arc::new(a.clone());
    let rates = Rates::of_this_machine(&RatesFile::none());
    let start = Instant::now();
    let predictions = spmv::predict(a.view(), threads, &rates);
    let predicting = start.elapsed().as_secs_f64();
    for of in std::iter::once(&predictions.direct).chain(&predictions.converted) {
        let Prediction { label, threads, seconds, planning, .. } = of;
        let recipe: Recipe = format!("cpu {label} on {threads} threads").parse()?;
        let (mut planned, mut measured) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..rounds {
            let start = Instant::now();
            let op = Operator::builder(Arc::clone(&a)).recipe(recipe.clone()).build()?;
            planned = planned.min(start.elapsed().as_secs_f64());
            measured = measured.min(op.measure().map_or(f64::NAN, |time| time.as_secs_f64()));
        }
        println!(
            "| {name} | {threads} | {label} | {:.1} | {:.1} | {:.2} | {:.3} | {:.3} | {:.2} |",
            seconds * 1e6,
            measured * 1e6,
            seconds / measured,
            planning * 1e3,
            planned * 1e3,
            planning / planned,
        );
    }
    let start = Instant::now();
    let op =
        Operator::builder(Arc::clone(&a)).recipe(format!("cpu auto on {threads} threads").parse()?);
    let op = op.build()?;
    let raced = start.elapsed().as_secs_f64();
    let measured = op.measure().map_or(f64::NAN, |time| time.as_secs_f64());
    println!(
        "| {name} | {threads} | the race: {} | | {:.1} | | {:.3} | {:.3} | {:.2} |",
        op.recipe().kernel(),
        measured * 1e6,
        predictions.race * 1e3,
        raced * 1e3,
        predictions.race / raced,
    );
    println!("| {name} | {threads} | predicting | | | | | {:.3} | |", predicting * 1e3);
    Ok(())
}

//! The time of 1, 10, 100 and 1000 products, planning included.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use spm::Csr;

use crate::peers::{NAMES, Peers};
use crate::{median, operator};

const COUNTS: [u64; 4] = [1, 10, 100, 1000];
/// Seconds of products of one library and round; the time of more is extrapolated from the last ones.
const MOST: f64 = 0.4;

pub fn head() {
    println!(
        "| matrix | threads | products | expected ms | default ms | best peer ms | best peer | \
         best peer / expected | best peer / default | expected: recipe |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- |");
}

/// Seconds of `count` calls, of which as many are made as [`MOST`] allows.
fn calls(count: u64, mut call: impl FnMut()) -> f64 {
    let (start, mut made, mut before) = (Instant::now(), 0, 0.0);
    while made < count {
        let seconds = start.elapsed().as_secs_f64();
        // What planning between the calls took is not extrapolated.
        if seconds > MOST && made >= 20 {
            return seconds + (count - made) as f64 * (seconds - before) / 10.0;
        }
        if made % 10 == 0 {
            before = seconds;
        }
        call();
        made += 1;
        while made % 10 != 0 && made < count {
            call();
            made += 1;
        }
    }
    start.elapsed().as_secs_f64()
}

pub fn run(name: &str, a: &Csr<f64>, threads: usize, rounds: usize) -> Result<(), Box<dyn Error>> {
    let a = Arc::new(a.clone());
    let peers = Peers::new(&a)?;
    let (x, mut y) = (vec![1.0; a.cols()], vec![0.0; a.rows()]);
    for count in COUNTS {
        let mut recipe = String::new();
        let mut of_spm = |count, products: Option<u64>, y: &mut [f64]| {
            let start = Instant::now();
            let op = operator(&a, threads, products);
            let planning = start.elapsed().as_secs_f64();
            let product = || op.apply(black_box(&x), black_box(&mut *y)).expect("right lengths");
            let seconds = planning + calls(count, product);
            if products.is_some() {
                recipe = op.recipe().to_string();
            }
            seconds
        };
        let sides = 2 + NAMES.len();
        let mut times = vec![Vec::new(); sides];
        for turn in 0..rounds * sides {
            let side = turn % sides;
            let mut of_side = |count| match side {
                0 | 1 => of_spm(count, (side == 0).then_some(count), &mut y),
                _ => calls(count, || {
                    peers.product(side - 2, threads, black_box(&x), black_box(&mut y));
                }),
            };
            // What the side before has left in the caches is no matter: one product does not fill a third-level
            // cache that takes what the second one evicts.
            for _ in 0..3 {
                of_side(1);
            }
            times[side].push(of_side(count));
        }
        let seconds: Vec<f64> = times.iter_mut().map(|times| median(times, |&time| time)).collect();
        let best = (2..seconds.len()).min_by(|&a, &b| seconds[a].total_cmp(&seconds[b]));
        let best = best.expect("libraries");
        println!(
            "| {name} | {threads} | {count} | {:.3} | {:.3} | {:.3} | {} | {:.2} | {:.2} | {recipe} |",
            seconds[0] * 1e3,
            seconds[1] * 1e3,
            seconds[best] * 1e3,
            NAMES[best - 2],
            seconds[best] / seconds[0],
            seconds[best] / seconds[1],
        );
    }
    Ok(())
}

//! Single products: alpha and beta, residuals, new values, the transpose, a matrix of 9 rows.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use spm::{Csr, Operator, Recipe, sprs};

use crate::peers::Peers;

pub fn head() -> Result<(), Box<dyn Error>> {
    tiny()?;
    println!(
        "\n| matrix | threads | kernel | y = A x us | y = 2 A x - y | r = b - A x | copy, then -A x + r | \
         new values copied, in products | swapped | planning anew / new values and a product |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    Ok(())
}

/// Least seconds of each call, the calls in turn.
fn least<const N: usize>(rounds: usize, mut calls: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut times = [f64::INFINITY; N];
    for call in &mut calls {
        call();
    }
    for _ in 0..rounds {
        for (time, call) in times.iter_mut().zip(&mut calls) {
            // The others have taken its place in the caches.
            call();
            let start = Instant::now();
            let mut count = 0;
            while count < 3 || start.elapsed().as_secs_f64() < 5e-4 {
                let start = Instant::now();
                call();
                *time = time.min(start.elapsed().as_secs_f64());
                count += 1;
            }
        }
    }
    times
}

pub fn run(name: &str, a: &Csr<f64>, threads: usize, rounds: usize) -> Result<(), Box<dyn Error>> {
    let a = Arc::new(a.clone());
    let recipe = |kernel: &str| format!("cpu {kernel} on {threads} threads").parse::<Recipe>();
    let (x, b) = (vec![1.0; a.cols()], vec![1.0; a.rows()]);
    let kernels =
        ["csr-nnz-balanced", "csr-compact", "sell-compact", "sell-symmetric", "sell-tiles"];
    for kernel in kernels {
        let build =
            |a: Arc<Csr<f64>>| Operator::builder(a).recipe(recipe(kernel).expect("a recipe"));
        let start = Instant::now();
        let Ok(op) = build(Arc::clone(&a)).build() else { continue };
        let planning = start.elapsed().as_secs_f64();
        let mut ys = [(); 4].map(|()| vec![0.0; a.rows()]);
        let [y, z, r, copied] = &mut ys;
        let [plain, scaled, residual, copy] = least(
            rounds * 3,
            [
                &mut || op.apply(black_box(&x), y).expect("right lengths"),
                &mut || op.apply_scaled(2.0, black_box(&x), -1.0, z).expect("right lengths"),
                &mut || op.residual(black_box(&b), black_box(&x), r).expect("right lengths"),
                &mut || {
                    copied.copy_from_slice(black_box(&b));
                    op.apply_scaled(-1.0, black_box(&x), 1.0, copied).expect("right lengths");
                },
            ],
        );
        drop(op);
        let mut op = build(Arc::new((*a).clone())).build()?;
        let mut values = a.values().to_vec();
        let (mut copying, mut swapping) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..rounds + 1 {
            let start = Instant::now();
            op.set_values(black_box(&values))?;
            copying = copying.min(start.elapsed().as_secs_f64());
        }
        for _ in 0..rounds + 1 {
            let start = Instant::now();
            op.swap_values(black_box(&mut values))?;
            swapping = swapping.min(start.elapsed().as_secs_f64());
        }
        println!(
            "| {name} | {threads} | {kernel} | {:.1} | {:.3} | {:.3} | {:.3} | {:.2} | {:.2} | {:.2} |",
            plain * 1e6,
            scaled / plain,
            residual / plain,
            copy / plain,
            copying / plain,
            swapping / plain,
            (planning + plain) / (copying + plain),
        );
    }
    transposed(name, &a, threads, rounds)
}

fn transposed(
    name: &str,
    a: &Arc<Csr<f64>>,
    threads: usize,
    rounds: usize,
) -> Result<(), Box<dyn Error>> {
    let peers = Peers::new(a)?;
    let build = |products: u64| {
        let builder = Operator::builder(Arc::clone(a)).threads(threads);
        builder.expected_products(products).build()
    };
    let (direct, copied) = (build(1)?, build(1_000_000)?);
    let x = vec![1.0; a.rows()];
    let mut ys = [(); 3].map(|()| vec![0.0; a.cols()]);
    let [y, z, of_faer] = &mut ys;
    let [straight, from_copy, faer] = least(
        rounds,
        [
            &mut || direct.apply_transpose(black_box(&x), y).expect("right lengths"),
            &mut || copied.apply_transpose(black_box(&x), z).expect("right lengths"),
            &mut || peers.transposed(threads, black_box(&x), of_faer),
        ],
    );
    let recipe = copied.describe().transposed_recipe.map(|recipe| recipe.to_string());
    println!(
        "| {name} | {threads} | y = A^T x: {:.1} us straight, {:.1} us planned ({}), faer {:.1} us; faer / \
         straight {:.2}, faer / planned {:.2} | | | | | | | |",
        straight * 1e6,
        from_copy * 1e6,
        recipe.unwrap_or_else(|| "without a copy".to_owned()),
        faer * 1e6,
        faer / straight,
        faer / from_copy,
    );
    Ok(())
}

/// A tridiagonal matrix of 9 rows.
fn tiny() -> Result<(), Box<dyn Error>> {
    let entries = (0..9_usize).flat_map(|i| {
        (i.saturating_sub(1)..(i + 2).min(9)).map(move |j| (i, j, 1.0 + (i + j) as f64))
    });
    let a = spm::from_triplets((9, 9), entries)?;
    let of_sprs: sprs::CsMat<f64> = {
        let to_usize = |indices: &[u32]| indices.iter().map(|&i| i as usize).collect::<Vec<_>>();
        let values = a.values().to_vec();
        sprs::CsMat::new(a.shape(), to_usize(a.row_ptr()), to_usize(a.col_ind()), values)
    };
    let op = Operator::new(a)?;
    let (x, mut y) = ([1.0; 9], [0.0; 9]);
    let mut best = |call: &mut dyn FnMut(&[f64], &mut [f64])| {
        let sample = || {
            let start = Instant::now();
            (0..10_000).for_each(|_| call(black_box(&x), black_box(&mut y)));
            start.elapsed().as_secs_f64() / 10_000.0
        };
        let mut samples: Vec<f64> = std::iter::repeat_with(sample).take(101).collect();
        samples.sort_by(f64::total_cmp);
        (samples[0] * 1e9, samples[50] * 1e9)
    };
    let (least, median) = best(&mut |x, y| op.apply(x, y).expect("right lengths"));
    println!("9 x 9: y = A x takes {median:.0} ns (least {least:.0}) with spm");
    let (least, median) = best(&mut |x, y| op.apply_scaled(2.0, x, 1.0, y).expect("right lengths"));
    println!("9 x 9: y = 2 A x + y takes {median:.0} ns (least {least:.0}) with spm");
    let (least, median) = best(&mut |x, y| {
        y.fill(0.0);
        sprs::prod::mul_acc_mat_vec_csr(of_sprs.view(), x, y);
    });
    println!("9 x 9: y = A x takes {median:.0} ns (least {least:.0}) with sprs");
    Ok(())
}

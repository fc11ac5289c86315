//! What holds for any matrix, whichever kernel computes it: on the emulator, with small matrices.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use spm_formats::convert::coo_to_csr;
use spm_formats::kernel::TransposeOutput;
use spm_formats::{Coo, Csr, DenseShape, Layout};
use spm_gpu::{Device, PlanOptions, spmm, spmv, transpose};
use spm_testing::edge_cases::vector;
use spm_testing::reference;

use crate::common::planned;
use crate::common::spmm::run as spmm_run;
use crate::common::spmv::run as spmv_run;
use crate::common::transpose::run as transpose_run;
use crate::devices::{emulator, for_any_matrix};

/// Seeded matrices of up to 40 x 40, without duplicates, with dense and with empty rows.
fn matrices() -> impl Iterator<Item = (u64, Coo<f64>)> {
    (1..=6).map(|seed| {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let (rows, cols) = (rng.random_range(1..41_u32), rng.random_range(1..41_u32));
        let entries: BTreeMap<(u32, u32), f64> = (0..rng.random_range(0..200))
            .map(|i| {
                let row = if i % 4 == 0 { rows / 2 } else { rng.random_range(0..rows) };
                ((row, rng.random_range(0..cols)), rng.random_range(-1.0..1.0))
            })
            .collect();
        let (r, c) = entries.keys().copied().unzip();
        let values = entries.into_values().collect();
        (seed, Coo::new(rows as usize, cols as usize, r, c, values).unwrap())
    })
}

/// `None` where a matrix has more diagonals than the kernel takes.
fn product(
    device: &Device,
    kernel: &spmv::SpmvKernel<f64>,
    a: &Csr<f64>,
    x: &[f64],
) -> Option<Vec<f64>> {
    let (parameters, options) = (for_any_matrix(&kernel.info), PlanOptions::default());
    let plan = kernel.plan(device, a.view(), &parameters, &options);
    let mut plan = planned(kernel.info.id, plan)?;
    Some(spmv_run(&mut *plan, x).unwrap())
}

fn dense_product(
    device: &Device,
    kernel: &spmm::SpmmKernel<f64>,
    a: &Csr<f64>,
    dense: DenseShape,
    x: &[f64],
) -> Vec<f64> {
    let (parameters, options) = (for_any_matrix(&kernel.info), PlanOptions::default());
    let mut plan = kernel.plan(device, a.view(), dense, &parameters, &options).unwrap();
    spmm_run(&mut *plan, x).unwrap()
}

fn spmv_kernels() -> Vec<spmv::SpmvKernel<f64>> {
    spmv::registry().into_iter().filter(|kernel| !kernel.baseline).collect()
}

fn spmm_kernels() -> Vec<spmm::SpmmKernel<f64>> {
    spmm::registry().into_iter().filter(|kernel| !kernel.baseline).collect()
}

#[test]
fn transposing_twice_changes_nothing() {
    for (seed, a) in matrices() {
        let (device, a) = (emulator(seed), coo_to_csr(&a));
        for kernel in transpose::registry::<f64>().iter().filter(|kernel| !kernel.baseline) {
            let transposed = |a: &Csr<f64>| {
                let (parameters, options) = (kernel.info.defaults(), PlanOptions::default());
                let plan = kernel.plan(&device, a.view(), &parameters, &options);
                let output = transpose_run(&mut *plan.unwrap()).unwrap();
                let TransposeOutput { col_ptr, row_ind, values } = output;
                Csr::new((a.cols(), a.rows()), col_ptr, row_ind, values).unwrap()
            };
            assert!(transposed(&transposed(&a)) == a, "{}, seed {seed}", kernel.info.id);
        }
    }
}

/// (A X) e_j = A (X e_j).
#[test]
fn a_column_of_the_product_is_the_product_of_the_column() {
    for (seed, a) in matrices() {
        let (device, matrix) = (emulator(seed), coo_to_csr(&a));
        let (rows, cols) = matrix.shape();
        let k = 1 + seed as usize;
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let at = |height: usize, i: usize, j: usize| match layout {
                Layout::RowMajor => i * k + j,
                Layout::ColumnMajor => j * height + i,
            };
            let x = vector::<f64>(cols * k);
            for kernel in spmm_kernels() {
                let y = dense_product(&device, &kernel, &matrix, DenseShape { k, layout }, &x);
                for j in 0..k {
                    let column: Vec<f64> = (0..cols).map(|i| x[at(cols, i, j)]).collect();
                    let computed: Vec<f64> = (0..rows).map(|i| y[at(rows, i, j)]).collect();
                    let errors = reference::compare(&computed, &reference::spmv(&a, &column));
                    assert!(errors.acceptable(), "{} {layout:?}: {errors:?}", kernel.info.id);
                }
            }
        }
    }
}

/// The rows of P A times x are those of A times x, permuted.
#[test]
fn permuted_rows_give_a_permuted_product() {
    for (seed, a) in matrices() {
        let (device, rows) = (emulator(seed), a.rows());
        let place = |row: usize| (row + rows / 3) % rows;
        let moved = a.row_ind().iter().map(|&row| place(row as usize) as u32).collect();
        let (columns, values) = (a.col_ind().to_vec(), a.values().to_vec());
        let permuted = Coo::new(rows, a.cols(), moved, columns, values).unwrap();
        let (matrix, permuted_matrix) = (coo_to_csr(&a), coo_to_csr(&permuted));
        let x = vector::<f64>(a.cols());
        let expected = reference::spmv(&permuted, &x);
        for kernel in spmv_kernels() {
            let moved = product(&device, &kernel, &matrix, &x).map(|y| {
                let mut moved = vec![0.0; rows];
                y.into_iter().enumerate().for_each(|(row, y)| moved[place(row)] = y);
                moved
            });
            let z = product(&device, &kernel, &permuted_matrix, &x);
            for result in [z, moved].into_iter().flatten() {
                let errors = reference::compare(&result, &expected);
                assert!(errors.acceptable(), "{}, seed {seed}: {errors:?}", kernel.info.id);
            }
        }
    }
}

/// What `auto` chooses is as far from any other kernel as two right results may be.
#[test]
fn auto_agrees_with_every_kernel() {
    let around = |y: Vec<f64>, reference| reference::Reference { values: y, ..reference };
    for (seed, a) in matrices() {
        let (device, matrix) = (emulator(seed), coo_to_csr(&a));
        let x = vector::<f64>(a.cols());
        let auto = product(&device, &spmv::find("auto").unwrap(), &matrix, &x).unwrap();
        let expected = around(auto, reference::spmv(&a, &x));
        for kernel in spmv_kernels() {
            let Some(y) = product(&device, &kernel, &matrix, &x) else { continue };
            let errors = reference::compare(&y, &expected);
            assert!(errors.bound <= 2.0 * reference::BOUND_LIMIT, "{}: {errors:?}", kernel.info.id);
        }
        let dense = DenseShape { k: 3, layout: Layout::RowMajor };
        let x = vector::<f64>(a.cols() * 3);
        let auto = dense_product(&device, &spmm::find("auto").unwrap(), &matrix, dense, &x);
        let expected = around(auto, reference::spmm(&a, &x, dense));
        for kernel in spmm_kernels() {
            let y = dense_product(&device, &kernel, &matrix, dense, &x);
            let errors = reference::compare(&y, &expected);
            assert!(errors.bound <= 2.0 * reference::BOUND_LIMIT, "{}: {errors:?}", kernel.info.id);
        }
    }
}

/// Block by block and warp by warp in another order: the same bits, as `spm_gpu::spmv` promises.
#[test]
fn the_order_of_blocks_and_warps_changes_no_bit() {
    let bits = |y: Vec<f64>| y.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    for (seed, a) in matrices() {
        let matrix = coo_to_csr(&a);
        let x = vector::<f64>(a.cols() * 3);
        let devices = [0, 100, 200].map(|more| emulator(seed + more));
        for kernel in spmv_kernels().iter().filter(|kernel| kernel.info.id != "auto") {
            let [y, others @ ..] = devices
                .each_ref()
                .map(|device| product(device, kernel, &matrix, &x[..a.cols()]).map(bits));
            assert!(others.iter().all(|other| *other == y), "{}, seed {seed}", kernel.info.id);
        }
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let dense = DenseShape { k: 3, layout };
            for kernel in spmm_kernels().iter().filter(|kernel| kernel.info.id != "auto") {
                let [y, others @ ..] = devices
                    .each_ref()
                    .map(|device| bits(dense_product(device, kernel, &matrix, dense, &x)));
                assert!(others.iter().all(|other| *other == y), "{}, seed {seed}", kernel.info.id);
            }
        }
    }
}

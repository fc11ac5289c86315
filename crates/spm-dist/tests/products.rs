//! Products on 1, 2, 3, 4 and 7 ranks that are threads, with messages delayed by several seeds, against
//! one device and against the reference.

mod common;

use common::{RANKS, by_rank, distribute, gathered, matrices, sliced};
use spm_cpu::{PlanOptions, spmm, spmv};
use spm_dist::threads::{Delivery, run, run_with};
use spm_dist::{Communicator, DistCsr, DistOperator, Kernel, Options, Partition, Rows};
use spm_formats::kernel::Scaling;
use spm_formats::{Csr, DenseShape, Layout};
use spm_testing::edge_cases::vector;

/// Kernels that sum each row by itself.
const ROW_WISE: [&str; 4] =
    ["csr-serial", "csr-rows[simd=off]", "csr-nnz-balanced", "csr-nnz-balanced[simd=off]"];

/// Ranks, and the seed that delays messages.
const SEEDED: [(usize, Option<u64>); 3] = [(3, Some(1)), (4, Some(2)), (7, Some(3))];

fn fixed(label: &str) -> Options {
    let mut options = Options::default();
    options.kernel = Kernel::Fixed(label.to_owned());
    options
}

/// y = alpha A x + beta y on one device.
fn on_one_device(a: &Csr<f64>, label: &str, scaling: Scaling<f64>, x: &[f64], y: &mut [f64]) {
    let (id, parameters) = spm_formats::kernel::split_label(label);
    let kernel = spmv::find::<f64>(id).unwrap();
    let parameters = kernel.info.parse_parameters(parameters).unwrap();
    let plan = kernel.plan(a.view(), &parameters, &PlanOptions::with_threads(1)).unwrap();
    plan.run_scaled(scaling, x, y).unwrap();
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_bit_is_that_of_one_device() {
    let scalings = [Scaling::OVERWRITE, Scaling::new(-0.3, 1.7), Scaling::new(0.0, 0.5)];
    let cases = || ROW_WISE.iter().flat_map(|label| scalings.map(|scaling| (*label, scaling)));
    for (name, a) in matrices() {
        let x = vector::<f64>(a.cols());
        let before = vector::<f64>(a.rows() + 3)[3..].to_vec();
        for (ranks, seed) in RANKS.map(|ranks| (ranks, None)).into_iter().chain(SEEDED) {
            let parts = run_with(ranks, Delivery { seed }, |comm| {
                let mine = distribute(comm, &a)?;
                let x = sliced(&x, mine.col_partition(), comm.rank(), 1);
                let product = |(label, scaling): (&str, Scaling<f64>)| {
                    let mut y = sliced(&before, mine.row_partition(), comm.rank(), 1);
                    let mut op = DistOperator::new(comm, mine.clone(), &fixed(label))?;
                    op.apply_scaled(scaling.alpha, &x, scaling.beta, &mut y)?;
                    Ok(y)
                };
                cases().map(product).collect::<Result<Vec<_>, _>>()
            });
            let parts = parts.unwrap();
            for (case, (label, scaling)) in cases().enumerate() {
                let mut expected = before.clone();
                on_one_device(&a, label, scaling, &x, &mut expected);
                let found = by_rank(&parts, |part| &part[case]);
                let context = format!("{name} {label} {scaling:?} {ranks} {seed:?}");
                assert_eq!(bits(&found), bits(&expected), "{context}");
            }
        }
    }
}

#[test]
fn residuals_and_repeated_products_overlapped_or_not() {
    for (name, a) in matrices() {
        let (x, b) = (vector::<f64>(a.cols()), vector::<f64>(a.rows()));
        let mut expected = b.clone();
        on_one_device(&a, "csr-serial", Scaling::new(-1.0, 1.0), &x, &mut expected);
        for (ranks, overlap) in [(2, true), (2, false), (3, true), (7, false)] {
            let parts = run_with(ranks, Delivery { seed: Some(9) }, |comm| {
                let a = distribute(comm, &a)?;
                let x = sliced(&x, a.col_partition(), comm.rank(), 1);
                let b = sliced(&b, a.row_partition(), comm.rank(), 1);
                let mut r = vec![f64::NAN; b.len()];
                let mut options = fixed("csr-serial");
                options.overlap = overlap;
                let mut op = DistOperator::new(comm, a, &options)?;
                for _ in 0..5 {
                    op.residual(&x, &b, &mut r)?;
                }
                Ok(r)
            });
            assert_eq!(bits(&parts.unwrap().concat()), bits(&expected), "{name} {ranks}");
        }
    }
}

#[test]
fn wide_products_have_the_bits_of_one_device() {
    for (name, a) in matrices() {
        for k in [2, 5] {
            let x = vector::<f64>(a.cols() * k);
            let mut expected = vec![f64::NAN; a.rows() * k];
            let kernel = spmm::find::<f64>("csr-rows").unwrap();
            let dense = DenseShape { k, layout: Layout::RowMajor };
            let options = PlanOptions::with_threads(1);
            let plan = kernel.plan(a.view(), dense, &kernel.info.defaults(), &options).unwrap();
            plan.run(&x, &mut expected).unwrap();
            for (ranks, seed) in SEEDED {
                let parts = run_with(ranks, Delivery { seed }, |comm| {
                    let a = distribute(comm, &a)?;
                    let x = sliced(&x, a.col_partition(), comm.rank(), k);
                    let mut y = vec![f64::NAN; a.local_rows() * k];
                    let mut options = fixed("csr-rows");
                    options.columns = k;
                    DistOperator::new(comm, a, &options)?.apply(&x, &mut y)?;
                    Ok(y)
                });
                assert_eq!(bits(&parts.unwrap().concat()), bits(&expected), "{name} {k} {ranks}");
            }
        }
    }
}

/// Whole numbers, whose sums are exact in any order.
#[test]
fn any_kernel_and_the_transpose_are_exact_on_whole_numbers() {
    for (name, a) in matrices() {
        let a = a.map(|&value| (value * 8.0).round());
        let whole = |count: usize| (0..count).map(|i| (i % 7) as f64 - 2.0).collect::<Vec<f64>>();
        let (x, z) = (whole(a.cols()), whole(a.rows()));
        let mut expected = vec![0.0; a.rows()];
        on_one_device(&a, "csr-serial", Scaling::OVERWRITE, &x, &mut expected);
        let mut transposed = whole(a.cols());
        for (row, col, value) in a.iter() {
            transposed[col] += 2.0 * value * z[row];
        }
        for ranks in RANKS {
            for kernel in [Kernel::Auto, Kernel::Fixed("sell".to_owned())] {
                let mut options = Options::default();
                (options.kernel, options.transpose) = (kernel, true);
                let parts = run_with(ranks, Delivery { seed: Some(5) }, |comm| {
                    let a = distribute(comm, &a)?;
                    let slice = |all: &[f64], rows: &Partition| sliced(all, rows, comm.rank(), 1);
                    let (x, z) = (slice(&x, a.col_partition()), slice(&z, a.row_partition()));
                    let (mut y, mut t) =
                        (vec![f64::NAN; z.len()], whole(a.cols_before(comm) + x.len()));
                    t.drain(..a.cols_before(comm));
                    let mut op = DistOperator::new(comm, a, &options)?;
                    op.apply(&x, &mut y)?;
                    op.apply_transpose_scaled(2.0, &z, 1.0, &mut t)?;
                    assert_eq!(gathered(comm, op.kernel()).len(), 1);
                    Ok((y, t))
                });
                let parts = parts.unwrap();
                assert_eq!(by_rank(&parts, |part| &part.0), expected, "{name} {ranks}");
                assert_eq!(by_rank(&parts, |part| &part.1), transposed, "{name} {ranks}");
            }
        }
    }
}

/// Enough entries for several tiles on a rank, between which messages are advanced.
#[test]
fn several_tiles_are_one_product() {
    let a = spm_testing::generate::named("stencil27[n=24]").unwrap().generate::<f64>().unwrap();
    let a = a.map(|&value| (value * 8.0).round());
    let x: Vec<f64> = (0..a.cols()).map(|i| (i % 5) as f64 - 1.0).collect();
    let mut expected = vec![f64::NAN; a.rows()];
    on_one_device(&a, "csr-serial", Scaling::new(2.0, 0.0), &x, &mut expected);
    let mut transposed = vec![0.0; a.cols()];
    a.iter().for_each(|(row, col, value)| transposed[col] += value * x[row]);
    for (ranks, overlap) in [(1, true), (2, true), (2, false)] {
        let parts = run_with(ranks, Delivery { seed: Some(8) }, |comm| {
            let mine = distribute(comm, &a)?;
            let x = sliced(&x, mine.col_partition(), comm.rank(), 1);
            let (mut y, mut t) = (vec![f64::NAN; x.len()], vec![f64::NAN; x.len()]);
            let mut options = fixed("csr-nnz-balanced");
            (options.transpose, options.overlap) = (true, overlap);
            let mut op = DistOperator::new(comm, mine, &options)?;
            op.apply_scaled(2.0, &x, 0.0, &mut y)?;
            op.apply_transpose(&x, &mut t)?;
            let rows = op.matrix().to_rows();
            op.set_values(rows.values())?;
            op.apply_scaled(2.0, &x, 0.0, &mut y)?;
            Ok((y, t))
        });
        let parts = parts.unwrap();
        assert_eq!(by_rank(&parts, |part| &part.0), expected);
        assert_eq!(by_rank(&parts, |part| &part.1), transposed);
    }
}

/// Where a rank's columns begin.
trait Before {
    fn cols_before(&self, comm: &impl Communicator) -> usize;
}

impl Before for DistCsr<f64> {
    fn cols_before(&self, comm: &impl Communicator) -> usize {
        self.col_partition().range(comm.rank()).start as usize
    }
}

#[test]
fn new_values_take_the_place_of_the_old_ones() {
    for (name, a) in matrices() {
        let new = a.map(|&value| 1.0 - 3.0 * value);
        let x = vector::<f64>(a.cols());
        for label in ["csr-nnz-balanced", "sell", "sell-compact"] {
            let mut expected = vec![0.0; a.rows()];
            on_one_device(&new, "csr-serial", Scaling::OVERWRITE, &x, &mut expected);
            let mut options = fixed(label);
            options.transpose = true;
            let parts = run(3, |comm| {
                // All equal values may be stored once.
                let equal = a.map(|_| 1.0);
                let mine = distribute(comm, &equal)?;
                let values = distribute(comm, &new)?.to_rows().values().to_vec();
                let x = sliced(&x, mine.col_partition(), comm.rank(), 1);
                let mut y = vec![f64::NAN; mine.local_rows()];
                let mut op = DistOperator::new(comm, mine, &options)?;
                assert!(op.set_values(&[]).is_err() != values.is_empty());
                op.set_values(&values)?;
                op.apply(&x, &mut y)?;
                assert_eq!(op.matrix().to_rows().values(), values);
                // (A^T A x, y) with the new values on both sides.
                let mut t = vec![0.0; x.len()];
                op.apply_transpose(&y, &mut t)?;
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let mut products = [dot(&t, &x), dot(&y, &y)];
                comm.sum(&mut products)?;
                let [left, right] = products;
                assert!((left - right).abs() <= 1e-9 * right.abs().max(1.0), "{left} {right}");
                Ok(y)
            });
            for (found, expected) in parts.unwrap().concat().iter().zip(&expected) {
                let bound = 1e-12 * expected.abs().max(1e3);
                assert!((found - expected).abs() <= bound, "{name} {label}: {found} {expected}");
            }
        }
    }
}

#[test]
fn the_rows_come_back() {
    for (name, a) in matrices() {
        for ranks in RANKS {
            let parts = run(ranks, |comm| {
                let mine = distribute(comm, &a)?;
                let rows = mine.row_partition().range(comm.rank());
                assert_eq!(mine.to_rows(), Rows::of(a.view(), rows), "{name}");
                assert_eq!(mine.local_nnz(), mine.to_rows().nnz());
                Ok(mine.local_nnz())
            });
            assert_eq!(parts.unwrap().iter().sum::<usize>(), a.nnz());
        }
    }
}

//! Every transposition of the registry against the reference: the same bits.

use crate::common::{bits, csr, matrices, planned};
use proptest::prelude::*;
use spm_cpu::{PlanOptions, transpose};
use spm_formats::kernel::{RunError, TransposeOutput};
use spm_formats::{Complex, Coo, Scalar};
use spm_testing::{edge_cases, reference};

fn check_all<T: Scalar>(a: &Coo<T>) {
    let (col_ptr, row_ind, values) = reference::transpose(a);
    let expected = TransposeOutput { col_ptr, row_ind, values };
    let matrix = csr(a);
    for threads in [1, 2, 5] {
        let options = PlanOptions::with_threads(threads);
        for kernel in transpose::registry::<T>() {
            for parameters in kernel.info.variants() {
                let label = kernel.info.label(&parameters);
                let plan = kernel.plan(matrix.view(), &parameters, &options);
                let Some(mut plan) = planned(&label, plan) else { continue };
                assert_eq!((plan.shape(), plan.entries()), (matrix.shape(), matrix.nnz()));
                let (bytes, entry) = (plan.footprint().bytes_moved, 4 + T::BYTES);
                let words = 4 * (a.rows() + a.cols() + 2);
                assert_eq!(bytes, (words + 2 * matrix.nnz() * entry) as u64, "{label}");
                let mut output = TransposeOutput::<T>::new(a.cols(), matrix.nnz());
                // Twice: the second run meets what the first has left.
                for run in ["first", "second"] {
                    plan.run(&mut output).unwrap();
                    let case = format!("{label} on {threads} threads, {run} run");
                    assert!(output.col_ptr == expected.col_ptr, "{case}: pointers");
                    assert!(output.row_ind == expected.row_ind, "{case}: indices");
                    assert!(bits(&output.values) == bits(&expected.values), "{case}: values");
                }
            }
        }
    }
}

#[test]
fn hand_made_matrices() {
    for (rows, cols) in [(0, 0), (0, 3), (3, 0), (2, 2)] {
        check_all(&Coo::<f64>::empty(rows, cols).unwrap());
    }
    let (r, c, v) = (vec![0, 2, 1, 0, 2], vec![0, 0, 1, 2, 2], vec![1., 4., 3., 2., 5.]);
    check_all(&Coo::<f64>::new(3, 3, r, c, v).unwrap());
    let (r, c, v) =
        (vec![0, 1, 1, 2], vec![1, 0, 1, 1], vec![-0.0, f64::NAN, -f64::NAN, f64::INFINITY]);
    check_all(&Coo::<f64>::new(3, 2, r, c, v).unwrap());
    let column = (0..1000).collect::<Vec<u32>>();
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    check_all(&Coo::new(1000, 2, column.clone(), vec![1; 1000], values.clone()).unwrap());
    check_all(&Coo::new(2, 1000, vec![1; 1000], column, values).unwrap());
}

/// Enough entries in small buckets for groups that are full, shared and left over, and blocks of one column and more.
#[test]
fn buckets_and_blocks_of_any_size_give_the_same() {
    fn check<T: Scalar>() {
        let (rows, cols) = (700_u32, 900_u32);
        let entries = (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c)));
        let kept = entries.filter(|&(r, c)| (r * 31 + c * 17) % 23 < 3 || c == 5 || r == 8);
        let (r, c): (Vec<u32>, Vec<u32>) = kept.unzip();
        let values = (0..r.len()).map(|i| T::from_f64(i as f64)).collect();
        let a = Coo::new(rows as usize, cols as usize, r, c, values).unwrap();
        let (col_ptr, row_ind, values) = reference::transpose(&a);
        let expected = TransposeOutput { col_ptr, row_ind, values };
        let matrix = csr(&a);
        for (id, size) in [("radix", "bucket"), ("column-blocks", "block")] {
            let kernel = transpose::find::<T>(id).unwrap();
            for entries in [1, 64, 500, 5000, 1000000] {
                let parameters =
                    kernel.info.parse_parameters(&format!("{size}={entries}")).unwrap();
                for threads in [1, 2, 5] {
                    let options = PlanOptions::with_threads(threads);
                    let mut plan = kernel.plan(matrix.view(), &parameters, &options).unwrap();
                    let mut output = TransposeOutput::<T>::new(a.cols(), matrix.nnz());
                    for _ in 0..2 {
                        plan.run(&mut output).unwrap();
                        assert!(output == expected, "{id}[{size}={entries}], {threads} threads");
                    }
                }
            }
        }
    }
    check::<f64>();
    check::<f32>();
    check::<Complex<f64>>();
    check::<Complex<f32>>();
}

#[test]
fn wrong_lengths_are_errors() {
    let a = csr(&Coo::<f64>::empty(3, 3).unwrap());
    for kernel in transpose::registry() {
        let (options, defaults) = (PlanOptions::with_threads(2), kernel.info.defaults());
        let mut plan = kernel.plan(a.view(), &defaults, &options).unwrap();
        let error = plan.run(&mut TransposeOutput::new(2, 0));
        let what = "column pointers";
        assert_eq!(error, Err(RunError::Shape { what, expected: 4, found: 3 }));
    }
}

/// Most rows are empty, and most others have one entry, with none in the rows around.
#[test]
fn hypersparse_matrices() {
    check_all(&edge_cases::generated::<f64>("uniform[rows=9000,cols=500,entries=300]"));
}

/// Meshes in any order, dense rows and columns, rows without entries and without a diagonal.
#[test]
fn symmetric_patterns() {
    for name in [
        "mesh2[n=12]",
        "mesh3[n=7,order=random]",
        "arrow[n=300,width=2]",
        "road[n=400,edges=500]",
        "rmat-symmetric[scale=8,edges=900]",
        "blockdiagonal[n=90,size=7]",
    ] {
        let a = edge_cases::generated::<f64>(name);
        let matrix = csr(&a);
        let kernel = transpose::find::<f64>("symmetric-pattern").unwrap();
        let parameters = kernel.info.defaults();
        let options = PlanOptions::with_threads(3);
        assert!(kernel.plan(matrix.view(), &parameters, &options).is_ok(), "{name}");
        check_all(&a);
    }
    check_all(&edge_cases::generated::<Complex<f32>>("mesh2[n=9,order=random]"));
    // Square, and not symmetric.
    check_all(&edge_cases::generated::<f64>("rmat[scale=6,edges=300]"));
}

#[test]
fn complex_matrices() {
    check_all(&edge_cases::generated::<Complex<f64>>("uniform[rows=300,cols=200,entries=2000]"));
    check_all(&edge_cases::long_rows::<Complex<f32>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_matrices(a in matrices::<f64>(300, 3000)) {
        check_all(&a);
    }
}

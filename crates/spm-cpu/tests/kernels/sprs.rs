//! Matrices of `sprs`, whole and cut from larger ones, in every kernel.

use crate::common::{LAYOUTS, planned};
use spm_cpu::{PlanOptions, spmm, spmv, transpose};
use spm_formats::convert::csr_to_coo;
use spm_formats::kernel::TransposeOutput;
use spm_formats::sprs::CsMatI;
use spm_formats::{Coo, Csr, DenseShape};
use spm_testing::edge_cases::vector;
use spm_testing::{generate, reference};

/// Checks the kernels of all operations with a matrix whose triplets are `coo`.
fn check(a: &Csr<f64>, coo: &Coo<f64>) {
    let options = PlanOptions::with_threads(2);
    let x = vector(a.cols());
    let expected = reference::spmv(coo, &x);
    for kernel in spmv::registry() {
        let id = kernel.info.id;
        let plan = kernel.plan(a.view(), &kernel.info.defaults(), &options);
        let Some(plan) = planned(id, plan) else { continue };
        let mut y = vec![f64::NAN; a.rows()];
        plan.run(&x, &mut y).unwrap();
        assert!(reference::compare(&y, &expected).acceptable(), "{id}");
    }
    for dense in LAYOUTS.map(|layout| DenseShape { k: 3, layout }) {
        let x = vector(3 * a.cols());
        let expected = reference::spmm(coo, &x, dense);
        for kernel in spmm::registry() {
            let id = kernel.info.id;
            let plan = kernel.plan(a.view(), dense, &kernel.info.defaults(), &options);
            let Some(plan) = planned(id, plan) else { continue };
            let mut y = vec![f64::NAN; 3 * a.rows()];
            plan.run(&x, &mut y).unwrap();
            assert!(reference::compare(&y, &expected).acceptable(), "{id} {dense:?}");
        }
    }
    let (col_ptr, row_ind, values) = reference::transpose(coo);
    let expected = TransposeOutput { col_ptr, row_ind, values };
    for kernel in transpose::registry() {
        let plan = kernel.plan(a.view(), &kernel.info.defaults(), &options);
        let Some(mut plan) = planned(kernel.info.id, plan) else { continue };
        let mut output = TransposeOutput::new(a.cols(), a.nnz());
        plan.run(&mut output).unwrap();
        assert!(output == expected, "{}", kernel.info.id);
    }
}

#[test]
fn whole_matrices_and_slices_reach_every_kernel() {
    let label = "powerlaw[rows=900,cols=700,entries=9000,longest=300]";
    let matrix = generate::named(label).unwrap().generate::<f64>().unwrap();
    let coo = csr_to_coo(matrix.view());
    let triplets: Vec<_> = coo.iter().collect();
    let (pointers, columns, values) = matrix.into_arrays();
    let wide = |indices: Vec<u32>| indices.into_iter().map(|index| index as usize).collect();
    let matrix: CsMatI<f64, usize> = CsMatI::new((900, 700), wide(pointers), wide(columns), values);
    for rows in [0..900, 0..400, 333..777, 899..900, 450..450] {
        let kept = triplets.iter().filter(|(row, ..)| rows.contains(&(*row as usize)));
        let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
        for &(row, col, value) in kept {
            r.push(row - rows.start as u32);
            c.push(col);
            v.push(value);
        }
        let coo = Coo::new(rows.len(), 700, r, c, v).unwrap();
        let slice = matrix.slice_outer(rows);
        check(&Csr::try_from(slice.to_owned()).unwrap(), &coo);
    }
}

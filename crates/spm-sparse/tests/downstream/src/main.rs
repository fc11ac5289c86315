//! What programs do with an operator: keep it in a struct, share it between threads, make it of the
//! matrices that they have, multiply, change values, solve.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::thread;

use nalgebra_sparse::{CooMatrix, CscMatrix, CsrMatrix};
use ndarray::{Array1, Array2, s};
use spm::{Layout, Operator, Recipe};
use sprs::{CsMat, CsMatI, TriMat};

type Any = Box<dyn Error + Send + Sync>;

/// Operators by name, for the threads of a server.
#[derive(Debug, Default, Clone)]
struct Models {
    by_name: HashMap<String, Operator<f64>>,
}

/// A time step keeps its operator and its vectors.
struct Step {
    op: Operator<f64>,
    u: Vec<f64>,
    next: Vec<f64>,
}

impl Step {
    fn new(a: CsMat<f64>) -> Result<Self, spm::Error> {
        let (rows, cols) = a.shape();
        Ok(Self { op: Operator::new(a)?, u: vec![1.0; cols], next: vec![0.0; rows] })
    }

    /// u = u + dt A u
    fn advance(&mut self, dt: f64) -> Result<(), spm::Error> {
        self.next.copy_from_slice(&self.u);
        self.op.apply_scaled(dt, &self.u, 1.0, &mut self.next)?;
        std::mem::swap(&mut self.u, &mut self.next);
        Ok(())
    }
}

/// The second difference on n points.
fn second_difference(n: usize) -> CsMat<f64> {
    let mut triplets = TriMat::new((n, n));
    for i in 0..n {
        triplets.add_triplet(i, i, -2.0);
        if i > 0 {
            triplets.add_triplet(i, i - 1, 1.0);
            triplets.add_triplet(i - 1, i, 1.0);
        }
    }
    triplets.to_csr()
}

fn main() -> Result<(), Any> {
    structs_and_threads()?;
    matrices()?;
    products()?;
    println!("spm-sparse: passed");
    Ok(())
}

fn structs_and_threads() -> Result<(), Any> {
    let mut step = Step::new(second_difference(100_000))?;
    step.advance(0.25)?;
    assert!(step.u[1..99_999].iter().all(|&u| u == 1.0) && step.u[0] == 0.75);

    let mut models = Models::default();
    models.by_name.insert("heat".to_owned(), step.op.clone());
    let models = Arc::new(models);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let models = Arc::clone(&models);
            thread::spawn(move || -> Result<Vec<f64>, spm::Error> {
                let op = &models.by_name["heat"];
                let mut y = vec![f64::NAN; op.rows()];
                op.apply(&vec![1.0; op.cols()], &mut y)?;
                Ok(y)
            })
        })
        .collect();
    for worker in workers {
        let y = worker.join().expect("no panic")?;
        assert!(y[0] == -1.0 && y[1..99_999].iter().all(|&y| y == 0.0));
    }
    Ok(())
}

fn matrices() -> Result<(), Any> {
    // | 2 0 1 |
    // | 0 3 0 |
    let csr: CsMat<f64> = CsMat::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![2.0, 1.0, 3.0]);
    let i32_csr: CsMatI<f64, i32> =
        CsMatI::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![2.0, 1.0, 3.0]);
    let places = [(0, 0, 2.0), (0, 2, 1.0), (1, 1, 3.0)];
    let (mut rows, mut cols, mut values) = (vec![], vec![], vec![]);
    for (row, col, value) in places {
        rows.push(row);
        cols.push(col);
        values.push(value);
    }
    let coo = CooMatrix::try_from_triplets(2, 3, rows, cols, values).expect("valid");
    let operators = [
        Operator::new(&csr)?,
        Operator::new(csr.to_csc())?,
        Operator::new(csr.view())?,
        Operator::new(i32_csr)?,
        Operator::new(csr)?,
        Operator::new(&CsrMatrix::from(&coo))?,
        Operator::new(CsrMatrix::from(&coo))?,
        Operator::new(&CscMatrix::from(&coo))?,
        Operator::new(CscMatrix::from(&coo))?,
        Operator::new(&coo)?,
        Operator::new(spm::from_triplets((2, 3), places)?)?,
        // Not sorted, and one entry in two parts.
        Operator::new(spm::from_csr((2, 3), &[0, 2, 4], &[2, 0, 1, 1], &[1.0, 2.0, 1.0, 2.0])?)?,
        Operator::new(spm::from_csc((2, 3), &[0_i64, 1, 2, 3], &[0_u32, 1, 0], &[2.0, 3.0, 1.0])?)?,
    ];
    for (i, op) in operators.iter().enumerate() {
        let mut y = [f64::NAN; 2];
        op.apply(&[1.0, 10.0, 100.0], &mut y)?;
        assert_eq!(y, [102.0, 30.0], "operator {i}");
    }
    let error = Operator::new(CsMat::<f64>::zero((1, 1 << 33))).expect_err("too many columns");
    assert!(matches!(error, spm::Error::TooLarge(_)) && error.to_string().contains("spm-dist"));
    Ok(())
}

fn products() -> Result<(), Any> {
    let mut op = Operator::builder(second_difference(3)).expected_products(5).build()?;
    let x = Array1::from_vec(vec![1.0, 2.0, 4.0]);
    let mut y = Array1::from_elem(3, 1.0);
    op.apply_array1(1.0, x.view(), 1.0, y.view_mut())?;
    assert_eq!(y.to_vec(), [1.0, 2.0, -5.0]);
    // Every other element, in both directions.
    let mut sparse = Array1::from_elem(6, f64::NAN);
    op.apply_array1(1.0, x.slice(s![..;-1]), 0.0, sparse.slice_mut(s![..;2]))?;
    assert_eq!(sparse.slice(s![..;2]).to_vec(), [-6.0, 1.0, 0.0]);

    let mut expected = [[0.0; 2]; 3];
    for (column, x) in [[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]].iter().enumerate() {
        let mut y = [0.0; 3];
        op.apply(x, &mut y)?;
        y.iter().zip(&mut expected).for_each(|(y, row)| row[column] = *y);
    }
    let expected = ndarray::arr2(&expected);
    let many = ndarray::arr2(&[[1.0, 8.0], [2.0, 16.0], [4.0, 32.0]]);
    let columns = many.t().as_standard_layout().into_owned();
    let mut gaps = Array2::from_elem((6, 5), 7.0);
    gaps.slice_mut(s![..;2, 1..3]).assign(&many);
    for x in [many.view(), columns.t(), gaps.slice(s![..;2, 1..3])] {
        let mut rows = Array2::from_elem((3, 2), f64::NAN);
        op.apply_array2(1.0, x, 0.0, rows.view_mut())?;
        assert_eq!(rows, expected);
        let mut columns = Array2::from_elem((2, 3), 1.0);
        op.apply_array2(2.0, x, 1.0, columns.view_mut().reversed_axes())?;
        assert_eq!(columns.t(), &expected * 2.0 + 1.0);
        let mut gaps = Array2::from_elem((6, 5), 3.0);
        op.apply_array2(1.0, x, 0.0, gaps.slice_mut(s![..;2, 1..3]))?;
        assert_eq!(gaps.slice(s![..;2, 1..3]), expected);
        assert_eq!(gaps.sum(), expected.sum() + 24.0 * 3.0);
    }
    let mut y = [0.0; 6];
    op.apply_many(many.as_slice().expect("row-major"), &mut y, 2, Layout::RowMajor)?;
    assert_eq!(y, expected.as_slice().expect("row-major"));

    let recipe: Recipe = serde_json::from_str(&serde_json::to_string(op.recipe())?)?;
    assert_eq!(Operator::builder(second_difference(3)).recipe(recipe).build()?.recipe(), op.recipe());
    op.set_values(&[0.0; 7])?;
    let mut r = [0.0; 3];
    op.residual(&[1.0, 2.0, 3.0], &[1.0; 3], &mut r)?;
    assert_eq!(r, [1.0, 2.0, 3.0]);
    println!("{}", op.describe());
    Ok(())
}

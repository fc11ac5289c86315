//! Every product against the reference.

use crate::common::{MATRICES, accept, many, matrix, scaled, transposed};
use spm::{Builder, DenseMut, DenseRef, Error, Layout, Operator, Rates, Scalar};
use spm_cpu::spmv::predict_transposed;
use spm_testing::edge_cases::vector;

const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];
/// alpha and beta; each alpha is a power of 2.
const FACTORS: [(f64, f64); 6] =
    [(1.0, 0.0), (1.0, 1.0), (-1.0, 1.0), (2.0, 0.3), (0.5, 0.0), (0.0, -1.5)];

/// Every way to choose the product.
fn options<T: Scalar>(name: &str) -> Vec<(&'static str, Operator<T>)> {
    let build = |builder: Builder<T>| builder.build().unwrap();
    let builder = || Operator::builder(matrix::<T>(name)).rates(Rates::typical());
    vec![
        ("default", build(builder())),
        ("one thread", build(builder().threads(1))),
        ("five threads", build(builder().pool(spm::Threads::new(5)))),
        ("one product", build(builder().expected_products(1))),
        ("a race", build(builder().expected_products(1_000_000).threads(2))),
        ("a conversion", build(builder().expected_products(3000).deterministic())),
        ("deterministic", build(builder().deterministic())),
        ("no memory", build(builder().expected_products(1_000_000).budget(0))),
    ]
}

fn all_products<T: Scalar>() {
    for name in MATRICES {
        let a = matrix::<T>(name);
        let a_t = transposed(&a);
        let (x, x_t) = (vector::<T>(a.cols()), vector::<T>(a.rows()));
        for (options, op) in options::<T>(name) {
            let what = format!("{name}, {options}, {}", op.recipe());
            for (alpha, beta) in FACTORS.map(|(a, b)| (T::from_f64(a), T::from_f64(b))) {
                let what = format!("{what}, alpha {alpha}, beta {beta}");
                let before = if beta == T::ZERO { T::from_f64(f64::NAN) } else { T::ONE };
                let mut y = vec![before; a.rows()];
                op.apply_scaled(alpha, &x, beta, &mut y).unwrap();
                accept(&what, &y, &scaled(&a, alpha, &x, beta, &vec![T::ONE; a.rows()]));
                let mut y = vec![before; a.cols()];
                op.apply_transpose_scaled(alpha, &x_t, beta, &mut y).unwrap();
                let expected = scaled(&a_t, alpha, &x_t, beta, &vec![T::ONE; a.cols()]);
                accept(&format!("{what}, transposed"), &y, &expected);
            }
            let mut y = vec![T::from_f64(f64::NAN); a.rows()];
            op.apply(&x, &mut y).unwrap();
            let expected = scaled(&a, T::ONE, &x, T::ZERO, &vec![T::ONE; a.rows()]);
            accept(&what, &y, &expected);
            let mut r = vec![T::from_f64(f64::NAN); a.rows()];
            op.residual(&x_t, &x, &mut r).unwrap();
            accept(&what, &r, &scaled(&a, -T::ONE, &x, T::ONE, &x_t));
        }
    }
}

#[test]
fn products_in_double_precision() {
    all_products::<f64>();
}

#[test]
fn products_in_single_precision() {
    all_products::<f32>();
}

/// Before, at and after the call that makes the transposed copy.
#[test]
fn the_transpose_changes_its_plan() {
    // Random accesses that cost much: a copy soon pays.
    let text = Rates::typical().to_string();
    let rates: Rates = text.replace("scatter 3e-9 1e-9", "scatter 3e-9 3e-9").parse().unwrap();
    assert_ne!(rates, Rates::typical());
    for (name, threads) in [("stencil27[n=14]", 1), ("stencil27[n=14]", 2), (MATRICES[5], 2)] {
        let a = matrix::<f64>(name);
        let builder = || Operator::builder(a.clone()).threads(threads).rates(rates.clone());
        let op = builder().build().unwrap();
        let x = vector(a.rows());
        let expected = scaled(&transposed(&a), 1.0, &x, 0.0, &vector(a.cols()));
        let before = op.memory_bytes();
        let after = predict_transposed(a.view(), threads, &rates).copy_after(None).unwrap();
        assert!((1..20).contains(&after), "{after}");
        let product = |op: &Operator<f64>, what: &str| {
            let mut y = vec![f64::NAN; a.cols()];
            op.apply_transpose(&x, &mut y).unwrap();
            accept(&format!("{name}, {what}"), &y, &expected);
        };
        for call in 0..after + 3 {
            assert_eq!(op.describe().transposed_products, call);
            assert_eq!(op.describe().transposed_recipe.is_some(), call > after, "call {call}");
            product(&op, &format!("call {call}"));
        }
        assert!(op.memory_bytes() >= before + a.nnz() as u64 * 12);
        let poor = builder().budget(0).build().unwrap();
        (0..after + 3).for_each(|_| product(&poor, "without memory"));
        assert_eq!(poor.describe().transposed_recipe, None);
        // The copy is planned as any matrix is.
        let many = || builder().expected_products(1000).deterministic();
        let of_transpose = Operator::builder(transposed(&a));
        let of_transpose = of_transpose.threads(threads).rates(rates.clone());
        let of_transpose = of_transpose.expected_products(1000).deterministic().build().unwrap();
        assert!(!of_transpose.recipe().kernel().starts_with("csr-nnz-balanced"));
        let recipe = Some(of_transpose.recipe().clone());
        for (builder, recipe) in [(builder().expected_products(1), None), (many(), recipe)] {
            let op = builder.build().unwrap();
            (0..after + 3).for_each(|_| product(&op, "a known number"));
            assert_eq!(op.describe().transposed_recipe, recipe);
        }
        // With the clock there is a copy or none.
        let op = builder().expected_products(1000).build().unwrap();
        (0..after + 3).for_each(|_| product(&op, "by the clock"));
    }
}

#[test]
fn dense_right_hand_sides() {
    for name in MATRICES {
        let a = matrix::<f64>(name);
        let op = Operator::new(a.clone()).unwrap();
        for layout in LAYOUTS {
            for k in [0, 1, 2, 5, 8, 33] {
                let x = vector::<f64>(a.cols() * k);
                let mut y = vec![f64::NAN; a.rows() * k];
                op.apply_many(&x, &mut y, k, layout).unwrap();
                accept(&format!("{name}, {k}, {layout:?}"), &y, &many(&a, &x, k, layout));
            }
        }
    }
}

/// X and Y in every pair of layouts, with and without gaps, which stay as they are.
#[test]
fn dense_matrices_with_leading_dimensions() {
    for name in ["diagonal[n=5]", "uniform[rows=300,cols=900,entries=20000]"] {
        let a = matrix::<f64>(name);
        let op = Operator::new(a.clone()).unwrap();
        let cases = LAYOUTS.iter().flat_map(|&of_x| LAYOUTS.map(|of_y| (of_x, of_y)));
        for (of_x, of_y) in cases {
            for (k, gap_x, gap_y) in [(1, 0, 2), (3, 0, 0), (3, 2, 0), (3, 0, 1), (8, 3, 5)] {
                for (alpha, beta) in [(1.0, 0.0), (-2.0, 0.25), (0.0, 3.0)] {
                    let what = format!("{name}, {of_x:?} {of_y:?}, {k} {gap_x} {gap_y}, {beta}");
                    let leading = |rows: usize, layout: Layout, gap: usize| match layout {
                        Layout::RowMajor => (k + gap, rows),
                        Layout::ColumnMajor => (rows + gap, k),
                    };
                    let (lead_x, lines_x) = leading(a.cols(), of_x, gap_x);
                    let (lead_y, lines_y) = leading(a.rows(), of_y, gap_y);
                    let x = vector::<f64>(lead_x * lines_x);
                    let shape = (a.cols(), k);
                    let x = DenseRef::with_leading_dimension(&x, shape, of_x, lead_x).unwrap();
                    let before = if beta == 0.0 { f64::NAN } else { 7.0 };
                    let mut y = vec![before; lead_y * lines_y];
                    let shape = (a.rows(), k);
                    let to = DenseMut::with_leading_dimension(&mut y, shape, of_y, lead_y).unwrap();
                    // The same without gaps makes the plan and its workspace.
                    let (whole, mut sums) = (vector(a.cols() * k), vec![0.0; a.rows() * k]);
                    let whole = DenseRef::new(&whole, (a.cols(), k), of_y).unwrap();
                    let to_sums = DenseMut::new(&mut sums, shape, of_y).unwrap();
                    op.apply_dense(alpha, whole, beta, to_sums).unwrap();
                    let memory = op.memory_bytes();
                    op.apply_dense(alpha, x, beta, to).unwrap();
                    // Without copies there is no workspace for them.
                    assert!(of_x != of_y || k == 1 || op.memory_bytes() == memory, "{what}");
                    let written = DenseRef::with_leading_dimension(&y, shape, of_y, lead_y);
                    let written = written.unwrap();
                    for col in 0..k {
                        let column = |matrix: &DenseRef<'_, f64>, rows: usize| -> Vec<f64> {
                            (0..rows).map(|row| *matrix.get(row, col).unwrap()).collect()
                        };
                        let x = column(&x, a.cols());
                        let expected = scaled(&a, alpha, &x, beta, &vec![7.0; a.rows()]);
                        accept(&what, &column(&written, a.rows()), &expected);
                    }
                    let length = lead_y - gap_y;
                    let gaps = y.chunks(lead_y).flat_map(|line| &line[length..]);
                    assert!(gaps.clone().all(|gap| gap.to_bits() == before.to_bits()), "{what}");
                }
            }
        }
    }
}

#[test]
fn wrong_sizes_are_errors_and_nothing_is_written() {
    let op = Operator::new(matrix::<f64>("uniform[rows=3,cols=5,entries=7]")).unwrap();
    let (x, b) = ([1.0; 5], [1.0; 3]);
    let mut y = [7.0; 3];
    let mut y_t = [7.0; 5];
    let shape = |result: Result<(), Error>| match result.unwrap_err() {
        Error::Shape { what, expected, found } => (what, expected, found),
        other => panic!("{other:?}"),
    };
    assert_eq!(shape(op.apply(&x[1..], &mut y)), ("x", 5, 4));
    assert_eq!(shape(op.apply(&x, &mut y_t)), ("y", 3, 5));
    assert_eq!(shape(op.apply_scaled(2.0, &x, 1.0, &mut y[1..])), ("y", 3, 2));
    assert_eq!(shape(op.apply_transpose(&x, &mut y_t)), ("x", 3, 5));
    assert_eq!(shape(op.apply_transpose(&b, &mut y)), ("y", 5, 3));
    assert_eq!(shape(op.residual(&x, &x, &mut y)), ("b", 3, 5));
    assert_eq!(shape(op.residual(&b, &b, &mut y)), ("x", 5, 3));
    assert_eq!(shape(op.residual(&b, &x, &mut y_t)), ("r", 3, 5));
    assert_eq!(shape(op.apply_many(&x, &mut y, 2, Layout::RowMajor)), ("X", 10, 5));
    assert_eq!(shape(op.apply_many(&x, &mut y_t, 1, Layout::RowMajor)), ("Y", 3, 5));
    let found = shape(op.apply_many(&x, &mut y, usize::MAX, Layout::RowMajor));
    assert_eq!(found, ("X", usize::MAX, 5));
    let dense = |rows: usize, k: usize, elements: &[f64], y: &mut [f64]| {
        let x = DenseRef::new(elements, (rows, k), Layout::RowMajor)?;
        let of_y = y.len();
        op.apply_dense(1.0, x, 0.0, DenseMut::new(y, (of_y, 1), Layout::RowMajor)?)
    };
    assert_eq!(shape(dense(3, 1, &b, &mut y)), ("rows of X", 5, 3));
    assert_eq!(shape(dense(5, 1, &x, &mut y_t)), ("rows of Y", 3, 5));
    assert_eq!(shape(dense(5, 2, &[1.0; 10], &mut y)), ("columns of Y", 2, 1));
    assert_eq!((y, y_t), ([7.0; 3], [7.0; 5]));
}

//! Complex matrices, mixed precision, and elements of any type.

use crate::common::{accept, bits, many, matrix, scaled, transposed};
use spm::num_complex::Complex64;
use spm::{
    Complex, Csr, DenseMut, DenseRef, Element, ElementOperator, Error, Layout, MixedOperator,
    Operator, Rates, Scalar, Threads,
};
use spm_testing::edge_cases::vector;

const NAMES: [&str; 3] =
    ["diagonal[n=5]", "stencil5[n=30]", "powerlaw[rows=4000,cols=4000,entries=30000,longest=2000]"];

fn c<T: Scalar>(re: f64, im: f64) -> T {
    T::from_parts(T::Real::from_f64(re), T::Real::from_f64(im))
}

fn conjugated<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    a.map(|value| value.conj())
}

/// Every way to choose the product.
fn options<T: Scalar>(a: &Csr<T>) -> Vec<(&'static str, Operator<T>)> {
    let builder = || Operator::builder(a.clone()).rates(Rates::typical());
    let race = builder().expected_products(1_000_000).threads(2);
    [
        ("default", builder()),
        ("five threads", builder().pool(Threads::new(5))),
        ("many products", race),
        ("deterministic", builder().deterministic()),
    ]
    .map(|(what, builder)| (what, builder.build().unwrap()))
    .into()
}

fn all_products<T: Scalar>() {
    // Each alpha is a power of 2 times a unit, so that its products with the values are exact.
    let factors = [
        (c(1.0, 0.0), T::ZERO),
        (c(0.0, 2.0), c(1.0, -3.0)),
        (c(-0.5, 0.0), T::ONE),
        (T::ZERO, c(0.0, 1.0)),
    ];
    for name in NAMES {
        let a = matrix::<T>(name);
        let (a_t, conj) = (transposed(&a), conjugated(&a));
        let a_h = conjugated(&a_t);
        let (x, x_t) = (vector::<T>(a.cols()), vector::<T>(a.rows()));
        for (options, op) in options(&a) {
            for (alpha, beta) in factors {
                let what = format!("{name}, {options}, alpha {alpha}, beta {beta}");
                let old = if beta == T::ZERO { c(f64::NAN, f64::NAN) } else { c(1.0, 1.0) };
                let one = |length| vec![c::<T>(1.0, 1.0); length];
                let mut y = vec![old; a.rows()];
                op.apply_scaled(alpha, &x, beta, &mut y).unwrap();
                accept(&what, &y, &scaled(&a, alpha, &x, beta, &one(a.rows())));
                let mut y = vec![old; a.cols()];
                op.apply_transpose_scaled(alpha, &x_t, beta, &mut y).unwrap();
                let expected = scaled(&a_t, alpha, &x_t, beta, &one(a.cols()));
                accept(&format!("{what}, A^T"), &y, &expected);
                let mut y = vec![old; a.cols()];
                op.apply_conj_transpose_scaled(alpha, &x_t, beta, &mut y).unwrap();
                let expected = scaled(&a_h, alpha, &x_t, beta, &one(a.cols()));
                accept(&format!("{what}, A^H"), &y, &expected);
            }
            let mut y = vec![c(f64::NAN, 0.0); a.rows()];
            op.apply_conj(&x, &mut y).unwrap();
            let expected = scaled(&conj, T::ONE, &x, T::ZERO, &x_t);
            accept(&format!("{name}, {options}, conj(A)"), &y, &expected);
            op.residual(&x_t, &x, &mut y).unwrap();
            accept(&format!("{name}, {options}"), &y, &scaled(&a, -T::ONE, &x, T::ONE, &x_t));
            let x = vector::<T>(a.cols() * 3);
            let mut y = vec![c(f64::NAN, 0.0); a.rows() * 3];
            op.apply_many(&x, &mut y, 3, Layout::ColumnMajor).unwrap();
            accept(name, &y, &many(&a, &x, 3, Layout::ColumnMajor));
        }
    }
}

#[test]
fn complex_products() {
    all_products::<Complex<f64>>();
    all_products::<Complex<f32>>();
}

/// A real operator's conjugate transpose is its transpose, bit by bit.
#[test]
fn the_conjugate_of_a_real_matrix_is_the_matrix() {
    let op = Operator::new(matrix::<f64>("stencil5[n=30]")).unwrap();
    let x = vector::<f64>(900);
    let product = |run: &dyn Fn(&mut [f64])| {
        let mut y = vec![f64::NAN; 900];
        run(&mut y);
        bits(&y)
    };
    assert!(
        product(&|y| op.apply_conj_transpose(&x, y).unwrap())
            == product(&|y| op.apply_transpose(&x, y).unwrap())
    );
    assert!(product(&|y| op.apply_conj(&x, y).unwrap()) == product(&|y| op.apply(&x, y).unwrap()));
}

/// From CSR at first, from the transposed copy later; and both take new values.
#[test]
fn the_conjugate_transpose_of_a_copy_and_of_new_values() {
    let a = matrix::<Complex64>("stencil27[n=14]");
    let other = a.map(|value| value * Complex::new(0.5, -2.0));
    let x = vector(a.rows());
    // Random accesses that cost much: a copy soon pays.
    let text = Rates::typical().to_string();
    let rates: Rates = text.replace("scatter 3e-9 1e-9", "scatter 3e-9 3e-9").parse().unwrap();
    assert_ne!(rates, Rates::typical());
    let mut op = Operator::builder(a.clone()).threads(2).rates(rates).build().unwrap();
    for a in [&a, &other] {
        op.set_values(a.values()).unwrap();
        let expected = scaled(&conjugated(&transposed(a)), Complex::ONE, &x, Complex::ZERO, &x);
        let conj = scaled(&conjugated(a), Complex::ONE, &x, Complex::ZERO, &x);
        for call in 0..30 {
            let mut y = vec![Complex::new(f64::NAN, 0.0); a.cols()];
            op.apply_conj_transpose(&x, &mut y).unwrap();
            accept(&format!("call {call}"), &y, &expected);
            op.apply_conj(&x, &mut y).unwrap();
            accept(&format!("call {call}, conj(A)"), &y, &conj);
        }
        assert!(op.describe().transposed_recipe.is_some(), "no transposed copy");
    }
}

#[test]
fn wrong_sizes_are_errors() {
    let op = Operator::new(Csr::<Complex64>::empty(3, 5).unwrap()).unwrap();
    let shape = |result: Result<(), Error>| match result.unwrap_err() {
        Error::Shape { what, expected, found } => (what, expected, found),
        other => panic!("{other:?}"),
    };
    let (mut y3, mut y5) = ([Complex::ONE; 3], [Complex::ONE; 5]);
    let (x3, x5) = (y3, y5);
    assert_eq!(shape(op.apply_conj(&x3, &mut y3)), ("x", 5, 3));
    assert_eq!(shape(op.apply_conj(&x5, &mut y5)), ("y", 3, 5));
    assert_eq!(shape(op.apply_conj_transpose(&x5, &mut y5)), ("x", 3, 5));
    assert_eq!(shape(op.apply_conj_transpose(&x3, &mut y3)), ("y", 5, 3));
    let mixed = MixedOperator::<f32, f64>::new(Csr::empty(3, 5).unwrap()).unwrap();
    assert_eq!(shape(mixed.apply(&[0.0; 3], &mut [0.0; 3])), ("x", 5, 3));
    assert_eq!(shape(mixed.apply_transpose(&[0.0; 5], &mut [0.0; 5])), ("x", 3, 5));
    assert_eq!(shape(mixed.apply_transpose(&[0.0; 3], &mut [0.0; 3])), ("y", 5, 3));
    let whole = ElementOperator::new(Csr::<i32>::empty(3, 5).unwrap());
    assert_eq!(shape(whole.apply(&[0; 3], &mut [0; 3])), ("x", 5, 3));
    assert_eq!(shape(whole.apply_scaled(1, &[0; 5], 0, &mut [0; 5])), ("y", 3, 5));
}

/// Complex matrices of sprs, and arrays with a leading dimension.
#[test]
fn complex_matrices_of_other_types() {
    let (i, one) = (Complex64::new(0.0, 1.0), Complex64::ONE);
    let a = spm::sprs::CsMat::new((1, 2), vec![0, 2], vec![0, 1], vec![i, one]);
    let op = Operator::new(a).unwrap();
    let x = [one, i, one, i, one, one];
    let x = DenseRef::with_leading_dimension(&x, (2, 2), Layout::RowMajor, 3).unwrap();
    let mut y = [Complex::ZERO; 2];
    op.apply_dense(i, x, one, DenseMut::new(&mut y, (1, 2), Layout::RowMajor).unwrap()).unwrap();
    // i (i 1 + 1 i), i (i i + 1)
    assert_eq!(y, [Complex::new(-2.0, 0.0), Complex::ZERO]);
}

fn mixed_precision<A: spm::WidensTo<T>, T: Scalar>() {
    for name in NAMES {
        let a = matrix::<A>(name);
        let wide = a.map(|value| value.widen_to());
        let x = vector::<T>(a.cols());
        for op in [
            MixedOperator::<A, T>::new(a.clone()).unwrap(),
            MixedOperator::with_threads(a.clone(), Threads::new(3)).unwrap().clone(),
        ] {
            assert_eq!((op.shape(), &**op.matrix()), (a.shape(), &a));
            let mut y = vec![c(f64::NAN, 0.0); a.rows()];
            op.apply(&x, &mut y).unwrap();
            accept(name, &y, &scaled(&wide, T::ONE, &x, T::ZERO, &x));
            let (alpha, beta) = (c(-2.0, 0.0), c(0.5, 1.0));
            let mut y = x.clone();
            op.apply_scaled(alpha, &x, beta, &mut y).unwrap();
            accept(name, &y, &scaled(&wide, alpha, &x, beta, &x));
            let mut y = vec![c(f64::NAN, 0.0); a.cols()];
            op.apply_transpose(&x, &mut y).unwrap();
            accept(name, &y, &scaled(&transposed(&wide), T::ONE, &x, T::ZERO, &x));
            let mut y = x.clone();
            op.apply_transpose_scaled(alpha, &x, beta, &mut y).unwrap();
            accept(name, &y, &scaled(&transposed(&wide), alpha, &x, beta, &x));
        }
    }
}

#[test]
fn mixed_precision_products() {
    mixed_precision::<f32, f64>();
    mixed_precision::<Complex<f32>, Complex<f64>>();
}

/// The tropical semiring: the shortest paths of at most one more step.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Length(u32);

impl Element for Length {
    fn zero() -> Self {
        Self(u32::MAX)
    }

    fn add_product(self, a: Self, x: Self) -> Self {
        Self(self.0.min(a.0.saturating_add(x.0)))
    }
}

#[test]
fn elements_of_a_program() {
    // 0 -> 1 takes 5, 0 -> 2 takes 1, 2 -> 1 takes 2.
    let lengths = [5, 1, 2].map(Length).to_vec();
    let a = Csr::new((3, 3), vec![0, 2, 2, 3], vec![1, 2, 1], lengths).unwrap();
    let op = ElementOperator::with_threads(a, Threads::new(2));
    let to_1 = [u32::MAX, 0, u32::MAX].map(Length);
    let mut one_step = [Length(7); 3];
    op.apply(&to_1, &mut one_step).unwrap();
    assert_eq!(one_step, [5, u32::MAX, 2].map(Length));
    let mut two_steps = one_step;
    // y = min(A x, y): 0 is the neutral element of this multiplication.
    op.clone().apply_scaled(Length(0), &one_step, Length(0), &mut two_steps).unwrap();
    assert_eq!(two_steps, [3, u32::MAX, 2].map(Length));
}

#[test]
#[cfg(feature = "faer")]
fn operators_of_faer() {
    use faer::dyn_stack::{MemBuffer, MemStack};
    use faer::matrix_free::{BiLinOp, LinOp};
    use faer::{Mat, MatMut, MatRef, Par};

    let a = matrix::<Complex64>("uniform[rows=30,cols=20,entries=200]");
    let op = Operator::new(a.clone()).unwrap();
    type Run<'a> = &'a dyn Fn(MatMut<'_, Complex64>, MatRef<'_, Complex64>, &mut MemStack);
    let check = |what: &str, a: &Csr<Complex64>, run: Run<'_>| {
        let rhs = vector::<Complex64>(a.cols() * 2);
        let x = Mat::from_fn(a.cols(), 2, |i, j| rhs[j * a.cols() + i]);
        let mut y = Mat::from_fn(a.rows(), 2, |_, _| Complex64::new(f64::NAN, 0.0));
        let mut memory = MemBuffer::new(faer::dyn_stack::StackReq::EMPTY);
        run(y.as_mut(), x.as_ref(), MemStack::new(&mut memory));
        for (j, x) in rhs.chunks(a.cols()).enumerate() {
            let y: Vec<Complex64> = (0..a.rows()).map(|i| y[(i, j)]).collect();
            let y_before = vec![Complex::ZERO; a.rows()];
            accept(what, &y, &scaled(a, Complex::ONE, x, Complex::ZERO, &y_before));
        }
    };
    let a_t = transposed(&a);
    check("A", &a, &|y, x, stack| LinOp::apply(&op, y, x, Par::Seq, stack));
    check("conj(A)", &conjugated(&a), &|y, x, stack| op.conj_apply(y, x, Par::Seq, stack));
    check("A^T", &a_t, &|y, x, stack| op.transpose_apply(y, x, Par::Seq, stack));
    check("A^H", &conjugated(&a_t), &|y, x, stack| op.adjoint_apply(y, x, Par::Seq, stack));
}

#[test]
#[cfg(feature = "faer")]
fn matrices_of_faer() {
    use faer::sparse::{SparseColMat, SparseRowMat, Triplet};

    // | 2 0 1 |
    // | 0 3 0 |
    let places = [(0, 0, 2.0), (0, 2, 1.0), (1, 1, 3.0)];
    let places = places.map(|(row, col, value)| Triplet::new(row, col, value));
    let rows = SparseRowMat::<usize, f64>::try_new_from_triplets(2, 3, &places).unwrap();
    let cols = SparseColMat::<usize, f64>::try_new_from_triplets(2, 3, &places).unwrap();
    let operators = [
        Operator::new(&rows),
        Operator::new(rows.as_ref()),
        Operator::new(rows),
        Operator::new(&cols),
        Operator::new(cols.as_ref()),
        Operator::new(cols),
    ];
    for (i, op) in operators.into_iter().enumerate() {
        let mut y = [f64::NAN; 2];
        op.unwrap().apply(&[1.0, 10.0, 100.0], &mut y).unwrap();
        assert_eq!(y, [102.0, 30.0], "operator {i}");
    }
}

//! The only reference: written to be obviously right, never optimised.
//!
//! Sums are compensated (Ogita, Rump, Oishi: "Accurate sum and dot product", SIAM J. Sci. Comput.
//! 26(6), 2005), so a result is as good as one computed in twice the precision and then rounded.

use spm_formats::convert::Converted;
use spm_formats::kernel::Scaling;
use spm_formats::{Coo, DenseShape, Layout, RealScalar, Scalar, parallel};

/// A compensated dot product in `f64`: the value is `high + low` (Dot2 of the paper).
#[derive(Debug, Clone, Copy, Default)]
struct Dot2 {
    high: f64,
    low: f64,
}

impl Dot2 {
    fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        let product_error = a.mul_add(b, -product);
        let sum = self.high + product;
        let virtual_product = sum - self.high;
        let sum_error = (self.high - (sum - virtual_product)) + (product - virtual_product);
        self.high = sum;
        // Beyond the finite numbers the error terms are NaN; IEEE's own sum is then the answer.
        if sum.is_finite() {
            self.low += product_error + sum_error;
        }
    }

    fn value(self) -> f64 {
        if self.high.is_finite() { self.high + self.low } else { self.high }
    }
}

/// An element of a product: the sums of its real and of its imaginary part.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    re: Dot2,
    im: Dot2,
    magnitude: f64,
    terms: u32,
}

impl Sum {
    fn add_product<T: Scalar>(&mut self, a: T, x: T) {
        let (a, x) = (a.widen(), x.widen());
        self.re.add_product(a.re(), x.re());
        // A real number has no part that would be multiplied by an infinity here.
        if T::IS_COMPLEX {
            self.re.add_product(-a.im(), x.im());
            self.im.add_product(a.re(), x.im());
            self.im.add_product(a.im(), x.re());
        }
        self.magnitude += a.abs() * x.abs();
        self.terms += 1;
    }
}

/// The exact-as-can-be result of a product, with what an error bound needs. `W` is `f64`, or
/// `Complex<f64>` for a complex product.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference<W = f64> {
    /// Each element of y (or Y, in the layout of the product), in double precision.
    pub values: Vec<W>,
    /// Sum of |a||x| over the element's terms.
    pub magnitudes: Vec<f64>,
    /// Number of terms of the element.
    pub terms: Vec<u32>,
}

/// y = A x, straight from the triplets.
///
/// # Panics
/// When `x` has not as many elements as A has columns.
pub fn spmv<T: Scalar>(a: &Coo<T>, x: &[T]) -> Reference<T::Wide> {
    assert_eq!(x.len(), a.cols(), "x has {} elements, A is {} columns wide", x.len(), a.cols());
    let mut sums = vec![Sum::default(); a.rows()];
    for (row, col, value) in a.iter() {
        sums[row as usize].add_product(value, x[col as usize]);
    }
    Reference {
        values: sums.iter().map(|s| T::Wide::from_parts(s.re.value(), s.im.value())).collect(),
        magnitudes: sums.iter().map(|s| s.magnitude).collect(),
        terms: sums.iter().map(|s| s.terms).collect(),
    }
}

/// Y = A X, column by column as [`spmv`]; X and Y in the layout of `dense`.
///
/// # Panics
/// When `x` has not columns x k elements.
pub fn spmm<T: Scalar>(a: &Coo<T>, x: &[T], dense: DenseShape) -> Reference<T::Wide> {
    let DenseShape { k, layout } = dense;
    assert_eq!(x.len(), a.cols() * k, "X has {} elements, A is {} columns wide", x.len(), a.cols());
    let at = |rows: usize, i: usize, j: usize| match layout {
        Layout::RowMajor => i * k + j,
        Layout::ColumnMajor => j * rows + i,
    };
    let column = |j: usize| {
        let x: Vec<T> = (0..a.cols()).map(|i| x[at(a.cols(), i, j)]).collect();
        spmv(a, &x)
    };
    // The columns have nothing to do with one another.
    let columns = parallel::map(k, 1, column);
    let elements = a.rows() * k;
    let mut y = Reference {
        values: vec![T::Wide::ZERO; elements],
        magnitudes: vec![0.0; elements],
        terms: vec![0; elements],
    };
    for (j, column) in columns.iter().enumerate() {
        for i in 0..a.rows() {
            let element = at(a.rows(), i, j);
            y.values[element] = column.values[i];
            y.magnitudes[element] = column.magnitudes[i];
            y.terms[element] = column.terms[i];
        }
    }
    y
}

/// alpha A X + beta Y: one product, of alpha A beside beta I with X above Y. With beta = 0 Y is not read, with
/// alpha = 0 neither A nor X.
///
/// # Panics
/// As [`spmm`].
pub fn scaled<T: Scalar>(
    a: &Coo<T>,
    Scaling { alpha, beta }: Scaling<T>,
    x: &[T],
    y: &[T],
    dense: DenseShape,
) -> Reference<T::Wide> {
    let (rows, cols, k) = (a.rows(), a.cols(), dense.k);
    let mut entries = Vec::new();
    if alpha != T::ZERO {
        entries.extend(a.iter().map(|(row, col, value)| (row, col, alpha * value)));
    }
    if beta != T::ZERO {
        entries.extend((0..rows as u32).map(|row| (row, cols as u32 + row, beta)));
    }
    let row_ind = entries.iter().map(|entry| entry.0).collect();
    let col_ind = entries.iter().map(|entry| entry.1).collect();
    let values = entries.iter().map(|entry| entry.2).collect();
    let beside = Coo::new(rows, cols + rows, row_ind, col_ind, values).expect("indices of A and I");
    let above: Vec<T> = match dense.layout {
        Layout::RowMajor => [x, y].concat(),
        Layout::ColumnMajor => {
            let column = |j: usize| [&x[j * cols..][..cols], &y[j * rows..][..rows]].concat();
            (0..k).flat_map(column).collect()
        }
    };
    spmm(&beside, &above, dense)
}

/// The transpose of A in CSC order: triplets sorted by column, then row, duplicates summed in
/// stored order, explicit zeros kept. Returns (column pointers, row indices, values).
pub fn transpose<T: Scalar>(a: &Coo<T>) -> (Vec<u32>, Vec<u32>, Vec<T>) {
    let mut triplets: Vec<(u32, u32, T)> = a.iter().map(|(r, c, v)| (c, r, v)).collect();
    triplets.sort_by_key(|&(col, row, _)| (col, row));
    let mut row_ptr = vec![0; a.cols() + 1];
    let (mut indices, mut values): (Vec<u32>, Vec<T>) = (Vec::new(), Vec::new());
    let mut last = None;
    for (col, row, value) in triplets {
        if last == Some((col, row)) {
            *values.last_mut().expect("a repeated entry has a first one") += value;
        } else {
            indices.push(row);
            values.push(value);
            row_ptr[col as usize + 1] += 1;
            last = Some((col, row));
        }
    }
    for col in 0..a.cols() {
        row_ptr[col + 1] += row_ptr[col];
    }
    (row_ptr, indices, values)
}

/// The bits of values that were computed. The sign and the payload of a NaN that an operation makes are not
/// specified, so that all NaN are one.
pub fn computed_bits<T: Scalar>(values: &[T]) -> Vec<[u64; 2]> {
    let part = |part: T::Real| {
        if part.to_f64().is_nan() { f64::NAN.to_bits() } else { part.to_bits64() }
    };
    values.iter().map(|value| [value.re(), value.im()].map(part)).collect()
}

/// Whether a converted matrix is `coo` bit by bit ([`computed_bits`]), duplicates summed in stored order: both go
/// through [`transpose`].
pub fn is_exactly<T: Scalar>(converted: &Converted<T>, coo: &Coo<T>) -> bool {
    let canonical = |coo: &Coo<T>| {
        let (row_ptr, rows, values) = transpose(coo);
        (coo.rows(), row_ptr, rows, computed_bits(&values))
    };
    canonical(&converted.to_coo()) == canonical(coo)
}

/// How far a computed result is from the reference.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ErrorMeasures {
    /// Largest |y - y_ref| / |y_ref| over the elements with y_ref != 0 (R4 1.3).
    pub max_relative: f64,
    /// Mean of the same (R4 1.3).
    pub mean_relative: f64,
    /// Largest |y - y_ref| / (c u sum|a||x|) with unit roundoff u and the c of [`BOUND_LIMIT`], where
    /// the element is a sum of products a x: the one that decides. Infinite where the
    /// reference is exact (no terms, or all of them zero) and the result is not, or where one of the
    /// two is not finite and they differ.
    pub bound: f64,
}

/// The largest [`ErrorMeasures::bound`] that a correct kernel may have.
///
/// k products that are summed in any order are within k u sum|a||x| / (1 - k u), and the reference
/// is itself rounded once: c = k + 2 holds always, and is the smaller one up to 60 terms. For more
/// of them c = 8 sqrt(k): where the roundings are independent and of mean zero, an element of a
/// correct result exceeds that with a probability of at most 2 k exp(-32), 3e-14 k (N. J. Higham,
/// T. Mary: "A new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5),
/// 2019, theorem 3.1 with lambda = 8). Many equal products violate that condition.
///
/// One average entry that is missing exceeds the bound in rows of up to 16 000 entries in `f32` and
/// 10^10 in `f64`. Tests of longer rows take whole numbers, whose sums are exact.
///
/// The real and the imaginary part of a sum of k complex products are sums of 2 k real products, whose
/// absolute values add up to at most sum|a||x| (Cauchy and Schwarz). c is then sqrt(2) times that of
/// 2 k terms, whatever the order in which a complex multiplication adds.
pub const BOUND_LIMIT: f64 = 1.0;

/// c of [`ErrorMeasures::bound`] for an element of `terms` real terms.
fn roundings(terms: f64) -> f64 {
    (terms + 2.0).min(8.0 * terms.sqrt())
}

impl ErrorMeasures {
    /// Whether a kernel with these errors computed the right thing.
    pub fn acceptable(&self) -> bool {
        self.bound <= BOUND_LIMIT
    }
}

/// Compares a computed result with the reference.
///
/// # Panics
/// When the two have different lengths.
pub fn compare<T: Scalar>(computed: &[T], reference: &Reference<T::Wide>) -> ErrorMeasures {
    assert_eq!(computed.len(), reference.values.len(), "result and reference differ in length");
    // Pieces of one size, so that the mean has the same bits on any number of threads.
    const PIECE: usize = 1 << 16;
    let pieces = parallel::map(computed.len().div_ceil(PIECE), 1, |piece| {
        let start = piece * PIECE;
        let end = computed.len().min(start + PIECE);
        compare_piece(&computed[start..end], reference, start)
    });
    let mut all = Piece::default();
    for piece in pieces {
        all.max_relative = all.max_relative.max(piece.max_relative);
        all.sum_relative += piece.sum_relative;
        all.relative_count += piece.relative_count;
        all.bound = all.bound.max(piece.bound);
    }
    ErrorMeasures {
        max_relative: all.max_relative,
        mean_relative: all.sum_relative / all.relative_count.max(1) as f64,
        bound: all.bound,
    }
}

/// The errors of some elements.
#[derive(Default)]
struct Piece {
    max_relative: f64,
    sum_relative: f64,
    relative_count: usize,
    bound: f64,
}

/// Compares `computed` with the elements of `reference` from `start` on.
fn compare_piece<T: Scalar>(computed: &[T], reference: &Reference<T::Wide>, start: usize) -> Piece {
    let mut measures = Piece::default();
    // Sums of real numbers that make an element, and real terms for each of its terms.
    let (sums, products) = if T::IS_COMPLEX { (2.0_f64, 2.0) } else { (1.0, 1.0) };
    for (i, &y) in (start..).zip(computed) {
        let (y, exact) = (y.widen(), reference.values[i]);
        let rounded = T::narrow(exact).widen();
        let parts = [(y.re(), exact.re(), rounded.re()), (y.im(), exact.im(), rounded.im())];
        let mut errors = [0.0; 2];
        for (error, (y, exact, rounded)) in errors.iter_mut().zip(parts) {
            if y.is_finite() && rounded.is_finite() {
                *error = (y - exact).abs();
            } else if !(y == rounded || (y.is_nan() && rounded.is_nan())) {
                // Refuses also what another order of summation excuses: near the largest finite
                // number an intermediate sum may overflow in one order only.
                measures.bound = f64::INFINITY;
            }
        }
        let error = if T::IS_COMPLEX { errors[0].hypot(errors[1]) } else { errors[0] };
        if !y.is_finite() || !rounded.is_finite() {
            // A finite part beside one that is not has no bound.
            continue;
        }
        if exact != T::Wide::ZERO {
            let relative = error / exact.abs();
            measures.max_relative = measures.max_relative.max(relative);
            measures.sum_relative += relative;
            measures.relative_count += 1;
        }
        if error > 0.0 {
            // Products below the normal range lose up to half a unit in the last place each.
            let terms = products * f64::from(reference.terms[i]);
            let underflow = terms * T::Real::SMALLEST_SUBNORMAL.to_f64();
            // An infinite sum of magnitudes would excuse any error.
            let magnitude = reference.magnitudes[i].min(f64::MAX);
            let unit = roundings(terms) * T::Real::UNIT_ROUNDOFF.to_f64();
            let scale = sums.sqrt() * (unit * magnitude + underflow);
            measures.bound = measures.bound.max(error / scale);
        }
    }
    measures
}

#[cfg(test)]
mod tests {
    use spm_formats::Complex;

    use super::*;

    /// The 3 x 3 matrix of the format drawings.
    fn sample() -> Coo<f64> {
        Coo::new(3, 3, vec![0, 2, 1, 0, 2], vec![0, 0, 1, 2, 2], vec![1., 4., 3., 2., 5.]).unwrap()
    }

    #[test]
    fn product_of_the_sample_by_hand() {
        let y = spmv(&sample(), &[1., 10., 100.]);
        assert_eq!(y.values, [201., 30., 504.]);
        assert_eq!(y.magnitudes, [201., 30., 504.]);
        assert_eq!(y.terms, [2, 1, 2]);
    }

    #[test]
    fn all_nan_have_the_same_bits_and_zeros_have_a_sign() {
        let nan = Complex::new(1.0, f64::NAN);
        assert_eq!(computed_bits(&[nan]), computed_bits(&[Complex::new(1.0, -f64::NAN)]));
        assert_ne!(computed_bits(&[nan]), computed_bits(&[Complex::new(2.0, f64::NAN)]));
        assert_ne!(computed_bits(&[0.0]), computed_bits(&[-0.0]));
    }

    #[test]
    fn layouts_of_spmm_hold_the_same_product() {
        let row_major = [1., 2., 10., 20., 100., 200.];
        let col_major = [1., 10., 100., 2., 20., 200.];
        let a = sample();
        let by_rows = spmm(&a, &row_major, DenseShape { k: 2, layout: Layout::RowMajor });
        let by_cols = spmm(&a, &col_major, DenseShape { k: 2, layout: Layout::ColumnMajor });
        assert_eq!(by_rows.values, [201., 402., 30., 60., 504., 1008.]);
        assert_eq!(by_cols.values, [201., 30., 504., 402., 60., 1008.]);
    }

    #[test]
    fn transpose_of_the_sample_by_hand() {
        let (row_ptr, indices, values) = transpose(&sample());
        assert_eq!(row_ptr, [0, 2, 3, 5]);
        assert_eq!(indices, [0, 2, 1, 0, 2]);
        assert_eq!(values, [1., 4., 3., 2., 5.]);
    }

    #[test]
    fn cancellation_is_exact() {
        let a = Coo::new(1, 3, vec![0; 3], vec![0, 1, 2], vec![1e16, 1.0, -1e16]).unwrap();
        assert_eq!(spmv(&a, &[1.0; 3]).values, [1.0]);
    }

    #[test]
    fn a_wrong_element_exceeds_the_bound() {
        let reference = spmv(&sample(), &[1., 10., 100.]);
        assert_eq!(compare(&[201., 30., 504.], &reference), ErrorMeasures::default());
        let wrong = compare(&[201., 30., 504.0001], &reference);
        assert!(!wrong.acceptable(), "{wrong:?}");
        let missing = compare(&[201., f64::NAN, 504.], &reference);
        assert!(!missing.acceptable(), "{missing:?}");
        // The error counts in proportion to the terms.
        for scale in [2_f64.powi(-40), 2_f64.powi(40)] {
            let reference = spmv(&sample(), &[scale, 10. * scale, 100. * scale]);
            let scaled = compare(&[201. * scale, 30. * scale, 504.0001 * scale], &reference);
            assert!((scaled.bound / wrong.bound - 1.0).abs() < 1e-6, "{scaled:?} {wrong:?}");
        }
    }

    /// Rows as long as [`BOUND_LIMIT`] says, without one of their entries.
    #[test]
    fn a_missing_entry_exceeds_the_bound() {
        fn check<T: RealScalar>(length: usize) {
            let value = |i: usize| T::from_f64((i as f64 * 0.7).sin());
            let (columns, values) =
                ((0..length as u32).collect(), (0..length).map(value).collect());
            let a = Coo::<T>::new(1, length, vec![0; length], columns, values).unwrap();
            let x = vec![T::ONE; length];
            let whole = spmv(&a, &x);
            let sum = |skipped: usize| {
                let kept = a.values().iter().enumerate().filter(|&(i, _)| i != skipped);
                kept.fold(T::ZERO, |sum, (_, &value)| sum + value)
            };
            let right = compare(&[sum(length)], &whole);
            assert!(right.acceptable(), "{right:?}");
            // The mean is 0.64.
            let large = |i: &usize| value(*i).abs() > T::from_f64(0.65);
            for skipped in [(0..length).find(large), (0..length).rfind(large)] {
                let wrong = compare(&[sum(skipped.unwrap())], &whole);
                assert!(!wrong.acceptable(), "{length}, {skipped:?}: {wrong:?}");
            }
        }
        check::<f32>(16_000);
        check::<f64>(1_000_000);
    }

    #[test]
    fn complex_products_by_hand() {
        let (a, x) = (Complex::new(1.0_f32, 2.0), Complex::new(3.0, -5.0));
        let a = Coo::new(1, 2, vec![0, 0], vec![0, 1], vec![a, Complex::new(0.0, 1.0)]).unwrap();
        // (1 + 2i)(3 - 5i) + i * i
        let y = spmv(&a, &[x, Complex::new(0.0, 1.0)]);
        assert_eq!((y.values[0], y.terms[0]), (Complex::new(12.0, 1.0), 2));
        assert!((y.magnitudes[0] - (170.0_f64.sqrt() + 1.0)).abs() < 1e-5);
        assert!(compare(&[Complex::new(12.0_f32, 1.0)], &y).acceptable());
        for wrong in [(12.0, -1.0), (12.0, f32::NAN), (f32::INFINITY, 1.0), (12.0001, 1.0)] {
            let errors = compare(&[Complex::new(wrong.0, wrong.1)], &y);
            assert!(!errors.acceptable(), "{wrong:?}: {errors:?}");
        }
    }

    /// inf * i: both parts as the formula of a product says.
    #[test]
    fn infinities_spread_to_both_parts() {
        let infinite = Complex::new(f64::INFINITY, 0.0);
        let a = Coo::new(1, 1, vec![0], vec![0], vec![infinite]).unwrap();
        let x = Complex::new(1.0, 1.0);
        let reference = spmv(&a, &[x]);
        assert!(compare(&[infinite * x], &reference).acceptable());
        assert!(!compare(&[Complex::new(0.0, 1.0) * infinite], &reference).acceptable());
        // A real infinity leaves its own part alone.
        let a = Coo::new(1, 1, vec![0], vec![0], vec![f64::INFINITY]).unwrap();
        assert_eq!(spmv(&a, &[1.0]).values, [f64::INFINITY]);
    }

    #[test]
    fn terms_that_add_up_to_infinity_excuse_no_error() {
        let a = Coo::new(1, 3, vec![0; 3], vec![0, 1, 2], vec![1e308, -1e308, 1e308]).unwrap();
        let reference = spmv(&a, &[1.0; 3]);
        assert_eq!((reference.values[0], reference.magnitudes[0]), (1e308, f64::INFINITY));
        assert!(compare(&[1e308], &reference).acceptable());
        assert!(!compare(&[0.0], &reference).acceptable());
    }

    #[test]
    fn an_empty_row_must_be_exactly_zero() {
        let a = Coo::<f64>::empty(1, 1).unwrap();
        let reference = spmv(&a, &[1.0]);
        assert!(compare(&[0.0], &reference).acceptable());
        assert!(!compare(&[1e-300], &reference).acceptable());
    }
}

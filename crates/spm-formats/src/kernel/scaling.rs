//! The scalars of y = alpha A x + beta y.

use crate::Scalar;

/// The scalars of y = alpha A x + beta y and of Y = alpha A X + beta Y.
///
/// Both are meant to be finite. beta = 0 overwrites y: NaN and infinity in it do not spread. alpha = 0
/// leaves out the product: NaN and infinity in A and x do not spread. BLAS defines both cases so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling<T> {
    /// The factor of A x.
    pub alpha: T,
    /// The factor of y.
    pub beta: T,
}

impl<T> Scaling<T> {
    /// y = `alpha` A x + `beta` y.
    pub const fn new(alpha: T, beta: T) -> Self {
        Self { alpha, beta }
    }
}

impl<T: Scalar> Scaling<T> {
    /// alpha = 1 and beta = 0: y = A x.
    pub const OVERWRITE: Self = Self { alpha: T::ONE, beta: T::ZERO };

    /// Whether this is y = A x.
    #[inline(always)]
    pub fn is_overwrite(self) -> bool {
        self == Self::OVERWRITE
    }

    /// `None` if this is y = A x, where a kernel stores its sums as they are.
    #[inline(always)]
    pub fn unless_overwrite(self) -> Option<Self> {
        (!self.is_overwrite()).then_some(self)
    }

    /// `y` = alpha `product` + beta `y`.
    #[inline(always)]
    pub fn apply(self, product: T, y: &mut T) {
        *y = if self.beta == T::ZERO {
            product.scaled(self.alpha)
        } else {
            product.scaled(self.alpha) + y.scaled(self.beta)
        };
    }

    /// `y` = alpha `products` + beta `y`, element by element.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn combine(self, products: &[T], y: &mut [T]) {
        assert_eq!(products.len(), y.len(), "products and y");
        for (y, &product) in y.iter_mut().zip(products) {
            self.apply(product, y);
        }
    }

    /// `y` = beta `y`.
    pub fn scale(self, y: &mut [T]) {
        if self.beta == T::ZERO {
            y.fill(T::ZERO);
        } else if self.beta != T::ONE {
            y.iter_mut().for_each(|y| *y = y.scaled(self.beta));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complex;

    #[test]
    fn beta_0_does_not_read_y() {
        let mut y = [f64::NAN, f64::INFINITY];
        Scaling::new(-2.0, 0.0).combine(&[1.0, 3.0], &mut y);
        assert_eq!(y, [-2.0, -6.0]);
        y[0] = f64::NAN;
        Scaling::new(5.0, 0.0).scale(&mut y);
        assert_eq!(y, [0.0, 0.0]);
    }

    #[test]
    fn complex_numbers_times_1_are_themselves() {
        let infinite = Complex::new(f64::INFINITY, 2.0);
        let mut y = [infinite];
        Scaling::new(Complex::ONE, Complex::ONE).combine(&[Complex::new(1.0, -5.0)], &mut y);
        assert_eq!(y, [Complex::new(f64::INFINITY, -3.0)]);
        Scaling::new(Complex::ONE, Complex::ZERO).combine(&[infinite], &mut y);
        assert_eq!(y, [infinite]);
        Scaling::new(-Complex::<f64>::ONE, Complex::ONE).combine(&[Complex::ONE], &mut y);
        assert_eq!(y, [Complex::new(f64::INFINITY, 2.0)]);
    }

    #[test]
    fn alpha_and_beta_are_applied() {
        let mut y = [1.0, -10.0];
        Scaling::new(3.0, -0.5).combine(&[1.0, 2.0], &mut y);
        assert_eq!(y, [2.5, 11.0]);
        Scaling::new(f64::NAN, 2.0).scale(&mut y);
        assert_eq!(y, [5.0, 22.0]);
    }
}

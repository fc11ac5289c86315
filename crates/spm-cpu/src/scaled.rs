//! y = alpha A x + beta z: what the kernels share. z is y itself or another vector.
//!
//! `None` in place of an [`Update`] is y = A x. Most kernels [`store`] each sum where it belongs. A
//! kernel that accumulates in y, or that may compute a block of rows again, writes A x of the block to
//! a buffer that stays in a core's cache ([`Staged`]); the buffer is then combined with z. Either way z
//! is read once and y written once. A kernel hands over elements and blocks of y, however it divides
//! its rows; the place in y tells those of z.

use spm_formats::Scalar;
use spm_formats::kernel::Scaling;

use crate::disjoint::Disjoint;
use crate::pool::{Pool, Taken};
use crate::simd::{Isa, Job, LANES, Machine};
use crate::workspace::Workspace;

/// What becomes of the sums of a product: y = alpha A x + beta z.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update<'z, T> {
    scaling: Scaling<T>,
    addend: Option<Addend<'z, T>>,
}

/// A z that is not y.
#[derive(Debug, Clone, Copy)]
struct Addend<'z, T> {
    elements: &'z [T],
    /// The address of y's first element.
    y: usize,
}

impl<'z, T: Scalar> Addend<'z, T> {
    /// The elements of z in the rows of a block of y.
    #[inline(always)]
    fn beside(&self, y: &[T]) -> &'z [T] {
        let first = (y.as_ptr().addr() - self.y) / T::BYTES;
        &self.elements[first..first + y.len()]
    }
}

impl<'z, T: Scalar> Update<'z, T> {
    /// y = A x.
    pub(crate) const OVERWRITE: Self = Self { scaling: Scaling::OVERWRITE, addend: None };

    /// y = alpha A x + beta y.
    #[inline(always)]
    pub(crate) fn in_place(scaling: Scaling<T>) -> Self {
        Self { scaling, addend: None }
    }

    /// `y` = alpha A x + beta `z`; as many elements of z as of y.
    pub(crate) fn adding(scaling: Scaling<T>, z: &'z [T], y: &[T]) -> Self {
        assert_eq!(z.len(), y.len(), "z and y");
        let read = scaling.beta != T::ZERO;
        let addend = read.then_some(Addend { elements: z, y: y.as_ptr().addr() });
        Self { scaling, addend }
    }

    /// `None` if this is y = A x, where a kernel stores its sums as they are.
    #[inline(always)]
    pub(crate) fn unless_overwrite(self) -> Option<Self> {
        (!self.scaling.is_overwrite()).then_some(self)
    }

    #[inline(always)]
    pub(crate) fn alpha(&self) -> T {
        self.scaling.alpha
    }

    /// `y` = alpha `product` + beta z, for one element of y.
    #[inline(always)]
    pub(crate) fn apply(&self, product: T, y: &mut T) {
        if let Some(addend) = &self.addend {
            *y = addend.beside(std::slice::from_ref(y))[0];
        }
        self.scaling.apply(product, y);
    }

    /// `y` = alpha `products` + beta z, for a block of y.
    pub(crate) fn combine(&self, products: &[T], y: &mut [T]) {
        if !T::IS_COMPLEX {
            assert_eq!(products.len(), y.len(), "products and y");
            return Machine::without_gathers().run(Combine { update: *self, products, y });
        }
        match &self.addend {
            None => self.scaling.combine(products, y),
            Some(addend) => {
                assert_eq!(products.len(), y.len(), "products and y");
                let z = addend.beside(y);
                for ((y, &product), &z) in y.iter_mut().zip(products).zip(z) {
                    *y = z;
                    self.scaling.apply(product, y);
                }
            }
        }
    }

    /// `y` = alpha `products` + beta z, for a vector of real numbers.
    ///
    /// # Safety
    /// The processor has the instructions of `I`.
    #[inline(always)]
    pub(crate) unsafe fn put<I: Isa<T>>(&self, products: I::Vector, y: &mut [T; LANES]) {
        let Scaling { alpha, beta } = self.scaling;
        let z = self.addend.as_ref().map_or(y.as_ptr(), |addend| addend.beside(y).as_ptr());
        // SAFETY: z has as many elements as y; the caller's promise.
        unsafe {
            let mut sums = I::mul(I::splat(alpha), products);
            if beta != T::ZERO {
                sums = I::add(sums, I::mul(I::splat(beta), I::load(z)));
            }
            I::store(y.as_mut_ptr(), sums);
        }
    }

    /// `y` = beta z, for a block of y.
    pub(crate) fn scale(&self, y: &mut [T]) {
        match &self.addend {
            None => self.scaling.scale(y),
            Some(addend) => {
                let beta = self.scaling.beta;
                let z = addend.beside(y);
                y.iter_mut().zip(z).for_each(|(y, &z)| *y = z.scaled(beta));
            }
        }
    }
}

/// [`Update::combine`] of real numbers, of which there are as many in y.
struct Combine<'a, T> {
    update: Update<'a, T>,
    products: &'a [T],
    y: &'a mut [T],
}

// SAFETY: `As<T>` is `Combine<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Combine<'a, T> {
    type As<U: Scalar> = Combine<'a, U>;
    const GATHERS: bool = false;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        let Self { update, products, y } = self;
        let (products, last_products) = products.as_chunks::<LANES>();
        let (y, last_y) = y.as_chunks_mut::<LANES>();
        for (y, products) in y.iter_mut().zip(products) {
            // SAFETY: the caller's promise.
            unsafe { update.put::<I>(I::load(products.as_ptr()), y) };
        }
        last_y.iter_mut().zip(last_products).for_each(|(y, &product)| update.apply(product, y));
    }
}

/// `y` = alpha `sum` + beta z.
#[inline(always)]
pub(crate) fn store<T: Scalar>(update: Option<Update<'_, T>>, sum: T, y: &mut T) {
    match update {
        None => *y = sum,
        Some(update) => update.apply(sum, y),
    }
}

/// `y` += alpha `sum`: the rest of a row that was stored before.
#[inline(always)]
pub(crate) fn add<T: Scalar>(update: Option<Update<'_, T>>, sum: T, y: &mut T) {
    *y += update.map_or(sum, |update| sum.scaled(update.alpha()));
}

/// Elements of a cache line of the smallest scalar: buffers of two threads share none.
const LINE: usize = 16;

/// The buffers of a plan: one for each part of a product.
pub(crate) struct Staged<T> {
    parts: usize,
    rows: usize,
    buffers: Pool<Workspace<T>>,
}

impl<T: Scalar> Staged<T> {
    /// For `parts` parts that compute up to `rows` rows at a time. Nothing is allocated before the
    /// first scaled product.
    pub(crate) fn new(parts: usize, rows: usize) -> Self {
        Self { parts, rows: rows.next_multiple_of(LINE), buffers: Pool::empty() }
    }

    /// The buffers of one product.
    pub(crate) fn buffers<'a>(&'a self, update: Option<Update<'a, T>>) -> Option<Buffers<'a, T>> {
        let update = update?;
        let elements = self.buffers.take(|| Workspace::zeros(self.parts * self.rows));
        Some(Buffers { update, rows: self.rows, elements })
    }
}

/// The buffers of one scaled product.
pub(crate) struct Buffers<'a, T> {
    update: Update<'a, T>,
    rows: usize,
    elements: Taken<'a, Workspace<T>>,
}

impl<T: Scalar> Buffers<'_, T> {
    /// Access for the threads that compute the parts.
    pub(crate) fn parts(&mut self) -> Parts<'_, T> {
        let Self { update, rows, elements } = self;
        Parts { update: *update, rows: *rows, elements: Disjoint::new(elements) }
    }
}

/// The buffer of each part.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a, T> {
    update: Update<'a, T>,
    rows: usize,
    elements: Disjoint<'a, T>,
}

/// Calls `multiply` with elements for the rows of `y`, which it overwrites with A x: those of `y`, or
/// those of the buffer of part `part`, which are then combined with z.
///
/// # Safety
/// No other thread uses the same part at the same time.
#[inline(always)]
pub(crate) unsafe fn through<T: Scalar>(
    parts: Option<Parts<'_, T>>,
    part: usize,
    y: &mut [T],
    multiply: impl FnOnce(&mut [T]),
) {
    let mut buffer = parts.map(|parts| {
        let start = part * parts.rows;
        assert!(y.len() <= parts.rows, "a block of {} rows", y.len());
        // SAFETY: the parts do not overlap; the caller's promise.
        unsafe { parts.elements.range(start..start + y.len()) }
    });
    // One call, so that `multiply` is compiled once.
    multiply(match &mut buffer {
        Some(buffer) => buffer,
        None => &mut *y,
    });
    if let (Some(parts), Some(buffer)) = (parts, buffer) {
        parts.update.combine(buffer, y);
    }
}

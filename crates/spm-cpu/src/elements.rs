//! SpMV straight from CSR with matrix elements of any type: integers, finite fields, a program's own.
//!
//! The rows are divided between the threads by entries. Each row is summed by one thread in the order
//! of its entries, so that a product has the same result on any number of threads, also where the
//! addition is not associative.
//!
//! ```
//! use spm_cpu::elements::{self, Element};
//! use spm_cpu::{PlanOptions, Threads};
//! use spm_formats::Csr;
//!
//! /// A number modulo 7.
//! #[derive(Debug, Clone, Copy, PartialEq)]
//! struct Mod7(u32);
//!
//! impl Element for Mod7 {
//!     fn zero() -> Self {
//!         Self(0)
//!     }
//!
//!     fn add_product(self, a: Self, x: Self) -> Self {
//!         Self((self.0 + a.0 * x.0) % 7)
//!     }
//! }
//!
//! // | 3 0 6 |
//! // | 0 5 0 |
//! let a = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], [3, 6, 5].map(Mod7).to_vec())?;
//! let plan = elements::plan(&a, &PlanOptions::with_threads(2))?;
//! let mut y = [Mod7(0); 2];
//! plan.run(&[2, 3, 4].map(Mod7), &mut y)?;
//! assert_eq!(y, [2, 1].map(Mod7)); // 30 and 15
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::num::Wrapping;

use spm_formats::kernel::{Footprint, PlanError, ProductPlan, RunError, Scaling, check_length};
use spm_formats::{CsrSource, NewValues, partition};

use crate::disjoint::Disjoint;
use crate::{PlanOptions, Threads, spmv};

/// A type of matrix and vector elements: it has an addition with a neutral element, and a
/// multiplication.
///
/// Integers add and multiply with the operators of Rust: overflow panics where the program is compiled
/// with overflow checks, and wraps elsewhere. `Wrapping` always wraps.
pub trait Element: Copy + PartialEq + Send + Sync + 'static {
    /// The neutral element of the addition.
    fn zero() -> Self;

    /// `self` + `a` `x`.
    fn add_product(self, a: Self, x: Self) -> Self;
}

macro_rules! elements {
    ($zero:expr; $($type:ty),+) => {$(
        impl Element for $type {
            #[inline(always)]
            fn zero() -> Self {
                $zero
            }

            #[inline(always)]
            fn add_product(self, a: Self, x: Self) -> Self {
                self + a * x
            }
        }
    )+};
}

elements!(0; i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);
elements!(Wrapping(0); Wrapping<i8>, Wrapping<i16>, Wrapping<i32>, Wrapping<i64>);
elements!(Wrapping(0); Wrapping<u8>, Wrapping<u16>, Wrapping<u32>, Wrapping<u64>);

/// Plans y = A x and y = alpha A x + beta y for a CSR matrix A, borrowed or shared. beta = 0 overwrites
/// y; alpha = 0 leaves out the product.
///
/// # Errors
/// None so far: the plan needs no memory.
pub fn plan<'a, T: Element>(
    a: impl Into<CsrSource<'a, T>>,
    options: &PlanOptions,
) -> Result<spmv::BoxedPlan<'a, T>, PlanError> {
    let (a, threads) = (a.into(), options.threads.clone());
    let bounds = partition::by_entries(a.view().row_ptr(), threads.count());
    Ok(Box::new(Rows { a, threads, bounds }))
}

struct Rows<'a, T> {
    a: CsrSource<'a, T>,
    threads: Threads,
    /// The rows of thread t are `bounds[t]..bounds[t + 1]`.
    bounds: Vec<usize>,
}

impl<T: Element> Rows<'_, T> {
    /// Calls `store` with the number of each row, its element of y and its sum.
    fn multiply(&self, x: &[T], y: &mut [T], store: impl Fn(usize, &mut T, T) + Sync) {
        let (a, all) = (self.a.view(), Disjoint::new(y));
        self.threads.run(|part| {
            let rows = self.bounds[part]..self.bounds[part + 1];
            // SAFETY: the parts of a partition do not overlap.
            let y = unsafe { all.range(rows.clone()) };
            for (row, y) in rows.zip(y) {
                let (cols, values) = a.row(row);
                let entries = cols.iter().zip(values);
                let add =
                    |sum: T, (&col, &value): (&u32, &T)| sum.add_product(value, x[col as usize]);
                store(row, y, entries.fold(T::zero(), add));
            }
        });
    }

    fn check(&self, x: &[T], y: &[T]) -> Result<(), RunError> {
        let (rows, cols) = self.a.view().shape();
        check_length("x", cols, x.len())?;
        check_length("y", rows, y.len())
    }

    /// `y` = alpha A `x` + beta z, where `z` gives the element of a row from that of y.
    fn update(
        &self,
        Scaling { alpha, beta }: Scaling<T>,
        x: &[T],
        y: &mut [T],
        z: impl Fn(usize, T) -> T + Sync,
    ) {
        let scaled = |row: usize, y: T| {
            if beta == T::zero() { T::zero() } else { T::zero().add_product(beta, z(row, y)) }
        };
        if alpha == T::zero() {
            y.iter_mut().enumerate().for_each(|(row, y)| *y = scaled(row, *y));
        } else {
            self.multiply(x, y, |row, y, sum| *y = scaled(row, *y).add_product(alpha, sum));
        }
    }
}

impl<T: Element> ProductPlan<T> for Rows<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn footprint(&self) -> Footprint {
        let (a, (rows, cols)) = (self.a.view(), self.shape());
        Footprint {
            bytes_moved: a.memory_bytes() + ((rows + cols) * size_of::<T>()) as u64,
            plan_bytes: size_of_val(&*self.bounds) as u64,
            matrix_bytes: a.memory_bytes(),
        }
    }

    fn run(&self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.check(x, y)?;
        self.multiply(x, y, |_, y, sum| *y = sum);
        Ok(())
    }

    fn run_scaled(&self, scaling: Scaling<T>, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.check(x, y)?;
        self.update(scaling, x, y, |_, y| y);
        Ok(())
    }

    fn run_adding(
        &self,
        scaling: Scaling<T>,
        x: &[T],
        z: &[T],
        y: &mut [T],
    ) -> Result<(), RunError> {
        self.check(x, y)?;
        check_length("z", y.len(), z.len())?;
        self.update(scaling, x, y, |row, _| z[row]);
        Ok(())
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let Self { a, threads, bounds } = self;
        a.set_values(new, |a, own| {
            let Some(own) = own.map(Disjoint::new) else { return };
            threads.run(|part| {
                let start = |part: usize| a.row_ptr()[bounds[part]] as usize;
                let entries = start(part)..start(part + 1);
                // SAFETY: the parts of a partition do not overlap.
                unsafe { own.range(entries.clone()) }.copy_from_slice(&a.values()[entries]);
            });
        })
    }
}

//! The common part of all product plans: checks of the operands around a kernel's product.

use spm_formats::kernel::{
    Footprint, Operation, Parameters, PlanError, ProductPlan, RunError, Scaling, check_length,
};
use spm_formats::{DenseShape, Layout, NewValues, Scalar};

use crate::Threads;
use crate::memory::Memory;
use crate::scaled::Update;

/// A boxed plan that borrows its matrix or shares it. One that shares is `BoxedPlan<'static, T>`.
pub type BoxedPlan<'a, T> = Box<dyn ProductPlan<T> + 'a>;

/// A plan that its kernel has made, which `auto` runs in several ways.
pub(crate) trait OwnPlan<T>: ProductPlan<T> {
    /// See [`Product::run_by`].
    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        let _ = (parameters, threads);
        false
    }
}

/// An [`OwnPlan`] that borrows its matrix or shares it.
pub(crate) type BoxedOwnPlan<'a, T> = Box<dyn OwnPlan<T> + 'a>;

/// A kernel's product, without the checks of operands.
pub(crate) trait Product<T>: Send + Sync {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Bytes of the matrix in the format that the product reads, and bytes that the plan holds.
    fn memory(&self) -> Memory;

    /// `y` = alpha A `x` + beta z, or A `x` for `None`; the lengths are those of the shapes.
    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]);

    /// The same for an X and a Y with these leading dimensions, and slices that are long enough. Returns
    /// whether the product can do that.
    fn multiply_leading(
        &self,
        scaling: Option<Update<'_, T>>,
        x: &[T],
        y: &mut [T],
        leading: [usize; 2],
    ) -> bool {
        let _ = (scaling, x, y, leading);
        false
    }

    /// See [`ProductPlan::set_values`].
    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let _ = new;
        Err(PlanError::Values("the kernel does not keep their order"))
    }

    /// Runs from now on by these parameters, which differ from those of the plan in what planning does not
    /// depend on, and on these threads, as many as before. Returns whether the product can do that.
    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        let _ = (parameters, threads);
        false
    }
}

/// A product with the checks of operands, which makes it a plan.
pub(crate) struct Checked<P> {
    product: P,
    dense: DenseShape,
    /// What errors call the operands.
    names: [&'static str; 3],
    /// The label, if `auto` has chosen the product. (A wrapper around the plan of a tiny matrix would
    /// cost a tenth of the product.)
    choice: Option<String>,
}

impl<P> Checked<P> {
    /// `operation` is SpMV or SpMM.
    pub(crate) fn new(operation: Operation, dense: DenseShape, product: P) -> Self {
        let spmv = operation == Operation::Spmv;
        let names = if spmv { ["x", "y", "z"] } else { ["X", "Y", "Z"] };
        Self { product, dense, names, choice: None }
    }

    /// The same as the choice of `auto`.
    pub(crate) fn chosen(self, label: &str) -> Self {
        Self { choice: Some(label.to_owned()), ..self }
    }
}

impl<P> Checked<P> {
    fn compute<T: Scalar>(
        &self,
        update: Update<'_, T>,
        x: &[T],
        y: &mut [T],
    ) -> Result<(), RunError>
    where
        P: Product<T>,
    {
        let (rows, cols) = self.product.shape();
        check_length(self.names[0], cols * self.dense.k, x.len())?;
        check_length(self.names[1], rows * self.dense.k, y.len())?;
        if update.alpha() == T::ZERO {
            update.scale(y);
        } else {
            self.product.multiply(update.unless_overwrite(), x, y);
        }
        Ok(())
    }
}

/// Checks the slice of a dense matrix of `rows` rows with a leading dimension. Returns the elements of a row
/// (row-major) or column (column-major).
pub(crate) fn check_leading(
    what: &'static str,
    rows: usize,
    dense: DenseShape,
    leading: usize,
    found: usize,
) -> Result<usize, RunError> {
    let (lines, length) = match dense.layout {
        Layout::RowMajor => (rows, dense.k),
        Layout::ColumnMajor => (dense.k, rows),
    };
    if leading < length {
        let what = "leading dimension";
        return Err(RunError::Shape { what, expected: length, found: leading });
    }
    let before = lines.saturating_sub(1).saturating_mul(leading);
    let expected = if lines == 0 { 0 } else { before.saturating_add(length) };
    if found < expected { Err(RunError::Shape { what, expected, found }) } else { Ok(length) }
}

impl<T: Scalar, P: Product<T>> ProductPlan<T> for Checked<P> {
    fn shape(&self) -> (usize, usize) {
        self.product.shape()
    }

    fn dense(&self) -> DenseShape {
        self.dense
    }

    fn footprint(&self) -> Footprint {
        let (rows, cols) = self.product.shape();
        self.product.memory().footprint::<T>((rows + cols) * self.dense.k)
    }

    fn run(&self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.run_scaled(Scaling::OVERWRITE, x, y)
    }

    fn run_scaled(&self, scaling: Scaling<T>, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.compute(Update::in_place(scaling), x, y)
    }

    fn run_adding(
        &self,
        scaling: Scaling<T>,
        x: &[T],
        z: &[T],
        y: &mut [T],
    ) -> Result<(), RunError> {
        check_length(self.names[2], y.len(), z.len())?;
        self.compute(Update::adding(scaling, z, y), x, y)
    }

    fn run_leading(
        &self,
        scaling: Scaling<T>,
        x: &[T],
        y: &mut [T],
        leading: [usize; 2],
    ) -> Option<Result<(), RunError>> {
        let (rows, cols) = self.product.shape();
        let [of_x, of_y] = leading;
        let checked = check_leading(self.names[0], cols, self.dense, of_x, x.len())
            .and_then(|_| check_leading(self.names[1], rows, self.dense, of_y, y.len()));
        let length = match checked {
            Ok(length) => length,
            Err(error) => return Some(Err(error)),
        };
        if scaling.alpha == T::ZERO {
            let lines = if self.dense.layout == Layout::RowMajor { rows } else { self.dense.k };
            let lines = y.chunks_mut(of_y.max(1)).take(lines);
            lines.for_each(|line| scaling.scale(&mut line[..length]));
            return Some(Ok(()));
        }
        let update = Update::in_place(scaling).unless_overwrite();
        self.product.multiply_leading(update, x, y, leading).then_some(Ok(()))
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        self.product.set_values(new)
    }

    fn choice(&self) -> Option<String> {
        self.choice.clone()
    }
}

impl<T: Scalar, P: Product<T>> OwnPlan<T> for Checked<P> {
    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        self.product.run_by(parameters, threads)
    }
}

/// A plan that `auto` has chosen.
pub(crate) struct Chosen<'a, T> {
    pub(crate) plan: BoxedPlan<'a, T>,
    /// That of the caller: one column is the same in both layouts.
    pub(crate) dense: DenseShape,
    /// The label of the kernel, if there is one.
    pub(crate) choice: Option<String>,
}

impl<T: Scalar> ProductPlan<T> for Chosen<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.plan.shape()
    }

    fn dense(&self) -> DenseShape {
        self.dense
    }

    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn run(&self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.plan.run(x, y)
    }

    fn run_scaled(&self, scaling: Scaling<T>, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.plan.run_scaled(scaling, x, y)
    }

    fn run_adding(
        &self,
        scaling: Scaling<T>,
        x: &[T],
        z: &[T],
        y: &mut [T],
    ) -> Result<(), RunError> {
        self.plan.run_adding(scaling, x, z, y)
    }

    fn run_leading(
        &self,
        scaling: Scaling<T>,
        x: &[T],
        y: &mut [T],
        leading: [usize; 2],
    ) -> Option<Result<(), RunError>> {
        // A vector has no rows or columns to be apart.
        if self.plan.dense() == self.dense {
            self.plan.run_leading(scaling, x, y, leading)
        } else {
            None
        }
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        self.plan.set_values(new)
    }

    fn choice(&self) -> Option<String> {
        self.choice.clone()
    }
}

impl<T: Scalar> OwnPlan<T> for Chosen<'_, T> {}

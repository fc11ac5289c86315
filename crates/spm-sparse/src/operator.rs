//! The operator.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spm_formats::{Csr, DenseShape, Layout, Replacement, Scalar};

use crate::cpu::Cpu;
use crate::error::check;
#[cfg(feature = "gpu")]
use crate::gpu::{Form, GpuProducts};
use crate::{Builder, DenseMut, DenseRef, Description, Error, IntoCsr, Recipe};

/// A sparse matrix that is ready to multiply.
///
/// An operator owns or shares its matrix, is `'static`, `Send` and `Sync`, and clones cheaply:
/// clones share matrix and plans. Products take `&self`, from any number of threads at once. No lock
/// is held during a product.
///
/// ```
/// use spm::Operator;
///
/// // | 1 0 2 |
/// // | 0 3 0 |
/// let a = spm::from_triplets((2, 3), [(0_usize, 0_usize, 1.0), (0, 2, 2.0), (1, 1, 3.0)])?;
/// let op = Operator::new(a)?;
/// let mut y = [0.0; 2];
/// op.apply(&[1.0, 10.0, 100.0], &mut y)?;
/// assert_eq!(y, [201.0, 30.0]);
/// # Ok::<(), spm::Error>(())
/// ```
///
/// # Vectors and dense matrices
/// A has m rows and n columns. Vectors are slices of exactly n elements for x and m elements for y;
/// for the transpose it is the other way round. Other lengths are [`Error::Shape`]. If the factor
/// beta of y is 0, y is overwritten and never read: NaN and infinity in it do not spread. If the
/// factor alpha is 0, the product is left out.
///
/// # Reproducibility
/// Repeated products of one operator give the same bits, also from several threads at once, and so do
/// those of its clones, if [`Builder::expected_products`], [`Builder::deterministic`] or
/// [`Builder::recipe`] was called. Otherwise their bits may change once, when the operator converts
/// the matrix. The product with the transpose may also change its bits once, when it gets a transposed
/// copy ([`Operator::apply_transpose`]), unless the operator is deterministic.
///
/// On a GPU all products of one operator and of its clones have the same bits. Those of two operators have
/// them if both have one recipe or are deterministic.
///
/// # Errors on a GPU
/// Every product may also fail with `Error::Gpu`: too little memory for its vectors, a GPU that fails.
pub struct Operator<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    a: Arc<Csr<T>>,
    engine: Engine<T>,
    /// Workspaces for operands with a leading dimension.
    free: Mutex<Vec<Vec<T>>>,
}

/// Where the products run.
#[cfg_attr(
    feature = "gpu",
    expect(clippy::large_enum_variant, reason = "an operator has one, behind an `Arc`")
)]
pub(crate) enum Engine<T> {
    Cpu(Cpu<T>),
    #[cfg(feature = "gpu")]
    Gpu(Box<dyn GpuProducts<T>>),
}

/// What the caller has said of the products to come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Intent {
    pub(crate) products: Option<u64>,
    pub(crate) deterministic: bool,
}

impl<T> Clone for Operator<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T: Scalar> fmt::Debug for Operator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator")
            .field("shape", &self.shape())
            .field("nnz", &self.nnz())
            .field("scalar", &T::NAME)
            .field("recipe", &format_args!("{}", self.recipe()))
            .finish()
    }
}

impl<T: Scalar> Operator<T> {
    /// An operator with the default options: all cores, an unknown number of products.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new<A: IntoCsr<Scalar = T>>(a: A) -> Result<Self, Error> {
        Self::builder(a).build()
    }

    /// Options for an operator of `a`.
    pub fn builder<A: IntoCsr<Scalar = T>>(a: A) -> Builder<T> {
        Builder::new(a)
    }

    pub(crate) fn from_parts(a: Arc<Csr<T>>, engine: Engine<T>) -> Self {
        Self { inner: Arc::new(Inner { a, engine, free: Mutex::default() }) }
    }

    /// Where the products run.
    #[cfg(feature = "gpu")]
    pub(crate) fn engine(&self) -> &Engine<T> {
        &self.inner.engine
    }

    /// (rows, columns).
    pub fn shape(&self) -> (usize, usize) {
        self.inner.a.shape()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.inner.a.rows()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.inner.a.cols()
    }

    /// Number of stored entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.inner.a.nnz()
    }

    /// The matrix; further operators and other code may share it.
    pub fn matrix(&self) -> &Arc<Csr<T>> {
        &self.inner.a
    }

    /// Bytes of the matrix and of all plans made so far, those on a GPU included.
    pub fn memory_bytes(&self) -> u64 {
        let Inner { a, engine, free } = &*self.inner;
        let plans = match engine {
            Engine::Cpu(cpu) => cpu.memory_bytes(a),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => gpu.memory_bytes(),
        };
        let free = free.lock().unwrap_or_else(PoisonError::into_inner);
        let of_free: usize = free.iter().map(|workspace| workspace.capacity() * T::BYTES).sum();
        a.memory_bytes() + plans + of_free as u64
    }

    /// The kernel, parameters and threads of the next y = A x.
    pub fn recipe(&self) -> &Recipe {
        match &self.inner.engine {
            Engine::Cpu(cpu) => cpu.recipe(),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => gpu.recipe(),
        }
    }

    /// Whether the [recipe](Operator::recipe) stays: an operator without a number of products may still convert
    /// its matrix.
    pub fn is_settled(&self) -> bool {
        match &self.inner.engine {
            Engine::Cpu(cpu) => cpu.is_settled(),
            #[cfg(feature = "gpu")]
            Engine::Gpu(_) => true,
        }
    }

    /// Threads of products with matrices and with the transpose; the recipe says how many y = A x takes. 1 on a
    /// GPU.
    pub fn threads(&self) -> usize {
        match &self.inner.engine {
            Engine::Cpu(cpu) => cpu.threads(),
            #[cfg(feature = "gpu")]
            Engine::Gpu(_) => 1,
        }
    }

    /// What was chosen and why, with sizes and times.
    pub fn describe(&self) -> Description {
        let Inner { a, engine, .. } = &*self.inner;
        let (memory, recipe) = (self.memory_bytes(), self.recipe().clone());
        let plain = Description::new(a.shape(), a.nnz(), T::NAME, memory, recipe);
        match engine {
            Engine::Cpu(cpu) => cpu.describe(a, plain),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => gpu.describe(plain),
        }
    }

    /// Times a few products y = A x with vectors of the operator's own, and returns the time of the
    /// fastest, which [`Operator::describe`] then has too; nothing if the [budget](Builder::budget) does
    /// not allow the vectors. On a GPU the vectors are in device memory.
    pub fn measure(&self) -> Option<Duration> {
        match &self.inner.engine {
            Engine::Cpu(cpu) => cpu.measure(),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => gpu.measure(&self.inner.a),
        }
    }

    /// `y` = A `x`. x has n elements, y has m.
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths.
    pub fn apply(&self, x: &[T], y: &mut [T]) -> Result<(), Error> {
        self.apply_scaled(T::ONE, x, T::ZERO, y)
    }

    /// `y` = `alpha` A `x` + `beta` `y`. x has n elements, y has m.
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths.
    pub fn apply_scaled(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<(), Error> {
        // The plan checks the lengths.
        match &self.inner.engine {
            Engine::Cpu(cpu) => cpu.next(&self.inner.a).run(alpha, x, beta, y),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => {
                check("x", self.cols(), x.len())?;
                check("y", self.rows(), y.len())?;
                gpu.on_host(&self.inner.a, Form::PLAIN, (alpha, beta), x, None, y)
            }
        }
    }

    /// `r` = `b` - A `x`, in one pass over `b` and `r`. x has n elements, b and r have m.
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths.
    pub fn residual(&self, b: &[T], x: &[T], r: &mut [T]) -> Result<(), Error> {
        check("b", self.rows(), b.len())?;
        check("x", self.cols(), x.len())?;
        check("r", self.rows(), r.len())?;
        match &self.inner.engine {
            Engine::Cpu(cpu) => cpu.next(&self.inner.a).residual(b, x, r),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => {
                gpu.on_host(&self.inner.a, Form::PLAIN, (-T::ONE, T::ONE), x, Some(b), r)
            }
        }
    }

    /// `y` = A^T `x`. x has m elements, y has n.
    ///
    /// The products multiply straight from the CSR arrays of A, or from a transposed copy, which is planned
    /// as any matrix is. The [model](crate#planning) of the machine decides: with
    /// [`Builder::expected_products`] the copy is made at the first call if it pays in so many products,
    /// and from 200 on by the clock too; without, when the products so far have taken as long as it takes. A
    /// [deterministic](Builder::deterministic) operator decides at the first call. Where the copy is
    /// beyond the [budget](Builder::budget), all products are straight from CSR.
    ///
    /// On a GPU the copy is made at the first call.
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths. On a GPU `Error::Plan` and `Error::Gpu`: a transposed
    /// copy beyond the budget or the memory of the device.
    pub fn apply_transpose(&self, x: &[T], y: &mut [T]) -> Result<(), Error> {
        self.apply_transpose_scaled(T::ONE, x, T::ZERO, y)
    }

    /// `y` = `alpha` A^T `x` + `beta` `y`, otherwise as [`Operator::apply_transpose`].
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths.
    pub fn apply_transpose_scaled(
        &self,
        alpha: T,
        x: &[T],
        beta: T,
        y: &mut [T],
    ) -> Result<(), Error> {
        self.run_transposed(false, (alpha, beta), x, y)
    }

    /// `y` = A^H `x`, the product with the conjugate transpose. x has m elements, y has n. For a real
    /// matrix this is [`Operator::apply_transpose`], with which it shares the transposed copy.
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths.
    pub fn apply_conj_transpose(&self, x: &[T], y: &mut [T]) -> Result<(), Error> {
        self.apply_conj_transpose_scaled(T::ONE, x, T::ZERO, y)
    }

    /// `y` = `alpha` A^H `x` + `beta` `y`, otherwise as [`Operator::apply_conj_transpose`].
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths.
    pub fn apply_conj_transpose_scaled(
        &self,
        alpha: T,
        x: &[T],
        beta: T,
        y: &mut [T],
    ) -> Result<(), Error> {
        self.run_transposed(true, (alpha, beta), x, y)
    }

    /// With A^H if `conjugate`. Checks the lengths.
    pub(crate) fn run_transposed(
        &self,
        conjugate: bool,
        scaling: (T, T),
        x: &[T],
        y: &mut [T],
    ) -> Result<(), Error> {
        check("x", self.rows(), x.len())?;
        check("y", self.cols(), y.len())?;
        let Inner { a, engine, .. } = &*self.inner;
        match engine {
            Engine::Cpu(cpu) => cpu.run_transposed(a, conjugate, scaling, x, y),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => {
                gpu.on_host(a, Form { transposed: true, conjugate }, scaling, x, None, y)
            }
        }
    }

    /// `y` = conj(A) `x`, straight from the CSR arrays of A; for a real matrix [`Operator::apply`]. x has
    /// n elements, y has m.
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths.
    pub fn apply_conj(&self, x: &[T], y: &mut [T]) -> Result<(), Error> {
        if !T::IS_COMPLEX {
            return self.apply(x, y);
        }
        let Inner { a, engine, .. } = &*self.inner;
        match engine {
            Engine::Cpu(cpu) => cpu.run_conjugate(a, x, y),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => {
                check("x", self.cols(), x.len())?;
                check("y", self.rows(), y.len())?;
                let form = Form { transposed: false, conjugate: true };
                gpu.on_host(a, form, (T::ONE, T::ZERO), x, None, y)
            }
        }
    }

    /// `Y` = A `X` for X with `k` columns. X has n k elements, Y has m k, both in `layout`.
    ///
    /// The first product of each width and layout makes a plan; the next ones share it. One column
    /// takes the plan of [`Operator::apply`].
    ///
    /// # Errors
    /// [`Error::Shape`]: slices of other lengths. [`Error::Plan`]: a workspace beyond the budget.
    pub fn apply_many(&self, x: &[T], y: &mut [T], k: usize, layout: Layout) -> Result<(), Error> {
        check("X", self.cols().saturating_mul(k), x.len())?;
        check("Y", self.rows().saturating_mul(k), y.len())?;
        let x = DenseRef::new(x, (self.cols(), k), layout)?;
        let y = DenseMut::new(y, (self.rows(), k), layout)?;
        self.apply_dense(T::ONE, x, T::ZERO, y)
    }

    /// `Y` = `alpha` A `X` + `beta` `Y` for an n x k matrix X and an m x k matrix Y, each row-major or
    /// column-major with a leading dimension.
    ///
    /// On CPU cores nothing is copied if both have one layout and several columns. An X in another layout
    /// than Y is copied first. So are, on a GPU and with one column, an X with gaps between its rows
    /// (row-major) or columns (column-major), and afterwards such a Y.
    ///
    /// ```
    /// use spm::{DenseMut, DenseRef, Layout, Operator};
    ///
    /// let op = Operator::new(spm::from_triplets((1, 2), [(0_u32, 0_u32, 2.0), (0, 1, 3.0)])?)?;
    /// // X is 2 x 2 in rows of 3 elements.
    /// let x = [1.0, 2.0, 0.0, 10.0, 20.0];
    /// let x = DenseRef::with_leading_dimension(&x, (2, 2), Layout::RowMajor, 3)?;
    /// let mut y = [100.0, 200.0];
    /// op.apply_dense(1.0, x, 1.0, DenseMut::new(&mut y, (1, 2), Layout::RowMajor)?)?;
    /// assert_eq!(y, [132.0, 264.0]);
    /// # Ok::<(), spm::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Operator::apply_many`].
    pub fn apply_dense(
        &self,
        alpha: T,
        x: DenseRef<'_, T>,
        beta: T,
        mut y: DenseMut<'_, T>,
    ) -> Result<(), Error> {
        check("rows of X", self.cols(), x.rows())?;
        check("rows of Y", self.rows(), y.rows())?;
        check("columns of Y", x.cols(), y.cols())?;
        let k = y.cols();
        if k == 0 || self.rows() == 0 {
            return Ok(());
        }
        if let Engine::Cpu(cpu) = &self.inner.engine
            && k > 1
            && x.layout() == y.layout()
        {
            let dense = DenseShape { k, layout: y.layout() };
            let leading = [x.leading_dimension(), y.leading_dimension()];
            let plan = cpu.many(&self.inner.a, dense)?;
            return plan.run_leading((alpha, beta), x.elements(), y.elements(), leading);
        }
        let (mut of_x, mut of_y) = (self.workspace(), Vec::new());
        let x = x.contiguous(y.layout(), &mut of_x);
        let dense = DenseShape { k, layout: y.layout() };
        if let Some(y) = y.as_contiguous() {
            self.run_many(dense, (alpha, beta), x, y)?;
        } else {
            of_y = self.workspace();
            of_y.resize(self.rows() * k, T::ZERO);
            self.run_many(dense, (alpha, T::ZERO), x, &mut of_y)?;
            y.update(&of_y, |y, product| {
                *y = if beta == T::ZERO { product } else { product + beta * *y };
            });
        }
        self.give_back([of_x, of_y]);
        Ok(())
    }

    /// Contiguous operands of the right sizes.
    fn run_many(
        &self,
        dense: DenseShape,
        (alpha, beta): (T, T),
        x: &[T],
        y: &mut [T],
    ) -> Result<(), Error> {
        if dense.k == 1 {
            return self.apply_scaled(alpha, x, beta, y);
        }
        let Inner { a, engine, .. } = &*self.inner;
        match engine {
            Engine::Cpu(cpu) => cpu.many(a, dense)?.run(alpha, x, beta, y),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => gpu.many_on_host(a, dense, (alpha, beta), x, y),
        }
    }

    /// An empty vector that may have room.
    fn workspace(&self) -> Vec<T> {
        let mut free = self.inner.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.pop().unwrap_or_default()
    }

    fn give_back(&self, workspaces: [Vec<T>; 2]) {
        let mut free = self.inner.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.extend(workspaces.into_iter().filter(|workspace| workspace.capacity() > 0));
    }

    /// Replaces the values of the stored entries, row after row and by ascending column inside a
    /// row; the pattern and the choice of kernel stay. Products give the same bits as those of a new
    /// operator with this [recipe](Operator::recipe). Nothing is planned again unless the kernel depends
    /// on the former values. If it does not suit the new ones at all (it stores one half of a symmetric
    /// matrix, and the new one is not symmetric), the operator multiplies straight from CSR from then on.
    ///
    /// Clones that were made before keep the former values; the operator then plans anew. The arrays are
    /// overwritten in place where neither a clone nor another owner of the matrix uses them, otherwise
    /// copied. A transposed copy is dropped, and made again when it is needed.
    ///
    /// On a GPU the first new values may cost a second plan (`Builder::new_values` prevents this); later
    /// ones are copied to the device and put into their places there.
    ///
    /// # Errors
    /// [`Error::Shape`]: another number of values. `Error::Gpu`: a GPU that fails or has too little memory
    /// for a second plan; the operator keeps its former values then.
    pub fn set_values(&mut self, values: &[T]) -> Result<(), Error> {
        self.replace_values(values.into())
    }

    /// As [`Operator::set_values`], without a copy on the host: `values` becomes the array of the matrix, and has
    /// the former values afterwards. Its memory serves for the next values.
    ///
    /// # Errors
    /// As [`Operator::set_values`]; `values` is as it was then.
    pub fn swap_values(&mut self, values: &mut Vec<T>) -> Result<(), Error> {
        self.replace_values(values.into())
    }

    fn replace_values(&mut self, mut values: Replacement<'_, T>) -> Result<(), Error> {
        check("values", self.nnz(), values.get().len())?;
        if self.give_to_plan(values.reborrow()) {
            return Ok(());
        }
        self.plan_anew(|a| values.reborrow().put_into(Arc::make_mut(a)))
    }

    /// As [`Operator::set_values`], with the values of a matrix that has its entries at the same
    /// places, in any form that an operator can be made of.
    ///
    /// # Errors
    /// [`Error::Pattern`]: entries at other places; those of [`IntoCsr::into_csr`].
    pub fn set_matrix<A: IntoCsr<Scalar = T>>(&mut self, a: A) -> Result<(), Error> {
        let (mut new, now) = (a.into_csr()?, &self.inner.a);
        let alike = new.shape() == now.shape()
            && new.row_ptr() == now.row_ptr()
            && new.col_ind() == now.col_ind();
        if !alike {
            return Err(Error::Pattern);
        }
        if self.give_to_plan(new.values().into()) {
            return Ok(());
        }
        self.plan_anew(|a| std::mem::swap(a, &mut new))
    }

    /// Hands new values to the plan. Returns whether it took them: not while a clone uses it.
    fn give_to_plan(&mut self, values: Replacement<'_, T>) -> bool {
        let Some(Inner { a, engine, .. }) = Arc::get_mut(&mut self.inner) else { return false };
        match engine {
            Engine::Cpu(cpu) => cpu.set_values(a, values),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => gpu.set_values(a, values),
        }
    }

    /// Plans anew after `exchange` has replaced the values. A second call of it undoes the first.
    fn plan_anew(&mut self, mut exchange: impl FnMut(&mut Arc<Csr<T>>)) -> Result<(), Error> {
        let again = match &self.inner.engine {
            Engine::Cpu(cpu) => cpu.again(),
            #[cfg(feature = "gpu")]
            Engine::Gpu(gpu) => {
                // The device may fail: the operator keeps its former values then.
                let mut a = Arc::clone(&self.inner.a);
                exchange(&mut a);
                let again = gpu.again(&a).inspect_err(|_| exchange(&mut a))?;
                *self = Self::from_parts(a, Engine::Gpu(again));
                return Ok(());
            }
        };
        // Without the plans, which share it, the matrix may have one owner.
        let former = std::mem::replace(&mut self.inner, Self::new(Csr::empty(0, 0)?)?.inner);
        let mut a = match Arc::try_unwrap(former) {
            Ok(former) => former.a,
            Err(shared) => Arc::clone(&shared.a),
        };
        exchange(&mut a);
        let engine = Engine::Cpu(again.plan(&a));
        *self = Self::from_parts(a, engine);
        Ok(())
    }
}

//! Vectors where an operator's products run.

use spm_formats::kernel::Scaling;
use spm_formats::{DenseShape, Layout, RealScalar, Scalar};
use spm_gpu::{DeviceScalar, DeviceVector, GpuError};

use crate::error::check;
use crate::gpu::{Form, GpuProducts};
use crate::operator::Engine;
use crate::{DenseMut, DenseRef, Error, Operator};

/// A vector in the memory of an operator's device: on a GPU, or in host memory for an operator on CPU
/// cores. A solver that is written with vectors runs on both, and copies none of them.
///
/// [`Operator::vector_from`] and [`Operator::vector_zeros`] make it. Vectors that are used together must
/// be in one place: operators on one GPU share it, and all that are on CPU cores. Operations on a GPU
/// return before they are done, but for those that return elements or numbers; an operation is done
/// after those before it, from whatever threads.
///
/// ```
/// use spm::{Device, Operator};
///
/// let a = spm::from_triplets((2, 2), [(0_usize, 0_usize, 2.0), (1, 1, 3.0)])?;
/// let op = Operator::builder(a).device(Device::auto()).build()?;
/// let (x, mut y) = (op.vector_from(&[1.0, 10.0])?, op.vector_zeros(2)?);
/// op.apply_vector(&x, &mut y)?; // y = A x
/// y.axpy(-1.0, &x)?; // y = y - x
/// assert_eq!((y.to_vec()?, y.dot(&x)?), (vec![1.0, 20.0], 201.0));
/// # Ok::<(), spm::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "programs have few vectors")]
pub enum Vector<T> {
    /// In host memory.
    Host(Vec<T>),
    /// In the memory of a GPU.
    Device(DeviceVector<T>),
}

/// The two vectors of an operation, in one place.
macro_rules! both {
    ($what:literal, $a:expr, $b:expr, ($x:ident, $y:ident) => $host:expr, $device:expr) => {
        match ($a, $b) {
            (Vector::Host($x), Vector::Host($y)) => {
                check($what, $y.len(), $x.len())?;
                $host
            }
            (Vector::Device($x), Vector::Device($y)) => $device,
            _ => return Err(Error::Place { what: $what }),
        }
    };
}

impl<T: DeviceScalar> Vector<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Host(elements) => elements.len(),
            Self::Device(elements) => elements.len(),
        }
    }

    /// No elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy in the same place.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(match self {
            Self::Host(elements) => Self::Host(elements.clone()),
            Self::Device(elements) => Self::Device(elements.try_clone()?),
        })
    }

    /// The elements, copied to host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        Ok(match self {
            Self::Host(elements) => elements.clone(),
            Self::Device(elements) => elements.to_vec()?,
        })
    }

    /// Overwrites `elements` with the vector.
    ///
    /// # Errors
    /// [`Error::Shape`] for another length, [`Error::Gpu`].
    pub fn copy_to_slice(&self, elements: &mut [T]) -> Result<(), Error> {
        check("slice", self.len(), elements.len())?;
        match self {
            Self::Host(own) => elements.copy_from_slice(own),
            Self::Device(own) => own.copy_to_slice(elements)?,
        }
        Ok(())
    }

    /// Overwrites the vector with `elements`.
    ///
    /// # Errors
    /// [`Error::Shape`] for another length, [`Error::Gpu`].
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<(), Error> {
        check("slice", self.len(), elements.len())?;
        match self {
            Self::Host(own) => own.copy_from_slice(elements),
            Self::Device(own) => own.copy_from_slice(elements)?,
        }
        Ok(())
    }

    /// Overwrites the vector with `x`.
    ///
    /// # Errors
    /// [`Error::Shape`] for another length, [`Error::Place`], [`Error::Gpu`].
    pub fn copy_from(&mut self, x: &Self) -> Result<(), Error> {
        both!("x", x, self, (x, y) => y.copy_from_slice(x), y.copy_from(x)?);
        Ok(())
    }

    /// Overwrites every element with `value`.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn fill(&mut self, value: T) -> Result<(), Error> {
        match self {
            Self::Host(elements) => elements.fill(value),
            Self::Device(elements) => elements.fill(value)?,
        }
        Ok(())
    }

    /// `self` = `alpha` `self`.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn scale(&mut self, alpha: T) -> Result<(), Error> {
        match self {
            Self::Host(elements) => {
                elements.iter_mut().for_each(|y| *y = Scalar::scaled(*y, alpha))
            }
            Self::Device(elements) => elements.scale(alpha)?,
        }
        Ok(())
    }

    /// `self` = `alpha` `x` + `self`.
    ///
    /// # Errors
    /// [`Error::Shape`] for another length, [`Error::Place`], [`Error::Gpu`].
    pub fn axpy(&mut self, alpha: T, x: &Self) -> Result<(), Error> {
        self.axpby(alpha, x, <T as Scalar>::ONE)
    }

    /// `self` = `alpha` `x` + `beta` `self`. If beta is 0, `self` is overwritten and never read: NaN and
    /// infinity in it do not spread.
    ///
    /// # Errors
    /// [`Error::Shape`] for another length, [`Error::Place`], [`Error::Gpu`].
    pub fn axpby(&mut self, alpha: T, x: &Self, beta: T) -> Result<(), Error> {
        let scaling = Scaling::new(alpha, beta);
        both!("x", x, self, (x, y) => scaling.combine(x, y), y.axpby(alpha, x, beta)?);
        Ok(())
    }

    /// Overwrites each element with the product of those of `x` and `y`: the product of a diagonal matrix
    /// and a vector.
    ///
    /// # Errors
    /// [`Error::Shape`] for other lengths, [`Error::Place`], [`Error::Gpu`].
    pub fn set_product(&mut self, x: &Self, y: &Self) -> Result<(), Error> {
        match (self, x, y) {
            (Self::Host(z), Self::Host(x), Self::Host(y)) => {
                check("x", z.len(), x.len())?;
                check("y", z.len(), y.len())?;
                let factors = x.iter().zip(y);
                z.iter_mut().zip(factors).for_each(|(z, (&x, &y))| *z = x * y);
            }
            (Self::Device(z), Self::Device(x), Self::Device(y)) => z.set_product(x, y)?,
            _ => return Err(Error::Place { what: "x" }),
        }
        Ok(())
    }

    /// The sum of the products of the elements of `self`, conjugate if they are complex, and of `x`.
    ///
    /// # Errors
    /// [`Error::Shape`] for another length, [`Error::Place`], [`Error::Gpu`].
    pub fn dot(&self, x: &Self) -> Result<T, Error> {
        let sum = both!("x", x, self, (x, y) => dot(y, x), y.dot(x)?);
        Ok(sum)
    }

    /// The Euclidean norm: the square root of [`Vector::dot`] with itself, which overflows where a square
    /// does.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn norm2(&self) -> Result<T::Real, Error> {
        Ok(match self {
            Self::Host(x) => {
                let square = dot(x, x).re();
                T::Real::from_f64(square.to_f64().sqrt())
            }
            Self::Device(x) => x.norm2()?,
        })
    }
}

/// The sum of conj(x) y, in four sums, so that an addition does not wait for the one before it.
fn dot<T: Scalar>(x: &[T], y: &[T]) -> T {
    let (x, y) = (x.chunks(4), y.chunks(4));
    let mut sums = [T::ZERO; 4];
    for (x, y) in x.zip(y) {
        let products = x.iter().zip(y).map(|(&x, &y)| Scalar::conj(x) * y);
        sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

impl<T> From<DeviceVector<T>> for Vector<T> {
    fn from(elements: DeviceVector<T>) -> Self {
        Self::Device(elements)
    }
}

/// Products with [`Vector`]s, with the feature `gpu`.
impl<T: DeviceScalar> Operator<T> {
    /// A vector of these elements where the operator's products run.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn vector_from(&self, elements: &[T]) -> Result<Vector<T>, Error> {
        Ok(match self.engine() {
            Engine::Cpu(_) => Vector::Host(elements.to_vec()),
            Engine::Gpu(gpu) => {
                DeviceVector::from_slice(&gpu.gpu().stream, elements).map(Vector::Device)?
            }
        })
    }

    /// A vector of `length` zeros where the operator's products run.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn vector_zeros(&self, length: usize) -> Result<Vector<T>, Error> {
        Ok(match self.engine() {
            Engine::Cpu(_) => Vector::Host(vec![<T as Scalar>::ZERO; length]),
            Engine::Gpu(gpu) => {
                DeviceVector::zeros(&gpu.gpu().stream, length).map(Vector::Device)?
            }
        })
    }

    /// `y` = A `x`, as [`Operator::apply`].
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths. [`Error::Place`]: vectors that are not where the
    /// operator's products run. [`Error::Gpu`].
    pub fn apply_vector(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<(), Error> {
        self.apply_vector_scaled(<T as Scalar>::ONE, x, <T as Scalar>::ZERO, y)
    }

    /// `y` = `alpha` A `x` + `beta` `y`, as [`Operator::apply_scaled`].
    ///
    /// # Errors
    /// As [`Operator::apply_vector`].
    pub fn apply_vector_scaled(
        &self,
        alpha: T,
        x: &Vector<T>,
        beta: T,
        y: &mut Vector<T>,
    ) -> Result<(), Error> {
        self.run_vectors(Form::PLAIN, (alpha, beta), x, y)
    }

    /// `y` = A^T `x`, as [`Operator::apply_transpose`].
    ///
    /// # Errors
    /// As [`Operator::apply_vector`].
    pub fn apply_transpose_vector(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<(), Error> {
        self.apply_transpose_vector_scaled(<T as Scalar>::ONE, x, <T as Scalar>::ZERO, y)
    }

    /// `y` = `alpha` A^T `x` + `beta` `y`, as [`Operator::apply_transpose_scaled`].
    ///
    /// # Errors
    /// As [`Operator::apply_vector`].
    pub fn apply_transpose_vector_scaled(
        &self,
        alpha: T,
        x: &Vector<T>,
        beta: T,
        y: &mut Vector<T>,
    ) -> Result<(), Error> {
        let form = Form { transposed: true, conjugate: false };
        self.run_vectors(form, (alpha, beta), x, y)
    }

    /// `y` = `alpha` A^H `x` + `beta` `y`, as [`Operator::apply_conj_transpose_scaled`].
    ///
    /// # Errors
    /// As [`Operator::apply_vector`].
    pub fn apply_conj_transpose_vector_scaled(
        &self,
        alpha: T,
        x: &Vector<T>,
        beta: T,
        y: &mut Vector<T>,
    ) -> Result<(), Error> {
        let form = Form { transposed: true, conjugate: true };
        self.run_vectors(form, (alpha, beta), x, y)
    }

    /// `Y` = A `X` for an X with `k` columns, as [`Operator::apply_many`]: X has n k elements, Y has m k, both
    /// in `layout`.
    ///
    /// ```
    /// use spm::{Device, Layout, Operator};
    ///
    /// let a = spm::from_triplets((2, 2), [(0_usize, 0_usize, 2.0), (1, 1, 3.0)])?;
    /// let op = Operator::builder(a).device(Device::auto()).build()?;
    /// // | 1 10 |
    /// // | 2 20 |
    /// let (x, mut y) = (op.vector_from(&[1.0, 10.0, 2.0, 20.0])?, op.vector_zeros(4)?);
    /// op.apply_many_vector(&x, &mut y, 2, Layout::RowMajor)?;
    /// assert_eq!(y.to_vec()?, [2.0, 20.0, 6.0, 60.0]);
    /// # Ok::<(), spm::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Operator::apply_vector`]; [`Error::Plan`]: a workspace beyond the budget.
    pub fn apply_many_vector(
        &self,
        x: &Vector<T>,
        y: &mut Vector<T>,
        k: usize,
        layout: Layout,
    ) -> Result<(), Error> {
        let (one, zero) = (<T as Scalar>::ONE, <T as Scalar>::ZERO);
        self.apply_many_vector_scaled(one, x, zero, y, k, layout)
    }

    /// `Y` = `alpha` A `X` + `beta` `Y` for an X with `k` columns, as [`Operator::apply_dense`] without gaps
    /// between rows or columns. If beta is 0, Y is overwritten and never read.
    ///
    /// # Errors
    /// As [`Operator::apply_many_vector`].
    pub fn apply_many_vector_scaled(
        &self,
        alpha: T,
        x: &Vector<T>,
        beta: T,
        y: &mut Vector<T>,
        k: usize,
        layout: Layout,
    ) -> Result<(), Error> {
        let (rows, cols) = self.shape();
        check("X", cols.saturating_mul(k), x.len())?;
        check("Y", rows.saturating_mul(k), y.len())?;
        match (self.engine(), x, y) {
            (Engine::Cpu(_), Vector::Host(x), Vector::Host(y)) => {
                let x = DenseRef::new(x, (cols, k), layout)?;
                self.apply_dense(alpha, x, beta, DenseMut::new(y, (rows, k), layout)?)
            }
            (Engine::Gpu(gpu), Vector::Device(x), Vector::Device(y)) => {
                if k == 1 {
                    return self.on_device(&**gpu, Form::PLAIN, (alpha, beta), x, None, y);
                }
                check_devices(&**gpu, x, y)?;
                if y.is_empty() {
                    return Ok(());
                }
                let dense = DenseShape { k, layout };
                gpu.many_on_device(self.matrix(), dense, (alpha, beta), x, y)
            }
            _ => Err(Error::Place { what: "X" }),
        }
    }

    /// `r` = `b` - A `x`, as [`Operator::residual`].
    ///
    /// # Errors
    /// As [`Operator::apply_vector`].
    pub fn residual_vector(
        &self,
        b: &Vector<T>,
        x: &Vector<T>,
        r: &mut Vector<T>,
    ) -> Result<(), Error> {
        match (self.engine(), b, x, r) {
            (Engine::Cpu(_), Vector::Host(b), Vector::Host(x), Vector::Host(r)) => {
                self.residual(b, x, r)
            }
            (Engine::Gpu(gpu), Vector::Device(b), Vector::Device(x), Vector::Device(r)) => {
                check("b", self.rows(), b.len())?;
                let scaling = (-<T as Scalar>::ONE, <T as Scalar>::ONE);
                self.on_device(&**gpu, Form::PLAIN, scaling, x, Some(b), r)
            }
            _ => Err(Error::Place { what: "x" }),
        }
    }

    /// `y` = `alpha` op(A) `x` + `beta` `y`. Checks the places and lengths of `x` and `y`.
    fn run_vectors(
        &self,
        form: Form,
        scaling: (T, T),
        x: &Vector<T>,
        y: &mut Vector<T>,
    ) -> Result<(), Error> {
        match (self.engine(), x, y) {
            (Engine::Cpu(_), Vector::Host(x), Vector::Host(y)) if form.transposed => {
                self.run_transposed(form.conjugate, scaling, x, y)
            }
            (Engine::Cpu(_), Vector::Host(x), Vector::Host(y)) => {
                self.apply_scaled(scaling.0, x, scaling.1, y)
            }
            (Engine::Gpu(gpu), Vector::Device(x), Vector::Device(y)) => {
                self.on_device(&**gpu, form, scaling, x, None, y)
            }
            _ => Err(Error::Place { what: "x" }),
        }
    }

    /// Checks the lengths of `x` and `y`.
    fn on_device(
        &self,
        gpu: &dyn GpuProducts<T>,
        form: Form,
        scaling: (T, T),
        x: &DeviceVector<T>,
        z: Option<&DeviceVector<T>>,
        y: &mut DeviceVector<T>,
    ) -> Result<(), Error> {
        let (rows, cols) = self.shape();
        let (of_x, of_y) = if form.transposed { (rows, cols) } else { (cols, rows) };
        check("x", of_x, x.len())?;
        check("y", of_y, y.len())?;
        check_devices(gpu, x, y)?;
        gpu.on_device(self.matrix(), form, scaling, x, z, y)
    }
}

/// Refuses vectors of another device, before a plan is made for them.
fn check_devices<T: DeviceScalar>(
    gpu: &dyn GpuProducts<T>,
    x: &DeviceVector<T>,
    y: &DeviceVector<T>,
) -> Result<(), Error> {
    for (what, vector) in [("x", x), ("y", y)] {
        if !vector.device().is(&gpu.gpu().device) {
            return Err(GpuError::OtherDevice { what }.into());
        }
    }
    Ok(())
}

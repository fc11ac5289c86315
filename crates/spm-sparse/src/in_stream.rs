//! Products with arrays in device memory, in a stream of the caller's.

use spm_formats::DenseShape;
use spm_gpu::{Device, DeviceBuffer, DeviceScalar, GpuError, Stream};

use crate::error::check;
use crate::gpu::{Form, GpuProducts};
use crate::operator::Engine;
use crate::{Error, Operator};

/// Products in a stream, with the feature `gpu`: for programs that have their own streams and memory
/// ([`Stream::from_raw`], [`DeviceBuffer::from_raw`]). [`Vector`](crate::Vector)s are simpler.
///
/// A product returns when it is in the stream. It reads and writes the plan of the operator, and waits for
/// the former product of the same plan, whatever its stream. The first product of each kind makes a plan,
/// which waits for the device.
impl<T: DeviceScalar> Operator<T> {
    /// The GPU of the operator; nothing on CPU cores.
    pub fn device(&self) -> Option<&Device> {
        match self.engine() {
            Engine::Cpu(_) => None,
            Engine::Gpu(gpu) => Some(&gpu.gpu().device),
        }
    }

    /// `y` = `alpha` op(A) `x` + `beta` `y` in `stream`, where op(A) is the form of A. Vectors have the
    /// lengths of [`Operator::apply_scaled`] and [`Operator::apply_transpose_scaled`].
    ///
    /// ```
    /// use spm::{Device, Form, Operator};
    /// use spm_gpu::{DeviceBuffer, Stream};
    ///
    /// let a = spm::from_triplets((1, 2), [(0_u32, 0_u32, 2.0), (0, 1, 3.0)])?;
    /// let op = Operator::builder(a).device(Device::emulated()).build()?;
    /// let device = op.device().expect("an operator on a GPU");
    /// let stream = Stream::new(device)?;
    /// let x = DeviceBuffer::from_slice(device, &[1.0, 10.0])?;
    /// let mut y = DeviceBuffer::uninitialized(device, 1)?;
    /// op.apply_in_stream(Form::PLAIN, 1.0, &x, 0.0, &mut y, &stream)?;
    /// stream.synchronize()?;
    /// assert_eq!(y.to_vec()?, [32.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`]: arrays of other lengths. [`Error::Place`]: an operator on CPU cores.
    /// [`Error::Gpu`]: arrays or a stream of another device, a GPU that fails.
    pub fn apply_in_stream(
        &self,
        form: Form,
        alpha: T,
        x: &DeviceBuffer<T>,
        beta: T,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let (rows, cols) = self.shape();
        let (of_x, of_y) = if form.transposed { (rows, cols) } else { (cols, rows) };
        let gpu = self.in_stream((of_x, x), (of_y, y), stream)?;
        gpu.in_stream(self.matrix(), form, (alpha, beta), x, y, stream)
    }

    /// `Y` = `alpha` A `X` + `beta` `Y` in `stream` for an X of `dense.k` columns, both in `dense.layout`
    /// without gaps. One column takes the plan of [`Operator::apply_in_stream`].
    ///
    /// # Errors
    /// As [`Operator::apply_in_stream`]; [`Error::Plan`]: a workspace beyond the budget.
    pub fn apply_dense_in_stream(
        &self,
        dense: DenseShape,
        alpha: T,
        x: &DeviceBuffer<T>,
        beta: T,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), Error> {
        if dense.k == 1 {
            return self.apply_in_stream(Form::PLAIN, alpha, x, beta, y, stream);
        }
        let (rows, cols) = self.shape();
        let of = |lines: usize| lines.saturating_mul(dense.k);
        let gpu = self.in_stream((of(cols), x), (of(rows), y), stream)?;
        if y.is_empty() {
            return Ok(());
        }
        gpu.many_in_stream(self.matrix(), dense, (alpha, beta), x, y, stream)
    }

    /// The products, if all is of one device and of the right length: before a plan is made for them.
    fn in_stream(
        &self,
        (of_x, x): (usize, &DeviceBuffer<T>),
        (of_y, y): (usize, &DeviceBuffer<T>),
        stream: &Stream,
    ) -> Result<&dyn GpuProducts<T>, Error> {
        let Engine::Gpu(gpu) = self.engine() else { return Err(Error::Place { what: "x" }) };
        check("x", of_x, x.len())?;
        check("y", of_y, y.len())?;
        let devices = [("x", x.device()), ("y", y.device()), ("stream", stream.device())];
        match devices.into_iter().find(|(_, device)| !device.is(&gpu.gpu().device)) {
            Some((what, _)) => Err(GpuError::OtherDevice { what }.into()),
            None => Ok(&**gpu),
        }
    }
}

//! Arrays of ndarray for x and y.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis};
use spm_formats::{Layout, Scalar};

use crate::error::check;
use crate::{DenseMut, DenseRef, Error, Operator};

/// The layout of an array whose elements are all in one slice.
fn layout_of(strides: &[isize], cols: usize) -> Layout {
    if strides[1] == 1 || cols <= 1 { Layout::RowMajor } else { Layout::ColumnMajor }
}

/// Products with arrays of ndarray; feature `ndarray`.
impl<T: Scalar> Operator<T> {
    /// `y` = `alpha` A `x` + `beta` `y` for one-dimensional arrays. An array whose elements are not
    /// next to each other is copied.
    ///
    /// # Errors
    /// [`Error::Shape`]: arrays of other lengths.
    pub fn apply_array1(
        &self,
        alpha: T,
        x: ArrayView1<'_, T>,
        beta: T,
        mut y: ArrayViewMut1<'_, T>,
    ) -> Result<(), Error> {
        let x = x.as_standard_layout();
        let x = x.as_slice().expect("standard layout");
        if let Some(y) = y.as_slice_mut() {
            return self.apply_scaled(alpha, x, beta, y);
        }
        let mut copy = y.to_vec();
        self.apply_scaled(alpha, x, beta, &mut copy)?;
        y.assign(&ArrayView1::from(&copy));
        Ok(())
    }

    /// `Y` = `alpha` A `X` + `beta` `Y` for two-dimensional arrays. An array that is neither
    /// row-major nor column-major without gaps is copied.
    ///
    /// ```
    /// use ndarray::{Array2, array};
    ///
    /// let a = spm::from_triplets((1, 2), [(0_u32, 0_u32, 2.0), (0, 1, 3.0)])?;
    /// let (x, mut y) = (array![[1.0, 2.0], [10.0, 20.0]], Array2::zeros((1, 2)));
    /// spm::Operator::new(a)?.apply_array2(1.0, x.view(), 0.0, y.view_mut())?;
    /// assert_eq!(y, array![[32.0, 64.0]]);
    /// # Ok::<(), spm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`]: arrays of other shapes. [`Error::Plan`]: a workspace beyond the budget.
    pub fn apply_array2(
        &self,
        alpha: T,
        x: ArrayView2<'_, T>,
        beta: T,
        mut y: ArrayViewMut2<'_, T>,
    ) -> Result<(), Error> {
        check("rows of X", self.cols(), x.nrows())?;
        check("rows of Y", self.rows(), y.nrows())?;
        check("columns of Y", x.ncols(), y.ncols())?;
        let copy;
        let in_order = x.is_standard_layout() || x.t().is_standard_layout();
        let x = if in_order {
            x
        } else {
            copy = x.as_standard_layout();
            copy.view()
        };
        let layout = layout_of(x.strides(), x.ncols());
        let elements = x.to_slice_memory_order().expect("one slice");
        let x = DenseRef::new(elements, (self.cols(), y.ncols()), layout)?;
        let shape = y.dim();
        if y.is_standard_layout() || y.t().is_standard_layout() {
            let layout = layout_of(y.strides(), y.ncols());
            let elements = y.as_slice_memory_order_mut().expect("one slice");
            return self.apply_dense(alpha, x, beta, DenseMut::new(elements, shape, layout)?);
        }
        let mut copy: Vec<T> = y.iter().copied().collect();
        self.apply_dense(alpha, x, beta, DenseMut::new(&mut copy, shape, Layout::RowMajor)?)?;
        for (mut row, from) in y.axis_iter_mut(Axis(0)).zip(copy.chunks(shape.1.max(1))) {
            row.assign(&ArrayView1::from(from));
        }
        Ok(())
    }
}

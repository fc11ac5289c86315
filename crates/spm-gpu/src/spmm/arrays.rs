//! Plans that differ by their kernels and launches only: the kernels take the arrays of CSR, or
//! those of ELLPACK, and strides of X and Y.

/// The plan of a kernel that takes CSR arrays and X as it is.
macro_rules! csr_plan {
    ($problem:ident, $launch:ident, |$a:ident| $kernel:ident { $($fields:tt)* }) => {{
        let dense = $problem.dense;
        let a = $crate::matrix::DeviceCsr::new($problem.device, $problem.a)?;
        Ok($problem.product(a, 0, move |$a, x, y, stream| {
            let x = (x.ptr(), dense);
            $crate::spmm::arrays::launch_csr!($launch, $a, x, y, dense, stream, $kernel { $($fields)* })
        }))
    }};
}

/// The plan of a kernel that takes CSR arrays and a column-major X, which is rearranged in the run if
/// it is not; the launch needs `$bytes` bytes beside that.
macro_rules! csr_plan_by_column {
    ($problem:ident, $launch:ident, $bytes:expr, |$a:ident| $kernel:ident { $($fields:tt)* }) => {{
        let dense = $problem.dense;
        let a = $crate::matrix::DeviceCsr::new($problem.device, $problem.a)?;
        let layout = spm_formats::Layout::ColumnMajor;
        let mut ordered = $crate::spmm::rearrange::Ordered::new($problem.device, a.cols(), dense, layout)?;
        let workspace = ordered.bytes() + ($bytes) as u64;
        Ok($problem.product_with_scratch(a, workspace, move |$a, x, y, stream| {
            let x = (ordered.load(x, stream)?, spm_formats::DenseShape { layout, ..dense });
            $crate::spmm::arrays::launch_csr!($launch, $a, x, y, dense, stream, $kernel { $($fields)* })
        }))
    }};
}

macro_rules! launch_csr {
    (
        $launch:ident, $a:ident, $x:ident, $y:ident, $dense:ident, $stream:ident,
        $kernel:ident { $($fields:tt)* }
    ) => {{
        let args = $kernel {
            $($fields)*,
            k: $dense.k as u32,
            col_ind: $a.col_ind.ptr(),
            values: $a.values.ptr(),
            x: $x.0,
            x_strides: $crate::spmm::rearrange::strides($a.cols(), $x.1),
            y: $y.output(),
            y_strides: $crate::spmm::rearrange::strides($a.rows(), $dense),
        };
        // SAFETY: verified CSR arrays, X and Y of their shape and k > 0 columns; the launch has the
        // shared memory that the kernel takes.
        unsafe { $stream.device().launch::<$kernel<T>>($launch, $stream, args) }
    }};
}

/// The plan of a kernel that takes row-major ELLPACK arrays.
macro_rules! ell_plan {
    ($problem:ident, $launch:ident, $kernel:ident { $($field:ident: $value:expr)? }) => {{
        let dense = $problem.dense;
        let row_lengths = $problem.parameters.switch(ROW_LENGTHS.name);
        let options = spm_formats::convert::EllOptions::ROW_MAJOR;
        let a = spm_formats::convert::csr_to_ell($problem.a, options, $problem.budget)?;
        let a = $crate::matrix::DeviceEll::new($problem.device, &a, row_lengths)?;
        Ok($problem.product(a, 0, move |a, x, y, stream| {
            let (rows, cols) = $crate::matrix::DeviceMatrix::shape(a);
            let args = $kernel {
                rows: a.rows(),
                k: dense.k as u32,
                width: a.width,
                pitch: a.pitch,
                padded: u32::from(!row_lengths),
                row_lengths: a.row_lengths.ptr(),
                col_ind: a.col_ind.ptr(),
                values: a.values.ptr(),
                x: x.ptr(),
                x_strides: $crate::spmm::rearrange::strides(cols, dense),
                y: y.output(),
                y_strides: $crate::spmm::rearrange::strides(rows, dense),
                $($field: $value)?
            };
            // SAFETY: a row-major ELLPACK matrix made from verified CSR arrays, X and Y of its shape
            // and k > 0 columns; the launch has the shared memory that the kernel takes.
            unsafe { stream.device().launch::<$kernel<T>>($launch, stream, args) }
        }))
    }};
}
/// Launches a kernel that takes a SELL-32 matrix, with any layout of Y.
macro_rules! launch_sell {
    (
        $launch:ident, $a:ident, $x:ident, $y:ident, $dense:ident, $stream:ident,
        $kernel:ident { $field:ident: $value:expr }
    ) => {{
        let args = $kernel {
            rows: $a.rows(),
            $field: $value,
            k: $dense.k as u32,
            sorted: u32::from($a.permutation.is_some()),
            chunk_starts: $a.chunk_starts.ptr(),
            permutation: $a.permutation.as_ref().unwrap_or(&$a.row_lengths).ptr(),
            row_lengths: $a.row_lengths.ptr(),
            col_ind: $a.col_ind.ptr(),
            values: $a.values.ptr(),
            x: $x,
            y: $y.output(),
            y_strides: $crate::spmm::rearrange::strides($a.rows() as usize, $dense),
        };
        // SAFETY: a SELL-32 matrix made from verified CSR arrays, X in the layout of the kernel and Y
        // of its shape, and k > 0 columns, even where a thread of the kernel takes pairs.
        unsafe { $stream.device().launch::<$kernel<T>>($launch, $stream, args) }
    }};
}
pub(super) use {csr_plan, csr_plan_by_column, ell_plan, launch_csr, launch_sell};

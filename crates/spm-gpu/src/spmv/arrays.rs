//! Plans that differ by their kernels and launches only: the kernels take the arrays of CSR, or
//! those of ELLPACK.

/// The plan of a kernel that takes CSR arrays; `$product` is `product` or `product_with_scratch`.
macro_rules! csr_plan {
    ($problem:ident.$product:ident $([$alignment:expr])?, $launch:ident, $kernel:ident, |$x:ident| $read:expr) => {{
        let a = $crate::matrix::DeviceCsr::new($problem.device, $problem.a)?;
        Ok($problem.$product($($alignment,)? a, 0, move |a, $x, y, stream| {
            let args = $kernel {
                rows: a.rows() as u32,
                row_ptr: a.row_ptr.ptr(),
                col_ind: a.col_ind.ptr(),
                values: a.values.ptr(),
                x: $read,
                y: y.output(),
            };
            // SAFETY: verified CSR arrays, x (or a texture over it) and y of the lengths of their
            // shape; the launch has the shared memory that the kernel takes.
            unsafe { stream.device().launch::<$kernel<T>>($launch, stream, args) }
        }))
    }};
}

/// The plan of a pair of kernels that take ELLPACK arrays of the layout `$options`: one that stops at
/// the length of a row, and one that multiplies the padding.
macro_rules! ell_plan {
    ($problem:ident, $options:expr, $launch:ident, $kernel:ident, $padded:ident) => {{
        let row_lengths = $problem.parameters.switch($crate::spmv::parameters::ROW_LENGTHS.name);
        let a = spm_formats::convert::csr_to_ell($problem.a, $options, $problem.budget)?;
        let a = $crate::matrix::DeviceEll::new($problem.device, &a, row_lengths)?;
        let launch = $launch;
        Ok($problem.product(a, 0, move |a, x, y, stream| {
            if row_lengths {
                $crate::spmv::arrays::launch_ell!(launch, a, x, y, stream, $kernel {})
            } else {
                let width = a.width;
                $crate::spmv::arrays::launch_ell!(launch, a, x, y, stream, $padded { width })
            }
        }))
    }};
}

macro_rules! launch_ell {
    ($launch:ident, $a:ident, $x:ident, $y:ident, $stream:ident, $kernel:ident { $($width:ident)? }) => {{
        let args = $kernel {
            rows: $a.rows(),
            $($width,)?
            pitch: $a.pitch,
            row_lengths: $a.row_lengths.ptr(),
            col_ind: $a.col_ind.ptr(),
            values: $a.values.ptr(),
            x: $x.ptr(),
            y: $y.output(),
        };
        // SAFETY: an ELLPACK matrix of this layout, made from verified CSR arrays, and vectors of the
        // lengths of its shape.
        unsafe { $stream.device().launch::<$kernel<T>>($launch, $stream, args) }
    }};
}
pub(super) use {csr_plan, ell_plan, launch_ell};

//! The `kernel!` macro, which makes PTX entries, a host-side argument type and an emulated kernel
//! from one function.

#[cfg(not(target_arch = "nvptx64"))]
use core::ffi::c_void;

/// The host side of a kernel: the name of its PTX entry, the types of its arguments, and its body
/// for the emulator.
#[cfg(not(target_arch = "nvptx64"))]
pub trait Kernel: 'static {
    /// Name of the entry in the PTX.
    const NAME: &'static str;
    /// The arguments, in the order of the signature.
    type Args: KernelArgs + 'static;
    /// Runs one thread; called by the emulator inside a launch.
    fn emulate(args: Self::Args);
}

/// The arguments of a kernel, each of which is passed by its address (`cuLaunchKernel`).
#[cfg(not(target_arch = "nvptx64"))]
pub trait KernelArgs: Copy {
    /// Calls `f` with one pointer per argument, in the order of the signature. The pointers are
    /// valid during the call.
    fn with_raw(&self, f: &mut dyn FnMut(&mut [*mut c_void]));
}

/// The extent of a grid (in blocks) or of a block (in threads).
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dim3 {
    /// Fastest varying.
    pub x: u32,
    /// Second.
    pub y: u32,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Dim3 {
    /// x times y.
    pub fn count(self) -> u64 {
        u64::from(self.x) * u64::from(self.y)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self { x, y: 1 }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl core::fmt::Display for Dim3 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "({}, {})", self.x, self.y)
    }
}

/// Defines a kernel.
///
/// ```text
/// kernel! {
///     /// y = A x.
///     pub fn spmv_diagonal<T: Real>(rows: u32, diagonal: DevicePtr<T>, x: DevicePtr<T>, y: DevicePtrMut<T>) {
///         let row = thread::index_1d();
///         if row < rows {
///             y.store(row, diagonal.load(row) * x.load(row));
///         }
///     }
///     as SpmvDiagonal
/// }
/// ```
///
/// makes the function `spmv_diagonal<T>`, on the device the entries `spmv_diagonal_f32` and
/// `spmv_diagonal_f64`, and on the host the type `SpmvDiagonal<T>`: a struct with the arguments as
/// public fields that implements [`Kernel`] (with itself as `Args`) and [`KernelArgs`]. With
/// `<T: Number>` there are two more entries, `spmv_diagonal_c32` and `spmv_diagonal_c64`, for complex
/// numbers; without a type there is one, with the name of the function.
macro_rules! kernel {
    (
        $(#[$meta:meta])*
        pub fn $name:ident<$t:ident: Real>($($arg:ident: $type:ty),* $(,)?) $body:block
        as $marker:ident
    ) => {
        $crate::kernel::kernel! {
            @generic Real, ["_f32", "_f64"],
            $(#[$meta])*
            pub fn $name<$t>($($arg: $type),*) $body
            as $marker
        }
        $crate::kernel::entry!($name, $t = f32, "_f32", ($($arg: $type),*));
        $crate::kernel::entry!($name, $t = f64, "_f64", ($($arg: $type),*));
    };
    (
        $(#[$meta:meta])*
        pub fn $name:ident<$t:ident: Number>($($arg:ident: $type:ty),* $(,)?) $body:block
        as $marker:ident
    ) => {
        $crate::kernel::kernel! {
            @generic Number, ["_f32", "_f64", "_c32", "_c64"],
            $(#[$meta])*
            pub fn $name<$t>($($arg: $type),*) $body
            as $marker
        }
        $crate::kernel::entry!($name, $t = f32, "_f32", ($($arg: $type),*));
        $crate::kernel::entry!($name, $t = f64, "_f64", ($($arg: $type),*));
        $crate::kernel::entry!($name, $t = $crate::device::Complex<f32>, "_c32", ($($arg: $type),*));
        $crate::kernel::entry!($name, $t = $crate::device::Complex<f64>, "_c64", ($($arg: $type),*));
    };
    (
        @generic $bound:ident, [$($suffix:literal),*],
        $(#[$meta:meta])*
        pub fn $name:ident<$t:ident>($($arg:ident: $type:ty),*) $body:block
        as $marker:ident
    ) => {
        // The arguments of a kernel are what they are, and a launch names them.
        #[allow(clippy::too_many_arguments)]
        #[cfg_attr(target_arch = "nvptx64", inline(always))]
        fn $name<$t: $crate::device::$bound>($($arg: $type),*) $body

        $(#[$meta])*
        ///
        /// The fields are the arguments of the kernel.
        #[cfg(not(target_arch = "nvptx64"))]
        #[derive(Debug, Clone, Copy)]
        pub struct $marker<$t> {
            $(#[allow(missing_docs)] pub $arg: $type,)*
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl<$t: $crate::device::$bound> $crate::Kernel for $marker<$t> {
            const NAME: &'static str = [$(concat!(stringify!($name), $suffix)),*][$t::INDEX];
            type Args = Self;
            fn emulate(args: Self) {
                $name::<$t>($(args.$arg),*);
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl<$t: $crate::device::$bound> $crate::KernelArgs for $marker<$t> {
            fn with_raw(&self, f: &mut dyn FnMut(&mut [*mut core::ffi::c_void])) {
                let mut args = *self;
                f(&mut [$((&raw mut args.$arg).cast()),*]);
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block
        as $marker:ident
    ) => {
        #[allow(clippy::too_many_arguments)]
        #[cfg_attr(target_arch = "nvptx64", inline(always))]
        fn $name($($arg: $type),*) $body

        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            #[unsafe(export_name = stringify!($name))]
            extern "ptx-kernel" fn entry($($arg: $type),*) {
                $name($($arg),*);
            }
        };

        $(#[$meta])*
        ///
        /// The fields are the arguments of the kernel.
        #[cfg(not(target_arch = "nvptx64"))]
        #[derive(Debug, Clone, Copy)]
        pub struct $marker {
            $(#[allow(missing_docs)] pub $arg: $type,)*
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::Kernel for $marker {
            const NAME: &'static str = stringify!($name);
            type Args = Self;
            fn emulate(args: Self) {
                $name($(args.$arg),*);
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::KernelArgs for $marker {
            fn with_raw(&self, f: &mut dyn FnMut(&mut [*mut core::ffi::c_void])) {
                let mut args = *self;
                f(&mut [$((&raw mut args.$arg).cast()),*]);
            }
        }
    };
}
pub(crate) use kernel;

/// One PTX entry of a generic kernel.
macro_rules! entry {
    ($name:ident, $t:ident = $number:ty, $suffix:literal, ($($arg:ident: $type:ty),*)) => {
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            type $t = $number;
            #[unsafe(export_name = concat!(stringify!($name), $suffix))]
            extern "ptx-kernel" fn entry($($arg: $type),*) {
                $name::<$t>($($arg),*);
            }
        };
    };
}
pub(crate) use entry;

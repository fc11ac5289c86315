//! Texture objects over linear arrays: reads of x through the texture unit (R2 VI-A).

use cust::sys;
use spm_formats::kernel::PlanError;
use spm_gpu_kernels::device::Texture;

use crate::device::{Backend, Device};
use crate::error::{GpuError, check};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;

/// A texture object over the current x. It is created again only when the buffer changes, so a plan
/// that always gets the same x creates it once.
///
/// `f32` uses one 32-bit float channel. `f64`, for which textures have no channel, uses two 32-bit
/// integer channels with the low and the high half.
#[derive(Debug)]
pub(crate) struct LinearTexture {
    object: Option<Object>,
    device: Device,
}

#[derive(Debug)]
struct Object {
    handle: sys::CUtexObject,
    address: u64,
    length: usize,
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: created by cuTexObjectCreate, destroyed once, while its context is current and
        // no kernel uses it (`LinearTexture`).
        let _ = unsafe { sys::cuTexObjectDestroy(self.handle) };
    }
}

impl Drop for LinearTexture {
    fn drop(&mut self) {
        // The object is destroyed next: kernels that read through it have to be done.
        if self.object.is_some() && self.device.synchronize().is_err() {
            std::mem::forget(self.object.take());
        }
    }
}

impl LinearTexture {
    /// Of the array, in bytes, on every device so far (`CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT`).
    pub(crate) const ALIGNMENT: usize = 512;

    /// A texture for an x of `length` elements.
    ///
    /// # Errors
    /// More elements than a texture of this device can have.
    pub(crate) fn new(
        kernel: &'static str,
        device: &Device,
        length: usize,
    ) -> Result<Self, PlanError> {
        let limit = device.info().limits.texture_elements;
        if length as u64 > limit {
            let reason = format!("x has {length} elements, a texture at most {limit}");
            return Err(PlanError::Unsupported { kernel, reason });
        }
        Ok(Self { object: None, device: device.clone() })
    }

    /// The texture over `x`.
    ///
    /// # Errors
    /// A device that fails.
    pub(crate) fn over<T: DeviceReal>(
        &mut self,
        x: &DeviceBuffer<T>,
    ) -> Result<Texture<T>, GpuError> {
        let (address, length) = (x.address(), x.len());
        let handle = match self.device.backend() {
            // The emulator's textures are named by the address of their array.
            Backend::Emulator(_) => address,
            // A kernel over an empty x fetches nothing.
            Backend::Cuda(_) if length == 0 => 0,
            Backend::Cuda(_) => match &self.object {
                Some(object) if object.address == address && object.length == length => {
                    object.handle
                }
                _ => self.replace(x)?,
            },
        };
        // SAFETY: used by a launch only; the object lives until the launches are done with it.
        Ok(unsafe { Texture::from_raw(handle) })
    }

    fn replace<T: DeviceReal>(&mut self, x: &DeviceBuffer<T>) -> Result<u64, GpuError> {
        if self.object.is_some() {
            self.device.synchronize()?;
            self.object = None;
        }
        self.device.make_current()?;
        let (format, channels) = match T::INDEX {
            0 => (sys::CUarray_format_enum::CU_AD_FORMAT_FLOAT, 1),
            _ => (sys::CUarray_format_enum::CU_AD_FORMAT_SIGNED_INT32, 2),
        };
        let linear = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
            devPtr: x.address(),
            format,
            numChannels: channels,
            sizeInBytes: x.bytes(),
        };
        let resource = sys::CUDA_RESOURCE_DESC {
            resType: sys::CUresourcetype_enum::CU_RESOURCE_TYPE_LINEAR,
            res: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1 { linear },
            flags: 0,
        };
        // SAFETY: a plain structure of numbers; zero means clamped, unfiltered, not normalised.
        let mut texture: sys::CUDA_TEXTURE_DESC = unsafe { std::mem::zeroed() };
        texture.flags = sys::CU_TRSF_READ_AS_INTEGER;
        let mut handle = 0;
        // SAFETY: the descriptions describe a live buffer.
        check("cuTexObjectCreate", unsafe {
            sys::cuTexObjectCreate(&mut handle, &resource, &texture, std::ptr::null())
        })?;
        self.object = Some(Object { handle, address: x.address(), length: x.len() });
        Ok(handle)
    }
}

//! Device memory of the emulator: buffers in a separate address space.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::MutexGuard;

use super::order::{Operation, Trace};
use super::{Defect, Emulator, EmulatorError, EmulatorOptions};
use crate::device::{DevicePtr, DevicePtrMut, Element, Real, Texture};

/// Addresses are `(buffer + 1) << 40 | offset`, so an overrun never reaches another buffer.
const OFFSET_BITS: u32 = 40;

/// Raw bytes of an element, at most 32.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<const N: usize>(pub(crate) [u8; N]);

#[derive(Debug, Default)]
pub(super) struct Heap {
    buffers: Vec<Option<Storage>>,
    allocated: u64,
    pub(super) launches: u64,
    /// The operation that accesses memory now.
    operation: Operation,
}

#[derive(Debug)]
struct Storage {
    bytes: Vec<u8>,
    /// Of the address of the first byte, whose others are 0.
    low_bits: u64,
    /// One flag per byte, until all bytes are written.
    written: Option<Vec<bool>>,
    /// How the latest launch that used the buffer accessed each granule.
    uses: Vec<u8>,
    used_in: u64,
    trace: Trace,
}

/// The path of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Plain,
    ReadOnly,
}

/// Bytes of the smallest element.
const GRANULE: usize = 2;
/// Granules from which newly allocated zero memory is faster than clearing.
const LARGE: usize = 1 << 20;
/// In `Storage::uses`: overwritten, and read through the read-only path.
const STORED: u8 = 1;
const READ_ONLY: u8 = 2;

impl Storage {
    fn new(bytes: usize, low_bits: u64, zeroed: bool) -> Self {
        let written = (!zeroed).then(|| vec![false; bytes]);
        let trace = Trace::default();
        Self { bytes: vec![0; bytes], low_bits, written, uses: Vec::new(), used_in: 0, trace }
    }

    /// Records that `launch` accesses `size` bytes in one way. Returns false if it accessed one of
    /// them in the other way.
    #[inline(always)]
    fn note(&mut self, launch: u64, offset: usize, size: usize, way: u8) -> bool {
        if self.used_in != launch {
            self.used_in = launch;
            let granules = self.bytes.len().div_ceil(GRANULE);
            if granules > LARGE {
                self.uses = vec![0; granules];
            } else {
                self.uses.clear();
                self.uses.resize(granules, 0);
            }
        }
        let uses = &mut self.uses[offset / GRANULE..(offset + size).div_ceil(GRANULE)];
        let both = STORED | READ_ONLY;
        uses.iter_mut().fold(true, |alone, used| {
            *used |= way;
            alone && *used != both
        })
    }
}

/// Whether the host says that it has memory for a buffer with a flag for each byte. Only asked for
/// sizes that it may not have.
fn host_has(bytes: u64) -> bool {
    const CERTAIN: u64 = 1 << 36;
    let both = usize::try_from(bytes.saturating_mul(2));
    bytes <= CERTAIN
        || bytes < 1 << OFFSET_BITS
            && both.is_ok_and(|both| Vec::<u8>::new().try_reserve_exact(both).is_ok())
}

impl Heap {
    /// What is done from now on belongs to `operation`.
    pub(super) fn begin(&mut self, operation: Operation) {
        self.operation = operation;
    }

    /// Refuses work once the device is lost.
    pub(super) fn check_alive(&self, options: &EmulatorOptions) -> Result<(), EmulatorError> {
        if self.launches < options.launches { Ok(()) } else { Err(EmulatorError::DeviceLost) }
    }

    pub(super) fn allocated_bytes(&self) -> u64 {
        self.allocated
    }

    fn alloc(
        &mut self,
        bytes: u64,
        low_bits: u64,
        limit: u64,
        zeroed: bool,
    ) -> Result<usize, EmulatorError> {
        let free = limit.saturating_sub(self.allocated);
        if bytes > free || !host_has(bytes) {
            return Err(EmulatorError::OutOfMemory { requested: bytes, free });
        }
        self.allocated += bytes;
        self.buffers.push(Some(Storage::new(bytes as usize, low_bits, zeroed)));
        Ok(self.buffers.len() - 1)
    }

    fn free(&mut self, id: usize) {
        if let Some(storage) = self.buffers[id].take() {
            self.allocated -= storage.bytes.len() as u64;
        }
    }

    #[inline(always)]
    fn locate(
        &mut self,
        access: &'static str,
        address: u64,
        size: u32,
        alignment: u32,
    ) -> Result<(&mut Storage, usize, &Operation), Defect> {
        if address & u64::from(alignment - 1) != 0 {
            return Err(Defect::Misaligned { access, address, alignment });
        }
        let id = (address >> OFFSET_BITS).wrapping_sub(1) as usize;
        let offset = address & ((1 << OFFSET_BITS) - 1);
        let fail = |why| Err(Defect::OutOfBounds { access, address, bytes: size, why });
        match self.buffers.get_mut(id) {
            Some(Some(storage)) => {
                let length = storage.bytes.len();
                let offset = offset.wrapping_sub(storage.low_bits);
                if offset.saturating_add(u64::from(size)) <= length as u64 {
                    Ok((storage, offset as usize, &self.operation))
                } else {
                    fail(format!("starts at byte {offset} of a buffer of {length} bytes"))
                }
            }
            Some(None) => fail("lies in a buffer that was freed".to_owned()),
            None => fail("is no address of device memory".to_owned()),
        }
    }

    #[inline(always)]
    pub(super) fn load<const N: usize>(
        &mut self,
        path: Path,
        access: &'static str,
        address: u64,
        alignment: u32,
    ) -> Result<Bytes<N>, Defect> {
        let launch = self.launches;
        let (storage, offset, operation) = self.locate(access, address, N as u32, alignment)?;
        storage.trace.read(operation).map_err(|earlier| earlier.defect(access, address))?;
        if let Some(written) = &storage.written
            && !written[offset..offset + N].iter().all(|&w| w)
        {
            return Err(Defect::Uninitialized { access, address, bytes: N as u32 });
        }
        if path == Path::ReadOnly && !storage.note(launch, offset, N, READ_ONLY) {
            return Err(Defect::NotReadOnly { access, address, bytes: N as u32 });
        }
        let mut bytes = [0; N];
        bytes.copy_from_slice(&storage.bytes[offset..offset + N]);
        Ok(Bytes(bytes))
    }

    #[inline(always)]
    pub(super) fn store<const N: usize>(
        &mut self,
        access: &'static str,
        address: u64,
        alignment: u32,
        value: Bytes<N>,
    ) -> Result<(), Defect> {
        let launch = self.launches;
        let (storage, offset, operation) = self.locate(access, address, N as u32, alignment)?;
        storage.trace.write(operation).map_err(|earlier| earlier.defect(access, address))?;
        if !storage.note(launch, offset, N, STORED) {
            return Err(Defect::NotReadOnly { access, address, bytes: N as u32 });
        }
        storage.bytes[offset..offset + N].copy_from_slice(&value.0);
        if let Some(written) = &mut storage.written {
            written[offset..offset + N].fill(true);
        }
        Ok(())
    }
}

impl Heap {
    /// Overwrites a whole buffer with zero bytes.
    pub(super) fn zero(&mut self, id: usize) -> Result<(), Defect> {
        let Self { buffers, operation, .. } = self;
        let Some(storage) = &mut buffers[id] else { return Ok(()) };
        storage.trace.write(operation).map_err(|earlier| earlier.defect("store", address(id)))?;
        storage.bytes.fill(0);
        storage.written = None;
        Ok(())
    }

    /// Overwrites bytes of a buffer with as many of another one.
    pub(super) fn copy(
        &mut self,
        (source, from): (usize, Range<usize>),
        (target, to): (usize, Range<usize>),
    ) -> Result<(), Defect> {
        let Self { buffers, operation, .. } = self;
        let Some(storage) = &mut buffers[source] else { return Ok(()) };
        storage.trace.read(operation).map_err(|earlier| earlier.defect("load", address(source)))?;
        let bytes = storage.bytes[from.clone()].to_vec();
        let written = storage.written.as_ref().map(|written| written[from].to_vec());
        let Some(storage) = &mut buffers[target] else { return Ok(()) };
        storage
            .trace
            .write(operation)
            .map_err(|earlier| earlier.defect("store", address(target)))?;
        storage.bytes[to.clone()].copy_from_slice(&bytes);
        match (&mut storage.written, written) {
            (Some(known), Some(written)) => known[to].copy_from_slice(&written),
            (Some(known), None) => known[to].fill(true),
            (known @ None, Some(written)) if !written.iter().all(|&written| written) => {
                let mut all = vec![true; storage.bytes.len()];
                all[to].copy_from_slice(&written);
                *known = Some(all);
            }
            (None, _) => {}
        }
        Ok(())
    }
}

/// The location of a buffer.
fn address(id: usize) -> u64 {
    (id as u64 + 1) << OFFSET_BITS
}

/// An array in the memory of an [`Emulator`]; freed when dropped, and a kernel that uses it later is
/// reported. Whatever is done with it here waits for all streams first, as a copy between host and
/// device does.
#[derive(Debug)]
pub struct EmuBuffer<T> {
    emulator: Emulator,
    pub(super) id: usize,
    length: usize,
    low_bits: u64,
    element: PhantomData<T>,
}

impl<T> Drop for EmuBuffer<T> {
    fn drop(&mut self) {
        self.emulator.drain();
        self.emulator.heap().free(self.id);
    }
}

impl<T: Element> EmuBuffer<T> {
    pub(super) fn new(
        emulator: &Emulator,
        length: usize,
        low_bits: u64,
        zeroed: bool,
    ) -> Result<Self, EmulatorError> {
        let bytes = (length as u64).saturating_mul(size_of::<T>() as u64);
        let id = emulator.heap().alloc(bytes, low_bits, emulator.options().memory, zeroed)?;
        Ok(Self { emulator: emulator.clone(), id, length, low_bits, element: PhantomData })
    }

    fn lock(&self) -> MutexGuard<'_, Heap> {
        self.emulator.drain();
        self.emulator.heap()
    }

    /// The device that it lies on.
    pub(super) fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// No elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn address(&self) -> u64 {
        address(self.id) | self.low_bits
    }

    /// A pointer for the arguments of a kernel that reads the array.
    pub fn ptr(&self) -> DevicePtr<T> {
        // SAFETY: the emulator checks every access to an address that it gave out.
        unsafe { DevicePtr::from_raw(self.address()) }
    }

    /// A pointer for the arguments of a kernel that writes the array.
    pub fn ptr_mut(&self) -> DevicePtrMut<T> {
        // SAFETY: as above.
        unsafe { DevicePtrMut::from_raw(self.address()) }
    }

    /// Overwrites the whole buffer.
    ///
    /// # Panics
    /// When `data` has another length.
    pub fn write(&self, data: &[T]) {
        assert_eq!(data.len(), self.length, "the buffer has {} elements", self.length);
        let mut heap = self.lock();
        if let Some(storage) = &mut heap.buffers[self.id] {
            // SAFETY: an element has no padding (`Element`), so its bytes may be read.
            let bytes = unsafe {
                std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), size_of_val(data))
            };
            storage.bytes.copy_from_slice(bytes);
            storage.written = None;
        }
    }

    /// Overwrites the elements from `first` on. Of a large buffer only the parts in use take host
    /// memory.
    ///
    /// # Panics
    /// When the buffer ends before `data` does.
    pub fn write_at(&self, first: usize, data: &[T]) {
        let mut heap = self.lock();
        if let Some(storage) = &mut heap.buffers[self.id] {
            let place = first * size_of::<T>()..first * size_of::<T>() + size_of_val(data);
            // SAFETY: an element has no padding (`Element`), so its bytes may be read.
            let bytes = unsafe {
                std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), size_of_val(data))
            };
            storage.bytes[place.clone()].copy_from_slice(bytes);
            if let Some(written) = &mut storage.written {
                written[place].fill(true);
            }
        }
    }

    /// A copy of `length` elements from `first` on; bytes that were not written are 0.
    ///
    /// # Panics
    /// When the buffer ends before.
    pub fn read_at(&self, first: usize, length: usize) -> Vec<T> {
        let heap = self.lock();
        let Some(storage) = &heap.buffers[self.id] else { return Vec::new() };
        let place = first * size_of::<T>()..(first + length) * size_of::<T>();
        elements(&storage.bytes[place])
    }

    /// A copy of the buffer; bytes that were not written are 0.
    pub fn to_vec(&self) -> Vec<T> {
        self.read_at(0, self.length)
    }
}

fn elements<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes
        .chunks_exact(size_of::<T>())
        .map(|bytes| {
            let mut value = MaybeUninit::<T>::uninit();
            // SAFETY: the chunk has the size of T, and every bit pattern is a T (`Element`).
            unsafe {
                value.as_mut_ptr().cast::<u8>().copy_from(bytes.as_ptr(), size_of::<T>());
                value.assume_init()
            }
        })
        .collect()
}

impl<T: Real> EmuBuffer<T> {
    /// A texture object over the buffer.
    pub fn texture(&self) -> Texture<T> {
        // SAFETY: the emulator checks every fetch.
        unsafe { Texture::from_raw(self.address()) }
    }
}

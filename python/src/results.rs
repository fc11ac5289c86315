//! Memory of results, kept for further results: fresh pages from the system cost more than writing a product.
//!
//! A result is an ordinary NumPy array that owns its elements; only the functions that allocate and free them are
//! these (NEP 49). NumPy frees them when the array and all views of it are gone, so memory that is kept has no user.

use std::alloc;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use spm_formats::huge_pages;

/// Bytes of a page: results of nearly the same size share memory.
const PAGE: usize = 1 << 12;

/// What stands before the elements, which begin with a cache line.
#[repr(C, align(64))]
struct Header {
    /// Bytes for elements.
    capacity: usize,
}

/// Memory that nobody uses.
struct Block(NonNull<Header>);

// SAFETY: it is the only reference to its memory.
unsafe impl Send for Block {}

impl Block {
    fn layout(capacity: usize) -> Option<alloc::Layout> {
        let bytes = capacity.checked_add(size_of::<Header>())?;
        alloc::Layout::from_size_align(bytes, align_of::<Header>()).ok()
    }

    /// With room for `bytes` bytes, if there is memory.
    fn new(bytes: usize) -> Option<Self> {
        let capacity = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let layout = Self::layout(capacity)?;
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc::alloc(layout) })?;
        // SAFETY: it was just allocated with this size.
        huge_pages::prefer(unsafe {
            slice::from_raw_parts_mut(start.as_ptr().cast::<MaybeUninit<u8>>(), layout.size())
        });
        let header = start.cast::<Header>();
        // SAFETY: room for a header, aligned by the layout.
        unsafe { header.write(Header { capacity }) };
        Some(Self(header))
    }

    fn capacity(&self) -> usize {
        // SAFETY: `new` wrote it, and elements are behind it.
        unsafe { self.0.as_ref() }.capacity
    }

    /// The elements, for NumPy.
    fn into_elements(self) -> *mut c_void {
        let header = self.0;
        std::mem::forget(self);
        // SAFETY: elements are behind the header.
        unsafe { header.add(1) }.as_ptr().cast()
    }

    /// # Safety
    /// `elements` is from [`Block::into_elements`], and nobody uses them any more.
    unsafe fn of_elements(elements: NonNull<c_void>) -> Self {
        // SAFETY: the header is before the elements.
        Self(unsafe { elements.cast::<Header>().sub(1) })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let layout = Self::layout(self.capacity()).expect("it was allocated");
        // SAFETY: `new` allocated it with this layout, and nobody uses it.
        unsafe { alloc::dealloc(self.0.as_ptr().cast(), layout) };
    }
}

/// The memory that is kept.
struct Pool {
    /// The longest kept first.
    blocks: VecDeque<Block>,
    /// Of all blocks together.
    bytes: usize,
    limit: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { blocks: VecDeque::new(), bytes: 0, limit: 0 });

/// Memory is kept while there are any.
static OPERATORS: AtomicUsize = AtomicUsize::new(0);

impl Pool {
    /// The newest of the blocks that suit, which may still be in cache.
    fn take(&mut self, bytes: usize) -> Option<Block> {
        let suits = |block: &Block| {
            let capacity = block.capacity();
            capacity >= bytes && capacity - bytes <= capacity / 8 + PAGE
        };
        let block = self.blocks.remove(self.blocks.iter().rposition(suits)?)?;
        self.bytes -= block.capacity();
        Some(block)
    }

    /// Keeps a block if the limit allows it. Returns those that are not kept.
    fn give(&mut self, block: Block) -> Vec<Block> {
        if OPERATORS.load(Ordering::Relaxed) == 0 || block.capacity() > self.limit {
            return vec![block];
        }
        self.bytes += block.capacity();
        self.blocks.push_back(block);
        self.shrink(self.limit)
    }

    /// Takes out the longest kept blocks until `limit` bytes are left.
    fn shrink(&mut self, limit: usize) -> Vec<Block> {
        let mut out = Vec::new();
        while self.bytes > limit {
            let Some(block) = self.blocks.pop_front() else { break };
            self.bytes -= block.capacity();
            out.push(block);
        }
        out
    }
}

/// The pool, or nothing if another thread has it for longer than it ever takes: a process may have been forked then.
fn pool() -> Option<MutexGuard<'static, Pool>> {
    (0..1000).find_map(|_| {
        std::hint::spin_loop();
        POOL.try_lock().ok()
    })
}

/// Counts an operator, which lets memory be kept for as long as it is there.
pub(crate) struct Keeping(());

impl Keeping {
    pub(crate) fn new() -> Self {
        OPERATORS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if OPERATORS.fetch_sub(1, Ordering::Relaxed) == 1 {
            drop(pool().map(|mut pool| pool.shrink(0)));
        }
    }
}

fn take(bytes: usize) -> *mut c_void {
    let kept = pool().and_then(|mut pool| pool.take(bytes));
    kept.or_else(|| Block::new(bytes)).map_or(ptr::null_mut(), Block::into_elements)
}

/// # Safety
/// `elements` is from [`take`], and nobody uses them any more.
unsafe fn give(elements: NonNull<c_void>) {
    // SAFETY: the caller's promise.
    let block = unsafe { Block::of_elements(elements) };
    // What is not kept is freed after the guard.
    let _unkept = match pool() {
        Some(mut pool) => pool.give(block),
        None => vec![block],
    };
}

// NumPy's view of these: `PyDataMem_Handler`, version 1.

#[repr(C)]
struct Handler {
    name: [u8; 127],
    version: u8,
    context: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

// SAFETY: the context is no address, and nothing is written.
unsafe impl Sync for Handler {}

static HANDLER: Handler = Handler {
    name: {
        let (mut name, text) = ([0; 127], *b"spm_results");
        let mut i = 0;
        while i < text.len() {
            name[i] = text[i];
            i += 1;
        }
        name
    },
    version: 1,
    context: ptr::null_mut(),
    malloc: numpy_malloc,
    calloc: numpy_calloc,
    realloc: numpy_realloc,
    free: numpy_free,
};

unsafe extern "C" fn numpy_malloc(_: *mut c_void, bytes: usize) -> *mut c_void {
    take(bytes)
}

unsafe extern "C" fn numpy_calloc(_: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else { return ptr::null_mut() };
    let elements = take(bytes);
    if !elements.is_null() {
        // SAFETY: there is room for so many bytes.
        unsafe { elements.write_bytes(0, bytes) };
    }
    elements
}

unsafe extern "C" fn numpy_realloc(
    _: *mut c_void,
    elements: *mut c_void,
    bytes: usize,
) -> *mut c_void {
    let new = take(bytes);
    if let (Some(old), Some(to)) = (NonNull::new(elements), NonNull::new(new)) {
        // SAFETY: NumPy gives what it has from these functions, and uses the new elements from now on.
        unsafe {
            let capacity = old.cast::<Header>().sub(1).as_ref().capacity;
            to.copy_from_nonoverlapping(old, capacity.min(bytes));
            give(old);
        }
    }
    new
}

unsafe extern "C" fn numpy_free(_: *mut c_void, elements: *mut c_void, _: usize) {
    if let Some(elements) = NonNull::new(elements) {
        // SAFETY: NumPy gives what it has from these functions, once.
        unsafe { give(elements) };
    }
}

/// `PyDataMem_SetHandler` of NumPy's C interface, which takes and returns references.
type SetHandler = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;

/// Places in the table of NumPy's C interface, since 1.22.
const SET_HANDLER: usize = 304;
const DEFAULT_HANDLER: usize = 306;

struct Numpy {
    set_handler: SetHandler,
    default_handler: Py<PyAny>,
    ours: Py<PyCapsule>,
    empty: Py<PyAny>,
}

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

impl Numpy {
    fn open(py: Python<'_>) -> PyResult<Self> {
        let core = py.import("numpy._core.multiarray");
        let core = core.or_else(|_| py.import("numpy.core.multiarray"))?;
        let table = core.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
        let table = table.pointer_checked(None)?.cast::<*mut c_void>();
        // SAFETY: every NumPy since 1.22, which the package requires, has these places: a function, and the
        // address of a reference that lives for ever. NumPy never frees its table.
        let (set_handler, default_handler) = unsafe {
            let set_handler = table.add(SET_HANDLER).cast::<SetHandler>().read();
            let default_handler = table.add(DEFAULT_HANDLER).read().cast::<*mut ffi::PyObject>();
            (set_handler, Bound::from_borrowed_ptr_or_err(py, default_handler.read())?)
        };
        // SAFETY: a handler that is never freed, under the name that NumPy asks for.
        let ours = unsafe {
            let handler = NonNull::from(&HANDLER).cast();
            PyCapsule::new_with_pointer(py, handler, c"mem_handler")?
        };
        let empty = py.import("numpy")?.getattr("empty")?;
        Ok(Self {
            set_handler,
            default_handler: default_handler.unbind(),
            ours: ours.unbind(),
            empty: empty.unbind(),
        })
    }

    /// Arrays of this thread's context are allocated by this handler from now on. Returns the former one.
    fn set<'py>(&self, handler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: a capsule that NumPy knows, and the reference that it returns.
        unsafe { Bound::from_owned_ptr_or_err(handler.py(), (self.set_handler)(handler.as_ptr())) }
    }
}

/// As `numpy.empty`, with memory of former results.
#[pyfunction]
pub(crate) fn empty<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    order: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let numpy = NUMPY.get_or_try_init(py, || Numpy::open(py))?;
    let former = numpy.set(numpy.ours.bind(py))?;
    // Whoever has set another allocator wants it.
    let keeps = former.is(&numpy.default_handler);
    if !keeps {
        numpy.set(&former)?;
    }
    let array = numpy.empty.bind(py).call1((shape, dtype, order));
    if keeps {
        numpy.set(&former)?;
    }
    array
}

/// Bytes that are kept, and the most that may be, which `limit` sets.
#[pyfunction]
#[pyo3(signature = (limit=None))]
pub(crate) fn result_memory(limit: Option<usize>) -> (usize, usize) {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    pool.limit = limit.unwrap_or(pool.limit);
    let most = pool.limit;
    let unkept = pool.shrink(most);
    let answer = (pool.bytes, most);
    drop(pool);
    drop(unkept);
    answer
}

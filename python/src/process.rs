//! Native calls without the GIL: panics, Ctrl-C and forked processes.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::ThreadPool;
use spm::spm_gpu::preserving_context;

/// How long Ctrl-C waits at most.
const POLL: Duration = Duration::from_millis(50);

/// Number of forks between the process that loaded the library and this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// The rayon pool of a forked process, and the number of forks that it is for.
static POOL: Mutex<Option<(usize, Arc<ThreadPool>)>> = Mutex::new(None);

/// Called in a new process after a fork: it has none of the threads of the former one.
#[pyfunction]
pub(crate) fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Whether an operator on a GPU was asked for.
static ON_GPU: AtomicBool = AtomicBool::new(false);

/// From now on every call leaves the current CUDA context of its thread as it is.
pub(crate) fn keep_contexts() {
    ON_GPU.store(true, Ordering::Relaxed);
}

/// Calls `body` and leaves the current CUDA context of the thread as it is: other libraries of the program
/// take it for their device's.
pub(crate) fn keeping_context<R>(body: impl FnOnce() -> R) -> R {
    if ON_GPU.load(Ordering::Relaxed) { preserving_context(body) } else { body() }
}

/// Runs `body` where rayon has threads: its global pool stays behind in the process that was forked.
fn with_threads<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    let forks = FORKS.load(Ordering::Relaxed);
    if forks == 0 {
        return body();
    }
    let pool = {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        match &*pool {
            Some((of, pool)) if *of == forks => Arc::clone(pool),
            _ => {
                let new = rayon::ThreadPoolBuilder::new().build();
                let new = Arc::new(new.expect("the system starts threads"));
                // The former pool's threads cannot be told to end: they are not there.
                std::mem::forget(pool.replace((forks, Arc::clone(&new))));
                new
            }
        }
    };
    pool.install(body)
}

/// Runs `body` without the GIL. A panic becomes a `RuntimeError`.
pub(crate) fn detached<R: Send>(py: Python<'_>, body: impl FnOnce() -> R + Send) -> PyResult<R> {
    py.detach(|| panic::catch_unwind(AssertUnwindSafe(|| keeping_context(|| with_threads(body)))))
        .map_err(|cause| panicked(&*cause))
}

/// As [`detached`], for what may take seconds: Ctrl-C raises `KeyboardInterrupt` at once. The work then
/// ends in a thread of its own, and its result is dropped.
pub(crate) fn interruptible<R: Send + 'static>(
    py: Python<'_>,
    body: impl FnOnce() -> R + Send + 'static,
) -> PyResult<R> {
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        // Nobody waits any more after Ctrl-C.
        let _ = sender.send(panic::catch_unwind(AssertUnwindSafe(|| with_threads(body))));
    };
    let thread = thread::Builder::new().name("spm-call".to_owned());
    thread.spawn(run).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    // A receiver is not `Sync`.
    let receiver = Mutex::new(receiver);
    loop {
        let answer = py
            .detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(POLL));
        match answer {
            Ok(result) => return result.map_err(|cause| panicked(&*cause)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the thread of the call has ended"));
            }
        }
    }
}

fn panicked(cause: &(dyn Any + Send)) -> PyErr {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    PyRuntimeError::new_err(format!("internal error: {text}"))
}

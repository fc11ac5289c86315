//! Which core a thread runs on. Linux may start or wake a thread on the core of the one that asks for it, or of another
//! one, and leave both there for some 10 ms while other cores idle: a pool of two threads then takes 50 us for an empty job instead
//! of 0.3 us, and planning would find one thread faster than two.

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::mem;
    use std::os::unix::thread::JoinHandleExt;
    use std::thread::JoinHandle;

    /// The core that the calling thread runs on.
    pub(crate) fn current() -> Option<usize> {
        // SAFETY: it has no arguments, and a negative result where it fails.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// Moves a thread away from `core`, if it may use another one.
    pub(crate) fn move_away(thread: &JoinHandle<()>, core: usize) {
        leave(thread.as_pthread_t(), [core]);
    }

    /// Moves the calling thread away from `cores`, if it is on one of them and may use another one.
    pub(crate) fn move_away_myself(cores: impl Iterator<Item = usize> + Clone) {
        if current().is_some_and(|own| cores.clone().any(|core| core == own)) {
            // SAFETY: it has no arguments.
            leave(unsafe { libc::pthread_self() }, cores);
        }
    }

    /// Forbids a thread that has not been joined some cores, which moves it, and allows it the cores again. A call that
    /// fails, as where it may use no others, leaves it where it is.
    fn leave(thread: libc::pthread_t, cores: impl IntoIterator<Item = usize>) {
        let size = size_of::<libc::cpu_set_t>();
        let cores = cores.into_iter().filter(|core| *core < 8 * size);
        // SAFETY: a set of cores is plain bits, of the size that is told; the cores are some of them.
        unsafe {
            let mut allowed: libc::cpu_set_t = mem::zeroed();
            if libc::pthread_getaffinity_np(thread, size, &raw mut allowed) != 0 {
                return;
            }
            let mut others = allowed;
            cores.for_each(|core| libc::CPU_CLR(core, &mut others));
            if libc::pthread_setaffinity_np(thread, size, &raw const others) == 0 {
                libc::pthread_setaffinity_np(thread, size, &raw const allowed);
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use std::thread::JoinHandle;

    pub(crate) fn current() -> Option<usize> {
        None
    }

    pub(crate) fn move_away(_: &JoinHandle<()>, _: usize) {}

    pub(crate) fn move_away_myself(_: impl Iterator<Item = usize> + Clone) {}
}

pub(crate) use system::{current, move_away, move_away_myself};

#[cfg(test)]
#[cfg(all(target_os = "linux", not(miri)))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// The cores that the calling thread may use.
    fn allowed() -> Vec<usize> {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: a set of cores is plain bits, of the size that is told.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            assert_eq!(libc::sched_getaffinity(0, size, &raw mut set), 0);
            (0..8 * size).filter(|&core| libc::CPU_ISSET(core, &set)).collect()
        }
    }

    #[test]
    fn a_thread_leaves_a_core_and_may_use_it_afterwards() {
        let before = allowed();
        let (send, receive) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            wait.recv().unwrap();
            for _ in 0..1000 {
                let core = current().unwrap();
                move_away_myself([core, usize::MAX].into_iter());
                if current() != Some(core) {
                    break;
                }
            }
            send.send(allowed()).unwrap();
        });
        move_away(&thread, before[0]);
        move_away(&thread, usize::MAX);
        go.send(()).unwrap();
        assert_eq!(receive.recv().unwrap(), before);
        thread.join().unwrap();
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_thread_that_is_moved_is_on_another_core_at_once() {
        // The system may move it back at any time, but not each time.
        let moved = (0..100).any(|_| {
            let core = current().unwrap();
            move_away_myself([core].into_iter());
            current() != Some(core)
        });
        assert!(moved || allowed().len() == 1);
    }

    #[test]
    fn a_thread_that_may_use_no_other_core_stays() {
        let before = allowed();
        move_away_myself(before.clone().into_iter());
        assert_eq!(allowed(), before);
    }
}

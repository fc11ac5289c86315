//! Ctrl-C: the first asks a run to end with what it has, the second ends the process.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Exit status of a process that a second Ctrl-C ends, as shells count it.
const STATUS: i32 = 130;

/// From now on Ctrl-C asks for the end, instead of ending the process at once.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where no handler can be set, Ctrl-C ends the process as ever.
        let _ = ctrlc::set_handler(|| {
            if ASKED.swap(true, Ordering::SeqCst) {
                std::process::exit(STATUS);
            }
            eprintln!("\nending after this case; Ctrl-C again ends at once");
        });
    });
}

/// Whether Ctrl-C has asked for the end.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

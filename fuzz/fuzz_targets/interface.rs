//! The public safe functions of the library crates with the worst arguments, on CPU cores and on
//! emulated devices: an error, a documented panic or the right result (`src/interface.rs`).
#![no_main]

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // An error means too few bytes for an input.
    let _ = spm_fuzz::interface::check(&mut Unstructured::new(data));
});

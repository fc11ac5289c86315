//! SpMV, SpMM and transposition on CPU cores.

//! `cargo xtask`: verification, the experiment matrix and its report.

fn main() {}

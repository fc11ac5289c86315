//! Runs the examples.

#[cfg(feature = "io")]
#[path = "../examples/conjugate_gradient.rs"]
#[allow(dead_code, reason = "the file argument")]
mod conjugate_gradient;
#[cfg(feature = "faer")]
#[path = "../examples/faer_solvers.rs"]
mod faer_solvers;

#[test]
#[cfg(feature = "faer")]
fn the_solvers_of_faer_converge() {
    faer_solvers::main().unwrap();
}

#[test]
#[cfg(feature = "io")]
fn conjugate_gradients_converge() {
    conjugate_gradient::run(conjugate_gradient::laplacian(50).unwrap()).unwrap();
}

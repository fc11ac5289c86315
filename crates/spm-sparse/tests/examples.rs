//! Runs the examples.

#[cfg(feature = "faer")]
#[path = "../examples/faer_solvers.rs"]
mod faer_solvers;
#[cfg(feature = "io")]
#[path = "../examples/jacobi_cg.rs"]
#[allow(dead_code, reason = "the file argument")]
mod jacobi_cg;

#[test]
#[cfg(feature = "faer")]
fn the_solvers_of_faer_converge() {
    faer_solvers::main().unwrap();
}

#[test]
#[cfg(feature = "io")]
fn conjugate_gradients_converge() {
    jacobi_cg::run(jacobi_cg::laplacian(50).unwrap()).unwrap();
}

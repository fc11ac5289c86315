//! One program for machines with and without a GPU: a step of Richardson's iteration with vectors where the
//! operator runs, and with slices.

use std::error::Error;

use spm::{Device, GpuError, Operator, Vector};

/// A solver that keeps its operator and its vectors.
struct Richardson {
    op: Operator<f64>,
    b: Vector<f64>,
    r: Vector<f64>,
    x: Vector<f64>,
}

impl Richardson {
    fn new(op: Operator<f64>, b: &[f64]) -> Result<Self, spm::Error> {
        let (b, r) = (op.vector_from(b)?, op.vector_zeros(op.rows())?);
        let x = op.vector_zeros(op.cols())?;
        Ok(Self { op, b, r, x })
    }

    /// x = x + omega (b - A x); returns the norm of b - A x.
    fn step(&mut self, omega: f64) -> Result<f64, spm::Error> {
        self.op.residual_vector(&self.b, &self.x, &mut self.r)?;
        self.x.axpy(omega, &self.r)?;
        self.r.norm2()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let n = 50;
    let entries = (0..n).flat_map(|i| {
        let beside = (i + 1 < n).then_some([(i, i + 1, -1.0), (i + 1, i, -1.0)]);
        beside.into_iter().flatten().chain([(i, i, 4.0)])
    });
    let a = spm::from_triplets((n, n), entries)?;
    for device in [Device::auto(), Device::cpu(), Device::emulated()] {
        let op = Operator::builder(a.clone()).device(device).build()?;
        println!("{}", op.describe().device);
        let mut b = vec![0.0; n];
        op.apply(&vec![1.0; n], &mut b)?;
        let mut solver = Richardson::new(op, &b)?;
        let mut steps = 0;
        while solver.step(0.25)? > 1e-10 {
            steps += 1;
            assert!(steps < 200, "no convergence");
        }
        assert!(solver.x.to_vec()?.iter().all(|x| (x - 1.0).abs() < 1e-9));
    }
    // A GPU that is asked for by its number has to be there.
    match Operator::builder(a).device(Device::gpu(1000)).build() {
        Err(spm::Error::Gpu(error)) => {
            assert!(error.is_absent() || matches!(error, GpuError::NoSuchDevice { .. }));
            println!("{error}");
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}

//! Cases that read a matrix from a file to CSR.

use std::path::PathBuf;

use spm_formats::kernel::{Backend, Footprint, KernelInfo, Operation, PlanError, RunError};
use spm_formats::matrix_market::{self, Mode, ReadOptions};
use spm_formats::{Csr, RealScalar, cache};
use spm_testing::reference::ErrorMeasures;

use super::cache::{Eviction, evicting};
use super::case::{Case, CaseSpec, Planned, exact, missing};
use super::timing::{Sampling, Timing, sample};
use crate::matrix::Matrix;

/// The ways to read.
pub const KERNELS: [KernelInfo; 3] = [
    reader("matrix-market", "text to CSR"),
    reader("matrix-market-gzip", "gzip-compressed text to CSR"),
    reader("npz-cache", "the binary cache to CSR"),
];

const fn reader(id: &'static str, summary: &'static str) -> KernelInfo {
    KernelInfo {
        id,
        operation: Operation::Read,
        backend: Backend::Cpu,
        source: "own; R0 2.1, R2 II-A, R4 2",
        summary,
        parameters: &[],
    }
}

struct Reading<'a, T> {
    csr: &'a Csr<T>,
    kernel: &'static str,
    pool: rayon::ThreadPool,
    file: PathBuf,
    file_bytes: u64,
}

/// Reads what [`Matrix::as_file`] wrote, so that every matrix is read in every form, and a user's
/// folder is left alone.
///
/// # Errors
/// No such way to read; a temporary folder that cannot be written.
pub fn plan<'a, T: RealScalar>(
    spec: &CaseSpec,
    matrix: &'a Matrix<T>,
    pool: rayon::ThreadPool,
) -> Result<Planned<'a>, PlanError> {
    let kernel = KERNELS.iter().find(|k| k.id == spec.info.id);
    let kernel = kernel.ok_or_else(|| missing(&spec.info))?.id;
    let write = || -> anyhow::Result<_> {
        let csr = matrix.csr();
        let file = match kernel {
            "npz-cache" => {
                matrix.as_file("matrix.npz", |path| Ok(cache::save_npz(path, csr.view())?))
            }
            name => {
                let file = if name == "matrix-market" { "matrix.mtx" } else { "matrix.mtx.gz" };
                matrix.as_file(file, |path| Ok(matrix_market::write_csr(path, csr.view(), &[])?))
            }
        }?;
        let file_bytes = file.metadata()?.len();
        Ok(Reading { csr, kernel, pool, file, file_bytes })
    };
    let failed = |error: anyhow::Error| PlanError::device(format!("{error:#}"));
    Planned::new(|| Ok(()), |()| write().map_err(failed))
}

impl<T: RealScalar> Reading<'_, T> {
    fn read(&self) -> Result<Csr<T>, RunError> {
        let options = ReadOptions { mode: Mode::Strict, ..ReadOptions::default() };
        let broken = |error: &dyn std::fmt::Display| RunError::device(error.to_string());
        self.pool.install(|| match self.kernel {
            "npz-cache" => cache::load_npz(&self.file).map_err(|e| broken(&e)),
            _ => matrix_market::read_csr(&self.file, &options).map_err(|e| broken(&e)),
        })
    }
}

impl<T: RealScalar> Case for Reading<'_, T> {
    /// The file once and the CSR arrays once.
    fn footprint(&self) -> Footprint {
        let a = self.csr;
        let row_ptr = (a.rows() + 1) * size_of::<u32>();
        let matrix_bytes = (row_ptr + a.nnz() * (size_of::<u32>() + T::BYTES)) as u64;
        Footprint { bytes_moved: self.file_bytes + matrix_bytes, plan_bytes: 0, matrix_bytes }
    }

    fn choice(&self) -> Option<String> {
        None
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        Ok(exact(self.read()? == *self.csr))
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError> {
        sample(sampling, evicting(eviction), || {
            self.read().map(|matrix| drop(std::hint::black_box(matrix)))
        })
    }
}

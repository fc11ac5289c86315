//! A matrix with what its cases share: CSR, input vectors, the reference's results.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context;
use spm_formats::kernel::TransposeOutput;
use spm_formats::{Coo, Csr, DenseShape, RealScalar};
use spm_testing::reference::{self, Reference};
use tempfile::TempDir;

use crate::input::Input;

/// A loaded matrix.
#[derive(Debug)]
pub struct Matrix<T> {
    /// Name in tables; `synthetic:` in front of what was generated.
    pub name: String,
    coo: Coo<T>,
    csr: Csr<T>,
    input: Input,
    references: RefCell<HashMap<Option<DenseShape>, Rc<Reference>>>,
    transpose: RefCell<Option<Rc<TransposeOutput<T>>>>,
    files: OnceCell<TempDir>,
}

impl<T: RealScalar> Matrix<T> {
    /// Takes the triplets (the reference's input) and the CSR matrix made from them.
    pub fn new(name: String, coo: Coo<T>, csr: Csr<T>, input: Input) -> Self {
        let (references, transpose, files) = Default::default();
        Self { name, coo, csr, input, references, transpose, files }
    }

    /// The triplets as they were read or generated.
    pub fn coo(&self) -> &Coo<T> {
        &self.coo
    }

    /// Duplicates summed, rows sorted.
    pub fn csr(&self) -> &Csr<T> {
        &self.csr
    }

    /// The first columns x `k` elements of the input.
    pub fn x(&self, k: usize) -> Vec<T> {
        self.input.elements(self.csr.cols() * k)
    }

    /// The reference's A x (`None`) or A X, computed once.
    pub fn reference(&self, dense: Option<DenseShape>) -> Rc<Reference> {
        let compute = || {
            let x = self.x(dense.map_or(1, |d| d.k));
            Rc::new(match dense {
                None => reference::spmv(&self.coo, &x),
                Some(dense) => reference::spmm(&self.coo, &x, dense),
            })
        };
        Rc::clone(self.references.borrow_mut().entry(dense).or_insert_with(compute))
    }

    /// The matrix as a file of this name in a temporary folder, written by `write` the first time;
    /// the folder goes with the matrix.
    ///
    /// # Errors
    /// No temporary folder, and the errors of `write`.
    pub fn as_file(
        &self,
        name: &str,
        write: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<PathBuf> {
        if self.files.get().is_none() {
            let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
            self.files.set(folder).expect("not set a moment ago");
        }
        let path = self.files.get().expect("just set").path().join(name);
        if !path.exists() {
            write(&path)?;
        }
        Ok(path)
    }

    /// The reference's transpose, computed once.
    pub fn transpose_reference(&self) -> Rc<TransposeOutput<T>> {
        let compute = || {
            let (col_ptr, row_ind, values) = reference::transpose(&self.coo);
            Rc::new(TransposeOutput { col_ptr, row_ind, values })
        };
        Rc::clone(self.transpose.borrow_mut().get_or_insert_with(compute))
    }
}

//! Conversions between COO and every other format, through CSR.

use super::coo_csr::{coo_to_csr, csr_to_coo};
use super::cost;
use super::csr_bsr::{bsr_to_csr, csr_to_bsr};
use super::csr_csc::csc_to_csr;
use super::csr_ell::{EllOptions, csr_to_ell, csr_to_unpadded_ell};
use super::csr_hll::csr_to_hll;
use super::csr_sell::csr_to_sell;
use super::padded_csr::{ell_to_csr, hll_to_csr, sell_to_csr, unpadded_ell_to_csr};
use crate::{
    Bsr, Coo, CscView, Csr, Ell, FormatError, Hll, MemoryBudget, Scalar, Sell, UnpaddedEll,
};

/// [`coo_to_csr`], then [`csr_to_ell`].
///
/// # Errors
/// As [`csr_to_ell`].
pub fn coo_to_ell<T: Scalar>(
    coo: &Coo<T>,
    options: EllOptions,
    budget: &MemoryBudget,
) -> Result<Ell<T>, FormatError> {
    let csr = compressed(coo, budget)?;
    csr_to_ell(csr.view(), options, &budget.beside(csr.memory_bytes()))
}

/// [`coo_to_csr`], then [`csr_to_unpadded_ell`].
pub fn coo_to_unpadded_ell<T: Scalar>(coo: &Coo<T>) -> UnpaddedEll<T> {
    csr_to_unpadded_ell(coo_to_csr(coo).view())
}

/// [`coo_to_csr`], then [`csr_to_hll`].
///
/// # Errors
/// As [`csr_to_hll`].
pub fn coo_to_hll<T: Scalar>(
    coo: &Coo<T>,
    hack_size: usize,
    budget: &MemoryBudget,
) -> Result<Hll<T>, FormatError> {
    let csr = compressed(coo, budget)?;
    csr_to_hll(csr.view(), hack_size, &budget.beside(csr.memory_bytes()))
}

/// [`coo_to_csr`], then [`csr_to_sell`].
///
/// # Errors
/// As [`csr_to_sell`].
pub fn coo_to_sell<T: Scalar>(
    coo: &Coo<T>,
    chunk: usize,
    sigma: usize,
    budget: &MemoryBudget,
) -> Result<Sell<T>, FormatError> {
    let csr = compressed(coo, budget)?;
    csr_to_sell(csr.view(), chunk, sigma, &budget.beside(csr.memory_bytes()))
}

/// [`coo_to_csr`], then [`csr_to_bsr`].
///
/// # Errors
/// As [`csr_to_bsr`].
pub fn coo_to_bsr<T: Scalar>(
    coo: &Coo<T>,
    block: (usize, usize),
    budget: &MemoryBudget,
) -> Result<Bsr<T>, FormatError> {
    let csr = compressed(coo, budget)?;
    csr_to_bsr(csr.view(), block, &budget.beside(csr.memory_bytes()))
}

/// The matrix as CSR, if that is within the budget.
fn compressed<T: Scalar>(coo: &Coo<T>, budget: &MemoryBudget) -> Result<Csr<T>, FormatError> {
    budget.check_bytes("csr", cost::coo_to_csr(coo, coo.entries()).into())?;
    Ok(coo_to_csr(coo))
}

/// The triplets, row after row.
pub fn ell_to_coo<T: Scalar>(ell: &Ell<T>) -> Coo<T> {
    csr_to_coo(ell_to_csr(ell).view())
}

/// The triplets, row after row.
pub fn unpadded_ell_to_coo<T: Scalar>(ell: &UnpaddedEll<T>) -> Coo<T> {
    csr_to_coo(unpadded_ell_to_csr(ell).view())
}

/// The triplets, row after row.
pub fn hll_to_coo<T: Scalar>(hll: &Hll<T>) -> Coo<T> {
    csr_to_coo(hll_to_csr(hll).view())
}

/// The triplets, row after row.
pub fn sell_to_coo<T: Scalar>(sell: &Sell<T>) -> Coo<T> {
    csr_to_coo(sell_to_csr(sell).view())
}

/// The triplets, row after row.
pub fn csc_to_coo<T: Scalar>(matrix: CscView<'_, T>) -> Coo<T> {
    csr_to_coo(csc_to_csr(matrix).view())
}

/// The triplets, row after row.
pub fn bsr_to_coo<T: Scalar>(bsr: &Bsr<T>) -> Coo<T> {
    csr_to_coo(bsr_to_csr(bsr).view())
}

//! Padded formats from arrays that lie, and conversions with the worst options, budgets and inputs.

use arbitrary::{Arbitrary, Result, Unstructured};
use spm_formats::convert::{self, ConversionInput, EllOptions};
use spm_formats::kernel::PlanError;
use spm_formats::{
    Bsr, Coo, Csr, CsrView, Ell, FormatError, Hll, Layout, Scalar, Sell, UnpaddedEll,
};

use super::{budget, choose, index, size};
use crate::{Matrix, bits};

pub(super) fn check(u: &mut Unstructured<'_>) -> Result<()> {
    let a = Matrix::<f64>::within(u, 12, 40)?;
    match u.int_in_range(0..=6_u8)? {
        0 => hll(u, a.csr.view())?.map(|hll| sound(&convert::hll_to_csr(&hll), hll.entries())),
        1 => sell(u, a.csr.view())?.map(|sell| sound(&convert::sell_to_csr(&sell), sell.entries())),
        2 => ell(u, a.csr.view())?.map(|ell| sound(&convert::ell_to_csr(&ell), ell.entries())),
        3 => unpadded(u, a.csr.view())?
            .map(|ell| sound(&convert::unpadded_ell_to_csr(&ell), ell.entries())),
        4 => Some(conversions(u, &a)?),
        5 => bsr(u, a.csr.view())?.map(|bsr| sound(&convert::bsr_to_csr(&bsr), bsr.entries())),
        _ => Some(registered(u, &a)?),
    };
    Ok(())
}

/// The structure is that of a CSR matrix with this number of entries.
fn sound<T: Scalar>(a: &Csr<T>, entries: usize) {
    let again = CsrView::new(a.shape(), a.row_ptr(), a.col_ind(), a.values());
    assert!(again.is_ok(), "{again:?}");
    assert_eq!(a.nnz(), entries);
}

/// Row lengths, columns and values, some of them changed.
struct Elements<T> {
    lengths: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Elements<T> {
    fn of(lengths: &[u32], columns: &[u32], values: &[T]) -> Self {
        let [lengths, columns] = [lengths, columns].map(<[u32]>::to_vec);
        Self { lengths, columns, values: values.to_vec() }
    }

    fn change(mut self, u: &mut Unstructured<'_>) -> Result<Self> {
        for _ in 0..u.int_in_range(0..=2_u8)? {
            let Self { lengths, columns, values } = &mut self;
            match u.int_in_range(0..=7_u8)? {
                0 if !lengths.is_empty() => {
                    let row = u.choose_index(lengths.len())?;
                    lengths[row] = index(u)?;
                }
                1 if !columns.is_empty() => {
                    let at = u.choose_index(columns.len())?;
                    columns[at] = index(u)?;
                }
                2 if !values.is_empty() => {
                    let at = u.choose_index(values.len())?;
                    values[at] = T::ONE;
                }
                3 => drop((columns.pop(), values.pop())),
                4 => drop(values.pop()),
                5 => drop(lengths.pop()),
                6 => lengths.push(index(u)?),
                _ => {
                    columns.push(index(u)?);
                    values.push(T::ZERO);
                }
            }
        }
        Ok(self)
    }
}

/// The size given, or another one.
fn or_another(u: &mut Unstructured<'_>, right: usize) -> Result<usize> {
    if u.ratio(3, 4)? { Ok(right) } else { size(u) }
}

/// An HLL matrix of changed arrays, where they are accepted.
pub(super) fn hll<T: Scalar>(
    u: &mut Unstructured<'_>,
    a: CsrView<'_, T>,
) -> Result<Option<Hll<T>>> {
    let Ok(hll) = convert::csr_to_hll(a, size(u)?, &budget(u)?) else { return Ok(None) };
    let elements = Elements::of(hll.row_lengths(), hll.col_ind(), hll.values()).change(u)?;
    let shape = (or_another(u, hll.rows())?, or_another(u, hll.cols())?);
    let hack = or_another(u, hll.hack_size())?;
    Ok(Hll::new(shape, hack, elements.lengths, elements.columns, elements.values).ok())
}

/// The same for SELL-C-sigma.
pub(super) fn sell<T: Scalar>(
    u: &mut Unstructured<'_>,
    a: CsrView<'_, T>,
) -> Result<Option<Sell<T>>> {
    let chunk = if bool::arbitrary(u)? { 32 } else { size(u)? };
    let Ok(sell) = convert::csr_to_sell(a, chunk, size(u)?, &budget(u)?) else { return Ok(None) };
    let elements = Elements::of(sell.row_lengths(), sell.col_ind(), sell.values()).change(u)?;
    let shape = (or_another(u, sell.rows())?, or_another(u, sell.cols())?);
    let tuning = (or_another(u, sell.chunk())?, or_another(u, sell.sigma())?);
    let mut permutation = sell.permutation().to_vec();
    if u.ratio(1, 4)? && !permutation.is_empty() {
        let at = u.choose_index(permutation.len())?;
        permutation[at] = index(u)?;
    }
    Ok(Sell::new(shape, tuning, permutation, elements.lengths, elements.columns, elements.values)
        .ok())
}

/// A BSR matrix of changed arrays, which has taken new values.
fn bsr(u: &mut Unstructured<'_>, a: CsrView<'_, f64>) -> Result<Option<Bsr<f64>>> {
    let block = (size(u)?, size(u)?);
    let Ok(bsr) = convert::csr_to_bsr(a, block, &budget(u)?) else { return Ok(None) };
    let elements = Elements::of(bsr.block_ptr(), bsr.block_col(), bsr.values()).change(u)?;
    let shape = (or_another(u, bsr.rows())?, or_another(u, bsr.cols())?);
    let block = (or_another(u, block.0)?, or_another(u, block.1)?);
    let mut padding = bsr.padding().to_vec();
    if u.ratio(1, 4)? && !padding.is_empty() {
        let at = u.choose_index(padding.len())?;
        padding[at] = size(u)?;
    }
    let Elements { lengths, columns, values } = elements;
    let Ok(mut bsr) = Bsr::new(shape, block, lengths, columns, values, padding) else {
        return Ok(None);
    };
    let values: Vec<f64> = (0..bsr.entries()).map(|entry| entry as f64).collect();
    bsr.set_values(&values).expect("a value for each entry");
    assert_eq!(convert::bsr_to_csr(&bsr).values(), values);
    Ok(Some(bsr))
}

fn ell(u: &mut Unstructured<'_>, a: CsrView<'_, f64>) -> Result<Option<Ell<f64>>> {
    let layout = *u.choose(&[Layout::RowMajor, Layout::ColumnMajor])?;
    let options = EllOptions { layout, pitch_alignment: size(u)? };
    let Ok(ell) = convert::csr_to_ell(a, options, &budget(u)?) else { return Ok(None) };
    let elements = Elements::of(ell.row_lengths(), ell.col_ind(), ell.values()).change(u)?;
    let shape = (or_another(u, ell.rows())?, or_another(u, ell.cols())?);
    let extent = (or_another(u, ell.width())?, or_another(u, ell.pitch())?);
    Ok(Ell::new(shape, layout, extent, elements.lengths, elements.columns, elements.values).ok())
}

fn unpadded(u: &mut Unstructured<'_>, a: CsrView<'_, f64>) -> Result<Option<UnpaddedEll<f64>>> {
    let mut rows = convert::csr_to_unpadded_ell(a).row_arrays().to_vec();
    for _ in 0..u.int_in_range(0..=2_u8)? {
        if rows.is_empty() {
            break;
        }
        let row = u.choose_index(rows.len())?;
        match u.int_in_range(0..=2_u8)? {
            0 => rows[row].values = vec![1.0; u.int_in_range(0..=4)?].into(),
            1 => rows[row].col_ind = vec![index(u)?, index(u)?].into(),
            _ => rows[row].col_ind = vec![index(u)?; rows[row].values.len()].into(),
        }
    }
    Ok(UnpaddedEll::new(or_another(u, a.cols())?, rows).ok())
}

/// What a conversion may answer beside its result.
fn accepted<R>(result: std::result::Result<R, FormatError>) -> Option<R> {
    match result {
        Ok(result) => Some(result),
        Err(FormatError::OverBudget { .. } | FormatError::InvalidParameter { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Bit by bit.
fn same(a: &Csr<f64>, b: &Csr<f64>) {
    assert_eq!((a.shape(), a.row_ptr(), a.col_ind()), (b.shape(), b.row_ptr(), b.col_ind()));
    assert_eq!(bits(a.values()), bits(b.values()));
}

fn conversions(u: &mut Unstructured<'_>, a: &Matrix<f64>) -> Result<()> {
    let (one, other, budget) = (size(u)?, size(u)?, budget(u)?);
    let layout = *u.choose(&[Layout::RowMajor, Layout::ColumnMajor])?;
    let options = EllOptions { layout, pitch_alignment: one };
    let (view, coo) = (a.csr.view(), &a.coo);
    for ell in
        [convert::csr_to_ell(view, options, &budget), convert::coo_to_ell(coo, options, &budget)]
    {
        accepted(ell).inspect(|ell| same(&convert::ell_to_csr(ell), &a.csr));
    }
    for hll in [convert::csr_to_hll(view, one, &budget), convert::coo_to_hll(coo, one, &budget)] {
        accepted(hll).inspect(|hll| same(&convert::hll_to_csr(hll), &a.csr));
    }
    for sell in [
        convert::csr_to_sell(view, one, other, &budget),
        convert::coo_to_sell(coo, one, other, &budget),
    ] {
        accepted(sell).inspect(|sell| same(&convert::sell_to_csr(sell), &a.csr));
    }
    let block = (one, other);
    for bsr in [convert::csr_to_bsr(view, block, &budget), convert::coo_to_bsr(coo, block, &budget)]
    {
        accepted(bsr).inspect(|bsr| same(&convert::bsr_to_csr(bsr), &a.csr));
    }
    accepted(convert::coo_to_ell_padded(coo, &budget))
        .inspect(|ell| same(&convert::ell_to_csr(ell), &a.csr));
    Ok(())
}

/// A registered conversion, of two matrices that are the same or not.
fn registered(u: &mut Unstructured<'_>, a: &Matrix<f64>) -> Result<()> {
    let kernels = convert::registry::<f64>();
    let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
    let b = if u.ratio(1, 3)? { Some(Matrix::<f64>::within(u, 12, 40)?) } else { None };
    let csr = &b.as_ref().unwrap_or(a).csr;
    let input = ConversionInput { coo: &a.coo, csr: csr.view() };
    let plan = match kernel.plan(input, &parameters, &budget(u)?) {
        Ok(plan) => plan,
        Err(PlanError::Format(_) | PlanError::Unsupported { .. }) => return Ok(()),
        Err(error) => panic!("{error}"),
    };
    let converted = std::thread::scope(|scope| {
        let other = scope.spawn(|| plan.run());
        (plan.run(), other.join().expect("no panic"))
    });
    let label = kernel.info.label(&parameters);
    let (Ok(one), Ok(other)) = converted else { panic!("{label}: {:?}", converted.0) };
    let sorted = |a: &Coo<f64>| convert::csr_to_coo(convert::coo_to_csr(a).view());
    let is = |one: &Coo<f64>, other: &Coo<f64>| {
        one.shape_and_places() == other.shape_and_places()
            && bits(one.values()) == bits(other.values())
    };
    assert!(is(&one.to_coo(), &other.to_coo()), "{label}: two threads");
    let (of_a, of_b) = (sorted(&a.coo), convert::csr_to_coo(csr.view()));
    assert!(is(&one.to_coo(), &of_a) || is(&one.to_coo(), &of_b), "{label}");
    Ok(())
}

/// The arrays of triplets that compare exactly.
trait Places {
    fn shape_and_places(&self) -> (usize, usize, &[u32], &[u32]);
}

impl Places for Coo<f64> {
    fn shape_and_places(&self) -> (usize, usize, &[u32], &[u32]) {
        (self.rows(), self.cols(), self.row_ind(), self.col_ind())
    }
}

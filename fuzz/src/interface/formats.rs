//! Compressed matrices from arrays that lie, from triplets, from matrices of `sprs`; what counts row
//! pointers; texts and sizes.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use spm_formats::kernel::{DenseShape, KernelInfo, TransposeOutput, check_length, split_label};
use spm_formats::sprs::{CsMatI, SpIndex};
use spm_formats::stats::{
    MatrixStats, Padding, RowLengthStats, hll_stored_elements, sell_stored_elements,
};
use spm_formats::timing::Timing;
use spm_formats::{
    Coo, Csc, CscView, Csr, CsrView, FormatError, Layout, MemoryBudget, convert, csr, partition,
};

use super::{allowing_panics, index, size};
use crate::Matrix;

pub(super) fn check(u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=6_u8)? {
        0 | 1 => compressed(u),
        2 => unsorted(u),
        3 => triplets(u),
        4 => of_sprs(u),
        5 => row_pointers(u),
        _ => descriptions(u),
    }
}

/// (rows, columns), row pointers, column indices, number of values.
#[derive(Debug, Clone)]
struct Arrays {
    shape: (usize, usize),
    pointers: Vec<u32>,
    indices: Vec<u32>,
    values: usize,
}

impl Arrays {
    /// Those of a matrix, some of them changed then.
    fn arbitrary(u: &mut Unstructured<'_>) -> Result<Self> {
        let a = Matrix::<f64>::within(u, 12, 40)?.csr;
        let (shape, values) = (a.shape(), a.nnz());
        let (pointers, indices, _) = a.into_arrays();
        let mut arrays = Self { shape, pointers, indices, values };
        for _ in 0..u.int_in_range(0..=3_u8)? {
            arrays.change(u)?;
        }
        Ok(arrays)
    }

    fn change(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let Self { shape, pointers, indices, values } = self;
        match u.int_in_range(0..=9_u8)? {
            0 if !pointers.is_empty() => {
                let at = u.choose_index(pointers.len())?;
                pointers[at] = index(u)?;
            }
            1 if !indices.is_empty() => {
                let at = u.choose_index(indices.len())?;
                indices[at] = index(u)?;
            }
            2 if !indices.is_empty() => {
                let (a, b) = (u.choose_index(indices.len())?, u.choose_index(indices.len())?);
                indices.swap(a, b);
            }
            3 => drop(pointers.pop()),
            4 => pointers.push(index(u)?),
            5 => drop(indices.pop()),
            6 => indices.push(index(u)?),
            7 => *values = u.int_in_range(0..=*values + 2)?,
            // An array without rows or with as many as the type has.
            8 => shape.0 = if bool::arbitrary(u)? { size(u)? } else { shape.0 + 1 },
            _ => shape.1 = size(u)?,
        }
        Ok(())
    }

    /// The rows are those of a matrix, whatever the order inside them.
    fn is_sound(&self) -> bool {
        let Self { shape: (rows, cols), pointers, indices, values } = self;
        let most = u32::MAX as usize - 1;
        *rows <= most
            && *cols <= most
            && pointers.len() == rows + 1
            && indices.len() == *values
            && pointers.first() == Some(&0)
            && pointers.windows(2).all(|pair| pair[0] <= pair[1])
            && pointers[*rows] as usize == *values
            && indices.iter().all(|&index| (index as usize) < *cols)
    }

    fn is_sorted(&self) -> bool {
        self.pointers.windows(2).all(|pair| {
            let row = &self.indices[pair[0] as usize..pair[1] as usize];
            row.windows(2).all(|pair| pair[0] < pair[1])
        })
    }

    /// Small whole numbers: sums are exact.
    fn numbers(&self) -> Vec<f64> {
        (0..self.values).map(|i| (i % 7) as f64 - 3.0).collect()
    }
}

fn compressed(u: &mut Unstructured<'_>) -> Result<()> {
    let arrays = Arrays::arbitrary(u)?;
    let Arrays { shape, pointers, indices, .. } = arrays.clone();
    let transposed = (shape.1, shape.0);
    let values = arrays.numbers();
    let valid = arrays.is_sound() && arrays.is_sorted();
    let borrowed = CsrView::new(shape, &pointers, &indices, &values);
    assert_eq!(borrowed.is_ok(), valid, "{arrays:?}: {borrowed:?}");
    let by_column = CscView::new(transposed, &pointers, &indices, &values);
    assert_eq!(by_column.is_ok(), valid, "{arrays:?}: {by_column:?}");
    let owned = Csr::new(shape, pointers.clone(), indices.clone(), values.clone());
    assert_eq!(owned.as_ref().map(Csr::view).map_err(Clone::clone), borrowed);
    let columns = Csc::new(transposed, pointers.clone(), indices.clone(), values.clone());
    assert_eq!(columns.as_ref().map(Csc::view).map_err(Clone::clone), by_column);
    if let (Ok(rows), Ok(columns)) = (owned, columns) {
        use_matrix(u, rows, columns)?;
    }
    Ok(())
}

/// The accessors of a valid matrix, with rows that it has and rows that it has not.
fn use_matrix(u: &mut Unstructured<'_>, mut a: Csr<f64>, columns: Csc<f64>) -> Result<()> {
    let (row, col) = (size(u)?, size(u)?);
    let entry = allowing_panics(|| a.get(row, col).copied());
    assert_eq!(entry.is_none(), row >= a.rows(), "row {row} of {:?}", a.shape());
    let of_iter = a.iter().find(|&(r, c, _)| (r, c) == (row, col)).map(|(.., &value)| value);
    assert_eq!(entry.flatten(), of_iter);
    assert_eq!(allowing_panics(|| columns.col(row).0.len()).is_none(), row >= columns.cols());
    assert_eq!(a.clone().into_transposed(), columns);
    assert_eq!(columns.transposed(), a.view());
    if let Some(value) = a.values_mut().last_mut() {
        *value = f64::NAN;
    }
    // A transposition counts columns: their number alone may exceed memory.
    if a.cols() < 1 << 20 {
        let stats = MatrixStats::of(a.view());
        assert_eq!((stats.rows, stats.cols, stats.entries), (a.rows(), a.cols(), a.nnz()));
        let back = convert::csc_to_csr(convert::csr_to_csc(a.view()).view());
        assert_eq!((back.row_ptr(), back.col_ind()), (a.row_ptr(), a.col_ind()));
    }
    assert_eq!(a.map(|_| ()).memory_bytes(), 4 * (a.rows() + 1 + a.nnz()) as u64);
    Ok(())
}

/// Sums of equal positions in the stored order.
fn summed(
    entries: impl Iterator<Item = ((u32, u32), f64)>,
    (rows, cols): (usize, usize),
) -> Csr<f64> {
    let mut sums = BTreeMap::new();
    for (position, value) in entries {
        sums.entry(position).and_modify(|sum| *sum += value).or_insert(value);
    }
    let (row_ind, col_ind) = sums.keys().copied().unzip();
    let coo = Coo::new(rows, cols, row_ind, col_ind, sums.into_values().collect());
    convert::coo_to_csr(&coo.expect("inside the matrix"))
}

fn unsorted(u: &mut Unstructured<'_>) -> Result<()> {
    let mut arrays = Arrays::arbitrary(u)?;
    // Pointers of a slice of a larger matrix begin above 0.
    let shift = if u.ratio(1, 4)? { index(u)? } else { 0 };
    let values = arrays.numbers();
    let wide = |array: &[u32]| array.iter().map(|&i| i as usize).collect::<Vec<_>>();
    let signed = |array: &[u32]| array.iter().map(|&i| i64::from(i)).collect::<Vec<_>>();
    let shifted: Vec<i64> =
        arrays.pointers.iter().map(|&p| i64::from(p) + i64::from(shift)).collect();
    let shape = arrays.shape;
    let of = [
        Csr::from_unsorted(shape, shifted, signed(&arrays.indices), values.clone()),
        Csr::from_unsorted(shape, wide(&arrays.pointers), arrays.indices.clone(), values.clone()),
        Csr::from_unsorted(shape, arrays.pointers.clone(), wide(&arrays.indices), values.clone()),
        Csr::from_unsorted(shape, arrays.pointers.clone(), arrays.indices.clone(), values.clone()),
    ];
    // Relative to the first one, where that is the least.
    if let Some(&first) = arrays.pointers.first()
        && arrays.pointers.iter().all(|&pointer| pointer >= first)
    {
        arrays.pointers.iter_mut().for_each(|pointer| *pointer -= first);
    }
    if !arrays.is_sound() {
        assert!(of.iter().all(std::result::Result::is_err), "{arrays:?}: {of:?}");
        return Ok(());
    }
    let row_of = |entry: usize| arrays.pointers[1..].partition_point(|&end| end as usize <= entry);
    let entries = (0..values.len()).map(|i| ((row_of(i) as u32, arrays.indices[i]), values[i]));
    let expected = summed(entries, shape);
    for a in of {
        assert_eq!(a.as_ref(), Ok(&expected), "{arrays:?}");
    }
    // Indices that became negative on the way.
    let narrow: Vec<i16> = arrays.indices.iter().map(|&index| index as i16 - 9).collect();
    drop(Csr::from_unsorted(shape, arrays.pointers, narrow, values));
    Ok(())
}

fn triplets(u: &mut Unstructured<'_>) -> Result<()> {
    let shape = (u.int_in_range(0..=9)?, if u.ratio(1, 8)? { size(u)? } else { 9 });
    let mut triplets = Vec::new();
    for i in 0..u.int_in_range(0..=20_u8)? {
        let mut coordinate = |end: usize| {
            Ok(match u.int_in_range(0..=40_u8)? {
                0 => -1,
                1 => i64::MAX,
                2 => i64::MIN,
                3 => end as i64,
                n => i64::from(n) % (end.max(1) as i64),
            })
        };
        triplets.push((coordinate(shape.0)?, coordinate(shape.1)?, f64::from(i)));
    }
    let inside = |index: i64, end: usize| usize::try_from(index).is_ok_and(|index| index < end);
    let valid = shape.1 < u32::MAX as usize
        && triplets.iter().all(|&(r, c, _)| inside(r, shape.0) && inside(c, shape.1));
    let a = Csr::from_triplets(shape, triplets.iter().copied());
    assert_eq!(a.is_ok(), valid, "{shape:?} {triplets:?}");
    if let Ok(a) = a {
        let entries = triplets.iter().map(|&(r, c, v)| ((r as u32, c as u32), v));
        assert_eq!(a, summed(entries, shape));
    }
    let of = |values: &[i64]| values.iter().map(|&i| i as u32).collect::<Vec<_>>();
    let (rows, cols): (Vec<i64>, Vec<i64>) = triplets.iter().map(|&(r, c, _)| (r, c)).unzip();
    let values = vec![1.0_f32; if u.ratio(1, 4)? { size(u)? % 64 } else { rows.len() }];
    drop(Coo::new(shape.0, shape.1, of(&rows), of(&cols), values));
    let end = size(u)?;
    assert_eq!(Coo::<f32>::empty(shape.0, end).is_ok(), end < u32::MAX as usize);
    Ok(())
}

/// Matrices of `sprs`, which safe code can break: `modify` checks after it has changed.
fn of_sprs(u: &mut Unstructured<'_>) -> Result<()> {
    if bool::arbitrary(u)? { sprs_of::<u32>(u) } else { sprs_of::<i64>(u) }
}

fn sprs_of<I: SpIndex + 'static>(u: &mut Unstructured<'_>) -> Result<()> {
    let a = Matrix::<f64>::within(u, 9, 30)?.csr;
    let shape = a.shape();
    let (pointers, indices, values) = a.into_arrays();
    // Equal to themselves, which NaN is not.
    let values = (0..values.len()).map(|i| i as f64).collect();
    let of = |array: &[u32]| array.iter().map(|&i| I::from_usize(i as usize)).collect::<Vec<_>>();
    let mut matrix = CsMatI::<f64, I>::new(shape, of(&pointers), of(&indices), values);
    if u.ratio(1, 3)? && shape.0 > 0 {
        let first = u.choose_index(shape.0)?;
        let last = u.int_in_range(first..=shape.0)?;
        matrix = matrix.slice_outer(first..last).to_owned();
    }
    let (at, to, which) = (u8::arbitrary(u)? as usize, index(u)?, u.int_in_range(0..=2_u8)?);
    // A value that the index type does not have is not there to be written.
    let to = I::from_usize(to as usize);
    allowing_panics(|| {
        matrix.modify(|pointers, indices, _| match which {
            0 => {}
            1 => {
                let end = pointers.len();
                pointers[at % end] = to;
            }
            _ if indices.is_empty() => {}
            _ => {
                let end = indices.len();
                indices[at % end] = to;
            }
        });
    });
    let shape = matrix.shape();
    let (pointers, indices, values) = matrix.clone().into_raw_storage();
    let number = |i: &I| i.try_index().and_then(|i| u32::try_from(i).ok()).unwrap_or(u32::MAX);
    let mut arrays = Arrays {
        shape,
        pointers: pointers.iter().map(number).collect(),
        indices: indices.iter().map(number).collect(),
        values: values.len(),
    };
    let whole = arrays.pointers.first().is_none_or(|&first| first == 0);
    if let Some(&first) = arrays.pointers.first()
        && arrays.pointers.iter().all(|&pointer| pointer >= first)
    {
        arrays.pointers.iter_mut().for_each(|pointer| *pointer -= first);
    }
    let valid = arrays.is_sound() && arrays.is_sorted();
    let owned = Csr::try_from(matrix.view());
    assert_eq!(owned.is_ok(), valid, "{arrays:?}");
    assert_eq!(Csr::try_from(matrix.clone()), owned);
    assert!(Csc::try_from(matrix.view()).is_err(), "the other orientation");
    assert_eq!(Csc::try_from(matrix.clone().transpose_into()).is_ok(), valid);
    if let Some(narrow) = (&matrix as &dyn std::any::Any).downcast_ref::<CsMatI<f64, u32>>() {
        assert_eq!(CsrView::try_from(narrow).is_ok(), valid && whole);
        let transposed = narrow.clone().transpose_into();
        assert_eq!(CscView::try_from(&transposed).is_ok(), valid && whole);
    }
    if let Ok(owned) = owned {
        assert_eq!(Csr::try_from(owned.view().as_sprs()).as_ref(), Ok(&owned));
        assert_eq!(Csr::try_from(owned.clone().into_sprs()), Ok(owned));
    }
    Ok(())
}

/// Partitions and statistics of any numbers: they count, and touch nothing. Where the numbers do not
/// ascend from 0 a panic is no surprise.
fn row_pointers(u: &mut Unstructured<'_>) -> Result<()> {
    let mut pointers = Arrays::arbitrary(u)?.pointers;
    if bool::arbitrary(u)? {
        pointers.sort_unstable();
        if let Some(first) = pointers.first_mut() {
            *first = 0;
        }
        pointers.iter_mut().for_each(|pointer| *pointer = (*pointer).min(1 << 20));
    }
    let valid = pointers.first() == Some(&0) && pointers.is_sorted();
    let parts = u.int_in_range(0..=70)?;
    let (hack, chunk, sigma) = (size(u)?, size(u)?, size(u)?);
    let (diagonal, total) = (size(u)?, size(u)?);
    // Documented: no part, no pointers, a hack or a chunk of no rows, a point beyond the path.
    let by_entries = allowing_panics(|| partition::by_entries(&pointers, parts));
    let by_path = allowing_panics(|| partition::by_merge_path(&pointers, parts));
    let lengths = allowing_panics(|| RowLengthStats::of(&pointers));
    let padding = allowing_panics(|| Padding::of(&pointers));
    let hll = allowing_panics(|| hll_stored_elements(&pointers, hack));
    let sell = allowing_panics(|| sell_stored_elements(&pointers, chunk, sigma));
    let point = allowing_panics(|| partition::merge_path(&pointers, diagonal));
    allowing_panics(|| partition::by_weight(&[0, size_of_last(&pointers)], parts));
    let even = allowing_panics(|| partition::even(total, parts, parts / 2));
    assert_eq!(even.is_some(), parts > 0);
    if valid {
        let (rows, entries) = (pointers.len() - 1, *pointers.last().expect("the first") as usize);
        assert_eq!(lengths.map(|stats| (stats.rows, stats.entries)), Some((rows, entries)));
        assert!(padding.is_some());
        assert_eq!(hll.is_some(), hack > 0);
        assert_eq!(sell.is_some(), chunk > 0);
        assert_eq!(point.is_some(), diagonal <= rows + entries);
        assert_eq!((by_entries.is_some(), by_path.is_some()), (parts > 0, parts > 0));
        if let (Some(bounds), Some(path)) = (by_entries, by_path) {
            assert_eq!((bounds.len(), path.len()), (parts + 1, parts + 1));
            assert!(bounds.is_sorted() && bounds[parts] == rows);
            assert!(path.windows(2).all(|pair| pair[0].row <= pair[1].row));
        }
    }
    Ok(())
}

fn size_of_last(pointers: &[u32]) -> usize {
    pointers.last().map_or(0, |&last| last as usize)
}

/// Texts, sizes and budgets.
fn descriptions(u: &mut Unstructured<'_>) -> Result<()> {
    let kernels = convert::registry::<f64>();
    let info: KernelInfo = u.choose(&kernels)?.info;
    let (rows, cols, k) = (size(u)?, size(u)?, size(u)?);
    let text = <&str>::arbitrary(u)?;
    let (id, rest) = split_label(text);
    if let Ok(parameters) = info.parse_parameters(rest) {
        assert_eq!(info.check_parameters(&parameters), Ok(()));
        assert_eq!(info.parse_parameters(&parameters.to_string()), Ok(parameters));
    }
    assert_eq!(convert::find::<f64>(id).is_some(), kernels.iter().any(|it| it.info.id == id));
    let dense = DenseShape { k, layout: Layout::RowMajor };
    if dense.check::<f64>((rows, cols)).is_ok() {
        let elements = (rows as u128 + cols as u128) * k as u128;
        assert!(elements * 8 <= isize::MAX as u128, "{rows} + {cols} rows of {k}");
    }
    assert_eq!(check_length("x", rows, cols).is_ok(), rows == cols);
    assert_eq!(csr::check_limits(rows as u64, cols as u64, k as u64).is_ok(), {
        let most = u32::MAX as usize;
        rows < most && cols < most && k <= most
    });
    assert_eq!(Csr::<f64>::empty(rows % 4096, cols).is_ok(), cols < u32::MAX as usize);
    let output = TransposeOutput::<f64>::new(rows % 4096, cols % 4096);
    assert_eq!(output.check(rows, cols).is_ok(), (rows, cols) == (rows % 4096, cols % 4096));
    let budget = MemoryBudget::bytes(k as u64).for_matrix(text).beside(rows as u64);
    let bytes = cols as u128 * rows as u128;
    match budget.check("format", rows, cols as u128, rows, 0) {
        Ok(()) => assert!(bytes == 0 || bytes + rows as u128 <= k as u128),
        // No allocation has more than isize::MAX bytes, whatever the budget.
        Err(FormatError::OverBudget { .. }) => {
            let most = (isize::MAX as u128).saturating_sub(rows as u128);
            assert!(bytes > most.min(budget.left().into()));
        }
        Err(error) => panic!("{error}"),
    }
    let seconds = u.arbitrary_iter::<f64>()?.take(20).collect::<Result<Vec<f64>>>()?;
    assert_eq!(Timing::of(seconds.clone()).is_none(), seconds.is_empty());
    Ok(())
}

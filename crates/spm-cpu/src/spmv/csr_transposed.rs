//! SpMV with the transpose, straight from CSR: y_j = sum_i a_ij x_i.
//!
//! The merge path of rows and entries is divided into partitions of equal length, so that several
//! threads share a long row. Each thread adds a_ij x_i to y_j for the entries of its partition: the
//! first thread in y itself, every other one in a copy of the columns that its entries span. A second
//! loop over the columns adds the copies.

use spm_formats::kernel::PlanError;
use spm_formats::partition::{self, MergePoint};
use spm_formats::{CsrSource, CsrView, NewValues, Scalar};
use std::iter;
use std::ops::Range;

use super::BoxedPlan;
use super::load::{Conjugate, Load, Stored};
use super::plan::{Memory, Product, boxed};
use super::row::{PRODUCTS, Walk};
use crate::disjoint::Disjoint;
use crate::pool::Pool;
use crate::scaled::Update;
use crate::workspace::Workspace;
use crate::{PlanOptions, Threads, values};

/// Elements of y that the copies are added to at a time, so that they stay in the first-level cache.
const BLOCK: usize = 1 << 11;
/// Entries whose factors are written before they are used: they stay in the first-level cache.
const FACTORS: usize = PRODUCTS;
/// Factors that are written for any row.
const SHORT: usize = 8;
/// What starting the threads twice costs, in units of an entry.
const START: usize = 1 << 13;

/// The partition of one thread.
struct Part {
    from: MergePoint,
    to: MergePoint,
    /// The columns between its first and its last one.
    cols: Range<usize>,
}

struct Transposed<'a, A, T, L> {
    a: CsrSource<'a, A>,
    /// What is taken for the values.
    load: L,
    /// Whether rows are short and of lengths that a processor cannot predict.
    is_irregular: bool,
    threads: Threads,
    /// One part, or one for each thread.
    parts: Vec<Part>,
    /// Where the copy of each part begins in a workspace, and the end of the last one. The first part
    /// has none.
    starts: Vec<usize>,
    copies: Pool<Workspace<T>>,
}

/// Plans y = A^T x and y = alpha A^T x + beta y for a CSR matrix A, borrowed or shared, without
/// building the transpose. The plan's shape is that of the transpose: (columns, rows) of A.
///
/// Each thread but one has a copy of the columns that its entries span. If the budget does not allow
/// the copies, or if adding them would take longer than they save, fewer threads compute. Every run
/// of a plan gives the same bits; they depend on the number of threads.
///
/// # Errors
/// None so far: a plan on one thread needs no memory.
///
/// ```
/// use spm_cpu::{PlanOptions, transposed};
/// use spm_formats::Csr;
///
/// // | 1 0 2 |
/// // | 0 3 0 |
/// let a = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
/// let plan = transposed::plan(&a, &PlanOptions::default())?;
/// let mut y = [0.0; 3];
/// plan.run(&[1.0, 10.0], &mut y)?;
/// assert_eq!(y, [1.0, 30.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan<'a, T: Scalar>(
    a: impl Into<CsrSource<'a, T>>,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(plan_of(Stored, a.into(), options))
}

/// Plans y = A^H x and y = alpha A^H x + beta y, the product with the conjugate transpose, otherwise
/// as [`plan`]. For a real matrix both are the same.
///
/// # Errors
/// As [`plan`].
pub fn plan_conjugate<'a, T: Scalar>(
    a: impl Into<CsrSource<'a, T>>,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(plan_of(Conjugate, a.into(), options))
}

/// The plan with what `load` takes for the values.
pub(crate) fn plan_of<'a, A: Scalar, T: Scalar, L: Load<A, T> + 'a>(
    load: L,
    a: CsrSource<'a, A>,
    options: &PlanOptions,
) -> BoxedPlan<'a, T> {
    let threads = options.threads.clone();
    let view = a.view();
    let affordable = options.budget.left() / T::BYTES as u64;
    let all = divide(&view, 1);
    let alone = cost(&all, &view);
    let suits =
        |parts: &Vec<Part>| copied(parts) as u64 <= affordable && cost(parts, &view) < alone;
    let counts = std::iter::successors(Some(threads.count()), |&count| Some(count / 2));
    let counts = counts.take_while(|&count| count > 1);
    let parts = counts.map(|count| divide(&view, count)).find(suits);
    let parts = parts.unwrap_or(all);
    with_parts(load, a, threads, parts)
}

fn with_parts<'a, A: Scalar, T: Scalar, L: Load<A, T> + 'a>(
    load: L,
    a: CsrSource<'a, A>,
    threads: Threads,
    parts: Vec<Part>,
) -> BoxedPlan<'a, T> {
    let mut starts = vec![0, 0];
    for part in parts.iter().skip(1) {
        starts.push(starts[starts.len() - 1] + part.cols.len());
    }
    let copies = Pool::new(Workspace::zeros(copied(&parts)));
    let is_irregular = Walk::fitting(a.view().row_ptr()) != Walk::Loops;
    boxed(Transposed { a, load, is_irregular, threads, parts, starts, copies })
}

/// The parts of `count` threads.
fn divide<T: Scalar>(a: &CsrView<'_, T>, count: usize) -> Vec<Part> {
    let points = partition::by_merge_path(a.row_ptr(), count);
    let part = |ends: &[MergePoint]| {
        let (from, to) = (ends[0], ends[1]);
        let mut cols = a.cols()..0;
        each_row(a, from, to, |_, entries| {
            if let [first, .., last] | [first @ last] = &a.col_ind()[entries] {
                cols.start = cols.start.min(*first as usize);
                cols.end = cols.end.max(*last as usize + 1);
            }
        });
        let cols = if cols.start < cols.end { cols } else { 0..0 };
        Part { from, to, cols }
    };
    points.windows(2).map(part).collect()
}

/// Elements of the copies.
fn copied(parts: &[Part]) -> usize {
    parts.iter().skip(1).map(|part| part.cols.len()).sum()
}

/// What a product costs, in units of an entry.
fn cost<T: Scalar>(parts: &[Part], a: &CsrView<'_, T>) -> usize {
    // A column costs about as much as an entry when it is cleared, and when it is added.
    let scattered = a.nnz() / parts.len() + a.cols();
    if parts.len() == 1 { scattered } else { scattered + copied(parts) / parts.len() + START }
}

/// Calls `visit` with each row of a partition and those of its entries that are inside.
#[inline(always)]
fn each_row<T: Scalar>(
    a: &CsrView<'_, T>,
    from: MergePoint,
    to: MergePoint,
    mut visit: impl FnMut(usize, Range<usize>),
) {
    let mut start = from.entry;
    for row in from.row..to.row {
        let end = a.row_ptr()[row + 1] as usize;
        visit(row, start..end);
        start = end;
    }
    if start < to.entry {
        visit(to.row, start..to.entry);
    }
}

impl<A: Scalar, T: Scalar, L: Load<A, T>> Product<T> for Transposed<'_, A, T, L> {
    fn shape(&self) -> (usize, usize) {
        let (rows, cols) = self.a.view().shape();
        (cols, rows)
    }

    fn memory(&self) -> Memory {
        let copies = copied(&self.parts) * T::BYTES;
        let rest = size_of_val(&*self.parts) + size_of_val(&*self.starts);
        Memory::borrowed(&self.a.view(), copies + rest)
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, scaling) = (self.a.view(), scaling.unwrap_or(Update::OVERWRITE));
        let (parts, alpha) = (&self.parts, scaling.alpha());
        if let [all] = &**parts {
            scaling.scale(y);
            return self.scatter(all, alpha, x, 0, y);
        }
        let cols = a.cols();
        let mut workspace =
            self.copies.take(|| Workspace::zeros(self.starts[self.starts.len() - 1]));
        let (all_cols, all_copies) = (Disjoint::new(y), Disjoint::new(&mut workspace));
        self.threads.run(|index| {
            let Some(part) = parts.get(index) else { return };
            // SAFETY: y belongs to the first part, each copy to another one.
            let sums = unsafe {
                if index == 0 {
                    all_cols.range(part.cols.clone())
                } else {
                    all_copies.range(self.starts[index]..self.starts[index + 1])
                }
            };
            let scaling = if index == 0 { scaling } else { Update::OVERWRITE };
            scaling.scale(sums);
            self.scatter(part, alpha, x, part.cols.start, sums);
        });
        let copies = &**workspace;
        self.threads.run(|index| {
            let share = partition::even(cols, self.threads.count(), index);
            for start in share.clone().step_by(BLOCK) {
                let block = start..share.end.min(start + BLOCK);
                // SAFETY: the shares do not overlap.
                let y = unsafe { all_cols.range(block.clone()) };
                // What the first part has not multiplied by beta.
                let (before, after) = (&parts[0].cols.start, &parts[0].cols.end);
                let inside = |col: &usize| (*col).clamp(block.start, block.end) - block.start;
                scaling.scale(&mut y[..inside(before)]);
                scaling.scale(&mut y[inside(after)..]);
                for (part, &copy) in parts.iter().zip(&self.starts).skip(1) {
                    let (first, end) = (inside(&part.cols.start), inside(&part.cols.end));
                    if first < end {
                        let copy = copy + block.start + first - part.cols.start;
                        let copy = &copies[copy..][..end - first];
                        y[first..end].iter_mut().zip(copy).for_each(|(y, &sum)| *y += sum);
                    }
                }
            }
        });
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        values::set(&mut self.a, L::to_store(new)?, Some(&self.threads))
    }
}

impl<A: Scalar, T: Scalar, L: Load<A, T>> Transposed<'_, A, T, L> {
    /// `sums`, which begin at column `first`, += alpha a_ij x_i for the entries of a part.
    fn scatter(&self, part: &Part, alpha: T, x: &[T], first: usize, sums: &mut [T]) {
        let a = self.a.view();
        let end = first + sums.len();
        assert!(first <= part.cols.start && part.cols.end <= end, "columns of a part");
        let mut add = |entries: Range<usize>, factors: Factors<'_, T>| {
            let of_entries = a.col_ind()[entries.clone()].iter().zip(&a.values()[entries]);
            let mut add = |((&col, &value), factor)| {
                let product = self.load.load(value) * factor;
                // SAFETY: `divide` has found the columns of all of the part's entries in `cols`.
                unsafe { *sums.get_unchecked_mut(col as usize - first) += product };
            };
            match factors {
                Factors::One(factor) => of_entries.zip(iter::repeat(factor)).for_each(&mut add),
                Factors::Each(factors) => of_entries.zip(factors.iter().copied()).for_each(add),
            }
        };
        if !self.is_irregular {
            return each_row(&a, part.from, part.to, |row, entries| {
                add(entries, Factors::One(alpha * x[row]));
            });
        }
        // The factor of each entry, for some at a time, so that no branch depends on a row's length.
        let mut factors = [T::ZERO; FACTORS + SHORT];
        let (mut begin, mut count) = (part.from.entry, 0);
        each_row(&a, part.from, part.to, |row, entries| {
            let (factor, length) = (alpha * x[row], entries.len());
            if count + length > FACTORS {
                add(begin..entries.start, Factors::Each(&factors[..count]));
                (begin, count) = (entries.start, 0);
            }
            if length > FACTORS {
                begin = entries.end;
                return add(entries, Factors::One(factor));
            }
            // The next row overwrites what this one has too much.
            factors[count..][..SHORT].fill(factor);
            if length > SHORT {
                factors[count + SHORT..][..length - SHORT].fill(factor);
            }
            count += length;
        });
        add(begin..begin + count, Factors::Each(&factors[..count]));
    }
}

/// What values are multiplied by.
enum Factors<'f, T> {
    /// All by the same number.
    One(T),
    /// Each by its own.
    Each(&'f [T]),
}

#[cfg(test)]
mod tests {
    use spm_formats::kernel::Scaling;
    use spm_formats::{Coo, convert};
    use spm_testing::exact::{self, Whole};
    use spm_testing::{generate, reference};

    use super::*;

    /// Columns that all parts share, bands, a row that is cut, columns and rows without entries.
    fn matrices() -> Vec<Coo<f64>> {
        let named = |name| {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            convert::csr_to_coo(a.view())
        };
        let mut all: Vec<_> = [
            "uniform[rows=80,cols=50,entries=500]",
            "uniform[rows=10,cols=9000,entries=20]",
            "stencil5[n=70]",
            // Short rows of all lengths, and a row beyond the factors that are written at a time.
            "uniform[rows=2000,cols=300,entries=3000]",
            "powerlaw[rows=3000,cols=3000,entries=9000,longest=1400]",
            "powerlaw[rows=4000,cols=500,entries=8000,longest=90]",
        ]
        .map(named)
        .into();
        let (rows, cols) = (vec![3; 5000], (0..5000).collect());
        all.push(Coo::new(9, 5001, rows, cols, vec![0.0; 5000]).unwrap());
        all.extend([(0, 0), (0, 5), (5, 0), (4, 4)].map(|(r, c)| Coo::empty(r, c).unwrap()));
        all
    }

    #[test]
    fn any_number_of_parts_gives_the_product_with_the_transpose() {
        let threads = Threads::new(4);
        for pattern in matrices() {
            let a = exact::matrix(&pattern, Whole::Wide);
            let (rows, cols) = (a.row_ind().to_vec(), a.col_ind().to_vec());
            let transpose = Coo::new(a.cols(), a.rows(), cols, rows, a.values().to_vec()).unwrap();
            let (matrix, x) = (convert::coo_to_csr(&a), exact::vector(a.rows()));
            let expected = reference::spmv(&transpose, &x);
            for count in [1, 2, 3, 4] {
                let parts = divide(&matrix.view(), count);
                let plan = with_parts(Stored, matrix.view().into(), threads.clone(), parts);
                assert_eq!(plan.shape(), (a.cols(), a.rows()));
                let mut y = vec![f64::NAN; a.cols()];
                plan.run(&x, &mut y).unwrap();
                let label = format!("{:?} in {count} parts", matrix.shape());
                assert_eq!(exact::difference(&y, &expected), None, "{label}");
                // y = 3 A^T x - 2 y of y = A^T x is y again.
                plan.run_scaled(Scaling::new(3.0, -2.0), &x, &mut y).unwrap();
                assert_eq!(exact::difference(&y, &expected), None, "{label}, scaled");
            }
        }
    }

    #[test]
    fn parts_of_a_band_have_short_copies() {
        let a = generate::named("stencil5[n=100]").unwrap().generate::<f64>().unwrap();
        let parts = divide(&a.view(), 4);
        assert!(copied(&parts) < a.cols() - a.cols() / 4 + 6 * 101);
        assert!(copied(&parts) >= a.cols() - a.cols() / 4 - 101);
    }
}

//! CSR to BSR and back, new values, and the blocks that a matrix has.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::coo_csr::compressed;
use crate::check::{check_length, check_nonzero};
use crate::csr::pointers_of;
use crate::disjoint::Disjoint;
use crate::huge_pages::zeroed;
use crate::{Bsr, Csr, CsrView, FormatError, MemoryBudget, Scalar, parallel, partition};

/// Minimum number of block rows that one task converts.
const GRAIN: usize = 64;

/// Stored elements for each entry beyond which it finds no blocks.
const MOST_PADDING: f64 = 1.2;
/// Block rows that are read for each size, and entries after which no more are.
const SAMPLE: usize = 32;
const SAMPLE_ENTRIES: usize = 1 << 12;
/// Entries after which a size is given up that needs twice the elements that it may.
const FIRST_ENTRIES: usize = 1 << 8;

/// Dense square blocks that a matrix seems to consist of.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct DetectedBlocks {
    /// Rows and columns of a block: 2, 3, 4, 5, 6 or 8.
    pub size: usize,
    /// Stored elements for each entry, between 1 and 1.2.
    pub padding_ratio: f64,
}

/// The square blocks in which the matrix seems to take the fewest bytes. `None` where blocks would have more
/// than 1.2 stored elements for each entry, or take more bytes than CSR.
///
/// At most 32 block rows and about 4096 entries are read for each of six sizes, whatever the matrix.
pub fn detect_blocks<T: Scalar>(matrix: CsrView<'_, T>) -> Option<DetectedBlocks> {
    best_blocks::<T>(|size| estimate_padding(&matrix, size))
}

/// Rows and columns of the blocks that [`detect_blocks`] looks for.
pub const BLOCK_SIZES: [usize; 6] = [2, 3, 4, 5, 6, 8];

/// The choice of [`detect_blocks`] by other estimates: `padding_ratio` says how many stored elements an entry
/// has in square blocks of each of [`BLOCK_SIZES`]; NaN if that is not known.
pub fn best_blocks<T: Scalar>(padding_ratio: impl Fn(usize) -> f64) -> Option<DetectedBlocks> {
    let bytes = |blocks: &DetectedBlocks| {
        let index = size_of::<u32>() as f64 / (blocks.size * blocks.size) as f64;
        blocks.padding_ratio * (T::BYTES as f64 + index)
    };
    let all = BLOCK_SIZES.into_iter().filter_map(|size| {
        // NaN without entries.
        let padding_ratio = padding_ratio(size);
        (padding_ratio <= MOST_PADDING).then_some(DetectedBlocks { size, padding_ratio })
    });
    let best = all.min_by(|a, b| bytes(a).total_cmp(&bytes(b)));
    best.filter(|best| bytes(best) < (T::BYTES + size_of::<u32>()) as f64)
}

/// Stored elements for each entry in square blocks of a size, by a sample; NaN without entries.
fn estimate_padding<T: Scalar>(matrix: &CsrView<'_, T>, size: usize) -> f64 {
    let block_rows = matrix.rows() / size;
    let (mut merge, mut elements, mut entries) = (BlockRow::new(matrix, size), 0, 0);
    'sample: for block_row in partition::sampled(block_rows, (block_rows / SAMPLE).max(1)) {
        merge.begin(block_row * size..(block_row + 1) * size);
        while merge.next().is_some() {
            elements += size * size;
            entries += merge.entries();
            let hopeless = elements as f64 > 2.0 * MOST_PADDING * entries as f64;
            if entries >= SAMPLE_ENTRIES || (hopeless && entries >= FIRST_ENTRIES) {
                break 'sample;
            }
        }
    }
    elements as f64 / entries as f64
}

/// The blocks of a block row, one after the other: a merge of its rows.
struct BlockRow<'m, 'a, T> {
    matrix: &'m CsrView<'a, T>,
    width: u32,
    /// Its rows; the first one alone where all have the same columns.
    rows: Vec<MergedRow>,
    /// Number of rows that each of them stands for.
    alike: usize,
}

/// A row of a [`BlockRow`].
struct MergedRow {
    /// Entries of the current block.
    here: Range<usize>,
    /// The end of the row's entries.
    end: usize,
}

impl<'m, 'a, T: Scalar> BlockRow<'m, 'a, T> {
    /// Blocks of `width` columns.
    fn new(matrix: &'m CsrView<'a, T>, width: usize) -> Self {
        // There are fewer columns than u32::MAX.
        let width = u32::try_from(width).unwrap_or(u32::MAX);
        Self { matrix, width, rows: Vec::new(), alike: 1 }
    }

    /// Goes to the block row of these rows, before its first block.
    fn begin(&mut self, rows: Range<usize>) {
        let columns = |row| &self.matrix.col_ind()[self.matrix.row_range(row)];
        let mut others = rows.clone().skip(1);
        let is_alike = others.len() > 0 && others.all(|row| columns(row) == columns(rows.start));
        self.alike = if is_alike { rows.len() } else { 1 };
        self.rows.clear();
        let entries = rows.step_by(self.alike).map(|row| self.matrix.row_range(row));
        self.rows.extend(entries.map(|of| MergedRow { here: of.start..of.start, end: of.end }));
    }

    /// Goes to the next block, and returns its block column.
    fn next(&mut self) -> Option<u32> {
        let cols = self.matrix.col_ind();
        let firsts = self.rows.iter().filter(|row| row.here.end < row.end);
        let block_col = firsts.map(|row| cols[row.here.end]).min()? / self.width;
        let end = (u64::from(block_col) + 1) * u64::from(self.width);
        let width = self.width as usize;
        for row in &mut self.rows {
            let rest = &cols[row.here.end..row.end];
            // Columns ascend: where as many as a block has end with its last one, they are all of its columns.
            let is_full = rest.get(width - 1).is_some_and(|&last| u64::from(last) + 1 == end);
            let count = match is_full {
                true => width,
                false => rest.iter().take_while(|&&col| u64::from(col) < end).count(),
            };
            row.here = row.here.end..row.here.end + count;
        }
        Some(block_col)
    }

    /// Number of entries of the current block.
    fn entries(&self) -> usize {
        self.alike * self.rows.iter().map(|row| row.here.len()).sum::<usize>()
    }

    /// Calls `visit` with row and column inside the current block of each of its entries.
    fn each_entry(&self, block_col: u32, mut visit: impl FnMut(usize, usize)) {
        let first_col = block_col * self.width;
        let rows = self.rows.iter().flat_map(|row| std::iter::repeat_n(row, self.alike));
        for (lane, row) in rows.enumerate() {
            for &col in &self.matrix.col_ind()[row.here.clone()] {
                visit(lane, (col - first_col) as usize);
            }
        }
    }
}

/// Divides the matrix into blocks of `block` = (rows, columns), and stores those that have an entry.
///
/// # Errors
/// Blocks without elements; more memory than `budget` allows (only the block pointers are allocated
/// then, and the size in the error is a lower bound).
pub fn csr_to_bsr<T: Scalar>(
    matrix: CsrView<'_, T>,
    block: (usize, usize),
    budget: &MemoryBudget,
) -> Result<Bsr<T>, FormatError> {
    let block_ptr = block_pointers(&matrix, block, budget)?;
    let ((rows, cols), (height, width)) = (matrix.shape(), block);
    // Saturates only where there are no blocks.
    let of_block = height.saturating_mul(width);
    let blocks = block_ptr.last().map_or(0, |&blocks| blocks as usize);
    let (mut block_col, values) = (zeroed(0, blocks), zeroed(T::ZERO, blocks * of_block));
    let mut padding = vec![0; blocks * of_block - matrix.nnz()];
    let (cols_to, padding_to) = (Disjoint::new(&mut block_col), Disjoint::new(&mut padding));
    parallel::for_each_range(block_ptr.len() - 1, GRAIN, &|block_rows| {
        let (mut merge, mut is_entry) = (BlockRow::new(&matrix, width), Vec::new());
        for block_row in block_rows {
            let ends = &block_ptr[block_row..=block_row + 1];
            let here = rows_of(rows, height, block_row);
            let padding_before =
                |block: u32, row: usize| block as usize * of_block - matrix.row_ptr()[row] as usize;
            let padding = padding_before(ends[0], here.start)..padding_before(ends[1], here.end);
            // SAFETY: each block row has its own blocks, and its own padding.
            let (cols_to, padding_to) = unsafe {
                (cols_to.range(ends[0] as usize..ends[1] as usize), padding_to.range(padding))
            };
            let mut padding_to = padding_to.iter_mut();
            merge.begin(here);
            for (to, block) in cols_to.iter_mut().zip(ends[0] as usize..) {
                let col = merge.next().expect("as many blocks as were counted");
                *to = col;
                if merge.entries() < of_block {
                    is_entry.clear();
                    is_entry.resize(of_block, false);
                    merge.each_entry(col, |lane, col| is_entry[col * height + lane] = true);
                    let free = (0..of_block).filter(|&element| !is_entry[element]);
                    let positions = free.map(|element| block * of_block + element);
                    positions.zip(&mut padding_to).for_each(|(position, to)| *to = position);
                }
            }
        }
    });
    let mut bsr = Bsr { rows, cols, block, block_ptr, block_col, values, padding };
    bsr.write_values(matrix.values());
    Ok(bsr)
}

/// The first block of each block row, if the matrix is within the budget.
pub(super) fn block_pointers<T: Scalar>(
    matrix: &CsrView<'_, T>,
    (height, width): (usize, usize),
    budget: &MemoryBudget,
) -> Result<Vec<u32>, FormatError> {
    check_nonzero("block height", "at least 1 row", height)?;
    check_nonzero("block width", "at least 1 column", width)?;
    let (rows, nnz) = (matrix.rows(), matrix.nnz());
    let block_rows = rows.div_ceil(height);
    let pointers = (block_rows + 1) * size_of::<u32>();
    // The numbers of blocks are there beside the pointers for a moment.
    budget.check_bytes("bsr", 2 * pointers as u128)?;
    let mut counts = vec![0; block_rows];
    // A block takes as many steps as it has rows: those beyond the budget are not counted.
    let block_bytes = (height.saturating_mul(width) as u64).saturating_mul(T::BYTES as u64);
    let (most, found) = (budget.left() / block_bytes, AtomicU64::new(0));
    parallel::for_each_part(&mut counts, GRAIN, |first, counts| {
        let mut merge = BlockRow::new(matrix, width);
        for (block_row, count) in (first..).zip(counts) {
            merge.begin(rows_of(rows, height, block_row));
            let before = found.load(Ordering::Relaxed);
            while before + u64::from(*count) <= most && merge.next().is_some() {
                *count += 1;
            }
            found.fetch_add(u64::from(*count), Ordering::Relaxed);
        }
    });
    let block_ptr = pointers_of(counts.into_iter());
    let blocks = block_ptr[block_rows] as usize;
    let elements = (blocks as u128 * height as u128).saturating_mul(width as u128);
    let padding = elements.saturating_sub(nnz as u128).saturating_mul(size_of::<usize>() as u128);
    let fixed = padding.saturating_add((pointers + blocks * size_of::<u32>()) as u128);
    let fixed = usize::try_from(fixed).unwrap_or(usize::MAX);
    budget.check("bsr", nnz, elements, T::BYTES, fixed)?;
    Ok(block_ptr)
}

/// The rows of a block row that the matrix has.
fn rows_of(rows: usize, height: usize, block_row: usize) -> Range<usize> {
    block_row * height..rows.min((block_row + 1).saturating_mul(height))
}

impl<T: Scalar> Bsr<T> {
    /// Takes new values for its entries, in the order of CSR.
    ///
    /// # Errors
    /// [`FormatError::LengthMismatch`] for another number of values than there are entries; nothing has
    /// changed then.
    pub fn set_values(&mut self, values: &[T]) -> Result<(), FormatError> {
        check_length("values", self.entries(), values.len())?;
        self.write_values(values);
        Ok(())
    }

    /// The block rows in consecutive parts, to which several threads may give new values: part p has block rows
    /// `bounds[p]..bounds[p + 1]`.
    ///
    /// # Panics
    /// When the bounds do not ascend from 0 to the number of block rows.
    pub fn parts_mut(&mut self, bounds: &[usize]) -> Vec<BlockRowsMut<'_, T>> {
        let block_rows = self.block_ptr.len() - 1;
        assert!(bounds.first() == Some(&0) && bounds.last() == Some(&block_rows), "{bounds:?}");
        let Self { rows, block, block_ptr, block_col, values, padding, .. } = self;
        let pattern = Pattern { rows: *rows, block: *block, block_ptr, block_col, padding };
        let mut values = &mut **values;
        let parts = bounds.windows(2).map(|bounds| {
            let elements = pattern.elements(&(bounds[0]..bounds[1])).len();
            let of_part;
            (of_part, values) = std::mem::take(&mut values).split_at_mut(elements);
            BlockRowsMut { pattern, block_rows: bounds[0]..bounds[1], values: of_part }
        });
        parts.collect()
    }

    /// Writes a value for each entry, in the order of CSR.
    fn write_values(&mut self, new: &[T]) {
        let block_rows = self.block_ptr.len() - 1;
        let bounds: Vec<usize> = (0..block_rows).step_by(GRAIN).chain([block_rows]).collect();
        parallel::for_each_mut(&mut self.parts_mut(&bounds), 1, |_, part| part.set_values(new));
    }
}

/// Some block rows of a [`Bsr`], to be given new values.
#[derive(Debug)]
pub struct BlockRowsMut<'a, T> {
    pattern: Pattern<'a>,
    block_rows: Range<usize>,
    /// Their elements.
    values: &'a mut [T],
}

impl<T: Scalar> BlockRowsMut<'_, T> {
    /// The rows of the matrix in these block rows.
    pub fn rows(&self) -> Range<usize> {
        let first = |block_row| rows_of(self.pattern.rows, self.pattern.block.0, block_row).start;
        first(self.block_rows.start)..first(self.block_rows.end).min(self.pattern.rows)
    }

    /// Takes their part of new values for the entries of the matrix, in the order of CSR.
    ///
    /// # Panics
    /// When there are fewer values than entries.
    pub fn set_values(&mut self, new: &[T]) {
        let pattern = &self.pattern;
        let (mut to, mut is_padding) = (&mut *self.values, Vec::new());
        let mut padding = pattern.padding_of(&self.block_rows);
        let start = pattern.elements(&self.block_rows).start;
        let mut new = &new[start - padding.start..];
        for block_row in self.block_rows.clone() {
            let elements = pattern.elements(&(block_row..block_row + 1));
            let of_row;
            (of_row, to) = std::mem::take(&mut to).split_at_mut(elements.len());
            let count = pattern.padding[padding.clone()].iter();
            let count = count.take_while(|&&at| at < elements.end).count();
            let padding_of_row = padding.start..padding.start + count;
            padding.start += count;
            let entries;
            (entries, new) = new.split_at(of_row.len() - count);
            if count > 0 {
                let mut entries = entries.iter();
                pattern.each_entry(block_row, padding_of_row, &mut is_padding, |_, _, at| {
                    of_row[at] = *entries.next().expect("a value for each entry");
                });
                continue;
            }
            match pattern.block.0 {
                2 => fill_cols::<T, 2>(entries, of_row),
                3 => fill_cols::<T, 3>(entries, of_row),
                4 => fill_cols::<T, 4>(entries, of_row),
                5 => fill_cols::<T, 5>(entries, of_row),
                6 => fill_cols::<T, 6>(entries, of_row),
                8 => fill_cols::<T, 8>(entries, of_row),
                height => {
                    let length = of_row.len() / height;
                    for (col, to) in of_row.chunks_exact_mut(height).enumerate() {
                        for (lane, to) in to.iter_mut().enumerate() {
                            *to = entries[lane * length + col];
                        }
                    }
                }
            }
        }
    }
}

/// Writes the columns of the blocks of a block row without padding, `H` values each, from its rows.
fn fill_cols<T: Copy, const H: usize>(rows: &[T], to: &mut [T]) {
    let (cols, _) = to.as_chunks_mut::<H>();
    let rows: [&[T]; H] = std::array::from_fn(|lane| &rows[lane * cols.len()..][..cols.len()]);
    for (col, to) in cols.iter_mut().enumerate() {
        *to = std::array::from_fn(|lane| rows[lane][col]);
    }
}

/// The arrays of a [`Bsr`] without the values.
#[derive(Debug, Clone, Copy)]
struct Pattern<'a> {
    rows: usize,
    block: (usize, usize),
    block_ptr: &'a [u32],
    block_col: &'a [u32],
    padding: &'a [usize],
}

impl Pattern<'_> {
    /// Calls `body` with each block row, and with workspace for [`Pattern::each_entry`].
    fn for_each_block_row(&self, body: impl Fn(usize, &mut Vec<bool>) + Sync) {
        parallel::for_each_range(self.block_ptr.len() - 1, GRAIN, &|block_rows| {
            let mut is_padding = Vec::new();
            block_rows.for_each(|block_row| body(block_row, &mut is_padding));
        });
    }

    /// The blocks of some block rows.
    fn blocks(&self, block_rows: &Range<usize>) -> Range<usize> {
        self.block_ptr[block_rows.start] as usize..self.block_ptr[block_rows.end] as usize
    }

    /// The elements of some block rows.
    fn elements(&self, block_rows: &Range<usize>) -> Range<usize> {
        let ((height, width), blocks) = (self.block, self.blocks(block_rows));
        // Saturates only where there are no blocks.
        let of_block = height.saturating_mul(width);
        blocks.start * of_block..blocks.end * of_block
    }

    /// The range of some block rows in the list of padding.
    fn padding_of(&self, block_rows: &Range<usize>) -> Range<usize> {
        let before = |element: usize| self.padding.partition_point(|&at| at < element);
        let elements = self.elements(block_rows);
        before(elements.start)..before(elements.end)
    }

    /// Calls `visit` for each entry of a block row, row after row, with the row inside the block row, the
    /// column, and the position among the elements of the block row. `padding` is its range in the list of
    /// padding, `is_padding` workspace.
    fn each_entry(
        &self,
        block_row: usize,
        padding: Range<usize>,
        is_padding: &mut Vec<bool>,
        mut visit: impl FnMut(usize, usize, usize),
    ) {
        let block_rows = block_row..block_row + 1;
        let ((height, width), elements) = (self.block, self.elements(&block_rows));
        if elements.is_empty() {
            return;
        }
        is_padding.clear();
        is_padding.resize(elements.len(), false);
        for &at in &self.padding[padding] {
            is_padding[at - elements.start] = true;
        }
        let block_cols = &self.block_col[self.blocks(&block_rows)];
        for lane in 0..height {
            for (block, &block_col) in block_cols.iter().enumerate() {
                for col in 0..width {
                    let at = (block * width + col) * height + lane;
                    if !is_padding[at] {
                        visit(lane, block_col as usize * width + col, at);
                    }
                }
            }
        }
    }
}

/// Drops the padding.
pub fn bsr_to_csr<T: Scalar>(bsr: &Bsr<T>) -> Csr<T> {
    let Bsr { rows, cols, block, block_ptr, block_col, values: from, padding } = bsr;
    let pattern = Pattern { rows: *rows, block: *block, block_ptr, block_col, padding };
    let padding_of = |block_row| pattern.padding_of(&(block_row..block_row + 1));
    let mut lengths = vec![0; *rows];
    let lengths_to = Disjoint::new(&mut lengths);
    pattern.for_each_block_row(|block_row, is_padding| {
        // SAFETY: each block row has its own rows.
        let lengths = unsafe { lengths_to.range(rows_of(*rows, block.0, block_row)) };
        let padding = padding_of(block_row);
        pattern.each_entry(block_row, padding, is_padding, |lane, _, _| lengths[lane] += 1);
    });
    let row_ptr = pointers_of(lengths.into_iter());
    let (mut col_ind, mut values) = (vec![0; bsr.entries()], vec![T::ZERO; bsr.entries()]);
    let (cols_to, values_to) = (Disjoint::new(&mut col_ind), Disjoint::new(&mut values));
    pattern.for_each_block_row(|block_row, is_padding| {
        let here = rows_of(*rows, block.0, block_row);
        let entries = row_ptr[here.start] as usize..row_ptr[here.end] as usize;
        // SAFETY: each block row has its own rows, and these their own entries.
        let (cols, values) = unsafe { (cols_to.range(entries.clone()), values_to.range(entries)) };
        let elements = pattern.elements(&(block_row..block_row + 1));
        let (from, mut to) = (&from[elements], cols.iter_mut().zip(values));
        pattern.each_entry(block_row, padding_of(block_row), is_padding, |_, col, at| {
            let (col_to, value_to) = to.next().expect("as many entries as were counted");
            (*col_to, *value_to) = (col as u32, from[at]);
        });
    });
    compressed((*rows, *cols), (row_ptr, col_ind, values))
}

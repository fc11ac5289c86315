//! The product of a segment.

use spm_formats::{CsrView, Scalar};

use super::coding::Coding;
use super::segment::{Columns, Segment, Values};
use crate::scaled::Update;
use crate::simd::{self, AHEAD, FEW, HALF, Isa, Job, LANES};
use crate::spmv::repair::repair;

/// The product of one segment.
pub(super) struct Run<'a, T> {
    pub(super) segment: &'a Segment,
    pub(super) values: &'a Values<T>,
    pub(super) coding: &'a Coding<T>,
    pub(super) prefetch: bool,
    pub(super) x: &'a [T],
    /// The rows of the segment.
    pub(super) y: &'a mut [T],
    /// Rows that are in order may be combined with z as they are stored.
    pub(super) combined: Option<Combined<'a, T>>,
    /// Whether no element of y has to be computed again.
    pub(super) finite: &'a mut bool,
}

/// How the sums of rows that are in order become elements of y.
#[derive(Clone, Copy)]
pub(super) struct Combined<'a, T> {
    /// For rows whose sum is not finite, which may come from padding.
    pub(super) a: CsrView<'a, T>,
    pub(super) update: Update<'a, T>,
}

// SAFETY: `As<T>` is `Run<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Run<'a, T> {
    type As<U: Scalar> = Run<'a, U>;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        // SAFETY: `multiply` has checked x and cut y; a segment stores a value, or a code of the table,
        // for each of its stored elements; `I` by the caller's promise.
        unsafe {
            let elements = self.segment.elements.clone();
            match (self.values, self.coding) {
                (Values::Equal, Coding::Equal(value)) => self.without_values::<I>(*value),
                (Values::Each(values), _) if self.prefetch => {
                    self.with_values::<I, _>(&values[elements], Prefetched);
                }
                (Values::Each(values), _) => {
                    self.with_values::<I, _>(&values[elements], Stored);
                }
                (Values::Codes(codes), Coding::Codes(dictionary)) => {
                    let (codes, table) = (&codes[elements], dictionary.table());
                    if table.len() == FEW {
                        self.with_values::<I, _>(codes, Picked(I::few(table.as_ptr())));
                    } else {
                        self.with_values::<I, _>(codes, LookedUp(table.as_ptr()));
                    }
                }
                _ => unreachable!("values are stored as the coding says"),
            }
        }
    }
}

/// What a segment stores for the values, as vectors.
trait Load<T: Scalar, I: Isa<T>, S> {
    /// The values of [`LANES`] stored elements.
    ///
    /// # Safety
    /// There are so many at `from`; the processor has the instructions of `I`.
    unsafe fn load(&self, from: *const S) -> I::Vector;

    /// Prefetches the columns [`AHEAD`] elements behind these, wherever they are, if values are prefetched.
    #[inline(always)]
    fn prefetch_columns<C>(&self, _columns: *const C) {}
}

/// Values as they are.
struct Stored;

impl<T: Scalar, I: Isa<T>> Load<T, I, T> for Stored {
    #[inline(always)]
    unsafe fn load(&self, from: *const T) -> I::Vector {
        // SAFETY: the caller's promise.
        unsafe { I::load(from) }
    }
}

/// Values as they are, with a prefetch of later ones and of their columns.
struct Prefetched;

impl<T: Scalar, I: Isa<T>> Load<T, I, T> for Prefetched {
    #[inline(always)]
    unsafe fn load(&self, from: *const T) -> I::Vector {
        simd::prefetch(from.wrapping_add(AHEAD));
        // SAFETY: the caller's promise.
        unsafe { I::load(from) }
    }

    #[inline(always)]
    fn prefetch_columns<C>(&self, columns: *const C) {
        simd::prefetch(columns.wrapping_add(AHEAD));
    }
}

/// Codes for values in registers.
struct Picked<F>(F);

impl<T: Scalar, I: Isa<T>> Load<T, I, u8> for Picked<I::Few> {
    #[inline(always)]
    unsafe fn load(&self, from: *const u8) -> I::Vector {
        // SAFETY: the caller's promise; all codes are below the length of the table.
        unsafe { I::pick(self.0, from) }
    }
}

/// Codes for values in a table.
struct LookedUp<T>(*const T);

impl<T: Scalar, I: Isa<T>> Load<T, I, u8> for LookedUp<T> {
    #[inline(always)]
    unsafe fn load(&self, from: *const u8) -> I::Vector {
        // SAFETY: the caller's promise; all codes are below the length of the table.
        unsafe { I::gather_u8(self.0, from) }
    }
}

impl<T: Scalar> Run<'_, T> {
    // SAFETY of the reads below: a segment's builder has put into each array what its chunks
    // consume, with columns (and eight from each first one) below the columns of A; x by the caller's
    // promise.

    /// The product with values, which are stored as `stored`.
    ///
    /// # Safety
    /// x has an element for each column of A, y the rows of the segment, the processor the
    /// instructions of `I`.
    #[inline(always)]
    unsafe fn with_values<I: Isa<T>, S>(self, stored: &[S], by: impl Load<T, I, S>) {
        // SAFETY: see above; `I` by the caller's promise.
        unsafe {
            let (mut narrow, mut wide) = (self.segment.narrow.as_ptr(), self.segment.wide.as_ptr());
            let mut stored = stored.as_ptr();
            let (x, zero) = (self.x.as_ptr(), I::splat(T::ZERO));
            let mut spoilt = zero;
            for (index, chunk) in self.segment.chunks.iter().enumerate() {
                let width = usize::from(chunk.width);
                let (mut even, mut odd) = (zero, zero);
                macro_rules! elements {
                    ($fetch:expr) => {{
                        let fetch = $fetch;
                        for element in (1..width).step_by(2) {
                            let at = stored.add(element * LANES);
                            even = I::mul_add(by.load(at.sub(LANES)), fetch(element - 1), even);
                            odd = I::mul_add(by.load(at), fetch(element), odd);
                        }
                        if width % 2 == 1 {
                            let last = width - 1;
                            even = I::mul_add(by.load(stored.add(last * LANES)), fetch(last), even);
                        }
                    }};
                }
                match chunk.columns {
                    Columns::Contiguous => {
                        elements!(|element| I::load(x.add(*wide.add(element) as usize)));
                        wide = wide.add(width);
                    }
                    Columns::Narrow => {
                        let x = x.add(chunk.base as usize);
                        elements!(|element| {
                            let columns = narrow.add(element * LANES);
                            by.prefetch_columns(columns);
                            I::gather_u16(x, columns)
                        });
                        narrow = narrow.add(width * LANES);
                    }
                    Columns::Pairs => {
                        let x = x.add(chunk.base as usize);
                        for pair in 0..width / 2 {
                            let (first, second) = I::gather_pairs(x, narrow.add(pair * HALF));
                            let at = stored.add(2 * pair * LANES);
                            even = I::mul_add(by.load(at), first, even);
                            odd = I::mul_add(by.load(at.add(LANES)), second, odd);
                        }
                        narrow = narrow.add(width / 2 * HALF);
                    }
                    Columns::Wide => {
                        elements!(|element| {
                            let columns = wide.add(element * LANES);
                            by.prefetch_columns(columns);
                            I::gather_u32(x, columns)
                        });
                        wide = wide.add(width * LANES);
                    }
                }
                stored = stored.add(width * LANES);
                let sums = I::add(even, odd);
                if let Some(combined) = &self.combined {
                    combined.store::<I>(self.segment, index, sums, self.x, self.y);
                    continue;
                }
                spoilt = I::mul_add(sums, zero, spoilt);
                store::<T, I>(self.segment, index, sums, self.y);
            }
            *self.finite = I::sum(spoilt) == T::ZERO;
        }
    }

    /// # Safety
    /// As [`Run::with_values`].
    #[inline(always)]
    unsafe fn without_values<I: Isa<T>>(self, value: T) {
        // SAFETY: see above; `I` by the caller's promise.
        unsafe {
            let (mut narrow, mut wide) = (self.segment.narrow.as_ptr(), self.segment.wide.as_ptr());
            let mut masks = self.segment.masks.as_ptr();
            let (x, zero, value) = (self.x.as_ptr(), I::splat(T::ZERO), I::splat(value));
            let mut spoilt = zero;
            for (index, chunk) in self.segment.chunks.iter().enumerate() {
                let (width, full) = (usize::from(chunk.width), usize::from(chunk.full));
                let mut sums = zero;
                macro_rules! elements {
                    ($fetch:expr) => {{
                        for element in 0..full {
                            sums = I::add($fetch(element), sums);
                        }
                        for element in full..width {
                            sums = I::add(I::keep(*masks, $fetch(element)), sums);
                            masks = masks.add(1);
                        }
                    }};
                }
                match chunk.columns {
                    Columns::Contiguous => {
                        for element in 0..width {
                            sums = I::add(I::load(x.add(*wide.add(element) as usize)), sums);
                        }
                        wide = wide.add(width);
                    }
                    Columns::Narrow => {
                        let x = x.add(chunk.base as usize);
                        elements!(|element| I::gather_u16(x, narrow.add(element * LANES)));
                        narrow = narrow.add(width * LANES);
                    }
                    Columns::Pairs => unreachable!("the builder has values for pairs"),
                    Columns::Wide => {
                        elements!(|element| I::gather_u32(x, wide.add(element * LANES)));
                        wide = wide.add(width * LANES);
                    }
                }
                let sums = I::mul_add(sums, value, zero);
                if let Some(combined) = &self.combined {
                    combined.store::<I>(self.segment, index, sums, self.x, self.y);
                    continue;
                }
                spoilt = I::mul_add(sums, zero, spoilt);
                store::<T, I>(self.segment, index, sums, self.y);
            }
            *self.finite = I::sum(spoilt) == T::ZERO;
        }
    }
}

impl<T: Scalar> Combined<'_, T> {
    /// Combines the sums of chunk `index` with z; `y` holds the rows of the segment.
    ///
    /// # Safety
    /// The segment has the chunk, y its rows, the processor the instructions of `I`.
    #[inline(always)]
    unsafe fn store<I: Isa<T>>(
        &self,
        segment: &Segment,
        index: usize,
        sums: I::Vector,
        x: &[T],
        y: &mut [T],
    ) {
        let y = &mut y[index * LANES..];
        // SAFETY: `I` by the caller's promise.
        unsafe {
            // 0 x v is NaN for infinite and NaN v.
            let finite = I::sum(I::mul(sums, I::splat(T::ZERO))) == T::ZERO;
            if let (true, Some(y)) = (finite, y.first_chunk_mut()) {
                return self.update.put::<I>(sums, y);
            }
            let mut lanes = [T::ZERO; LANES];
            I::store(lanes.as_mut_ptr(), sums);
            self.put_each(segment.rows.start + index * LANES, &mut lanes, x, y);
        }
    }

    /// Combines the sums of the rows of a chunk from row `first` on, each finite or computed again.
    #[cold]
    fn put_each(&self, first: usize, sums: &mut [T; LANES], x: &[T], y: &mut [T]) {
        let count = y.len().min(LANES);
        repair(&self.a, first..first + count, x, &mut sums[..count]);
        sums.iter().zip(y).for_each(|(&sum, y)| self.update.apply(sum, y));
    }
}

/// Writes the sums of chunk `index` to their rows in `y`, which holds the rows of the segment.
///
/// # Safety
/// The segment has the chunk, y its rows, the processor the instructions of `I`.
#[inline(always)]
unsafe fn store<T: Scalar, I: Isa<T>>(
    segment: &Segment,
    index: usize,
    sums: I::Vector,
    y: &mut [T],
) {
    let first = index * LANES;
    let rows = y.len() - first;
    // SAFETY: the segment has chunk `index`, so at least one row from `first` on; its positions
    // are below y.len(); `I` by the caller's promise.
    unsafe {
        if rows >= LANES {
            if segment.positions.is_empty() {
                I::store(y.as_mut_ptr().add(first), sums);
            } else {
                I::scatter_u16(y.as_mut_ptr(), segment.positions.as_ptr().add(first), sums);
            }
        } else {
            let mut lanes = [T::ZERO; LANES];
            I::store(lanes.as_mut_ptr(), sums);
            for (lane, &sum) in lanes[..rows].iter().enumerate() {
                let position = segment.positions.get(first + lane).map(|&p| usize::from(p));
                y[position.unwrap_or(first + lane)] = sum;
            }
        }
    }
}

//! SIMD vectors of eight elements, with the instruction set chosen at run time.
//!
//! A kernel is written once, as a [`Job`] over an [`Isa`]; [`Machine::run`] picks the instructions
//! at run time. Everything is `#[inline(always)]`, so that a job is compiled again inside each
//! function that switches the instructions on.

use std::any::TypeId;
use std::mem::{ManuallyDrop, transmute_copy};

use spm_formats::kernel::{ParameterSpec, Parameters, Value};
use spm_formats::{ByField, RealScalar, Scalar};

use crate::workspace::CACHE_LINE;

#[cfg(not(target_arch = "x86_64"))]
mod elsewhere;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(not(target_arch = "x86_64"))]
use elsewhere as processor;
#[cfg(target_arch = "x86_64")]
use x86 as processor;

/// Elements of a vector: one cache line of `f64`, which is also the widest vector of `f64`.
pub(crate) const LANES: usize = 8;

/// Elements of half a vector.
pub(crate) const HALF: usize = LANES / 2;

/// Elements that fit the registers as a table, from which lanes are chosen without a load.
pub(crate) const FEW: usize = 32;

/// The parameter that chooses how elements of x are loaded.
pub(crate) const GATHER: ParameterSpec = ParameterSpec {
    name: "gather",
    meaning: "load elements of x by one vector gather or by scalar loads; which is faster \
              depends on the processor",
    default: Value::Choice("vector"),
    studied: &[Value::Choice("vector"), Value::Choice("scalar")],
};

/// Prefetch distance in elements for the arrays of a matrix (4 KiB of `f64`). Between random reads
/// of x the hardware prefetcher follows the streams of these arrays too late.
pub(crate) const AHEAD: usize = 512;

/// The parameter that enables prefetching of the values, and of columns that are stored for each element, [`AHEAD`]
/// elements before their use or, of rows that are read side by side, those of the next ones.
pub(crate) const PREFETCH: ParameterSpec = ParameterSpec {
    name: "prefetch",
    meaning: "prefetch the values, and columns that are stored for each, 512 entries ahead, or those of the next rows",
    default: Value::Switch(false),
    studied: &[Value::Switch(false), Value::Switch(true)],
};

/// Where the line of [`hint`] is wanted, and what for.
enum Wanted {
    Near,
    Far,
    ToWrite,
}

/// Prefetches the cache line of `place`, which may be any address.
#[inline(always)]
fn hint<E>(place: *const E, wanted: Wanted) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that never faults; processors without that for writes do nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        match wanted {
            Wanted::Near => _mm_prefetch::<_MM_HINT_T0>(place.cast()),
            Wanted::Far => _mm_prefetch::<_MM_HINT_T1>(place.cast()),
            Wanted::ToWrite => _mm_prefetch::<_MM_HINT_ET0>(place.cast()),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, wanted);
}

/// Prefetches the cache line of `from`, which may be any address.
#[inline(always)]
pub(crate) fn prefetch<E>(from: *const E) {
    hint(from, Wanted::Near);
}

/// [`prefetch`] into the second-level cache.
#[inline(always)]
pub(crate) fn prefetch_far<E>(from: *const E) {
    hint(from, Wanted::Far);
}

/// Prefetches the cache line of `to`, which may be any address, for a write.
#[inline(always)]
pub(crate) fn prefetch_write<E>(to: *const E) {
    hint(to, Wanted::ToWrite);
}

/// Prefetches all lines of `elements` for writes, in order: faster than the first write to each line, out of order.
#[inline(always)]
pub(crate) fn prefetch_to_overwrite<E>(elements: &[E]) {
    elements.iter().step_by(CACHE_LINE / size_of::<E>()).for_each(|line| prefetch_write(line));
}

/// Bit i says whether element i + 1 differs from element i: of row pointers, whether row i has entries.
#[inline]
pub(crate) fn changes(of: &[u32; u64::BITS as usize + 1]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_ps,
        };
        (0..u64::BITS as usize).step_by(4).fold(0, |mask, i| {
            // SAFETY: a part of the instruction set; elements i to i + 4 are inside.
            let same = unsafe {
                let from = of.as_ptr().add(i);
                let (these, next) =
                    (_mm_loadu_si128(from.cast()), _mm_loadu_si128(from.add(1).cast()));
                _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(these, next)))
            };
            mask | u64::from(!same as u32 & 0xf) << i
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    of.windows(2).rev().fold(0, |mask, pair| mask << 1 | u64::from(pair[0] != pair[1]))
}

/// Vectors of [`LANES`] elements.
///
/// # Safety
/// Of every function: the processor has the instructions, and pointers are valid for what is read
/// or written through them: [`LANES`] consecutive elements, or those at the indices.
pub(crate) trait Isa<T: Scalar>: Copy {
    /// [`LANES`] elements.
    type Vector: Copy;
    /// [`HALF`] elements.
    type Half: Copy;
    /// [`FEW`] elements to choose from.
    type Few: Copy;
    /// Vectors that fit the registers, as sums beside the operands of a multiply-add: 2 or 8.
    const MOST_VECTORS: usize = 8;
    /// Whether a load of some lanes is one instruction.
    const LOADS_SOME: bool = false;

    unsafe fn splat(value: T) -> Self::Vector;
    unsafe fn load(from: *const T) -> Self::Vector;
    /// 0 in lanes whose bit of `lanes` is 0; nothing is read for these, and `from` is where lane 0 would be.
    #[inline(always)]
    unsafe fn load_some(lanes: u8, from: *const T) -> Self::Vector {
        // SAFETY: the caller's promise; the array has an element for each lane.
        unsafe { Self::load(portable::Portable::load_some(lanes, from).as_ptr()) }
    }
    /// As [`Isa::load_some`] of the first `count` lanes, at most [`LANES`].
    #[inline(always)]
    unsafe fn load_first(count: usize, from: *const T) -> Self::Vector {
        // SAFETY: the caller's promise.
        unsafe { Self::load_some(first_lanes(count), from) }
    }
    unsafe fn store(to: *mut T, vector: Self::Vector);
    /// Writes the lanes whose bit of `lanes` is 1 only; `to` is where lane 0 would be.
    #[inline(always)]
    unsafe fn store_some(lanes: u8, to: *mut T, vector: Self::Vector) {
        let mut values = [T::ZERO; LANES];
        // SAFETY: the caller's promise; the array has an element for each lane.
        unsafe {
            Self::store(values.as_mut_ptr(), vector);
            portable::Portable::store_some(lanes, to, values);
        }
    }
    /// As [`Isa::store_some`] of the first `count` lanes, at most [`LANES`].
    #[inline(always)]
    unsafe fn store_first(count: usize, to: *mut T, vector: Self::Vector) {
        // SAFETY: the caller's promise.
        unsafe { Self::store_some(first_lanes(count), to, vector) }
    }
    /// A streaming store, for data that is not read again soon; `to` is a multiple of the vector's
    /// size. [`Isa::stream_fence`] is needed before another thread reads the data.
    unsafe fn stream(to: *mut T, vector: Self::Vector);
    /// Makes this thread's streamed stores visible before its later ones.
    unsafe fn stream_fence();
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn mul(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a b + c.
    unsafe fn mul_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// The elements at [`LANES`] indices: of a table in the first-level cache, where loads one by one
    /// are faster than a vector gather.
    unsafe fn gather_u8(from: *const T, index: *const u8) -> Self::Vector;
    /// The elements at [`LANES`] indices.
    unsafe fn gather_u16(from: *const T, index: *const u16) -> Self::Vector;
    /// The elements at [`LANES`] indices below 2^31.
    unsafe fn gather_u32(from: *const T, index: *const u32) -> Self::Vector;
    /// The elements at [`HALF`] indices, each in two neighbouring lanes, and in the same way the elements
    /// behind these.
    #[inline(always)]
    unsafe fn gather_pairs(from: *const T, index: *const u16) -> (Self::Vector, Self::Vector) {
        // SAFETY: the caller's promise; the arrays have an element for each lane.
        unsafe {
            let (first, second) = portable::Portable::gather_pairs(from, index);
            (Self::load(first.as_ptr()), Self::load(second.as_ptr()))
        }
    }
    /// [`FEW`] consecutive elements, which stay where they are.
    unsafe fn few(from: *const T) -> Self::Few;
    /// The elements of `few` at [`LANES`] indices below [`FEW`].
    unsafe fn pick(few: Self::Few, index: *const u8) -> Self::Vector;
    /// The elements at the indices of lanes whose bit of `lanes` is 1; 0 of the others. The indices of the former are
    /// below 2^31, and there is an element 0.
    #[inline(always)]
    unsafe fn gather_some(lanes: u8, from: *const T, index: &[u32; LANES]) -> Self::Vector {
        // SAFETY: the caller's promise; the array has an element for each lane.
        unsafe { Self::load(portable::Portable::gather_some(lanes, from, index).as_ptr()) }
    }
    /// The vector with 0 in lanes whose bit of `mask` is 0.
    unsafe fn keep(mask: u8, vector: Self::Vector) -> Self::Vector;
    /// Where an index repeats, the highest lane wins.
    #[inline(always)]
    unsafe fn scatter_u16(to: *mut T, index: *const u16, vector: Self::Vector) {
        let mut values = [T::ZERO; LANES];
        // SAFETY: the caller's promise; the array has an element for each lane.
        unsafe {
            Self::store(values.as_mut_ptr(), vector);
            portable::Portable::scatter_u16(to, index, values);
        }
    }
    /// The vector shifted up by `N` lanes (`N` is 1 or 2) with zeros below, and a second vector
    /// with the lanes that were shifted out in its lowest lanes.
    unsafe fn shift_up<const N: usize>(vector: Self::Vector) -> (Self::Vector, Self::Vector);
    /// The sum of all lanes, always in the same order.
    unsafe fn sum(vector: Self::Vector) -> T;
    // The same operations with [`HALF`] elements.
    unsafe fn splat_half(value: T) -> Self::Half;
    unsafe fn load_half(from: *const T) -> Self::Half;
    unsafe fn store_half(to: *mut T, half: Self::Half);
    unsafe fn add_half(a: Self::Half, b: Self::Half) -> Self::Half;
    /// a b + c.
    unsafe fn mul_add_half(a: Self::Half, b: Self::Half, c: Self::Half) -> Self::Half;
}

/// The mask of the first `count` lanes, at most [`LANES`].
#[inline(always)]
pub(crate) fn first_lanes(count: usize) -> u8 {
    ((1_u32 << count) - 1) as u8
}

/// A piece of work over vectors of `T`. What its pointers rely on (lengths of x and y, arrays that a
/// plan has built) is checked where the job is made, in the module of its kernel.
///
/// # Safety
/// `As<T>` is the implementing type itself.
pub(crate) unsafe trait Job<T: Scalar> {
    /// The same job for another element type.
    type As<U: Scalar>: Job<U>;
    /// Whether the job gathers. A job that does not is compiled for half as many machines.
    const GATHERS: bool = true;

    /// Runs the computation. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The processor has the instructions of `I`.
    unsafe fn run<I: Isa<T>>(self);
}

/// Instruction sets in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The instruction set that a plan uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    level: Level,
    vector_gather: bool,
}

impl Machine {
    /// The best instruction set of this processor for a job that does not gather.
    pub(crate) fn without_gathers() -> Self {
        Self { level: processor::detect_level(), vector_gather: false }
    }

    /// The best instruction set of this processor for a job that gathers from `elements` elements
    /// as the parameter [`GATHER`] in `parameters` says.
    pub(crate) fn for_gathers(parameters: &Parameters, elements: usize) -> Self {
        let vector_gather = parameters.choice(GATHER.name) == "vector";
        Self { level: processor::detect_level(), vector_gather }.within(elements)
    }

    /// The best instruction set of this processor for a job that gathers from `elements` elements by the parameter's
    /// default.
    pub(crate) fn gathering(elements: usize) -> Self {
        Self { level: processor::detect_level(), vector_gather: true }.within(elements)
    }

    /// The same machine for a job that gathers from `elements` elements.
    pub(crate) fn within(self, elements: usize) -> Self {
        // Vector gathers take signed 32-bit indices.
        let level = if i32::try_from(elements).is_ok() { self.level } else { Level::Portable };
        Self { level, ..self }
    }

    /// Whether [`Isa::pick`] takes no loads: the registers have room for [`FEW`] elements.
    pub(crate) fn has_few<T: RealScalar>(self) -> bool {
        processor::has_few(self.level, T::BYTES)
    }

    /// Runs the job with the widest vectors that the machine has.
    #[inline]
    pub(crate) fn run<T: Scalar, J: Job<T>>(self, job: J) {
        T::by_field(Run { machine: self, job });
    }
}

/// A job for a machine.
struct Run<J> {
    machine: Machine,
    job: J,
}

impl<T: Scalar, J: Job<T>> ByField<T> for Run<J> {
    type Output = ();

    #[inline]
    fn real(self)
    where
        T: RealScalar,
    {
        let Self { machine: Machine { level, vector_gather }, job } = self;
        let vector_gather = J::GATHERS && vector_gather;
        if TypeId::of::<T>() == TypeId::of::<f64>() {
            // SAFETY: T is f64, so `J` and `J::As<f64>` are one type.
            let job = unsafe { reinterpret::<J, J::As<f64>>(job) };
            // SAFETY: the level is `detect_level`'s or a lesser one.
            unsafe { processor::run_f64(job, level, vector_gather) };
        } else {
            assert!(TypeId::of::<T>() == TypeId::of::<f32>(), "real scalars are f32 and f64");
            // SAFETY: T is f32, so `J` and `J::As<f32>` are one type.
            let job = unsafe { reinterpret::<J, J::As<f32>>(job) };
            // SAFETY: the level is `detect_level`'s or a lesser one.
            unsafe { processor::run_f32(job, level, vector_gather) };
        }
    }

    /// The compiler's own vectors of complex numbers, with the instructions of the level.
    #[inline]
    fn complex(self) {
        // SAFETY: the level is `detect_level`'s or a lesser one.
        unsafe { processor::run_portable(self.job, self.machine.level) }
    }
}

/// # Safety
/// `A` and `B` are the same type.
#[inline(always)]
unsafe fn reinterpret<A, B>(value: A) -> B {
    // SAFETY: the same type by the caller's promise; the original is not dropped.
    unsafe { transmute_copy(&ManuallyDrop::new(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_where_neighbours_differ() {
        let mut of = [7; u64::BITS as usize + 1];
        assert_eq!(changes(&of), 0);
        let mut expected = 0;
        for i in [0, 1, 5, 31, 32, 62, 63] {
            of[i + 1..].iter_mut().for_each(|element| *element += 1);
            expected |= 1 << i;
            assert_eq!(changes(&of), expected, "{i}");
        }
        assert_eq!(changes(&std::array::from_fn(|i| i as u32)), u64::MAX);
    }

    #[repr(align(64))]
    struct Aligned<T>([T; LANES]);

    /// Writes what each operation gives on fixed numbers.
    struct Probe<'a, T> {
        out: &'a mut Vec<T>,
    }

    // SAFETY: `As<T>` is `Probe<T>`.
    unsafe impl<'a, T: Scalar> Job<T> for Probe<'a, T> {
        type As<U: Scalar> = Probe<'a, U>;

        #[inline(always)]
        unsafe fn run<I: Isa<T>>(self) {
            let x: Vec<T> = (0..70_000).map(|i| T::from_f64(f64::from(i % 1000))).collect();
            let wide = [0, 69_999, 3, 65_536, 5, 5, 1, 66_001_u32];
            let narrow = [7, 65_535, 0, 1, 2, 2, 9, 8_u16];
            let (byte, four_bits) =
                ([7, 255, 0, 128, 2, 2, 9, 8_u8], [7, 31, 0, 16, 8, 8, 23, 14_u8]);
            let mut target = vec![T::ZERO; 70_000];
            // SAFETY: all indices are inside the arrays; the caller's promise.
            unsafe {
                let a = I::gather_u32(x.as_ptr(), wide.as_ptr());
                let b = I::gather_u16(x.as_ptr(), narrow.as_ptr());
                let c = I::keep(0b1010_0110, a);
                let d = I::mul_add(a, I::add(b, I::splat(T::ONE)), c);
                let product = I::mul(a, c);
                I::scatter_u16(target.as_mut_ptr(), narrow.as_ptr(), d);
                let mut stored = [T::ZERO; LANES];
                I::store(stored.as_mut_ptr(), I::load(x.as_ptr().add(3)));
                I::store_first(3, stored.as_mut_ptr(), I::splat(T::ZERO));
                self.out.extend(stored);
                let mut streamed = Aligned([T::ZERO; LANES]);
                I::stream(streamed.0.as_mut_ptr(), I::load(x.as_ptr()));
                I::stream_fence();
                self.out.extend(&streamed.0[1..]);
                let (one, two) = (I::shift_up::<1>(a), I::shift_up::<2>(a));
                for shifted in [one.0, one.1, two.0, two.1] {
                    I::store(stored.as_mut_ptr(), shifted);
                    self.out.extend(stored);
                }
                self.out.push(I::sum(d));
                let (half, two) =
                    (I::load_half(x.as_ptr().add(5)), I::splat_half(T::from_f64(2.0)));
                I::store_half(stored.as_mut_ptr(), I::add_half(half, two));
                I::store_half(stored.as_mut_ptr().add(HALF), I::mul_add_half(half, two, half));
                self.out.extend(stored);
                self.out.push(I::sum(I::load_first(3, x.as_ptr().add(69_997))));
                // Lanes before the array and behind it.
                let (before, behind) =
                    (x.as_ptr().wrapping_sub(6), x.as_ptr().wrapping_add(69_999));
                let edges = I::add(I::load_some(0b1100_0000, before), I::load_some(1, behind));
                I::store(stored.as_mut_ptr(), edges);
                I::store_some(0b0100_0010, stored.as_mut_ptr(), I::splat(T::from_f64(2.0)));
                self.out.extend(stored);
                let some = I::gather_some(0b1010_0110, x.as_ptr(), &wide);
                I::store(stored.as_mut_ptr(), some);
                self.out.extend(stored);
                let (first, second) = I::gather_pairs(x.as_ptr().add(1), narrow.as_ptr());
                for vector in [first, second] {
                    I::store(stored.as_mut_ptr(), vector);
                    self.out.extend(stored);
                }
                let few = I::few(x.as_ptr().add(3));
                let picked = I::pick(few, four_bits.as_ptr());
                let bytes = I::gather_u8(x.as_ptr(), byte.as_ptr());
                for vector in [product, I::keep(0b0101_1001, a), picked, bytes] {
                    I::store(stored.as_mut_ptr(), vector);
                    self.out.extend(stored);
                }
                self.out.extend([0, 1, 2, 7, 8, 9, 65_535].map(|i: usize| target[i]));
            }
        }
    }

    fn check<T: RealScalar>() {
        // By hand: a = 0 999 3 536 5 5 1 1; b = 7 535 0 1 2 2 9 8; c = a in lanes 1 2 5 7.
        let mut expected = vec![0., 0., 0., 6., 7., 8., 9., 10.];
        expected.extend([1., 2., 3., 4., 5., 6., 7.]);
        expected.extend([0., 0., 999., 3., 536., 5., 5., 1.]);
        expected.extend([1., 0., 0., 0., 0., 0., 0., 0.]);
        expected.extend([0., 0., 0., 999., 3., 536., 5., 5.]);
        expected.extend([1., 1., 0., 0., 0., 0., 0., 0.]);
        expected.extend([537_596., 7., 8., 9., 10., 15., 18., 21., 24., 2994.]);
        expected.extend([999., 2., 0., 0., 0., 0., 2., 1.]);
        expected.extend([0., 999., 3., 0., 0., 5., 0., 1.]);
        expected.extend([8., 8., 536., 536., 1., 1., 2., 2.]);
        expected.extend([9., 9., 537., 537., 2., 2., 3., 3.]);
        expected.extend([0., 998_001., 9., 0., 0., 25., 0., 1.]);
        expected.extend([0., 0., 0., 536., 5., 0., 1., 0.]);
        expected.extend([10., 34., 3., 19., 11., 11., 26., 17.]);
        expected.extend([7., 255., 0., 128., 2., 2., 9., 8.]);
        expected.extend([6., 1072., 20., 0., 10., 10., 536_463.]);
        #[cfg(target_arch = "x86_64")]
        let levels = [Level::Portable, Level::Avx2, Level::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let levels = [Level::Portable];
        let levels = levels.into_iter().filter(|&level| level <= processor::detect_level());
        for (level, vector_gather) in levels.flat_map(|l| [(l, false), (l, true)]) {
            let mut out = Vec::new();
            Machine { level, vector_gather }.run(Probe::<T> { out: &mut out });
            let out: Vec<f64> = out.into_iter().map(T::to_f64).collect();
            assert_eq!(out, expected, "{level:?}, vector gather: {vector_gather}");
        }
    }

    #[test]
    fn every_machine_computes_the_same_f64() {
        check::<f64>();
    }

    #[test]
    fn every_machine_computes_the_same_f32() {
        check::<f32>();
    }
}

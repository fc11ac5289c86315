//! Vectors of x86-64 processors: AVX2 with FMA, and AVX-512.

use std::arch::x86_64::*;

use spm_formats::Scalar;

use super::portable::Portable;
use super::{HALF, Isa, Job, LANES, Level};

/// What this processor has.
pub(super) fn detect_level() -> Level {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        (false, _) => Level::Portable,
    }
}

/// Whether the registers have room for [`FEW`](super::FEW) elements of so many bytes.
pub(super) fn has_few(level: Level, bytes: usize) -> bool {
    level == Level::Avx512 || (level == Level::Avx2 && bytes == 4)
}

/// Runs a job on `f64`.
///
/// # Safety
/// The processor has the instructions of the level.
#[inline]
pub(super) unsafe fn run_f64<J: Job<f64>>(job: J, level: Level, vector_gather: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        if !J::GATHERS {
            match level {
                Level::Portable => job.run::<Portable>(),
                Level::Avx2 => run_avx2::<f64, Avx2<false>, J>(job),
                Level::Avx512 => run_avx512::<f64, Avx512<false>, J>(job),
            }
        } else {
            match (level, vector_gather) {
                (Level::Portable, _) => job.run::<Portable>(),
                (Level::Avx2, true) => run_avx2::<f64, Avx2<true>, J>(job),
                (Level::Avx2, false) => run_avx2::<f64, Avx2<false>, J>(job),
                (Level::Avx512, true) => run_avx512::<f64, Avx512<true>, J>(job),
                (Level::Avx512, false) => run_avx512::<f64, Avx512<false>, J>(job),
            }
        }
    }
}

/// Runs a job on `f32`, of which [`LANES`] fill a vector of AVX2.
///
/// # Safety
/// The processor has the instructions of the level.
#[inline]
pub(super) unsafe fn run_f32<J: Job<f32>>(job: J, level: Level, vector_gather: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        if level == Level::Portable {
            job.run::<Portable>();
        } else if J::GATHERS && vector_gather {
            run_avx2::<f32, Avx2<true>, J>(job);
        } else {
            run_avx2::<f32, Avx2<false>, J>(job);
        }
    }
}

/// Runs a job on any scalar, with the compiler's choice of the level's instructions. AVX-512 has nothing
/// that complex products lack in AVX2, and would be compiled beside it.
///
/// # Safety
/// The processor has the instructions of the level.
#[inline]
pub(super) unsafe fn run_portable<T: Scalar, J: Job<T>>(job: J, level: Level) {
    // SAFETY: the caller's promise.
    unsafe {
        match level {
            Level::Portable => job.run::<Portable>(),
            Level::Avx2 | Level::Avx512 => run_avx2::<T, Portable, J>(job),
        }
    }
}

/// # Safety
/// As [`run_f64`] with `avx512`.
#[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq")]
unsafe fn run_avx512<T: Scalar, I: Isa<T>, J: Job<T>>(job: J) {
    // SAFETY: the instructions are enabled here.
    unsafe { job.run::<I>() }
}

/// # Safety
/// As [`run_f32`].
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<T: Scalar, I: Isa<T>, J: Job<T>>(job: J) {
    // SAFETY: the instructions are enabled here.
    unsafe { job.run::<I>() }
}

/// A function of [`Isa`] that is one intrinsic, or one for each half.
macro_rules! intrinsic {
    ($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?: $body:expr) => {
        #[inline(always)]
        unsafe fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: the caller's promises of `Isa`.
            unsafe { $body }
        }
    };
}

/// [`LANES`] `f64` in one vector; `GATHER`: fetch by vector instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512<const GATHER: bool>;

// SAFETY of every block below: the caller's promises of `Isa`.
#[expect(clippy::undocumented_unsafe_blocks, reason = "each is one intrinsic; see above")]
impl<const GATHER: bool> Isa<f64> for Avx512<GATHER> {
    type Vector = __m512d;
    type Half = __m256d;
    type Few = [__m512d; 4];
    const LOADS_SOME: bool = true;

    intrinsic!(splat(value: f64) -> __m512d: _mm512_set1_pd(value));
    intrinsic!(load(from: *const f64) -> __m512d: _mm512_loadu_pd(from));
    intrinsic!(load_some(lanes: u8, from: *const f64) -> __m512d: _mm512_maskz_loadu_pd(lanes, from));
    intrinsic!(store(to: *mut f64, vector: __m512d): _mm512_storeu_pd(to, vector));
    intrinsic!(store_some(lanes: u8, to: *mut f64, vector: __m512d):
        _mm512_mask_storeu_pd(to, lanes, vector));
    intrinsic!(stream(to: *mut f64, vector: __m512d): _mm512_stream_pd(to, vector));
    intrinsic!(stream_fence(): _mm_sfence());
    intrinsic!(add(a: __m512d, b: __m512d) -> __m512d: _mm512_add_pd(a, b));
    intrinsic!(mul(a: __m512d, b: __m512d) -> __m512d: _mm512_mul_pd(a, b));
    intrinsic!(mul_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d: _mm512_fmadd_pd(a, b, c));
    #[inline(always)]
    unsafe fn gather_u8(from: *const f64, index: *const u8) -> __m512d {
        let x = unsafe { fetch_u8(from, index) };
        unsafe { _mm512_set_pd(x[7], x[6], x[5], x[4], x[3], x[2], x[1], x[0]) }
    }
    #[inline(always)]
    unsafe fn gather_u16(from: *const f64, index: *const u16) -> __m512d {
        if GATHER {
            return unsafe { _mm512_i32gather_pd::<8>(widen(index), from) };
        }
        let x = unsafe { fetch_u16(from, index) };
        unsafe { _mm512_set_pd(x[7], x[6], x[5], x[4], x[3], x[2], x[1], x[0]) }
    }
    #[inline(always)]
    unsafe fn gather_u32(from: *const f64, index: *const u32) -> __m512d {
        if GATHER {
            return unsafe { _mm512_i32gather_pd::<8>(_mm256_loadu_si256(index.cast()), from) };
        }
        let x = unsafe { fetch_u32(from, index) };
        unsafe { _mm512_set_pd(x[7], x[6], x[5], x[4], x[3], x[2], x[1], x[0]) }
    }
    #[inline(always)]
    unsafe fn gather_pairs(from: *const f64, index: *const u16) -> (__m512d, __m512d) {
        unsafe {
            let [first, second, third, fourth] = fetch_pairs(from, index);
            // Loads that leave the other lanes as they are, not shuffles.
            let pairs = _mm512_broadcast_f64x2(_mm_loadu_pd(first));
            let pairs = _mm512_mask_broadcast_f64x2(pairs, 0b0000_1100, _mm_loadu_pd(second));
            let pairs = _mm512_mask_broadcast_f64x2(pairs, 0b0011_0000, _mm_loadu_pd(third));
            let pairs = _mm512_mask_broadcast_f64x2(pairs, 0b1100_0000, _mm_loadu_pd(fourth));
            (_mm512_permute_pd::<0>(pairs), _mm512_permute_pd::<0b1111_1111>(pairs))
        }
    }
    intrinsic!(few(from: *const f64) -> [__m512d; 4]:
        [_mm512_loadu_pd(from), _mm512_loadu_pd(from.add(8)), _mm512_loadu_pd(from.add(16)), _mm512_loadu_pd(from.add(24))]);
    #[inline(always)]
    unsafe fn pick(few: [__m512d; 4], index: *const u8) -> __m512d {
        unsafe {
            let index = _mm512_cvtepu8_epi64(_mm_loadl_epi64(index.cast()));
            let low = _mm512_permutex2var_pd(few[0], index, few[1]);
            let high = _mm512_permutex2var_pd(few[2], index, few[3]);
            let upper = _mm512_test_epi64_mask(index, _mm512_set1_epi64(16));
            _mm512_mask_blend_pd(upper, low, high)
        }
    }
    #[inline(always)]
    unsafe fn gather_some(lanes: u8, from: *const f64, index: &[u32; LANES]) -> __m512d {
        unsafe {
            if !GATHER {
                return Self::load(Portable::gather_some(lanes, from, index).as_ptr());
            }
            let index = _mm256_loadu_si256(index.as_ptr().cast());
            _mm512_mask_i32gather_pd::<8>(_mm512_setzero_pd(), lanes, index, from)
        }
    }
    intrinsic!(keep(mask: u8, vector: __m512d) -> __m512d: _mm512_maskz_mov_pd(mask, vector));
    #[inline(always)]
    unsafe fn scatter_u16(to: *mut f64, index: *const u16, vector: __m512d) {
        if GATHER {
            return unsafe { _mm512_i32scatter_pd::<8>(to, widen(index), vector) };
        }
        let mut values = [0.0; LANES];
        unsafe { Self::store(values.as_mut_ptr(), vector) };
        unsafe { Portable::scatter_u16(to, index, values) };
    }
    #[inline(always)]
    unsafe fn shift_up<const N: usize>(vector: __m512d) -> (__m512d, __m512d) {
        let (v, zero) = unsafe { (_mm512_castpd_si512(vector), _mm512_setzero_si512()) };
        let (low, out) = unsafe {
            match N {
                1 => (_mm512_alignr_epi64::<7>(v, zero), _mm512_alignr_epi64::<7>(zero, v)),
                _ => (_mm512_alignr_epi64::<6>(v, zero), _mm512_alignr_epi64::<6>(zero, v)),
            }
        };
        unsafe { (_mm512_castsi512_pd(low), _mm512_castsi512_pd(out)) }
    }
    #[inline(always)]
    unsafe fn sum(vector: __m512d) -> f64 {
        let low = unsafe { _mm512_castpd512_pd256(vector) };
        let high = unsafe { _mm512_extractf64x4_pd::<1>(vector) };
        unsafe { sum4(_mm256_add_pd(low, high)) }
    }
    intrinsic!(splat_half(value: f64) -> __m256d: _mm256_set1_pd(value));
    intrinsic!(load_half(from: *const f64) -> __m256d: _mm256_loadu_pd(from));
    intrinsic!(store_half(to: *mut f64, half: __m256d): _mm256_storeu_pd(to, half));
    intrinsic!(add_half(a: __m256d, b: __m256d) -> __m256d: _mm256_add_pd(a, b));
    intrinsic!(mul_add_half(a: __m256d, b: __m256d, c: __m256d) -> __m256d: _mm256_fmadd_pd(a, b, c));
}

/// [`LANES`] `f64` in two vectors, or [`LANES`] `f32` in one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2<const GATHER: bool>;

#[expect(clippy::undocumented_unsafe_blocks, reason = "each is one intrinsic; see above")]
impl<const GATHER: bool> Isa<f64> for Avx2<GATHER> {
    type Vector = [__m256d; 2];
    type Half = __m256d;
    // More than half of the registers; loads take less.
    type Few = *const f64;

    intrinsic!(splat(value: f64) -> [__m256d; 2]: [_mm256_set1_pd(value); 2]);
    intrinsic!(load(from: *const f64) -> [__m256d; 2]:
        [_mm256_loadu_pd(from), _mm256_loadu_pd(from.add(4))]);
    intrinsic!(store(to: *mut f64, vector: [__m256d; 2]):
        { _mm256_storeu_pd(to, vector[0]); _mm256_storeu_pd(to.add(4), vector[1]); });
    intrinsic!(stream(to: *mut f64, vector: [__m256d; 2]):
        { _mm256_stream_pd(to, vector[0]); _mm256_stream_pd(to.add(4), vector[1]); });
    intrinsic!(stream_fence(): _mm_sfence());
    intrinsic!(add(a: [__m256d; 2], b: [__m256d; 2]) -> [__m256d; 2]:
        [_mm256_add_pd(a[0], b[0]), _mm256_add_pd(a[1], b[1])]);
    intrinsic!(mul(a: [__m256d; 2], b: [__m256d; 2]) -> [__m256d; 2]:
        [_mm256_mul_pd(a[0], b[0]), _mm256_mul_pd(a[1], b[1])]);
    intrinsic!(mul_add(a: [__m256d; 2], b: [__m256d; 2], c: [__m256d; 2]) -> [__m256d; 2]:
        [_mm256_fmadd_pd(a[0], b[0], c[0]), _mm256_fmadd_pd(a[1], b[1], c[1])]);
    #[inline(always)]
    unsafe fn gather_u8(from: *const f64, index: *const u8) -> [__m256d; 2] {
        let x = unsafe { fetch_u8(from, index) };
        unsafe { [_mm256_set_pd(x[3], x[2], x[1], x[0]), _mm256_set_pd(x[7], x[6], x[5], x[4])] }
    }
    #[inline(always)]
    unsafe fn gather_u16(from: *const f64, index: *const u16) -> [__m256d; 2] {
        if GATHER {
            return unsafe { gather(from, widen(index)) };
        }
        let x = unsafe { fetch_u16(from, index) };
        unsafe { [_mm256_set_pd(x[3], x[2], x[1], x[0]), _mm256_set_pd(x[7], x[6], x[5], x[4])] }
    }
    #[inline(always)]
    unsafe fn gather_u32(from: *const f64, index: *const u32) -> [__m256d; 2] {
        if GATHER {
            return unsafe { gather(from, _mm256_loadu_si256(index.cast())) };
        }
        let x = unsafe { fetch_u32(from, index) };
        unsafe { [_mm256_set_pd(x[3], x[2], x[1], x[0]), _mm256_set_pd(x[7], x[6], x[5], x[4])] }
    }
    #[inline(always)]
    unsafe fn gather_pairs(from: *const f64, index: *const u16) -> ([__m256d; 2], [__m256d; 2]) {
        unsafe {
            let [first, second, third, fourth] = fetch_pairs(from, index);
            let low = _mm256_loadu2_m128d(second, first);
            let high = _mm256_loadu2_m128d(fourth, third);
            let firsts = [_mm256_permute_pd::<0>(low), _mm256_permute_pd::<0>(high)];
            (firsts, [_mm256_permute_pd::<0b1111>(low), _mm256_permute_pd::<0b1111>(high)])
        }
    }
    #[inline(always)]
    unsafe fn few(from: *const f64) -> *const f64 {
        from
    }
    #[inline(always)]
    unsafe fn pick(few: *const f64, index: *const u8) -> [__m256d; 2] {
        unsafe { Self::gather_u8(few, index) }
    }
    #[inline(always)]
    unsafe fn keep(mask: u8, v: [__m256d; 2]) -> [__m256d; 2] {
        let kept = |bits| unsafe {
            let set = _mm256_and_si256(_mm256_set1_epi64x(i64::from(mask)), bits);
            _mm256_castsi256_pd(_mm256_cmpeq_epi64(set, bits))
        };
        let low = kept(unsafe { _mm256_setr_epi64x(1, 2, 4, 8) });
        let high = kept(unsafe { _mm256_setr_epi64x(16, 32, 64, 128) });
        unsafe { [_mm256_and_pd(v[0], low), _mm256_and_pd(v[1], high)] }
    }
    #[inline(always)]
    unsafe fn shift_up<const N: usize>(v: [__m256d; 2]) -> ([__m256d; 2], [__m256d; 2]) {
        unsafe {
            let zero = _mm256_setzero_pd();
            if N == 1 {
                let (a, b) = (turn::<0b10_01_00_11>(v[0]), turn::<0b10_01_00_11>(v[1]));
                let low = [_mm256_blend_pd::<1>(a, zero), _mm256_blend_pd::<1>(b, a)];
                (low, [_mm256_blend_pd::<1>(zero, b), zero])
            } else {
                let (a, b) = (turn::<0b01_00_11_10>(v[0]), turn::<0b01_00_11_10>(v[1]));
                let low = [_mm256_blend_pd::<3>(a, zero), _mm256_blend_pd::<3>(b, a)];
                (low, [_mm256_blend_pd::<3>(zero, b), zero])
            }
        }
    }
    intrinsic!(sum(vector: [__m256d; 2]) -> f64: sum4(_mm256_add_pd(vector[0], vector[1])));
    intrinsic!(splat_half(value: f64) -> __m256d: _mm256_set1_pd(value));
    intrinsic!(load_half(from: *const f64) -> __m256d: _mm256_loadu_pd(from));
    intrinsic!(store_half(to: *mut f64, half: __m256d): _mm256_storeu_pd(to, half));
    intrinsic!(add_half(a: __m256d, b: __m256d) -> __m256d: _mm256_add_pd(a, b));
    intrinsic!(mul_add_half(a: __m256d, b: __m256d, c: __m256d) -> __m256d: _mm256_fmadd_pd(a, b, c));
}

#[expect(clippy::undocumented_unsafe_blocks, reason = "each is one intrinsic; see above")]
impl<const GATHER: bool> Isa<f32> for Avx2<GATHER> {
    type Vector = __m256;
    type Half = __m128;
    type Few = [__m256; 4];

    intrinsic!(splat(value: f32) -> __m256: _mm256_set1_ps(value));
    intrinsic!(load(from: *const f32) -> __m256: _mm256_loadu_ps(from));
    intrinsic!(store(to: *mut f32, vector: __m256): _mm256_storeu_ps(to, vector));
    intrinsic!(stream(to: *mut f32, vector: __m256): _mm256_stream_ps(to, vector));
    intrinsic!(stream_fence(): _mm_sfence());
    intrinsic!(add(a: __m256, b: __m256) -> __m256: _mm256_add_ps(a, b));
    intrinsic!(mul(a: __m256, b: __m256) -> __m256: _mm256_mul_ps(a, b));
    intrinsic!(mul_add(a: __m256, b: __m256, c: __m256) -> __m256: _mm256_fmadd_ps(a, b, c));
    #[inline(always)]
    unsafe fn gather_u8(from: *const f32, index: *const u8) -> __m256 {
        let x = unsafe { fetch_u8(from, index) };
        unsafe { _mm256_set_ps(x[7], x[6], x[5], x[4], x[3], x[2], x[1], x[0]) }
    }
    #[inline(always)]
    unsafe fn gather_u16(from: *const f32, index: *const u16) -> __m256 {
        if GATHER {
            return unsafe { _mm256_i32gather_ps::<4>(from, widen(index)) };
        }
        let x = unsafe { fetch_u16(from, index) };
        unsafe { _mm256_set_ps(x[7], x[6], x[5], x[4], x[3], x[2], x[1], x[0]) }
    }
    #[inline(always)]
    unsafe fn gather_u32(from: *const f32, index: *const u32) -> __m256 {
        if GATHER {
            return unsafe { _mm256_i32gather_ps::<4>(from, _mm256_loadu_si256(index.cast())) };
        }
        let x = unsafe { fetch_u32(from, index) };
        unsafe { _mm256_set_ps(x[7], x[6], x[5], x[4], x[3], x[2], x[1], x[0]) }
    }
    #[inline(always)]
    unsafe fn gather_pairs(from: *const f32, index: *const u16) -> (__m256, __m256) {
        unsafe {
            // Both elements of a pair at once, as one number of 64 bits.
            let [first, second, third, fourth] =
                fetch_pairs(from, index).map(|pair| pair.cast::<f64>().read_unaligned());
            let pairs = _mm256_castpd_ps(_mm256_set_pd(fourth, third, second, first));
            (_mm256_moveldup_ps(pairs), _mm256_movehdup_ps(pairs))
        }
    }
    intrinsic!(few(from: *const f32) -> [__m256; 4]:
        [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)), _mm256_loadu_ps(from.add(16)), _mm256_loadu_ps(from.add(24))]);
    #[inline(always)]
    unsafe fn pick(few: [__m256; 4], index: *const u8) -> __m256 {
        unsafe {
            let index = widen_u8(index);
            // A blend goes by the sign: bit 3 or bit 4 of the index.
            let odd = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index));
            let upper = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(index));
            let first = _mm256_permutevar8x32_ps(few[0], index);
            let second = _mm256_permutevar8x32_ps(few[1], index);
            let third = _mm256_permutevar8x32_ps(few[2], index);
            let fourth = _mm256_permutevar8x32_ps(few[3], index);
            let low = _mm256_blendv_ps(first, second, odd);
            let high = _mm256_blendv_ps(third, fourth, odd);
            _mm256_blendv_ps(low, high, upper)
        }
    }
    #[inline(always)]
    unsafe fn keep(mask: u8, v: __m256) -> __m256 {
        unsafe {
            let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let set = _mm256_and_si256(_mm256_set1_epi32(i32::from(mask)), bits);
            _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bits)))
        }
    }
    #[inline(always)]
    unsafe fn shift_up<const N: usize>(v: __m256) -> (__m256, __m256) {
        unsafe {
            let zero = _mm256_setzero_ps();
            if N == 1 {
                let turned = _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
                (_mm256_blend_ps::<1>(turned, zero), _mm256_blend_ps::<1>(zero, turned))
            } else {
                let turned = _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(6, 7, 0, 1, 2, 3, 4, 5));
                (_mm256_blend_ps::<3>(turned, zero), _mm256_blend_ps::<3>(zero, turned))
            }
        }
    }
    #[inline(always)]
    unsafe fn sum(vector: __m256) -> f32 {
        let mut values = [0.0; LANES];
        unsafe { Self::store(values.as_mut_ptr(), vector) };
        unsafe { Portable::sum(values) }
    }
    intrinsic!(splat_half(value: f32) -> __m128: _mm_set1_ps(value));
    intrinsic!(load_half(from: *const f32) -> __m128: _mm_loadu_ps(from));
    intrinsic!(store_half(to: *mut f32, half: __m128): _mm_storeu_ps(to, half));
    intrinsic!(add_half(a: __m128, b: __m128) -> __m128: _mm_add_ps(a, b));
    intrinsic!(mul_add_half(a: __m128, b: __m128, c: __m128) -> __m128: _mm_fmadd_ps(a, b, c));
}

/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn turn<const ORDER: i32>(v: __m256d) -> __m256d {
    // SAFETY: the caller's promise: the processor has AVX2.
    unsafe { _mm256_permute4x64_pd::<ORDER>(v) }
}

/// Eight indices in 32 bits each.
///
/// # Safety
/// There are eight; the processor has AVX2.
#[inline(always)]
unsafe fn widen(index: *const u16) -> __m256i {
    // SAFETY: the caller's promise: eight indices, on a processor with AVX2.
    unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(index.cast())) }
}

/// As [`widen`].
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn widen_u8(index: *const u8) -> __m256i {
    // SAFETY: the caller's promise: eight indices, on a processor with AVX2.
    unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(index.cast())) }
}

/// # Safety
/// An element lies at each of the eight indices; the processor has AVX2.
#[inline(always)]
unsafe fn gather(from: *const f64, index: __m256i) -> [__m256d; 2] {
    // SAFETY: the caller's promise: an element lies at each index, on a processor with AVX2.
    unsafe {
        let (low, high) = (_mm256_castsi256_si128(index), _mm256_extracti128_si256::<1>(index));
        [_mm256_i32gather_pd::<8>(from, low), _mm256_i32gather_pd::<8>(from, high)]
    }
}

/// The elements at eight indices, one load each. Indices are loaded four at a time, because load
/// instructions are the limit; the compiler would combine eight single loads into a vector and
/// unpack it again.
///
/// # Safety
/// There are eight, and an element at each.
#[inline(always)]
unsafe fn fetch_u16<T: Copy>(from: *const T, index: *const u16) -> [T; LANES] {
    // SAFETY: the caller's promise: eight indices, an element at each.
    unsafe {
        let words = index.cast::<[u64; 2]>().read_unaligned();
        std::array::from_fn(|lane| *from.add((words[lane / 4] >> (lane % 4 * 16)) as u16 as usize))
    }
}

/// The places of the elements at [`HALF`] indices, which are loaded at once.
///
/// # Safety
/// There are so many, and an element at each.
#[inline(always)]
unsafe fn fetch_pairs<T>(from: *const T, index: *const u16) -> [*const T; HALF] {
    // SAFETY: the caller's promise: four indices, an element at each.
    unsafe {
        let word = index.cast::<u64>().read_unaligned();
        std::array::from_fn(|pair| from.add((word >> (pair * 16)) as u16 as usize))
    }
}

/// As [`fetch_u16`], all indices at once.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn fetch_u8<T: Copy>(from: *const T, index: *const u8) -> [T; LANES] {
    // SAFETY: the caller's promise: eight indices, an element at each.
    unsafe {
        let word = index.cast::<u64>().read_unaligned();
        std::array::from_fn(|lane| *from.add((word >> (lane * 8)) as u8 as usize))
    }
}

/// As [`fetch_u16`], indices two at a time.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn fetch_u32<T: Copy>(from: *const T, index: *const u32) -> [T; LANES] {
    // SAFETY: the caller's promise: eight indices, an element at each.
    unsafe {
        let words = index.cast::<[u64; 4]>().read_unaligned();
        std::array::from_fn(|lane| *from.add((words[lane / 2] >> (lane % 2 * 32)) as u32 as usize))
    }
}

/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn sum4(v: __m256d) -> f64 {
    // SAFETY: the caller's promise: the processor has AVX2.
    unsafe {
        let pairs = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
        _mm_cvtsd_f64(_mm_add_sd(pairs, _mm_unpackhi_pd(pairs, pairs)))
    }
}

// AVX-512 (F, BW, VL, DQ) vectors for the lane templates. Only for files built with these flags.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "tensor/dtype.h"

namespace oasr::kernels::avx512 {

struct Simd {
  using V = __m512;
  static constexpr int kWidth = 16;
  static constexpr int kMaxRows = 12;   // rows of a register tile of two vectors
  static constexpr int kRegisters = 24;  // accumulators that leave room for operands

  static V set(float a) { return _mm512_set1_ps(a); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static V load(const Half* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static V load(const BFloat16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static void store_eight(Half* p, const float* from) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
  }
  static void store_one(float* p, float a) { *p = a; }
  static void store_one(Half* p, float a) {
    const __m128i half = _mm_cvtps_ph(_mm_set_ss(a), _MM_FROUND_TO_NEAREST_INT);
    p->bits = static_cast<std::uint16_t>(_mm_extract_epi16(half, 0));
  }
  // The first n elements, 0 <= n <= kWidth; the others read as zero.
  static V load_first(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store_first(float* p, V v, int n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static V keep_first(V v, int n) { return _mm512_maskz_mov_ps(first(n), v); }
  static V fill_after_first(V v, int n, float other) {
    return _mm512_mask_mov_ps(_mm512_set1_ps(other), first(n), v);
  }

  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V div(V a, V b) { return _mm512_div_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V min(V a, V b) { return _mm512_min_ps(a, b); }
  static V max(V a, V b) { return _mm512_max_ps(a, b); }
  static V abs(V a) { return _mm512_abs_ps(a); }
  static V add_exponent(V p, V t) {
    const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), n));
  }
  static V zero_if_less(V v, V x, V limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), v);
  }
  static V unless_at_most(V v, V x, V limit, V other) {
    return _mm512_mask_mov_ps(other, _mm512_cmp_ps_mask(x, limit, _CMP_LE_OQ), v);
  }

  // The canonical tree over sixteen partial sums.
  static float fold_sum(const V (&s)[1]) {
    const __m256 high = _mm512_extractf32x8_ps(s[0], 1);
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(s[0]), high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float greatest(V v) { return _mm512_reduce_max_ps(v); }

 private:
  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
};

}  // namespace oasr::kernels::avx512

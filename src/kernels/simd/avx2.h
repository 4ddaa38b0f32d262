// AVX2 + FMA + F16C vectors for the lane templates. Only for files built with these flags.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "tensor/dtype.h"

namespace oasr::kernels::avx2 {

struct Simd {
  using V = __m256;
  static constexpr int kWidth = 8;
  static constexpr int kMaxRows = 6;     // rows of a register tile of two vectors
  static constexpr int kRegisters = 12;  // accumulators that leave room for operands

  static V set(float a) { return _mm256_set1_ps(a); }
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static V load(const Half* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static V load(const BFloat16* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
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
  static V load_first(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
  static void store_first(float* p, V v, int n) {
    if (n == kWidth) return store(p, v);  // masked stores cost some percent of a product
    _mm256_maskstore_ps(p, first(n), v);
  }
  static V keep_first(V v, int n) { return _mm256_and_ps(v, _mm256_castsi256_ps(first(n))); }
  static V fill_after_first(V v, int n, float other) {
    return _mm256_blendv_ps(_mm256_set1_ps(other), v, _mm256_castsi256_ps(first(n)));
  }

  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static V div(V a, V b) { return _mm256_div_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V min(V a, V b) { return _mm256_min_ps(a, b); }
  static V max(V a, V b) { return _mm256_max_ps(a, b); }
  static V abs(V a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  static V add_exponent(V p, V t) {
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), n));
  }
  static V zero_if_less(V v, V x, V limit) {
    return _mm256_and_ps(v, _mm256_cmp_ps(x, limit, _CMP_NLT_UQ));
  }
  static V unless_at_most(V v, V x, V limit, V other) {
    return _mm256_blendv_ps(other, v, _mm256_cmp_ps(x, limit, _CMP_LE_OQ));
  }

  // The canonical tree over sixteen partial sums.
  static float fold_sum(const V (&s)[2]) {
    const __m256 eight = _mm256_add_ps(s[0], s[1]);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float greatest(V v) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

 private:
  static __m256i first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace oasr::kernels::avx2

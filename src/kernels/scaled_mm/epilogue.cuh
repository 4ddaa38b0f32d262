// What a product of int8 matrices gets, and what becomes of its sums (epilogue.h), for scaled_mm/product.cuh.
#pragma once

#include "kernels/cuda/aligned.h"
#include "kernels/cuda/int8.cuh"
#include "kernels/scaled_mm/op.h"

namespace oasr::kernels::cuda {

struct Int8Problem {
  // [m, k], rows lda apart, aligned to 16. They are read in whole chunks of 16: what is between k and the next
  // multiple of 16 must be there, and meets zeros of the weight.
  const std::int8_t* a;
  std::int64_t lda;
  ActivationScale a_scale;
  const std::int8_t* weight;  // [n, k], rows ldw apart, aligned to 16, zeros after k
  std::int64_t ldw;
  const float* w_scale;
  const float* bias;
  Activation activation;
  std::int64_t m, n, k;
  bool vectors;  // what belongs to four channels can be read and written at once
};

inline bool vectors(const FloatOutput& out) { return aligned(out.y, out.ldy) && aligned(out.residual, out.ldr); }
inline bool vectors(const Int8Output& out) { return aligned(out.q, out.ldq, 4) && aligned(out.multiplier, 0); }

template <class Output>
Int8Problem int8_problem(const ScaledMMArgs& args, const Output& out) {
  const PackedInt8Weight& weight = *args.weight;
  return {.a = args.a,
          .lda = args.lda,
          .a_scale = args.a_scale,
          .weight = weight.rows(),
          .ldw = weight.padded_k(),
          .w_scale = weight.scale(),
          .bias = args.bias,
          .activation = args.activation,
          .m = args.m,
          .n = weight.n(),
          .k = weight.k(),
          .vectors = aligned(args.bias, 0) && vectors(out)};
}

// What the epilogue multiplies and adds for the rows and channels of a tile, in shared memory, so that it
// waits for no memory; zeros where there are none.
template <class Tile>
struct Int8Factors {
  alignas(16) float a[Tile::kM], scale[Tile::kN], bias[Tile::kN], multiplier[Tile::kN];  // read by fours

  template <class Output>
  __device__ void load(const Int8Problem& p, const Output& out, std::int64_t first_m, std::int64_t first_n) {
    for (int i = threadIdx.x; i < Tile::kM; i += Tile::kThreads) {
      a[i] = first_m + i < p.m ? p.a_scale.of_row(first_m + i) : 0.0f;
    }
    for (int i = threadIdx.x; i < Tile::kN; i += Tile::kThreads) {
      const std::int64_t n = first_n + i;
      scale[i] = n < p.n ? p.w_scale[n] : 0.0f;
      bias[i] = n < p.n && p.bias != nullptr ? p.bias[n] : 0.0f;
      if constexpr (std::is_same_v<Output, Int8Output>) multiplier[i] = n < p.n ? out.multiplier[n] : 0.0f;
    }
  }
};

// The epilogue of epilogue.h for four neighbouring channels of several rows of a tile.
template <class Tile, class Output>
class Int8Epilogue {
  static constexpr bool kInt8 = std::is_same_v<Output, Int8Output>;

 public:
  // column: of the tile, a multiple of 4.
  __device__ Int8Epilogue(const Int8Problem& p, const Output& out, const Int8Factors<Tile>& factors,
                          std::int32_t* not_finite, std::int64_t first_m, std::int64_t first_n, int column)
      : p_(p),
        out_(out),
        factors_(factors),
        not_finite_(not_finite),
        first_m_(first_m),
        n_(first_n + column),
        scale_(*reinterpret_cast<const float4*>(factors.scale + column)),
        bias_(*reinterpret_cast<const float4*>(factors.bias + column)) {
    if constexpr (kInt8) multiplier_ = *reinterpret_cast<const float4*>(factors.multiplier + column);
  }

  // Rows `row`, row + step, … of the tile, those below the last row of the output.
  template <int kRows>
  __device__ void write(int row, int step, const int4 (&sums)[kRows]) const {
    if (n_ >= p_.n) return;
    float4 residual[kRows];
    if constexpr (!kInt8) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t m = first_m_ + row + r * step;
        if (out_.residual != nullptr && m < p_.m) residual[r] = four(out_.residual + m * out_.ldr + n_);
      }
    }
    float v[kRows * 4];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float a = factors_.a[row + r * step];
      v[4 * r] = value(a, scale_.x, sums[r].x);
      v[4 * r + 1] = value(a, scale_.y, sums[r].y);
      v[4 * r + 2] = value(a, scale_.z, sums[r].z);
      v[4 * r + 3] = value(a, scale_.w, sums[r].w);
      if (p_.bias == nullptr) continue;  // + 0 would change the sign of a zero
      v[4 * r] = __fadd_rn(v[4 * r], bias_.x);
      v[4 * r + 1] = __fadd_rn(v[4 * r + 1], bias_.y);
      v[4 * r + 2] = __fadd_rn(v[4 * r + 2], bias_.z);
      v[4 * r + 3] = __fadd_rn(v[4 * r + 3], bias_.w);
    }
    activate_all(p_.activation, v);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t m = first_m_ + row + r * step;
      if (m >= p_.m) continue;
      if constexpr (kInt8) {
        store_int8(m, v + 4 * r);
      } else {
        store(m, v + 4 * r, residual[r]);
      }
    }
  }

 private:
  __device__ static float value(float a, float scale, int sum) {
    return __fmul_rn(a, __fmul_rn(scale, __int2float_rn(sum)));
  }
  __device__ bool whole() const { return p_.vectors && n_ + 4 <= p_.n; }
  __device__ float4 four(const float* from) const {
    if (whole()) return *reinterpret_cast<const float4*>(from);
    return {from[0], n_ + 1 < p_.n ? from[1] : 0.0f, n_ + 2 < p_.n ? from[2] : 0.0f,
            n_ + 3 < p_.n ? from[3] : 0.0f};
  }

  __device__ void store(std::int64_t m, float* v, float4 residual) const {
    if (out_.residual != nullptr) {
      v[0] = __fmaf_rn(out_.alpha, v[0], residual.x);
      v[1] = __fmaf_rn(out_.alpha, v[1], residual.y);
      v[2] = __fmaf_rn(out_.alpha, v[2], residual.z);
      v[3] = __fmaf_rn(out_.alpha, v[3], residual.w);
    }
    float* y = out_.y + m * out_.ldy + n_;
    if (whole()) {
      *reinterpret_cast<float4*>(y) = {v[0], v[1], v[2], v[3]};
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n_ + i < p_.n) y[i] = v[i];
    }
  }

  __device__ void store_int8(std::int64_t m, float* v) const {
    const float factors[4] = {multiplier_.x, multiplier_.y, multiplier_.z, multiplier_.w};
    bool finite = true;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool number = is_finite(v[i]) || n_ + i >= p_.n;
      finite = finite && number;
      v[i] = number ? clamp_to_int8(__fmul_rn(v[i], factors[i])) : 0.0f;
    }
    if (!finite) report_row(not_finite_, m);
    const unsigned q = round_four(v[0], v[1], v[2], v[3]);
    std::int8_t* to = out_.q + m * out_.ldq + n_;
    if (whole()) {
      *reinterpret_cast<unsigned*>(to) = q;
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n_ + i < p_.n) to[i] = static_cast<std::int8_t>(q >> (8 * i) & 0xff);
    }
  }

  const Int8Problem& p_;
  const Output& out_;
  const Int8Factors<Tile>& factors_;
  std::int32_t* not_finite_;
  const std::int64_t first_m_, n_;
  const float4 scale_, bias_;
  float4 multiplier_{};
};

}  // namespace oasr::kernels::cuda

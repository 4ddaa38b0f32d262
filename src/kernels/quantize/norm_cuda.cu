#include "kernels/cuda/aligned.h"
#include "kernels/cuda/int8.cuh"
#include "kernels/norm/held.cuh"
#include "kernels/quantize/cuda.h"

namespace oasr::kernels {
namespace {

using Rows = cuda::NormRows;

__device__ float plus_scaled(float x, float scale, float addend) {
  return __fadd_rn(x, __fmul_rn(scale, addend));
}
__device__ float4 plus_scaled(float4 x, float scale, float4 a) {
  return {plus_scaled(x.x, scale, a.x), plus_scaled(x.y, scale, a.y), plus_scaled(x.z, scale, a.z),
          plus_scaled(x.w, scale, a.w)};
}
__device__ float greatest(float amax, float v) { return cuda::greater_magnitude(amax, v); }
__device__ float greatest(float amax, float4 v) {
  return greatest(greatest(greatest(greatest(amax, v.x), v.y), v.z), v.w);
}
// Where element (or group of four) i goes.
__device__ void put(std::int8_t* q, int i, float v, float factor) {
  q[i] = cuda::to_int8(__fmul_rn(v, factor));
}
__device__ void put(std::int8_t* q, int i, float4 v, float factor) {
  reinterpret_cast<unsigned*>(q)[i] = cuda::round_four(__fmul_rn(v.x, factor), __fmul_rn(v.y, factor),
                                                       __fmul_rn(v.z, factor), __fmul_rn(v.w, factor));
}

// Sums what is normalised (where there is an addend), keeps it, and stages it.
template <class V, bool kStaged>
__device__ void take_row(const LayerNormQuantArgs& args, std::int64_t row, int count, int lane, V* staged) {
  const V* x = reinterpret_cast<const V*>(args.x + row * args.ldx);
  if (args.addend == nullptr) {
    if constexpr (kStaged) cuda::stage_row(x, count, lane, staged);
    return;
  }
  struct Pair {
    V x, addend;
  };
  const V* addend = reinterpret_cast<const V*>(args.addend + row * args.ld_addend);
  V* sum = reinterpret_cast<V*>(args.sum + row * args.ld_sum);
  cuda::stream_row(
      count, lane,
      [&](int i) {
        return Pair{x[i], addend[i]};
      },
      [&](int i, Pair pair) {
        const V v = plus_scaled(pair.x, args.addend_scale, pair.addend);
        sum[i] = v;
        if constexpr (kStaged) staged[i] = v;
      });
}

// What the numbers of a row are multiplied by; not finite: they become zeros.
struct RowFactor {
  bool finite;
  float factor;

  template <class V>
  __device__ void put_one(std::int8_t* q, int i, const V& y) const {
    put(q, i, finite ? y : V{}, factor);
  }
};
// By the threads of a row, the first of which writes its scale or reports it.
__device__ RowFactor scale_row(const LayerNormQuantArgs& args, std::int64_t row, float amax, bool first,
                               std::int32_t* not_finite) {
  const bool finite = cuda::is_finite(amax);
  if (first) {
    args.scale[row] = finite ? __fdiv_rn(amax, kInt8Greatest) : __uint_as_float(0x7fc0'0000u);
    if (!finite) cuda::report_row(not_finite, row);
  }
  return {finite, finite ? __fdiv_rn(kInt8Greatest, amax) : 0.0f};
}

template <class Row>
__global__ void __launch_bounds__(Row::kThreads, Row::kBlocks)
    layer_norm_quant_held(LayerNormQuantArgs args, std::int32_t* not_finite) {
  __shared__ typename Row::Shared shared;
  Row row;
  cuda::in_order([&] { row.begin(args.gamma, args.beta); });
  const std::int64_t m = Row::number();
  if (m >= args.m) return;
  Row::load(args.x + m * args.ldx, row.at);
  if (args.addend != nullptr) {
    Row addend;
    Row::load(args.addend + m * args.ld_addend, addend.at);
#pragma unroll
    for (int j = 0; j < std::ssize(row.at); ++j) row.at[j] = plus_scaled(row.at[j], args.addend_scale, addend.at[j]);
    row.store(args.sum + m * args.ld_sum);
  }
  row.normalise(shared, args.gamma, args.beta, args.eps);
  float amax = kLeastAmax;
#pragma unroll
  for (const float4& value : row.at) amax = greatest(amax, value);
  const RowFactor factor =
      scale_row(args, m, __uint_as_float(cuda::warp_greatest(amax)), Row::lane() == 0, not_finite);
#pragma unroll
  for (int j = 0; j < std::ssize(row.at); ++j) factor.put_one(args.q + m * args.ldq, Row::lane() + 32 * j, row.at[j]);
}

template <bool kVector, bool kStaged>
__global__ void __launch_bounds__(Rows::kThreads, kStaged ? Rows::kBlocks - 1 : Rows::kBlocks / 2)
    layer_norm_quant_rows(LayerNormQuantArgs args, std::int32_t* not_finite) {
  using V = cuda::Floats4<kVector>;
  constexpr int kWarps = Rows::kLanes / 32;  // of a row
  extern __shared__ float4 shared4[];
  float* shared = reinterpret_cast<float*>(shared4);
  __shared__ Rows::Statistics statistics[Rows::kRows];
  __shared__ unsigned of_warp[Rows::kThreads / 32];
  const int r = threadIdx.x / Rows::kLanes, lane = threadIdx.x % Rows::kLanes;
  const std::int64_t first = std::int64_t{blockIdx.x} * Rows::kRows, row = first + r;
  const int count = static_cast<int>(args.d / (sizeof(V) / sizeof(float)));
  const bool present = row < args.m;
  cuda::NormFactors<V> factors(args.gamma, args.beta, count, lane);
  cuda::in_order([&] { factors.hold(); });
  V* staged = reinterpret_cast<V*>(shared + r * Rows::stride(args.d));
  if (present) take_row<V, kStaged>(args, row, count, lane, staged);
  __syncthreads();
  const float* values = args.addend == nullptr ? args.x : args.sum;
  const std::int64_t ld = args.addend == nullptr ? args.ldx : args.ld_sum;
  if (threadIdx.x < Rows::kRows * Rows::kPartials) {
    const int of = threadIdx.x / Rows::kPartials, partial = threadIdx.x % Rows::kPartials;
    const std::int64_t at = first + of < args.m ? first + of : args.m - 1;
    const float* row_values = kStaged ? shared + (at - first) * Rows::stride(args.d) : values + at * ld;
    const auto found = cuda::row_statistics(row_values, args.d, partial, args.eps);
    if (partial == 0) statistics[of] = found;
  }
  __syncthreads();
  const auto s = statistics[r];
  const V* unstaged = reinterpret_cast<const V*>(values + row * ld);
  const auto normal = [&](int i, const V& gamma, const V& beta) {
    return cuda::normalised(kStaged ? staged[i] : unstaged[i], s, gamma, beta);
  };
  float amax = kLeastAmax;
  if (present) {
    factors.each([&](int i, const V& gamma, const V& beta) {
      const V y = normal(i, gamma, beta);
      if constexpr (kStaged) staged[i] = y;
      amax = greatest(amax, y);
    });
  }
  const unsigned bits = cuda::warp_greatest(amax);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = bits;
  __syncthreads();
  if (!present) return;
  unsigned most = 0;
  for (int w = 0; w < kWarps; ++w) most = max(most, of_warp[r * kWarps + w]);
  const RowFactor factor = scale_row(args, row, __uint_as_float(most), lane == 0, not_finite);
  std::int8_t* q = args.q + row * args.ldq;
  if constexpr (kStaged) {
#pragma unroll 2
    for (int i = lane; i < count; i += Rows::kLanes) factor.put_one(q, i, staged[i]);
  } else {
    factors.each([&](int i, const V& gamma, const V& beta) { factor.put_one(q, i, normal(i, gamma, beta)); });
  }
}

template <bool kVector>
void run(Gpu& gpu, const LayerNormQuantArgs& args) {
  const cuda::Grid grid{.x = cuda::divide_up(args.m, Rows::kRows)};
  if (Rows::fits(args.d)) {
    cuda::launch(gpu, "layer_norm_quant", layer_norm_quant_rows<kVector, true>, grid, Rows::kThreads,
                 Rows::shared_bytes(args.d), args, gpu.not_finite_row());
  } else {
    cuda::launch(gpu, "layer_norm_quant", layer_norm_quant_rows<kVector, false>, grid, Rows::kThreads, 0,
                 args, gpu.not_finite_row());
  }
}

}  // namespace

void layer_norm_quant_cuda(Gpu& gpu, const LayerNormQuantArgs& args) {
  const bool vector = args.d % 4 == 0 && cuda::aligned(args.x, args.ldx) && cuda::aligned(args.gamma, 0) &&
                      cuda::aligned(args.beta, 0) && cuda::aligned(args.q, args.ldq, 4) &&
                      cuda::aligned(args.addend, args.ld_addend) && cuda::aligned(args.sum, args.ld_sum);
  const auto launch_held = [&]<class Row>(std::type_identity<Row>) {
    cuda::launch(gpu, "layer_norm_quant", layer_norm_quant_held<Row>, {.x = cuda::divide_up(args.m, Row::kRows)}, Row::kThreads,
                 0, args, gpu.not_finite_row());
  };
  if (vector && cuda::with_held_row(args.d, args.m, gpu.info(), launch_held)) return;
  return vector ? run<true>(gpu, args) : run<false>(gpu, args);
}

}  // namespace oasr::kernels

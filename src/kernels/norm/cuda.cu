#include "kernels/cuda/aligned.h"
#include "kernels/norm/cuda.h"
#include "kernels/norm/held.cuh"

namespace oasr::kernels {
namespace {

using Rows = cuda::NormRows;

__device__ float activated(Activation activation, float value) { return cuda::activate(activation, value); }
__device__ float4 activated(Activation activation, float4 value) {
  float values[4] = {value.x, value.y, value.z, value.w};
  cuda::activate_all(activation, values);
  return {values[0], values[1], values[2], values[3]};
}

// y may be x: a warp reads its row whole before it writes it.
template <class Row>
__global__ void __launch_bounds__(Row::kThreads, Row::kBlocks) layer_norm_held(LayerNormArgs args) {
  __shared__ typename Row::Shared shared;
  Row row;
  cuda::in_order([&] { row.begin(args.gamma, args.beta); });
  const std::int64_t m = Row::number();
  if (m >= args.m) return;
  Row::load(args.x + m * args.ldx, row.at);
  row.normalise(shared, args.gamma, args.beta, args.eps);
#pragma unroll
  for (float4& value : row.at) value = activated(args.activation, value);
  row.store(args.y + m * args.ldy);
}

// y may be x: a row is read whole (or, unstaged, element by element by its writer) before it is written.
template <bool kVector, bool kStaged>
__global__ void __launch_bounds__(Rows::kThreads, Rows::kBlocks) layer_norm_rows(LayerNormArgs args) {
  using V = cuda::Floats4<kVector>;
  extern __shared__ float4 shared4[];
  float* shared = reinterpret_cast<float*>(shared4);
  __shared__ Rows::Statistics statistics[Rows::kRows];
  const int r = threadIdx.x / Rows::kLanes, lane = threadIdx.x % Rows::kLanes;
  const std::int64_t first = std::int64_t{blockIdx.x} * Rows::kRows, row = first + r;
  const int count = static_cast<int>(args.d / (sizeof(V) / sizeof(float)));
  cuda::NormFactors<V> factors(args.gamma, args.beta, count, lane);
  cuda::in_order([&] { factors.hold(); });
  const V* x = reinterpret_cast<const V*>(args.x + row * args.ldx);
  V* staged = reinterpret_cast<V*>(shared + r * Rows::stride(args.d));
  if constexpr (kStaged) {
    if (row < args.m) cuda::stage_row(x, count, lane, staged);
    __syncthreads();
  }
  if (threadIdx.x < Rows::kRows * Rows::kPartials) {
    const int of = threadIdx.x / Rows::kPartials, partial = threadIdx.x % Rows::kPartials;
    const std::int64_t at = first + of < args.m ? first + of : args.m - 1;
    const float* values = kStaged ? shared + (at - first) * Rows::stride(args.d) : args.x + at * args.ldx;
    const auto found = cuda::row_statistics(values, args.d, partial, args.eps);
    if (partial == 0) statistics[of] = found;
  }
  __syncthreads();
  if (row >= args.m) return;
  const auto s = statistics[r];
  V* y = reinterpret_cast<V*>(args.y + row * args.ldy);
  factors.each([&](int i, const V& gamma, const V& beta) {
    y[i] = activated(args.activation, cuda::normalised(kStaged ? staged[i] : x[i], s, gamma, beta));
  });
}

template <bool kVector>
void run(Gpu& gpu, const LayerNormArgs& args) {
  const cuda::Grid grid{.x = cuda::divide_up(args.m, Rows::kRows)};
  if (Rows::fits(args.d)) {
    cuda::launch(gpu, "layer_norm", layer_norm_rows<kVector, true>, grid, Rows::kThreads,
                 Rows::shared_bytes(args.d), args);
  } else {
    cuda::launch(gpu, "layer_norm", layer_norm_rows<kVector, false>, grid, Rows::kThreads, 0, args);
  }
}

}  // namespace

void layer_norm_cuda(Gpu& gpu, const LayerNormArgs& args) {
  const bool vector = args.d % 4 == 0 && cuda::aligned(args.x, args.ldx) && cuda::aligned(args.y, args.ldy) &&
                      cuda::aligned(args.gamma, 0) && cuda::aligned(args.beta, 0);
  const auto launch_held = [&]<class Row>(std::type_identity<Row>) {
    cuda::launch(gpu, "layer_norm", layer_norm_held<Row>, {.x = cuda::divide_up(args.m, Row::kRows)}, Row::kThreads, 0, args);
  };
  if (vector && cuda::with_held_row(args.d, args.m, gpu.info(), launch_held)) return;
  return vector ? run<true>(gpu, args) : run<false>(gpu, args);
}

}  // namespace oasr::kernels

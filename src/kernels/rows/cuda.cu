#include <algorithm>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/widen.cuh"
#include "kernels/rows/cuda.h"

namespace oasr::kernels {
namespace {

constexpr unsigned kThreads = 128;  // of a block that works on one row

// Numbers of rows, among the parameters of a kernel or in memory of the device (Gpu::pass). Those behind the last are
// zeros: sections are compared by the bytes of their arguments.
template <int kCount>
struct Numbers {
  Numbers(std::span<const std::int32_t> numbers, std::size_t first)
      : count(static_cast<int>(std::min<std::size_t>(kCount, numbers.size() - first))) {
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(first), count, at);
  }
  Numbers() = default;
  int count = 0;
  std::int32_t at[kCount] = {};
};
constexpr int kTokens = 64, kGathered = 512;

// Of a step of a decoder, other tokens than in the step before.
struct Tokens {
  Numbers<kTokens> tokens, positions;  // no positions: none are added
};

struct EmbedParameters {
  const Tokens* passed;
  std::int64_t d;
  float scale;
  const float* position_table;
  std::int64_t ldp;
  float* y;
  std::int64_t ldy;
};

template <class T>
__global__ void embed(EmbedParameters p, const T* table) {
  cuda::in_order();
  const std::int64_t token = p.passed->tokens.at[blockIdx.x];
  const T* from =
      table + token / PackedWeight::kPanel * p.d * PackedWeight::kPanel + token % PackedWeight::kPanel;
  float* to = p.y + blockIdx.x * p.ldy;
  const float* position =
      p.passed->positions.count > 0 ? p.position_table + p.passed->positions.at[blockIdx.x] * p.ldp : nullptr;
  for (std::int64_t i = threadIdx.x; i < p.d; i += kThreads) {
    const float value = __fmul_rn(cuda::widen(from[i * PackedWeight::kPanel]), p.scale);
    to[i] = position != nullptr ? __fadd_rn(value, position[i]) : value;
  }
}

__global__ void gather(Numbers<kGathered> rows, ConstMatrix x, Matrix y) {
  cuda::in_order();
  const std::int32_t row = rows.at[blockIdx.x];
  float* to = y.data + blockIdx.x * y.stride;
  for (std::int64_t i = threadIdx.x; i < x.columns; i += kThreads) {
    to[i] = row == kZeroRow ? 0.0f : x.data[row * x.stride + i];
  }
}

__global__ void shift_scale(ShiftScaleRowsArgs args) {
  cuda::in_order();
  const auto [m, d] = cuda::element();
  if (m >= args.x.rows || d >= args.x.columns) return;
  float value = args.x.data[m * args.x.stride + d];
  if (args.shift != nullptr) value = __fadd_rn(value, args.shift[d]);
  args.y.data[m * args.y.stride + d] = __fmul_rn(value, args.scale != nullptr ? args.scale[d] : args.factor);
}

// Tiles of 32 × 32 by 32 × 8 threads; both sides of the memory are read and written along rows.
__global__ void transpose(const float* x, Matrix y) {
  cuda::in_order();
  __shared__ float tile[32][33];
  const std::int64_t m0 = std::int64_t{blockIdx.x} * 32, d0 = std::int64_t{blockIdx.y} * 32;
  const int across = static_cast<int>(threadIdx.x % 32), down = static_cast<int>(threadIdx.x / 32);
  for (int i = down; i < 32; i += 8) {
    if (m0 + across < y.rows && d0 + i < y.columns) tile[i][across] = x[(d0 + i) * y.rows + m0 + across];
  }
  __syncthreads();
  for (int i = down; i < 32; i += 8) {
    if (m0 + i < y.rows && d0 + across < y.columns)
      y.data[(m0 + i) * y.stride + d0 + across] = tile[across][i];
  }
}

constexpr std::int64_t kLooked = 4096;  // columns that a block looks at

__global__ void look(ConstMatrix x, std::int32_t* lowest) {
  cuda::in_order();
  const std::int64_t row = blockIdx.x, first = blockIdx.y * kLooked;
  const std::int64_t end = first + kLooked < x.columns ? first + kLooked : x.columns;
  bool bad = false;
  for (std::int64_t i = first + threadIdx.x; i < end; i += kThreads) {
    bad = bad || !cuda::is_finite(x.data[row * x.stride + i]);
  }
  if (__syncthreads_or(bad) && threadIdx.x == 0) atomicMin(lowest, static_cast<std::int32_t>(row));
}

}  // namespace

void embed_rows_cuda(Gpu& gpu, const EmbedRowsArgs& args) {
  const PackedWeight& table = *args.table;
  for (std::size_t first = 0; first < args.tokens.size(); first += kTokens) {
    Tokens tokens{.tokens = {args.tokens, first}, .positions = {}};
    if (!args.positions.empty()) tokens.positions = {args.positions, first};
    EmbedParameters p{.passed = nullptr,
                      .d = table.k(),
                      .scale = args.scale,
                      .position_table = args.position_table.data,
                      .ldp = args.position_table.stride,
                      .y = args.y.row(static_cast<std::int64_t>(first)),
                      .ldy = args.y.stride};
    cuda::with_storage(table.storage(), table.data(), [&](const auto* data) {
      using T = std::remove_cvref_t<decltype(*data)>;
      p.passed = static_cast<const Tokens*>(gpu.pass(&tokens, sizeof tokens));
      cuda::launch(gpu, "embed_rows", embed<T>, {.x = tokens.tokens.count}, kThreads, 0, p, data);
    });
  }
}

void gather_rows_cuda(Gpu& gpu, ConstMatrix x, std::span<const std::int32_t> rows, Matrix y) {
  for (std::size_t first = 0; first < rows.size(); first += kGathered) {
    const Numbers<kGathered> numbers(rows, first);
    cuda::launch(gpu, "gather_rows", gather, {.x = numbers.count}, kThreads, 0, numbers, x,
                 y.row_range(static_cast<std::int64_t>(first), numbers.count));
  }
}

void shift_scale_rows_cuda(Gpu& gpu, const ShiftScaleRowsArgs& args) {
  cuda::launch(gpu, "shift_scale_rows", shift_scale, cuda::elements(args.x.rows, args.x.columns),
               cuda::kElementThreads, 0, args);
}

void transpose_in_cuda(Gpu& gpu, std::span<const float> x, Matrix y) {
  if (x.empty()) return;
  auto* scratch = reinterpret_cast<float*>(gpu.scratch(x.size_bytes()));
  gpu.upload(scratch, x.data(), x.size_bytes());
  cuda::launch(gpu, "transpose_in", transpose,
               {.x = cuda::divide_up(y.rows, 32), .y = cuda::divide_up(y.columns, 32)}, 256, 0, scratch, y);
}

void to_host_cuda(Gpu& gpu, ConstMatrix x, std::span<float> out) {
  if (out.empty()) return;
  const void* from = x.data;
  if (x.stride != x.columns && x.rows > 1) {
    const std::size_t row = static_cast<std::size_t>(x.columns) * sizeof(float);
    std::byte* packed = gpu.scratch(out.size_bytes());
    gpu.copy(packed, row, x.data, static_cast<std::size_t>(x.stride) * sizeof(float), row,
             static_cast<std::size_t>(x.rows));
    from = packed;
  }
  gpu.download(out.data(), from, out.size_bytes());
}

void first_not_finite_cuda(Gpu& gpu, ConstMatrix x) {
  cuda::launch(gpu, "first_not_finite", look, {.x = x.rows, .y = cuda::divide_up(x.columns, kLooked)},
               kThreads, 0, x, gpu.not_finite_row());
}

}  // namespace oasr::kernels

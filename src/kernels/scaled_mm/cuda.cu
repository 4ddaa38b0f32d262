#include <type_traits>

#include "base/check.h"
#include "kernels/cuda/aligned.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/quantize/cuda.h"
#include "kernels/scaled_mm/cublaslt.h"
#include "kernels/scaled_mm/cuda.h"
#include "kernels/scaled_mm/product.cuh"

namespace oasr::kernels {
namespace {

using cuda::aligned;
using cuda::divide_up;

// Rows, channels, warps (down, across, along k), bytes of k, stages, blocks of a multiprocessor. Those of few
// rows read weights as fast as they come: all k of a channel is one block's, many slices ahead. Warps that share the k of
// a slice also make the chain of sums of a long k shorter.
using M16N16 = cuda::Int8Tile<16, 16, 1, 1, 8, 512, 6, 1>;
using M16N32 = cuda::Int8Tile<16, 32, 1, 1, 8, 512, 4, 1>;
using M32N32 = cuda::Int8Tile<32, 32, 2, 1, 4, 256, 6, 1>;
using M64N32 = cuda::Int8Tile<64, 32, 2, 1, 4, 256, 6, 1>;
using M64N64 = cuda::Int8Tile<64, 64, 2, 2, 2, 256, 3, 1>;
using M128N128 = cuda::Int8Tile<128, 128, 2, 2, 1, 128, 3, 2>;
using M128N256 = cuda::Int8Tile<128, 256, 2, 4, 1, 128, 3, 1>;
using WideM128N128 = cuda::Int8Tile<128, 128, 8, 1, 1, 128, 3, 2, cuda::MatrixUnit::wgmma, false>;
using WideM128N256 = cuda::Int8Tile<128, 256, 8, 1, 1, 128, 4, 1, cuda::MatrixUnit::wgmma>;

// Whether the card's blocks can have the shared memory of a tile.
template <class Tile>
bool fits(const GpuInfo& gpu) {
  return Tile::kShared + sizeof(cuda::Int8Factors<Tile>) <= gpu.shared_bytes;
}

// Calls f with the type of a tile.
template <class F>
auto with_tile(ScaledMMTile tile, const F& f) {
  switch (tile) {
    case ScaledMMTile::m16n16: return f(std::type_identity<M16N16>());
    case ScaledMMTile::m16n32: return f(std::type_identity<M16N32>());
    case ScaledMMTile::m32n32: return f(std::type_identity<M32N32>());
    case ScaledMMTile::m64n32: return f(std::type_identity<M64N32>());
    case ScaledMMTile::m64n64: return f(std::type_identity<M64N64>());
    case ScaledMMTile::m128n128: return f(std::type_identity<M128N128>());
    case ScaledMMTile::m128n256: return f(std::type_identity<M128N256>());
    case ScaledMMTile::wide_m128n128: return f(std::type_identity<WideM128N128>());
    case ScaledMMTile::wide_m128n256: return f(std::type_identity<WideM128N256>());
  }
  CHECK(false, "a tile that is none");
}

template <class Tile, class Output>
void run(Gpu& gpu, const cuda::Int8Problem& problem, const Output& out) {
  const std::int64_t tiles_m = divide_up(problem.m, Tile::kM), tiles_n = divide_up(problem.n, Tile::kN);
  cuda::launch(gpu, "scaled_mm", cuda::int8_product<Tile, Output>, {.x = tiles_m * tiles_n}, Tile::kThreads,
               Tile::kShared, problem, out, tiles_m, tiles_n, gpu.not_finite_row());
}

// wgmma is an instruction of sm_90a alone.
#ifdef OASR_CUDA_SM90A
constexpr bool kCompiledWide = true;
#else
constexpr bool kCompiledWide = false;
#endif
template <class Output>
void run(Gpu& gpu, const cuda::Int8Problem& problem, const Output& out, ScaledMMTile tile) {
  if (!scaled_mm_runs(tile, gpu.info())) tile = tile == ScaledMMTile::m64n32 ? ScaledMMTile::m64n64 : ScaledMMTile::m128n128;
  with_tile(tile, [&]<class Tile>(std::type_identity<Tile>) { run<Tile>(gpu, problem, out); });
}

// Rows that cp.async can not read, copied to rows that it can, with zeros after k.
__global__ void align_rows(const std::int8_t* from, std::int64_t ld, std::int64_t k, std::int8_t* to,
                           std::int64_t ldt) {
  cuda::in_order();
  for (std::int64_t i = threadIdx.x; i < ldt; i += blockDim.x)
    to[blockIdx.x * ldt + i] = i < k ? from[blockIdx.x * ld + i] : std::int8_t{0};
}

// Zeros after k in rows that are read in whole chunks. A thread has a byte.
__global__ void zero_ends(std::int8_t* rows, std::int64_t m, std::int64_t k, std::int64_t ld) {
  cuda::in_order();
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, row = i / (ld - k);
  if (row < m) rows[row * ld + k + i % (ld - k)] = 0;
}

std::int64_t padded(std::int64_t k) { return divide_up(k, 16) * 16; }

// In front of what writes the first k of rows in scratch memory. No layer of a published model has such a k.
void clear_ends(Gpu& gpu, std::int8_t* rows, std::int64_t m, std::int64_t k, std::int64_t ld) {
  if (ld == k) return;
  constexpr unsigned kThreads = 128;
  cuda::launch(gpu, "scaled_mm", zero_ends, {.x = divide_up(m * (ld - k), kThreads)}, kThreads, 0, rows, m, k, ld);
}

template <class Output>
void multiply(Gpu& gpu, ScaledMMArgs args, const Output& out, ScaledMMTile tile) {
  const PackedInt8Weight& weight = *args.weight;
  const std::int64_t k = weight.k();
  const bool whole = k % 16 == 0 || args.lda >= padded(k);  // the chunk at the end of every row is that row's
  if (!aligned(args.a, args.lda) || !whole) {
    const std::int64_t ld = padded(k);
    auto* rows = reinterpret_cast<std::int8_t*>(gpu.scratch(static_cast<std::size_t>(args.m * ld)));
    cuda::launch(gpu, "scaled_mm", align_rows, {.x = args.m}, 128, 0, args.a, args.lda, k, rows, ld);
    args.a = rows;
    args.lda = ld;
  }
  run(gpu, cuda::int8_problem(args, out), out, tile);
}

template <class Output>
void multiply(Gpu& gpu, const ScaledMMArgs& args, const Output& out, ScaledMMBackend backend) {
  CHECK(runs_on(backend, true), "a backend of CPUs on a GPU");
  if (args.m == 0) return;
  if (backend == ScaledMMBackend::cublaslt) return scaled_mm_cublaslt(gpu, args, out);
  multiply(gpu, args, out, scaled_mm_tile(args.m, args.weight->n(), args.weight->k(), gpu.info(), backend));
}

template <class Output>
void multiply(Gpu& gpu, const DynamicScaledMMArgs& args, const Output& out, ScaledMMBackend backend) {
  if (args.m == 0) return;
  const std::int64_t k = args.weight->k(), ld = padded(k), bytes = args.m * ld;
  std::byte* scratch =
      gpu.scratch(static_cast<std::size_t>(bytes) + static_cast<std::size_t>(args.m) * sizeof(float));
  auto* q = reinterpret_cast<std::int8_t*>(scratch);
  auto* scale = reinterpret_cast<float*>(scratch + bytes);
  clear_ends(gpu, q, args.m, k, ld);
  quantize_per_token_cuda(gpu, {.x = args.x,
                                .ldx = args.ldx,
                                .m = args.m,
                                .k = k,
                                .smooth_inv = args.smooth_inv,
                                .q = q,
                                .ldq = ld,
                                .scale = scale});
  multiply(gpu,
           ScaledMMArgs{.a = q,
                        .lda = ld,
                        .a_scale = ActivationScale::per_token(scale),
                        .m = args.m,
                        .weight = args.weight,
                        .bias = args.bias,
                        .activation = args.activation},
           out, backend);
}

template <class Output>
void multiply(Gpu& gpu, const StaticScaledMMArgs& args, const Output& out, ScaledMMBackend backend) {
  if (args.m == 0) return;
  const std::int64_t k = args.weight->k(), ld = padded(k);
  auto* q = reinterpret_cast<std::int8_t*>(gpu.scratch(static_cast<std::size_t>(args.m * ld)));
  clear_ends(gpu, q, args.m, k, ld);
  quantize_static_cuda(
      gpu,
      {.x = args.x, .ldx = args.ldx, .m = args.m, .k = k, .multiplier = args.multiplier, .q = q, .ldq = ld});
  multiply(gpu,
           ScaledMMArgs{.a = q,
                        .lda = ld,
                        .a_scale = ActivationScale::per_tensor(args.input_scale),
                        .m = args.m,
                        .weight = args.weight,
                        .bias = args.bias,
                        .activation = args.activation},
           out, backend);
}

}  // namespace

bool scaled_mm_has_wgmma(const GpuInfo& gpu) { return kCompiledWide && gpu.major == 9 && gpu.minor == 0; }

bool scaled_mm_runs(ScaledMMTile tile, const GpuInfo& gpu) {
  return with_tile(tile, [&]<class Tile>(std::type_identity<Tile>) {
    return fits<Tile>(gpu) && (!Tile::kWide || scaled_mm_has_wgmma(gpu));
  });
}

ScaledMMTile scaled_mm_tile(std::int64_t m, std::int64_t n, std::int64_t k, const GpuInfo& gpu,
                            ScaledMMBackend backend) {
  const auto blocks = [&](std::int64_t tile_m, std::int64_t tile_n) {
    return divide_up(m, tile_m) * divide_up(n, tile_n);
  };
  // The smallest whose blocks all run at once: a block takes the longer the more it has to read.
  if (m <= 16 || blocks(16, 16) <= gpu.multiprocessors) return ScaledMMTile::m16n16;
  if (blocks(16, 32) <= gpu.multiprocessors) return ScaledMMTile::m16n32;
  if (m <= 32 || blocks(32, 32) <= gpu.multiprocessors) return ScaledMMTile::m32n32;
  const bool few = m <= 64 || blocks(64, 32) <= gpu.multiprocessors;
  if (few && scaled_mm_runs(ScaledMMTile::m64n32, gpu)) return ScaledMMTile::m64n32;
  if (few || blocks(128, 128) < gpu.multiprocessors) return ScaledMMTile::m64n64;
  // The widest reads least, but nothing runs beside its epilogue, which must be worth it.
  const bool widest = k >= 2048 && blocks(128, 256) * 10 >= 9 * gpu.multiprocessors;
  if (backend == ScaledMMBackend::mma_sync || !scaled_mm_has_wgmma(gpu)) {
    return widest && scaled_mm_runs(ScaledMMTile::m128n256, gpu) ? ScaledMMTile::m128n256 : ScaledMMTile::m128n128;
  }
  return widest ? ScaledMMTile::wide_m128n256 : ScaledMMTile::wide_m128n128;
}

void scaled_mm_cuda(Gpu& gpu, const ScaledMMArgs& args, const FloatOutput& out, ScaledMMTile tile) {
  multiply(gpu, args, out, tile);
}
void scaled_mm_cuda(Gpu& gpu, const ScaledMMArgs& args, const Int8Output& out, ScaledMMTile tile) {
  multiply(gpu, args, out, tile);
}
void scaled_mm_cuda(Gpu& gpu, const ScaledMMArgs& args, const FloatOutput& out, ScaledMMBackend backend) {
  multiply(gpu, args, out, backend);
}
void scaled_mm_cuda(Gpu& gpu, const ScaledMMArgs& args, const Int8Output& out, ScaledMMBackend backend) {
  multiply(gpu, args, out, backend);
}
void scaled_mm_cuda(Gpu& gpu, const DynamicScaledMMArgs& args, const FloatOutput& out,
                    ScaledMMBackend backend) {
  multiply(gpu, args, out, backend);
}
void scaled_mm_cuda(Gpu& gpu, const DynamicScaledMMArgs& args, const Int8Output& out,
                    ScaledMMBackend backend) {
  multiply(gpu, args, out, backend);
}
void scaled_mm_cuda(Gpu& gpu, const StaticScaledMMArgs& args, const FloatOutput& out,
                    ScaledMMBackend backend) {
  multiply(gpu, args, out, backend);
}
void scaled_mm_cuda(Gpu& gpu, const StaticScaledMMArgs& args, const Int8Output& out,
                    ScaledMMBackend backend) {
  multiply(gpu, args, out, backend);
}

}  // namespace oasr::kernels

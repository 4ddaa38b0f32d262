#include <algorithm>
#include <iterator>
#include <type_traits>

#include "device/gpu_timing.h"
#include "device/memory.h"
#include "kernels/cuda/async.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mixed.cuh"
#include "kernels/peak/cuda.h"
#include "kernels/scaled_mm/wide.cuh"

namespace oasr::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 2;  // of a multiprocessor, where one is not enough

// --- fma -----------------------------------------------------------------------------------------------------------

constexpr int kFmaChains = 8, kFmaThreads = 1024;

__global__ void __launch_bounds__(kFmaThreads) fma_loop(int rounds, float a, float b, float* out) {
  cuda::in_order();
  float sums[kFmaChains];
  for (int c = 0; c < kFmaChains; ++c) sums[c] = static_cast<float>(threadIdx.x + c);
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int c = 0; c < kFmaChains; ++c) sums[c] = __fmaf_rn(sums[c], a, b);
  }
  float sum = 0;
  for (int c = 0; c < kFmaChains; ++c) sum += sums[c];
  if (sum == -1.0f) *out = sum;  // never: every chain is needed
}

// --- mma.sync ------------------------------------------------------------------------------------------------------

constexpr int kMmaChains = 8;

// One instruction of a warp: sum += a · b with zeros for a and b that the compiler does not know.
template <GpuPeak kPeak>
struct Mma;
template <>
struct Mma<GpuPeak::int8> {
  static constexpr double kOperations = 2.0 * 16 * 8 * 32;
  using Sum = int;
  __device__ static void run(int (&s)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
template <>
struct Mma<GpuPeak::fp8_e4m3> {
  static constexpr double kOperations = 2.0 * 16 * 8 * 32;
  using Sum = float;
  __device__ static void run(float (&s)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 890
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
  }
};
template <class E>
struct Mma16 {
  static constexpr double kOperations = 2.0 * 16 * 8 * 16;
  using Sum = float;
  __device__ static void run(float (&s)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    cuda::multiply_add<E>(s, a, b0, b1);
  }
};
template <>
struct Mma<GpuPeak::float16> : Mma16<Half> {};
template <>
struct Mma<GpuPeak::bfloat16> : Mma16<BFloat16> {};

template <GpuPeak kPeak>
__global__ void __launch_bounds__(kThreads) mma_loop(int rounds, unsigned zero, float* out) {
  cuda::in_order();
  using Unit = Mma<kPeak>;
  typename Unit::Sum sums[kMmaChains][4] = {};
  const unsigned a[4] = {zero, zero, zero, zero};
  for (int i = 0; i < rounds; ++i) {
#pragma unroll
    for (int c = 0; c < kMmaChains; ++c) Unit::run(sums[c], a, zero, zero);
  }
  typename Unit::Sum sum = 0;
  for (int c = 0; c < kMmaChains; ++c) sum += sums[c][0] + sums[c][1] + sums[c][2] + sums[c][3];
  if (sum != 0) *out = 1.0f;  // never
}

// --- wgmma ---------------------------------------------------------------------------------------------------------

// 64 rows by 256 columns of a warp group, operands of 128 bytes a row: four instructions deep.
constexpr int kWideRows = 64, kWideColumns = 256, kWideDepth = 128, kWideSteps = kWideDepth / 32;

template <GpuPeak kPeak>
constexpr int kElementBytes = kPeak == GpuPeak::int8 || kPeak == GpuPeak::fp8_e4m3 ? 1 : 2;

#define OASR_FOUR(j) "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])
#define OASR_WIDE(shape_and_types, rest)                                                                             \
  asm volatile(                                                                                                      \
      "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned." shape_and_types " {"                      \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                       \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                             \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                             \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "                             \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                             \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "                             \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "                 \
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "            \
      "%128, %129, p, 1, 1" rest "; }"                                                                               \
      : OASR_FOUR(0), OASR_FOUR(1), OASR_FOUR(2), OASR_FOUR(3), OASR_FOUR(4), OASR_FOUR(5), OASR_FOUR(6),            \
        OASR_FOUR(7), OASR_FOUR(8), OASR_FOUR(9), OASR_FOUR(10), OASR_FOUR(11), OASR_FOUR(12), OASR_FOUR(13),        \
        OASR_FOUR(14), OASR_FOUR(15), OASR_FOUR(16), OASR_FOUR(17), OASR_FOUR(18), OASR_FOUR(19), OASR_FOUR(20),     \
        OASR_FOUR(21), OASR_FOUR(22), OASR_FOUR(23), OASR_FOUR(24), OASR_FOUR(25), OASR_FOUR(26), OASR_FOUR(27),     \
        OASR_FOUR(28), OASR_FOUR(29), OASR_FOUR(30), OASR_FOUR(31)                                                   \
      : "l"(a), "l"(w))

// sums += a · wᵀ, 32 bytes of a row deep.
template <GpuPeak kPeak, class Sum>
__device__ void multiply_zeros(Sum (&sums)[32][4], std::uint64_t a, std::uint64_t w) {
  if constexpr (kPeak == GpuPeak::int8) {
    cuda::multiply_wide<kWideColumns>(sums, a, w);
  } else {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    if constexpr (kPeak == GpuPeak::fp8_e4m3) OASR_WIDE("m64n256k32.f32.e4m3.e4m3", "");
    if constexpr (kPeak == GpuPeak::float16) OASR_WIDE("m64n256k16.f32.f16.f16", ", 0, 0");
    if constexpr (kPeak == GpuPeak::bfloat16) OASR_WIDE("m64n256k16.f32.bf16.bf16", ", 0, 0");
#endif
  }
}
#undef OASR_WIDE
#undef OASR_FOUR

template <GpuPeak kPeak>
__global__ void __launch_bounds__(kThreads) wide_loop(int rounds, float* out) {
  cuda::in_order();
  using Sum = std::conditional_t<kPeak == GpuPeak::int8, int, float>;
  __shared__ alignas(1024) unsigned zeros[(kWideRows + kWideColumns) * kWideDepth / sizeof(unsigned)];
  for (unsigned i = threadIdx.x; i < std::size(zeros); i += kThreads) zeros[i] = 0;
  cuda::wide_fence_copies();
  __syncthreads();
  const std::uint64_t a = cuda::wide_operand<kWideDepth>(cuda::shared_address(zeros));
  const std::uint64_t w = cuda::wide_operand<kWideDepth>(cuda::shared_address(zeros) + kWideRows * kWideDepth);
  Sum sums[kWideColumns / 8][4] = {};
  for (int i = 0; i < rounds; ++i) {
    cuda::wide_begin();
#pragma unroll
    for (int step = 0; step < kWideSteps; ++step) multiply_zeros<kPeak>(sums, a + 2 * step, w + 2 * step);
    cuda::wide_commit();
    cuda::wide_wait<1>();
  }
  cuda::wide_wait<0>();
  Sum sum = 0;
  for (auto& four : sums) sum += four[0] + four[1] + four[2] + four[3];
  if (sum != 0) *out = 1.0f;  // never
}

// -------------------------------------------------------------------------------------------------------------------

#ifdef OASR_CUDA_SM90A
constexpr bool kCompiledWide = true;
#else
constexpr bool kCompiledWide = false;
#endif

// The best rate of `put_in(rounds)`, which does `operations` a round.
template <class PutIn>
double best_gops(Gpu& gpu, double operations, const PutIn& put_in) {
  constexpr double kMicroseconds = 1000;  // of a run, about
  constexpr int kRuns = 12;
  int rounds = 64;
  put_in(rounds);
  double us = GpuReplay(gpu, 1, [&](int) { put_in(rounds); }).run();
  rounds = static_cast<int>(std::clamp(rounds * kMicroseconds / std::max(us, 1.0), 64.0, 1e6));
  GpuReplay replay(gpu, 1, [&](int) { put_in(rounds); });
  us = replay.run();
  for (int i = 0; i < kRuns; ++i) us = std::min(us, replay.run());
  return operations * rounds / us * 1e-3;
}

template <GpuPeak kPeak>
double mma_gops(Gpu& gpu, float* out) {
  if (kPeak == GpuPeak::fp8_e4m3 && gpu.info().major * 10 + gpu.info().minor < 89) return 0;
  const std::int64_t blocks = std::int64_t{kBlocks} * gpu.info().multiprocessors;
  return best_gops(gpu, Mma<kPeak>::kOperations * kMmaChains * (kThreads / 32) * static_cast<double>(blocks),
                   [&](int rounds) {
                     cuda::launch(gpu, "peak", mma_loop<kPeak>, {.x = blocks}, kThreads, 0, rounds, 0u, out);
                   });
}

template <GpuPeak kPeak>
double wide_gops(Gpu& gpu, float* out) {
  if (!kCompiledWide || gpu.info().major != 9 || gpu.info().minor != 0) return 0;
  const std::int64_t blocks = gpu.info().multiprocessors;
  constexpr int kGroups = kThreads / 128;
  constexpr double kOperations = 2.0 * kWideRows * kWideColumns * kWideDepth / kElementBytes<kPeak> * kGroups;
  return best_gops(gpu, kOperations * static_cast<double>(blocks), [&](int rounds) {
    cuda::launch(gpu, "peak", wide_loop<kPeak>, {.x = blocks}, kThreads, 0, rounds, out);
  });
}

template <GpuPeak kPeak>
double matrix_gops(Gpu& gpu, GpuPeakUnit unit, float* out) {
  if (unit == GpuPeakUnit::mma_sync) return mma_gops<kPeak>(gpu, out);
  return unit == GpuPeakUnit::wgmma ? wide_gops<kPeak>(gpu, out) : 0;
}

double fma_gops(Gpu& gpu, float* out) {
  const std::int64_t blocks = std::int64_t{kBlocks} * gpu.info().multiprocessors;
  return best_gops(gpu, 2.0 * kFmaChains * kFmaThreads * static_cast<double>(blocks), [&](int rounds) {
    cuda::launch(gpu, "peak", fma_loop, {.x = blocks}, kFmaThreads, 0, rounds, 0.999f, 1e-3f, out);
  });
}

}  // namespace

double gpu_peak_gops(Gpu& gpu, GpuPeak peak, GpuPeakUnit unit) {
  Memory memory(&gpu, sizeof(float));
  auto* out = reinterpret_cast<float*>(memory.data());
  switch (peak) {
    case GpuPeak::int8: return matrix_gops<GpuPeak::int8>(gpu, unit, out);
    case GpuPeak::fp8_e4m3: return matrix_gops<GpuPeak::fp8_e4m3>(gpu, unit, out);
    case GpuPeak::float16: return matrix_gops<GpuPeak::float16>(gpu, unit, out);
    case GpuPeak::bfloat16: return matrix_gops<GpuPeak::bfloat16>(gpu, unit, out);
    case GpuPeak::float32: return unit == GpuPeakUnit::fma ? fma_gops(gpu, out) : 0;
  }
  return 0;
}

double gpu_peak_gops(Gpu& gpu, GpuPeak peak) {
  double best = 0;
  for (const GpuPeakUnit unit : {GpuPeakUnit::fma, GpuPeakUnit::mma_sync, GpuPeakUnit::wgmma}) {
    best = std::max(best, gpu_peak_gops(gpu, peak, unit));
  }
  return best;
}

}  // namespace oasr::kernels

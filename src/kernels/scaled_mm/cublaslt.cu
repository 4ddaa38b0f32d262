#include <algorithm>

#include "base/check.h"
#include "device/memory.h"
#include "kernels/cuda/aligned.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/scaled_mm/cublaslt.h"
#include "kernels/scaled_mm/product.cuh"

namespace oasr::kernels {
namespace {

using cuda::aligned;
using cuda::divide_up;

constexpr std::size_t kRows = 16 << 20;  // bytes of rows that are copied for the library

// What a queue keeps.
struct Products {
  std::unique_ptr<CublasLt> library;
  Memory sums, rows;
};

// The part of an output that a block of threads writes.
struct SumsTile {
  static constexpr int kM = 16, kN = 128, kThreads = 128;
};

// sums [count, n]: of rows base, base + 1, … of the output.
template <class Output>
__global__ void __launch_bounds__(SumsTile::kThreads)
    int8_epilogue(const __grid_constant__ cuda::Int8Problem p, const __grid_constant__ Output out,
                  const std::int32_t* sums, std::int64_t base, std::int64_t count, std::int32_t* not_finite) {
  cuda::in_order();
  __shared__ __align__(16) cuda::Int8Factors<SumsTile> factors;
  const std::int64_t first = std::int64_t{blockIdx.x} * SumsTile::kM,
                     first_n = std::int64_t{blockIdx.y} * SumsTile::kN;
  factors.load(p, out, base + first, first_n);
  __syncthreads();
  constexpr int kGroups = SumsTile::kN / 4, kStep = SumsTile::kThreads / kGroups;
  const int column = static_cast<int>(threadIdx.x) % kGroups * 4;
  if (first_n + column >= p.n) return;  // n is a multiple of 8
  const cuda::Int8Epilogue<SumsTile, Output> epilogue(p, out, factors, not_finite, base + first, first_n,
                                                      column);
#pragma unroll 1
  for (int row = static_cast<int>(threadIdx.x) / kGroups; row < SumsTile::kM && first + row < count;
       row += kStep) {
    const int4 four[1] = {*reinterpret_cast<const int4*>(sums + (first + row) * p.n + first_n + column)};
    epilogue.write(row, 0, four);
  }
}

// Rows of k, the first `count` of them copied, then zeros. A block has a row.
__global__ void fill_rows(const std::int8_t* from, std::int64_t ld, std::int64_t k, std::int64_t count,
                          std::int8_t* to) {
  cuda::in_order();
  const std::int64_t row = blockIdx.x;
  for (std::int64_t i = threadIdx.x; i < k; i += blockDim.x) {
    to[row * k + i] = row < count ? from[row * ld + i] : std::int8_t{0};
  }
}

std::shared_ptr<void>& kept(Gpu& gpu) { return gpu.attached("scaled_mm cublaslt"); }

// Another queue of the card may be the first to use it (a clone of a recogniser has its own).
Products& products_of(Gpu& gpu) {
  const Status opened = open_cublaslt(gpu);
  if (!opened) throw GpuError(opened.error().message());
  return *static_cast<Products*>(kept(gpu).get());
}

template <class Output>
void run(Gpu& gpu, const ScaledMMArgs& args, const Output& out) {
  Products& with = products_of(gpu);
  const PackedInt8Weight& weight = *args.weight;
  const std::int64_t n = weight.n(), k = weight.k();
  CHECK(cublaslt_takes(n, k), "a weight that cuBLASLt takes");
  const cuda::Int8Problem problem = cuda::int8_problem(args, out);
  auto* sums = reinterpret_cast<std::int32_t*>(with.sums.data());
  auto* rows = reinterpret_cast<std::int8_t*>(with.rows.data());
  const bool as_they_are = aligned(args.a, args.lda) && args.lda >= k;
  const auto fit = [](std::size_t memory, std::int64_t row_bytes) {
    return static_cast<std::int64_t>(memory) / row_bytes;
  };
  const std::int64_t sum_rows = fit(kCublasLtSums, n * static_cast<std::int64_t>(sizeof(std::int32_t)));
  const std::int64_t block =
      as_they_are && args.m >= kCublasLtRows ? sum_rows : std::min(sum_rows, fit(kRows, k));
  for (std::int64_t base = 0; base < args.m; base += block) {
    const std::int64_t count = std::min(block, args.m - base);
    const std::int8_t* a = args.a + base * args.lda;
    CublasLt::Strides strides{.a = args.lda, .w = weight.padded_k()};
    std::int64_t multiplied = count;
    if (!as_they_are || count < kCublasLtRows) {
      multiplied = std::max(count, kCublasLtRows);
      cuda::launch(gpu, "scaled_mm", fill_rows, {.x = multiplied}, 128, 0, a, args.lda, k, count, rows);
      a = rows;
      strides.a = k;
    }
    const Status done =
        with.library->product(CublasLt::Type::int8, multiplied, n, k, a, weight.rows(), sums, strides);
    if (!done) throw GpuError(done.error().message());
    cuda::launch(gpu, "scaled_mm", int8_epilogue<Output>,
                 {.x = divide_up(count, SumsTile::kM), .y = divide_up(n, SumsTile::kN)}, SumsTile::kThreads,
                 0, problem, out, sums, base, count, gpu.not_finite_row());
  }
}

}  // namespace

Status open_cublaslt(Gpu& gpu) {
  if (kept(gpu) != nullptr) return {};
  auto library = TRY(CublasLt::open(gpu, CublasLt::Choice::first));
  auto products = std::make_shared<Products>(Products{
      .library = std::move(library), .sums = Memory(&gpu, kCublasLtSums), .rows = Memory(&gpu, kRows)});
  // The library writes all sums that are read. compute-sanitizer does not see its stores (initcheck), but sees this.
  gpu.zero(products->sums.data(), products->sums.size());
  kept(gpu) = std::move(products);
  return {};
}

void scaled_mm_cublaslt(Gpu& gpu, const ScaledMMArgs& args, const FloatOutput& out) { run(gpu, args, out); }
void scaled_mm_cublaslt(Gpu& gpu, const ScaledMMArgs& args, const Int8Output& out) { run(gpu, args, out); }

}  // namespace oasr::kernels

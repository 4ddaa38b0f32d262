#include "api/kernel_bench/problem.h"

#include <cmath>

#include "kernels/scaled_mm/packed_int8_weight.h"
#include "tensor/dtype.h"

namespace oasr::kernel_bench {
namespace {

constexpr std::int64_t kMostK = std::int64_t{1} << 20;

const std::vector<Op>& table() {
  // Of Whisper base: blocks of an encoder's window, steps of a decoder of 1 and 16 rows. Of a GPU also those that
  // its targets are given for.
  const std::vector<KernelShape> products = {{1500, 2048, 512}, {1500, 512, 2048}, {16, 512, 512}, {1, 2048, 512}};
  const std::vector<KernelShape> gpu_products = {
      {8192, 8192, 8192}, {4096, 4096, 4096}, {16'384, 2048, 2048}, {1024, 4096, 4096}, {1024, 1024, 1024},
      {12'000, 2048, 512}, {1500, 2048, 512}, {1500, 512, 2048},    {256, 4096, 4096},  {64, 4096, 4096},
      {16, 4096, 4096},   {1, 4096, 4096},   {16, 512, 512},        {1, 2048, 512},     {1, 512, 512}};
  const std::vector<KernelShape> rows = {{1500, 0, 512}, {16, 0, 512}};
  const std::vector<KernelShape> gpu_rows = {
      {16'384, 0, 2048}, {16'384, 0, 512}, {1500, 0, 512}, {512, 0, 2048}, {512, 0, 512}, {16, 0, 512}, {1, 0, 512}};
  static const std::vector<Op> kOps = {
      {.info = {"scaled_mm", "int8 product with its whole epilogue, float32 out", true, products},
       .gpu_shapes = gpu_products,
       .most_k = kernels::PackedInt8Weight::kGreatestK,
       .bytes = scaled_mm_bytes,
       .make = scaled_mm_problem},
      {.info = {"linear", "product of float32 rows and float16 weights; on a GPU in every arithmetic", true, products},
       .gpu_shapes = gpu_products,
       .most_k = kMostK,
       .bytes = linear_bytes,
       .make = linear_problem},
      {.info = {"quantize", "rows of float32 become int8, per token and at a calibrated scale", false, rows},
       .gpu_shapes = gpu_rows,
       .most_k = kMostK,
       .bytes = rows_bytes,
       .make = quantize_problem},
      {.info = {"norm", "layer norm of float32 rows; with int8 out, and after a sum", false, rows},
       .gpu_shapes = gpu_rows,
       .most_k = kMostK,
       .bytes = rows_bytes,
       .make = norm_problem},
  };
  return kOps;
}

float fraction(std::uint32_t bits) { return static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f; }

}  // namespace

std::span<const Op> ops() { return table(); }

const Op* find_op(std::string_view name) {
  for (const Op& op : ops()) {
    if (op.info.name == name) return &op;
  }
  return nullptr;
}

int sets_for(const Place& place, double bytes) {
  constexpr double kHost = 64 << 20;
  const double wanted = place.gpu != nullptr ? 5.0 * static_cast<double>(place.gpu->info().l2_bytes) : kHost;
  return static_cast<int>(std::ceil(std::clamp(wanted / bytes, 1.0, double{kMostSets})));
}

std::string lane_ceiling(std::string_view operands, std::string_view lane) {
  return std::string(operands) + " " + std::string(lane);
}

std::vector<float> some_floats(std::int64_t count, unsigned seed) { return some_numbers<float>(count, seed, fraction); }
std::vector<float> some_scales(std::int64_t count, unsigned seed) {
  return some_numbers<float>(count, seed, [](std::uint32_t bits) { return 0.015f + 0.005f * fraction(bits); });
}
std::vector<std::int8_t> some_int8(std::int64_t count, unsigned seed) {
  return some_numbers<std::int8_t>(count, seed, [](std::uint32_t bits) {
    return static_cast<std::int8_t>(static_cast<std::int32_t>(bits % 255) - 127);
  });
}
std::vector<std::uint16_t> some_halves(std::int64_t count, unsigned seed) {
  return some_numbers<std::uint16_t>(count, seed, [](std::uint32_t bits) { return to_half(fraction(bits)).bits; });
}
std::vector<std::uint8_t> some_fp8(std::int64_t count, unsigned seed) {
  return some_numbers<std::uint8_t>(count, seed, [](std::uint32_t bits) {
    const std::uint32_t magnitude = bits % 0x7f;  // 0x7f is NaN
    return static_cast<std::uint8_t>(magnitude | (bits >> 31) << 7);
  });
}

}  // namespace oasr::kernel_bench

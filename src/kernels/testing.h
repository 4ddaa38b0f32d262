// Helpers of the kernels' contract tests and benchmarks.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <random>
#include <span>
#include <vector>

#include "device/cpu.h"
#include "kernels/linear/op.h"

namespace oasr::kernels {

inline std::vector<float> random_floats(std::int64_t count, unsigned seed, float deviation = 1.0f) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

// The same bits, any NaN equal to any NaN (its payload depends on the order of operands).
inline bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// The index of the first element that differs, or -1.
inline std::int64_t first_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return static_cast<std::int64_t>(i);
  }
  return -1;
}

// One of the activations.
inline Activation some_activation(unsigned number) {
  constexpr Activation kAll[] = {Activation::gelu, Activation::swish, Activation::relu, Activation::tanh,
                                 Activation::none};
  return kAll[number % std::size(kAll)];
}

// The rows of a lane table that this processor can run.
template <class Lane>
std::vector<Lane> runnable(std::span<const Lane> lanes) {
  std::vector<Lane> rows;
  for (const Lane& lane : lanes) {
    if (isa_supported(lane.isa)) rows.push_back(lane);
  }
  return rows;
}

inline PackedWeight pack_rows(std::span<const float> rows, std::int64_t n, std::int64_t k, DType storage) {
  return PackedWeight::pack(n, k, storage, [&](std::int64_t row, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = rows[static_cast<std::size_t>(row * k) + i];
  });
}

}  // namespace oasr::kernels

// Weights for the tests of this module.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "formats/w4_encoder.h"

namespace oasr::formats {

// A valid weight with random codes and parameters; of every group the codes are as far apart as it allows.
inline W4Weight random_weight(W4Form form, ZeroDomain domain, std::int64_t n, std::int64_t k,
                              unsigned seed = 1) {
  std::mt19937 random(seed);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  W4Weight weight = W4Weight::sized(form, domain, n, k);
  for (float& scale : weight.channel_scale) scale = static_cast<float>(draw(1025, 2047)) * 0x1p-20f;
  for (auto& code : weight.codes) code = static_cast<std::uint8_t>(draw(0, kMostCode));
  for (std::size_t i = 0; i < weight.group_scale.size(); ++i) {
    const int scale = draw(1, 16);
    weight.group_scale[i] = static_cast<std::uint8_t>(scale);
    // 0 · scale - zero >= -128 and 15 · scale - zero <= 127, so that all codes may occur.
    const int least = std::max(0, 15 * scale - 127), most = std::min(128, 15 * scale);
    const int zero = domain == ZeroDomain::pre_scaled
                         ? draw((least + scale - 1) / scale, most / scale) * scale
                         : draw(least, std::min(most, 127));
    weight.scaled_zero[i] = static_cast<std::int16_t>(zero);
  }
  for (std::size_t i = 0; i < weight.channel_zero.size(); ++i) {
    const bool code = domain == ZeroDomain::pre_scaled;
    weight.channel_zero[i] = code ? static_cast<float>(draw(0, kMostCode)) * weight.channel_scale[i]
                                  : static_cast<float>(draw(-2047, 2047)) * 0x1p-16f;
  }
  return weight;
}

// The rows of a matrix [N, K] in memory that outlives the source.
inline RowSource rows_of(const std::vector<float>& values, std::int64_t k) {
  return [&values, k](std::int64_t n, std::span<float> out) {
    std::copy_n(values.begin() + n * k, k, out.begin());
  };
}

inline std::vector<float> decoded(const W4Weight& weight) {
  std::vector<float> values(weight.codes.size());
  for (std::int64_t n = 0; n < weight.n; ++n) {
    decode_row(weight, n,
               std::span(values).subspan(static_cast<std::size_t>(n * weight.k),
                                         static_cast<std::size_t>(weight.k)));
  }
  return values;
}

}  // namespace oasr::formats

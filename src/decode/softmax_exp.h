// The exponential in sums over logits, for one number at a time: the bits of what scores.cc does eight at a time.
#pragma once

#include <bit>
#include <cstdint>

namespace oasr::decode {

// eˣ for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial of degree 6, n into the exponent. 0 below
// -87. A template, since nvcc takes a constexpr function only from one.
template <class Float>
constexpr Float softmax_exp(Float x) {
  if (x < -87.0f) return 0.0f;
  constexpr float kShift = 12582912.0f;  // 1.5 · 2²³: adding it rounds to an integer
  const float shifted = x * 1.44269504f + kShift;
  const float n = shifted - kShift;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = r * (1.0f / 720.0f) + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) - 0x4B40'0000u + 127u) << 23;
  return p * std::bit_cast<float>(exponent);
}

}  // namespace oasr::decode

#include "decode/scores.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace oasr::decode {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// exp(x) for x <= 0, written so that the compiler makes vectors of it: x = n ln 2 + r with
// |r| <= ln 2 / 2, a Taylor polynomial of degree 6 for e^r, n into the exponent. Below -87, and so
// for -inf, the result is 0 (exactly: a masked token must have no share at all).
inline float exp_of_negative(float logit_below_max) {
  const float x = logit_below_max < -87.0f ? -87.0f : logit_below_max;
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504f + kShift;
  const float n = shifted - kShift;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const auto exponent = (std::bit_cast<std::int32_t>(shifted) - 0x4B400000 + 127) << 23;
  return logit_below_max < -87.0f ? 0.0f : p * std::bit_cast<float>(exponent);
}

constexpr std::size_t kBlock = 64;

// sum(exp((logits - max) * scale)) of at most kBlock logits.
inline float block_sum(const float* logits, std::size_t size, float max, float scale) {
  std::array<float, kBlock> values;
  for (std::size_t i = 0; i < size; ++i) values[i] = exp_of_negative((logits[i] - max) * scale);
  std::array<float, 8> sums{};
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) sums[k] += values[i + k];
  }
  for (; i < size; ++i) sums[0] += values[i];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

float max_value(std::span<const float> logits) {
  std::array<float, 8> best;
  best.fill(-kInfinity);
  std::size_t i = 0;
  for (; i + 8 <= logits.size(); i += 8) {
    for (std::size_t k = 0; k < 8; ++k) best[k] = std::max(best[k], logits[i + k]);
  }
  for (; i < logits.size(); ++i) best[0] = std::max(best[0], logits[i]);
  return *std::max_element(best.begin(), best.end());
}

// Whether one of kBlock logits is greater; of all, so that the compiler makes vectors of it.
bool any_greater(const float* logits, float threshold) {
  int greater = 0;
  for (std::size_t i = 0; i < kBlock; ++i) greater |= static_cast<int>(logits[i] > threshold);
  return greater != 0;
}

double exp_sum(std::span<const float> logits, float max, float scale) {
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); i += kBlock) {
    sum += block_sum(logits.data() + i, std::min(kBlock, logits.size() - i), max, scale);
  }
  return sum;
}

}  // namespace

float log_sum_exp(std::span<const float> logits) {
  const float max = max_value(logits);
  if (max == -kInfinity) return -kInfinity;
  return static_cast<float>(max + std::log(exp_sum(logits, max, 1.0f)));
}

TokenId arg_max(std::span<const float> logits) {
  CHECK(!logits.empty(), "a row of logits");
  const float max = max_value(logits);
  const auto found = std::find(logits.begin(), logits.end(), max);
  CHECK(found != logits.end(), "a logit is not a number");
  return static_cast<TokenId>(found - logits.begin());
}

void top_k(std::span<const float> logits, int count, std::vector<ScoredToken>& best) {
  best.clear();
  const auto limit = static_cast<std::size_t>(count);
  // Insertion into a short sorted list: nearly every block of logits fails the first comparison.
  float threshold = -kInfinity;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (i % kBlock == 0) {
      while (i + kBlock <= logits.size() && !any_greater(&logits[i], threshold)) i += kBlock;
      if (i == logits.size()) break;
    }
    if (!(logits[i] > threshold)) continue;
    if (best.size() == limit) best.pop_back();
    const ScoredToken entry{static_cast<TokenId>(i), logits[i]};
    const auto place = std::upper_bound(
        best.begin(), best.end(), entry,
        [](const ScoredToken& a, const ScoredToken& b) { return a.logit > b.logit; });
    best.insert(place, entry);
    if (best.size() == limit) threshold = best.back().logit;
  }
}

TokenId sample(std::span<const float> logits, float temperature, double uniform) {
  CHECK(temperature > 0, "sampling needs a temperature");
  const float max = max_value(logits);
  CHECK(max > -kInfinity, "every token is masked");
  const float scale = 1.0f / temperature;
  const double target = uniform * exp_sum(logits, max, scale);
  double sum = 0;
  TokenId last = 0;
  for (std::size_t i = 0; i < logits.size(); i += kBlock) {
    const std::size_t size = std::min(kBlock, logits.size() - i);
    const double next = sum + block_sum(logits.data() + i, size, max, scale);
    if (next <= target) {  // whole blocks are passed over with the sums that made the total
      sum = next;
      continue;
    }
    for (std::size_t k = i; k < i + size; ++k) {
      if (logits[k] == -kInfinity) continue;
      sum += exp_of_negative((logits[k] - max) * scale);
      last = static_cast<TokenId>(k);
      if (sum > target) return last;
    }
    return last;  // rounding inside the block
  }
  return arg_max(logits);  // rounding at the very end
}

}  // namespace oasr::decode

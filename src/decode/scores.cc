#include "decode/scores.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "decode/log_math.h"

namespace oasr::decode {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Compiled for AVX2 too and chosen when the program starts. The bits are the same: lanes are summed in an order
// that the code says, and products are never fused into sums (-ffp-contract=off). The choice is made before
// ThreadSanitizer is ready.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define OASR_ALSO_FOR_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define OASR_ALSO_FOR_AVX2
#endif

// What these functions call is part of them: a function of its own would be the one for the oldest processor.
#define OASR_PART [[gnu::always_inline]] inline

// Eight logits; operations act on them separately.
using Eight = float __attribute__((vector_size(32)));
using EightInts = std::int32_t __attribute__((vector_size(32)));
constexpr std::size_t kLanes = 8;
constexpr std::size_t kBlock = 64;

OASR_PART void load(const float* from, Eight& to) { std::memcpy(&to, from, sizeof(Eight)); }

// x becomes exp(x), x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial of degree 6 for e^r, n into
// the exponent. Below -87, and so for -inf, the result is 0 (exactly: a masked token must have no share at all).
OASR_PART void exp_of_negative(Eight& x) {
  constexpr float kLeast = -87.0f;
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const EightInts none = x < kLeast;
  const Eight at_least = none ? Eight{} + kLeast : x;
  const Eight shifted = at_least * 1.44269504f + kShift;
  const Eight n = shifted - kShift;
  const Eight r = (at_least - n * 0.693359375f) - n * -2.12194440e-4f;
  Eight p = r * (1.0f / 720.0f) + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const EightInts exponent = (reinterpret_cast<EightInts>(shifted) - 0x4B400000 + 127) << 23;
  x = none ? Eight{} : p * reinterpret_cast<Eight>(exponent);
}

OASR_PART float exp_of_negative(float x) {
  Eight lanes = Eight{} + x;
  exp_of_negative(lanes);
  return lanes[0];
}

// sum(exp((logits - max) * scale)) of at most kBlock logits.
OASR_PART float block_sum(const float* logits, std::size_t size, float max, float scale) {
  Eight sums{};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Eight x;
    load(logits + i, x);
    x = (x - max) * scale;
    exp_of_negative(x);
    sums += x;
  }
  for (; i < size; ++i) sums[0] += exp_of_negative((logits[i] - max) * scale);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

OASR_PART float max_value(std::span<const float> logits) {
  constexpr std::size_t kChains = 4;  // so that a comparison does not wait for the one before
  std::array<Eight, kChains> best;
  best.fill(Eight{} - kInfinity);
  std::size_t i = 0;
  for (; i + kChains * kLanes <= logits.size(); i += kChains * kLanes) {
    for (std::size_t k = 0; k < kChains; ++k) {
      Eight x;
      load(&logits[i + k * kLanes], x);
      best[k] = best[k] < x ? x : best[k];
    }
  }
  float all = -kInfinity;
  for (; i < logits.size(); ++i) all = std::max(all, logits[i]);
  for (const Eight& chain : best) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) all = std::max(all, chain[lane]);
  }
  return all;
}

// Whether look(8 logits, found) sets a lane of `found` for one of kBlock logits.
template <class Look>
OASR_PART bool any_of_block(const float* logits, const Look& look) {
  EightInts found{};
  for (std::size_t i = 0; i < kBlock; i += kLanes) {
    Eight x;
    load(logits + i, x);
    look(x, found);
  }
  int any = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) any |= found[lane];
  return any != 0;
}

// The sum of block `first` / kBlock, as exp_sum() adds them.
OASR_PART float block_sum_at(std::span<const float> logits, std::size_t first, float max, float scale) {
  const float* block = logits.data() + first;
  const std::size_t left = logits.size() - first;
  return left >= kBlock ? block_sum(block, kBlock, max, scale) : block_sum(block, left, max, scale);
}

OASR_PART double exp_sum(std::span<const float> logits, float max, float scale) {
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); i += kBlock) sum += block_sum_at(logits, i, max, scale);
  return sum;
}

// The first of logits that equals `value`; their number when none does.
OASR_PART std::size_t find_equal(std::span<const float> logits, float value) {
  std::size_t i = 0;
  const auto equals = [&](const Eight& x, EightInts& found) { found |= x == value; };
  while (i + kBlock <= logits.size() && !any_of_block(&logits[i], equals)) i += kBlock;
  while (i < logits.size() && !(logits[i] == value)) ++i;
  return i;
}

}  // namespace

bool all_finite(std::span<const float> values) {
  std::uint32_t bad = 0;  // by their bits, side by side: a sum would wait for the one before
  for (const float value : values) bad |= (std::bit_cast<std::uint32_t>(value) & 0x7f80'0000u) == 0x7f80'0000u ? 1u : 0u;
  return bad == 0;
}

float log_softmax(std::span<float> x) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (!all_finite(x)) return kNan;
  const float norm = log_sum_exp(x);
  for (float& value : x) value -= norm;
  return all_finite(x) ? norm : kNan;
}

OASR_ALSO_FOR_AVX2
float greatest(std::span<const float> logits) { return max_value(logits); }

OASR_ALSO_FOR_AVX2
float log_sum_exp(std::span<const float> logits) {
  const float max = max_value(logits);
  if (max == -kInfinity) return -kInfinity;
  return static_cast<float>(double{max} + log_of(exp_sum(logits, max, 1.0f)));
}

OASR_ALSO_FOR_AVX2
TokenId arg_max(std::span<const float> logits) {
  CHECK(!logits.empty(), "a row of logits");
  const std::size_t found = find_equal(logits, max_value(logits));
  CHECK(found != logits.size(), "a logit is not a number");
  return static_cast<TokenId>(found);
}

OASR_ALSO_FOR_AVX2
std::size_t top_k(std::span<const float> logits, std::span<ScoredToken> best) {
  CHECK(!best.empty(), "room for a token");
  // Insertion into a short sorted list: nearly every block of logits fails the first comparison.
  std::size_t size = 0;
  float threshold = -kInfinity;
  const auto is_greater = [&](const Eight& x, EightInts& found) { found |= x > threshold; };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (i % kBlock == 0) {
      while (i + kBlock <= logits.size() && !any_of_block(&logits[i], is_greater)) i += kBlock;
      if (i == logits.size()) break;
    }
    if (!(logits[i] > threshold)) continue;
    if (size < best.size()) ++size;
    std::size_t place = size - 1;
    for (; place > 0 && logits[i] > best[place - 1].logit; --place) best[place] = best[place - 1];
    best[place] = {static_cast<TokenId>(i), logits[i]};
    if (size == best.size()) threshold = best[size - 1].logit;
  }
  return size;
}

void top_k(std::span<const float> logits, int count, std::vector<ScoredToken>& best) {
  best.resize(static_cast<std::size_t>(count));
  best.resize(top_k(logits, std::span(best)));
}

OASR_ALSO_FOR_AVX2
TokenId sample(std::span<const float> logits, float temperature, double uniform) {
  CHECK(temperature > 0, "sampling needs a temperature");
  const float max = max_value(logits);
  CHECK(max > -kInfinity, "every token is masked");
  const float scale = 1.0f / temperature;
  const double target = uniform * exp_sum(logits, max, scale);
  double sum = 0;
  TokenId last = 0;
  for (std::size_t i = 0; i < logits.size(); i += kBlock) {
    const double next = sum + block_sum_at(logits, i, max, scale);
    if (next <= target) {  // whole blocks are passed over with the sums that made the total
      sum = next;
      continue;
    }
    for (std::size_t k = i; k < std::min(i + kBlock, logits.size()); ++k) {
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

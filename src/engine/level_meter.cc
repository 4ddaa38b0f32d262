#include "engine/level_meter.h"

#include <algorithm>
#include <cmath>

namespace oasr::engine {

void LevelMeter::push(std::span<const float> samples, std::vector<float>& levels) {
  for (const float x : samples) {
    sum_ += double{x} * x;
    if (++filled_ == kBlock) end_block(levels);
  }
}

void LevelMeter::end_block(std::vector<float>& levels) {
  recent_[static_cast<std::size_t>(blocks_ % kBlocksPerLevel)] = sum_;
  sum_ = 0;
  filled_ = 0;
  // Block 2t + 2 completes frame t.
  if (blocks_ >= 2 && blocks_ % 2 == 0) {
    double total = 0;
    for (const double block : recent_) total += block;
    levels.push_back(static_cast<float>(total / (kBlock * kBlocksPerLevel)));
    ++levels_out_;
  }
  ++blocks_;
}

void LevelMeter::finish(std::int64_t frames, std::vector<float>& levels) {
  while (levels_out_ < frames) end_block(levels);
}

bool is_quiet(std::span<const float> levels, double floor_dbfs) {
  return levels.empty() ||
         *std::max_element(levels.begin(), levels.end()) <= std::pow(10.0, floor_dbfs / 10);
}

bool is_steady(std::span<const float> levels) {
  constexpr std::size_t kHalfSecond = 50;
  if (levels.size() < kHalfSecond) return false;
  const double loudest = *std::max_element(levels.begin(), levels.end());
  std::vector<float> sorted(levels.begin(), levels.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  constexpr double kSteady = 1.4125375446227544;  // 10^(1.5 / 10)
  return loudest < kSteady * *middle;
}

}  // namespace oasr::engine

// How loud a recording is, frame by frame: the signal side of "nothing is said here".
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace oasr::engine {

// Mean square of 25 ms of samples for every 10 ms frame: frame t covers samples
// [160t - 160, 160t + 240), zeros outside the recording. Independent of the sizes of the pushes.
class LevelMeter {
 public:
  // Appends the levels of the frames that are complete.
  void push(std::span<const float> samples, std::vector<float>& levels);
  // As if zeros followed: appends what is missing up to `frames` levels in all.
  void finish(std::int64_t frames, std::vector<float>& levels);

 private:
  void end_block(std::vector<float>& levels);

  static constexpr int kBlock = 80;               // samples: 5 ms
  static constexpr int kBlocksPerLevel = 5;       // 25 ms
  std::array<double, kBlocksPerLevel> recent_{};  // sums of squares, by block number modulo 5
  double sum_ = 0;
  int filled_ = 0;
  std::int64_t blocks_ = 0;
  std::int64_t levels_out_ = 0;
};

// True when no level exceeds `floor_dbfs` (full scale: a sine of amplitude 1 has -3 dBFS).
bool is_quiet(std::span<const float> levels, double floor_dbfs);

// True when the level never moves, as in hum, tones and steady noise: the loudest frame is less than
// 1.5 dB above the median, of at least half a second. Speech moves by more than 10 dB within a
// syllable, but a louder hum, or a constant offset, hides that.
bool is_steady(std::span<const float> levels);

}  // namespace oasr::engine

#include "features/log_mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "features/mel_filters.h"
#include "features/mel_frames.h"
#include "features/power_spectrum.h"

namespace oasr {
namespace {

constexpr std::size_t kHop = kWhisperHop;
constexpr std::size_t kWindow = kWhisperWindow;
constexpr std::size_t kReflected = kWindow / 2;  // samples mirrored before the first
constexpr float kEnergyFloor = 1e-10f;

float log_energy(float energy) { return log_of<LogBase::ten>(std::max(energy, kEnergyFloor)); }

// The samples of a stream with their reflection in front, cut into overlapping frames.
class Framer {
 public:
  void push(std::span<const float> samples) {
    pushed_ += samples.size();
    buffer_.insert(buffer_.end(), samples.begin(), samples.end());
    if (!reflected_ && buffer_.size() > kReflected) {
      std::vector<float> mirror(buffer_.begin() + 1, buffer_.begin() + 1 + kReflected);
      std::reverse(mirror.begin(), mirror.end());
      buffer_.insert(buffer_.begin(), mirror.begin(), mirror.end());
      reflected_ = true;
    }
  }

  // Appends zeros enough to complete every frame that holds a sample, also of the shortest stream.
  void finish() {
    const std::size_t samples = pushed_;
    push(std::vector<float>(2 * kWindow));
    pushed_ = samples;
  }

  std::size_t samples() const { return pushed_; }  // zeros of finish() not counted
  std::size_t first() const { return first_; }     // index of frame(0) in the stream

  // Complete frames in the buffer.
  std::size_t ready() const {
    return reflected_ && buffer_.size() >= kWindow ? (buffer_.size() - kWindow) / kHop + 1 : 0;
  }
  const float* frame(std::size_t i) const { return &buffer_[i * kHop]; }

  void drop(std::size_t frames) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(frames * kHop));
    first_ += frames;
  }

 private:
  std::vector<float> buffer_;
  bool reflected_ = false;
  std::size_t pushed_ = 0;
  std::size_t first_ = 0;
};

}  // namespace

MelRecipe whisper_recipe(int n_mels) {
  CHECK(n_mels == 80 || n_mels == 128, "Whisper has 80 or 128 mel bins");
  return {.window = kWindow,
          .hop = kHop,
          .transform = kWindow,
          .emphasised = false,
          .scale = 1,
          .weights = hann_window(kWindow),
          .filters = slaney_mel_filters(n_mels),
          .floor = kEnergyFloor,
          .log = LogBase::ten};
}

struct LogMelStream::State {
  State(int n_mels, MelDevice* device) : mel(whisper_recipe(n_mels), device) {}

  // Computes the frames that are ready; those below `handed_out_end` are appended to `frames`.
  void drain(std::size_t handed_out_end, std::vector<float>& frames) {
    const std::size_t ready = framer.ready(), base = frames.size();
    if (ready == 0) return;
    frames.resize(base + ready * mel.filters());
    greatest.resize(ready);
    mel.compute(framer.frame(0), ready, {.logs = frames.data() + base, .greatest = greatest.data()});
    for (const float energy : greatest) max_energy = std::max(max_energy, energy);
    const std::size_t keep = std::min(ready, handed_out_end - std::min(framer.first(), handed_out_end));
    frames.resize(base + keep * mel.filters());
    framer.drop(ready);
  }

  MelFrames mel;
  Framer framer;
  std::vector<float> greatest;  // energies of the frames of a push
  float max_energy = kEnergyFloor;
};

LogMelStream::LogMelStream(int n_mels, MelDevice* device) : state_(std::make_unique<State>(n_mels, device)) {}
LogMelStream::~LogMelStream() = default;
LogMelStream::LogMelStream(LogMelStream&&) noexcept = default;
LogMelStream& LogMelStream::operator=(LogMelStream&&) noexcept = default;

int LogMelStream::n_mels() const { return static_cast<int>(state_->mel.filters()); }

void LogMelStream::push(std::span<const float> samples, std::vector<float>& frames) {
  state_->framer.push(samples);
  state_->drain(static_cast<std::size_t>(-1), frames);
}

void LogMelStream::finish(std::vector<float>& frames) {
  state_->framer.finish();
  state_->drain(state_->framer.samples() / kHop, frames);
}

float LogMelStream::max_value() const { return log_energy(state_->max_energy); }

// A mel energy is at most the largest filter weight times the sum of the powers of the bins 1 to
// 199 (no filter weighs 0 and 8000 Hz), which by Parseval is at most 200 times the energy of the
// windowed frame. That energy is at most the sum over blocks of 40 samples of the block's energy
// times the largest squared window value in it; blocks are shared by the frames that overlap.
struct LogMelMaximum::State {
  static constexpr std::size_t kBlock = 40;
  static constexpr std::size_t kBlocks = kWindow / kBlock;
  static constexpr float kRounding = 1.001f;  // generous: all sums are off by less than 1e-4

  State(int n_mels, MelDevice* device) : mel(whisper_recipe(n_mels), device) {
    float largest_weight = 0.0f;
    for (const MelFilter& filter : mel.recipe().filters) {
      for (const float weight : filter.weights) largest_weight = std::max(largest_weight, weight);
    }
    for (std::size_t i = 0; i < kWindow; ++i) {
      const float window = mel.recipe().weights[i];
      auto& bound = block_bounds[i / kBlock];
      bound = std::max(bound, window * window * largest_weight * (kWindow / 2) * kRounding);
    }
  }

  static float block_energy(const float* samples) {
    FrameLanes sum{};
    for (std::size_t i = 0; i < kBlock; i += kFrameLanes) {
      const FrameLanes v = {samples[i], samples[i + 1], samples[i + 2], samples[i + 3]};
      sum += v * v;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  void drain() {
    const std::size_t ready = framer.ready();
    if (ready == 0) return;
    mel.device_for(ready) != nullptr ? transform_all(ready) : transform_candidates(ready);
    framer.drop(ready);
  }

  void transform_all(std::size_t ready) {
    greatest.resize(ready);
    mel.compute(framer.frame(0), ready, {.logs = nullptr, .greatest = greatest.data()});
    for (const float energy : greatest) max_energy = std::max(max_energy, energy);
    transformed += static_cast<std::int64_t>(ready);
  }

  void transform_candidates(std::size_t ready) {
    energies.resize((ready - 1) * (kHop / kBlock) + kBlocks);
    for (std::size_t i = 0; i < energies.size(); ++i)
      energies[i] = block_energy(framer.frame(0) + i * kBlock);
    candidates.clear();
    for (std::size_t i = 0; i < ready; ++i) {
      float bound = 0.0f;
      for (std::size_t b = 0; b < kBlocks; ++b)
        bound += energies[i * (kHop / kBlock) + b] * block_bounds[b];
      if (std::isnan(bound)) bound = std::numeric_limits<float>::infinity();
      if (bound > max_energy) candidates.emplace_back(bound, framer.frame(i));
    }
    // The loudest first: they raise the maximum, and the others need not be looked at.
    std::sort(candidates.begin(), candidates.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<const float*> group;
    greatest.resize(mel.side_by_side());
    for (std::size_t begin = 0; begin < candidates.size(); begin += group.size()) {
      if (candidates[begin].first <= max_energy) break;
      group.clear();
      for (std::size_t i = begin; i < std::min(candidates.size(), begin + greatest.size()); ++i)
        group.push_back(candidates[i].second);
      mel.compute(group, {.logs = nullptr, .greatest = greatest.data()});
      for (std::size_t i = 0; i < group.size(); ++i) max_energy = std::max(max_energy, greatest[i]);
      transformed += static_cast<std::int64_t>(group.size());
    }
  }

  MelFrames mel;
  Framer framer;
  std::array<float, kBlocks> block_bounds{};  // energy of a block -> its part of the bound
  std::vector<float> energies;                // of the blocks in the buffer
  std::vector<std::pair<float, const float*>> candidates;  // bound, frame
  std::vector<float> greatest;                             // energies of frames that are transformed
  float max_energy = kEnergyFloor;
  std::int64_t transformed = 0;
};

LogMelMaximum::LogMelMaximum(int n_mels, MelDevice* device) : state_(std::make_unique<State>(n_mels, device)) {}
LogMelMaximum::~LogMelMaximum() = default;
LogMelMaximum::LogMelMaximum(LogMelMaximum&&) noexcept = default;
LogMelMaximum& LogMelMaximum::operator=(LogMelMaximum&&) noexcept = default;

void LogMelMaximum::push(std::span<const float> samples) {
  state_->framer.push(samples);
  state_->drain();
}

float LogMelMaximum::finish() {
  state_->framer.finish();
  state_->drain();
  return log_energy(state_->max_energy);
}

std::int64_t LogMelMaximum::frames_transformed() const { return state_->transformed; }

void whisper_normalize(std::span<float> frames, float max_log10) {
  const float floor = max_log10 - 8.0f;
  for (float& v : frames) v = (std::max(v, floor) + 4.0f) / 4.0f;
}

std::vector<float> whisper_log_mel(std::span<const float> samples, int n_mels, MelDevice* device) {
  // The clip as Whisper pads it: zeros up to 30 s, both ends reflected.
  constexpr std::size_t kFrames = kWhisperFrames, kSamples = kWhisperSamples;
  samples = samples.first(std::min(samples.size(), kSamples));
  std::vector<float> padded(kReflected + kSamples + kReflected);
  std::copy(samples.begin(), samples.end(), padded.begin() + kReflected);
  for (std::size_t i = 1; i <= kReflected; ++i) {
    padded[kReflected - i] = padded[kReflected + i];
    padded[kReflected + kSamples - 1 + i] = padded[kReflected + kSamples - 1 - i];
  }
  // Frames beyond the clip hold zeros only, whose energy is the floor.
  const std::size_t computed = std::min(kFrames, (samples.size() + kReflected) / kHop + 1);
  MelFrames mel(whisper_recipe(n_mels), device);
  const std::size_t mels = mel.filters();
  std::vector<float> logs(computed * mels), greatest(computed);
  mel.compute(padded.data(), computed, {.logs = logs.data(), .greatest = greatest.data()});
  float max_energy = kEnergyFloor;
  for (const float energy : greatest) max_energy = std::max(max_energy, energy);
  std::vector<float> result(mels * kFrames, log_energy(0.0f));
  for (std::size_t bin = 0; bin < mels; ++bin) {
    for (std::size_t t = 0; t < computed; ++t) result[bin * kFrames + t] = logs[t * mels + bin];
  }
  whisper_normalize(result, log_energy(max_energy));
  return result;
}

}  // namespace oasr

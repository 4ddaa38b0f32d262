#include "features/log_mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "features/mel_filters.h"
#include "features/power_spectrum.h"

namespace oasr {
namespace {

constexpr std::size_t kHop = kWhisperHop;
constexpr std::size_t kWindow = kWhisperWindow;
constexpr std::size_t kReflected = kWindow / 2;  // samples mirrored before the first
constexpr float kEnergyFloor = 1e-10f;

float log_energy(float energy) { return std::log10(std::max(energy, kEnergyFloor)); }

// Mel energies of up to four frames at a time.
class MelEnergies {
 public:
  explicit MelEnergies(int n_mels) : filters_(slaney_mel_filters(n_mels)) {
    CHECK(n_mels == 80 || n_mels == 128, "Whisper has 80 or 128 mel bins");
  }

  std::size_t n_mels() const { return filters_.size(); }
  std::span<const MelFilter> filters() const { return filters_; }
  std::span<const float> window() const { return spectrum_.window(); }

  // Calls store(frame, mel, energy) for frames[0, n), n in 1 to 4.
  template <class Store>
  void compute(std::span<const float* const> frames, const Store& store) {
    std::array<const float*, kFrameLanes> lanes;
    for (std::size_t i = 0; i < lanes.size(); ++i)
      lanes[i] = frames[std::min(i, frames.size() - 1)];
    const auto power = spectrum_.transform(lanes);
    for (std::size_t mel = 0; mel < filters_.size(); ++mel) {
      const FrameLanes* bin = &power[static_cast<std::size_t>(filters_[mel].first_bin)];
      FrameLanes energy{};
      for (const float weight : filters_[mel].weights) energy += *bin++ * weight;
      for (std::size_t i = 0; i < frames.size(); ++i) store(i, mel, energy[i]);
    }
  }

 private:
  std::vector<MelFilter> filters_;
  PowerSpectrum<kWindow> spectrum_;
};

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

// Pointers to the frames [begin, end) of at most four.
template <class Frames>
std::span<const float* const> gather(const Frames& frames, std::size_t begin, std::size_t end,
                                     std::array<const float*, kFrameLanes>& pointers) {
  const std::size_t count = std::min<std::size_t>(end - begin, kFrameLanes);
  for (std::size_t i = 0; i < count; ++i) pointers[i] = frames(begin + i);
  return {pointers.data(), count};
}

}  // namespace

struct LogMelStream::State {
  explicit State(int n_mels) : mel(n_mels) {}

  // Computes the frames that are ready; those below `handed_out_end` are appended to `frames`.
  void drain(std::size_t handed_out_end, std::vector<float>& frames) {
    const std::size_t ready = framer.ready();
    std::array<const float*, kFrameLanes> pointers;
    for (std::size_t begin = 0; begin < ready; begin += kFrameLanes) {
      const auto group =
          gather([&](std::size_t i) { return framer.frame(i); }, begin, ready, pointers);
      const std::size_t at = framer.first() + begin;
      const std::size_t keep =
          std::min(group.size(), handed_out_end - std::min(at, handed_out_end));
      const std::size_t base = frames.size();
      frames.resize(base + keep * mel.n_mels());
      mel.compute(group, [&](std::size_t frame, std::size_t bin, float energy) {
        max_energy = std::max(max_energy, energy);
        if (frame < keep) frames[base + frame * mel.n_mels() + bin] = log_energy(energy);
      });
    }
    framer.drop(ready);
  }

  MelEnergies mel;
  Framer framer;
  float max_energy = kEnergyFloor;
};

LogMelStream::LogMelStream(int n_mels) : state_(std::make_unique<State>(n_mels)) {}
LogMelStream::~LogMelStream() = default;
LogMelStream::LogMelStream(LogMelStream&&) noexcept = default;
LogMelStream& LogMelStream::operator=(LogMelStream&&) noexcept = default;

int LogMelStream::n_mels() const { return static_cast<int>(state_->mel.n_mels()); }

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

  explicit State(int n_mels) : mel(n_mels) {
    float largest_weight = 0.0f;
    for (const MelFilter& filter : mel.filters()) {
      for (const float weight : filter.weights) largest_weight = std::max(largest_weight, weight);
    }
    for (std::size_t i = 0; i < kWindow; ++i) {
      const float window = mel.window()[i];
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
    energies.resize((ready - 1) * (kHop / kBlock) + kBlocks);
    for (std::size_t i = 0; i < energies.size(); ++i)
      energies[i] = block_energy(framer.frame(0) + i * kBlock);
    candidates.clear();
    for (std::size_t i = 0; i < ready; ++i) {
      float bound = 0.0f;
      for (std::size_t b = 0; b < kBlocks; ++b)
        bound += energies[i * (kHop / kBlock) + b] * block_bounds[b];
      if (!(bound <= max_energy)) candidates.emplace_back(bound, framer.frame(i));
    }
    // The loudest first: they raise the maximum, and the others need not be looked at.
    std::sort(candidates.begin(), candidates.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    std::array<const float*, kFrameLanes> pointers;
    for (std::size_t begin = 0; begin < candidates.size(); begin += kFrameLanes) {
      if (candidates[begin].first <= max_energy) break;
      const auto group = gather([&](std::size_t i) { return candidates[i].second; }, begin,
                                candidates.size(), pointers);
      mel.compute(group, [&](std::size_t, std::size_t, float energy) {
        max_energy = std::max(max_energy, energy);
      });
      transformed += static_cast<std::int64_t>(group.size());
    }
    framer.drop(ready);
  }

  MelEnergies mel;
  Framer framer;
  std::array<float, kBlocks> block_bounds{};  // energy of a block -> its part of the bound
  std::vector<float> energies;                // of the blocks in the buffer
  std::vector<std::pair<float, const float*>> candidates;  // bound, frame
  float max_energy = kEnergyFloor;
  std::int64_t transformed = 0;
};

LogMelMaximum::LogMelMaximum(int n_mels) : state_(std::make_unique<State>(n_mels)) {}
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

std::vector<float> whisper_log_mel(std::span<const float> samples, int n_mels) {
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
  MelEnergies mel(n_mels);
  std::vector<float> result(mel.n_mels() * kFrames, log_energy(0.0f));
  float max_energy = kEnergyFloor;
  std::array<const float*, kFrameLanes> pointers;
  for (std::size_t begin = 0; begin < computed; begin += kFrameLanes) {
    const auto group =
        gather([&](std::size_t i) { return &padded[i * kHop]; }, begin, computed, pointers);
    mel.compute(group, [&](std::size_t frame, std::size_t bin, float energy) {
      max_energy = std::max(max_energy, energy);
      result[bin * kFrames + begin + frame] = log_energy(energy);
    });
  }
  whisper_normalize(result, log_energy(max_energy));
  return result;
}

}  // namespace oasr

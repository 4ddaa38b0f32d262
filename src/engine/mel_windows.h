// Windows of a recording of any length in bounded memory: open_mel_windows().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/level_meter.h"
#include "engine/window_source.h"
#include "features/log_mel.h"

namespace oasr::engine {

class MelWindows final : public WindowSource {
 public:
  MelWindows(AudioSource& audio, int n_mels, StopRequest stop, MelDevice* device);

  // Before the first load(): the first pass over a rewindable source.
  Status find_maximum();

  Result<int> load(std::int64_t seek) override;
  void mel(int frames, std::span<float> out) override;
  void mel_with_silence(int frames, std::span<float> out) override;
  std::span<const float> levels(int frames) const override;
  std::span<const float> audio(int frames) const override;
  std::optional<std::int64_t> total_frames() const override { return total_frames_; }
  std::int64_t samples() const override { return total_samples_ ? *total_samples_ : samples_; }
  bool exact_maximum() const override { return exact_; }

 private:
  Status skip_samples(std::int64_t count);
  Result<std::span<const float>> read(std::int64_t wanted);
  void push(std::span<const float> samples);
  Status read_until(std::int64_t frame);
  void end_of_audio();
  void normalised(int frames, float padding, std::span<float> out);
  float maximum() const;

  AudioSource* audio_;
  int n_mels_;
  StopRequest stop_;
  MelDevice* device_;
  LogMelStream stream_;
  LevelMeter meter_;
  std::vector<float> chunk_;   // what read() gave last
  std::vector<float> frames_;  // [n, n_mels] log10, from frame first_ on
  std::vector<float> levels_;  // one a frame, from first_ on
  std::vector<float> heard_;   // 160 samples a frame, from first_ on
  std::vector<float> scratch_;
  std::int64_t first_ = 0;
  std::int64_t seek_ = 0;
  std::int64_t samples_ = 0;  // pushed into the stream
  bool read_all_ = false;     // the audio has ended
  bool ended_ = false;        // the stream has all
  bool loaded_ = false;       // a window was asked for
  bool exact_ = false;
  std::optional<float> maximum_;  // of the whole recording, when known in advance
  std::optional<std::int64_t> total_frames_, total_samples_;
};

}  // namespace oasr::engine

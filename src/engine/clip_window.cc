#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/level_meter.h"
#include "engine/window_source.h"
#include "features/log_mel.h"

namespace oasr::engine {
namespace {

class ClipWindow final : public WindowSource {
 public:
  ClipWindow(std::vector<float> samples, int n_mels, MelDevice* device)
      : samples_(std::move(samples)),
        frames_(static_cast<int>(samples_.size() / kWhisperHop)),
        mel_(whisper_log_mel(samples_, n_mels, device)) {
    LevelMeter meter;
    meter.push(samples_, levels_);
    meter.finish(frames_, levels_);
  }

  Result<int> load(std::int64_t seek) override { return seek == 0 ? frames_ : 0; }
  void mel(int, std::span<float> out) override {
    CHECK(out.size() == mel_.size(), "a window of 3000 frames");
    std::copy(mel_.begin(), mel_.end(), out.begin());
  }
  void mel_with_silence(int frames, std::span<float> out) override { mel(frames, out); }
  std::span<const float> levels(int frames) const override {
    return std::span(levels_).first(static_cast<std::size_t>(frames));
  }
  std::span<const float> audio(int frames) const override {
    return std::span(samples_).first(static_cast<std::size_t>(frames * kWhisperHop));
  }
  std::optional<std::int64_t> total_frames() const override { return frames_; }
  std::int64_t samples() const override { return static_cast<std::int64_t>(samples_.size()); }
  bool exact_maximum() const override { return true; }

 private:
  std::vector<float> samples_;
  int frames_;
  std::vector<float> mel_;
  std::vector<float> levels_;
};

}  // namespace

Result<std::unique_ptr<WindowSource>> open_clip_window(AudioSource& audio, int n_mels, MelDevice* device) {
  std::vector<float> samples(kWhisperSamples + 1);
  std::size_t size = 0;
  while (size < samples.size()) {
    const std::size_t read = TRY(audio.read(std::span(samples).subspan(size)));
    if (read == 0) break;
    size += read;
  }
  if (size > kWhisperSamples) {
    return unexpected(ErrorCode::invalid_argument, "the recording is longer than 30 s",
                      "single_window", "leave single_window out");
  }
  samples.resize(size);
  return std::unique_ptr<WindowSource>(std::make_unique<ClipWindow>(std::move(samples), n_mels, device));
}

}  // namespace oasr::engine

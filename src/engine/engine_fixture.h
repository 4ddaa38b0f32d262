// For tests: a transcriber over a scripted model, and made audio.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/fake_model.h"
#include "engine/transcriber.h"

namespace oasr::engine {

// Something that is neither silent nor steady: a tone whose loudness swings; `pitch` tells
// recordings apart.
inline std::vector<float> babble(double seconds, double pitch = 300) {
  std::vector<float> samples(static_cast<std::size_t>(seconds * 16000));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double t = static_cast<double>(i) / 16000;
    const double swing = 0.5 + 0.5 * std::sin(2 * std::numbers::pi * 3 * t);
    samples[i] = static_cast<float>(0.3 * swing * std::sin(2 * std::numbers::pi * pitch * t));
  }
  return samples;
}

inline std::vector<float> joined(std::vector<float> a, const std::vector<float>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Samples as a source; can play a pipe, break off, or fail.
class TestAudio final : public AudioSource {
 public:
  explicit TestAudio(std::vector<float> samples, bool pipe = false)
      : samples_(std::move(samples)), pipe_(pipe) {}
  const AudioInfo& info() const override { return info_; }
  Result<std::size_t> read(std::span<float> out) override {
    if (fail_at && place_ >= *fail_at) return unexpected(ErrorCode::bad_audio, "NaN at sample 7");
    const std::size_t size = std::min({out.size(), samples_.size() - place_, std::size_t{4097}});
    std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(place_), size, out.begin());
    place_ += size;
    return size;
  }
  const std::optional<std::string>& truncated() const override { return truncation; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  Status rewind() override {
    place_ = 0;
    ++rewinds;
    return {};
  }
  bool rewindable() const override { return !pipe_; }

  std::optional<std::string> truncation;
  std::optional<std::size_t> fail_at;
  int rewinds = 0;

 private:
  AudioInfo info_;
  std::vector<float> samples_;
  bool pipe_;
  std::size_t place_ = 0;
  std::vector<std::string> warnings_;
};

inline TranscribeOptions english() {
  TranscribeOptions options;
  options.language = "en";
  return options;
}

class EngineFixture : public ::testing::Test {
 protected:
  void use(FakeScript script, bool multilingual = true) {
    model = std::make_shared<FakeModel>(std::move(script), multilingual);
    transcriber = *Transcriber::create(model, {.pool = &pool, .isa = Isa::scalar});
  }
  Result<Transcript> run(std::vector<float> samples, const TranscribeOptions& options = english(),
                         const Callbacks& callbacks = {}) {
    TestAudio audio(std::move(samples));
    return transcriber->transcribe(audio, options, callbacks);
  }
  static bool has_warning(const Transcript& transcript, std::string_view kind) {
    for (const auto& warning : transcript.warnings) {
      if (warning.kind == kind) return true;
    }
    return false;
  }

  ThreadPool pool{1};
  std::shared_ptr<FakeModel> model;
  std::unique_ptr<Transcriber> transcriber;
};

}  // namespace oasr::engine

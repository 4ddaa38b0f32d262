#include "engine/mel_windows.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace oasr::engine {
namespace {

constexpr std::int64_t kHeldFrames = 12000;  // two minutes: 4 MB of frames
constexpr std::size_t kRead = 16000;         // samples
constexpr std::int64_t kMostAtOnce = 30 * 16000;  // samples that are read to be transformed together
constexpr int kTailFrames = 3;               // frames after the end that still see the recording
constexpr float kSilence = -10.0f;           // log10 of the energy of zeros

}  // namespace

MelWindows::MelWindows(AudioSource& audio, int n_mels, StopRequest stop, MelDevice* device)
    : audio_(&audio), n_mels_(n_mels), stop_(std::move(stop)), device_(device), stream_(n_mels, device) {}

Result<std::unique_ptr<WindowSource>> open_mel_windows(AudioSource& audio, int n_mels, StopRequest stop,
                                                       MelDevice* device) {
  auto windows = std::make_unique<MelWindows>(audio, n_mels, std::move(stop), device);
  if (audio.rewindable()) TRY(windows->find_maximum());
  return std::unique_ptr<WindowSource>(std::move(windows));
}

// As many reads as `wanted` samples take, but no more than are transformed together; none at the end of the audio.
Result<std::span<const float>> MelWindows::read(std::int64_t wanted) {
  wanted = std::min(wanted, kMostAtOnce);
  std::size_t size = 0;
  while (!read_all_ && static_cast<std::int64_t>(size) < wanted) {
    if (stop_ && stop_()) return unexpected(ErrorCode::cancelled, "the transcription was cancelled");
    chunk_.resize(std::max(chunk_.size(), size + kRead));
    const std::size_t count = TRY(audio_->read(std::span(chunk_).subspan(size, kRead)));
    read_all_ = count == 0;
    size += count;
  }
  return std::span<const float>(chunk_).first(size);
}

void MelWindows::push(std::span<const float> samples) {
  samples_ += static_cast<std::int64_t>(samples.size());
  stream_.push(samples, frames_);
  meter_.push(samples, levels_);
  heard_.insert(heard_.end(), samples.begin(), samples.end());
}

// Keeps the first two minutes. If there is more, goes through the rest for its maximum only and
// comes back to where the kept frames end.
Status MelWindows::find_maximum() {
  LogMelMaximum maximum(n_mels_, device_);
  while (samples_ < kHeldFrames * kWhisperHop) {
    const auto samples = TRY(read(kHeldFrames * kWhisperHop - samples_));
    if (samples.empty()) {
      end_of_audio();
      exact_ = true;
      return {};
    }
    maximum.push(samples);
    push(samples);
  }
  std::int64_t total = samples_;
  while (true) {
    const auto samples = TRY(read(kMostAtOnce));
    if (samples.empty()) break;
    maximum.push(samples);
    total += static_cast<std::int64_t>(samples.size());
  }
  maximum_ = maximum.finish();
  exact_ = true;
  total_samples_ = total;
  total_frames_ = total / kWhisperHop;
  TRY(audio_->rewind());
  read_all_ = false;
  return skip_samples(samples_);
}

Status MelWindows::skip_samples(std::int64_t count) {
  while (count > 0) {
    chunk_.resize(std::max(chunk_.size(), kRead));
    const auto size = std::min(kRead, static_cast<std::size_t>(count));
    const std::size_t read = TRY(audio_->read(std::span(chunk_).first(size)));
    if (read == 0) return {};  // shorter than before: the end is noticed by the next read
    count -= static_cast<std::int64_t>(read);
  }
  return {};
}

void MelWindows::end_of_audio() {
  if (ended_) return;
  ended_ = true;
  // Zeros after the end, so that the frames that reach back into the recording come out too.
  const std::vector<float> zeros(kTailFrames * kWhisperHop, 0.0f);
  stream_.push(zeros, frames_);
  stream_.finish(frames_);
  total_samples_ = samples_;
  total_frames_ = samples_ / kWhisperHop;
  meter_.finish(*total_frames_, levels_);
  if (!maximum_) maximum_ = stream_.max_value();
}

Status MelWindows::read_until(std::int64_t frame) {
  // A frame needs the 200 samples after its centre, a level 240.
  const std::int64_t needed = frame * kWhisperHop + 2 * kWhisperHop;
  while (!ended_ && samples_ < needed) {
    const auto samples = TRY(read(needed - samples_));
    if (samples.empty()) {
      end_of_audio();
      break;
    }
    push(samples);
  }
  return {};
}

Result<int> MelWindows::load(std::int64_t seek) {
  CHECK(seek >= seek_, "windows go forward");
  seek_ = seek;
  // Drops what is behind while reading on, so that a far seek does not pile frames up.
  for (std::int64_t next = first_ + kHeldFrames;; next += kHeldFrames) {
    const std::int64_t held = first_ + static_cast<std::int64_t>(levels_.size());
    const std::int64_t drop = std::clamp<std::int64_t>(seek - first_, 0, held - first_);
    frames_.erase(frames_.begin(), frames_.begin() + drop * n_mels_);
    levels_.erase(levels_.begin(), levels_.begin() + drop);
    heard_.erase(heard_.begin(), heard_.begin() + drop * kWhisperHop);
    first_ += drop;
    if (next >= seek + kWhisperFrames || ended_) break;
    TRY(read_until(next));
  }
  TRY(read_until(seek + kWhisperFrames));
  if (!loaded_) exact_ = exact_ || ended_;
  loaded_ = true;
  const std::int64_t held = first_ + static_cast<std::int64_t>(levels_.size());
  const std::int64_t left = std::clamp<std::int64_t>(held - seek, 0, kWhisperFrames);
  return static_cast<int>(left);
}

float MelWindows::maximum() const { return maximum_ ? *maximum_ : stream_.max_value(); }

void MelWindows::normalised(int frames, float padding, std::span<float> out) {
  const auto mels = static_cast<std::size_t>(n_mels_);
  CHECK(out.size() == mels * kWhisperFrames, "a window of 3000 frames");
  CHECK(first_ <= seek_, "the window is loaded");
  const auto begin = static_cast<std::size_t>(seek_ - first_) * mels;
  const auto count = static_cast<std::size_t>(frames);
  CHECK(begin + count * mels <= frames_.size(), "frames of the recording");
  const auto from = frames_.begin() + static_cast<std::ptrdiff_t>(begin);
  scratch_.assign(from, from + static_cast<std::ptrdiff_t>(count * mels));
  whisper_normalize(scratch_, maximum());
  for (std::size_t m = 0; m < mels; ++m) {
    float* row = out.data() + m * kWhisperFrames;
    for (std::size_t t = 0; t < count; ++t) row[t] = scratch_[t * mels + m];
    std::fill(row + count, row + kWhisperFrames, padding);
  }
}

void MelWindows::mel(int frames, std::span<float> out) { normalised(frames, 0.0f, out); }

void MelWindows::mel_with_silence(int frames, std::span<float> out) {
  float silence = kSilence;
  whisper_normalize({&silence, 1}, maximum());
  const auto held = static_cast<std::int64_t>(frames_.size()) / n_mels_ - (seek_ - first_);
  if (ended_ && frames < kWhisperFrames) {
    frames = static_cast<int>(std::min<std::int64_t>({frames + kTailFrames, held, kWhisperFrames}));
  }
  normalised(frames, silence, out);
}

std::span<const float> MelWindows::levels(int frames) const {
  return std::span(levels_).subspan(static_cast<std::size_t>(seek_ - first_),
                                    static_cast<std::size_t>(frames));
}

std::span<const float> MelWindows::audio(int frames) const {
  return std::span(heard_).subspan(static_cast<std::size_t>((seek_ - first_) * kWhisperHop),
                                   static_cast<std::size_t>(frames * kWhisperHop));
}

}  // namespace oasr::engine

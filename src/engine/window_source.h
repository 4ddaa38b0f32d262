// Where the windows of a recording come from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "audio/audio_source.h"
#include "base/result.h"

namespace oasr {
class MelDevice;  // features/mel_frames.h
}

namespace oasr::engine {

// Log-mel windows of 30 s, forward only. Frames are 10 ms of the audio that is decoded.
class WindowSource {
 public:
  virtual ~WindowSource() = default;

  // Makes the window at frame `seek` (not before the one loaded last) available and returns its
  // frames within the recording: 0 at the end, 3000 at most.
  virtual Result<int> load(std::int64_t seek) = 0;

  // The loaded window cut to `frames` and padded, [n_mels, 3000] row-major.
  virtual void mel(int frames, std::span<float> out) = 0;
  // The same, but padded with what silence after the recording gives, as the reference detects the
  // language.
  virtual void mel_with_silence(int frames, std::span<float> out) = 0;

  // Levels (level_meter.h) of the loaded window's first `frames` frames.
  virtual std::span<const float> levels(int frames) const = 0;

  // The samples (16 kHz) of the loaded window's first `frames` frames, 160 each.
  virtual std::span<const float> audio(int frames) const = 0;

  // Frames of the recording, when its end has been seen.
  virtual std::optional<std::int64_t> total_frames() const = 0;
  // Samples of the whole recording when the end has been seen, else those read so far.
  virtual std::int64_t samples() const = 0;
  // False when the normalisation could not know the whole recording: a pipe that goes on after the
  // first window.
  virtual bool exact_maximum() const = 0;
};

// Polled about once a second of audio; true ends with an Error `cancelled`.
using StopRequest = std::function<bool()>;

// Windows as transcribe() of the reference cuts them, in bounded memory: the floor and scaling use
// the maximum of the whole recording, and frames after its end are 0.0. A rewindable source of more
// than two minutes is read twice, first for the maximum; a shorter one is kept. A pipe is read once
// and uses the maximum so far. The source must outlive the result, as must `device`, which computes the frames;
// null: the processor does.
Result<std::unique_ptr<WindowSource>> open_mel_windows(AudioSource& audio, int n_mels, StopRequest stop,
                                                       MelDevice* device = nullptr);

// The one window of decode() of the reference: the samples are padded with zeros to 30 s. More than
// 30 s is an invalid_argument error.
Result<std::unique_ptr<WindowSource>> open_clip_window(AudioSource& audio, int n_mels, MelDevice* device = nullptr);

}  // namespace oasr::engine

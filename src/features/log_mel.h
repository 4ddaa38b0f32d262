// Whisper's log-mel spectrogram (reference/log-mel of openai-whisper).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/thread_pool.h"

namespace oasr {

inline constexpr int kWhisperSampleRate = 16000;
inline constexpr int kWhisperHop = 160;          // samples a frame: 10 ms
inline constexpr int kWhisperWindow = 400;       // samples of the Hann window and of the FFT
inline constexpr int kWhisperFrames = 3000;      // frames of a 30 s window

// Frames of mel energies as log10(max(energy, 1e-10)), before Whisper's floor and scaling, of a
// stream of samples. Frame t covers samples [160t - 200, 160t + 200); samples before the start
// are reflected; the end is finished by `finish`, which appends zeros (the transcribe() path) or
// nothing more than the caller pushed. Frames do not depend on the sizes of the pushes.
class LogMelStream {
 public:
  explicit LogMelStream(int n_mels);  // 80 or 128
  ~LogMelStream();
  LogMelStream(LogMelStream&&) noexcept;

  int n_mels() const;
  // Appends the frames that are complete to `frames`, [frames, n_mels] row-major.
  void push(std::span<const float> samples, std::vector<float>& frames);
  // Ends the stream as if 30 s of zeros followed and hands out floor(samples / 160) frames in all.
  void finish(std::vector<float>& frames);
  // max over all values handed out so far (log10 domain).
  float max_value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whisper's last step on log10 frames, in place: v = max(v, max_log10 - 8); v = (v + 4) / 4.
void whisper_normalize(std::span<float> frames, float max_log10);

// The decode() path for one clip: pads or trims to 30 s, gives mel [n_mels, 3000] row-major,
// normalised by the clip's own maximum.
std::vector<float> whisper_log_mel(std::span<const float> samples, int n_mels, ExecContext& context);

}  // namespace oasr

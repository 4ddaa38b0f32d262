// Whisper's log-mel spectrogram: 400-sample Hann window, hop 160, slaney mel filters, log10.
//
// Both paths of the reference are served. decode(): the clip is padded or trimmed to 30 s before
// the transform, and reflected at both ends (whisper_log_mel). transcribe(): 30 s of zeros follow
// the recording before the transform, which is then cut at the recording's end (LogMelStream).
//
// Every frame is computed by the same operations in the same order, whatever the sizes of the
// pushes and whichever frames are computed beside it: equal samples give equal bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace oasr {

class MelDevice;   // features/mel_frames.h
struct MelRecipe;

inline constexpr int kWhisperSampleRate = 16000;
inline constexpr int kWhisperHop = 160;      // samples a frame: 10 ms
inline constexpr int kWhisperWindow = 400;   // samples of the Hann window and of the FFT
inline constexpr int kWhisperFrames = 3000;  // frames of a 30 s window
inline constexpr int kWhisperSamples = kWhisperFrames * kWhisperHop;

// How a frame of Whisper's spectrogram is computed. n_mels: 80 or 128.
MelRecipe whisper_recipe(int n_mels);

// Mel energies as log10(max(energy, 1e-10)), before Whisper's floor and scaling, of a stream of
// samples (16 kHz, [-1, 1]). Frame t covers samples [160t - 200, 160t + 200); samples before the
// start are reflected about the first; after the last come zeros. Memory: the samples of one
// push. Not thread-safe.
class LogMelStream {
 public:
  // device: may be null; of whisper_recipe(n_mels), and outlives this.
  explicit LogMelStream(int n_mels, MelDevice* device = nullptr);
  ~LogMelStream();
  LogMelStream(LogMelStream&&) noexcept;
  LogMelStream& operator=(LogMelStream&&) noexcept;

  int n_mels() const;
  // Appends the frames that are complete to `frames`, [frames, n_mels] row-major.
  void push(std::span<const float> samples, std::vector<float>& frames);
  // Ends the stream as if 30 s of zeros followed; floor(samples / 160) frames in all are handed
  // out. Nothing may be pushed afterwards.
  void finish(std::vector<float>& frames);
  // The maximum (log10) over the frames so far, never below -10, the value of digital silence.
  // After finish() also over the frames that reach from the zeros into the recording and are not
  // handed out: the reference takes its maximum before it cuts.
  float max_value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// LogMelStream::max_value() of a whole recording, without its frames: on a processor a frame is transformed only
// if its energy allows it to raise the maximum (about one in ten on speech). Exactly equal.
class LogMelMaximum {
 public:
  explicit LogMelMaximum(int n_mels, MelDevice* device = nullptr);  // as of LogMelStream
  ~LogMelMaximum();
  LogMelMaximum(LogMelMaximum&&) noexcept;
  LogMelMaximum& operator=(LogMelMaximum&&) noexcept;

  void push(std::span<const float> samples);
  // Ends the recording and returns the maximum (log10). Nothing may be pushed afterwards.
  float finish();
  // How many frames were transformed so far.
  std::int64_t frames_transformed() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whisper's last step on log10 frames, in place: v = max(v, max_log10 - 8); v = (v + 4) / 4.
void whisper_normalize(std::span<float> frames, float max_log10);

// The decode() path for one clip: pads or trims to 30 s, gives mel [n_mels, 3000] row-major,
// normalised by the clip's own maximum. n_mels is 80 or 128.
std::vector<float> whisper_log_mel(std::span<const float> samples, int n_mels, MelDevice* device = nullptr);

}  // namespace oasr

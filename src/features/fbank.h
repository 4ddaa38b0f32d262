// Kaldi's log mel filterbank energies (fbank), as WeNet, icefall and FunASR models take them.
//
// A frame: its mean is subtracted, then x[i] - 0.97 · x[i - 1] (x[0] - 0.97 · x[0]), the window, zeros
// up to a power of two, the power spectrum without its last bin, triangles that are linear and equally
// wide on the HTK mel scale 1127 · ln(1 + f / 700), and ln(max(energy, 2⁻²³)). No dither.
//
// Every frame is computed by the same operations in the same order, whatever the sizes of the pushes
// and whichever frames are computed beside it: equal samples give equal bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/enum_table.h"
#include "base/result.h"

namespace oasr {

class MelDevice;   // features/mel_frames.h
struct MelRecipe;

// All symmetric: povey is (0.5 - 0.5 · cos)^0.85.
enum class FbankWindow : std::uint8_t { povey, hamming, hanning, rectangular };
std::span<const EnumName<FbankWindow>> fbank_window_names();

struct FbankOptions {
  int sample_rate = 16000;         // Hz
  int num_mel_bins = 80;
  double frame_length_ms = 25;
  double frame_shift_ms = 10;
  FbankWindow window = FbankWindow::povey;
  double low_hz = 20;              // where the first triangle starts
  double high_hz = 0;              // where the last ends; 0 or less: so far from half the rate
  float scale = 32768;             // of samples in [-1, 1): WeNet and FunASR 32768, icefall 1
  // Frames lie within the recording. Else frame t is centred at (t + 0.5) shifts, and the recording is
  // mirrored at its ends.
  bool snip_edges = true;
};

// How a frame is computed. Errors: those of Fbank::make().
Result<MelRecipe> fbank_recipe(const FbankOptions& options);

// Log mel energies of a stream of samples. Memory: the samples of one push. Not thread-safe.
class Fbank {
 public:
  // invalid_argument, with the option's name: a rate, length, shift or number of bins that is not
  // served, frequencies beyond half the rate or in the wrong order, so many bins that a triangle holds
  // no bin of the transform.
  // device: may be null; of fbank_recipe(options), and outlives this.
  static Result<Fbank> make(const FbankOptions& options, MelDevice* device = nullptr);
  ~Fbank();
  Fbank(Fbank&&) noexcept;
  Fbank& operator=(Fbank&&) noexcept;

  const FbankOptions& options() const;
  std::int64_t window_samples() const;
  std::int64_t shift_samples() const;
  // Frames of a recording of so many samples.
  std::int64_t frames(std::int64_t samples) const;

  // Appends the frames that are complete to `frames`, [frames, num_mel_bins] row-major.
  void push(std::span<const float> samples, std::vector<float>& frames);
  // Ends the recording: appends the frames that reach over its end (none with snip_edges) and starts
  // over.
  void finish(std::vector<float>& frames);

 private:
  struct State;
  explicit Fbank(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Samples as a recording of 16 bits holds them: the nearest multiple of 2⁻¹⁵, ties to even. Models whose
// features are of such recordings have never seen less noise than its rounding: bands that a change of rate
// leaves empty would otherwise be far below everything that they know.
void round_to_16_bits(std::span<float> samples);

// All frames of a recording: push() and finish().
Result<std::vector<float>> fbank(std::span<const float> samples, const FbankOptions& options,
                                 MelDevice* device = nullptr);

}  // namespace oasr

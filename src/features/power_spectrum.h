// Power spectra of four 400-sample frames at a time, one frame a SIMD lane.
#pragma once

#include <array>
#include <span>
#include <vector>

namespace oasr {

// Four floats, one of each frame. Operations act on the lanes separately, so a frame's bits do
// not depend on its neighbours.
using FrameLanes = float __attribute__((vector_size(16)));
inline constexpr int kFrameLanes = 4;

// |DFT|^2 of Hann-windowed frames (periodic window, 400 samples). Owns its work space: not
// thread-safe.
class PowerSpectrum {
 public:
  static constexpr int kSize = 400;
  static constexpr int kBins = kSize / 2 + 1;

  PowerSpectrum();

  // The powers of the bins 0 to 200 of four frames, each a pointer to 400 samples. Borrowed until
  // the next call.
  std::span<const FrameLanes, kBins> transform(const std::array<const float*, kFrameLanes>& frames);

  // The window, [400].
  std::span<const float> window() const { return window_; }

  struct Complex {
    FrameLanes re, im;
  };
  struct Twiddle {
    float re, im;
  };

 private:
  void load(const std::array<const float*, kFrameLanes>& frames);
  void fold();

  std::vector<float> window_;
  std::vector<Twiddle> roots_;       // exp(-2 pi i k / 400)
  std::vector<Complex> even_, odd_;  // two buffers that the passes go back and forth between
  std::array<FrameLanes, kBins> power_{};
};

}  // namespace oasr

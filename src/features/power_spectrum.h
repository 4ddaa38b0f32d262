// Power spectra of four short frames at a time, one frame a SIMD lane.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace oasr {

// Four floats, one of each frame. Operations act on the lanes separately, so a frame's bits do
// not depend on its neighbours.
using FrameLanes = float __attribute__((vector_size(16)));
inline constexpr int kFrameLanes = 4;

struct ComplexLanes {
  FrameLanes re, im;
};

// A root of unity.
struct Twiddle {
  float re, im;
};

// |DFT|^2 of Hann-windowed frames (periodic window) of `Size` samples: 400 (Whisper) or 256
// (Silero). Owns its work space: not thread-safe.
template <std::size_t Size>
class PowerSpectrum {
 public:
  static constexpr std::size_t kBins = Size / 2 + 1;

  PowerSpectrum();

  // The powers of the bins 0 to Size / 2 of four frames, each a pointer to `Size` samples.
  // Borrowed until the next call.
  std::span<const FrameLanes, kBins> transform(const std::array<const float*, kFrameLanes>& frames);

  // The window, [Size].
  std::span<const float> window() const { return window_; }

 private:
  void load(const std::array<const float*, kFrameLanes>& frames);
  void fold();

  std::vector<float> window_;
  std::vector<Twiddle> roots_;            // exp(-2 pi i k / Size)
  std::vector<ComplexLanes> even_, odd_;  // two buffers that the passes go back and forth between
  std::array<FrameLanes, kBins> power_{};
};

extern template class PowerSpectrum<400>;
extern template class PowerSpectrum<256>;

}  // namespace oasr

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

// |DFT|² of four real signals of one size: 400 or a power of two from 8. Owns its work space: not
// thread-safe.
class PowerTransform {
 public:
  explicit PowerTransform(std::size_t size);

  std::size_t size() const { return 2 * even_.size(); }
  // Sample `i` of the four signals. A transform overwrites all samples.
  void set(std::size_t i, FrameLanes value) { (i % 2 == 0 ? even_[i / 2].re : even_[i / 2].im) = value; }
  // The powers of the bins 0 to size / 2, borrowed until the next call.
  std::span<const FrameLanes> transform();

 private:
  void fold();

  std::vector<Twiddle> roots_;            // exp(-2 pi i k / size)
  std::vector<ComplexLanes> even_, odd_;  // two buffers that the passes go back and forth between
  std::vector<FrameLanes> power_;
};

// |DFT|² of Hann-windowed frames (periodic window) of `Size` samples: 400 (Whisper) or 256 (Silero).
// Not thread-safe.
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
  std::vector<float> window_;
  PowerTransform transform_;
};

extern template class PowerSpectrum<400>;
extern template class PowerSpectrum<256>;

}  // namespace oasr

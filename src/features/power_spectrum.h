// Power spectra of four short frames at a time, one frame a SIMD lane.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "features/fourier.h"

namespace oasr {

// Four floats, one of each frame.
using FrameLanes = float __attribute__((vector_size(16)));
inline constexpr int kFrameLanes = 4;

// exp(-2 pi i k / size), k below size.
std::vector<fourier::Twiddle> roots_of_unity(std::size_t size);

// The sizes of a real transform whose passes transform.h has: 400, and powers of two from 8.
bool is_transform_size(std::size_t size);

// |DFT|² of Hann-windowed frames (periodic window) of `size` samples. Owns its work space: not thread-safe.
class PowerSpectrum {
 public:
  explicit PowerSpectrum(std::size_t size);

  // The powers of the bins 0 to size / 2 of four frames, each a pointer to `size` samples.
  // Borrowed until the next call.
  std::span<const FrameLanes> transform(const std::array<const float*, kFrameLanes>& frames);

 private:
  std::vector<float> window_;
  std::vector<fourier::Twiddle> roots_;
  std::vector<fourier::Complex<FrameLanes>> even_, odd_;  // that the passes go back and forth between
  std::vector<FrameLanes> power_;
};

// The periodic Hann window.
std::vector<float> hann_window(std::size_t size);

}  // namespace oasr

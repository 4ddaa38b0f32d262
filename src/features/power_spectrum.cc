#include "features/power_spectrum.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "features/fourier_lanes.h"

namespace oasr {

std::vector<fourier::Twiddle> roots_of_unity(std::size_t size) {
  std::vector<fourier::Twiddle> roots(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size);
    roots[i] = {static_cast<float>(std::cos(angle)), static_cast<float>(-std::sin(angle))};
  }
  return roots;
}

bool is_transform_size(std::size_t size) { return size == 400 || (size >= 8 && std::has_single_bit(size)); }

std::vector<float> hann_window(std::size_t size) {
  std::vector<float> window(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size);
    window[i] = static_cast<float>(0.5 - 0.5 * std::cos(angle));
  }
  return window;
}

PowerSpectrum::PowerSpectrum(std::size_t size)
    : window_(hann_window(size)),
      roots_(roots_of_unity(size)),
      even_(size / 2),
      odd_(size / 2),
      power_(size / 2 + 1) {
  CHECK(is_transform_size(size), "a size that the passes divide");
}

std::span<const FrameLanes> PowerSpectrum::transform(const std::array<const float*, kFrameLanes>& frames) {
  for (std::size_t i = 0; i < window_.size(); ++i) {
    const FrameLanes value = FrameLanes{frames[0][i], frames[1][i], frames[2][i], frames[3][i]} * window_[i];
    (i % 2 == 0 ? even_[i / 2].re : even_[i / 2].im) = value;
  }
  power_transform(even_.data(), odd_.data(), static_cast<unsigned>(even_.size()), roots_.data(),
                  power_.data());
  return power_;
}

}  // namespace oasr

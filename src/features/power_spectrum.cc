#include "features/power_spectrum.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"

namespace oasr {
namespace {

using Complex = ComplexLanes;

inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator*(Complex a, Twiddle w) {
  return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}
inline Complex scaled(Complex a, float c) { return {a.re * c, a.im * c}; }
inline Complex times_minus_i(Complex a) { return {a.im, -a.re}; }

// In-place DFTs of 2, 4 and 5 points.
inline void dft(std::array<Complex, 2>& v) { v = {v[0] + v[1], v[0] - v[1]}; }

inline void dft(std::array<Complex, 4>& v) {
  const Complex a = v[0] + v[2], b = v[0] - v[2];
  const Complex c = v[1] + v[3], d = times_minus_i(v[1] - v[3]);
  v = {a + c, b + d, a - c, b - d};
}

inline void dft(std::array<Complex, 5>& v) {
  constexpr float kCos1 = 0.30901699437494742f, kCos2 = -0.80901699437494742f;
  constexpr float kSin1 = 0.95105651629515357f, kSin2 = 0.58778525229247313f;
  const Complex s1 = v[1] + v[4], d1 = v[1] - v[4];
  const Complex s2 = v[2] + v[3], d2 = v[2] - v[3];
  const Complex a1 = v[0] + (scaled(s1, kCos1) + scaled(s2, kCos2));
  const Complex a2 = v[0] + (scaled(s1, kCos2) + scaled(s2, kCos1));
  const Complex b1 = times_minus_i(scaled(d1, kSin1) + scaled(d2, kSin2));
  const Complex b2 = times_minus_i(scaled(d1, kSin2) - scaled(d2, kSin1));
  v = {v[0] + (s1 + s2), a1 + b1, a2 + b2, a2 - b2, a1 - b1};
}

// One Stockham pass: `stride` interleaved transforms of `size` points become Radix times as many
// of size / Radix points, in order (no bit reversal). `roots` are all of some multiple of size.
template <std::size_t Radix>
void pass(const std::vector<Complex>& in, std::vector<Complex>& out, std::size_t size,
          std::size_t stride, const std::vector<Twiddle>& roots) {
  const std::size_t part = size / Radix;
  const std::size_t root_step = roots.size() / size;
  for (std::size_t p = 0; p < part; ++p) {
    for (std::size_t q = 0; q < stride; ++q) {
      std::array<Complex, Radix> v;
      for (std::size_t j = 0; j < Radix; ++j) v[j] = in[q + stride * (p + part * j)];
      dft(v);
      Complex* to = &out[q + stride * Radix * p];
      to[0] = v[0];
      for (std::size_t j = 1; j < Radix; ++j) to[stride * j] = v[j] * roots[root_step * j * p];
    }
  }
}

}  // namespace

// A real transform is a complex one of half the size over (even, odd) samples and a fold.
PowerTransform::PowerTransform(std::size_t size)
    : roots_(size), even_(size / 2), odd_(size / 2), power_(size / 2 + 1) {
  CHECK(size == 400 || (size >= 8 && std::has_single_bit(size)), "a size that the passes divide");
  for (std::size_t i = 0; i < size; ++i) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size);
    roots_[i] = {static_cast<float>(std::cos(angle)), static_cast<float>(-std::sin(angle))};
  }
}

std::span<const FrameLanes> PowerTransform::transform() {
  std::size_t stride = 1;
  for (std::size_t size = even_.size(); size > 1;) {
    const std::size_t radix = size % 4 == 0 ? 4 : (size % 5 == 0 ? 5 : 2);
    if (radix == 4) pass<4>(even_, odd_, size, stride, roots_);
    if (radix == 5) pass<5>(even_, odd_, size, stride, roots_);
    if (radix == 2) pass<2>(even_, odd_, size, stride, roots_);
    std::swap(even_, odd_);
    size /= radix;
    stride *= radix;
  }
  fold();
  return power_;
}

// Bins k and H - k of the real transform from the same bins of the complex one of size H:
// E = (Z[k] + conj Z[H-k]) / 2, O = -i (Z[k] - conj Z[H-k]) / 2, X[k] = E + w^k O and
// X[H-k] = conj(E - w^k O).
void PowerTransform::fold() {
  const std::size_t half = even_.size();
  const auto power = [](Complex x) { return x.re * x.re + x.im * x.im; };
  const FrameLanes dc = even_[0].re + even_[0].im, nyquist = even_[0].re - even_[0].im;
  power_[0] = dc * dc;
  power_[half] = nyquist * nyquist;
  for (std::size_t k = 1; k <= half / 2; ++k) {
    const Complex z = even_[k], mirror = {even_[half - k].re, -even_[half - k].im};
    const Complex e = scaled(z + mirror, 0.5f);
    const Complex o = scaled(times_minus_i(z - mirror), 0.5f) * roots_[k];
    power_[k] = power(e + o);
    power_[half - k] = power(e - o);
  }
}

template <std::size_t Size>
PowerSpectrum<Size>::PowerSpectrum() : window_(Size), transform_(Size) {
  for (std::size_t i = 0; i < Size; ++i) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(i) / Size;
    window_[i] = static_cast<float>(0.5 - 0.5 * std::cos(angle));
  }
}

template <std::size_t Size>
auto PowerSpectrum<Size>::transform(const std::array<const float*, kFrameLanes>& frames)
    -> std::span<const FrameLanes, kBins> {
  for (std::size_t i = 0; i < Size; ++i) {
    transform_.set(i, FrameLanes{frames[0][i], frames[1][i], frames[2][i], frames[3][i]} * window_[i]);
  }
  return transform_.transform().template first<kBins>();
}

template class PowerSpectrum<400>;
template class PowerSpectrum<256>;

}  // namespace oasr

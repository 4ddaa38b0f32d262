// The arithmetic of power spectra, written once for one frame or several side by side, on processors and
// GPUs.
//
// V is a float, or a vector of floats, one of each frame: operations act on the lanes separately, so a
// frame's bits do not depend on its neighbours. Every operation is one IEEE addition, subtraction or
// multiplication (nothing is built with contraction). constexpr makes the functions callable on a GPU.
#pragma once

namespace oasr::fourier {

template <class V>
struct alignas(alignof(V) < 8 ? 8 : alignof(V)) Complex {
  V re, im;
};

// A root of unity.
struct alignas(8) Twiddle {
  float re, im;
};

#define OASR_STEP [[gnu::always_inline]] constexpr

template <class V>
OASR_STEP Complex<V> operator+(const Complex<V>& a, const Complex<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
OASR_STEP Complex<V> operator-(const Complex<V>& a, const Complex<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V>
OASR_STEP Complex<V> operator*(const Complex<V>& a, Twiddle w) {
  return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}
template <class V>
OASR_STEP Complex<V> scaled(const Complex<V>& a, float c) {
  return {a.re * c, a.im * c};
}
template <class V>
OASR_STEP Complex<V> times_minus_i(const Complex<V>& a) {
  return {a.im, -a.re};
}
template <class V>
OASR_STEP V power(const Complex<V>& a) {
  return a.re * a.re + a.im * a.im;
}

// In-place DFTs of 2, 4 and 5 points.
template <class V>
OASR_STEP void dft(Complex<V> (&v)[2]) {
  const Complex<V> a = v[0], b = v[1];
  v[0] = a + b;
  v[1] = a - b;
}
template <class V>
OASR_STEP void dft(Complex<V> (&v)[4]) {
  const Complex<V> a = v[0] + v[2], b = v[0] - v[2];
  const Complex<V> c = v[1] + v[3], d = times_minus_i(v[1] - v[3]);
  v[0] = a + c;
  v[1] = b + d;
  v[2] = a - c;
  v[3] = b - d;
}
template <class V>
OASR_STEP void dft(Complex<V> (&v)[5]) {
  constexpr float kCos1 = 0.30901699437494742f, kCos2 = -0.80901699437494742f;
  constexpr float kSin1 = 0.95105651629515357f, kSin2 = 0.58778525229247313f;
  const Complex<V> s1 = v[1] + v[4], d1 = v[1] - v[4];
  const Complex<V> s2 = v[2] + v[3], d2 = v[2] - v[3];
  const Complex<V> a1 = v[0] + (scaled(s1, kCos1) + scaled(s2, kCos2));
  const Complex<V> a2 = v[0] + (scaled(s1, kCos2) + scaled(s2, kCos1));
  const Complex<V> b1 = times_minus_i(scaled(d1, kSin1) + scaled(d2, kSin2));
  const Complex<V> b2 = times_minus_i(scaled(d1, kSin2) - scaled(d2, kSin1));
  v[0] = v[0] + (s1 + s2);
  v[1] = a1 + b1;
  v[2] = a2 + b2;
  v[3] = a2 - b2;
  v[4] = a1 - b1;
}

// A Stockham pass: `stride` interleaved transforms of `size` points become Radix times as many of size /
// Radix points, in order (no bit reversal). One pass after the other, with the radix of radix_of(), until
// size is 1.
struct Pass {
  unsigned size, stride;
  unsigned roots;  // how many there are: some multiple of size
};
template <class V>
OASR_STEP unsigned radix_of(V size) {
  return size % 4 == 0 ? 4 : (size % 5 == 0 ? 5 : 2);
}

// The butterfly (p, q) of a pass, p below size / Radix, q below stride. `in` and `out` do not overlap.
template <unsigned Radix, class V>
OASR_STEP void butterfly(const Complex<V>* in, Complex<V>* out, const Pass& pass, unsigned p, unsigned q,
                         const Twiddle* roots) {
  const unsigned part = pass.size / Radix, root_step = pass.roots / pass.size * p;
  Complex<V> v[Radix];
  for (unsigned j = 0; j < Radix; ++j) v[j] = in[q + pass.stride * (p + part * j)];
  dft(v);
  Complex<V>* to = out + q + pass.stride * Radix * p;
  to[0] = v[0];
  for (unsigned j = 1; j < Radix; ++j) to[pass.stride * j] = v[j] * roots[root_step * j];
}

// The power of the bins k and H - k, 1 <= k <= H / 2, of a real transform of 2 H points, from the transform
// of the H pairs (even, odd) of its samples: E = (Z[k] + conj Z[H-k]) / 2, O = -i (Z[k] - conj Z[H-k]) / 2,
// X[k] = E + w^k O and X[H-k] = conj(E - w^k O).
template <class V>
OASR_STEP void fold(const Complex<V>* in, unsigned half, unsigned k, const Twiddle* roots, V* out) {
  const Complex<V> z = in[k], mirror = {in[half - k].re, -in[half - k].im};
  const Complex<V> e = scaled(z + mirror, 0.5f);
  const Complex<V> o = scaled(times_minus_i(z - mirror), 0.5f) * roots[k];
  out[k] = power(e + o);
  out[half - k] = power(e - o);
}
// And of the bins 0 and H.
template <class V>
OASR_STEP void fold_ends(const Complex<V>* in, unsigned half, V* out) {
  const V dc = in[0].re + in[0].im, nyquist = in[0].re - in[0].im;
  out[0] = dc * dc;
  out[half] = nyquist * nyquist;
}

#undef OASR_STEP

}  // namespace oasr::fourier

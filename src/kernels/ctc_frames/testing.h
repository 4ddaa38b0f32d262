// For the tests of ctc_frames() on the host and on a GPU: rows with all that can go wrong, and results to compare.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/ctc_frames/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {

// Rows of several utterances, `gap` numbers apart.
struct CtcCase {
  std::int64_t vocabulary = 0, gap = 0;
  int width = 1;
  TokenId blank = 0;
  std::vector<std::int64_t> pieces;
  std::vector<std::vector<TokenId>> before;  // of each piece, perhaps none
  std::vector<float> logits;

  std::int64_t rows() const {
    std::int64_t all = 0;
    for (const std::int64_t piece : pieces) all += piece;
    return all;
  }
  std::int64_t stride() const { return vocabulary + gap; }
  std::int64_t floats() const { return CtcFrameRows::floats(rows(), width); }
  std::string name() const { return "vocabulary " + std::to_string(vocabulary) + " width " + std::to_string(width); }

  // `x` and `out` are memory for the logits and the results.
  template <class F>
  void with_arguments(float* x, float* out, const F& f) const {
    std::vector<CtcPiece> list;
    for (std::size_t i = 0; i < pieces.size(); ++i) list.push_back({pieces[i], before[i]});
    f(CtcFramesArgs{.logits = {x, rows(), vocabulary, stride()},
                    .blank = blank,
                    .width = width,
                    .pieces = list,
                    .out = CtcFrameRows(out, rows(), width)});
  }
};

inline CtcCase ctc_case(std::int64_t vocabulary, int width, unsigned seed) {
  CtcCase made{.vocabulary = vocabulary, .gap = seed % 3, .width = width,
               .blank = static_cast<TokenId>(seed % vocabulary), .pieces = {1, 40, 3, 1, 17}, .before = {}, .logits = {}};
  for (std::size_t i = 0; i < made.pieces.size(); ++i) {
    auto& tokens = made.before.emplace_back();
    for (int k = 0; i % 2 == 1 && k < width; ++k) tokens.push_back(static_cast<TokenId>((seed + 7 * k) % vocabulary));
  }
  made.logits = random_floats(made.rows() * made.stride(), seed, seed % 2 == 0 ? 12.0f : 3.0f);
  const auto row = [&](std::int64_t m) { return std::span(made.logits).subspan(static_cast<std::size_t>(m * made.stride())); };
  const auto size = static_cast<std::size_t>(vocabulary);
  for (float& x : row(5).first(size)) x = std::nearbyint(x);                 // equals
  for (float& x : row(6).first(size)) x = 100.0f + x * 0x1p-24f;             // equals only after the subtraction
  for (float& x : row(7).first(size)) x = 0.25f;                             // all of them
  for (float& x : row(8).first(size)) x *= 1e-40f;                           // subnormal
  for (float& x : row(9).first(size)) x = x > 0 ? 0.0f : -0.0f;
  for (float& x : row(10).first(size)) x *= 40.0f;                           // most of no weight at all
  row(11)[size - 1] = 3e38f;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  row(13)[size / 2] = std::nanf("");
  row(20)[size - 1] = kInf;
  row(30)[0] = -kInf;
  row(32)[0] = 3e38f;                                                        // finite, but the difference is not
  row(32)[size - 1] = -3e38f;
  row(made.rows() - 1)[size - 1] = std::nanf("");
  return made;
}

inline std::vector<CtcCase> ctc_cases() {
  std::vector<CtcCase> all;
  unsigned seed = 1;
  for (const std::int64_t vocabulary : {1, 2, 7, 8, 9, 63, 64, 65, 130, 257, 500, 2049, 5000, 5002}) {
    for (const int width : {1, 2, 10, 64, 200}) {
      const bool slow = width * vocabulary > 200'000;  // for the reference
      if (width <= vocabulary && !slow) all.push_back(ctc_case(vocabulary, width, seed++));
    }
  }
  return all;
}

// What `got` says otherwise than `want`; empty: nothing.
inline std::string difference(const CtcCase& test, std::vector<float> got, std::vector<float> want) {
  const CtcFrameRows a(got.data(), test.rows(), test.width), b(want.data(), test.rows(), test.width);
  for (std::int64_t m = 0; m < test.rows(); ++m) {
    const std::string row = " of row " + std::to_string(m) + ", " + test.name();
    if (!same_bits(a.norms[m], b.norms[m])) return "the norm" + row;
    if (!same_bits(a.blanks[m], b.blanks[m])) return "the blank" + row;
    for (std::int64_t k = m * test.width; k < (m + 1) * test.width; ++k) {
      if (a.likeliest[k].token != b.likeliest[k].token) return "a token" + row;
      if (!same_bits(a.likeliest[k].logit, b.likeliest[k].logit)) return "a log-probability" + row;
      if (!same_bits(a.again[k], b.again[k])) return "a token of the row before" + row;
    }
  }
  return {};
}

inline std::vector<float> reference_of(const CtcCase& test) {
  std::vector<float> x = test.logits, out(static_cast<std::size_t>(test.floats()));
  test.with_arguments(x.data(), out.data(), [](const CtcFramesArgs& args) { ctc_frames_reference(args); });
  return out;
}

}  // namespace oasr::kernels

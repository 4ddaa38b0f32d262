// For tests: rows of log-probabilities.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "decode/ctc_frames.h"
#include "decode/ctc_scores.h"
#include "decode/log_math.h"
#include "decode/random.h"
#include "decode/scores.h"

namespace oasr::decode {

// Frames with memory of their own.
struct CtcReduced {
  std::vector<ScoredToken> likeliest;
  std::vector<float> again, blanks;
  int width = 0, vocabulary = 0;

  operator CtcFrames() const {  // NOLINT: what searches take
    return {.frames = static_cast<int>(blanks.size()), .width = width, .vocabulary = vocabulary, .blank = 0,
            .likeliest = likeliest, .again = again, .blanks = blanks};
  }
};

struct CtcRows {
  std::vector<float> values;
  int vocabulary = 0;

  int frames() const { return static_cast<int>(values.size()) / vocabulary; }
  CtcScores piece(int begin, int end) const {
    const auto width = static_cast<std::size_t>(vocabulary);
    return {std::span(values).subspan(static_cast<std::size_t>(begin) * width,
                                      static_cast<std::size_t>(end - begin) * width),
            end - begin, vocabulary, 0};
  }
  CtcScores all() const { return piece(0, frames()); }

  // The `width` likeliest tokens of the frames from `begin` to `end`; 0: all.
  CtcReduced reduced(int begin, int end, int width = 0) const {
    CtcReduced made{.likeliest = {}, .again = {}, .blanks = {}, .width = width > 0 ? width : vocabulary,
                    .vocabulary = vocabulary};
    const CtcScores rows = all();
    std::vector<ScoredToken> now, before;
    const auto likeliest = [&](int frame, std::vector<ScoredToken>& tokens) {
      top_k(rows.row(frame), made.width, tokens);
      tokens.resize(static_cast<std::size_t>(made.width), {0, -std::numeric_limits<float>::infinity()});
    };
    before.resize(static_cast<std::size_t>(made.width));
    if (begin > 0) likeliest(begin - 1, before);
    for (int t = begin; t < end; ++t) {
      likeliest(t, now);
      made.likeliest.insert(made.likeliest.end(), now.begin(), now.end());
      for (const ScoredToken& token : before) made.again.push_back(rows.row(t)[static_cast<std::size_t>(token.token)]);
      made.blanks.push_back(rows.row(t)[0]);
      before.swap(now);
    }
    return made;
  }
  CtcReduced reduced() const { return reduced(0, frames()); }
};

// Log-probabilities of the given probabilities.
inline CtcRows rows_of(std::initializer_list<std::vector<double>> probabilities) {
  CtcRows rows;
  for (const auto& row : probabilities) {
    rows.vocabulary = static_cast<int>(row.size());
    for (const double p : row) rows.values.push_back(static_cast<float>(std::log(p)));
  }
  return rows;
}

// Normalised rows from logits in [-spread, spread]; the blank has `blank_bonus` more.
inline CtcRows random_rows(std::uint64_t seed, int frames, int vocabulary, double spread,
                           double blank_bonus = 0) {
  CtcRows rows;
  rows.vocabulary = vocabulary;
  std::uint64_t state = mix64(seed);
  for (int t = 0; t < frames; ++t) {
    std::vector<double> logits;
    double sum = 0;
    for (int v = 0; v < vocabulary; ++v) {
      state = mix64(state);
      const double u = static_cast<double>(state >> 11) * 0x1.0p-53;
      logits.push_back((2 * u - 1) * spread + (v == 0 ? blank_bonus : 0));
      sum += std::exp(logits.back());
    }
    for (const double logit : logits) {
      rows.values.push_back(static_cast<float>(logit - std::log(sum)));
    }
  }
  return rows;
}

// Log-probability of every sequence, by going through all V^T alignments.
inline std::map<std::vector<TokenId>, double> enumerate(const CtcRows& rows) {
  std::map<std::vector<TokenId>, double> sums;
  const int frames = rows.frames(), vocabulary = rows.vocabulary;
  long paths = 1;
  for (int t = 0; t < frames; ++t) paths *= vocabulary;
  for (long path = 0; path < paths; ++path) {
    std::vector<TokenId> tokens;
    double score = 0;
    long rest = path;
    TokenId last = 0;
    for (int t = 0; t < frames; ++t, rest /= vocabulary) {
      const auto token = static_cast<TokenId>(rest % vocabulary);
      score += double{rows.values[static_cast<std::size_t>(t * vocabulary + token)]};
      if (token != 0 && token != last) tokens.push_back(token);
      last = token;
    }
    const auto [place, fresh] = sums.try_emplace(tokens, score);
    if (!fresh) place->second = log_add(place->second, score);
  }
  return sums;
}

}  // namespace oasr::decode

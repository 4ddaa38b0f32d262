// For the tests of ctc_prefix_beam() on a GPU and of its source on the host: utterances, and what the search of decode
// makes of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "decode/ctc_testing.h"
#include "kernels/ctc_beam/op.h"

namespace oasr::kernels {

struct CtcBeamCase {
  std::vector<decode::CtcRows> utterances;  // of one vocabulary
  int first_beam = 10, second_beam = 10;
  double blank_skip = 2;

  int vocabulary() const { return utterances.front().vocabulary; }
  std::int64_t rows() const {
    std::int64_t all = 0;
    for (const auto& utterance : utterances) all += utterance.frames();
    return all;
  }
  std::vector<CtcBeamUtterance> places() const {
    std::vector<CtcBeamUtterance> all;
    std::int32_t first = 0;
    for (const auto& utterance : utterances) {
      all.push_back({first, utterance.frames()});
      first += utterance.frames();
    }
    return all;
  }
  std::int64_t memory_floats() const {
    return CtcBeamMemory::floats(rows(), static_cast<std::int64_t>(utterances.size()), second_beam);
  }

  // As ctc_frames() leaves them, a token more than the beam needs where there is one.
  int width() const { return std::min(first_beam + 1, vocabulary()); }
  std::vector<float> frames() const {
    std::vector<float> memory(static_cast<std::size_t>(CtcFrameRows::floats(rows(), width())));
    CtcFrameRows out(memory.data(), rows(), width());
    for (const auto& utterance : utterances) {
      const decode::CtcReduced made = utterance.reduced(0, utterance.frames(), width());
      out.likeliest = std::ranges::copy(made.likeliest, out.likeliest).out;
      out.again = std::ranges::copy(made.again, out.again).out;
      out.blanks = std::ranges::copy(made.blanks, out.blanks).out;
    }
    return memory;
  }
  CtcBeamArgs arguments(float* frames, float* memory, std::span<const CtcBeamUtterance> places) const {
    return {.frames = CtcFrameRows(frames, rows(), width()),
            .rows = rows(),
            .width = width(),
            .blank = 0,
            .first_beam = first_beam,
            .second_beam = second_beam,
            .blank_skip = blank_skip,
            .utterances = places,
            .memory = CtcBeamMemory(memory, rows(), static_cast<std::int64_t>(places.size()), second_beam)};
  }

  std::vector<decode::CtcHypothesis> expected(const decode::CtcRows& utterance) const {
    decode::CtcBeamOptions options{.vocabulary = vocabulary(), .first_beam = first_beam, .second_beam = second_beam};
    if (blank_skip <= 1) options.blank_skip = blank_skip;
    auto search = decode::CtcPrefixBeam::make(options).value();
    search.accept(utterance.reduced());
    return search.results();
  }
  std::string name() const {
    return "vocabulary " + std::to_string(vocabulary()) + " beams " + std::to_string(first_beam) + ", " +
           std::to_string(second_beam);
  }
  // `memory`: after the search, on the host.
  void expect_the_hypotheses(std::vector<float> memory, const std::string& how) const {
    const auto all = places();
    const CtcBeamMemory read(memory.data(), rows(), static_cast<std::int64_t>(all.size()), second_beam);
    for (std::size_t u = 0; u < all.size(); ++u) {
      const auto got = ctc_hypotheses(read, second_beam, static_cast<std::int64_t>(u), all[u]);
      const auto want = expected(utterances[u]);
      ASSERT_EQ(got.size(), want.size()) << name() << how << " utterance " << u;
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(got[i].tokens, want[i].tokens) << name() << how << " utterance " << u << " hypothesis " << i;
        ASSERT_EQ(got[i].score, want[i].score) << name() << how << " utterance " << u << " hypothesis " << i;
        ASSERT_EQ(got[i].ctc_score, want[i].ctc_score);
      }
      for (int i = 0; i < second_beam; ++i) {  // all of the memory is written
        const std::int32_t length = read.results[static_cast<int>(u) * second_beam + i].length;
        const CtcBeamToken* tokens = read.tokens + std::int64_t{second_beam} * all[u].first_row + std::int64_t{i} * all[u].frames;
        for (std::int32_t k = std::max(length, 0); k < all[u].frames; ++k) {
          ASSERT_TRUE(tokens[k].token == 0 && tokens[k].frame == 0 && tokens[k].log_probability == 0) << name() << how;
        }
      }
    }
  }
};

// Small vocabularies, where prefixes come about in many ways, are pruned and come back; rows with equals; clear rows
// and rows that say little; tokens of no probability.
inline std::vector<CtcBeamCase> ctc_beam_cases() {
  std::vector<CtcBeamCase> all;
  std::uint64_t seed = 1;
  constexpr std::pair<int, int> kBeams[] = {{1, 1}, {10, 10}, {3, 7}, {12, 4}, {32, 32}};
  for (const int vocabulary : {1, 2, 3, 5, 12, 60, 700}) {
    for (const auto& [first, second] : kBeams) {
      CtcBeamCase made{.utterances = {}, .first_beam = std::min(first, vocabulary), .second_beam = second};
      for (const int frames : {1, 2, 70}) {
        const double spread = seed % 3 == 0 ? 1 : 6, bonus = seed % 2 == 0 ? 4 : 0;
        auto& rows = made.utterances.emplace_back(decode::random_rows(seed++, frames, vocabulary, spread, bonus));
        if (seed % 4 == 0) {
          for (float& value : rows.values) value = std::nearbyint(value);
        }
        if (seed % 5 == 0) {
          for (std::size_t i = 0; i < rows.values.size(); i += 3) rows.values[i] = static_cast<float>(decode::kLogZero);
        }
      }
      if (seed % 3 == 1) made.blank_skip = 0.7;
      all.push_back(std::move(made));
    }
  }
  return all;
}

}  // namespace oasr::kernels

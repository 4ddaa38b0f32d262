#include "decode/alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "decode/random.h"

namespace oasr::decode {
namespace {

std::vector<float> random_values(std::size_t size, std::uint64_t seed) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(uniform({seed, 0, 0, 0, static_cast<std::uint32_t>(i)}));
  }
  return values;
}

double best_path(std::span<const float> scores, int tokens, int frames) {
  const std::function<double(int, int)> from = [&](int token, int frame) -> double {
    const double here = scores[static_cast<std::size_t>(token * frames + frame)];
    if (token == tokens - 1 && frame == frames - 1) return here;
    double best = -1e30;
    if (token + 1 < tokens) best = std::max(best, from(token + 1, frame));
    if (frame + 1 < frames) best = std::max(best, from(token, frame + 1));
    if (token + 1 < tokens && frame + 1 < frames) best = std::max(best, from(token + 1, frame + 1));
    return here + best;
  };
  return from(0, 0);
}

TEST(Warp, FindsTheBestMonotonicPath) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const int tokens = 1 + static_cast<int>(seed % 5), frames = 1 + static_cast<int>(seed % 7);
    auto scores = random_values(static_cast<std::size_t>(tokens * frames), seed);
    for (float& x : scores) x -= 0.5f;  // costs of both signs
    const auto path = warp(scores, tokens, frames);
    ASSERT_EQ(path.tokens.size(), path.frames.size());
    EXPECT_EQ(path.tokens.front() + path.frames.front(), 0);
    EXPECT_EQ(path.tokens.back(), tokens - 1);
    EXPECT_EQ(path.frames.back(), frames - 1);
    double sum = 0;
    for (std::size_t i = 0; i < path.tokens.size(); ++i) {
      sum += scores[static_cast<std::size_t>(path.tokens[i] * frames + path.frames[i])];
      if (i == 0) continue;
      const int down = path.tokens[i] - path.tokens[i - 1],
                right = path.frames[i] - path.frames[i - 1];
      EXPECT_TRUE(down >= 0 && down <= 1 && right >= 0 && right <= 1 && down + right >= 1);
    }
    EXPECT_NEAR(sum, best_path(scores, tokens, frames), 1e-5);
  }
}

TEST(Warp, GivesTheFirstFrameOfEveryToken) {
  // Three tokens on frames 0-1, 2, 3-4.
  std::vector<float> scores(15, -0.5f);
  for (const int cell : {0, 1, 5 + 2, 10 + 3, 10 + 4}) scores[static_cast<std::size_t>(cell)] = 1;
  EXPECT_EQ(first_frames(warp(scores, 3, 5), 3), (std::vector<int>{0, 2, 3}));
}

TEST(AlignmentMatrix, StandardisesOverTokensAndAveragesHeads) {
  constexpr int kHeads = 2, kTokens = 3, kFrames = 4;
  const auto values = random_values(kHeads * kTokens * kFrames, 1);
  const auto matrix =
      alignment_matrix({values, kHeads, kTokens, kFrames}, 3);  // no median: 3 frames
  ASSERT_EQ(matrix.size(), 9u);
  for (int t = 0; t < 3; ++t) {
    double sum = 0;
    for (int token = 0; token < kTokens; ++token)
      sum += matrix[static_cast<std::size_t>(token * 3 + t)];
    EXPECT_NEAR(sum, 0, 1e-6);
  }
  // By hand for one cell.
  double expected = 0;
  for (int head = 0; head < kHeads; ++head) {
    std::vector<double> column;
    for (int token = 0; token < kTokens; ++token) {
      const float* row = values.data() + (head * kTokens + token) * kFrames;
      column.push_back(row[1] / (double{row[0]} + row[1] + row[2]));
    }
    const double mean = (column[0] + column[1] + column[2]) / 3;
    double squares = 0;
    for (const double x : column) squares += (x - mean) * (x - mean);
    expected += (column[2] - mean) / std::sqrt(squares / 3) / kHeads;
  }
  EXPECT_NEAR(matrix[2 * 3 + 1], expected, 1e-6);
}

TEST(AlignmentMatrix, TakesTheMedianOfSevenFrames) {
  // Two tokens: standardised values are +1 and -1 everywhere, so the median is the majority's.
  constexpr int kFrames = 9;
  std::vector<float> values(2 * kFrames);
  for (int t = 0; t < kFrames; ++t) {
    const bool first = t < 2 || t == 5;
    values[static_cast<std::size_t>(t)] = first ? 0.9f : 0.1f;
    values[static_cast<std::size_t>(kFrames + t)] = first ? 0.1f : 0.9f;
  }
  const auto matrix = alignment_matrix({values, 1, 2, kFrames}, kFrames);
  // At frame 0 the reflected window is frames 3 2 1 0 1 2 3: three firsts of seven.
  EXPECT_NEAR(matrix[0], -1, 1e-6);
  EXPECT_NEAR(matrix[5], -1, 1e-6);  // the lone first of frame 5 is outvoted
}

TEST(AlignmentMatrix, EqualWeightsGiveZeros) {
  const std::vector<float> values(12, 0.25f);
  for (const float x : alignment_matrix({values, 1, 3, 4}, 4)) EXPECT_EQ(x, 0.0f);
}

}  // namespace
}  // namespace oasr::decode

#include "decode/ctc_prefix_score.h"

#include <gtest/gtest.h>

#include <map>

#include "decode/ctc_testing.h"
#include "decode/log_math.h"

namespace oasr::decode {
namespace {

// All sequences of 6 frames and 4 tokens. The score takes it that what follows a beginning sums to
// 1 in every frame; logs below 8 in size are rounded to float32, so it does within 2^-22.
TEST(CtcPrefixScorer, GivesTheProbabilityOfAllTranscriptsWithABeginning) {
  const CtcRows rows = random_rows(11, 6, 4, 2);
  const auto exact = enumerate(rows);
  CtcPrefixScorer scorer(rows.all(), 4);
  const std::vector<std::vector<TokenId>> prefixes = {{}, {1}, {2, 2}, {3, 1, 3}, {1, 1, 1}};
  for (const auto& prefix : prefixes) {
    int slot = 0;
    scorer.start(slot);
    for (const TokenId token : prefix) {
      scorer.extend(slot, token, slot + 1);
      ++slot;
    }
    const auto found = exact.find(prefix);
    EXPECT_NEAR(scorer.score_end(slot), found->second, 1e-11);  // 4^6 sums below 2^-50
    for (TokenId token = 1; token < 4; ++token) {
      std::vector<TokenId> longer = prefix;
      longer.push_back(token);
      double sum = kLogZero;
      for (const auto& [tokens, score] : exact) {
        if (tokens.size() >= longer.size() &&
            std::equal(longer.begin(), longer.end(), tokens.begin())) {
          sum = log_add(sum, score);
        }
      }
      if (sum == kLogZero) {
        EXPECT_EQ(scorer.score(slot, token), sum);
        continue;
      }
      EXPECT_NEAR(scorer.score(slot, token), sum, 6 * 0x1.0p-22) << slot << " " << token;
    }
  }
}

TEST(CtcPrefixScorer, KnowsWhatIsImpossible) {
  const CtcRows rows = rows_of({{.5, .5}, {.5, .5}});
  CtcPrefixScorer scorer(rows.all(), 3);
  scorer.start(0);
  EXPECT_EQ(scorer.score(0, 0), kLogZero);  // the blank
  scorer.extend(0, 1, 1);
  scorer.extend(1, 1, 2);
  EXPECT_EQ(scorer.score_end(2), kLogZero);  // two equal tokens need three frames
  EXPECT_EQ(scorer.score(1, 1), kLogZero);
  EXPECT_NEAR(scorer.score_end(0), std::log(.25), 1e-7);  // float32 logs
}

TEST(CtcPrefixScorer, WithoutFramesOnlyTheEmptyTranscriptIsPossible) {
  const CtcScores none{{}, 0, 5, 0};
  CtcPrefixScorer scorer(none, 2);
  scorer.start(0);
  EXPECT_EQ(scorer.score_end(0), 0);
  EXPECT_EQ(scorer.score(0, 1), kLogZero);
}

}  // namespace
}  // namespace oasr::decode

#include "decode/rescoring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/fs.h"
#include "base/json.h"
#include "testing/paths.h"

namespace oasr::decode {
namespace {

// Gives each hypothesis the log-probabilities listed for it, in the order of the calls.
class ListedScorer final : public SequenceScorer {
 public:
  bool has_right_to_left() const override { return right_to_left; }
  void score(std::span<const Item> items) override {
    ++calls;
    for (const Item& item : items) {
      const auto& [left, right] = listed.at(seen++);
      ASSERT_EQ(item.left.size(), item.tokens.size() + 1);
      std::copy(left.begin(), left.end(), item.left.begin());
      wanted_right = !item.right.empty();
      std::copy_n(right.begin(), item.right.size(), item.right.begin());
      utterances.push_back(item.utterance);
    }
  }

  std::vector<std::pair<std::vector<float>, std::vector<float>>> listed;
  std::vector<int> utterances;
  std::size_t seen = 0;
  int calls = 0;
  bool right_to_left = true, wanted_right = false;
};

CtcHypothesis hypothesis(std::vector<TokenId> tokens, double score) {
  CtcHypothesis made;
  for (const TokenId id : tokens) made.tokens.push_back({id, 0, 1});
  made.score = made.ctc_score = score;
  return made;
}

TEST(Rescoring, WeighsBothDecodersAndTheFirstPass) {
  ListedScorer scorer;
  scorer.listed = {{{-1, -2, -3}, {-4, -5, -6}}, {{-0.5f, -0.25f}, {-1, -0.125f}}};
  const std::vector<CtcHypothesis> first = {hypothesis({7, 8}, -1), hypothesis({7}, -10)};
  const RescoringInput input{0, first};
  const auto result = *rescore(scorer, {&input, 1}, {.ctc_weight = 0.5, .reverse_weight = 0.25});
  ASSERT_EQ(result.size(), 1u);
  const auto& list = result[0];
  EXPECT_EQ(list[0].first.ids(), std::vector<TokenId>{7});
  EXPECT_EQ(list[0].score, 0.75 * -0.75 + 0.25 * -1.125 + 0.5 * -10);
  EXPECT_EQ(list[1].left_score, -6);
  EXPECT_EQ(list[1].right_score, -15);
  EXPECT_EQ(list[1].score, 0.75 * -6 + 0.25 * -15 + 0.5 * -1);
  // Two libm results and ours, each within 1.3e-15 of the truth.
  EXPECT_NEAR(list[1].confidence, std::exp((0.75 * -6 + 0.25 * -15) / 3), 2e-15);
  EXPECT_NEAR(list[1].token_confidences[0], (std::exp(-1.0) + std::exp(-4.0)) / 2, 2e-15);
  EXPECT_NEAR(list[1].token_confidences[1], (std::exp(-2.0) + std::exp(-5.0)) / 2, 2e-15);
}

TEST(Rescoring, WithoutReverseWeightTheRightDecoderIsNotAsked) {
  ListedScorer scorer;
  scorer.right_to_left = false;
  scorer.listed = {{{-1, -2}, {}}};
  const std::vector<CtcHypothesis> first = {hypothesis({7}, -4)};
  const RescoringInput input{0, first};
  const auto result = *rescore(scorer, {&input, 1}, {.ctc_weight = 0, .reverse_weight = 0});
  EXPECT_FALSE(scorer.wanted_right);
  EXPECT_EQ(result[0][0].score, -3);
  EXPECT_NEAR(result[0][0].token_confidences[0], std::exp(-1.0), 1e-15);
}

TEST(Rescoring, EqualScoresKeepTheOrderOfTheFirstPass) {
  ListedScorer scorer;
  scorer.listed = {{{-2}, {-2}}, {{-1, -1}, {-1, -1}}, {{0, -2}, {-2, 0}}};
  const std::vector<CtcHypothesis> first = {hypothesis({}, -1), hypothesis({5}, -1),
                                            hypothesis({4}, -1)};
  const RescoringInput input{0, first};
  const auto result = *rescore(scorer, {&input, 1}, {.ctc_weight = 1, .reverse_weight = 0.5});
  EXPECT_TRUE(result[0][0].first.tokens.empty());
  EXPECT_EQ(result[0][1].first.ids(), std::vector<TokenId>{5});
  EXPECT_EQ(result[0][2].first.ids(), std::vector<TokenId>{4});
}

TEST(Rescoring, ScoresAllUtterancesInOneCall) {
  ListedScorer scorer;
  scorer.listed = {{{-2}, {}}, {{-1, -1}, {}}, {{-3}, {}}};
  const std::vector<CtcHypothesis> a = {hypothesis({}, -1)};
  const std::vector<CtcHypothesis> b = {hypothesis({5}, -1), hypothesis({}, 0)};
  const std::vector<RescoringInput> inputs = {{3, a}, {1, b}, {2, {}}};
  const auto result = *rescore(scorer, inputs, {.ctc_weight = 1});
  EXPECT_EQ(scorer.calls, 1);
  EXPECT_EQ(scorer.utterances, (std::vector<int>{3, 1, 1}));
  ASSERT_EQ(result.size(), 3u);
  EXPECT_EQ(result[1].size(), 2u);
  EXPECT_TRUE(result[2].empty());
}

TEST(Rescoring, RefusesWeightsThatItCouldOnlyIgnore) {
  ListedScorer scorer;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const RescoringOptions& bad :
       {RescoringOptions{nan, 0}, RescoringOptions{-1, 0}, RescoringOptions{0, 1.5},
        RescoringOptions{0, -0.5}, RescoringOptions{0, nan}}) {
    EXPECT_FALSE(rescore(scorer, {}, bad));
  }
  EXPECT_TRUE(rescore(scorer, {}, {0.5, 1}));
  scorer.right_to_left = false;
  const auto refused = rescore(scorer, {}, {.reverse_weight = 0.3});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("right-to-left"), std::string::npos);
}

// Every hypothesis of the reference's lists, from its sums. Those are rounded to 5 decimals, so the
// score is within (0.7 + 0.3 + 0.5 + 1) / 2 units of the fifth.
TEST(Rescoring, RanksTheHypothesesOfARealModelAsWenet) {
  OASR_REQUIRE_FULL_DATA();
  constexpr double kBound = 1.26e-5;
  int utterances = 0;
  for (const char* name : {"an4.full.jsonl", "an4.chunk16.jsonl", "speechocean762.full.jsonl",
                           "read_english_misc.chunk16.jsonl"}) {
    const std::string text = *read_text_file(*testing::full_data() / "goldens/u2pp_real" / name);
    for (std::size_t begin = 0, end; begin < text.size(); begin = end + 1) {
      end = text.find('\n', begin);
      const Json line = *parse_json(std::string_view(text).substr(begin, end - begin), name);
      ListedScorer scorer;
      std::vector<CtcHypothesis> first;
      Json nbest = line.at("nbest");
      std::vector<Json> by_ctc(nbest.begin(), nbest.end());
      std::stable_sort(by_ctc.begin(), by_ctc.end(), [](const Json& a, const Json& b) {
        return a.at("ctc_score").get<double>() > b.at("ctc_score").get<double>();
      });
      for (const Json& entry : by_ctc) {
        first.push_back(hypothesis(entry.at("tokens"), entry.at("ctc_score")));
        std::vector<float> left(first.back().tokens.size() + 1), right = left;
        left.back() = entry.at("left_score");
        right.back() = entry.at("right_score");
        scorer.listed.emplace_back(left, right);
      }
      const RescoringInput input{0, first};
      const auto result = *rescore(scorer, {&input, 1}, {.ctc_weight = 0.5, .reverse_weight = 0.3});
      for (std::size_t i = 0; i < nbest.size(); ++i) {
        // Twice float32's rounding of a sum below 512 comes on top.
        EXPECT_NEAR(result[0][i].score, nbest[i].at("score").get<double>(), kBound + 3.1e-5);
      }
      EXPECT_EQ(result[0][0].first.ids(), nbest[0].at("tokens").get<std::vector<TokenId>>());
      ++utterances;
    }
  }
  EXPECT_GT(utterances, 300);
}

}  // namespace
}  // namespace oasr::decode

#include "decode/attention_beam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/fs.h"
#include "base/json.h"
#include "decode/ctc_testing.h"
#include "decode/scores.h"
#include "decode/toy_scorer.h"
#include "testing/paths.h"

namespace oasr::decode {
namespace {

constexpr TokenId kEos = 0;

SearchStart start_at(TokenId sos) {
  SearchStart start;
  start.prompt = {sos};
  start.eot = kEos;
  start.timestamp_begin = 1 << 20;
  return start;
}

std::vector<RowId> rows(int count) {
  std::vector<RowId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

std::vector<AttentionHypothesis> decode(const ToyLogits& logits, int vocabulary, TokenId sos,
                                        const AttentionBeamOptions& options) {
  ToyScorer scorer(vocabulary, options.beam_size, logits, 1000);
  const auto ids = rows(options.beam_size);
  const LogitRules rules;
  AttentionBeam search(start_at(sos), options, rules, ids);
  Stepper stepper;
  stepper.run(scorer, search);
  return search.nbest();
}

// WeNet's search on the same pseudo-random logits. Its sums are float32 and ours double over
// float32 log-probabilities: 40 steps of half a unit at a size below 128 (2^-18), and as much for
// either log-softmax; less one division by a length of 1 or more.
TEST(AttentionBeam, GivesTheHypothesesAndScoresOfWenet) {
  const Json golden =
      *parse_json(*read_text_file(testing::test_data("ctc/attention_beam.json")), "");
  for (const Json& item : golden) {
    const int vocabulary = item.at("vocabulary");
    const double penalty = item.at("penalty");
    const auto logits = random_logits(item.at("seed"), item.at("spread").get<float>());
    const auto found = decode(logits, vocabulary, kEos,
                              {.beam_size = item.at("beam"),
                               .length_penalty = penalty,
                               .max_new_tokens = item.at("frames")});
    const std::string name = "seed " + item.at("seed").dump();
    EXPECT_EQ(found.front().tokens, item.at("best").get<std::vector<TokenId>>()) << name;
    ASSERT_EQ(found.size(), item.at("hyps").size()) << name;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto tokens = item.at("hyps")[i].get<std::vector<TokenId>>();
      const auto same = std::find_if(found.begin(), found.end(), [&](const auto& hypothesis) {
        return hypothesis.tokens == tokens;
      });
      ASSERT_NE(same, found.end()) << name << " " << i;
      if (item.at("scores")[i].is_null()) {  // the reference divides by a length of 0
        EXPECT_TRUE(tokens.empty()) << name << " " << i;
        continue;
      }
      const double length = std::max(1.0, static_cast<double>(tokens.size()));
      EXPECT_NEAR(same->score / std::pow(length, penalty), item.at("scores")[i].get<double>(),
                  40 * 3 * 0x1.0p-18)
          << name << " " << i;
    }
  }
}

TEST(AttentionBeam, StopsAtTheLimitWithUnfinishedHypotheses) {
  const auto never = [](std::span<const TokenId>, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = i == 1 ? 0.0f : -3.0f;
    out[kEos] = -50;
  };
  const auto found = decode(never, 5, 4, {.beam_size = 2, .max_new_tokens = 3});
  EXPECT_EQ(found.front().tokens, (std::vector<TokenId>{1, 1, 1}));
  EXPECT_FALSE(found.front().ended);
}

TEST(AttentionBeam, RunsAsASearchAmongOthers) {
  ToyScorer scorer(8, 6, random_logits(12), 1000);
  const LogitRules rules;
  const auto ids = rows(6);
  AttentionBeam a(start_at(7), {.beam_size = 3, .max_new_tokens = 10}, rules,
                  std::span(ids).first(3));
  AttentionBeam b(start_at(6), {.beam_size = 3, .max_new_tokens = 10}, rules,
                  std::span(ids).last(3));
  std::vector<Search*> both = {&a, &b};
  Stepper stepper;
  while (stepper.step(scorer, both)) {
  }
  const AttentionBeamOptions options{.beam_size = 3, .max_new_tokens = 10};
  EXPECT_EQ(a.nbest().front().tokens, decode(random_logits(12), 8, 7, options).front().tokens);
  EXPECT_EQ(b.nbest().front().tokens, decode(random_logits(12), 8, 6, options).front().tokens);
  EXPECT_EQ(b.results().front().tokens, b.nbest().front().tokens);
  EXPECT_EQ(b.results().size(), b.nbest().size());
}

// With a beam that holds everything the best hypothesis is that of all transcripts: CTC's exact
// probability and the decoder's, weighed.
TEST(JointDecoding, FindsTheBestOfAllTranscripts) {
  for (const double weight : {0.0, 0.3, 0.7, 1.0}) {
    const CtcRows posteriors = random_rows(21, 5, 4, 2);
    const auto logits = random_logits(22, 2.0f);
    AttentionBeamOptions options{.beam_size = 400, .max_new_tokens = 7};
    options.ctc = posteriors.all();
    options.ctc_weight = weight;
    const auto found = decode(logits, 4, 3, options);
    double best = -1e9;
    std::vector<TokenId> expected;
    for (const auto& [tokens, ctc] : enumerate(posteriors)) {
      std::vector<TokenId> row = {3};
      std::vector<float> scores(4);
      double attention = 0;
      for (std::size_t i = 0; i <= tokens.size(); ++i) {
        logits(row, scores);
        const TokenId next = i < tokens.size() ? tokens[i] : kEos;
        attention += double{scores[static_cast<std::size_t>(next)] - log_sum_exp(scores)};
        row.push_back(next);
      }
      const double score = (1 - weight) * attention + weight * ctc;
      if (score > best && ctc > -1e9) {
        best = score;
        expected = tokens;
      }
    }
    EXPECT_EQ(found.front().tokens, expected) << weight;
    EXPECT_NEAR(found.front().score, best, 1e-9) << weight;  // 6 sums of doubles below 2^6
    EXPECT_TRUE(found.front().ended);
  }
}

TEST(JointDecoding, CtcCanEndWhatAttentionHardlyWouldEnd) {
  const CtcRows posteriors =
      rows_of({{.05, .9, .01, .01, .01, .02}, {.95, .01, .01, .01, .01, .01}});
  const auto endless = [](std::span<const TokenId>, std::span<float> out) {
    std::fill(out.begin(), out.end(), 0.0f);
    out[kEos] = -2;  // behind five others, of which a beam of 2 looks at three
  };
  AttentionBeamOptions options{.beam_size = 2, .max_new_tokens = 4};
  options.ctc = posteriors.all();
  options.ctc_weight = 0.8;
  const auto found = decode(endless, 6, 5, options);
  EXPECT_EQ(found.front().tokens, std::vector<TokenId>{1});
  EXPECT_TRUE(found.front().ended);
}

TEST(JointDecoding, CtcRulesOutWhatTheAudioHasNoRoomFor) {
  const CtcRows posteriors = rows_of({{.1, .8, .1}, {.8, .1, .1}, {.1, .1, .8}});
  const auto babble = [](std::span<const TokenId>, std::span<float> out) {
    out[kEos] = -4;
    out[1] = 0;
    out[2] = -1;
  };
  const auto alone = decode(babble, 3, 2, {.beam_size = 3, .max_new_tokens = 6});
  EXPECT_FALSE(alone.front().ended);
  AttentionBeamOptions options{.beam_size = 3, .max_new_tokens = 6};
  options.ctc = posteriors.all();
  options.ctc_weight = 0.5;
  const auto joint = decode(babble, 3, 2, options);
  EXPECT_EQ(joint.front().tokens, (std::vector<TokenId>{1, 2}));
  for (const AttentionHypothesis& hypothesis : joint) {
    EXPECT_NEAR(hypothesis.score, 0.5 * hypothesis.attention_score + 0.5 * hypothesis.ctc_score,
                1e-12);
  }
}

}  // namespace
}  // namespace oasr::decode

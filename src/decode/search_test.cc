#include "decode/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "decode/ranking.h"
#include "decode/scores.h"
#include "decode/toy_scorer.h"

namespace oasr::decode {
namespace {

constexpr TokenId kEot = 0;

SearchStart start_at(std::vector<TokenId> prompt = {1, 2}) {
  return {.prompt = std::move(prompt),
          .probe_index = std::nullopt,
          .probe_token = 0,
          .eot = kEot,
          .timestamp_begin = 1000};
}

std::vector<RowId> rows(int count) {
  std::vector<RowId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

std::vector<Hypothesis> decode_all(ToyScorer& scorer, const SearchOptions& options,
                                   const LogitRules& rules = {}, SearchStart start = start_at()) {
  const auto ids = rows(rows_needed(options));
  auto search = make_search(std::move(start), options, rules, ids);
  Stepper stepper;
  stepper.run(scorer, *search);
  return search->results();
}

float log_probability(const ToyLogits& logits, int vocabulary, std::vector<TokenId> prompt,
                      std::span<const TokenId> tokens) {
  float sum = 0;
  std::vector<float> row(static_cast<std::size_t>(vocabulary));
  for (const TokenId token : tokens) {
    logits(prompt, row);
    sum += row[static_cast<std::size_t>(token)] - log_sum_exp(row);
    prompt.push_back(token);
  }
  return sum;
}

TEST(Registry, EveryStrategyServesWhatItIsNamedFor) {
  EXPECT_EQ(strategy_for({.temperature = 0.2}).name, "sample");
  EXPECT_EQ(strategy_for({.beam_size = 5, .temperature = 0.2}).name, "sample");
  EXPECT_EQ(strategy_for({.beam_size = 5}).name, "beam");
  EXPECT_EQ(strategy_for({.best_of = 5}).name, "greedy");
  EXPECT_EQ(rows_needed({.best_of = 4, .temperature = 0.2}), 4);
  EXPECT_EQ(rows_needed({.beam_size = 3, .best_of = 4}), 3);
  EXPECT_EQ(rows_needed({.best_of = 4}), 1);
}

TEST(Greedy, TakesTheLikeliestTokenUntilTheEnd) {
  const auto logits = random_logits(5);
  ToyScorer scorer(6, 1, logits);
  const auto results = decode_all(scorer, {.max_new_tokens = 40});
  ASSERT_EQ(results.size(), 1u);
  std::vector<TokenId> expected, row{1, 2};
  std::vector<float> scores(6);
  for (int i = 0; i < 40; ++i) {
    logits(row, scores);
    const TokenId token = arg_max(scores);
    if (token == kEot) break;
    expected.push_back(token);
    row.push_back(token);
  }
  EXPECT_EQ(results[0].tokens, expected);
  ASSERT_TRUE(results[0].ended);
  expected.push_back(kEot);
  EXPECT_EQ(results[0].sum_logprob, log_probability(logits, 6, {1, 2}, expected));
  EXPECT_DOUBLE_EQ(results[0].avg_logprob,
                   double{results[0].sum_logprob} / static_cast<double>(expected.size()));
}

TEST(Greedy, StopsAtTheTokenLimitAndSaysSo) {
  ToyScorer scorer(6, 1, [](auto, std::span<float> out) {
    std::fill(out.begin(), out.end(), 0.0f);
    out[3] = 1;
  });
  const auto results = decode_all(scorer, {.max_new_tokens = 7});
  EXPECT_EQ(results[0].tokens, std::vector<TokenId>(7, 3));
  EXPECT_FALSE(results[0].ended);
  // The last token is not fed: prompt and six more.
  EXPECT_EQ(scorer.longest, 8);
}

TEST(Greedy, AppliesRulesBeforeChoosing) {
  ToyScorer scorer(6, 1, random_logits(9));
  LogitRules rules;
  rules.push_back(suppress_tokens({1, 2, 3}));
  for (const auto& result : decode_all(scorer, {.max_new_tokens = 20}, rules)) {
    for (const TokenId id : result.tokens) EXPECT_GT(id, 3);
  }
}

TEST(Probe, GivesTheProbabilityAfterThatPromptToken) {
  const auto logits = random_logits(11);
  for (const int index : {0, 1, 2}) {
    ToyScorer scorer(6, 1, logits);
    auto start = start_at({4, 5, 3});
    start.probe_index = index;
    start.probe_token = 2;
    const LogitRules rules;
    const auto ids = rows(1);
    auto search = make_search(start, {.max_new_tokens = 5}, rules, ids);
    Stepper().run(scorer, *search);
    std::vector<float> row(6);
    logits(std::span<const TokenId>(start.prompt).first(static_cast<std::size_t>(index) + 1), row);
    EXPECT_NEAR(search->probe_probability(), std::exp(row[2] - log_sum_exp(row)), 1e-6);
    ToyScorer plain(6, 1, logits);
    EXPECT_EQ(search->results()[0].tokens,
              decode_all(plain, {.max_new_tokens = 5}, {}, start_at({4, 5, 3}))[0].tokens);
  }
}

class Seeds : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Toys, Seeds, ::testing::Range<std::uint64_t>(0, 25));

TEST_P(Seeds, BeamOfWidthOneEqualsGreedyTokenForToken) {
  const auto logits = random_logits(GetParam(), 1.5f);
  const SearchOptions options{.beam_size = 1, .max_new_tokens = 12};
  ToyScorer one(5, 1, logits), two(5, 1, logits);
  const LogitRules rules;
  const auto ids = rows(1);
  const auto beam = std::find_if(strategies().begin(), strategies().end(),
                                 [](const Strategy& s) { return s.name == "beam"; });
  auto search = beam->create(start_at(), options, rules, ids);
  Stepper().run(one, *search);
  const auto greedy = decode_all(two, options);
  const auto results = search->results();
  // Width 1 sets an end aside only when it is the likeliest, as greedy does.
  EXPECT_EQ(results[0].sum_logprob, greedy[0].sum_logprob);
  EXPECT_EQ(results[0].tokens, greedy[0].tokens);
}

// Beam search written down as the definition says, over explicit sequences.
std::map<std::vector<TokenId>, float> beam_by_definition(const ToyLogits& logits, int vocabulary,
                                                         int width, std::size_t wanted, int steps) {
  using Sequence = std::vector<TokenId>;
  std::vector<std::pair<Sequence, float>> beams{{{}, 0.0f}};
  std::map<Sequence, float> finished;
  for (int step = 0; step < steps && finished.size() < wanted; ++step) {
    std::vector<std::pair<Sequence, float>> candidates;
    for (const auto& [sequence, sum] : beams) {
      std::vector<TokenId> row{1, 2};
      row.insert(row.end(), sequence.begin(), sequence.end());
      std::vector<float> scores(static_cast<std::size_t>(vocabulary));
      logits(row, scores);
      const float total = log_sum_exp(scores);
      std::vector<std::pair<Sequence, float>> own;
      for (TokenId id = 0; id < vocabulary; ++id) {
        auto longer = sequence;
        longer.push_back(id);
        own.emplace_back(longer, sum + (scores[static_cast<std::size_t>(id)] - total));
      }
      std::stable_sort(own.begin(), own.end(),
                       [](auto& a, auto& b) { return a.second > b.second; });
      own.resize(std::min(own.size(), static_cast<std::size_t>(width) + 1));
      candidates.insert(candidates.end(), own.begin(), own.end());
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](auto& a, auto& b) { return a.second > b.second; });
    beams.clear();
    for (auto& [sequence, sum] : candidates) {
      if (beams.size() == static_cast<std::size_t>(width)) break;
      if (sequence.back() != kEot) {
        beams.emplace_back(sequence, sum);
      } else if (finished.size() < wanted) {
        finished.emplace(Sequence(sequence.begin(), sequence.end() - 1), sum);
      }
    }
  }
  for (auto& [sequence, sum] : beams) {
    if (finished.size() < static_cast<std::size_t>(width)) finished.emplace(sequence, sum);
  }
  return finished;
}

TEST_P(Seeds, BeamSearchEqualsItsDefinition) {
  const auto logits = random_logits(GetParam(), 1.0f);
  for (const double patience : {1.0, 2.0}) {
    ToyScorer scorer(7, 3, logits);
    const SearchOptions options{.beam_size = 3, .patience = patience, .max_new_tokens = 9};
    const auto results = decode_all(scorer, options);
    const auto expected =
        beam_by_definition(logits, 7, 3, static_cast<std::size_t>(3 * patience), 9);
    ASSERT_EQ(results.size(), expected.size());
    double previous = std::numeric_limits<double>::infinity();
    for (const auto& result : results) {
      ASSERT_TRUE(expected.contains(result.tokens));
      EXPECT_EQ(result.sum_logprob, expected.at(result.tokens));
      const double score =
          result.sum_logprob / std::max<double>(1, static_cast<double>(result.tokens.size()));
      EXPECT_LE(score, previous);
      previous = score;
    }
  }
}

TEST_P(Seeds, AWideBeamFindsTheBestOfAllSequences) {
  constexpr int kVocabulary = 3, kSteps = 3;
  const auto logits = random_logits(GetParam(), 2.0f);
  ToyScorer scorer(kVocabulary, 27, logits);
  const auto results =
      decode_all(scorer, {.beam_size = 27, .length_penalty = 0.0, .max_new_tokens = kSteps});
  float best = -std::numeric_limits<float>::infinity();
  std::vector<TokenId> best_tokens;
  std::vector<TokenId> sequence;
  const std::function<void()> visit = [&] {
    auto whole = sequence;
    if (whole.size() < kSteps) whole.push_back(kEot);
    const float sum = log_probability(logits, kVocabulary, {1, 2}, whole);
    if (sum > best) best = sum, best_tokens = sequence;
    if (sequence.size() == kSteps) return;
    for (TokenId id = 1; id < kVocabulary; ++id) {
      sequence.push_back(id);
      visit();
      sequence.pop_back();
    }
  };
  visit();
  EXPECT_EQ(results[0].tokens, best_tokens);
  EXPECT_EQ(results[0].sum_logprob, best);
}

TEST_P(Seeds, ASearchDoesNotDependOnItsNeighbours) {
  const auto logits = random_logits(GetParam(), 1.5f);
  const std::vector<SearchOptions> kinds{
      {.max_new_tokens = 9},
      {.beam_size = 3, .max_new_tokens = 11},
      {.best_of = 4, .temperature = 0.7, .max_new_tokens = 10, .random = {.seed = GetParam()}},
  };
  const LogitRules rules;
  std::vector<std::unique_ptr<Search>> searches;
  std::vector<Search*> all;
  int row = 0;
  for (const auto& kind : kinds) {
    std::vector<RowId> ids;
    for (int i = 0; i < rows_needed(kind); ++i) ids.push_back(row++);
    searches.push_back(make_search(start_at(), kind, rules, ids));
    all.push_back(searches.back().get());
  }
  ToyScorer shared(8, row, logits);
  Stepper stepper;
  while (stepper.step(shared, all)) {
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    ToyScorer alone(8, 4, logits);
    const auto expected = decode_all(alone, kinds[i]);
    const auto results = searches[i]->results();
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t k = 0; k < results.size(); ++k) {
      EXPECT_EQ(results[k].tokens, expected[k].tokens);
      EXPECT_EQ(results[k].sum_logprob, expected[k].sum_logprob);
    }
  }
}

TEST(Sampling, RepeatsWithItsSeedAndChangesWithAnother) {
  const SearchOptions options{
      .best_of = 5, .temperature = 1.0, .max_new_tokens = 20, .random = {.seed = 3}};
  const auto run = [&](SearchOptions changed) {
    ToyScorer scorer(20, 5, random_logits(2, 1.0f));
    return decode_all(scorer, changed);
  };
  const auto first = run(options), again = run(options);
  ASSERT_EQ(first.size(), 5u);
  std::set<std::vector<TokenId>> different;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].tokens, again[i].tokens);
    different.insert(first[i].tokens);
  }
  EXPECT_GT(different.size(), 1u);
  auto other = options;
  other.random.seed = 4;
  EXPECT_NE(run(other)[0].tokens, first[0].tokens);
  other = options;
  other.random.attempt = 1;
  EXPECT_NE(run(other)[0].tokens, first[0].tokens);
}

TEST(Sampling, LogProbabilitiesAreThoseOfTemperatureOne) {
  const auto logits = random_logits(8, 2.0f);
  ToyScorer scorer(9, 2, logits);
  for (const auto& result :
       decode_all(scorer, {.best_of = 2, .temperature = 0.5, .max_new_tokens = 9})) {
    auto tokens = result.tokens;
    if (result.ended) tokens.push_back(kEot);
    EXPECT_EQ(result.sum_logprob, log_probability(logits, 9, {1, 2}, tokens));
  }
}

TEST(BeamSearch, DropsImpossibleCandidates) {
  ToyScorer scorer(6, 4, random_logits(4));
  LogitRules rules;
  rules.push_back(suppress_tokens({1, 2, 3, 4}));  // 5 and eot are left
  for (const auto& result : decode_all(scorer, {.beam_size = 4, .max_new_tokens = 5}, rules)) {
    EXPECT_TRUE(std::isfinite(result.sum_logprob));
    for (const TokenId id : result.tokens) EXPECT_EQ(id, 5);
  }
}

Hypothesis hypothesis(std::size_t length, float sum) {
  return {std::vector<TokenId>(length, 3), sum, 0, true};
}

TEST(Ranking, DividesByLengthOrByGoogleNmtsPenalty) {
  // Means -1, -0.9, -1.25; ((5 + n) / 6)^1 = 1, 2, 1.5: -1, -3.15, -3.33; sums: the shortest wins.
  const std::vector<Hypothesis> all{hypothesis(1, -1.0f), hypothesis(7, -6.3f),
                                    hypothesis(4, -5.0f)};
  const auto lengths = [&](std::optional<double> alpha, std::vector<Hypothesis> ranked) {
    rank_by_likelihood(ranked, alpha);
    std::vector<std::size_t> result;
    for (const auto& entry : ranked) result.push_back(entry.tokens.size());
    return result;
  };
  EXPECT_EQ(lengths(std::nullopt, all), (std::vector<std::size_t>{7, 1, 4}));
  EXPECT_EQ(lengths(1.0, all), (std::vector<std::size_t>{1, 7, 4}));
  EXPECT_EQ(lengths(0.0, all), (std::vector<std::size_t>{1, 4, 7}));
  EXPECT_EQ(lengths(std::nullopt, {hypothesis(0, -2.0f), hypothesis(1, -1.5f)}),
            (std::vector<std::size_t>{1, 0}));  // an empty one counts as one token
  // ((5 + 13) / 6)^0.5 = 1.732 against 1: -1.7 / 1.732 = -0.98.
  EXPECT_EQ(lengths(0.5, {hypothesis(1, -0.985f), hypothesis(13, -1.7f)}),
            (std::vector<std::size_t>{13, 1}));
}

TEST(TokenTree, SharesPrefixesAndGivesThemBack) {
  TokenTree tree(100, 8);
  const History a = tree.extend(tree.extend({}, 7), 101);
  const History b = tree.extend(a, 8), c = tree.extend(a, 9);
  EXPECT_EQ(tree.tokens(b), (std::vector<TokenId>{7, 101, 8}));
  EXPECT_EQ(tree.tokens(c), (std::vector<TokenId>{7, 101, 9}));
  EXPECT_EQ(c.last_timestamp, 101);
  EXPECT_EQ(c.before_last, 101);
  EXPECT_TRUE(tree.tokens({}).empty());
}

}  // namespace
}  // namespace oasr::decode

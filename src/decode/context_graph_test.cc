#include "decode/context_graph.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "decode/random.h"

namespace oasr::decode {
namespace {

std::shared_ptr<const ContextGraph> graph_of(std::vector<ContextPhrase> phrases) {
  auto graph = ContextGraph::make(phrases, 1000, 0);
  EXPECT_TRUE(graph) << graph.error().message();
  return graph ? *graph : nullptr;
}

// All that `tokens` earn, the end of the utterance included.
double earned(const ContextGraph& graph, const std::vector<TokenId>& tokens) {
  ContextGraph::State state = ContextGraph::kStart;
  double sum = 0;
  for (const TokenId token : tokens) {
    const auto step = graph.step(state, token);
    sum += step.bonus;
    state = step.state;
  }
  return sum + graph.back_off(state);
}

TEST(ContextGraph, APhraseEarnsItsWeightForEveryToken) {
  const auto graph = graph_of({{{5, 6, 7}, 2.0}});
  EXPECT_EQ(earned(*graph, {5, 6, 7}), 6);
  EXPECT_EQ(earned(*graph, {1, 5, 6, 7, 9}), 6);
  EXPECT_EQ(earned(*graph, {5, 6, 7, 5, 6, 7}), 12);
}

TEST(ContextGraph, APartIsTakenBackWhenItBreaksOffOrTheUtteranceEnds) {
  const auto graph = graph_of({{{5, 6, 7}, 2.0}});
  ContextGraph::State state = ContextGraph::kStart;
  auto step = graph->step(state, 5);
  EXPECT_EQ(step.bonus, 2);
  step = graph->step(step.state, 6);
  EXPECT_EQ(step.bonus, 2);
  EXPECT_EQ(graph->back_off(step.state), -4);
  step = graph->step(step.state, 9);
  EXPECT_EQ(step.bonus, -4);
  EXPECT_EQ(step.state, ContextGraph::kStart);
  EXPECT_EQ(earned(*graph, {5, 6, 9}), 0);
  EXPECT_EQ(earned(*graph, {5, 6}), 0);
}

TEST(ContextGraph, AnEndThatBeginsAnotherPhraseIsKept) {
  const auto graph = graph_of({{{5, 6, 7}, 2.0}, {{6, 8}, 3.0}});
  EXPECT_EQ(earned(*graph, {5, 6, 8}), 6);
  EXPECT_EQ(earned(*graph, {5, 5, 6, 7}), 6);
}

TEST(ContextGraph, PhrasesInsideAndAtTheBeginningOfOthersCount) {
  const auto graph = graph_of({{{5, 6, 7}, 2.0}, {{5, 6}, 1.0}, {{6}, 0.5}});
  EXPECT_EQ(earned(*graph, {5, 6, 7}), 6 + 2 + 0.5);
  EXPECT_EQ(earned(*graph, {5, 6}), 2 + 0.5);
  EXPECT_EQ(earned(*graph, {6}), 0.5);
}

TEST(ContextGraph, DuplicatesCountOnceAtTheirGreatestWeight) {
  const auto graph = graph_of({{{5, 6}, 1.0}, {{5, 6}, 4.0}, {{5, 6}, 2.0}});
  EXPECT_EQ(earned(*graph, {5, 6}), 8);
  EXPECT_EQ(graph->size(), 3u);
}

TEST(ContextGraph, ANegativeWeightMakesAPhraseLessLikely) {
  const auto graph = graph_of({{{5, 6}, -1.5}});
  EXPECT_EQ(earned(*graph, {5, 6}), -3);
  EXPECT_EQ(earned(*graph, {5, 7}), 0);
}

TEST(ContextGraph, NoPhrasesEarnNothing) {
  const auto graph = graph_of({});
  EXPECT_EQ(earned(*graph, {5, 6, 7}), 0);
}

TEST(ContextGraph, RefusesPhrasesThatCanNotBeByTheirNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<ContextPhrase> bad = {{{}, 1}, {{1000}, 1}, {{-1}, 1}, {{0}, 1}, {{5}, nan}};
  for (const ContextPhrase& phrase : bad) {
    const std::vector<ContextPhrase> phrases = {{{5, 6}, 1.0}, phrase};
    const auto graph = ContextGraph::make(phrases, 1000, 0);
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(graph.error().what.find("phrase 2 "), std::string::npos) << graph.error().what;
  }
  std::vector<ContextPhrase> huge(2);
  huge[0] = huge[1] = {std::vector<TokenId>(ContextGraph::kMostTokens / 2 + 1, 5), 1.0};
  EXPECT_FALSE(ContextGraph::make(huge, 1000, 0));
}

// The definition, by looking at every place of the sequence. Weights that add exactly.
TEST(ContextGraph, EarnsWhatCountingOccurrencesSays) {
  std::uint64_t state = 7;
  const auto draw = [&](int below) {
    state = mix64(state);
    return static_cast<int>(state % static_cast<std::uint64_t>(below));
  };
  for (int round = 0; round < 200; ++round) {
    std::map<std::vector<TokenId>, double> table;
    std::vector<ContextPhrase> phrases;
    for (int i = draw(30); i >= 0; --i) {
      std::vector<TokenId> tokens;
      for (int k = draw(5); k >= 0; --k) tokens.push_back(1 + draw(3));
      const double weight = 0.25 * (1 + draw(9));
      auto& known = table[tokens];
      known = std::max(known, weight);
      phrases.push_back({tokens, weight});
    }
    std::vector<TokenId> sequence;
    for (int k = 0; k < 40; ++k) sequence.push_back(1 + draw(4));
    double expected = 0;
    for (const auto& [tokens, weight] : table) {
      for (std::size_t at = 0; at + tokens.size() <= sequence.size(); ++at) {
        if (std::equal(tokens.begin(), tokens.end(), sequence.begin() + static_cast<long>(at))) {
          expected += weight * static_cast<double>(tokens.size());
        }
      }
    }
    EXPECT_EQ(earned(*graph_of(phrases), sequence), expected) << round;
  }
}

}  // namespace
}  // namespace oasr::decode

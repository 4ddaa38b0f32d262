#include "decode/logit_rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace oasr::decode {
namespace {

// A vocabulary in Whisper's order: text 0 … 9, eot 10, specials 11 … 13 (13: no timestamps),
// timestamps 14 … 29.
constexpr int kVocabulary = 30;
constexpr TimestampIds kIds{.eot = 10, .no_timestamps = 13, .begin = 14};

History history_of(std::initializer_list<TokenId> tokens) {
  TokenTree tree(kIds.begin, 16);
  History history;
  for (const TokenId id : tokens) history = tree.extend(history, id);
  return history;
}

// The ids that the rules leave, with flat logits of text 5 and of the rest 0: text outweighs the
// mass of the timestamps.
std::vector<TokenId> allowed(const LogitRule& rule, const History& history, float text = 5.0f) {
  std::vector<float> logits(kVocabulary, 0.0f);
  for (int id = 0; id <= kIds.eot; ++id) logits[static_cast<std::size_t>(id)] = text;
  rule.apply(logits, history);
  std::vector<TokenId> ids;
  for (int id = 0; id < kVocabulary; ++id) {
    if (!std::isinf(logits[static_cast<std::size_t>(id)])) ids.push_back(id);
  }
  return ids;
}

std::vector<TokenId> range(TokenId begin, TokenId end) {
  std::vector<TokenId> ids;
  for (TokenId id = begin; id < end; ++id) ids.push_back(id);
  return ids;
}

std::vector<TokenId> join(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(SuppressTokens, MasksAlwaysAndIgnoresForeignIds) {
  const auto rule = suppress_tokens({3, 29, 30, -1, 1000});
  for (const History& history : {history_of({}), history_of({5})}) {
    const auto ids = allowed(*rule, history);
    EXPECT_EQ(ids.size(), 28u);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 3), 0);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 29), 0);
  }
}

TEST(SuppressAtBegin, MasksTheFirstTokenOnly) {
  const auto rule = suppress_at_begin({2, 10});
  EXPECT_EQ(allowed(*rule, history_of({})).size(), 28u);
  EXPECT_EQ(allowed(*rule, history_of({1})).size(), 30u);
}

TEST(TimestampRules, FirstTokenIsATimestampUpToTheInitialLimit) {
  EXPECT_EQ(allowed(*timestamp_rules(kIds, 3), history_of({})), range(14, 18));
  EXPECT_EQ(allowed(*timestamp_rules(kIds, std::nullopt), history_of({})), range(14, 30));
}

TEST(TimestampRules, TextFollowsTheFirstTimestamp) {
  EXPECT_EQ(allowed(*timestamp_rules(kIds, 3), history_of({15})), range(0, 13));
}

TEST(TimestampRules, TextMayBeFollowedByLaterTimestampsOnly) {
  // No equal timestamp: a segment is not empty.
  EXPECT_EQ(allowed(*timestamp_rules(kIds, 3), history_of({15, 4})),
            join(range(0, 13), range(16, 30)));
}

TEST(TimestampRules, AnEndIsFollowedByAStartOrTheEnd) {
  // The next start may equal the end before it.
  EXPECT_EQ(allowed(*timestamp_rules(kIds, 3), history_of({15, 4, 20})),
            join(range(10, 13), range(20, 30)));
}

TEST(TimestampRules, AClosedPairIsFollowedByText) {
  EXPECT_EQ(allowed(*timestamp_rules(kIds, 3), history_of({15, 4, 20, 20})), range(0, 13));
}

TEST(TimestampRules, DoNotForgetTimestampsBehindText) {
  EXPECT_EQ(allowed(*timestamp_rules(kIds, 3), history_of({15, 4, 20, 22, 1, 2, 3})),
            join(range(0, 13), range(23, 30)));
}

TEST(TimestampRules, TheMassOfTimestampsDecides) {
  // After {15, 4}: 14 timestamps at 0 have mass log 14 = 2.639.
  const auto rule = timestamp_rules(kIds, 3);
  EXPECT_EQ(allowed(*rule, history_of({15, 4}), 2.6f), range(16, 30));
  EXPECT_EQ(allowed(*rule, history_of({15, 4}), 2.7f), join(range(0, 13), range(16, 30)));
}

TEST(TimestampRules, NoTimestampsIsNeverChosen) {
  for (const History& history : {history_of({}), history_of({15}), history_of({15, 1})}) {
    const auto ids = allowed(*timestamp_rules(kIds, 3), history);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 13), 0);
  }
}

}  // namespace
}  // namespace oasr::decode

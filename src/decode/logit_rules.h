// Rules that mask logits before a token is chosen. Small pieces, applied in order.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/history.h"
#include "text/tokenizer.h"

namespace oasr::decode {

// Immutable; shared by all searches of a recording.
class LogitRule {
 public:
  virtual ~LogitRule() = default;
  // Sets logits [V] of tokens that may not follow `history` to -inf.
  virtual void apply(std::span<float> logits, const History& history) const = 0;
};

using LogitRules = std::vector<std::unique_ptr<LogitRule>>;

inline void apply_rules(const LogitRules& rules, std::span<float> logits, const History& history) {
  for (const auto& rule : rules) rule->apply(logits, history);
}

// `tokens` are never chosen. Ids outside the vocabulary are ignored.
std::unique_ptr<LogitRule> suppress_tokens(std::vector<TokenId> tokens);

// `tokens` are not chosen first (Whisper: the blank and <|endoftext|>).
std::unique_ptr<LogitRule> suppress_at_begin(std::vector<TokenId> tokens);

struct TimestampIds {
  TokenId eot = 0;            // every id from here up to timestamp_begin is special, below is text
  TokenId no_timestamps = 0;  // never chosen when timestamps are wanted
  TokenId begin = 0;          // <|0.00|>; all ids from here on are timestamps
};

// Whisper's timestamp rules: timestamps come in pairs, except the last one before the end; they do
// not fall, and a segment is not empty; the first token is a timestamp of at most
// `max_initial` steps; and a timestamp is chosen when all timestamps together are more likely than
// the likeliest other token.
std::unique_ptr<LogitRule> timestamp_rules(const TimestampIds& ids, std::optional<int> max_initial);

}  // namespace oasr::decode

#include "decode/logit_rules.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "decode/scores.h"

namespace oasr::decode {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Masks ids [begin, end), clipped to the vocabulary.
void mask(std::span<float> logits, TokenId begin, TokenId end) {
  const auto size = static_cast<TokenId>(logits.size());
  for (TokenId id = std::max(begin, 0); id < std::min(end, size); ++id) {
    logits[static_cast<std::size_t>(id)] = kMasked;
  }
}

class Suppress final : public LogitRule {
 public:
  Suppress(std::vector<TokenId> tokens, bool at_begin_only)
      : tokens_(std::move(tokens)), at_begin_only_(at_begin_only) {}

  void apply(std::span<float> logits, const History& history) const override {
    if (at_begin_only_ && history.length > 0) return;
    for (const TokenId id : tokens_) mask(logits, id, id + 1);
  }

 private:
  std::vector<TokenId> tokens_;
  bool at_begin_only_;
};

class Timestamps final : public LogitRule {
 public:
  Timestamps(const TimestampIds& ids, std::optional<int> max_initial)
      : ids_(ids), max_initial_(max_initial) {}

  void apply(std::span<float> logits, const History& history) const override {
    const auto end = static_cast<TokenId>(logits.size());
    mask(logits, ids_.no_timestamps, ids_.no_timestamps + 1);
    const bool after_timestamp = history.length >= 1 && history.last >= ids_.begin;
    // Before the second token nothing is open: the first timestamp starts a segment.
    const bool pair_is_closed = history.length < 2 || history.before_last >= ids_.begin;
    if (after_timestamp) {
      if (pair_is_closed) {
        mask(logits, ids_.begin, end);  // text must follow
      } else {
        mask(logits, 0, ids_.eot);  // the next segment's start or the end must follow
      }
    }
    if (history.last_timestamp >= 0) {
      // The start of the next segment may equal the end of this one; an end must be later.
      const bool may_repeat = after_timestamp && !pair_is_closed;
      mask(logits, ids_.begin, history.last_timestamp + (may_repeat ? 0 : 1));
    }
    if (history.length == 0) {
      mask(logits, 0, ids_.begin);
      if (max_initial_) mask(logits, ids_.begin + *max_initial_ + 1, end);
    }
    prefer_timestamps_by_mass(logits);
  }

 private:
  void prefer_timestamps_by_mass(std::span<float> logits) const {
    const auto begin = std::min(static_cast<std::size_t>(ids_.begin), logits.size());
    if (log_sum_exp(logits.subspan(begin)) > greatest(logits.first(begin))) mask(logits, 0, ids_.begin);
  }

  TimestampIds ids_;
  std::optional<int> max_initial_;
};

}  // namespace

std::unique_ptr<LogitRule> suppress_tokens(std::vector<TokenId> tokens) {
  return std::make_unique<Suppress>(std::move(tokens), false);
}

std::unique_ptr<LogitRule> suppress_at_begin(std::vector<TokenId> tokens) {
  return std::make_unique<Suppress>(std::move(tokens), true);
}

std::unique_ptr<LogitRule> timestamp_rules(const TimestampIds& ids,
                                           std::optional<int> max_initial) {
  return std::make_unique<Timestamps>(ids, max_initial);
}

}  // namespace oasr::decode

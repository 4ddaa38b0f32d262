#include "decode/attention_beam.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "decode/log_math.h"
#include "decode/scores.h"

namespace oasr::decode {

AttentionBeam::AttentionBeam(SearchStart start, const AttentionBeamOptions& options,
                             const LogitRules& rules, std::span<const RowId> rows)
    : Search(std::move(start),
             {.beam_size = options.beam_size, .max_new_tokens = options.max_new_tokens}, rules,
             rows),
      attention_(options),
      width_(static_cast<std::size_t>(options.beam_size)) {
  CHECK(options.beam_size > 0 && rows.size() >= width_, "a decoder row for every hypothesis");
  CHECK(options.candidates >= 1, "as many candidates as the beam is wide");
  entries_.reserve(width_);
  next_entries_.reserve(width_);
  next_.reserve(width_);
  kept_.reserve(width_ + 1);
  Entry first{.history = beams_.front().history, .beam = 0};
  if (options.ctc) {
    // States of the entries and of those that follow them.
    ctc_.emplace(*options.ctc, 2 * options.beam_size);
    first.ctc_slot = 0;
    ctc_->start(0);
    for (const TokenId token : start_.forced) {
      const int to = 1 - first.ctc_slot;
      ctc_->extend(first.ctc_slot, token, to);
      first.ctc_slot = to;
    }
  }
  entries_.push_back(first);
}

void AttentionBeam::select(std::span<float> logits, int vocabulary_size) {
  const auto size = static_cast<std::size_t>(vocabulary_size);
  kept_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.beam < 0) {
      offer({i, start_.eot, entry.score, entry.attention, entry.ctc});
    } else {
      offer_tokens(i, logits.subspan(static_cast<std::size_t>(entry.beam) * size, size));
    }
  }
  if (kept_.empty()) return beams_.clear();  // everything is masked: the search ends as it stands
  next_.clear();
  next_entries_.clear();
  for (const Candidate& candidate : kept_) take(candidate);
  entries_.swap(next_entries_);
  beams_.swap(next_);
}

// The likeliest tokens after an entry.
void AttentionBeam::offer_tokens(std::size_t from, std::span<float> logits) {
  const Entry& entry = entries_[from];
  apply_rules(rules_, logits, entry.history);
  const float normaliser = log_sum_exp(logits);
  const auto wanted = ctc_ ? std::ceil(attention_.candidates * static_cast<double>(width_))
                           : static_cast<double>(width_);
  top_k(logits, static_cast<int>(std::min(wanted, static_cast<double>(logits.size()))), best_);
  if (ctc_ && std::none_of(best_.begin(), best_.end(),
                           [&](const ScoredToken& e) { return e.token == start_.eot; })) {
    best_.push_back({start_.eot, logits[static_cast<std::size_t>(start_.eot)]});
  }
  for (const auto& [token, logit] : best_) {
    Candidate candidate{from, token, 0, entry.attention + double{logit - normaliser}, 0};
    candidate.score = candidate.attention;
    if (ctc_) {
      candidate.ctc = token == start_.eot ? ctc_->score_end(entry.ctc_slot)
                                          : ctc_->score(entry.ctc_slot, token);
      candidate.score =
          (1 - attention_.ctc_weight) * candidate.attention + attention_.ctc_weight * candidate.ctc;
    }
    offer(candidate);
  }
}

// Keeps the best, sorted; equals in the order in which they come.
void AttentionBeam::offer(const Candidate& candidate) {
  if (!(candidate.score > kLogZero)) return;
  const auto before = [](const Candidate& a, const Candidate& b) { return a.score > b.score; };
  if (kept_.size() == width_) {
    if (!before(candidate, kept_.back())) return;
    kept_.pop_back();
  }
  kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), candidate, before), candidate);
}

void AttentionBeam::take(const Candidate& candidate) {
  const Entry& parent = entries_[candidate.from];
  Entry made = parent;
  made.score = candidate.score;
  made.attention = candidate.attention;
  made.ctc = candidate.ctc;
  made.beam = -1;
  made.ctc_slot = -1;
  if (candidate.token != start_.eot) {
    made.history = tree_.extend(parent.history, candidate.token);
    made.beam = static_cast<int>(next_.size());
    if (ctc_) {
      made.ctc_slot = free_slot();
      ctc_->extend(parent.ctc_slot, candidate.token, made.ctc_slot);
    }
    parents_.push_back(beams_[static_cast<std::size_t>(parent.beam)].row);
    next_.push_back(
        {rows_[next_.size()], candidate.token, made.history, static_cast<float>(candidate.score)});
  }
  next_entries_.push_back(made);
}

int AttentionBeam::free_slot() const {
  for (int slot = 0;; ++slot) {
    const auto uses = [&](const Entry& entry) { return entry.ctc_slot == slot; };
    if (std::none_of(entries_.begin(), entries_.end(), uses) &&
        std::none_of(next_entries_.begin(), next_entries_.end(), uses)) {
      return slot;
    }
  }
}

std::vector<AttentionHypothesis> AttentionBeam::nbest() const {
  CHECK(done(), "results of a finished search");
  std::vector<AttentionHypothesis> all;
  for (const Entry& entry : entries_) {
    all.push_back(
        {tree_.tokens(entry.history), entry.score, entry.attention, entry.ctc, entry.beam < 0});
  }
  const auto ranked = [&](const AttentionHypothesis& hypothesis) {
    const auto length = static_cast<double>(std::max<std::size_t>(hypothesis.tokens.size(), 1));
    return hypothesis.score / std::pow(length, attention_.length_penalty);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const AttentionHypothesis& a, const AttentionHypothesis& b) {
                     return ranked(a) > ranked(b);
                   });
  return all;
}

std::vector<Hypothesis> AttentionBeam::results() const {
  std::vector<Hypothesis> all;
  const auto forced = start_.forced.size();
  for (AttentionHypothesis& entry : nbest()) {
    const auto chosen = static_cast<double>(entry.tokens.size() - forced + 1);
    all.push_back({std::move(entry.tokens), static_cast<float>(entry.attention_score),
                   entry.attention_score / chosen, entry.ended});
  }
  return all;
}

}  // namespace oasr::decode

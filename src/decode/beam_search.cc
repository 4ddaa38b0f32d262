#include "decode/beam_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "decode/scores.h"

namespace oasr::decode {
namespace {

class BeamSearch final : public Search {
 public:
  BeamSearch(SearchStart start, const SearchOptions& options, const LogitRules& rules,
             std::span<const RowId> rows)
      : Search(std::move(start), options, rules, rows),
        wanted_(static_cast<std::size_t>(std::nearbyint(options.beam_size * options.patience))) {
    const auto width = static_cast<std::size_t>(options.beam_size);
    best_.reserve(width + 1);
    candidates_.reserve(width * (width + 1));
    next_.reserve(width);
  }

 private:
  struct Candidate {
    std::size_t beam;  // index into beams_
    TokenId token;
    float sum;
  };

  void select(std::span<float> logits, int vocabulary_size) override {
    collect_candidates(logits, static_cast<std::size_t>(vocabulary_size));
    if (candidates_.empty()) return finish();  // everything is masked
    next_.clear();
    for (const Candidate& candidate : candidates_) {
      if (next_.size() == static_cast<std::size_t>(options_.beam_size)) break;
      const Beam& parent = beams_[candidate.beam];
      if (candidate.token == start_.eot) {
        if (finished_.size() < wanted_) finished_.push_back({parent.history, candidate.sum, true});
        continue;
      }
      next_.push_back({rows_[next_.size()], candidate.token,
                       tree_.extend(parent.history, candidate.token), candidate.sum});
      parents_.push_back(parent.row);
    }
    beams_.swap(next_);
    if (finished_.size() >= wanted_) beams_.clear();
  }

  // All extensions of all beams, in the order of their cumulative log-probability.
  void collect_candidates(std::span<float> logits, std::size_t vocabulary_size) {
    candidates_.clear();
    for (std::size_t i = 0; i < beams_.size(); ++i) {
      const auto scores = logits.subspan(i * vocabulary_size, vocabulary_size);
      apply_rules(rules_, scores, beams_[i].history);
      const float normaliser = log_sum_exp(scores);
      top_k(scores, options_.beam_size + 1, best_);
      for (const ScoredToken& entry : best_) {
        candidates_.push_back({i, entry.token, beams_[i].sum + (entry.logit - normaliser)});
      }
    }
    // An insertion sort: stable, without the buffer that std::stable_sort allocates.
    for (std::size_t i = 1; i < candidates_.size(); ++i) {
      const Candidate moved = candidates_[i];
      std::size_t place = i;
      for (; place > 0 && candidates_[place - 1].sum < moved.sum; --place) {
        candidates_[place] = candidates_[place - 1];
      }
      candidates_[place] = moved;
    }
  }

  void finish() override {
    // beams_ are sorted, best first.
    for (const Beam& beam : beams_) {
      if (finished_.size() >= static_cast<std::size_t>(options_.beam_size)) break;
      finished_.push_back({beam.history, beam.sum, false});
    }
    beams_.clear();
  }

  std::size_t wanted_;  // finished hypotheses that end the search
  std::vector<ScoredToken> best_;
  std::vector<Candidate> candidates_;
  std::vector<Beam> next_;
};

}  // namespace

std::unique_ptr<Search> make_beam_search(SearchStart start, const SearchOptions& options,
                                         const LogitRules& rules, std::span<const RowId> rows) {
  return std::make_unique<BeamSearch>(std::move(start), options, rules, rows);
}

}  // namespace oasr::decode

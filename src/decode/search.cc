#include "decode/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "decode/ranking.h"
#include "decode/scores.h"

namespace oasr::decode {

Search::Search(SearchStart start, const SearchOptions& options, const LogitRules& rules,
               std::span<const RowId> rows)
    : start_(std::move(start)),
      options_(options),
      rules_(rules),
      rows_(rows.begin(), rows.end()),
      tree_(start_.timestamp_begin,
            rows.size() * static_cast<std::size_t>(std::max(options.max_new_tokens, 0))),
      phase_(Phase::prompt) {
  CHECK(!start_.prompt.empty(), "a search starts from a prompt");
  CHECK(!rows_.empty(), "a search needs decoder rows");
  CHECK(options_.max_new_tokens > 0, "a search may choose at least one token");
  beams_.reserve(rows_.size());
  finished_.reserve(2 * rows_.size());
  beams_.push_back({rows_.front(), start_.prompt.back(), {}, 0});
  if (!start_.probe_index) return;
  const int last = static_cast<int>(start_.prompt.size()) - 1;
  CHECK(*start_.probe_index >= 0 && *start_.probe_index <= last, "the probe is in the prompt");
  phase_ = Phase::probe;
}

void Search::pending(std::vector<StepScorer::Input>& inputs) const {
  const std::span<const TokenId> prompt = start_.prompt;
  const std::size_t probed =
      start_.probe_index ? static_cast<std::size_t>(*start_.probe_index) + 1 : 0;
  switch (phase_) {
    case Phase::probe:
      inputs.push_back({rows_.front(), prompt.first(probed)});
      return;
    case Phase::prompt:
      inputs.push_back({rows_.front(), prompt.subspan(probed)});
      return;
    case Phase::steps:
      for (const Beam& beam : beams_) inputs.push_back({beam.row, {&beam.last, 1}});
      return;
    case Phase::done:
      return;
  }
}

void Search::advance(std::span<float> logits, int vocabulary_size, StepScorer& scorer) {
  CHECK(!done(), "the search is done");
  if (phase_ == Phase::probe) {
    const auto token = static_cast<std::size_t>(start_.probe_token);
    CHECK(token < logits.size(), "the probed token is in the vocabulary");
    probe_probability_ = std::exp(double{logits[token]} - log_sum_exp(logits));
    phase_ = Phase::prompt;
    if (*start_.probe_index + 1 < static_cast<int>(start_.prompt.size())) return;
  }
  phase_ = Phase::steps;
  ++steps_;
  select(logits, vocabulary_size, scorer);
  if (!beams_.empty() && steps_ < options_.max_new_tokens) return;
  finish();
  phase_ = Phase::done;
}

std::vector<Hypothesis> Search::results() const {
  CHECK(done() && !finished_.empty(), "results of a finished search");
  std::vector<Hypothesis> all;
  all.reserve(finished_.size());
  for (const Finished& entry : finished_) {
    all.push_back({tree_.tokens(entry.history), entry.sum,
                   double{entry.sum} / (entry.history.length + 1), entry.ended});
  }
  rank_by_likelihood(all, options_.length_penalty);
  return all;
}

bool Stepper::step(StepScorer& scorer, std::span<Search* const> searches) {
  inputs_.clear();
  counts_.clear();
  for (Search* search : searches) {
    const std::size_t before = inputs_.size();
    search->pending(inputs_);
    counts_.push_back(static_cast<int>(inputs_.size() - before));
  }
  if (inputs_.empty()) return false;
  const auto vocabulary = static_cast<std::size_t>(scorer.vocabulary_size());
  logits_.resize(inputs_.size() * vocabulary);
  scorer.score(inputs_, logits_);
  std::span<float> rest = logits_;
  for (std::size_t i = 0; i < searches.size(); ++i) {
    if (counts_[i] == 0) continue;
    const std::size_t size = static_cast<std::size_t>(counts_[i]) * vocabulary;
    searches[i]->advance(rest.first(size), static_cast<int>(vocabulary), scorer);
    rest = rest.subspan(size);
  }
  return true;
}

void Stepper::run(StepScorer& scorer, Search& search) {
  Search* one = &search;
  while (step(scorer, {&one, 1})) {
  }
}

}  // namespace oasr::decode

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
            rows.size() * static_cast<std::size_t>(std::max(options.max_new_tokens, 0)) +
                start_.forced.size()) {
  CHECK(!start_.prompt.empty(), "a search starts from a prompt");
  CHECK(!rows_.empty(), "a search needs decoder rows");
  CHECK(options_.max_new_tokens > 0, "a search may choose at least one token");
  beams_.reserve(rows_.size());
  finished_.reserve(2 * rows_.size());
  parents_.reserve(rows_.size());
  History history;
  for (const TokenId token : start_.forced) {
    start_.prompt.push_back(token);
    history = tree_.extend(history, token);
  }
  beams_.push_back({rows_.front(), start_.prompt.back(), history, 0});
  if (!start_.probe_index) return;
  const int last = static_cast<int>(start_.prompt.size()) - 1;
  CHECK(*start_.probe_index >= 0 && *start_.probe_index <= last, "the probe is in the prompt");
}

void Search::pending(std::vector<StepScorer::Input>& inputs) const {
  if (phase_ == Phase::prompt) {
    inputs.push_back({rows_.front(), start_.prompt, start_.probe_index.value_or(-1)});
  } else {
    for (const Beam& beam : beams_) inputs.push_back({beam.row, {&beam.last, 1}});
  }
}

void Search::advance(std::span<float> logits, int vocabulary_size) {
  CHECK(!done(), "the search is done");
  if (phase_ == Phase::prompt && start_.probe_index) {
    const auto size = static_cast<std::size_t>(vocabulary_size);
    const auto probed = logits.first(size);
    const auto token = static_cast<std::size_t>(start_.probe_token);
    CHECK(token < size, "the probed token is in the vocabulary");
    probe_probability_ = std::exp(double{probed[token]} - log_sum_exp(probed));
    logits = logits.subspan(size);
  }
  phase_ = Phase::steps;
  ++steps_;
  parents_.clear();
  select(logits, vocabulary_size);
  if (!beams_.empty() && steps_ < options_.max_new_tokens) return;
  finish();
  phase_ = Phase::done;
}

void Search::settle(StepScorer& scorer) {
  const auto rows = std::span<const RowId>(rows_).first(parents_.size());
  if (!done() && !std::equal(rows.begin(), rows.end(), parents_.begin())) scorer.reorder(rows, parents_);
  parents_.clear();
}

std::vector<Hypothesis> Search::results() const {
  CHECK(done() && !finished_.empty(), "results of a finished search");
  const int forced = static_cast<int>(start_.forced.size());
  std::vector<Hypothesis> all;
  all.reserve(finished_.size());
  for (const Finished& entry : finished_) {
    all.push_back({tree_.tokens(entry.history), entry.sum,
                   double{entry.sum} / (entry.history.length - forced + 1), entry.ended});
  }
  rank_by_likelihood(all, options_.length_penalty);
  return all;
}

bool Stepper::step(StepScorer& scorer, std::span<Search* const> searches) {
  inputs_.clear();
  first_.clear();
  std::size_t rows = 0;
  for (const Search* search : searches) {
    first_.push_back(rows);
    const std::size_t before = inputs_.size();
    search->pending(inputs_);
    rows += inputs_.size() - before;
    for (std::size_t i = before; i < inputs_.size(); ++i) rows += inputs_[i].probe >= 0;
  }
  first_.push_back(rows);
  if (inputs_.empty()) return false;
  const auto vocabulary = static_cast<std::size_t>(scorer.vocabulary_size());
  const std::span<float> logits = scorer.room(rows * vocabulary);
  scorer.score(inputs_, logits);
  const auto advance = [&](std::size_t i) {
    const auto own = logits.subspan(first_[i] * vocabulary, (first_[i + 1] - first_[i]) * vocabulary);
    if (!own.empty()) searches[i]->advance(own, static_cast<int>(vocabulary));
  };
  if (for_each_) {
    for_each_(searches.size(), std::cref(advance));
  } else {
    for (std::size_t i = 0; i < searches.size(); ++i) advance(i);
  }
  for (Search* search : searches) search->settle(scorer);
  return true;
}

void Stepper::run(StepScorer& scorer, Search& search) {
  Search* one = &search;
  while (step(scorer, {&one, 1})) {
  }
}

}  // namespace oasr::decode

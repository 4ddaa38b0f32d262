// Searches over a StepScorer as state machines: a search says which tokens it wants scored and is
// given logits, so that one score() call serves many searches. It never sees a model.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/history.h"
#include "decode/logit_rules.h"
#include "decode/random.h"
#include "decode/step_scorer.h"

namespace oasr::decode {

struct SearchOptions {
  int beam_size = 1;  // hypotheses of beam search; 1 at temperature 0: greedy
  int best_of = 1;    // samples at a temperature above 0
  double temperature = 0;
  double patience = 1;  // beam search ends with round(beam_size * patience) finished ones
  std::optional<double> length_penalty = {};  // nothing: divide by length; else ((5 + n) / 6)^alpha
  int max_new_tokens = 0;                     // > 0
  RandomKey random = {};                      // row and step are filled in
};

// What one search starts from.
struct SearchStart {
  std::vector<TokenId> prompt;  // at least one token
  // Follow the prompt and count as chosen, at no cost: a forced beginning of every hypothesis.
  std::vector<TokenId> forced = {};
  // The probability of `probe_token` after prompt[0 … probe_index] is reported (no-speech).
  std::optional<int> probe_index;
  TokenId probe_token = 0;
  TokenId eot = 0;              // ends a hypothesis
  TokenId timestamp_begin = 0;  // for History::last_timestamp
};

struct Hypothesis {
  std::vector<TokenId> tokens;  // after the prompt, without eot
  float sum_logprob = 0;        // eot included when it ended
  double avg_logprob = 0;       // sum / (tokens that were not forced + 1)
  bool ended = false;           // by eot, not by the token limit
};

// Decodes one window. Rows belong to the caller, are empty at the start, and may be truncated and
// used again afterwards. No allocation after construction until results().
class Search {
 public:
  // `rules` must outlive the search; rows.size() must be rows_needed(options) or more.
  Search(SearchStart start, const SearchOptions& options, const LogitRules& rules,
         std::span<const RowId> rows);
  virtual ~Search() = default;
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  bool done() const { return phase_ == Phase::done; }

  // Appends what must be scored next; nothing when done. The tokens are borrowed until advance().
  void pending(std::vector<StepScorer::Input>& inputs) const;

  // Takes the logits of pending(), as score() gave them, overwrites them, and goes one step on. Several
  // searches may do so at a time.
  void advance(std::span<float> logits, int vocabulary_size);
  // After advance(): gives the rows of the scorer the past that was chosen for them.
  void settle(StepScorer& scorer);

  // When done: the hypotheses, best first; never empty.
  virtual std::vector<Hypothesis> results() const;

  // When the prompt is scored: the probability asked for, 0 when none was.
  double probe_probability() const { return probe_probability_; }

  // Tokens chosen so far by the longest hypothesis, for progress and limits.
  int length() const { return steps_; }

 protected:
  struct Beam {
    RowId row = 0;
    TokenId last = 0;  // fed next
    History history;
    float sum = 0;  // log-probability
  };
  struct Finished {
    History history;  // eot left out
    float sum = 0;
    bool ended = true;
  };

  // Chooses from logits [beams_.size(), V], in the order of beams_; at the first step there is one
  // row of logits and beams_ holds one beam. Updates beams_, finished_ and parents_ (empty before);
  // leaves beams_ empty when the search is complete.
  virtual void select(std::span<float> logits, int vocabulary_size) = 0;
  // Candidates at the end; `beams_` are those that the token limit stopped.
  virtual void finish() = 0;

  SearchStart start_;
  SearchOptions options_;
  const LogitRules& rules_;
  std::vector<RowId> rows_;
  TokenTree tree_;
  std::vector<Beam> beams_;  // alive
  std::vector<RowId> parents_;  // rows_[i] takes over what parents_[i] holds, before the next step
  std::vector<Finished> finished_;
  int steps_ = 0;

 private:
  enum class Phase { prompt, steps, done };
  Phase phase_ = Phase::prompt;
  double probe_probability_ = 0;
};

// One strategy of choosing tokens. A table row in registry.cc.
struct Strategy {
  std::string_view name;  // "greedy", "sample", "beam"
  bool (*serves)(const SearchOptions& options);
  int (*rows)(const SearchOptions& options);  // decoder rows that it uses
  std::unique_ptr<Search> (*create)(SearchStart start, const SearchOptions& options,
                                    const LogitRules& rules, std::span<const RowId> rows);
};

std::span<const Strategy> strategies();

// The first strategy that serves `options`.
const Strategy& strategy_for(const SearchOptions& options);

inline int rows_needed(const SearchOptions& options) { return strategy_for(options).rows(options); }
inline std::unique_ptr<Search> make_search(SearchStart start, const SearchOptions& options,
                                           const LogitRules& rules, std::span<const RowId> rows) {
  return strategy_for(options).create(std::move(start), options, rules, rows);
}

// Calls body(i) for i in [0, items), in any order or at a time.
using ForEach = std::function<void(std::size_t items, const std::function<void(std::size_t)>& body)>;

// Steps many searches with one score() call each time. Keeps its buffers: no allocation once they
// have grown.
class Stepper {
 public:
  // Searches choose their tokens in calls of `for_each`; by default one after the other.
  explicit Stepper(ForEach for_each = {}) : for_each_(std::move(for_each)) {}

  // One step of every search that is not done. False when all are done.
  bool step(StepScorer& scorer, std::span<Search* const> searches);
  // Until `search` is done.
  void run(StepScorer& scorer, Search& search);

 private:
  ForEach for_each_;
  std::vector<StepScorer::Input> inputs_;
  std::vector<std::size_t> first_;  // row of logits, by search; their number at the end
};

}  // namespace oasr::decode

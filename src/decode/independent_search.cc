#include "decode/independent_search.h"

#include <utility>

#include "decode/scores.h"

namespace oasr::decode {
namespace {

class IndependentSearch final : public Search {
 public:
  IndependentSearch(SearchStart start, const SearchOptions& options, const LogitRules& rules,
                    std::span<const RowId> rows)
      : Search(std::move(start), options, rules, rows) {}

 private:
  void select(std::span<float> logits, int vocabulary_size) override {
    const auto size = static_cast<std::size_t>(vocabulary_size);
    if (steps_ == 1) {
      // All samples start from the same logits; the prompt was scored in the first row only.
      apply_rules(rules_, logits, beams_.front().history);
      parents_.assign(rows_.size(), rows_.front());
      const History start = beams_.front().history;
      beams_.clear();
      for (const RowId row : rows_) choose({row, 0, start, 0}, logits);
      return;
    }
    const std::size_t alive = beams_.size();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < alive; ++i) {
      const auto scores = logits.subspan(i * size, size);
      apply_rules(rules_, scores, beams_[i].history);
      Beam beam = beams_[i];
      if (extend(beam, scores)) beams_[kept++] = beam;
    }
    beams_.resize(kept);
  }

  void choose(Beam beam, std::span<const float> logits) {
    if (extend(beam, logits)) beams_.push_back(beam);
  }

  // Chooses the beam's next token; false, and the beam is finished, when it is eot.
  bool extend(Beam& beam, std::span<const float> logits) {
    const TokenId token = next_token(beam, logits);
    beam.sum += logits[static_cast<std::size_t>(token)] - log_sum_exp(logits);
    if (token == start_.eot) {
      finished_.push_back({beam.history, beam.sum, true});
      return false;
    }
    beam.history = tree_.extend(beam.history, token);
    beam.last = token;
    return true;
  }

  TokenId next_token(const Beam& beam, std::span<const float> logits) const {
    if (options_.temperature <= 0) return arg_max(logits);
    RandomKey key = options_.random;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i] == beam.row) key.row = static_cast<std::uint32_t>(i);
    }
    key.step = static_cast<std::uint32_t>(steps_);
    return sample(logits, static_cast<float>(options_.temperature), uniform(key));
  }

  void finish() override {
    for (const Beam& beam : beams_) finished_.push_back({beam.history, beam.sum, false});
    beams_.clear();
  }
};

}  // namespace

std::unique_ptr<Search> make_independent_search(SearchStart start, const SearchOptions& options,
                                                const LogitRules& rules,
                                                std::span<const RowId> rows) {
  return std::make_unique<IndependentSearch>(std::move(start), options, rules, rows);
}

}  // namespace oasr::decode

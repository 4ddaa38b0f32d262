#include "decode/rescoring.h"

#include <algorithm>
#include <cmath>

#include "decode/log_math.h"

namespace oasr::decode {
namespace {

Status check(const RescoringOptions& options, bool has_right_to_left) {
  const auto bad = [](const char* what, const char* remedy) {
    return unexpected(ErrorCode::invalid_argument, what, "attention rescoring", remedy);
  };
  if (!std::isfinite(options.ctc_weight) || options.ctc_weight < 0) {
    return bad("ctc_weight is not a number of 0 or more", "0.5 is usual");
  }
  if (!(options.reverse_weight >= 0 && options.reverse_weight <= 1)) {
    return bad("reverse_weight is not in 0 to 1", "use what the model was trained with");
  }
  if (options.reverse_weight > 0 && !has_right_to_left) {
    return bad("the model has no right-to-left decoder", "set reverse_weight to 0");
  }
  return {};
}

double sum(std::span<const float> log_probabilities) {
  double total = 0;
  for (const float value : log_probabilities) total += double{value};
  return total;
}

RescoredHypothesis combine(const CtcHypothesis& first, std::span<const float> left,
                           std::span<const float> right, const RescoringOptions& options) {
  RescoredHypothesis made;
  made.first = first;
  made.left_score = sum(left);
  made.right_score = sum(right);
  double score = made.left_score;
  if (!right.empty()) {
    score = score * (1 - options.reverse_weight) + made.right_score * options.reverse_weight;
  }
  const std::size_t count = first.tokens.size();
  made.confidence = exp_of_negative(score / static_cast<double>(count + 1));
  made.score = score + first.score * options.ctc_weight;
  made.token_confidences.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    double confidence = exp_of_negative(double{left[i]});
    if (!right.empty()) confidence = (confidence + exp_of_negative(double{right[i]})) / 2;
    made.token_confidences.push_back(confidence);
  }
  return made;
}

}  // namespace

Result<std::vector<std::vector<RescoredHypothesis>>> rescore(SequenceScorer& scorer,
                                                             std::span<const RescoringInput> inputs,
                                                             const RescoringOptions& options) {
  TRY(check(options, scorer.has_right_to_left()));
  const bool both = options.reverse_weight > 0;
  std::vector<std::vector<TokenId>> tokens;
  std::size_t values = 0;
  for (const RescoringInput& input : inputs) {
    for (const CtcHypothesis& hypothesis : input.hypotheses) {
      tokens.push_back(hypothesis.ids());
      values += hypothesis.tokens.size() + 1;
    }
  }
  std::vector<float> left(values), right(both ? values : 0);
  std::vector<SequenceScorer::Item> items;
  std::size_t at = 0;
  for (const RescoringInput& input : inputs) {
    for (std::size_t i = 0; i < input.hypotheses.size(); ++i) {
      const std::vector<TokenId>& ids = tokens[items.size()];
      SequenceScorer::Item item{input.utterance, ids, {}, {}};
      item.left = std::span(left).subspan(at, ids.size() + 1);
      if (both) item.right = std::span(right).subspan(at, ids.size() + 1);
      items.push_back(item);
      at += ids.size() + 1;
    }
  }
  if (!items.empty()) scorer.score(items);
  std::vector<std::vector<RescoredHypothesis>> all;
  auto item = items.begin();
  for (const RescoringInput& input : inputs) {
    auto& list = all.emplace_back();
    for (const CtcHypothesis& hypothesis : input.hypotheses) {
      list.push_back(combine(hypothesis, item->left, item->right, options));
      ++item;
    }
    std::stable_sort(
        list.begin(), list.end(),
        [](const RescoredHypothesis& a, const RescoredHypothesis& b) { return a.score > b.score; });
  }
  return all;
}

}  // namespace oasr::decode

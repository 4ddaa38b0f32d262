#include "decode/ranking.h"

#include <algorithm>
#include <cmath>

namespace oasr::decode {

void rank_by_likelihood(std::vector<Hypothesis>& hypotheses, std::optional<double> alpha) {
  const auto score = [&](const Hypothesis& hypothesis) {
    const auto length = static_cast<double>(hypothesis.tokens.size());
    const double penalty = alpha ? std::pow((5.0 + length) / 6.0, *alpha) : std::max(length, 1.0);
    return double{hypothesis.sum_logprob} / penalty;
  };
  std::stable_sort(hypotheses.begin(), hypotheses.end(),
                   [&](const Hypothesis& a, const Hypothesis& b) { return score(a) > score(b); });
}

}  // namespace oasr::decode

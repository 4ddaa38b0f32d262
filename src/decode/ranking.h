// Which of several hypotheses is the result.
#pragma once

#include <optional>
#include <vector>

#include "decode/search.h"

namespace oasr::decode {

// Sorts by sum_logprob / penalty, falling; equals keep their order. The penalty is the number of
// tokens, or with `alpha` Google NMT's ((5 + n) / 6)^alpha (Wu et al. 2016, section 7). An empty
// hypothesis counts as one token.
void rank_by_likelihood(std::vector<Hypothesis>& hypotheses, std::optional<double> alpha);

}  // namespace oasr::decode

// Arithmetic on one row of logits: log-sum-exp, argmax, top-k, sampling. Masked logits are -inf.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "decode/scored_token.h"
#include "text/token_id.h"

namespace oasr::decode {

// log(sum(exp(logits))): the greatest logit plus the log of a sum that float32 polynomials feed
// (relative error of an exp below 3e-7) and doubles accumulate in a fixed order. -inf when all
// logits are.
float log_sum_exp(std::span<const float> logits);

// Whether none is NaN or an infinity.
bool all_finite(std::span<const float> values);

// x becomes its log-probabilities, x - log_sum_exp(x). That sum; NaN where a number is not finite before or after, and
// before, x stays what it is.
float log_softmax(std::span<float> x);

// The greatest logit; -inf when there is none. NaN is passed over.
float greatest(std::span<const float> logits);

// The greatest logit's id; the lowest id among equals.
TokenId arg_max(std::span<const float> logits);

// The greatest logits in falling order (equals: rising id), as many as `best` has room for; -inf left out. Their
// number.
std::size_t top_k(std::span<const float> logits, std::span<ScoredToken> best);
// `count` of them at most.
void top_k(std::span<const float> logits, int count, std::vector<ScoredToken>& best);

// The id at `uniform` in [0, 1) of the cumulative softmax(logits / temperature), temperature > 0.
TokenId sample(std::span<const float> logits, float temperature, double uniform);

}  // namespace oasr::decode

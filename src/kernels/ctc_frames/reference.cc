#include <cmath>
#include <limits>

#include "decode/log_math.h"
#include "decode/softmax_exp.h"
#include "kernels/ctc_frames/op.h"

namespace oasr::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// log Σ exp(x) as docs/numerics.md has it: eight chains a block of 64, blocks in binary64.
float log_sum_exp(const float* x, std::int64_t size) {
  float greatest = x[0];
  for (std::int64_t i = 1; i < size; ++i) greatest = x[i] > greatest ? x[i] : greatest;
  double sum = 0;
  for (std::int64_t first = 0; first < size; first += 64) {
    const std::int64_t count = size - first < 64 ? size - first : 64, whole = count / 8 * 8;
    float a[8] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      a[i < whole ? i % 8 : 0] += decode::softmax_exp(x[first + i] - greatest);
    }
    sum += double{((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]))};
  }
  return static_cast<float>(double{greatest} + decode::log_of(sum));
}

float norm_of(const float* x, std::int64_t size) {
  for (std::int64_t v = 0; v < size; ++v) {
    if (!std::isfinite(x[v])) return kNan;
  }
  const float norm = log_sum_exp(x, size);
  for (std::int64_t v = 0; v < size; ++v) {
    if (!std::isfinite(x[v] - norm)) return kNan;
  }
  return norm;
}

// The token that follows `last` in the order of the likeliest; `last` < 0: the first of all.
TokenId next_token(const float* x, std::int64_t size, float norm, TokenId last) {
  TokenId best = -1;
  for (TokenId v = 0; v < size; ++v) {
    const float p = x[v] - norm;
    if (last >= 0) {
      const float limit = x[last] - norm;
      if (p > limit || (p == limit && v <= last)) continue;
    }
    if (best < 0 || p > x[best] - norm) best = v;
  }
  return best;
}

}  // namespace

void ctc_frames_reference(const CtcFramesArgs& args) {
  const std::int64_t vocabulary = args.logits.columns, width = args.width;
  std::int64_t m = 0;
  for (const CtcPiece& piece : args.pieces) {
    for (std::int64_t i = 0; i < piece.rows; ++i, ++m) {
      const float* x = args.logits.row(m);
      const float norm = args.out.norms[m] = norm_of(x, vocabulary);
      args.out.blanks[m] = x[args.blank] - norm;
      TokenId token = -1;
      for (std::int64_t k = 0; k < width; ++k) {
        TokenId before = 0;
        if (i > 0) before = args.out.likeliest[(m - 1) * width + k].token;
        if (i == 0 && !piece.before.empty()) before = piece.before[static_cast<std::size_t>(k)];
        args.out.again[m * width + k] = x[before] - norm;
        if (std::isnan(norm)) {
          args.out.likeliest[m * width + k] = {0, kNan};
        } else {
          token = next_token(x, vocabulary, norm, token);
          args.out.likeliest[m * width + k] = {token, x[token] - norm};
        }
      }
    }
  }
}

}  // namespace oasr::kernels

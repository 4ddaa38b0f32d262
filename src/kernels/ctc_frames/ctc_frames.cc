#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "decode/scores.h"
#include "kernels/ctc_frames/cuda.h"
#include "kernels/ctc_frames/op.h"

namespace oasr::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void reduce_row(const CtcFramesArgs& args, std::int64_t m) {
  const std::span<float> x(args.logits.row(m), static_cast<std::size_t>(args.logits.columns));
  const std::span likeliest(args.out.likeliest + m * args.width, static_cast<std::size_t>(args.width));
  const float norm = args.out.norms[m] = decode::log_softmax(x);
  if (!std::isnan(norm)) {
    decode::top_k(x, likeliest);
    args.out.blanks[m] = x[static_cast<std::size_t>(args.blank)];
  } else {
    std::ranges::fill(likeliest, decode::ScoredToken{0, kNan});
    args.out.blanks[m] = kNan;
  }
}

}  // namespace

void ctc_frames(ExecContext& context, const CtcFramesArgs& args) {
  const Matrix& x = args.logits;
  CHECK(args.width >= 1 && args.width <= x.columns, "as many tokens as the vocabulary has, at most");
  CHECK(args.blank >= 0 && args.blank < x.columns, "a blank of the vocabulary");
  std::int64_t rows = 0;
  for (const CtcPiece& piece : args.pieces) {
    CHECK(piece.rows > 0, "pieces that have rows");
    CHECK(piece.before.empty() || piece.before.size() == static_cast<std::size_t>(args.width),
          "as many tokens of the frame before as of any other");
    for (const TokenId token : piece.before) CHECK(token >= 0 && token < x.columns, "tokens of the vocabulary");
    rows += piece.rows;
  }
  CHECK(rows == x.rows, "pieces of all rows");
  if (context.gpu != nullptr) return ctc_frames_cuda(*context.gpu, args);
  context.pool->parallel_for(x.rows, [&](std::int64_t m, int) { reduce_row(args, m); });
  std::int64_t m = 0;
  for (const CtcPiece& piece : args.pieces) {
    for (std::int64_t i = 0; i < piece.rows; ++i, ++m) {
      for (std::int64_t k = 0; k < args.width; ++k) {
        TokenId token = 0;
        if (i > 0) {
          token = args.out.likeliest[(m - 1) * args.width + k].token;
        } else if (!piece.before.empty()) {
          token = piece.before[static_cast<std::size_t>(k)];
        }
        const float norm = args.out.norms[m];
        args.out.again[m * args.width + k] = !std::isnan(norm) ? x.row(m)[token] : kNan;
      }
    }
  }
}

}  // namespace oasr::kernels

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/layout.h"
#include "tensor/exact_math.h"

namespace oasr::kernels {
namespace {

float element(const KvCache& cache, std::int64_t at) {
  if (cache.storage == DType::f32) return reinterpret_cast<const float*>(cache.data)[at];
  return to_float(reinterpret_cast<const Half*>(cache.data)[at]);
}

// The canonical tree: sixteen partial sums over j mod 16, folded in halves.
float canonical_sum(const std::vector<float>& values) {
  float sum[16] = {};
  for (std::size_t j = 0; j < values.size(); ++j) sum[j % 16] += values[j];
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sum[i] += sum[i + width];
  }
  return sum[0];
}

// A number of a query, or of a second one.
float shifted(const float* q, const float* shift, std::int64_t at) { return shift == nullptr ? q[at] : q[at] + shift[at]; }

void one_query(const AttentionArgs& args, std::int64_t head, std::int64_t query, std::int64_t seen) {
  const KvCache& cache = *args.kv;
  const KvLayout layout(cache);
  const float* q = args.q + query * args.ldq;
  const std::int64_t first = head * cache.head_dim;
  std::vector<float> p(static_cast<std::size_t>(seen));
  float greatest = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < seen; ++j) {
    float score = 0.0f;
    for (std::int64_t d = 0; d < cache.head_dim; ++d) {
      score = std::fma(shifted(q, args.q_shift, first + d), element(cache, layout.key(head, j, d)), score);
    }
    if (args.positions != nullptr) {
      const KvLayout positions(*args.positions);
      const float* second = args.q_position + query * args.ldq;
      for (std::int64_t d = 0; d < cache.head_dim; ++d) {
        score = std::fma(shifted(second, args.q_position_shift, first + d),
                         element(*args.positions, positions.key(head, j, d)), score);
      }
    }
    p[static_cast<std::size_t>(j)] = score * args.scale;
    greatest = std::max(greatest, score * args.scale);
  }
  for (float& value : p) value = exact::exp(value - greatest);
  const float sum = canonical_sum(p);
  for (std::int64_t d = 0; d < cache.head_dim; ++d) {
    float out = 0.0f;
    for (std::int64_t j = 0; j < seen; ++j) {
      out = std::fma(p[static_cast<std::size_t>(j)], element(cache, layout.value(head, j, d)), out);
    }
    args.out[query * args.ldo + head * cache.head_dim + d] = out / sum;
  }
  if (args.weights == nullptr) return;
  float* weights = args.weights + (head * args.queries + query) * cache.length;
  for (std::int64_t j = 0; j < cache.length; ++j) {
    weights[j] = j < seen ? p[static_cast<std::size_t>(j)] / sum : 0.0f;
  }
}

}  // namespace

void attention_reference(const AttentionArgs& args) {
  for (std::int64_t head = 0; head < args.kv->heads; ++head) {
    for (std::int64_t query = 0; query < args.queries; ++query) {
      const std::int64_t hidden = args.causal ? args.queries - 1 - query : 0;
      one_query(args, head, query, args.kv->length - hidden);
    }
  }
}

}  // namespace oasr::kernels

// attention() for any instruction set: the template that the files cpu_*.cc instantiate.
//
// Three steps for a block of queries of one head: scores (a matrix product with the panels of
// keys), softmax numerators, and the weighted sum of values (a matrix product with the rows of
// values). The numerators of all queries of the block wait in the scratch memory.
#pragma once

#include <cstdint>

#include "kernels/attention/layout.h"
#include "kernels/simd/several.h"
#include "kernels/simd/tile.h"
#include "tensor/exact_poly.h"

namespace oasr::kernels {

template <class S>
class AttentionLaneOf {
  using V = typename S::V;
  // Register tiles: four vectors across where the registers allow, else two.
  static constexpr int kAcross = S::kRegisters >= 24 ? 4 : 2;
  static constexpr int kRows = S::kRegisters / kAcross;
  static constexpr int kKeyVectors = static_cast<int>(kKeys) / S::kWidth;  // of a panel of keys
  static constexpr int kGroup = kKeyVectors == 1 ? 4 : kKeyVectors;  // vectors of numerators at a time
  static_assert(kGroup % kKeyVectors == 0);
  static constexpr std::int64_t kBlockKeys = 128;  // values of a block stay in the first-level cache

  struct Work {
    const AttentionArgs& args;
    std::int64_t head, q0, q1;
    std::int64_t head_dim;
    std::int64_t stride;  // of the rows of numerators
    float* p;             // [q1 - q0, stride]: scores, then numerators
    float* sums;          // [q1 - q0]
    float* out;           // [q1 - q0, kOutStride]: a stripe of columns of the weighted sums
    float* q;             // [q1 - q0, head_dim]: the queries, side by side
    float* q_position;    // the same of the second queries, or null
    const void* positions;  // keys of the head, or null: float32 or float16 as kv's

    std::int64_t seen(std::int64_t query) const {
      return args.kv->length - (args.causal ? args.queries - 1 - query : 0);
    }
  };

 public:
  static void run(const AttentionArgs& args, std::int64_t head, std::int64_t q0, std::int64_t q1,
                  float* scratch) {
    const KvCache& kv = *args.kv;
    const KvLayout layout(kv);
    const std::int64_t stride = score_stride(kv.length);
    const std::int64_t queries = q1 - q0;
    Work work{args, head, q0, q1, kv.head_dim, stride, scratch, nullptr, nullptr, nullptr, nullptr, nullptr};
    work.out = work.p + queries * stride;
    work.q = work.out + queries * kOutStride;
    work.sums = work.q + queries * kv.head_dim;
    gather(work, args.q, args.q_shift, work.q);
    if (args.positions != nullptr) {
      work.q_position = work.sums + queries;
      gather(work, args.q_position, args.q_position_shift, work.q_position);
      const std::int64_t at = KvLayout(*args.positions).keys(head);
      work.positions = args.positions->data + at * static_cast<std::int64_t>(dtype_size(kv.storage));
    }
    if (kv.storage == DType::f32) {
      const auto* data = reinterpret_cast<const float*>(kv.data);
      steps(work, data + layout.keys(head), data + layout.values(head));
    } else {
      const auto* data = reinterpret_cast<const Half*>(kv.data);
      steps(work, data + layout.keys(head), data + layout.values(head));
    }
  }

 private:
  template <class T>
  static void steps(const Work& work, const T* keys, const T* values) {
    scores(work, keys);
    for (std::int64_t q = work.q0; q < work.q1; ++q) numerators(work, q);
    weighted_sums(work, values);
    if (work.args.weights != nullptr) {
      for (std::int64_t q = work.q0; q < work.q1; ++q) write_weights(work, q);
    }
  }

  // Queries side by side: their rows in `args` lie so that they compete for a few sets of the cache.
  static void gather(const Work& work, const float* queries, const float* shift, float* side_by_side) {
    if (shift != nullptr) shift += work.head * work.head_dim;
    for (std::int64_t q = work.q0; q < work.q1; ++q) {
      const float* from = queries + q * work.args.ldq + work.head * work.head_dim;
      float* to = side_by_side + (q - work.q0) * work.head_dim;
      for (std::int64_t d = 0; d < work.head_dim; ++d) to[d] = shift == nullptr ? from[d] : from[d] + shift[d];
    }
  }

  // scale · q kᵀ of all queries, panel after panel of the keys that the last query sees.
  template <class T>
  static void scores(const Work& work, const T* keys) {
    const std::int64_t panels = (work.seen(work.q1 - 1) + kKeys - 1) / kKeys;
    if (work.q1 - work.q0 == 1) {
      constexpr std::int64_t kMany = 4;  // streams, and chains, that one query needs
      std::int64_t panel = 0;
      for (; panel + kMany <= panels; panel += kMany) score_tile<1, kMany>(work, keys, work.q0, panel);
      for (; panel < panels; ++panel) score_tile<1, 1>(work, keys, work.q0, panel);
      return;
    }
    constexpr int kPanels = kKeyVectors < kAcross ? kAcross / kKeyVectors : 1;
    std::int64_t panel = 0;
    for (; panel + kPanels <= panels; panel += kPanels) {
      for_row_tiles(work, [&](auto rows, std::int64_t q) {
        score_tile<rows.value, kPanels>(work, keys, q, panel);
      });
    }
    for (; panel < panels; ++panel) {
      for_row_tiles(work, [&](auto rows, std::int64_t q) {
        score_tile<rows.value, 1>(work, keys, q, panel);
      });
    }
  }

  template <int kTileRows, int kPanels, class T>
  static void score_tile(const Work& work, const T* keys, std::int64_t q, std::int64_t panel) {
    constexpr int kVectors = kKeyVectors <= 2 ? kKeyVectors : 2;
    const V scale = S::set(work.args.scale);
    const T* from = keys + panel * work.head_dim * kKeys;
    const T* positions = static_cast<const T*>(work.positions);
    float* to = work.p + (q - work.q0) * work.stride + panel * kKeys;
    // The panels that follow: each row tile fetches a part.
    const auto* next = reinterpret_cast<const char*>(from + kPanels * work.head_dim * kKeys) +
                       (q - work.q0) / kRows * work.head_dim * 64;
    for (int v = 0; v < kKeyVectors; v += kVectors) {
      Tile<S, kTileRows, kPanels, kVectors> tile;
      tile.zero();
      tile.multiply(work.q + (q - work.q0) * work.head_dim, work.head_dim, from + v * S::kWidth, kKeys,
                    work.head_dim * kKeys, work.head_dim, next);
      if (positions != nullptr) {
        tile.multiply(work.q_position + (q - work.q0) * work.head_dim, work.head_dim,
                      positions + panel * work.head_dim * kKeys + v * S::kWidth, kKeys,
                      work.head_dim * kKeys, work.head_dim);
      }
      tile.scale(scale);
      tile.store(to + v * S::kWidth, work.stride, kKeys);
    }
  }

  // Scores to exp(score - greatest), and their sum in the canonical tree; zero after the last
  // position that the query sees, up to a whole panel.
  static void numerators(const Work& work, std::int64_t q) {
    constexpr float kLeast = -__builtin_inff();
    float* p = work.p + (q - work.q0) * work.stride;
    const std::int64_t seen = work.seen(q);
    const std::int64_t whole = seen / S::kWidth * S::kWidth;
    const int rest = static_cast<int>(seen - whole);
    using Group = Several<S, kGroup>;
    typename Group::V group = Group::set(kLeast);
    std::int64_t j = 0;
    for (; j + Group::kWidth <= seen; j += Group::kWidth) group = Group::max(Group::load(p + j), group);
    V most = S::set(kLeast);
    for (const V& v : group.at) most = S::max(v, most);
    for (; j < whole; j += S::kWidth) most = S::max(S::load(p + j), most);
    if (rest > 0) most = S::max(S::fill_after_first(S::load(p + whole), rest, kLeast), most);
    const V greatest = S::set(S::greatest(most));

    V sum[kKeyVectors];
    for (V& s : sum) s = S::set(0.0f);
    j = 0;
    for (; j + Group::kWidth <= seen; j += Group::kWidth) {
      typename Group::V e = Group::load(p + j);
      for (V& score : e.at) score = S::sub(score, greatest);
      e = exact::exp<Group>(e);
      Group::store(p + j, e);
      for (int v = 0; v < kGroup; ++v) sum[v % kKeyVectors] = S::add(sum[v % kKeyVectors], e.at[v]);
    }
    for (int v = 0; j < (seen + kKeys - 1) / kKeys * kKeys; ++v, j += S::kWidth) {
      const std::int64_t left = seen - j < 0 ? 0 : (seen - j < S::kWidth ? seen - j : S::kWidth);
      const V e = S::keep_first(exact::exp<S>(S::sub(S::load(p + j), greatest)), static_cast<int>(left));
      S::store(p + j, e);
      sum[v % kKeyVectors] = S::add(sum[v % kKeyVectors], e);
    }
    work.sums[q - work.q0] = S::fold_sum(sum);
  }

  // (Σ p(j) · v(j)) / Σ p, a stripe of columns after the other.
  template <class T>
  static void weighted_sums(const Work& work, const T* values) {
    constexpr int kWide = static_cast<int>(kOutStride) / S::kWidth;
    const bool one = work.q1 - work.q0 == 1;
    const std::int64_t step = one ? kOutStride : kAcross * S::kWidth;
    for (std::int64_t d = 0; d < work.head_dim; d += step) {
      if (one) {
        Tile<S, 1, 1, kWide> tile;
        tile.zero();
        tile.multiply(work.p, work.stride, values + d, work.head_dim, 0, work.seen(work.q0));
        tile.store(work.out, kOutStride);
      } else {
        stripe(work, values + d);
      }
      for (std::int64_t q = work.q0; q < work.q1; ++q) divide(work, q, d, step);
    }
  }

  template <class T>
  static void stripe(const Work& work, const T* values) {
    const std::int64_t common = work.seen(work.q0);  // the first query sees the fewest
    for (std::int64_t j = 0; j < common; j += kBlockKeys) {
      const std::int64_t count = common - j < kBlockKeys ? common - j : kBlockKeys;
      for_row_tiles(work, [&](auto rows, std::int64_t q) {
        sum_tile<rows.value>(work, values, q, j, count);
      });
    }
    for (std::int64_t q = work.q0 + 1; q < work.q1; ++q) {  // causal: what later queries see more
      if (work.seen(q) > common) sum_tile<1>(work, values, q, common, work.seen(q) - common);
    }
  }

  template <int kTileRows, class T>
  static void sum_tile(const Work& work, const T* values, std::int64_t q, std::int64_t j,
                       std::int64_t count) {
    const std::int64_t row = q - work.q0;
    Tile<S, kTileRows, 1, kAcross> tile;
    if (j == 0) {
      tile.zero();
    } else {
      tile.load(work.out + row * kOutStride, kOutStride);
    }
    const T* from = values + j * work.head_dim;
    const auto* next = reinterpret_cast<const char*>(from + count * work.head_dim) + row / kRows * count * 64;
    tile.multiply(work.p + row * work.stride + j, work.stride, from, work.head_dim, 0, count, next);
    tile.store(work.out + row * kOutStride, kOutStride);
  }

  // Columns [d, d + count) of one query's output, as far as the head has them.
  static void divide(const Work& work, std::int64_t q, std::int64_t d, std::int64_t count) {
    const V sum = S::set(work.sums[q - work.q0]);
    const float* from = work.out + (q - work.q0) * kOutStride;
    float* to = work.args.out + q * work.args.ldo + work.head * work.head_dim + d;
    const std::int64_t columns = work.head_dim - d < count ? work.head_dim - d : count;
    for (std::int64_t c = 0; c < columns; c += S::kWidth) {
      const int n = columns - c < S::kWidth ? static_cast<int>(columns - c) : S::kWidth;
      S::store_first(to + c, S::div(S::load(from + c), sum), n);
    }
  }

  static void write_weights(const Work& work, std::int64_t q) {
    const float* p = work.p + (q - work.q0) * work.stride;
    const V sum = S::set(work.sums[q - work.q0]);
    const std::int64_t length = work.args.kv->length, seen = work.seen(q);
    float* to = work.args.weights + (work.head * work.args.queries + q) * length;
    for (std::int64_t j = 0; j < length; j += S::kWidth) {
      const int n = length - j < S::kWidth ? static_cast<int>(length - j) : S::kWidth;
      const V weight = S::div(S::load(p + j), sum);
      const std::int64_t kept = seen - j < 0 ? 0 : (seen - j < n ? seen - j : n);
      S::store_first(to + j, S::keep_first(weight, static_cast<int>(kept)), n);
    }
  }

  template <class F>
  static void for_row_tiles(const Work& work, F f) {
    for (std::int64_t q = work.q0; q < work.q1; q += kRows) {
      const int rows = static_cast<int>(work.q1 - q < kRows ? work.q1 - q : kRows);
      with_rows<kRows>(rows, [&](auto r) { f(r, q); });
    }
  }
};

}  // namespace oasr::kernels

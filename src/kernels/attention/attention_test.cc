#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/attention/few_plan.h"
#include "kernels/attention/layout.h"
#include "kernels/attention/op.h"
#include "kernels/lane_report.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

[[maybe_unused]] const auto* const kLanes = report_lanes("attention", attention_lanes);

struct Geometry {
  int heads;
  int head_dim;
  std::int64_t queries;
  std::int64_t length;
  bool causal = false;
  DType storage = DType::f32;
  bool positions = false;
};

std::ostream& operator<<(std::ostream& out, const Geometry& g) {
  return out << g.heads << " heads of " << g.head_dim << ", " << g.queries << " queries, length "
             << g.length << (g.causal ? ", causal, " : ", ") << dtype_name(g.storage)
             << (g.positions ? ", positions" : "");
}

// A problem with its memory; rows have gaps, so that a write or read out of place is seen.
class Case {
 public:
  Case(const Geometry& g, unsigned seed, float scale = 0.125f)
      : g(g), width(g.heads * g.head_dim), q(random_floats(g.queries * (width + 3), seed, 2.0f)),
        k(random_floats(g.length * (width + 1), seed + 1, 2.0f)),
        v(random_floats(g.length * (width + 2), seed + 2)),
        out(static_cast<std::size_t>(g.queries * (width + 5)), 77.0f),
        weights(static_cast<std::size_t>(g.heads * g.queries * g.length), 77.0f), scale(scale),
        q_position(random_floats(g.queries * (width + 3), seed + 7, 2.0f)),
        position_keys(random_floats((g.length + 3) * width, seed + 8, 2.0f)),
        shifts(seed % 2 == 0 ? std::vector<float>() : random_floats(2 * width, seed + 9)),
        memory(kv_cache_bytes(g.heads, g.head_dim, g.length + 5, g.storage)),
        position_memory(kv_cache_bytes(g.heads, g.head_dim, g.length + 40, g.storage)) {
    std::fill_n(memory.data(), memory.size(), std::byte{0xFF});  // NaN where nothing is stored
    kv = {.heads = g.heads, .head_dim = g.head_dim, .capacity = g.length + 5, .length = 0,
          .storage = g.storage, .data = memory.data()};
    std::fill_n(position_memory.data(), position_memory.size(), std::byte{0xFF});
    positions = {.heads = g.heads, .head_dim = g.head_dim, .capacity = g.length + 40, .length = 0,
                 .storage = g.storage, .data = position_memory.data()};
  }
  void fill(ExecContext& context) {
    kv.length = 0;
    kv_append(context, kv, k.data(), width + 1, v.data(), width + 2, g.length);
    positions.length = 0;
    kv_append(context, positions, position_keys.data(), width, nullptr, 0, g.length + 3);
  }
  AttentionArgs args() {
    return {.q = q.data(), .ldq = width + 3, .queries = g.queries, .kv = &kv, .causal = g.causal,
            .scale = scale, .q_position = g.positions ? q_position.data() : nullptr,
            .positions = g.positions ? &positions : nullptr, .q_shift = shifts.empty() ? nullptr : shifts.data(),
            .q_position_shift = shifts.empty() ? nullptr : shifts.data() + width, .out = out.data(), .ldo = width + 5,
            .weights = weights.data()};
  }

  Geometry g;
  std::int64_t width;
  std::vector<float> q, k, v, out, weights;
  float scale;
  std::vector<float> q_position, position_keys;
  std::vector<float> shifts;  // of queries, then of second ones; or empty
  AlignedBuffer memory, position_memory;
  KvCache kv, positions;
};

// Runs the case by the reference and by every lane and compares all outputs.
void expect_lanes_equal_the_reference(Case& test, ThreadPool& pool) {
  ExecContext context{&pool, Isa::scalar};
  test.fill(context);
  attention_reference(test.args());
  const auto out = test.out, weights = test.weights;
  for (const AttentionLane& lane : runnable(attention_lanes())) {
    context.isa = lane.isa;
    std::fill(test.out.begin(), test.out.end(), 77.0f);
    std::fill(test.weights.begin(), test.weights.end(), 77.0f);
    attention(context, std::vector{test.args()});
    EXPECT_EQ(first_difference(test.out, out), -1) << lane.name << ": " << test.g;
    EXPECT_EQ(first_difference(test.weights, weights), -1) << lane.name << ": " << test.g;
  }
}

TEST(AttentionLanes, EqualTheReferenceOnRaggedShapes) {
  ThreadPool pool(1);
  unsigned seed = 1;
  for (const int head_dim : {8, 16, 24, 40, 64, 72, 80, 128}) {
    for (const std::int64_t queries : {1, 2, 3, 7, 9, 13, 50}) {
      for (const std::int64_t length : {1, 2, 15, 16, 17, 31, 33, 63, 67, 200}) {
        for (const DType storage : {DType::f32, DType::f16}) {
          Case test({2, head_dim, queries, length, false, storage}, seed += 3);
          expect_lanes_equal_the_reference(test, pool);
        }
      }
    }
  }
}

TEST(AttentionLanes, EqualTheReferenceOnCausalPrompts) {
  ThreadPool pool(2);
  unsigned seed = 100;
  for (const std::int64_t queries : {1, 2, 4, 12, 13, 49, 100}) {
    for (const std::int64_t before : {0, 1, 14, 16, 200}) {
      Case test({3, 64, queries, before + queries, true, DType::f16}, seed += 3);
      expect_lanes_equal_the_reference(test, pool);
    }
  }
}

TEST(AttentionLanes, EqualTheReferenceOnTheModelsShapes) {
  ThreadPool pool(2);
  for (const Geometry& g : {Geometry{1, 64, 100, 1500}, {8, 64, 1, 1500}, {6, 64, 5, 1500, false, DType::f16},
                            {8, 64, 1, 448, true}}) {
    Case test(g, 7);
    expect_lanes_equal_the_reference(test, pool);
  }
}

TEST(AttentionLanes, EqualTheReferenceWithPositions) {
  ThreadPool pool(2);
  unsigned seed = 300;
  for (const int head_dim : {8, 24, 64}) {
    for (const std::int64_t queries : {1, 3, 16, 50}) {
      for (const std::int64_t length : {1, 15, 16, 33, 130}) {
        for (const DType storage : {DType::f32, DType::f16}) {
          Case test({2, head_dim, queries, length, false, storage, true}, seed += 9);
          expect_lanes_equal_the_reference(test, pool);
        }
      }
    }
  }
}

TEST(Attention, OverWhatIsLeftOfACacheIsAttentionOverThosePositions) {
  ThreadPool pool(1);
  ExecContext context{&pool, detected_isa()};
  for (const DType storage : {DType::f32, DType::f16}) {
    for (const std::int64_t dropped : {0, 1, 16, 23, 32, 39}) {
      Case whole({2, 16, 5, 40, false, storage}, 11);
      whole.fill(context);
      kv_drop_front(whole.kv, dropped);
      EXPECT_EQ(whole.kv.length, 40 - dropped);
      auto args = whole.args();
      args.weights = nullptr;
      attention(context, {&args, 1});
      Case part({2, 16, 5, 40 - dropped, false, storage}, 11);
      part.q = whole.q;
      part.kv.length = 0;
      kv_append(context, part.kv, whole.k.data() + dropped * (whole.width + 1), whole.width + 1,
                whole.v.data() + dropped * (whole.width + 2), whole.width + 2, 40 - dropped);
      auto expected = part.args();
      expected.weights = nullptr;
      attention(context, {&expected, 1});
      EXPECT_EQ(first_difference(whole.out, part.out), -1) << dropped;
    }
  }
}

TEST(AttentionLanes, EqualTheReferenceForWideScores) {
  ThreadPool pool(1);
  for (const float scale : {1e-6f, 3.0f, 50.0f, -2.0f}) {  // exponents far below -87 among them
    Case test({2, 64, 9, 100}, 77, scale);
    expect_lanes_equal_the_reference(test, pool);
  }
}

TEST(AttentionLanes, PassNanInfinityAndHugeValuesLikeTheReference) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  ThreadPool pool(1);
  for (const float odd : {kInf, -kInf, std::nanf(""), 3e38f, 1e-45f, -1e-40f, -0.0f}) {
    for (const int where : {0, 1, 2}) {
      for (const std::int64_t queries : {1, 20}) {
        Case test({2, 16, queries, 40, true}, 5);
        (where == 0 ? test.q : where == 1 ? test.k : test.v)[19] = odd;
        expect_lanes_equal_the_reference(test, pool);
      }
    }
  }
}

TEST(Attention, IsTheSameForAnyNumberOfThreadsAndManySequences) {
  std::vector<float> expected;
  for (const int threads : {1, 2, 3, 16}) {
    for (const AttentionLane& lane : runnable(attention_lanes())) {
      ThreadPool pool(threads);
      ExecContext context{&pool, lane.isa};
      Case a({4, 64, 60, 90}, 1), b({4, 64, 1, 300, false, DType::f16}, 2), c({4, 64, 5, 5, true}, 3);
      for (Case* test : {&a, &b, &c}) test->fill(context);
      attention(context, std::vector{a.args(), b.args(), c.args()});
      std::vector<float> all = a.out;
      all.insert(all.end(), b.out.begin(), b.out.end());
      all.insert(all.end(), c.out.begin(), c.out.end());
      if (expected.empty()) expected = all;
      EXPECT_EQ(first_difference(all, expected), -1) << lane.name << " threads " << threads;
    }
  }
}

TEST(Attention, RunsTheLaneThatIsAskedFor) {
  for (const AttentionLane& lane : attention_lanes()) EXPECT_EQ(attention_lane(lane.isa).name, lane.name);
}

TEST(Attention, WorksWithoutWeightsAndWithoutSequences) {
  ThreadPool pool(2);
  ExecContext context{&pool, detected_isa()};
  Case test({2, 64, 3, 20}, 1);
  test.fill(context);
  AttentionArgs args = test.args();
  args.weights = nullptr;
  attention(context, std::vector{args});
  const auto out = test.out;
  attention_reference(test.args());
  EXPECT_EQ(first_difference(out, test.out), -1);
  attention(context, {});
}

TEST(Attention, IsCloseToTheExactValue) {
  ThreadPool pool(1);
  ExecContext context{&pool, detected_isa()};
  Case test({1, 64, 4, 300}, 11);
  test.fill(context);
  attention(context, std::vector{test.args()});
  for (std::int64_t i = 0; i < 4; ++i) {
    std::vector<double> p(300);
    double sum = 0;
    for (std::size_t j = 0; j < 300; ++j) {
      double score = 0;
      for (std::size_t d = 0; d < 64; ++d) {
        const float q = test.q[static_cast<std::size_t>(i) * 67 + d] + test.shifts[d];
        score += double{q} * test.k[j * 65 + d];
      }
      sum += p[j] = std::exp(score * 0.125);
    }
    for (std::size_t d = 0; d < 64; ++d) {
      double exact = 0;
      for (std::size_t j = 0; j < 300; ++j) exact += p[j] / sum * test.v[j * 66 + d];
      // 64 roundings of terms below 64 in a score, times 0.125, is the relative error of a weight.
      EXPECT_NEAR(test.out[static_cast<std::size_t>(i) * 69 + d], exact, 64 * 64 * 0.125 * 0x1p-24 * 4);
    }
  }
}

TEST(KvCache, AppendsInPiecesAndCopiesAsIfWhole) {
  ThreadPool pool(2);
  ExecContext context{&pool, detected_isa()};
  for (const DType storage : {DType::f32, DType::f16}) {
    Case whole({2, 24, 3, 70, false, storage}, 1), pieces({2, 24, 3, 70, false, storage}, 1);
    whole.fill(context);
    for (std::int64_t at = 0; at < 70; at += 7) {
      kv_append(context, pieces.kv, whole.k.data() + at * 49, 49, whole.v.data() + at * 50, 50, 7);
    }
    AlignedBuffer memory(kv_cache_bytes(2, 24, 100, storage));
    KvCache copy{.heads = 2, .head_dim = 24, .capacity = 100, .storage = storage, .data = memory.data()};
    kv_copy(pieces.kv, copy, 33);
    kv_append(context, copy, whole.k.data() + 33 * 49, 49, whole.v.data() + 33 * 50, 50, 37);
    attention(context, std::vector{whole.args()});
    const auto expected = whole.out;
    for (const KvCache* kv : std::array{&pieces.kv, &copy}) {
      AttentionArgs args = whole.args();
      args.kv = kv;
      attention(context, std::vector{args});
      EXPECT_EQ(first_difference(whole.out, expected), -1);
    }
  }
}

TEST(KvCache, WithKeysOnlyMovesNoValues) {
  ThreadPool pool(1);
  ExecContext context{&pool, detected_isa()};
  const std::size_t bytes = kv_cache_bytes(1, 8, 40, DType::f32);
  AlignedBuffer a(bytes), b(bytes);
  for (AlignedBuffer* memory : {&a, &b}) std::fill_n(memory->data(), bytes, std::byte{0x7f});
  KvCache from{.heads = 1, .head_dim = 8, .capacity = 40, .data = a.data(), .keys_only = true}, to = from;
  to.data = b.data();
  const auto k = random_floats(40 * 8, 1);
  kv_append(context, from, k.data(), 8, nullptr, 0, 40);
  const KvLayout layout(from);
  const auto at = [](const KvCache& cache, std::int64_t i) { return reinterpret_cast<const float*>(cache.data)[i]; };
  reinterpret_cast<float*>(from.data)[layout.value(0, 21, 3)] = 5.0f;
  kv_copy(from, to, 40);
  kv_drop_front(from, 20);
  kv_drop_front(to, 20);
  for (const KvCache* cache : {&from, &to}) {
    EXPECT_EQ(at(*cache, layout.key(0, 1, 3)), k[21 * 8 + 3]);
    EXPECT_NE(at(*cache, layout.value(0, 1, 3)), 5.0f);
  }
  EXPECT_NE(at(to, layout.value(0, 21, 3)), 5.0f);
  to.keys_only = false;
  EXPECT_THROW(kv_copy(from, to, 1), InternalError);
}

TEST(KvCache, HoldsTheSameBytesWhateverLaneWritesIt) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  ThreadPool pool(1);
  for (const DType storage : {DType::f32, DType::f16}) {
    Case test({2, 72, 1, 37, false, storage}, 3);
    const float odd[] = {kInf, -kInf, 65519.0f, 65520.0f, 1e-45f, 3e-8f, -6e-8f, 0x1.004p0f, 0x1.00cp0f, -0.0f};
    std::copy(std::begin(odd), std::end(odd), test.k.begin());
    std::copy(std::begin(odd), std::end(odd), test.v.begin());
    std::vector<std::byte> expected;
    for (const AttentionLane& lane : runnable(attention_lanes())) {
      ExecContext context{&pool, lane.isa};
      std::fill_n(test.memory.data(), test.memory.size(), std::byte{0xFF});
      test.fill(context);
      const std::vector<std::byte> bytes(test.memory.data(), test.memory.data() + test.memory.size());
      if (expected.empty()) expected = bytes;
      EXPECT_TRUE(bytes == expected) << lane.name << " " << dtype_name(storage);
    }
  }
}

TEST(KvCache, RefusesToOverflow) {
  ThreadPool pool(1);
  ExecContext context{&pool, Isa::scalar};
  Case test({1, 8, 1, 4}, 1);
  test.fill(context);
  EXPECT_THROW(kv_append(context, test.kv, test.k.data(), 9, test.v.data(), 10, 6), InternalError);
}

// What a block asks for is there on every card that kernels are compiled for: 227, 163 and 99 KiB, less what it has
// without asking.
TEST(FewQueriesOnGpu, FitIntoTheSharedMemoryOfTheCard) {
  using namespace cuda;
  for (const std::size_t most : {226u << 10, 162u << 10, 98u << 10}) {
    for (const std::size_t bytes : {2u, 4u}) {
      for (const int queries : {1, 4, 8}) {
        for (const int dim : {8, 24, 40, 64, 72, 80, 128, 256}) {
          for (const std::int64_t longest : {1, 64, 448, 513, 1500, 3000, 20'000}) {
            const FewLayout layout = few_layout(bytes, queries, dim, longest, longest == 513, most);
            EXPECT_LE(few_shared(bytes, layout.plan, layout.rows, queries, dim), most)
                << bytes << " bytes, " << queries << " queries, " << dim << ", " << longest;
            EXPECT_TRUE(layout.plan.tile >= kKeys && layout.plan.tile % kKeys == 0);
            EXPECT_GE(layout.plan.stride, longest);
          }
        }
      }
    }
  }
  // With room for it: tiles of 512 columns of panels, and numerators inside up to 64 KiB.
  EXPECT_EQ(few_layout(4, 8, 64, 2048, false, 226 << 10).plan.tile, 128);
  EXPECT_EQ(few_layout(4, 8, 64, 2048, false, 226 << 10).rows, Rows::inside);
  EXPECT_EQ(few_layout(4, 8, 64, 2049, false, 226 << 10).rows, Rows::outside);
  // A decoder's step over a window stays in shared memory where there is little.
  EXPECT_EQ(few_layout(4, 1, 64, 1500, false, 98 << 10).rows, Rows::inside);
}

}  // namespace
}  // namespace oasr::kernels

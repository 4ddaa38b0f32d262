// Attention in mixed precision: against float64 on rounded operands, and the bits that do not depend on other queries,
// other sequences and what lies behind the last position.
#include <array>
#include <limits>
#include <ostream>

#include "kernels/attention/cuda_testing.h"
#include "kernels/attention/op.h"
#include "kernels/cuda/mixed_testing.h"
#include "kernels/cuda/testing.h"
#include "kernels/testing.h"
#include "tensor/exact_poly.h"

namespace oasr::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Geometry {
  int heads;
  int head_dim;
  std::int64_t queries;
  std::int64_t length;
  bool causal = false;
  DType storage = DType::f32;
  bool positions = false;
  std::int64_t query_step = 1;  // of the queries that are looked at
};

std::ostream& operator<<(std::ostream& out, const Geometry& g) {
  return out << g.heads << " heads of " << g.head_dim << ", " << g.queries << " queries, length " << g.length
             << (g.causal ? ", causal, " : ", ") << dtype_name(g.storage) << (g.positions ? ", positions" : "");
}

class MixedAttentionOnGpu : public OnGpu {
 protected:
  // Numbers on the host, caches on the GPU; what is not stored there is NaN.
  struct Case {
    Case(MixedAttentionOnGpu& test, const Geometry& g, unsigned seed, float scale = 0.125f)
        : g(g),
          width(std::int64_t{g.heads} * g.head_dim),
          scale(scale),
          q(random_floats(g.queries * (width + 3), seed, 2.0f)),
          q_position(random_floats(g.queries * (width + 3), seed + 7, 2.0f)),
          k(random_floats(g.length * width, seed + 1, 2.0f)),
          v(random_floats(g.length * width, seed + 2)),
          r(random_floats((g.length + 3) * width, seed + 8, 2.0f)),
          test_(test) {}

    void fill() {
      q_there.emplace(*test_.gpu_, q);
      q_position_there.emplace(*test_.gpu_, q_position);
      append(kv, memory_, g.length + 5, k, v.data());
      if (g.positions) append(positions, position_memory_, g.length + 40, r, nullptr);
      test_.gpu_->wait();
    }
    std::vector<float> empty_out() const {
      return std::vector<float>(static_cast<std::size_t>(g.queries * (width + 5)), 77.0f);
    }
    // Queries [first, first + count) of the whole.
    AttentionArgs args(float* out, std::int64_t first, std::int64_t count) {
      return {.q = q_there->data() + first * (width + 3),
              .ldq = width + 3,
              .queries = count,
              .kv = &kv,
              .causal = g.causal,
              .scale = scale,
              .q_position = g.positions ? q_position_there->data() + first * (width + 3) : nullptr,
              .positions = g.positions ? &positions : nullptr,
              .q_shift = shifts_there ? shifts_there->data() : nullptr,
              .q_position_shift = shifts_there ? shifts_there->data() + width : nullptr,
              .out = out + first * (width + 5),
              .ldo = width + 5,
              .mixed = mixed};
    }
    std::vector<float> run(Arithmetic arithmetic) {
      auto out = test_.upload(empty_out());
      test_.context_.arithmetic = arithmetic;
      attention(test_.context_, std::vector{args(out.data(), 0, g.queries)});
      return out.values();
    }

    Geometry g;
    bool mixed = true;
    std::int64_t width;
    float scale;
    std::vector<float> q, q_position, k, v, r;
    KvCache kv, positions;
    std::optional<Array<float>> q_there, q_position_there;
    std::optional<Array<float>> shifts_there;  // of queries, then of second ones; or none

   private:
    void append(KvCache& cache, Memory& memory, std::int64_t capacity, const std::vector<float>& keys,
                const float* values) {
      Gpu& gpu = *test_.gpu_;
      const std::vector<std::byte> nothing(kv_cache_bytes(g.heads, g.head_dim, capacity, g.storage), std::byte{0xFF});
      memory = Memory(&gpu, nothing.size());
      gpu.upload(memory.data(), nothing.data(), nothing.size());
      cache = {.heads = g.heads,
               .head_dim = g.head_dim,
               .capacity = capacity,
               .length = 0,
               .storage = g.storage,
               .data = memory.data()};
      Array<float> keys_there(gpu, keys);
      std::optional<Array<float>> values_there;
      if (values != nullptr) values_there.emplace(gpu, v);
      kv_append(test_.context_, cache, keys_there.data(), width, values != nullptr ? values_there->data() : nullptr,
                width, static_cast<std::int64_t>(keys.size()) / width);
      gpu.wait();
      poison_free_positions(gpu, cache);
    }

    MixedAttentionOnGpu& test_;
    Memory memory_, position_memory_;
  };

  // What a head's outputs are made of, as operands.
  struct Operands {
    Operands(const Case& c, Arithmetic arithmetic) : arithmetic(arithmetic), factor(c.scale * exact::kLog2E) {
      const auto stored = [&](float x) {
        return as_operand(c.g.storage == DType::f16 ? to_float(to_half(x)) : x, arithmetic);
      };
      for (const float x : c.k) k.push_back(stored(x));
      for (const float x : c.v) v.push_back(stored(x));
      for (const float x : c.r) r.push_back(stored(x));
      for (const float x : c.q) q.push_back(as_operand(x * factor, arithmetic));
      for (const float x : c.q_position) q_position.push_back(as_operand(x * factor, arithmetic));
    }
    Arithmetic arithmetic;
    float factor;
    std::vector<float> k, v, r, q, q_position;
  };

  // The greatest error over its bound of a query's outputs.
  //
  // A score s(j) is off by e(j) = sum_error · (sum of magnitudes); differences of scores, of which 2^x is taken, are
  // rounded, which is at most 2⁻²³ of their range R together; ex2.approx is off by 2⁻²² and is taken once a tile of 64
  // for the scale, so p(j) has the relative error d = ln 2 · (max e + 2⁻²³ R) + (tiles + 1) · 2⁻²¹. As an operand it is
  // rounded: u, and absolutely where it is subnormal. The products are sums of as many steps as there are tiles times
  // four, and scaled once a tile. The sum of p has d and a rounding a step. Errors of errors: 1 %.
  static double worst(const Case& c, const Operands& o, std::int64_t head, std::int64_t query, const std::vector<float>& out) {
    const std::int64_t dim = c.g.head_dim, seen = c.g.causal ? c.g.length - (c.g.queries - 1 - query) : c.g.length;
    const auto at = [&](std::int64_t row, std::int64_t stride, std::int64_t d) {
      return static_cast<std::size_t>(row * stride + head * dim + d);
    };
    std::vector<double> p(static_cast<std::size_t>(seen));
    double greatest = -kInf, least = kInf, off = 0;
    for (std::int64_t j = 0; j < seen; ++j) {
      double score = 0, magnitudes = 0;
      const auto add = [&](double term) {
        score += term;
        magnitudes += std::abs(term);
      };
      for (std::int64_t d = 0; d < dim; ++d) {
        add(double{o.q[at(query, c.width + 3, d)]} * o.k[at(j, c.width, d)]);
        if (c.g.positions) add(double{o.q_position[at(query, c.width + 3, d)]} * o.r[at(j, c.width, d)]);
      }
      p[static_cast<std::size_t>(j)] = score;
      greatest = std::max(greatest, score);
      least = std::min(least, score);
      off = std::max(off, sum_error((c.g.positions ? 2 : 1) * ((dim + 15) / 16 * 16)) * magnitudes);
    }
    double sum = 0;
    for (double& value : p) sum += value = std::exp2(value - greatest);
    const auto tiles = static_cast<double>((c.g.length + 63) / 64);
    const double relative = std::log(2.0) * (off + 0x1p-23 * (greatest - least + 2 * off)) + (tiles + 1) * 0x1p-21;
    double ratio = 0;
    for (std::int64_t d = 0; d < dim; ++d) {
      double exact = 0, magnitudes = 0, all = 0;
      for (std::int64_t j = 0; j < seen; ++j) {
        const double value = o.v[at(j, c.width, d)];
        exact += p[static_cast<std::size_t>(j)] / sum * value;
        magnitudes += p[static_cast<std::size_t>(j)] / sum * std::abs(value);
        all += std::abs(value);
      }
      const double bound = 1.01 * (magnitudes * (2 * relative + unit_roundoff(o.arithmetic) + tiles * 4 * 18 * 0x1p-23 +
                                                 (2 * tiles + 20) * 0x1p-23) +
                                   least_error(o.arithmetic) * all / sum);
      const double error = std::abs(out[at(query, c.width + 5, d)] - exact);
      ratio = error <= bound ? std::max(ratio, error / std::max(bound, 1e-300)) : kInf;
      if (ratio == kInf) return ratio;
    }
    return ratio;
  }

  void expect_right(const Geometry& g, unsigned seed, float scale = 0.125f) {
    Case c(*this, g, seed, scale);
    c.fill();
    for (const Arithmetic arithmetic : kMixed) {
      const Operands operands(c, arithmetic);
      const auto out = c.run(arithmetic);
      double most = 0;
      for (std::int64_t head = 0; head < g.heads; ++head) {
        for (std::int64_t query = 0; query < g.queries; query += g.query_step) {
          most = std::max(most, worst(c, operands, head, query, out));
        }
      }
      EXPECT_LE(most, 1.0) << g << ", " << arithmetic_name(arithmetic) << ", scale " << scale;
      for (std::int64_t query = 0; query < g.queries; ++query) {
        for (std::int64_t i = 0; i < 5; ++i) {
          ASSERT_EQ(out[static_cast<std::size_t>(query * (c.width + 5) + c.width + i)], 77.0f) << g;
        }
      }
    }
    EXPECT_EQ(reported_row(), -1) << g;
  }
};

constexpr int kHeadDims[] = {8, 24, 64, 72, 128};
constexpr std::int64_t kQueries[] = {1, 2, 9, 16, 17, 31, 48, 63, 64, 65, 80, 127, 130};
constexpr std::int64_t kLengths[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 130, 200};

class RaggedMixedAttentionOnGpu : public MixedAttentionOnGpu,
                                  public ::testing::WithParamInterface<std::tuple<int, std::int64_t>> {};

TEST_P(RaggedMixedAttentionOnGpu, IsTheDefinitionOnRoundedOperands) {
  const auto [head_dim, queries] = GetParam();
  const unsigned place = place_in(kHeadDims, head_dim) * std::size(kQueries) + place_in(kQueries, queries);
  unsigned seed = 1 + 3 * static_cast<unsigned>(std::size(kLengths)) * place;
  for (const std::int64_t length : kLengths) {
    seed += 3;
    const bool causal = seed % 2 == 0 && queries <= length;
    expect_right({2, head_dim, queries, length, causal, seed % 4 < 2 ? DType::f32 : DType::f16, seed % 5 < 2, 3}, seed);
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, RaggedMixedAttentionOnGpu,
                         ::testing::Combine(::testing::ValuesIn(kHeadDims), ::testing::ValuesIn(kQueries)));

const Geometry kModelsShapes[] = {
    {8, 64, 1500, 1500, false, DType::f32, false, 113},
    {6, 64, 1500, 1500, false, DType::f32, false, 211},
    {8, 64, 64, 1500, false, DType::f16, false, 7},
    {8, 64, 64, 448, true, DType::f32, false, 7},
    {4, 64, 300, 300, false, DType::f32, true, 17},
    {4, 64, 16, 80, false, DType::f32, true, 1}};

class ModelsMixedAttentionOnGpu : public MixedAttentionOnGpu, public ::testing::WithParamInterface<Geometry> {};

TEST_P(ModelsMixedAttentionOnGpu, IsTheDefinitionOnRoundedOperands) { expect_right(GetParam(), 7); }
INSTANTIATE_TEST_SUITE_P(Shapes, ModelsMixedAttentionOnGpu, ::testing::ValuesIn(kModelsShapes));

TEST_F(MixedAttentionOnGpu, IsTheDefinitionForWideScores) {
  for (const float scale : {1e-6f, 3.0f, -2.0f}) expect_right({2, 64, 40, 200, true, DType::f32, false}, 77, scale);
}

TEST_F(MixedAttentionOnGpu, GivesAQueryTheBitsThatItHasWithOthers) {
  for (const Geometry& g : {Geometry{2, 64, 130, 130, false}, {2, 64, 130, 170, false, DType::f16, true}, {2, 72, 130, 130, true}}) {
    Case c(*this, g, 5);
    c.fill();
    for (const Arithmetic arithmetic : kMixed) {
      const auto all = c.run(arithmetic);
      EXPECT_EQ(first_difference(c.run(arithmetic), all), -1) << g << ", again";
      for (const auto& [first, count] : {std::pair{0, 1}, {1, 17}, {60, 20}, {100, 30}, {129, 1}, {5, 125}}) {
        if (g.causal && first + count != g.queries) continue;  // the last ones see the same
        auto out = upload(all);
        gpu_->zero(out.data() + first * (c.width + 5), static_cast<std::size_t>(count * (c.width + 5)) * sizeof(float));
        attention(context_, std::vector{c.args(out.data(), first, count)});
        auto found = out.values();
        for (std::int64_t query = first; query < first + count; ++query) {  // gaps stay zero
          std::fill_n(found.begin() + query * (c.width + 5) + c.width, 5, 77.0f);
        }
        EXPECT_EQ(first_difference(found, all), -1) << g << ", queries from " << first << ", " << count;
      }
    }
  }
}

TEST_F(MixedAttentionOnGpu, GivesASequenceTheBitsThatItHasAmongOthers) {
  std::vector<std::unique_ptr<Case>> cases;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t queries = i % 3 == 0 ? 16 + i % 90 : i % 3 == 1 ? 5 : 1;  // some of each in float32
    cases.push_back(std::make_unique<Case>(
        *this,
        Geometry{2, i > 250 ? 24 : 64, queries, queries + i % 90, i % 2 == 0, i % 50 == 3 ? DType::f16 : DType::f32, i % 4 == 1},
        static_cast<unsigned>(i)));
    cases.back()->mixed = i % 5 != 0;
    cases.back()->fill();
  }
  for (const Arithmetic arithmetic : kMixed) {
    std::vector<std::vector<float>> alone;
    std::vector<Array<float>> found;
    std::vector<AttentionArgs> together;
    for (auto& c : cases) {
      alone.push_back(c->run(arithmetic));
      found.push_back(upload(c->empty_out()));
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      together.push_back(cases[i]->args(found[i].data(), 0, cases[i]->g.queries));
    }
    attention(context_, together);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(first_difference(found[i].values(), alone[i]), -1) << "sequence " << i << ": " << cases[i]->g;
    }
  }
}

TEST_F(MixedAttentionOnGpu, LeavesSequencesThatDoNotAskForItAsTheyAre) {
  for (const Geometry& g : {Geometry{2, 64, 15, 100, true}, {2, 64, 1, 700}, {1, 136, 40, 70}, {2, 64, 200, 300}}) {
    Case c(*this, g, 3);
    c.fill();
    c.mixed = false;
    const auto exact = c.run(Arithmetic::float32);
    EXPECT_EQ(first_difference(c.run(Arithmetic::float16), exact), -1) << g;
    c.mixed = true;
    EXPECT_EQ(first_difference(c.run(Arithmetic::float32), exact), -1) << g;
    if (g.head_dim > kMixedMostDim) continue;
    EXPECT_NE(first_difference(c.run(Arithmetic::float16), exact), -1) << g;
  }
}

// What is not finite reaches the queries that see it, and no other, and is reported with the first of them.
TEST_F(MixedAttentionOnGpu, ReportsWhatIsNotFiniteAndKeepsItFromQueriesThatDoNotSeeIt) {
  constexpr std::int64_t kQueries = 80, kOdd = 70;  // the position and the query
  for (const float odd : {kInf, -kInf, std::nanf(""), 3e38f, 1e6f}) {
    for (const int where : {0, 1, 2, 3}) {
      Case clean(*this, {2, 16, kQueries, kQueries, true, DType::f32, true}, 5), c(*this, clean.g, 5);
      (where == 0   ? c.q[kOdd * (c.width + 3) + 19]
       : where == 1 ? c.k[kOdd * c.width + 19]
       : where == 2 ? c.v[kOdd * c.width + 19]
                    : c.r[kOdd * c.width + 19]) = odd;
      clean.fill();
      c.fill();
      for (const Arithmetic arithmetic : kMixed) {
        const float operand = as_operand(where == 0 ? odd * (c.scale * exact::kLog2E) : odd, arithmetic);
        const auto expected = clean.run(arithmetic);
        EXPECT_EQ(reported_row(), -1);
        const auto out = c.run(arithmetic);
        const auto row = reported_row();
        if (std::isfinite(operand)) continue;  // it may still make products that are not
        EXPECT_EQ(row, kOdd) << where << " " << odd << " " << arithmetic_name(arithmetic);
        for (std::int64_t query = 0; query < kQueries; ++query) {
          const bool sees = where == 0 ? query == kOdd : query >= kOdd;
          for (std::int64_t i = 0; i < c.width; ++i) {
            const auto at = static_cast<std::size_t>(query * (c.width + 5) + i);
            const bool in_head = i / 16 == 1;
            if (sees && in_head) {
              EXPECT_TRUE(std::isnan(out[at])) << where << " " << odd << " query " << query;
            } else {
              EXPECT_TRUE(same_bits(out[at], expected[at])) << where << " " << odd << " query " << query;
            }
          }
        }
      }
    }
  }
}

TEST_F(MixedAttentionOnGpu, ShiftsQueriesInFloat32) {
  for (const bool positions : {false, true}) {
    Case test(*this, {2, 64, 40, 70, false, DType::f32, positions}, 11);
    test.fill();
    const auto shifts = random_floats(2 * test.width, 12);
    test.shifts_there.emplace(*gpu_, shifts);
    const auto shifted = test.run(Arithmetic::float16);
    test.shifts_there.reset();
    EXPECT_NE(first_difference(test.run(Arithmetic::float16), shifted), -1) << "a shift that changes nothing";
    for (std::int64_t query = 0; query < test.g.queries; ++query) {
      for (std::int64_t i = 0; i < test.width; ++i) {
        const auto at = static_cast<std::size_t>(query * (test.width + 3) + i), of = static_cast<std::size_t>(i);
        test.q[at] += shifts[of];
        test.q_position[at] += shifts[of + static_cast<std::size_t>(test.width)];
      }
    }
    test.q_there.emplace(*gpu_, test.q);
    test.q_position_there.emplace(*gpu_, test.q_position);
    EXPECT_EQ(first_difference(test.run(Arithmetic::float16), shifted), -1) << (positions ? "with positions" : "");
  }
}

}  // namespace
}  // namespace oasr::kernels

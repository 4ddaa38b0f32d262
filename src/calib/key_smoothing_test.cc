#include "calib/key_smoothing.h"

#include <gmock/gmock.h>

#include <limits>

#include "calib/collector.h"
#include "calib/plan.h"
#include "calib/rope_decoder.h"

namespace oasr::calib {
namespace {

using quant::AttentionScores;
using quant::RotaryPairing;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<int> kTokens = {3, 17, 5, 39, 0, 22, 8, 11, 30, 2};

// Calibrated on the tokens.
struct Rotary {
  explicit Rotary(const RopeDecoderConfig& config) : decoder(config), layout(decoder.layout()) {
    std::vector<WatchedLayer> keys;
    for (const AttentionScores& attention : layout.attention) {
      keys.push_back({.path = attention.key,
                      .channels = attention.key_channels(),
                      .output = true,
                      .first_channel = attention.key_row});
    }
    Collector collector(pool, keys, 0);
    decoder.logits({.pool = &pool, .isa = detected_isa(), .observer = &collector}, kTokens);
    statistics = collector.take();
  }

  Result<Plan> plan(std::optional<double> alpha = 0.5) {
    const layers::LayerList list = decoder.layers();
    const Weights weights(list);
    Planner planner(list, weights, layout, statistics, {.key_alpha = alpha},
                    {.pool = &pool, .isa = detected_isa()});
    return planner.make({}, {});
  }
  std::vector<float> logits(const RopeDecoder& of, int key_bits = 0) {
    return of.logits({.pool = &pool, .isa = detected_isa()}, kTokens, key_bits);
  }
  double error(const RopeDecoder& of, int key_bits) {
    const auto exact = logits(decoder), other = logits(of, key_bits);
    double sum = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) sum += std::pow(double{other[i]} - exact[i], 2);
    return sum;
  }

  ThreadPool pool{1};
  RopeDecoder decoder;
  quant::QuantLayout layout;
  Statistics statistics;
};

// How far logits of two float32 runs of a decoder of one layer may be apart that differ in the scales of the
// keys only, [tokens, vocabulary]. Both are within γ(n) Σ|a b| of what they would be without rounding for
// every sum of n products (Higham, 3.1); scales of a pair cancel in q · k, and so they do in its bound.
class LogitBound {
 public:
  LogitBound(const RopeDecoder& decoder, const RopeDecoderConfig& config) : decoder_(decoder), c_(config) {}

  std::vector<double> operator()() const {
    const std::string block = "layers.0.", qkv = c_.fused ? "qkv_proj" : "";
    const auto T = static_cast<std::int64_t>(kTokens.size()), q = c_.query_heads * c_.head_dim,
               k = c_.kv_heads * c_.head_dim;
    const auto product = [&](const char* name) { return block + (c_.fused ? qkv : std::string(name)); };
    std::vector<double> all;
    const Rows x = embedded(), normed = norm(x);
    const Rows queries = rotated(sums(product("q_proj"), 0, q, normed));
    const Rows keys = rotated(sums(product("k_proj"), c_.fused ? q : 0, k, normed));
    const Rows values = sums(product("v_proj"), c_.fused ? q + k : 0, k, normed);
    for (std::int64_t t = 0; t < T; ++t) {
      std::vector<double> most(size(q), 0.0), apart(size(q));  // of what attention puts out
      for (std::int64_t i = 0; i < q; ++i) {
        const std::int64_t kv = i / c_.head_dim / (c_.query_heads / c_.kv_heads) * c_.head_dim;
        double score = 0;
        for (std::int64_t past = 0; past <= t; ++past) {
          double sum = 0;
          for (std::int64_t j = 0; j < c_.head_dim; ++j)
            sum += queries[size(t)][size(i - i % c_.head_dim + j)] * keys[size(past)][size(kv + j)];
          score = std::max(score, sum / 8);
          most[size(i)] = std::max(most[size(i)], values[size(past)][size(kv + i % c_.head_dim)]);
        }
        // A projection, its folded weight and bias (D + 2), rotation (3), the product itself; then the
        // difference to the greatest, exp(), and a division by a sum of T.
        const double delta = 2 * gamma(2 * (c_.width + 5) + c_.head_dim + 1) * score;
        const double share = std::expm1(2 * delta + 8 * kUnit * score + 2 * gamma(T + 6));
        apart[size(i)] = (share + 2 * gamma(T + 1)) * most[size(i)];
      }
      std::vector<double> stream(size(c_.width)), moved(size(c_.width));
      for (std::int64_t j = 0; j < c_.width; ++j) {
        stream[size(j)] = sum_of(block + "o_proj", j, most) + std::abs(x[size(t)][size(j)]);
        moved[size(j)] = sum_of(block + "o_proj", j, apart, false) + 2 * gamma(q + 2) * stream[size(j)];
      }
      for (std::int64_t v = 0; v < c_.vocabulary; ++v) {
        all.push_back(sum_of("lm_head", v, moved, false) +
                      2 * gamma(c_.width + 1) * sum_of("lm_head", v, stream));
      }
    }
    return all;
  }

 private:
  using Rows = std::vector<std::vector<double>>;
  static constexpr double kUnit = 0x1p-24;
  static double gamma(std::int64_t n) {
    return static_cast<double>(n) * kUnit / (1 - static_cast<double>(n) * kUnit);
  }
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  const std::vector<float>& values_of(const std::string& name) const {
    return decoder_.tensors().at(name).second;
  }

  // Σ |w a| + |b| of a row of a product.
  double sum_of(const std::string& path, std::int64_t row, const std::vector<double>& a,
                bool bias = true) const {
    const auto& weight = values_of(path + ".weight");
    double sum = bias ? std::abs(values_of(path + ".bias")[size(row)]) : 0.0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum += std::abs(double{weight[size(row) * a.size() + i]} * a[i]);
    return sum;
  }
  Rows sums(const std::string& path, std::int64_t first, std::int64_t count, const Rows& x) const {
    Rows all;
    for (const auto& row : x) {
      auto& sums = all.emplace_back();
      for (std::int64_t n = first; n < first + count; ++n) sums.push_back(sum_of(path, n, row));
    }
    return all;
  }
  // A rotated channel is at most the sum of its pair.
  Rows rotated(Rows rows) const {
    AttentionScores attention = decoder_.layout().attention[0];
    if (attention.pairing == RotaryPairing::none) return rows;
    for (auto& row : rows) {
      const auto before = row;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const auto in_head = static_cast<std::int64_t>(i) % c_.head_dim;
        row[i] += before[i - size(in_head) + size(rotary_partner(attention, in_head))];
      }
    }
    return rows;
  }
  Rows embedded() const {
    Rows rows;
    for (const int token : kTokens) {
      const auto from = values_of("embed.weight").begin() + token * c_.width;
      rows.emplace_back(from, from + c_.width);
    }
    return rows;
  }
  // The same bits in both runs, here within a thousandth.
  Rows norm(Rows rows) const {
    for (auto& row : rows) {
      double mean = 0, variance = 0;
      for (const double value : row) mean += value / static_cast<double>(row.size());
      for (const double value : row) variance += std::pow(value - mean, 2) / static_cast<double>(row.size());
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] =
            1.001 * (std::abs((row[i] - mean) / std::sqrt(variance) * values_of("layers.0.norm.weight")[i]) +
                     std::abs(values_of("layers.0.norm.bias")[i]));
      }
    }
    return rows;
  }

  const RopeDecoder& decoder_;
  RopeDecoderConfig c_;
};

// The greatest difference of logits over what the bound allows for it.
double over_bound(Rotary& model, RopeDecoderConfig config, const RopeDecoder& folded) {
  const auto a = model.logits(model.decoder), b = model.logits(folded);
  const auto bound = LogitBound(model.decoder, config)();
  double greatest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    greatest = std::max(greatest, std::abs(double{a[i]} - b[i]) / bound[i]);
  }
  return greatest;
}

struct SmoothAttention : ::testing::TestWithParam<RopeDecoderConfig> {};

// With powers of two every product of a query's channel with a key's keeps its bits, if both channels that
// rotation mixes have the same.
TEST_P(SmoothAttention, KeepsEveryBitOfTheLogitsUpToTheRoundingOfTheScales) {
  Rotary model(GetParam());
  Plan plan = model.plan(1.0).value();
  ASSERT_EQ(plan.keys.size(), 2u);
  const layers::LayerList list = model.decoder.layers();
  Folds folds;
  for (KeyPlan& keys : plan.keys) {
    EXPECT_GT(keys.scales.moved, 2) << keys.attention.key;
    for (double& lambda : keys.scales.lambda) lambda = std::exp2(std::nearbyint(std::log2(lambda)));
    ASSERT_TRUE(fold_keys(keys, Weights(list), folds));
  }
  const RopeDecoder folded = model.decoder.with(folds);
  EXPECT_NE(folded.tensors(), model.decoder.tensors());
  EXPECT_EQ(model.logits(folded), model.logits(model.decoder));
}

TEST_P(SmoothAttention, KeepsTheLogitsUpToTheRoundingOfFloat32) {
  RopeDecoderConfig config = GetParam();
  config.layers = 1;
  if (config.qk_norm) return;  // the bound is that of products
  Rotary model(config);
  const RopeDecoder folded = model.decoder.with(model.plan()->folds);
  EXPECT_NE(model.logits(folded), model.logits(model.decoder));
  EXPECT_LE(over_bound(model, config, folded), 1);
}

TEST_P(SmoothAttention, LosesTheLogitsIfABiasIsNotFolded) {
  Rotary model(GetParam());
  const Plan plan = model.plan().value();
  const AttentionScores& attention = model.layout.attention[0];
  for (const std::string& path : {attention.query, attention.key}) {
    auto tensors = model.decoder.tensors_with(plan.folds);
    auto& bias = tensors.at(path + ".bias");
    ASSERT_NE(bias, model.decoder.tensors().at(path + ".bias"));
    bias = model.decoder.tensors().at(path + ".bias");
    EXPECT_NE(model.logits(RopeDecoder(GetParam(), tensors)), model.logits(model.decoder)) << path;
  }
}

// What it is for.
TEST_P(SmoothAttention, FourBitKeysLoseLess) {
  Rotary model(GetParam());
  const RopeDecoder folded = model.decoder.with(model.plan()->folds);
  EXPECT_LT(model.error(folded, 4), model.error(model.decoder, 4));
}

TEST_P(SmoothAttention, AnAlphaOfZeroFoldsNothing) {
  Rotary model(GetParam());
  const Plan plan = model.plan(0.0).value();
  for (const KeyPlan& keys : plan.keys) EXPECT_EQ(keys.scales.moved, 0);
  EXPECT_TRUE(plan.folds.empty());
  EXPECT_TRUE(model.plan({})->keys.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, SmoothAttention,
    ::testing::Values(RopeDecoderConfig{.pairing = RotaryPairing::split_half},
                      RopeDecoderConfig{.pairing = RotaryPairing::interleaved},
                      RopeDecoderConfig{.pairing = RotaryPairing::none},
                      RopeDecoderConfig{.pairing = RotaryPairing::split_half, .fused = true},
                      RopeDecoderConfig{.pairing = RotaryPairing::interleaved, .qk_norm = true},
                      RopeDecoderConfig{.pairing = RotaryPairing::interleaved,
                                        .fused = true,
                                        .query_heads = 4,
                                        .kv_heads = 4}));

// As if nothing were rotated, or the other way, the logits are others, and not by rounding: a thousand times
// what the model's own pairing changes.
TEST(RotaryPairs, AnotherPairingThanTheModelsChangesTheLogits) {
  for (const auto& [is, declared] : {std::pair(RotaryPairing::split_half, RotaryPairing::none),
                                     std::pair(RotaryPairing::split_half, RotaryPairing::interleaved),
                                     std::pair(RotaryPairing::interleaved, RotaryPairing::none),
                                     std::pair(RotaryPairing::interleaved, RotaryPairing::split_half)}) {
    const RopeDecoderConfig config{.pairing = is, .layers = 1};
    Rotary model(config);
    const double right = over_bound(model, config, model.decoder.with(model.plan()->folds));
    model.layout.attention[0].pairing = declared;
    EXPECT_GT(over_bound(model, config, model.decoder.with(model.plan()->folds)), 1000 * right);
  }
}

TEST(RotaryPairs, UnequalScalesAreRefusedByName) {
  Rotary model({.pairing = RotaryPairing::split_half});
  KeyPlan keys = model.plan()->keys[1];
  const layers::LayerList list = model.decoder.layers();
  const Weights weights(list);
  Folds folds;
  ASSERT_TRUE(fold_keys(keys, weights, folds));
  folds.clear();
  keys.scales.lambda[8 + 2] = 2, keys.scales.lambda[8 + 6] = 3;
  const auto refused = fold_keys(keys, weights, folds);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(
      refused.error().message(),
      AllOf(HasSubstr("layers.1.k_proj"),
            HasSubstr("channels 2 and 6 of key head 1 are a rotary pair, and their scales are 2 and 3")));
  EXPECT_TRUE(folds.empty());
  keys.attention.pairing = RotaryPairing::none;  // then they are no pair
  EXPECT_TRUE(fold_keys(keys, weights, folds));
}

// q = [1, 0] and k = [0, 1], turned by a quarter: their product is -1, also if both are scaled by 2 and 3
// behind the rotation. Scaled before it the product is -2/3, unless both channels have one scale.
TEST(RotaryPairs, ScalesBeforeTheRotationMustBeEqual) {
  using Pair = std::array<double, 2>;
  const auto turned = [](Pair x) { return Pair{-x[1], x[0]}; };
  const auto times = [](Pair x, Pair s) { return Pair{x[0] * s[0], x[1] * s[1]}; };
  const auto by = [](Pair x, Pair s) { return Pair{x[0] / s[0], x[1] / s[1]}; };
  const auto dot = [](Pair a, Pair b) { return a[0] * b[0] + a[1] * b[1]; };
  const Pair q = {1, 0}, k = {0, 1}, unequal = {2, 3}, equal = {2, 2};
  EXPECT_EQ(dot(q, turned(k)), -1.0);
  EXPECT_EQ(dot(times(q, unequal), by(turned(k), unequal)), -1.0);
  EXPECT_DOUBLE_EQ(dot(times(q, unequal), turned(by(k, unequal))), -2.0 / 3);
  EXPECT_EQ(dot(times(q, equal), turned(by(k, equal))), -1.0);
}

TEST(RotaryPairs, PartnersAreHalfAHeadApartOrNeighbours) {
  AttentionScores attention{.query = {}, .key = {}, .head_dim = 6, .pairing = RotaryPairing::none};
  const auto partners = [&] {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 6; ++i) all.push_back(rotary_partner(attention, i));
    return all;
  };
  EXPECT_THAT(partners(), ElementsAre(0, 1, 2, 3, 4, 5));
  attention.pairing = RotaryPairing::split_half;
  EXPECT_THAT(partners(), ElementsAre(3, 4, 5, 0, 1, 2));
  attention.pairing = RotaryPairing::interleaved;
  EXPECT_THAT(partners(), ElementsAre(1, 0, 3, 2, 5, 4));
}

using ::testing::DoubleEq;

struct ScalesOfKeys : ::testing::Test {
  // Base 2.
  std::vector<double> logarithms(double alpha) {
    scales = smooth_keys(attention, magnitudes, alpha);
    std::vector<double> all;
    for (const double lambda : scales.lambda) all.push_back(std::log2(lambda));
    return all;
  }
  AttentionScores attention{
      .query = {}, .key = {}, .query_heads = 1, .kv_heads = 1, .head_dim = 4, .pairing = RotaryPairing::none};
  KeyMagnitudes magnitudes{.keys = {64, 4, 1, 0.25f}, .key_rows = {1, 1, 1, 1}, .query_rows = {1, 1, 1, 1}};
  KeyScales scales;
};

TEST_F(ScalesOfKeys, ArePowersOfTheGreatestKey) {
  EXPECT_THAT(logarithms(0.5), ElementsAre(3, 1, 0, -1));
  EXPECT_THAT(logarithms(1), ElementsAre(6, 2, 0, -2));
  EXPECT_THAT(logarithms(0), Each(0));
  EXPECT_EQ(scales.moved, 0);
  magnitudes.keys[1] = 3;
  logarithms(0.5);
  EXPECT_THAT(scales.lambda[1], DoubleEq(std::sqrt(3.0)));
}

TEST_F(ScalesOfKeys, OfAPairAreThatOfItsGreaterKey) {
  attention.pairing = RotaryPairing::split_half;
  EXPECT_THAT(logarithms(0.5), ElementsAre(3, 1, 3, 1));
  attention.pairing = RotaryPairing::interleaved;
  EXPECT_THAT(logarithms(0.5), ElementsAre(3, 3, 0, 0));
}

TEST_F(ScalesOfKeys, HaveAFloor) {
  magnitudes.keys = {1e-5f, 1e-30f, std::numeric_limits<float>::denorm_min(), 1};
  logarithms(0.5);
  EXPECT_THAT(scales.lambda,
              ElementsAre(DoubleEq(std::sqrt(double{1e-5f})), DoubleEq(1e-3), DoubleEq(1e-3), 1));
}

TEST_F(ScalesOfKeys, OfKeysThatWereNeverOtherThanZeroAreOne) {
  magnitudes.keys = {0, 0, 64, 0};
  EXPECT_THAT(logarithms(0.5), ElementsAre(0, 0, 3, 0));
  EXPECT_EQ(scales.idle, 3);
  attention.pairing = RotaryPairing::split_half;
  EXPECT_THAT(logarithms(0.5), ElementsAre(3, 0, 3, 0));
  EXPECT_EQ(scales.idle, 2);
}

// 2^5 · 1500 is below 60000, 2^-14 · 8 is the least that a row may become.
TEST_F(ScalesOfKeys, StayWhereFloat16HoldsAllFoldedRows) {
  magnitudes.keys = {0x1p14f, 0x1p14f, 0x1p-14f, 0x1p-14f};
  magnitudes.query_rows = {1500, 1, 0x1p-11f, 1};
  magnitudes.key_rows = {1, 0x1p-11f, 1, 1500};
  EXPECT_THAT(logarithms(1), ElementsAre(5, 3, -3, -5));
  EXPECT_EQ(scales.clamped, 4);
  attention.pairing = RotaryPairing::interleaved;  // both channels hold
  EXPECT_THAT(logarithms(1), ElementsAre(3, 3, -3, -3));
}

// The query heads 0, 1 and 2 share the key head 0.
TEST_F(ScalesOfKeys, HoldTheQueriesOfEveryHeadThatSharesTheKeys) {
  attention = {
      .query = {}, .key = {}, .query_heads = 6, .kv_heads = 2, .head_dim = 1, .pairing = RotaryPairing::none};
  magnitudes = {.keys = {0x1p10f, 0x1p10f}, .key_rows = {1, 1}, .query_rows = {1, 1, 15000, 1, 1, 1}};
  EXPECT_THAT(logarithms(1), ElementsAre(2, 10));
}

TEST(KeyFolds, GoToTheRowsOfEveryQueryHeadThatSharesTheKeys) {
  Rotary model({.pairing = RotaryPairing::none, .query_heads = 4, .kv_heads = 2, .head_dim = 2});
  KeyPlan keys{.attention = model.layout.attention[0], .scales = {.lambda = {2, 4, 3, 0.5}}};
  const layers::LayerList list = model.decoder.layers();
  Folds folds;
  ASSERT_TRUE(fold_keys(keys, Weights(list), folds));
  EXPECT_THAT(folds.at("layers.0.k_proj").factors, ElementsAre(0.5, 0.25, 1 / 3.0, 2));
  EXPECT_THAT(folds.at("layers.0.q_proj").factors, ElementsAre(2, 4, 2, 4, 3, 0.5, 3, 0.5));
  EXPECT_THAT(folds.at("layers.0.k_proj").columns, ElementsAre());
}

TEST(KeyFolds, OfAFusedProjectionLeaveItsValuesAndComeToWhatIsFolded) {
  Rotary model(
      {.pairing = RotaryPairing::none, .fused = true, .query_heads = 2, .kv_heads = 1, .head_dim = 2});
  KeyPlan keys{.attention = model.layout.attention[0], .scales = {.lambda = {2, 4}}};
  const layers::LayerList list = model.decoder.layers();
  const std::string qkv = "layers.0.qkv_proj";
  Folds folds = {
      {qkv, {.rows = {0, 0, 0, 0, 0, 0, 7, 8}, .columns = {}, .factors = {3, 1, 1, 1, 1, 3, 1, 1}}}};
  ASSERT_TRUE(fold_keys(keys, Weights(list), folds));
  EXPECT_THAT(folds.at(qkv).factors, ElementsAre(6, 4, 2, 4, 0.5, 0.75, 1, 1));
  EXPECT_THAT(folds.at(qkv).rows, ElementsAre(0, 0, 0, 0, 0, 0, 7, 8));
}

TEST(SmoothedKeys, AreRefusedWhereTheModelDeclaresNoAttention) {
  Rotary model({});
  model.layout.attention.clear();
  const auto refused = model.plan();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().where, "smoothattention");
}

TEST(SmoothedKeys, OfAttentionThatCalibrationNeverReachedStayAndAreNoted) {
  Rotary model({});
  const std::string key = model.layout.attention[1].key;
  model.statistics.erase(output_of(key));
  const Plan plan = model.plan().value();
  EXPECT_EQ(plan.keys.size(), 1u);
  EXPECT_FALSE(plan.folds.contains(key));
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr(key)));
}

TEST(WatchedKeys, AreTheChannelsThatTheLayoutSays) {
  ThreadPool pool(1);
  Collector collector(pool, {{.path = "qkv", .channels = 2, .output = true, .first_channel = 1}}, 0);
  const float rows[] = {10, 1, -2, 20, 30, 3, 0.5f, 40, 50, 600, 700, 60};
  collector.audio_rows(2);  // the last row is padding
  collector.layer_output("qkv", {rows, 3, 4, 4});
  collector.layer_output("other", {rows, 3, 4, 4});
  collector.layer_input("qkv", {rows, 3, 4, 4});
  const InputStatistics& seen = collector.statistics().at(output_of("qkv"));
  EXPECT_EQ(collector.statistics().size(), 1u);
  EXPECT_EQ(seen.rows(), 2);
  EXPECT_EQ(seen.amax(0), 3);
  EXPECT_EQ(seen.amax(1), 2);
}

}  // namespace
}  // namespace oasr::calib

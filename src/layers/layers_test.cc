#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/testing.h"
#include "layers/conv1d.h"
#include "layers/embedding.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"

namespace oasr::layers {
namespace {

using kernels::random_floats;
using Presence = ParameterSpec::Presence;

// A state dict of float32 tensors that it owns.
struct Tensors {
  StateDict state;
  std::vector<std::shared_ptr<std::vector<float>>> values;

  void add(const std::string& name, Shape shape, std::vector<float> data) {
    values.push_back(std::make_shared<std::vector<float>>(std::move(data)));
    state.tensors[name] = {.format = StorageFormat::f32,
                           .shape = shape,
                           .bytes = std::as_bytes(std::span(*values.back())),
                           .row_scale = {}};
  }
  void add_random(const std::string& name, Shape shape, unsigned seed) {
    add(name, shape, random_floats(shape.elements(), seed));
  }
  Parameters match(const std::vector<ParameterSpec>& specs) const {
    return Parameters::match(state, specs).value();
  }
};

ParameterSpec spec(const std::string& name, Shape shape, Presence presence = Presence::required) {
  return {.name = name, .shape = shape, .stored = name, .presence = presence};
}

TEST(Parameters, NamesEveryMissingExtraAndMisshapenTensorAtOnce) {
  Tensors tensors;
  tensors.add_random("a", {4, 2}, 1);
  tensors.add_random("surplus", {1}, 2);
  const std::vector<ParameterSpec> specs = {spec("a", {2, 4}), spec("b", {3})};
  const auto result = Parameters::match(tensors.state, specs);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::bad_checkpoint);
  const std::string message = result.error().message();
  EXPECT_NE(message.find("1 missing: b"), message.npos) << message;
  EXPECT_NE(message.find("1 extra: surplus"), message.npos) << message;
  EXPECT_NE(message.find("a is [4, 2] instead of [2, 4]"), message.npos) << message;
}

TEST(Parameters, ListsTheFirstNamesOfManyAndCountsTheRest) {
  std::vector<ParameterSpec> specs;
  for (int i = 0; i < 20; ++i) specs.push_back(spec("layer." + std::to_string(i), {1}));
  const auto result = Parameters::match({}, specs);
  ASSERT_FALSE(result);
  const std::string message = result.error().message();
  EXPECT_NE(message.find("20 missing: layer.0, "), message.npos) << message;
  EXPECT_NE(message.find("and 12 more"), message.npos) << message;
}

TEST(Parameters, IgnoresExtentsOfOneAndPassesOptionalTensors) {
  Tensors tensors;
  tensors.add_random("bias", {4, 1}, 1);
  tensors.add_random("computed", {7}, 2);
  const auto parameters = tensors.match(
      {spec("bias", {4}), spec("computed", {}, Presence::ignored), spec("head", {2}, Presence::optional)});
  EXPECT_EQ(parameters.get("bias").shape, Shape({4}));
  EXPECT_FALSE(parameters.has("computed"));
  EXPECT_FALSE(parameters.has("head"));
}

TEST(Parameters, RefuseAVectorThatIsNotFiniteByName) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Tensors tensors;
    tensors.add("norm.weight", {2}, {1, 2});
    tensors.add("norm.bias", {2}, {1, bad});
    const auto norm = LayerNorm::load(tensors.match({spec("norm.weight", {2}), spec("norm.bias", {2})}), "norm");
    ASSERT_FALSE(norm);
    EXPECT_EQ(norm.error().code, ErrorCode::bad_checkpoint);
    EXPECT_EQ(norm.error().where, "norm.bias");
    EXPECT_NE(norm.error().what.find("element 1 is "), std::string::npos) << norm.error().what;
  }
}

TEST(Parameters, CutsStackedTensorsAndRefusesABiasThatMustBeZero) {
  Tensors tensors;
  tensors.add("stacked", {6}, {1, 2, 0, 0, 5, 6});
  std::vector<ParameterSpec> specs;
  for (int part = 0; part < 3; ++part) {
    specs.push_back({.name = "part" + std::to_string(part),
                     .shape = {2},
                     .stored = "stacked",
                     .part = part,
                     .parts = 3,
                     .presence = part == 1 ? Presence::zeros : Presence::required});
  }
  const auto parameters = tensors.match(specs);
  EXPECT_EQ(read_floats(parameters, "part2").value(), (std::vector<float>{5, 6}));
  EXPECT_FALSE(parameters.has("part1"));

  (*tensors.values[0])[3] = 0.5f;
  const auto refused = Parameters::match(tensors.state, specs);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("must be zero: stacked"), std::string::npos);
}

TEST(Parameters, KeepsTheScalesOfTheRowsItCuts) {
  const std::vector<std::int8_t> codes = {10, 20, 30, 40};
  const std::vector<float> scales = {10, 100};
  const StoredTensor tensor{.format = StorageFormat::ct2_int8,
                            .shape = {2, 2},
                            .bytes = std::as_bytes(std::span(codes)),
                            .row_scale = std::as_bytes(std::span(scales))};
  std::vector<float> values(2);
  decode_to_float(row_range(tensor, 1, 1), values).value();
  EXPECT_FLOAT_EQ(values[0], 0.3f);
  EXPECT_FLOAT_EQ(values[1], 0.4f);
}

TEST(StorageDtype, KeepsSixteenBitsUnlessTold) {
  EXPECT_EQ(storage_dtype(StorageFormat::f16, {}), DType::f16);
  EXPECT_EQ(storage_dtype(StorageFormat::bf16, {}), DType::bf16);
  EXPECT_EQ(storage_dtype(StorageFormat::q5_0, {}), DType::f32);
  EXPECT_EQ(storage_dtype(StorageFormat::f16, {.dtype = DType::f32}), DType::f32);
}

TEST(Originals, AreTheBytesOfTheCheckpointWhateverIsKept) {
  Tensors tensors;
  tensors.add_random("a.weight", {3, 4}, 1);
  tensors.add_random("b.weight", {2, 4}, 2);
  const auto parameters = tensors.match({spec("a.weight", {3, 4}), spec("b.weight", {2, 4})});
  std::vector<TensorSource> originals;
  const auto layer =
      Linear::load(parameters, {.path = "ab", .parts = {"a", "b"}}, {.dtype = DType::bf16, .originals = &originals})
          .value();
  EXPECT_NE(layer.method().state("ab").front().format, StorageFormat::f32);
  ASSERT_EQ(originals.size(), 1);
  EXPECT_EQ(originals[0].name, "ab.weight");
  EXPECT_EQ(originals[0].format, StorageFormat::f32);
  EXPECT_EQ(originals[0].shape, (Shape{5, 4}));
  std::vector<float> expected = *tensors.values[0], found(20);
  expected.insert(expected.end(), tensors.values[1]->begin(), tensors.values[1]->end());
  for (std::int64_t row = 0; row < 5; ++row) {
    originals[0].row(row, std::as_writable_bytes(std::span(found).subspan(static_cast<std::size_t>(4 * row), 4)));
  }
  EXPECT_EQ(found, expected);
}

struct Fixture : ::testing::Test {
  ThreadPool pool{2};
  ExecContext context{.pool = &pool, .isa = detected_isa()};
};

using LinearLayer = Fixture;

TEST_F(LinearLayer, StacksItsPartsWithZeroBiasWhereOneHasNone) {
  Tensors tensors;
  tensors.add_random("a.weight", {3, 8}, 1);
  tensors.add_random("b.weight", {2, 8}, 2);
  tensors.add("b.bias", {2}, {10, 20});
  const auto parameters =
      tensors.match({spec("a.weight", {3, 8}), spec("b.weight", {2, 8}), spec("b.bias", {2})});
  const Linear layer =
      Linear::load(parameters, {.path = "ab", .parts = {"a", "b"}}, {}).value();
  EXPECT_EQ(layer.path(), "ab");
  EXPECT_EQ(layer.method().info(Isa::scalar).scheme, "");
  EXPECT_EQ(layer.method().info(Isa::scalar).storage, "float32");

  auto x = random_floats(8, 3);
  std::vector<float> y(5);
  layer.forward(context, ConstMatrix{x.data(), 1, 8, 8}, Matrix{y.data(), 1, 5, 5});
  const auto row = [&](const float* weight) {
    float sum = 0;
    for (int k = 0; k < 8; ++k) sum = std::fma(x[static_cast<std::size_t>(k)], weight[k], sum);
    return sum;
  };
  EXPECT_EQ(y[2], row(tensors.values[0]->data() + 16));
  EXPECT_EQ(y[4], row(tensors.values[1]->data() + 8) + 20);
}

TEST_F(LinearLayer, RefusesMatricesThatDoNotFit) {
  Tensors tensors;
  tensors.add_random("a.weight", {3, 8}, 1);
  const auto parameters = tensors.match({spec("a.weight", {3, 8})});
  const Linear layer = Linear::load(parameters, {.path = "a", .parts = {}}, {}).value();
  std::vector<float> x(8), y(4);
  EXPECT_THROW(layer.forward(context, ConstMatrix{x.data(), 1, 8, 8}, Matrix{y.data(), 1, 4, 4}),
               InternalError);
}

TEST_F(LinearLayer, NamesATensorThatHoldsNoNumbers) {
  Tensors tensors;
  tensors.add_random("a.weight", {3, 8}, 1);
  tensors.state.tensors["a.weight"].format = StorageFormat::boolean;
  tensors.state.tensors["a.weight"].bytes = tensors.state.tensors["a.weight"].bytes.first(24);
  const auto parameters = tensors.match({spec("a.weight", {3, 8})});
  const auto layer = Linear::load(parameters, {.path = "a", .parts = {}}, {});
  if (layer) GTEST_SKIP() << "the reader takes booleans for numbers";
  EXPECT_EQ(layer.error().where, "a.weight");
}

using EmbeddingLayer = Fixture;

TEST_F(EmbeddingLayer, LooksUpTheRowsThatItsTiedHeadMultipliesWith) {
  Tensors tensors;
  tensors.add_random("tokens.weight", {40, 8}, 1);
  const auto parameters = tensors.match({spec("tokens.weight", {40, 8})});
  const Embedding embedding = Embedding::load(parameters, "tokens", {}).value();
  const Linear head = embedding.tied_head("head");
  std::vector<float> row(8);
  embedding.lookup(33, row);
  EXPECT_TRUE(std::equal(row.begin(), row.end(), tensors.values[0]->begin() + 33 * 8));
  EXPECT_THROW(embedding.lookup(40, row), InternalError);

  std::vector<float> unit(8), logits(40);
  unit[5] = 1;
  head.forward(context, ConstMatrix{unit.data(), 1, 8, 8}, Matrix{logits.data(), 1, 40, 40});
  EXPECT_EQ(logits[33], row[5]);
}

using ConvolutionLayer = Fixture;

TEST_F(ConvolutionLayer, SeesZerosBeyondTheEndsAndStepsByItsStride) {
  Tensors tensors;
  tensors.add("conv.weight", {1, 8, 3}, [] {
    std::vector<float> weight(24, 0.0f);
    weight[0] = 1, weight[1] = 10, weight[2] = 100;  // channel 0: taps at t - 1, t, t + 1
    return weight;
  }());
  tensors.add("conv.bias", {1}, {0.5f});
  const auto parameters = tensors.match({spec("conv.weight", {1, 8, 3}), spec("conv.bias", {1})});
  std::vector<float> padded(6 * 8, 7.0f);  // four frames; the padding rows hold rubbish
  for (int t = 1; t <= 4; ++t) padded[static_cast<std::size_t>(t * 8)] = static_cast<float>(t);
  for (const int stride : {1, 2}) {
    const Conv1d conv =
        Conv1d::load(parameters, {.path = "conv", .stride = stride}, {}).value();
    std::vector<float> y(static_cast<std::size_t>(4 / stride));
    conv.forward(context, Matrix{padded.data(), 6, 8, 8}, {}, Matrix{y.data(), 4 / stride, 1, 1});
    EXPECT_EQ(y[0], 210.5f);
    EXPECT_EQ(y.back(), stride == 1 ? 43.5f : 432.5f);
  }
}

using LayerNormLayer = Fixture;

TEST_F(LayerNormLayer, NormalisesInPlace) {
  Tensors tensors;
  tensors.add("norm.weight", {8}, std::vector<float>(8, 2.0f));
  tensors.add("norm.bias", {8}, std::vector<float>(8, 1.0f));
  const auto parameters = tensors.match({spec("norm.weight", {8}), spec("norm.bias", {8})});
  const LayerNorm norm = LayerNorm::load(parameters, "norm").value();
  std::vector<float> x = {1, -1, 1, -1, 1, -1, 1, -1};
  norm.forward(context, Matrix{x.data(), 1, 8, 8}, Matrix{x.data(), 1, 8, 8});
  EXPECT_NEAR(x[0], 3.0f, 2e-5f);
  EXPECT_NEAR(x[1], -1.0f, 2e-5f);
}

}  // namespace
}  // namespace oasr::layers

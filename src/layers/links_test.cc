// Links on a norm and two products: which are armed, and that they change no bit.
#include "layers/links.h"

#include <gtest/gtest.h>

#include "quant/methods/testing.h"
#include "testing/environment.h"

namespace oasr::layers {
namespace {

using quant::QuantizedLayer;

constexpr std::int64_t kWidth = 64, kHidden = 96, kRows = 9;
constexpr const char* kFusion = "OASR_QUANT_FUSION";

const quant::MethodOptions kNative{
    .scaled_mm = &kernels::scaled_mm_implementation(kernels::ScaledMMBackend::native)};

// norm -> up -> down + residual, with random numbers; a product that is not named is full precision.
class Block {
 public:
  Block(const std::string& up_scheme, const std::string& down_scheme, bool up_smoothed = false,
        bool down_smoothed = false) {
    add_float("norm.weight", {kWidth}, 1);
    add_float("norm.bias", {kWidth}, 2);
    add_product("up", up_scheme, up_smoothed, {kHidden, kWidth}, 10);
    add_product("down", down_scheme, down_smoothed, {kWidth, kHidden}, 20);
    const auto parameters = Parameters::match(state_, specs_).value();
    const WeightOptions options{.quantization = &quantization_, .stored_quantized = true, .methods = kNative};
    norm_ = std::make_unique<LayerNorm>(LayerNorm::load(parameters, "norm").value());
    up_ = std::make_unique<Linear>(
        Linear::load(parameters, {.path = "up", .parts = {}, .activation = kernels::Activation::gelu},
                     options)
            .value());
    down_ =
        std::make_unique<Linear>(Linear::load(parameters, {.path = "down", .parts = {}}, options).value());
    layers_.norms = {norm_.get()};
    layers_.linears = {up_.get(), down_.get()};
  }

  static quant::QuantLayout layout() {
    return {.groups = {{.consumers = {"up"},
                        .fold = quant::Fold::norm_affine,
                        .producer = "norm",
                        .fuse_output_quant = true}},
            .chains = {{.producer = "up", .consumer = "down"}},
            .attention = {},
            .batch_invariant = {}};
  }
  // "norm>up up>down"
  std::string armed() {
    std::string text;
    const auto links = link(layout(), layers_).value();
    for (const Link& link : links) {
      text += (text.empty() ? "" : " ") + link.producer + ">" + link.consumer;
    }
    return text;
  }
  bool norm_linked() const { return norm_->linked(); }
  bool up_linked() const { return up_->linked(); }

  std::vector<float> run(int threads = 2, Isa isa = detected_isa()) const {
    ThreadPool pool(threads);
    ExecContext context{.pool = &pool, .isa = isa};
    layers_.reserve(context);
    auto x = kernels::random_floats(kRows * kWidth, 7);
    std::vector<float> normed_memory(x.size()), hidden_memory(static_cast<std::size_t>(kRows * kHidden));
    const Matrix rows{x.data(), kRows, kWidth, kWidth};
    quant::Activation normed = Matrix{normed_memory.data(), kRows, kWidth, kWidth};
    quant::Activation hidden = Matrix{hidden_memory.data(), kRows, kHidden, kHidden};
    norm_->forward(context, rows, normed);
    up_->forward(context, normed, hidden);
    down_->forward(context, hidden, rows, rows);
    return x;
  }

 private:
  void add(const std::string& name, StorageFormat format, const Shape& shape,
           std::span<const std::byte> bytes) {
    memory_.add(name, format, shape, bytes);
    state_.tensors[name] = memory_.slots.at(name);
    specs_.push_back({.name = name, .shape = shape, .stored = name});
  }
  void add_float(const std::string& name, const Shape& shape, unsigned seed) {
    const auto values = kernels::random_floats(shape.elements(), seed, 0.3f);
    add(name, StorageFormat::f32, shape, quant::bytes_of(values));
  }
  void add_product(const std::string& path, const std::string& scheme, bool smoothed, const Shape& weight,
                   unsigned seed) {
    add_float(path + ".bias", {weight[0]}, seed);
    if (scheme.empty()) return add_float(path + ".weight", weight, seed + 1);
    const QuantizedLayer layer{.scheme = scheme, .smoothed = smoothed};
    quantization_.layers[path] = layer;
    const auto made = quant::made_slots(layer, weight, seed + 1);
    for (const auto& [suffix, tensor] : made.slots) {
      add(path + "." + suffix, tensor.format, tensor.shape, tensor.bytes);
      specs_.back().format = tensor.format;
    }
  }

  quant::OwnedSlots memory_;
  StateDict state_;
  std::vector<ParameterSpec> specs_;
  quant::QuantizationSpec quantization_;
  std::unique_ptr<LayerNorm> norm_;
  std::unique_ptr<Linear> up_, down_;
  LayerList layers_;
};

constexpr const char *kDynamic = "int8_w8a8", *kStatic = "int8_w8a8_static", *kFloat = "";

TEST(Links, AreArmedWhereTheMethodsAllowThem) {
  EXPECT_EQ(Block(kDynamic, kStatic).armed(), "norm>up up>down");
  EXPECT_EQ(Block(kDynamic, kStatic, false, true).armed(),
            "norm>up up>down");                              // the smoother is in the multiplier
  EXPECT_EQ(Block(kDynamic, kDynamic).armed(), "norm>up");   // rows of fc2 have scales of their own
  EXPECT_EQ(Block(kStatic, kStatic).armed(), "up>down");     // a norm writes scales a row
  EXPECT_EQ(Block(kFloat, kStatic).armed(), "");             // the producer computes floats
  EXPECT_EQ(Block(kDynamic, kFloat).armed(), "norm>up");
  EXPECT_EQ(Block(kFloat, kFloat).armed(), "");
}

TEST(Links, ASmoothedConsumerDisarmsTheNorm) {
  Block block(kDynamic, kStatic, true);
  EXPECT_EQ(block.armed(), "up>down");
  EXPECT_FALSE(block.norm_linked());
}

TEST(Links, AFullPrecisionConsumerDisarmsTheNorm) {
  Block block(kFloat, kDynamic);
  EXPECT_EQ(block.armed(), "");
  EXPECT_FALSE(block.norm_linked());
  EXPECT_FALSE(block.up_linked());
}

TEST(Links, ChangeNoBitOnAnyLane) {
  for (const char* up : {kDynamic, kStatic, kFloat}) {
    for (const char* down : {kDynamic, kStatic, kFloat}) {
      for (const bool smoothed : {false, true}) {
        const Block plain(up, down, smoothed, smoothed);
        Block fused(up, down, smoothed, smoothed);
        const std::string armed = fused.armed();
        EXPECT_EQ(fused.norm_linked(), armed.find("norm>up") != armed.npos);
        EXPECT_EQ(fused.up_linked(), armed.find("up>down") != armed.npos);
        const auto expected = plain.run(1, Isa::scalar);
        for (const auto& [isa, name] : isa_names()) {
          if (!isa_supported(isa)) continue;
          SCOPED_TRACE(std::string(name) + " " + armed);
          EXPECT_EQ(kernels::first_difference(plain.run(3, isa), expected), -1);
          EXPECT_EQ(kernels::first_difference(fused.run(3, isa), expected), -1);
        }
      }
    }
  }
}

TEST(Links, AreOffWithFusionOff) {
  const testing::Variable off(kFusion, "0");
  Block block(kDynamic, kStatic);
  EXPECT_EQ(block.armed(), "");
  EXPECT_FALSE(block.norm_linked());
  EXPECT_FALSE(block.up_linked());
}

TEST(Links, AreOnWithFusionOn) {
  const testing::Variable on(kFusion, "1");
  EXPECT_EQ(Block(kDynamic, kStatic).armed(), "norm>up up>down");
}

TEST(Links, RefuseAnotherValueOfTheVariableByName) {
  for (const char* value : {"2", "-1", "true", "00"}) {
    const testing::Variable wrong(kFusion, value);
    const auto links = link({}, {});
    ASSERT_FALSE(links) << value;
    EXPECT_EQ(links.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(links.error().where, kFusion);
  }
}

TEST(Links, ALayoutThatNamesNoLayerIsABug) {
  Block block(kDynamic, kStatic);
  LayerList none;
  EXPECT_THROW(static_cast<void>(link(Block::layout(), none)), InternalError);
}

// The name of the layer comes with every error of its tensors.
TEST(QuantizedLinear, NamesItselfWhenAStoredScaleIsNone) {
  const QuantizedLayer layer{.scheme = kStatic, .smoothed = true};
  for (const char* suffix : {"weight_scale", "smooth_inv", "input_scale"}) {
    auto made = quant::made_slots(layer, {kHidden, kWidth}, 1);
    made.set(suffix, 0, -1.0f);
    StateDict state;
    std::vector<ParameterSpec> specs;
    for (const auto& [name, tensor] : made.slots) {
      state.tensors["block.fc1." + name] = tensor;
      specs.push_back({.name = "block.fc1." + name, .shape = tensor.shape, .stored = "block.fc1." + name});
      specs.back().format = tensor.format;
    }
    quant::QuantizationSpec quantization;
    quantization.layers["block.fc1"] = layer;
    const auto linear =
        Linear::load(Parameters::match(state, specs).value(), {.path = "block.fc1", .parts = {}},
                     {.quantization = &quantization, .stored_quantized = true, .methods = kNative});
    ASSERT_FALSE(linear) << suffix;
    EXPECT_EQ(linear.error().where, "block.fc1");
    EXPECT_NE(linear.error().what.find(suffix), std::string::npos);
  }
}

TEST(QuantizedLinear, NamesItselfAndTheRowWhenAWeightIsNan) {
  auto weight = kernels::random_floats(kHidden * kWidth, 1);
  weight[5 * kWidth + 3] = std::nanf("");
  StateDict state;
  state.tensors["block.fc1.weight"] = {.format = StorageFormat::f32, .shape = {kHidden, kWidth},
                                       .bytes = quant::bytes_of(weight), .row_scale = {}};
  const std::vector<ParameterSpec> specs = {
      {.name = "block.fc1.weight", .shape = {kHidden, kWidth}, .stored = "block.fc1.weight"}};
  quant::QuantizationSpec quantization;
  quantization.layers["block.fc1"] = {.scheme = kDynamic};
  const auto linear =
      Linear::load(Parameters::match(state, specs).value(), {.path = "block.fc1", .parts = {}},
                   {.quantization = &quantization, .methods = kNative});
  ASSERT_FALSE(linear);
  EXPECT_EQ(linear.error().where, "block.fc1");
  EXPECT_NE(linear.error().what.find("row 5"), std::string::npos) << linear.error().message();
}

TEST(Parameters, TakeNoIntegersForFullPrecision) {
  const std::vector<std::int8_t> codes(16, 3);
  StateDict state;
  state.tensors["a.weight"] = {
      .format = StorageFormat::i8, .shape = {1, 16}, .bytes = quant::bytes_of(codes), .row_scale = {}};
  const std::vector<ParameterSpec> specs = {{.name = "a.weight", .shape = {1, 16}, .stored = "a.weight"}};
  const auto matched = Parameters::match(state, specs);
  ASSERT_FALSE(matched);
  EXPECT_NE(matched.error().what.find("a.weight is int8 instead of full precision"), std::string::npos)
      << matched.error().message();
}

}  // namespace
}  // namespace oasr::layers

// What a quantized folder may not be, and what may not be asked of it, through load_model().
#include <gmock/gmock.h>

#include "load/convert.h"
#include "load/testing.h"
#include "models/whisper/int8_support.h"
#include "testing/environment.h"
#include "testing/paths.h"

namespace oasr::load {
namespace {

using ::testing::HasSubstr;
using models::whisper::NativeTensors;
using models::whisper::RandomCheckpoint;

constexpr const char *kFc1 = "model.encoder.layers.0.fc1", *kConv = "model.encoder.conv1";

struct QuantizedFolder : LoadFixture {
  RandomCheckpoint random{models::whisper::small_config()};
  NativeTensors native = models::whisper::calibrated_tensors(random);
  oasr::testing::TemporaryFolder temporary;
  int written = 0;

  // Writes what `native` has become, and loads it.
  Result<LoadedModel> try_load(const LoadOptions& options = {}) {
    const auto folder = temporary.path() / std::to_string(written++);
    NativeContent content;
    content.architecture = "whisper";
    content.source_container = "huggingface";
    content.documents = random.checkpoint.documents;
    content.tokenizer = random.checkpoint.tokenizer;
    content.quantization = dump_json(quant::to_json(native.spec));
    content.tensors = native.sources();
    CHECK(write_native(folder, content).has_value(), "the folder is written");
    return load_model(folder, options, context);
  }
  std::string message(const LoadOptions& options = {}, ErrorCode code = ErrorCode::bad_checkpoint) {
    const auto loaded = try_load(options);
    if (loaded) return "loaded";
    EXPECT_EQ(loaded.error().code, code) << loaded.error().message();
    return loaded.error().message();
  }
  void add_floats(const std::string& name, const Shape& shape, float value = 1) {
    const std::vector<float> values(static_cast<std::size_t>(shape.elements()), value);
    native.tensors.add(name, StorageFormat::f32, shape, quant::bytes_of(values));
  }
  void erase(const std::string& name) { native.tensors.slots.erase(name); }
};

TEST_F(QuantizedFolder, LoadsAsItIs) { EXPECT_EQ(message(), "loaded"); }

TEST_F(QuantizedFolder, NamesAWeightOfAnotherDtype) {
  add_floats(std::string(kFc1) + ".weight", {96, 64});
  EXPECT_THAT(message(),
              HasSubstr("of another dtype: model.encoder.layers.0.fc1.weight is float32 instead of int8"));
}

TEST_F(QuantizedFolder, NamesAScaleOfAnotherDtype) {
  const std::vector<std::uint16_t> halves(96, 0x3C00);
  native.tensors.add(std::string(kFc1) + ".weight_scale", StorageFormat::f16, {96}, quant::bytes_of(halves));
  EXPECT_THAT(message(), HasSubstr("model.encoder.layers.0.fc1.weight_scale is float16 instead of float32"));
}

TEST_F(QuantizedFolder, NamesAMissingScale) {
  for (const char* name :
       {"model.encoder.layers.0.fc1.weight_scale", "model.encoder.layers.0.fc2.input_scale",
        "model.encoder.conv1.smooth_inv", "model.decoder.layers.1.fc1.weight"}) {
    const auto kept = native.tensors.slots;
    erase(name);
    EXPECT_THAT(message(), HasSubstr("1 missing: " + std::string(name)));
    native.tensors.slots = kept;
  }
}

TEST_F(QuantizedFolder, NamesARenamedTensorTwice) {
  add_floats(std::string(kFc1) + ".scale", {96});
  erase(std::string(kFc1) + ".weight_scale");
  const std::string text = message();
  EXPECT_THAT(text, HasSubstr("1 missing: model.encoder.layers.0.fc1.weight_scale"));
  EXPECT_THAT(text, HasSubstr("1 extra: model.encoder.layers.0.fc1.scale"));
}

TEST_F(QuantizedFolder, NamesATensorTooMuch) {
  add_floats(std::string(kFc1) + ".input_scale", {1});  // the layer is dynamic
  EXPECT_THAT(message(), HasSubstr("1 extra: model.encoder.layers.0.fc1.input_scale"));
}

TEST_F(QuantizedFolder, NamesAMisshapenTensor) {
  add_floats(std::string(kFc1) + ".weight_scale", {95});
  EXPECT_THAT(message(), HasSubstr("model.encoder.layers.0.fc1.weight_scale is [95] instead of [96]"));
  native = models::whisper::calibrated_tensors(random);
  const auto channels_first = native.tensors.slots.at("model.encoder.conv1.weight");
  const std::vector<std::byte> bytes(channels_first.bytes.begin(), channels_first.bytes.end());
  native.tensors.add("model.encoder.conv1.weight", StorageFormat::i8, {64, 80, 3}, bytes);
  EXPECT_THAT(message(), HasSubstr("model.encoder.conv1.weight is [64, 80, 3] instead of [64, 3, 80]"));
}

TEST_F(QuantizedFolder, NamesTheLayerWhoseScaleIsNone) {
  struct Bad {
    const char *layer, *suffix;
    float value;
  };
  for (const Bad& bad :
       {Bad{kFc1, "weight_scale", std::nanf("")}, Bad{kConv, "input_scale", 0.0f},
        Bad{kConv, "smooth_inv", -1.0f}, Bad{"model.encoder.layers.0.fc2", "input_scale", INFINITY}}) {
    native = models::whisper::calibrated_tensors(random);
    native.tensors.set(std::string(bad.layer) + "." + bad.suffix, 0, bad.value);
    const std::string text = message();
    EXPECT_THAT(text, HasSubstr(bad.layer));
    EXPECT_THAT(text, HasSubstr(bad.suffix));
  }
}

TEST_F(QuantizedFolder, NamesALayerOfItsSpecificationThatTheModelHasNot) {
  native.spec.layers["model.encoder.layers.9.fc1"] = {.scheme = "int8_w8a8"};
  EXPECT_THAT(message(), HasSubstr("model.encoder.layers.9.fc1"));
}

TEST_F(QuantizedFolder, NamesALayerThatNoKernelServesSo) {
  native.spec.layers["proj_out"] = {.scheme = "int8_w8a8"};
  EXPECT_THAT(message(), HasSubstr("proj_out"));
  native = models::whisper::calibrated_tensors(random);
  native.spec.layers[kConv] = {.scheme = "int8_w8a8", .smoothed = true};  // no static input scale
  EXPECT_THAT(message(), HasSubstr(kConv));
  native = models::whisper::calibrated_tensors(random);
  native.spec.layers[kFc1] = {.scheme = "fp8_w8a8"};
  EXPECT_THAT(message({}, ErrorCode::unsupported), HasSubstr(kFc1));
}

TEST_F(QuantizedFolder, TakesALayerThatItsSpecificationForgotForNoFullPrecision) {
  native.spec.layers.erase(kFc1);
  erase(std::string(kFc1) + ".weight_scale");  // codes without scales are left
  EXPECT_THAT(message(), HasSubstr("model.encoder.layers.0.fc1.weight is int8 instead of full precision"));
}

TEST_F(QuantizedFolder, AnswersToItsOwnSchemesOnly) {
  const auto asked = [&](quant::QuantRequest request) {
    return LoadOptions{.quantization = std::move(request)};
  };
  EXPECT_EQ(message(asked({.scheme = "int8_w8a8"})), "loaded");
  EXPECT_EQ(message(asked({.scheme = "int8_w8a8_static"})), "loaded");
  const auto refused = [&](quant::QuantRequest request) {
    return message(asked(std::move(request)), ErrorCode::invalid_argument);
  };
  EXPECT_THAT(refused({.scheme = "fp8_w8a8"}), HasSubstr("quantized as int8_w8a8 and int8_w8a8_static"));
  EXPECT_THAT(refused({.scheme = "int9"}), HasSubstr("int9"));
  EXPECT_THAT(refused({.scheme = "int8_w8a8", .ignore = {"*"}}), HasSubstr("ignore"));
  EXPECT_THAT(refused({.ignore = {"*"}}), HasSubstr("ignore"));
  EXPECT_THAT(refused({.scheme = "int8_w8a8", .module_types = {"linear"}}), HasSubstr("module_types"));
  EXPECT_THAT(refused({.layers = {kFc1}}), HasSubstr("layers"));
}

TEST_F(QuantizedFolder, WithoutAnyLayerIsFullPrecisionAndMayBeQuantized) {
  native = {};
  const auto network = random.network();
  for (const TensorSource& source : network->layers.state()) native.keep(source);
  const auto plain = try_load();
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_TRUE(plain->quantization.empty());
  const auto quantized = try_load({.quantization = {.scheme = "int8_w8a8"}});
  ASSERT_TRUE(quantized) << quantized.error().message();
  EXPECT_GT(quantized->report.quantized, 0);
}

TEST_F(QuantizedFolder, DoesNotLoadUnderAVariableThatSaysNothing) {
  {
    const oasr::testing::Variable fusion("OASR_QUANT_FUSION", "2");
    EXPECT_THAT(message({}, ErrorCode::invalid_argument), HasSubstr("OASR_QUANT_FUSION"));
  }
  const oasr::testing::Variable backend("OASR_SCALED_MM_BACKEND", "cublaslt");
  EXPECT_THAT(message({}, ErrorCode::unsupported), HasSubstr("OASR_SCALED_MM_BACKEND"));
}

}  // namespace
}  // namespace oasr::load

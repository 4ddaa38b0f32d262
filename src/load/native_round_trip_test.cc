// A checkpoint as oasr writes it is the checkpoint that it was made from: the same bits, tokens and bytes.
#include "load/convert.h"
#include "load/testing.h"
#include "models/whisper/int8_support.h"
#include "testing/environment.h"
#include "testing/paths.h"

namespace oasr::load {
namespace {

namespace fs = std::filesystem;
using models::whisper::RandomCheckpoint;

const LoadOptions kInt8{.quantization = {.scheme = "int8_w8a8"}};
const LoadOptions kW4A8[] = {{.quantization = {.scheme = "w4a8_g128"}}, {.quantization = {.scheme = "w4a8_chn"}}};

struct NativeRoundTrip : LoadFixture {
  oasr::testing::TemporaryFolder temporary;
  fs::path at(const std::string& name) const { return temporary.path() / name; }

  // A folder of random numbers as Hugging Face would write it.
  fs::path source(bool tied = true, int vocabulary = 301) {
    auto config = models::whisper::small_config();
    config.tie_word_embeddings = tied;
    config.vocab_size = vocabulary;
    return source(config);
  }
  fs::path source(const models::whisper::Config& config) {
    models::whisper::write_hugging_face(RandomCheckpoint(config), at("source"));
    return at("source");
  }
  fs::path convert(const fs::path& from, const std::string& name, const LoadOptions& options = {}) {
    const LoadedModel loaded = load_all(from, options);
    const Status saved = save_native(loaded, at(name));
    CHECK(saved.has_value(), saved ? "" : saved.error().message());
    return at(name);
  }
  void expect_same_model(const fs::path& native, const fs::path& from, const LoadOptions& options = {}) {
    const LoadedModel a = load_all(native);
    LoadedModel b = load_all(from, options);
    if (!b.quantization.empty()) b.quantization.producer.recipe = options.quantization.scheme + "_rtn";
    EXPECT_EQ(a.model->info().architecture, b.model->info().architecture);
    EXPECT_EQ(a.model->info().size_name, b.model->info().size_name);
    EXPECT_EQ(a.model->info().parameters, b.model->info().parameters);
    EXPECT_EQ(a.model->info().weight_bytes, b.model->info().weight_bytes);
    EXPECT_EQ(a.model->info().weight_dtype, b.model->info().weight_dtype);
    EXPECT_EQ(a.quantization, b.quantization);
    EXPECT_EQ(to_json(a.report)["layers"], to_json(b.report)["layers"]);
    expect_same_tokens(aed(a)->tokens(), aed(b)->tokens());
    for (const char* text : {" Hello, wörld", "a b c", "", "<|en|>"}) {
      EXPECT_EQ(a.model->tokenizer().encode(text), b.model->tokenizer().encode(text));
    }
    auto documents = a.source.documents;
    documents.erase("quantization");
    EXPECT_EQ(documents, b.source.documents);
    EXPECT_EQ(a.source.origin(), b.source.origin());
    EXPECT_TRUE(logits(*aed(a)) == logits(*aed(b)));
  }
};

TEST_F(NativeRoundTrip, AtFullPrecisionIsTheSource) {
  const auto from = source();
  expect_same_model(convert(from, "v1"), from);
  EXPECT_EQ(files_of(at("v1"))["oasr_config.json"].find("\"quantization\""), std::string::npos);
}

TEST_F(NativeRoundTrip, InInt8IsTheSourceLoadedInInt8) {
  const auto from = source();
  expect_same_model(convert(from, "v2", kInt8), from, kInt8);
  EXPECT_LT(fs::file_size(at("v2") / "model.safetensors"), fs::file_size(from / "model.safetensors") / 2);
}

// A checkpoint of random numbers, one matrix of it as another toolkit stores 8 or fewer bits.
Checkpoint quantized_by_others(StorageFormat format) {
  Checkpoint checkpoint = RandomCheckpoint(models::whisper::small_config()).checkpoint;
  auto& tensor = checkpoint.tensors.tensors.at("model.encoder.layers.0.fc1.weight");
  tensor.format = format;
  const std::size_t rows = static_cast<std::size_t>(tensor.shape[0]);
  // Any bytes but the highest bits of float16 scales, so that the numbers are finite.
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(*storage_bytes(format, tensor.shape), 0x2A);
  auto scales = std::make_shared<std::vector<float>>(rows, 300.0f);
  tensor.bytes = std::as_bytes(std::span(*bytes));
  if (format == StorageFormat::ct2_int8) tensor.row_scale = std::as_bytes(std::span(*scales));
  checkpoint.tensors.owners.push_back(std::move(bytes));
  checkpoint.tensors.owners.push_back(std::move(scales));
  return checkpoint;
}

TEST_F(NativeRoundTrip, WeightsThatOthersQuantizedAreRoundedTwiceAndTheReportSaysSo) {
  const std::string note = "the checkpoint's weights were quantized before: they are rounded twice";
  using enum StorageFormat;
  for (const StorageFormat format : {ct2_int8, q8_0, q5_1, q5_0, q4_1, q4_0}) {
    SCOPED_TRACE(enum_name(storage_format_names(), format));
    const auto twice = load_checkpoint(quantized_by_others(format), kInt8, context);
    ASSERT_TRUE(twice) << twice.error().message();
    EXPECT_EQ(twice->report.notes, std::vector{note});
    EXPECT_NE(to_text(twice->report, false).find("note          " + note), std::string::npos);
    EXPECT_EQ(to_json(twice->report)["notes"], Json({note}));
    const auto once = load_checkpoint(quantized_by_others(format), {}, context);
    ASSERT_TRUE(once) << once.error().message();
    EXPECT_TRUE(once->report.notes.empty());
  }
  const auto ours = load_checkpoint(RandomCheckpoint(models::whisper::small_config()).checkpoint, kInt8, context);
  ASSERT_TRUE(ours) << ours.error().message();
  EXPECT_TRUE(ours->report.notes.empty());
}

TEST_F(NativeRoundTrip, InFourBitsIsTheSourceLoadedInFourBits) {
  auto config = models::whisper::small_config();
  config.d_model = 128;
  config.encoder_ffn_dim = 256;
  const auto from = source(config);
  for (const LoadOptions& options : kW4A8) {
    const std::string& name = options.quantization.scheme;
    SCOPED_TRACE(name);
    expect_same_model(convert(from, name, options), from, options);
    expect_same_files(convert(at(name), name + "_again", options), at(name));
    const LoadedModel loaded = load_all(at(name));
    std::int64_t bytes = 0, int8 = 0;
    for (const LayerReport& layer : loaded.report.layers) {
      if (layer.scheme.empty()) continue;
      EXPECT_EQ(layer.scheme, name) << layer.path;
      EXPECT_FALSE(layer.zero_domain.empty()) << layer.path;
      bytes += layer.weight_bytes - 4 * layer.out_features;  // biases aside
      int8 += layer.in_features * layer.out_features;
    }
    // Half a byte a weight; of each channel a scale and a zero, and two bytes for a group.
    EXPECT_GE(bytes, int8 / 2);
    EXPECT_LE(bytes, int8 / 2 + int8 / 128 * 6 + int8 / 128 * 4);
  }
}

TEST_F(NativeRoundTrip, WhatFourBitsDoNotFitIsInt8WithTheReason) {
  const auto from = source();  // only the decoder's fc2 have 128 columns
  const LoadOptions& groups = kW4A8[0];
  expect_same_model(convert(from, "mixed", groups), from, groups);
  const LoadedModel loaded = load_all(at("mixed"), groups);  // its own scheme changes nothing
  for (const LayerReport& layer : loaded.report.layers) {
    if (layer.scheme.empty()) continue;  // a convolution, the head
    SCOPED_TRACE(layer.path);
    const bool fits = layer.in_features % 128 == 0;
    EXPECT_EQ(layer.scheme, fits ? "w4a8_g128" : "int8_w8a8");
    EXPECT_EQ(layer.storage, fits ? "int4 g128" : "int8");
    EXPECT_EQ(layer.zero_domain, fits ? "post_scaled" : "");
    const std::string reason =
        "in_features " + std::to_string(layer.in_features) + " is not a multiple of 128: int8_w8a8 instead";
    EXPECT_EQ(layer.reason, fits ? "" : reason);
  }
  EXPECT_EQ(std::ranges::count(loaded.report.layers, "w4a8_g128", &LayerReport::scheme), 2);
  EXPECT_NE(to_text(loaded.report, true).find("int4 g128 post_scaled"), std::string::npos);
}

TEST_F(NativeRoundTrip, FourBitsHaveTheSameBitsOnEveryLaneAndOnTheReference) {
  const auto from = source();
  for (const LoadOptions& options : kW4A8) {
    const auto expected = logits(*load(from, options));
    {
      const oasr::testing::Variable backend("OASR_SCALED_MM_BACKEND", "reference");
      const LoadedModel reference = load_all(from, options);
      EXPECT_EQ(reference.report.quantized, 0);
      EXPECT_TRUE(logits(*aed(reference)) == expected);
    }
    for (const auto& [isa, name] : isa_names()) {
      if (!isa_supported(isa)) continue;
      context.isa = isa;
      EXPECT_TRUE(logits(*load(from, options)) == expected) << name;
    }
    context.isa = detected_isa();
  }
}

TEST_F(NativeRoundTrip, OfAPartOfTheLayersIsTheSame) {
  const auto from = source();
  const LoadOptions some{.quantization = {.scheme = "int8_w8a8", .ignore = {"*.encoder.*", "*.fc2"}}};
  expect_same_model(convert(from, "v2", some), from, some);
}

TEST_F(NativeRoundTrip, AFullPrecisionFolderIsQuantizedAsItsSourceIs) {
  const auto from = source();
  const auto v1 = convert(from, "v1");
  EXPECT_TRUE(logits(*load(v1, kInt8)) == logits(*load(from, kInt8)));
  convert(from, "direct", kInt8);
  convert(v1, "by_way_of_v1", kInt8);
  expect_same_files(at("direct"), at("by_way_of_v1"));
}

TEST_F(NativeRoundTrip, KeepsAHeadThatIsNotTied) {
  const auto from = source(false, 304);
  expect_same_model(convert(from, "v1"), from);
  expect_same_model(convert(from, "v2", kInt8), from, kInt8);
  EXPECT_EQ(load_all(at("v2")).quantization.layers.count("proj_out"), 1u);
}

TEST_F(NativeRoundTrip, KeepsSixteenBitWeights) {
  const auto from = source();
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const LoadOptions narrow{.dtype = dtype};
    const auto v1 = convert(from, std::string(dtype_name(dtype)), narrow);
    expect_same_model(v1, from, narrow);
  }
}

TEST_F(NativeRoundTrip, TheSameSourceGivesTheSameBytes) {
  const auto from = source();
  for (const LoadOptions& options : {LoadOptions{}, kInt8}) {
    const std::string name = options.quantization.scheme.empty() ? "v1" : "v2";
    convert(from, name + "_a", options);
    convert(from, name + "_b", options);
    expect_same_files(at(name + "_a"), at(name + "_b"));
  }
}

TEST_F(NativeRoundTrip, WrittenAgainGivesTheSameBytes) {
  const auto from = source();
  convert(convert(from, "v1"), "v1_again");
  expect_same_files(at("v1"), at("v1_again"));
  convert(convert(from, "v2", kInt8), "v2_again");
  expect_same_files(at("v2"), at("v2_again"));
  convert(at("v2"), "v2_named", kInt8);  // its own scheme changes nothing
  expect_same_files(at("v2"), at("v2_named"));
}

// Convolutions and single products at static scales, smoothed layers: what a recipe writes.
struct CalibratedFolder : NativeRoundTrip {
  RandomCheckpoint random{models::whisper::small_config()};
  models::whisper::NativeTensors tensors = models::whisper::calibrated_tensors(random);

  fs::path write(const std::string& name) const {
    NativeContent content;
    content.architecture = "whisper";
    content.source_container = "huggingface";
    content.documents = random.checkpoint.documents;
    content.tokenizer = random.checkpoint.tokenizer;
    content.quantization = dump_json(quant::to_json(tensors.spec));
    content.tensors = tensors.sources();
    const Status written = write_native(at(name), content);
    CHECK(written.has_value(), written ? "" : written.error().message());
    return at(name);
  }
};

TEST_F(CalibratedFolder, LoadsAsItsNetworkAndSaysWhoQuantizesWhat) {
  const LoadedModel loaded = load_all(write("v2"));
  EXPECT_EQ(loaded.quantization, tensors.spec);
  std::map<std::string, LayerReport> layers;
  for (const LayerReport& layer : loaded.report.layers) layers[layer.path] = layer;
  EXPECT_EQ(layers.at("model.encoder.conv1").scheme, "int8_w8a8_static");
  EXPECT_EQ(layers.at("model.encoder.conv1").input, "itself");
  EXPECT_EQ(layers.at("model.encoder.layers.0.fc1").input, "model.encoder.layers.0.final_layer_norm");
  EXPECT_EQ(layers.at("model.encoder.layers.0.fc2").input, "model.encoder.layers.0.fc1");
  EXPECT_EQ(layers.at("model.encoder.layers.0.self_attn.out_proj").input, "itself");
  EXPECT_EQ(layers.at("proj_out").scheme, "");
  EXPECT_EQ(loaded.report.quantized, static_cast<std::int64_t>(tensors.spec.layers.size()));
  EXPECT_EQ(loaded.report.reference, 0);
}

TEST_F(CalibratedFolder, HasTheSameBitsFusedAndNotAndOnTheReference) {
  const auto folder = write("v2");
  const auto expected = logits(*load(folder));
  const auto load_under = [&](const char* variable, const char* value) {
    const oasr::testing::Variable under(variable, value);
    return load_all(folder);
  };
  const LoadedModel unfused = load_under("OASR_QUANT_FUSION", "0");
  for (const LayerReport& layer : unfused.report.layers) {
    EXPECT_EQ(layer.input, layer.scheme.empty() ? "" : "itself") << layer.path;
  }
  EXPECT_TRUE(logits(*aed(unfused)) == expected);
  const LoadedModel reference = load_under("OASR_SCALED_MM_BACKEND", "reference");
  EXPECT_EQ(reference.report.quantized, 0);
  EXPECT_EQ(reference.report.reference, static_cast<std::int64_t>(tensors.spec.layers.size()));
  EXPECT_TRUE(logits(*aed(reference)) == expected);
  for (const auto& [isa, name] : isa_names()) {
    if (!isa_supported(isa)) continue;
    context.isa = isa;
    EXPECT_TRUE(logits(*load(folder)) == expected) << name;
  }
}

TEST_F(CalibratedFolder, HasTheSameBitsWithEveryOpOnItsReferenceAndSaysSo) {
  const auto folder = write("v2");
  const auto expected = logits(*load(folder));
  const oasr::testing::Variable layers("OASR_LAYERS_BACKEND", "reference");
  context.isa = selected_isa().value();
  const LoadedModel reference = load_all(folder);
  EXPECT_EQ(reference.report.quantized, 0);
  EXPECT_EQ(reference.report.reference, static_cast<std::int64_t>(tensors.spec.layers.size()));
  for (const LayerReport& layer : reference.report.layers) {
    EXPECT_TRUE(layer.kernel.ends_with(" reference")) << layer.path << ": " << layer.kernel;
  }
  for (const auto& [op, lane] : reference.model->info().lanes) EXPECT_EQ(lane, "reference") << op;
  EXPECT_TRUE(logits(*aed(reference)) == expected);
}

TEST_F(CalibratedFolder, WrittenAgainGivesTheSameBytes) {
  convert(write("v2"), "again");
  expect_same_files(at("v2"), at("again"));
}

// Real weights from every container.
class RealRoundTrip : public NativeRoundTrip, public ::testing::WithParamInterface<const char*> {};

TEST_P(RealRoundTrip, IsTheSourceAtFullPrecisionAndQuantized) {
  const auto from = oasr::testing::real_weights("tiny.en", GetParam());
  if (!from) GTEST_SKIP() << "no real weights of tiny.en as " << GetParam() << " (set OASR_TEST_WEIGHTS)";
  expect_same_model(convert(*from, "v1"), *from);
  expect_same_model(convert(*from, "v2", kInt8), *from, kInt8);
  for (const LoadOptions& options : kW4A8) {
    expect_same_model(convert(*from, options.quantization.scheme, options), *from, options);
  }
  convert(at("v2"), "v2_again");
  expect_same_files(at("v2"), at("v2_again"));
}

INSTANTIATE_TEST_SUITE_P(Whisper, RealRoundTrip, ::testing::Values("hf", "openai-pt", "ct2", "ggml"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace oasr::load

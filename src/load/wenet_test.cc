// WeNet folders through the load sequence: what is written natively is what was read, and what is said of a
// folder that does not fit together.
#include <gmock/gmock.h>

#include <fstream>

#include "load/convert.h"
#include "load/testing.h"
#include "models/conformer/test_support.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr::load {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const LoadOptions kInt8{.quantization = {.scheme = "int8_w8a8"}};

struct WenetLoad : LoadFixture {
  oasr::testing::TemporaryFolder temporary;
  fs::path at(const std::string& name) const { return temporary.path() / name; }

  static fs::path variant(const char* name) { return oasr::testing::test_data(fs::path("wenet") / name); }

  // Log-probabilities of the features of the variants, and of both decoders over a hypothesis.
  std::vector<float> scores(const LoadedModel& loaded) {
    const auto model = std::dynamic_pointer_cast<const models::CtcModel>(loaded.model);
    auto state = model->new_state(context).value();
    const auto features = oasr::testing::read_array(variant("features.npz"), "features").floats();
    const auto id = state->open({}, true);
    state->accept(id, features);
    state->finish(id);
    state->step({&id, 1});
    const auto values = state->scores(id).values;
    std::vector<float> all(values.begin(), values.end());
    if (!model->has_decoder()) return all;
    const std::vector<TokenId> tokens = {5, 3, 9};
    std::vector<float> left(4), right(model->has_right_to_left() ? 4 : 0);
    const decode::SequenceScorer::Item item{id, tokens, left, right};
    state->score({&item, 1});
    all.insert(all.end(), left.begin(), left.end());
    all.insert(all.end(), right.begin(), right.end());
    return all;
  }
  fs::path convert(const fs::path& from, const std::string& name, const LoadOptions& options = {}) {
    const Status saved = save_native(load_all(from, options), at(name));
    CHECK(saved.has_value(), saved ? "" : saved.error().message());
    return at(name);
  }
  void expect_same_model(const fs::path& native, const fs::path& from, const LoadOptions& options = {}) {
    const LoadedModel a = load_all(native);
    LoadedModel b = load_all(from, options);
    if (!b.quantization.empty()) b.quantization.producer.recipe = options.quantization.scheme + "_rtn";
    EXPECT_EQ(a.model->info().architecture, b.model->info().architecture);
    EXPECT_EQ(a.model->info().parameters, b.model->info().parameters);
    EXPECT_EQ(a.model->info().weight_bytes, b.model->info().weight_bytes);
    EXPECT_EQ(a.model->info().weight_dtype, b.model->info().weight_dtype);
    EXPECT_EQ(a.quantization, b.quantization);
    EXPECT_EQ(to_json(a.report)["layers"], to_json(b.report)["layers"]);
    EXPECT_EQ(a.model->tokenizer().size(), b.model->tokenizer().size());
    EXPECT_EQ(a.model->tokenizer().encode("abc"), b.model->tokenizer().encode("abc"));
    EXPECT_EQ(a.source.origin(), b.source.origin());
    EXPECT_TRUE(scores(a) == scores(b));
  }

  // A copy of a variant, to be damaged.
  fs::path copy(const char* name = "plain_decoder_cmvn_file") {
    fs::remove_all(at("copy"));
    fs::copy(variant(name), at("copy"));
    return at("copy");
  }
  static void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  static void replace(const fs::path& path, const std::string& from, const std::string& to) {
    std::string text = read_text_file(path).value();
    const auto place = text.find(from);
    CHECK(place != text.npos, "the text to replace: " + from);
    write(path, text.replace(place, from.size(), to));
  }
  std::string refusal(const fs::path& path) {
    const auto loaded = load_model(path, {}, context);
    return loaded ? "loaded" : loaded.error().message();
  }
};

class WenetRoundTrip : public WenetLoad, public ::testing::WithParamInterface<const char*> {};

TEST_P(WenetRoundTrip, IsTheSourceAtFullPrecisionAndInInt8) {
  const auto from = variant(GetParam());
  expect_same_model(convert(from, "v1"), from);
  expect_same_model(convert(from, "v2", kInt8), from, kInt8);
  expect_same_files(convert(at("v1"), "by_way_of_v1", kInt8), at("v2"));
  expect_same_files(convert(at("v1"), "v1_again"), at("v1"));
  expect_same_files(convert(at("v2"), "v2_again"), at("v2"));
}

INSTANTIATE_TEST_SUITE_P(WeNet, WenetRoundTrip,
                         ::testing::Values("conv2d6", "conv2d8_even_kernel", "batch_norm_causal", "batch_norm",
                                           "layer_norm_gelu", "wide_kernel_relu", "plain_decoder_cmvn_file",
                                           "old_config"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(WenetLoad, InFourBitsTheRoundTripIsTheSourceLoadedInFourBits) {
  std::string yaml = models::conformer::small_train_yaml();
  for (const auto& [from, to] : {std::pair("\"output_size\": 32", "\"output_size\": 128"),
                                 std::pair("\"linear_units\": 48", "\"linear_units\": 256")}) {
    yaml.replace(yaml.find(from), std::string(from).size(), to);
  }
  for (const char* scheme : {"w4a8_g128", "w4a8_chn"}) {
    SCOPED_TRACE(scheme);
    const LoadOptions options{.quantization = {.scheme = scheme}};
    const LoadedModel online =
        load_checkpoint(models::conformer::random_checkpoint(yaml), options, context).value();
    ASSERT_TRUE(save_native(online, at(scheme)));
    const LoadedModel reloaded = load_all(at(scheme));
    EXPECT_EQ(reloaded.quantization.layers, online.quantization.layers);
    EXPECT_EQ(reloaded.quantization.producer.skipped, online.quantization.producer.skipped);
    EXPECT_EQ(to_json(reloaded.report)["layers"], to_json(online.report)["layers"]);
    EXPECT_TRUE(scores(reloaded) == scores(online));
    expect_same_files(convert(at(scheme), std::string(scheme) + "_again"), at(scheme));
    // The encoder is in 4 bits; the feed-forward layers of the decoder have 48 units.
    EXPECT_EQ(reloaded.quantization.find("encoder.encoders.0.feed_forward.w_1")->scheme, scheme);
    EXPECT_EQ(reloaded.quantization.find("encoder.encoders.1.conv_module.pointwise_conv1")->scheme, scheme);
    EXPECT_EQ(reloaded.quantization.find("decoder.left_decoder.decoders.0.feed_forward.w_1")->scheme, "int8_w8a8");
  }
}

TEST_F(WenetLoad, TheTrainedModelsRoundTripIsTheSource) {
  OASR_REQUIRE_FULL_DATA();
  const auto from = *oasr::testing::full_data() / "models/u2pp_en";
  if (!fs::exists(from)) GTEST_SKIP() << "models/u2pp_en is not in the full test data";
  const auto same = [&](const fs::path& native, const LoadOptions& options) {
    const LoadedModel a = load_all(native), b = load_all(from, options);
    EXPECT_EQ(a.model->info().weight_bytes, b.model->info().weight_bytes);
    EXPECT_EQ(a.model->tokenizer().encode("HELLO WORLD"), b.model->tokenizer().encode("HELLO WORLD"));
    EXPECT_TRUE(scores(a) == scores(b));
  };
  same(convert(from, "v1"), {});
  same(convert(from, "v2", kInt8), kInt8);
  EXPECT_LT(fs::file_size(at("v2") / "model.safetensors"), fs::file_size(from / "final.pt") * 2 / 3);
}

TEST_F(WenetLoad, SaysThatTheUnitTableIsOfAnotherSize) {
  write(copy() / "units.txt", "<blank> 0\n<unk> 1\na 2\n<sos/eos> 3\n");
  EXPECT_THAT(refusal(at("copy")), HasSubstr("the unit table has 4 units, the model gives 20"));
  EXPECT_THAT(refusal(at("copy")), HasSubstr("take the units.txt of the same training"));
}

TEST_F(WenetLoad, SaysThatTheStatisticsAreOfAnotherSize) {
  write(copy() / "global_cmvn", R"({"mean_stat": [1, 2], "var_stat": [1, 5], "frame_num": 1})");
  EXPECT_THAT(refusal(at("copy")), HasSubstr("mean_stat has 2 values for 80 channels"));
  EXPECT_THAT(refusal(at("copy")), HasSubstr(at("copy").string()));
  write(at("copy") / "global_cmvn", "[ 1 2 1\n 1 5 0 ]");
  EXPECT_THAT(refusal(at("copy")), HasSubstr("2 values for 80 channels"));
  fs::remove(at("copy") / "global_cmvn");
  EXPECT_THAT(refusal(at("copy")), HasSubstr("put the global_cmvn file of the training into the folder"));
}

TEST_F(WenetLoad, NamesAMissingTensor) {
  const auto without = [&](const char* name, const char* tensor) {
    Checkpoint checkpoint = open_checkpoint(variant(name)).value();
    CHECK(checkpoint.tensors.tensors.erase(tensor) == 1, tensor);
    const auto loaded = load_checkpoint(std::move(checkpoint), {}, context);
    return loaded ? "loaded" : loaded.error().message();
  };
  for (const char* name : {"old_config", "batch_norm"}) {
    for (const char* tensor : {"ctc.ctc_lo.weight", "encoder.encoders.1.conv_module.depthwise_conv.bias"}) {
      EXPECT_THAT(without(name, tensor), HasSubstr(tensor));
      EXPECT_THAT(without(name, tensor), HasSubstr(variant(name).string()));
    }
  }
  EXPECT_THAT(without("old_config", "ctc.ctc_lo.weight"), HasSubstr("1 missing: ctc.ctc_lo.weight"));
  EXPECT_THAT(without("batch_norm", "encoder.encoders.1.conv_module.norm.running_var"),
              HasSubstr("encoder.encoders.1.conv_module.norm.running_var"));
}

TEST_F(WenetLoad, RefusesAVarianceThatIsNone) {
  Checkpoint checkpoint = open_checkpoint(variant("batch_norm")).value();
  const std::vector<float> values(16, -1.0f);
  checkpoint.tensors.tensors["encoder.encoders.0.conv_module.norm.running_var"] = {
      .format = StorageFormat::f32, .shape = {16}, .bytes = std::as_bytes(std::span(values)), .row_scale = {}};
  const auto loaded = load_checkpoint(std::move(checkpoint), {}, context);
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message(), HasSubstr("encoder.encoders.0.conv_module.norm.running_var is -1"));
}

TEST_F(WenetLoad, NamesAShapeThatIsNotTheConfigurations) {
  replace(copy() / "train.yaml", "linear_units: 48", "linear_units: 40");
  EXPECT_THAT(refusal(at("copy")), HasSubstr("48"));
  EXPECT_THAT(refusal(at("copy")), HasSubstr("40"));
}

}  // namespace
}  // namespace oasr::load

// The gate on a trained model (models/u2pp_en) that was prepared to be hard to quantize: in the input of
// chosen layers one channel is 1024 times as large, its column of the weight is 1024 times as small. Full
// precision keeps its bits; round to nearest spends the codes of these inputs on one channel.
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "load/convert.h"
#include "load/load.h"
#include "oasr/quantize.h"
#include "oasr/recognizer.h"
#include "testing/paths.h"
#include "testing/test_files.h"

namespace oasr {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kTimes = 1024;  // a power of two: nothing is rounded
constexpr std::int64_t kChannel = 7;
constexpr int kBlocks = 12;

struct Input {
  std::string norm;
  std::vector<std::string> products;
};
std::vector<Input> inputs_of(int block) {
  const std::string at = "encoder.encoders." + std::to_string(block) + ".";
  return {
      {at + "norm_ff_macaron", {at + "feed_forward_macaron.w_1"}},
      {at + "norm_mha", {at + "self_attn.linear_q", at + "self_attn.linear_k", at + "self_attn.linear_v"}},
      {at + "norm_conv", {at + "conv_module.pointwise_conv1"}},
      {at + "norm_ff", {at + "feed_forward.w_1"}}};
}

class TrainedModel : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto data = testing::full_data();
    if (!data) GTEST_SKIP() << "the full test data is not there";
    model_ = *data / "models" / "u2pp_en";
    if (!fs::exists(model_)) GTEST_SKIP() << "models/u2pp_en is not in the full test data";
    // Every fourth recording calibrates; of the others some judge.
    std::string calibration, gate;
    const auto rows = read_lines(*data / "data" / "an4" / "manifest.jsonl");
    for (std::size_t i = 0; i < 64; ++i) {
      Json row = parse_json(rows.at(i), "row").value();
      row["audio"] = (*data / "data" / "an4" / row.at("audio").get<std::string>()).string();
      if (i % 4 == 0) calibration += row.dump() + "\n";
      if (i % 4 == 2) gate += row.dump() + "\n";
    }
    options_.calib_manifest = files_.write("calibration.jsonl", calibration);
    options_.gate_manifest = files_.write("gate.jsonl", gate);
    options_.threads = 2;
  }

  // The model with large channels in the inputs of these products.
  std::string prepared(const std::vector<Input>& inputs) {
    Checkpoint checkpoint = open_checkpoint(model_).value();
    for (const Input& input : inputs) {
      scale(checkpoint, input.norm + ".weight", kTimes);
      scale(checkpoint, input.norm + ".bias", kTimes);
      for (const std::string& product : input.products) scale(checkpoint, product + ".weight", 1 / kTimes);
    }
    ThreadPool pool(2);
    const auto loaded =
        load::load_checkpoint(std::move(checkpoint), {}, {.pool = &pool, .isa = detected_isa()}).value();
    load::save_native(loaded, files_.path("model")).value();
    return files_.path("model");
  }

  Result<QuantizeOutcome> quantize(const std::string& model, const std::string& recipe) {
    options_.recipe = recipe;
    return quantize_model(model, files_.path("out"), options_);
  }

  testing::TestFiles files_;
  QuantizeOptions options_;
  fs::path model_;

 private:
  static std::vector<std::string> read_lines(const fs::path& file) {
    std::ifstream in(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  // The channel of a vector [C], or the column of a weight [N, C] or [N, C, 1].
  static void scale(Checkpoint& checkpoint, const std::string& name, float times) {
    StoredTensor& tensor = checkpoint.tensors.tensors.at(name);
    auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(tensor.shape.elements()));
    ASSERT_TRUE(decode_to_float(tensor, *values)) << name;
    const std::int64_t channels = tensor.shape.rank() == 1 ? tensor.shape[0] : tensor.shape[1];
    for (std::size_t at = kChannel; at < values->size(); at += static_cast<std::size_t>(channels)) {
      (*values)[at] *= times;
    }
    tensor = {.format = StorageFormat::f32,
              .shape = tensor.shape,
              .bytes = std::as_bytes(std::span(*values)),
              .row_scale = {}};
    checkpoint.tensors.owners.push_back(values);
  }

};

TEST_F(TrainedModel, TheGateFindsTheOneLayerThatFails) {
  const Input culprit = inputs_of(0)[2];
  const auto outcome = quantize(prepared({culprit}), "int8_w8a8_rtn");
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_TRUE(outcome->gate_passed);
  EXPECT_TRUE(fs::exists(files_.path("out")));
  const Json report = parse_json(outcome->report_json, "report").value();
  const Json& steps = report.at("gate").at("back_off");
  ASSERT_GE(steps.size(), 2u);
  EXPECT_GT(steps.front().at("increase").get<double>(), options_.max_wer_increase);
  EXPECT_THAT(steps.back().at("layers").get<std::vector<std::string>>(),
              ElementsAre(culprit.products.front()));
  for (const Json& layer : report.at("layers")) {
    if (layer.at("kind") == "conv2d" || layer.at("kind") == "conv1d" || layer.at("reason") != "") continue;
    EXPECT_EQ(layer.at("scheme"), "int8_w8a8") << layer.at("path");
  }
}

TEST_F(TrainedModel, TheGateRefusesARecipeThatFailsEverywhereAndSmoothingHealsIt) {
  std::vector<Input> all;
  for (int block = 0; block < kBlocks; ++block) {
    for (Input& input : inputs_of(block)) all.push_back(std::move(input));
  }
  const std::string model = prepared(all);
  options_.gate_attempts = 2;
  const auto refused = quantize(model, "int8_w8a8_rtn");
  ASSERT_TRUE(refused) << refused.error().message();
  EXPECT_FALSE(refused->gate_passed);
  EXPECT_TRUE(refused->path.empty());
  EXPECT_FALSE(fs::exists(files_.path("out")));
  EXPECT_THAT(refused->summary, HasSubstr("Refused"));

  const auto healed = quantize(model, "smoothquant_w8a8");
  ASSERT_TRUE(healed) << healed.error().message();
  EXPECT_TRUE(healed->gate_passed);
  const Json report = parse_json(healed->report_json, "report").value();
  EXPECT_TRUE(report.at("gate").at("back_off").empty()) << healed->summary;
}

TEST_F(TrainedModel, FourBitLayersThatLoseMostStayInInt8) {
  options_.gate_manifest.clear();
  options_.options = {"mixed.limit=1"};
  const auto pure = quantize(model_.string(), "w4a8_g128_rtn");
  ASSERT_TRUE(pure) << pure.error().message();
  options_.force = true;
  options_.options = {"mixed.limit=0.005"};
  const auto outcome = quantize(model_.string(), "w4a8_g128_rtn");
  ASSERT_TRUE(outcome) << outcome.error().message();
  const Json report = parse_json(outcome->report_json, "report").value();
  int four = 0, eight = 0;
  for (const Json& layer : report.at("layers")) {
    const std::string scheme = layer.at("scheme"), reason = layer.at("reason");
    four += scheme == "w4a8_g128";
    if (scheme != "int8_w8a8") continue;
    ++eight;
    EXPECT_THAT(reason, HasSubstr("w4a8_g128 would cost the mean token")) << layer.at("path");
  }
  EXPECT_GT(four, 50);
  EXPECT_GT(eight, 10);
  const Json all_four = parse_json(pure->report_json, "report").value();
  EXPECT_LT(report.at("divergence").get<double>(), all_four.at("divergence").get<double>());
  EngineConfig config;
  config.model = files_.path("out");
  const auto served = Recognizer::load(config);
  ASSERT_TRUE(served) << served.error().message();
}

}  // namespace
}  // namespace oasr

// From recordings to a folder that is served: the 4-bit recipes on Whisper tiny.en, with the gate in force.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/fs.h"
#include "base/json.h"
#include "oasr/quantize.h"
#include "oasr/recognizer.h"
#include "testing/paths.h"
#include "testing/test_files.h"

namespace oasr {
namespace {

namespace fs = std::filesystem;

struct WhisperRecipe : ::testing::Test {
  void SetUp() override {
    const auto data = testing::full_data();
    const auto whisper = testing::real_weights("tiny.en", "hf");
    if (!data || !whisper) GTEST_SKIP() << "no full test data, or no real weights of tiny.en";
    model_ = whisper->string();
    // Of 32 sentences 24 calibrate and 8 judge. Four are too few to calibrate: the gate then refuses the recipe.
    const fs::path folder = *data / "data" / "kathleen_arctic16k";
    std::istringstream rows(read_text_file(folder / "manifest.jsonl").value());
    std::string line, calibration, gate;
    for (int i = 0; i < 32 && std::getline(rows, line); ++i) {
      Json row = parse_json(line, "row").value();
      row["audio"] = (folder / row.at("audio").get<std::string>()).string();
      (i % 4 == 3 ? gate : calibration) += row.dump() + "\n";
    }
    options_.calib_manifest = files_.write("calibration.jsonl", calibration);
    options_.gate_manifest = files_.write("gate.jsonl", gate);
    options_.calib_utterances = 24;
    options_.max_wer_increase = 1.4;  // a word of the 72 that judge
    options_.threads = 2;
  }

  // Passes, is written, and is served with the layers that the report names.
  Json served(const std::string& recipe, const std::string& scheme) {
    options_.recipe = recipe;
    const auto outcome = quantize_model(model_, files_.path("out"), options_);
    if (!outcome) {
      ADD_FAILURE() << outcome.error().message();
      return {};
    }
    EXPECT_TRUE(outcome->gate_passed) << outcome->summary;
    const Json report = parse_json(outcome->report_json, "report").value();
    const auto has_scheme = [&](const Json& layer) { return layer.at("scheme") == scheme; };
    const auto count = std::ranges::count_if(report.at("layers"), has_scheme);
    EXPECT_GE(count, 10) << outcome->summary;
    EXPECT_EQ(report.at("gate").at("limit"), 1.4);
    EXPECT_EQ(report.at("gate").at("modes").at(0).at("groups").at(0).at("utterances"), 8);
    EngineConfig config;
    config.model = files_.path("out");
    const auto recognizer = Recognizer::load(config);
    EXPECT_TRUE(recognizer) << recognizer.error().message();
    if (!recognizer) return {};
    const Json info = parse_json(recognizer->quantization_info(), "information").value();
    EXPECT_EQ(std::ranges::count_if(info.at("layers"), has_scheme), count);
    return report;
  }

  testing::TestFiles files_;
  QuantizeOptions options_;
  std::string model_;
};

TEST_F(WhisperRecipe, InGroupsAndSmoothedPassesItsGateAndIsServed) {
  options_.alpha = "0.5";  // a search would try eleven
  const Json report = served("w4a8_g128_smooth", "w4a8_g128");
  ASSERT_TRUE(report.is_object());
  EXPECT_TRUE(std::ranges::any_of(report.at("layers"),
                                  [](const Json& layer) { return !layer.at("smoothing").is_null(); }));
}

TEST_F(WhisperRecipe, PerChannelPassesItsGateAndIsServed) { served("w4a8_chn_rtn", "w4a8_chn"); }

}  // namespace
}  // namespace oasr

#include "features/cmvn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/fs.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr {
namespace {

constexpr const char* kJson = R"({"mean_stat": [10, -20], "var_stat": [30, 1e3], "frame_num": 10})";
constexpr const char* kKaldi = " [\n  10 -20 10\n  30 1e3 0 ]\n";

TEST(Cmvn, TurnsSumsIntoMeansAndInverseDeviations) {
  for (const auto& cmvn : {cmvn_from_json(kJson, "f", 2), cmvn_from_kaldi(kKaldi, "f", 2)}) {
    ASSERT_TRUE(cmvn) << cmvn.error().message();
    EXPECT_EQ(cmvn->mean, (std::vector<float>{1, -2}));
    EXPECT_EQ(cmvn->istd[0], static_cast<float>(1 / std::sqrt(2.0)));
    EXPECT_EQ(cmvn->istd[1], static_cast<float>(1 / std::sqrt(96.0)));
    std::vector<float> frames = {1, 0, 2, -2};
    cmvn->apply(frames);
    EXPECT_EQ(frames, (std::vector<float>{0, 2 * cmvn->istd[1], cmvn->istd[0], 0}));
  }
}

TEST(Cmvn, BoundsTheVarianceOfAConstantChannel) {
  const auto cmvn = cmvn_from_json(R"({"mean_stat": [10], "var_stat": [10], "frame_num": 10})", "f", 1);
  EXPECT_EQ(cmvn->istd[0], 1e10f);
}

TEST(Cmvn, RefusesByNameWhatIsNotOne) {
  const struct {
    bool json;
    const char* text;
    const char* says;
  } cases[] = {
      {true, R"({"mean_stat": [1], "var_stat": [1, 2], "frame_num": 1})", "mean_stat has 1 values for 2 channels"},
      {true, R"({"mean_stat": [1, 2], "var_stat": [1], "frame_num": 1})", "var_stat has 1 values for 2 channels"},
      {true, R"({"mean_stat": [1, 2], "var_stat": [1, 2], "frame_num": 0})", "number of frames is 0"},
      {true, R"({"mean_stat": [1, 2], "var_stat": [1, 2], "frame_num": -3})", "number of frames is -3"},
      {true, R"({"mean_stat": [1, 2], "var_stat": [1, 2]})", "frame_num"},
      {true, R"({"mean_stat": [1, null], "var_stat": [1, 2], "frame_num": 1})", "mean_stat holds a value that is no number, at 1"},
      {true, R"({"mean_stat": 7, "var_stat": [1, 2], "frame_num": 1})", "mean_stat is not a list"},
      {true, R"({"mean_stat": [1, 1e300], "var_stat": [1, 2], "frame_num": 1})", "channel 1 has a mean or variance"},
      {true, R"([1])", "not a JSON object"},
      {true, "{", "f"},
      {false, "[ 1 2 3\n 4 5 0 ", "not a Kaldi matrix"},
      {false, "", "not a Kaldi matrix"},
      {false, "]", "not a Kaldi matrix"},
      {false, "[ ]", "not two rows"},
      {false, "[ 1 2 3 4 5 6 ]", "not two rows"},
      {false, "[ 1 nan 3 4 5 0 ]", "no finite number, at 1"},
      {false, "[ 1 2x 3 4 5 0 ]", "no finite number, at 1"},
      {false, "[ 1 2 0 4 5 0 ]", "number of frames is 0"},
      {false, "[ 1 3 4 0 ]", "mean_stat has 1 values for 2 channels"},
  };
  for (const auto& test : cases) {
    const auto cmvn = test.json ? cmvn_from_json(test.text, "f", 2) : cmvn_from_kaldi(test.text, "f", 2);
    ASSERT_FALSE(cmvn) << test.text;
    EXPECT_NE(cmvn.error().message().find(test.says), std::string::npos) << test.text << ": " << cmvn.error().message();
    EXPECT_NE(cmvn.error().message().find("f"), std::string::npos);
  }
  const auto binary = cmvn_from_kaldi(std::string_view("\0BFM ", 5), "f", 2);
  EXPECT_NE(binary.error().message().find("binary Kaldi matrix"), std::string::npos);
}

TEST(Cmvn, ReadsTheFilesOfTheReferenceModels) {
  OASR_REQUIRE_FULL_DATA();
  for (const char* folder : {"models/u2pp_en", "goldens/wenet_u2pp"}) {
    const auto text = read_text_file(*testing::full_data() / folder / "global_cmvn").value();
    const auto cmvn = cmvn_from_json(text, folder, 80);
    ASSERT_TRUE(cmvn) << cmvn.error().message();
    for (const float value : cmvn->istd) EXPECT_TRUE(value > 0 && value < 10);
  }
}

}  // namespace
}  // namespace oasr

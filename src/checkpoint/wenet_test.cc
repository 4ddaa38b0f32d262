// WeNet folders: what is read, and what is said of folders that are not whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "testing/paths.h"

namespace oasr {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct WenetFolder : ::testing::Test {
  void SetUp() override {
    OASR_REQUIRE_FULL_DATA();
    const auto golden = *testing::full_data() / "goldens/wenet_u2pp";
    for (const char* name : {"train.yaml", "final.pt", "global_cmvn", "units.txt"}) {
      fs::copy_file(golden / name, folder.path() / name);
    }
  }
  void write(const char* name, const std::string& text) {
    std::ofstream(folder.path() / name, std::ios::binary) << text;
  }
  std::string refusal() {
    const auto checkpoint = open_checkpoint(folder.path());
    return checkpoint ? "accepted" : checkpoint.error().message();
  }
  testing::TemporaryFolder folder;
};

TEST_F(WenetFolder, IsReadByItselfAndByItsFiles) {
  for (const char* name : {"", "train.yaml", "final.pt"}) {
    const auto checkpoint = open_checkpoint(*name ? folder.path() / name : folder.path()).value();
    EXPECT_EQ(checkpoint.container, "wenet");
    EXPECT_TRUE(checkpoint.tensors.tensors.contains("ctc.ctc_lo.weight"));
    EXPECT_TRUE(checkpoint.documents.contains("train.yaml"));
    EXPECT_TRUE(checkpoint.documents.contains("global_cmvn"));
    EXPECT_EQ(checkpoint.tokenizer.kind, "units");
    EXPECT_EQ(checkpoint.files.size(), 4u);
  }
}

TEST_F(WenetFolder, TakesTheOnlyAveragedCheckpoint) {
  fs::rename(folder.path() / "final.pt", folder.path() / "avg_5.pt");
  EXPECT_TRUE(open_checkpoint(folder.path()).has_value());
  fs::copy_file(folder.path() / "avg_5.pt", folder.path() / "avg_10.pt");
  EXPECT_THAT(refusal(), HasSubstr("several averaged checkpoints"));
  EXPECT_TRUE(open_checkpoint(folder.path() / "avg_10.pt").has_value());
}

TEST_F(WenetFolder, SaysWhatIsMissing) {
  fs::remove(folder.path() / "units.txt");
  EXPECT_THAT(refusal(), HasSubstr("has no units.txt"));
  fs::remove(folder.path() / "final.pt");
  write("units.txt", "<blank> 0\n");
  write("final.zip", "PK\3\4");
  EXPECT_THAT(refusal(), HasSubstr("only final.zip, an exported program"));
}

TEST_F(WenetFolder, KeepsATextOfStatisticsAsItIs) {
  write("global_cmvn", "  [\n 1 2 3\n 4 5 6 ]");
  const auto checkpoint = open_checkpoint(folder.path()).value();
  const Json document = parse_json(checkpoint.documents.at("global_cmvn"), "").value();
  EXPECT_EQ(document["text"], "  [\n 1 2 3\n 4 5 6 ]");
}

TEST_F(WenetFolder, RefusesABrokenConfiguration) {
  write("train.yaml", "encoder_conf: [1\n");
  EXPECT_THAT(refusal(), HasSubstr("is not YAML"));
  write("train.yaml", "- encoder_conf\n");
  EXPECT_THAT(refusal(), HasSubstr("is not a mapping"));
}

}  // namespace
}  // namespace oasr

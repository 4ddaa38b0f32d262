// WeNet folders: what is read, and what is said of folders that are not whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/test_files.h"
#include "testing/paths.h"

namespace oasr {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct WenetFolder : ::testing::Test {
  void SetUp() override {
    const auto golden = testing::test_data("wenet/old_config");
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

TEST_F(WenetFolder, MayBeGivenWithATrailingSlash) {
  for (const char* end : {"/", "//", "/."}) {
    const auto checkpoint = open_checkpoint(folder.path().string() + end);
    ASSERT_TRUE(checkpoint) << end << ": " << checkpoint.error().message();
    EXPECT_EQ(checkpoint->container, "wenet");
    EXPECT_EQ(checkpoint->files.size(), 4u);
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

// A final.pt with one tensor of each of these names, below the keys `outer` one in the other.
std::string torch_file_of(const std::vector<std::string>& names, const std::vector<std::string>& outer = {}) {
  namespace p = testing::pickle;
  const std::string tensor = p::tensor(p::storage("FloatStorage", "0", 1), 0, {1}, {1});
  std::string items;
  for (const auto& name : names) items += p::text(name) + tensor;
  std::string whole = p::ordered_dict(items);
  for (const auto& key : outer) whole = p::dict(p::text(key) + whole + p::text("optimizer") + p::dict(""));
  return testing::torch_file(p::whole(whole), {{"0", testing::le(1.0f)}});
}

TEST_F(WenetFolder, NamesTheToolkitOfAnotherCheckpoint) {
  struct Other {
    std::vector<std::string> names, outer;
    const char* what;
  };
  const Other others[] = {
      {{"encoder_embed.conv.0.weight", "joiner.output_linear.weight"}, {"model"}, "an icefall checkpoint"},
      {{"something.weight"}, {"model"}, "a training checkpoint (it begins with: model, optimizer)"},
      {{"encoder.encoders0.0.self_attn.linear_q_k_v.weight", "ctc.ctc_lo.weight"}, {}, "a FunASR checkpoint"},
      {{"encoder.encoders0.0.self_attn.linear_q_k_v.weight"}, {"state_dict"}, "a FunASR checkpoint"},
      {{"frontend.logmel.melmat", "encoder.encoders.0.norm_ff.weight"}, {}, "an ESPnet checkpoint"},
      {{"decoder.blocks.0.attn.query.weight"}, {"model_state_dict"}, "an OpenAI Whisper checkpoint"},
      {{"anything"}, {}, "an unknown kind of checkpoint (it begins with: anything)"},
      {{}, {}, "an unknown kind of checkpoint"},
  };
  for (const Other& other : others) {
    write("final.pt", torch_file_of(other.names, other.outer));
    EXPECT_THAT(refusal(), HasSubstr(std::string("is a PyTorch file of ") + other.what));
    EXPECT_THAT(refusal(), HasSubstr("final.pt"));
    EXPECT_THAT(refusal(), HasSubstr("give the final.pt or avg_*.pt that WeNet's training wrote"));
  }
}

TEST_F(WenetFolder, TakesAStateDictThatIsNested) {
  write("final.pt", torch_file_of({"encoder.encoders.0.norm_ff.weight"}, {"model"}));
  const auto checkpoint = open_checkpoint(folder.path()).value();
  EXPECT_TRUE(checkpoint.tensors.tensors.contains("encoder.encoders.0.norm_ff.weight"));
}

TEST_F(WenetFolder, SaysThatItsConfigurationHasNoEncoder) {
  write("train.yaml", "encoder: conformer\noutput_dim: 20\n");
  EXPECT_THAT(refusal(), HasSubstr("has no encoder_conf"));
  EXPECT_THAT(refusal(), HasSubstr("train.yaml"));
  write("train.yaml", "encoder_conf: 5\n");
  EXPECT_THAT(refusal(), HasSubstr("has an encoder_conf that is not a mapping"));
}

TEST_F(WenetFolder, LeavesAFileBesideAnothersConfigurationToOthers) {
  write("train.yaml", "learning_rate: 1\n");
  const auto other = open_checkpoint(folder.path() / "final.pt");  // read as OpenAI's
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("a WeNet checkpoint"));
}

TEST_F(WenetFolder, RefusesUnitsWithZeroBytesAndAnEmptyPieceModel) {
  write("bpe.model", "");
  EXPECT_THAT(refusal(), HasSubstr("bpe.model: is empty"));
  write("units.txt", std::string("<blank> 0\nA\0B 1\n", 16));
  EXPECT_THAT(refusal(), HasSubstr("zero bytes"));
}

TEST_F(WenetFolder, RefusesABrokenConfiguration) {
  write("train.yaml", "encoder_conf: [1\n");
  EXPECT_THAT(refusal(), HasSubstr("is not YAML"));
  write("train.yaml", "- encoder_conf\n");
  EXPECT_THAT(refusal(), HasSubstr("is not a mapping"));
}

}  // namespace
}  // namespace oasr

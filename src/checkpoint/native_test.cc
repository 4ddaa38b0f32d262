// Native checkpoints: the round trip, its samples, and writing that fails.
#include "checkpoint/native.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "checkpoint/containers.h"
#include "checkpoint/native_testing.h"
#include "testing/paths.h"

namespace oasr {
namespace {

using ::testing::HasSubstr;

class Native : public NativeFolder {
 protected:
  Native() { model_ = folder_.path() / "model"; }
  testing::TemporaryFolder folder_;
};

TEST_F(Native, ComesBackExactly) {
  for (const int version : {1, 2}) {
    const auto content = sample(version);
    fs::remove_all(model_);
    ASSERT_TRUE(write_native(model_, content));
    for (const auto& path :
         {model_, model_ / "", model_ / "oasr_config.json", model_ / "model.safetensors"}) {
      const auto checkpoint = open_checkpoint(path);
      ASSERT_TRUE(checkpoint) << checkpoint.error().message();
      expect_same(*checkpoint, content);
      EXPECT_EQ(checkpoint->path, path);
      EXPECT_EQ(checkpoint->files.size(), files_of(model_).size());
      EXPECT_EQ(checkpoint->tensors.mapped.size(), 1u);
    }
  }
}

TEST_F(Native, KeepsEveryKindOfTokenizerExactly) {
  const std::string odd("\0\n\r\xFF\\ \xC3\xA4", 8);
  const std::vector<TokenizerSource> sources = {
      {},
      {.kind = "tokenizer_json", .tokenizer_json = "{}\r\n", .origin = "tokenizer.json"},
      {.kind = "tokenizer_json", .tokenizer_json = odd, .added_tokens_json = "x"},
      {.kind = "vocab_merges", .vocab_json = odd, .merges_txt = "a b"},
      {.kind = "vocab_merges", .vocab_json = "{}", .merges_txt = odd, .added_tokens_json = odd},
      {.kind = "ranks", .tokens = {"", odd, "a", ""}, .pattern = "\\s\n\"", .origin = "\xC3\xA4"},
      {.kind = "vocabulary", .tokens = {"\xC4\xA0the", "<|en|>"}, .origin = "vocabulary.txt"},
  };
  for (const auto& source : sources) {
    auto content = sample(1);
    content.tokenizer = source;
    fs::remove_all(model_);
    ASSERT_TRUE(write_native(model_, content)) << source.kind;
    expect_same(open_checkpoint(model_).value().tokenizer, source);
  }
}

TEST_F(Native, MayBeCalledLikeOneOfItsFiles) {
  ASSERT_TRUE(write_native(folder_.path() / "model.safetensors", sample(1)));
  EXPECT_TRUE(open_checkpoint(folder_.path() / "model.safetensors"));
}

TEST_F(Native, KeepsContentWithoutAnything) {
  NativeContent content;
  content.architecture = "none";
  content.source_container = "native";
  ASSERT_TRUE(write_native(model_, content));
  expect_same(open_checkpoint(model_).value(), content);
}

TEST_F(Native, GivesTheSameBytesForTheSameContent) {
  for (const int version : {1, 2}) {
    auto content = sample(version);
    fs::remove_all(model_);
    ASSERT_TRUE(write_native(model_, content));
    const auto first = files_of(model_);
    std::reverse(content.tensors.begin(), content.tensors.end());
    fs::remove_all(model_);
    ASSERT_TRUE(write_native(model_, content));
    EXPECT_EQ(files_of(model_), first);
  }
}

// The samples hold the format still: what was written once is read forever, and the writer does not
// drift. DISABLED_WritesTheSamples makes the sample of a new version.
TEST_F(Native, ReadsTheSampleOfEachVersionAndStillWritesIt) {
  for (const int version : {1, 2}) {
    const auto path = testing::test_data("native/v" + std::to_string(version));
    const auto checkpoint = open_checkpoint(path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    expect_same(*checkpoint, sample(version));
    fs::remove_all(model_);
    ASSERT_TRUE(write_native(model_, sample(version)));
    EXPECT_EQ(files_of(model_), files_of(path));
  }
}

TEST_F(Native, AnotherQuantizationInPlaceIsWhatWritingItAnewGives) {
  NativeContent content = sample(2);
  const std::string other = R"({"schemes": ["int8_w8a8"], "layers": {}, "options": {"gate.verdict": "Passed"}})";
  ASSERT_TRUE(write_native(model_, content));
  ASSERT_TRUE(rewrite_quantization(model_, other));
  const auto rewritten = files_of(model_);
  fs::remove_all(model_);
  content.quantization = other;
  ASSERT_TRUE(write_native(model_, content));
  EXPECT_EQ(rewritten, files_of(model_));
  EXPECT_FALSE(rewrite_quantization(model_, "{"));
  fs::remove_all(model_);
  ASSERT_TRUE(write_native(model_, sample(1)));
  EXPECT_FALSE(rewrite_quantization(model_, other));
}

TEST(NativeSamples, DISABLED_WritesTheSamples) {
  for (const int version : {1, 2}) {
    const auto path =
        testing::project_dir() / "tests/data/native" / ("v" + std::to_string(version));
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(write_native(path, sample(version)));
  }
}

TEST_F(Native, IsFoundByItsConfigurationBeforeOtherContainers) {
  ASSERT_TRUE(write_native(model_, sample(1)));
  EXPECT_EQ(detect_native(model_), kByContent);
  put("config.json", R"({"model_type":"whisper"})");
  EXPECT_EQ(open_checkpoint(model_).value().container, "native");
  // Another program's oasr_config.json takes nothing from a Hugging Face folder.
  put("oasr_config.json", R"({"format":"other"})");
  EXPECT_EQ(detect_native(model_), kByConfig);
  EXPECT_EQ(open_checkpoint(model_).value().container, "huggingface");
  fs::remove(model_ / "oasr_config.json");
  EXPECT_EQ(detect_native(model_), kNotThis);
  EXPECT_EQ(open_checkpoint(model_).value().container, "huggingface");
}

TEST_F(Native, SaysThatItsConfigurationIsBroken) {
  ASSERT_TRUE(write_native(model_, sample(1)));
  put("oasr_config.json", "{");
  EXPECT_THAT(refusal(), HasSubstr("oasr_config.json: is not valid JSON"));
  put("oasr_config.json", R"({"format":"x"})");
  EXPECT_THAT(refusal(), HasSubstr("oasr_config.json: does not say \"format\": \"oasr\""));
  fs::remove(model_ / "model.safetensors");
  fs::remove(model_ / "oasr_config.json");
  ASSERT_EQ(::mkfifo((model_ / "oasr_config.json").c_str(), 0600), 0);
  EXPECT_EQ(describe_path(model_), "a folder with a broken oasr_config.json");
  EXPECT_THAT(refusal(), HasSubstr("is a folder with a broken oasr_config.json"));
}

TEST_F(Native, IsNotWrittenOverAnything) {
  fs::create_directory(model_);
  ASSERT_TRUE(write_native(model_, sample(1)));  // an empty folder is taken
  const auto again = write_native(model_, sample(2));
  EXPECT_EQ(again.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(again.error().message(), HasSubstr("model: exists and is not an empty folder"));
  expect_same(open_checkpoint(model_).value(), sample(1));
}

// Limits the size of files, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(Native, LeavesNothingWhenTheDiskIsFull) {
  for (const rlim_t bytes : {0, 100, 500, 900}) {
    Status written;
    {
      const FileSizeLimit limit(bytes);
      written = write_native(model_, sample(2));
    }
    ASSERT_FALSE(written) << bytes;
    EXPECT_EQ(written.error().code, ErrorCode::io);
    EXPECT_EQ(written.error().where, model_.string());
    EXPECT_TRUE(fs::is_empty(folder_.path()));
  }
}

TEST_F(Native, SaysThatAFolderCanNotBeWritten) {
  ASSERT_TRUE(write_text_file(folder_.path() / "file", ""));
  EXPECT_EQ(write_native(folder_.path() / "file" / "model", sample(1)).error().code, ErrorCode::io);
  if (::geteuid() == 0) return;  // nothing is forbidden
  fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(write_native(model_, sample(1)).error().code, ErrorCode::io);
  fs::permissions(folder_.path(), fs::perms::owner_all);
  EXPECT_FALSE(fs::exists(model_));
}

TEST_F(Native, RefusesItsTextsBeforeATensorIsMade) {
  auto content = sample(1);
  content.documents["x"] = "1";
  content.tensors[0].row = [](std::int64_t, std::span<std::byte>) { FAIL(); };
  EXPECT_THAT(write_native(model_, content).error().message(),
              HasSubstr("model: the document \"x\" is no JSON object"));
}

TEST_F(Native, LeavesNothingWhenItIsStoppedOrCanNotBeKept) {
  const auto code = [&](auto change, const WriteProgress& progress = {}) {
    auto content = sample(2);
    change(content);
    const auto written = write_native(model_, content, progress);
    EXPECT_TRUE(fs::is_empty(folder_.path()));
    return written ? std::nullopt : std::optional(written.error().code);
  };
  EXPECT_EQ(code([](auto&) {}, [](std::uint64_t, std::uint64_t) { return false; }),
            ErrorCode::cancelled);
  EXPECT_EQ(code([](auto& c) { c.tensors.push_back(c.tensors[0]); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.tensors[0].format = StorageFormat::ct2_int8; }),
            ErrorCode::unsupported);
  EXPECT_EQ(code([](auto& c) { c.quantization = "{"; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.documents["x"] = "1"; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([](auto& c) { c.tokenizer.vocab_json.resize((std::size_t{64} << 20) + 1); }),
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace oasr

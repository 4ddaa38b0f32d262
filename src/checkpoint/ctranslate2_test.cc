#include "checkpoint/ctranslate2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>

#include "base/json.h"
#include "checkpoint/containers.h"
#include "checkpoint/test_files.h"
#include "testing/paths.h"

namespace oasr {
namespace {

using testing::as_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::le;
namespace c = testing::ct2;

Result<Ct2Model> read(const std::string& file) {
  return read_ct2_model({"model.bin", as_bytes(file), nullptr});
}

std::string refusal(const std::string& file) {
  const auto model = read(file);
  return model ? "" : model.error().message();
}

std::vector<float> values(const StoredTensor& tensor) {
  std::vector<float> out(static_cast<std::size_t>(tensor.shape.elements()));
  EXPECT_TRUE(decode_to_float(tensor, out));
  return out;
}

const std::string kCodes = {'\x7F', '\x81', 0, 1, 2, 3};
const std::string kScales = le(2.0f) + le(0.5f);
const std::string kInt8 = c::variable("w/weight", {2, 3}, c::i8, kCodes);
const std::string kInt8Scale = c::variable("w/weight_scale", {2}, c::f32, kScales);

TEST(CTranslate2, ReadsVariablesScalarsAndAliases) {
  const auto file = c::model({c::variable("a", {2}, c::f32, le(1.5f) + le(-2.0f)),
                              c::variable("encoder/num_heads", {}, c::i16, le<std::int16_t>(8)),
                              c::variable("h", {1}, c::f16, le<std::uint16_t>(0x3C00)),
                              c::variable("b", {1}, c::bf16, le<std::uint16_t>(0x3F80))},
                             {{"tied", "a"}});
  const auto model = read(file);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT(values(*model->tensors.find("a")), ElementsAre(1.5f, -2.0f));
  EXPECT_EQ(model->tensors.find("tied")->bytes.data(), model->tensors.find("a")->bytes.data());
  EXPECT_THAT(values(*model->tensors.find("h")), ElementsAre(1.0f));
  EXPECT_THAT(values(*model->tensors.find("b")), ElementsAre(1.0f));
  EXPECT_EQ(model->scalars.at("encoder/num_heads"), 8);
  EXPECT_FALSE(model->tensors.find("encoder/num_heads"));
}

TEST(CTranslate2, JoinsInt8MatricesWithTheirScales) {
  // CTranslate2 itself writes no alias for the scale of an aliased matrix; either is read.
  for (const bool scale_too : {false, true}) {
    std::vector<std::pair<std::string, std::string>> aliases = {{"tied/weight", "w/weight"}};
    if (scale_too) aliases.emplace_back("tied/weight_scale", "w/weight_scale");
    const auto file = c::model({kInt8, kInt8Scale}, aliases);
    const auto model = read(file);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->tensors.tensors.size(), 2u);
    const auto w = *model->tensors.find("tied/weight");
    EXPECT_EQ(w.format, StorageFormat::ct2_int8);
    EXPECT_THAT(values(w), ElementsAre(63.5f, -63.5f, 0.0f, 2.0f, 4.0f, 6.0f));
  }
}

TEST(CTranslate2, ScalesConvolutionsByTheirFirstAxis) {
  const auto file = c::model({c::variable("w/weight", {2, 3, 1}, c::i8, kCodes), kInt8Scale});
  const auto model = read(file);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT(values(*model->tensors.find("w/weight")),
              ElementsAre(63.5f, -63.5f, 0.0f, 2.0f, 4.0f, 6.0f));
}

TEST(CTranslate2, RefusesScalesThatDoNotFit) {
  const auto scale = [](std::initializer_list<std::uint32_t> shape, std::uint8_t type,
                        const std::string& data) {
    return refusal(c::model({kInt8, c::variable("w/weight_scale", shape, type, data)}));
  };
  EXPECT_THAT(refusal(c::model({kInt8})), HasSubstr("'w/weight' has no scale"));
  EXPECT_THAT(scale({3}, c::f32, kScales + kScales.substr(0, 4)),
              HasSubstr("not one float32 for each row"));
  EXPECT_THAT(scale({2}, c::f16, "abcd"), HasSubstr("not one float32"));
  EXPECT_THAT(scale({2}, c::f32, le(0.0f) + le(1.0f)), HasSubstr("not a positive number"));
  EXPECT_THAT(scale({2}, c::f32, le(1.0f) + le(NAN)), HasSubstr("not a positive number"));
  EXPECT_THAT(refusal(c::model({c::variable("w", {1}, c::i16, "ab")})),
              HasSubstr("quantized in a way"));
}

TEST(CTranslate2, RefusesOtherVersionsAndModelsByName) {
  EXPECT_THAT(refusal(c::model({}, {}, 5)), HasSubstr("binary version 5; version 6 is read"));
  EXPECT_THAT(refusal(c::model({}, {}, 6, "TransformerSpec", 7)),
              HasSubstr("specification TransformerSpec revision 7"));
  EXPECT_THAT(refusal(c::model({}, {}, 6, "WhisperSpec", 2)), HasSubstr("revision 2"));
  EXPECT_THAT(refusal(c::model({c::variable("w", {1}, 9, "a")})), HasSubstr("unknown data type 9"));
}

TEST(CTranslate2, RefusesSizesThatDoNotMatch) {
  EXPECT_THAT(refusal(c::model({c::variable("w", {3}, c::f32, "12345678")})),
              HasSubstr("not what its shape needs"));
  EXPECT_THAT(
      refusal(c::model({c::variable("w", {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, c::f32, "1234")})),
      HasSubstr("not what its shape needs"));
  EXPECT_THAT(refusal(c::model({c::variable("w", {1, 1, 1, 1, 1, 1, 1, 1, 1}, c::i32, "1234")})),
              HasSubstr("9 axes"));
  EXPECT_THAT(refusal(c::model({}) + "x"), HasSubstr("1 bytes left over"));
}

TEST(CTranslate2, RefusesDuplicateNamesAndAliasesOfNothing) {
  const auto w = c::variable("w", {1}, c::f32, "1234");
  EXPECT_THAT(refusal(c::model({w, w})), HasSubstr("'w' appears twice"));
  EXPECT_THAT(refusal(c::model({w}, {{"w", "w"}})), HasSubstr("'w' appears twice"));
  EXPECT_THAT(refusal(c::model({w}, {{"a", "b"}})), HasSubstr("alias of nothing"));
  EXPECT_THAT(refusal(c::model({c::variable("", {1}, c::f32, "1234")})),
              HasSubstr("name that is empty"));
}

TEST(CTranslate2, RefusesEveryTruncationAndSurvivesEveryMutation) {
  const auto file = c::model({kInt8, kInt8Scale, c::variable("n", {}, c::i8, "1")},
                             {{"b", "w/weight"}, {"b_scale", "w/weight_scale"}});
  ASSERT_EQ(refusal(file), "");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(refusal(file.substr(0, size)), "") << size;
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      auto changed = file;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      (void)refusal(changed);
    }
  }
}

class CTranslate2Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto zeros = [](std::size_t count) { return std::string(count * 4, '\0'); };
    put("model.bin",
        c::model({c::variable("encoder/conv1/weight", {4, 80, 3}, c::f32, zeros(960)),
                  c::variable("encoder/position_encodings/encodings", {10, 4}, c::f32, zeros(40)),
                  c::variable("decoder/embeddings/weight", {7, 6}, c::f32, zeros(42)),
                  c::variable("decoder/position_encodings/encodings", {5, 6}, c::f32, zeros(30)),
                  c::variable("encoder/layer_0/ffn/linear_0/weight", {1, 1}, c::f32, zeros(1)),
                  c::variable("encoder/layer_1/ffn/linear_0/weight", {1, 1}, c::f32, zeros(1)),
                  c::variable("decoder/layer_0/ffn/linear_0/weight", {1, 1}, c::i8, "\1"),
                  c::variable("decoder/layer_0/ffn/linear_0/weight_scale", {1}, c::f32, le(1.0f)),
                  c::variable("encoder/num_heads", {}, c::i16, le<std::int16_t>(2)),
                  c::variable("decoder/num_heads", {}, c::i16, le<std::int16_t>(3))}));
    put("config.json", R"({"suppress_ids":[1]})");
  }
  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_text_file(folder_.path() / name, text));
  }
  testing::TemporaryFolder folder_;
};

TEST_F(CTranslate2Folder, GivesDimsScalarsAndANote) {
  put("vocabulary.txt", "a\nb\r\n\xC4\x8A\n");
  const auto checkpoint = open_checkpoint(folder_.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->container, "ctranslate2");
  EXPECT_EQ(
      checkpoint->documents.at("dims"),
      R"({"n_mels":80,"n_vocab":7,"n_audio_ctx":10,"n_audio_state":4,"n_audio_head":2,"n_audio_layer":2,)"
      R"("n_text_ctx":5,"n_text_state":6,"n_text_head":3,"n_text_layer":1})");
  EXPECT_EQ(checkpoint->documents.at("scalars"),
            R"({"decoder/num_heads":3,"encoder/num_heads":2})");
  EXPECT_THAT(checkpoint->notes, ElementsAre(HasSubstr("int8 with a scale a row")));
  EXPECT_EQ(checkpoint->tokenizer.kind, "vocabulary");
  EXPECT_THAT(checkpoint->tokenizer.tokens, ElementsAre("a", "b\r", "\xC4\x8A"));
}

TEST_F(CTranslate2Folder, TakesTheTokenizerThatIsThere) {
  EXPECT_EQ(open_checkpoint(folder_.path() / "model.bin")->tokenizer.kind, "none");
  put("vocabulary.json", R"(["a","\u0120b"])");
  EXPECT_THAT(open_checkpoint(folder_.path())->tokenizer.tokens, ElementsAre("a",
                                                                             "\xC4\xA0"
                                                                             "b"));
  put("tokenizer.json", "{}");
  EXPECT_EQ(open_checkpoint(folder_.path())->tokenizer.kind, "tokenizer_json");
  put("config.json", "[1]");
  EXPECT_THAT(open_checkpoint(folder_.path()).error().message(), HasSubstr("not a JSON object"));
}

TEST_F(CTranslate2Folder, RefusesAPipeForAFile) {
  for (const std::string name :
       {"vocabulary.txt", "vocabulary.json", "tokenizer.json", "config.json"}) {
    fs::remove(folder_.path() / name);
    ASSERT_EQ(::mkfifo((folder_.path() / name).c_str(), 0600), 0);
    EXPECT_THAT(open_checkpoint(folder_.path()).error().message(),
                HasSubstr(name + ": is not a regular file but a named pipe"));
    fs::remove(folder_.path() / name);
  }
}

}  // namespace
}  // namespace oasr

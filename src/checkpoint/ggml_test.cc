#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "checkpoint/containers.h"
#include "checkpoint/test_files.h"

namespace oasr {
namespace {

using testing::as_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::le;
namespace g = testing::ggml;

Result<Checkpoint> read(const std::string& file) {
  return read_ggml(FileBytes{"x.bin", as_bytes(file), nullptr});
}

std::string refusal(const std::string& file) {
  const auto checkpoint = read(file);
  return checkpoint ? "" : checkpoint.error().message();
}

const std::string kData = le(1.0f) + le(2.0f) + le(3.0f) + le(4.0f) + le(5.0f) + le(6.0f);

TEST(Ggml, ReadsHyperParametersVocabularyAndTensors) {
  const auto checkpoint =
      read(g::head() + g::tensor("w", {3, 2}, 0, kData) + g::tensor("b", {1, 2}, 1, "abcd"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->tensors.find("w")->shape, (Shape{2, 3}));
  EXPECT_EQ(checkpoint->tensors.find("b")->shape, (Shape{2, 1}));
  EXPECT_EQ(checkpoint->tensors.find("b")->format, StorageFormat::f16);
  EXPECT_EQ((*parse_json(checkpoint->documents.at("dims"), "dims"))["n_vocab"], 4);
  EXPECT_EQ((*parse_json(checkpoint->documents.at("hparams"), "hparams"))["ftype"], 1);
  EXPECT_THAT(checkpoint->tokenizer.tokens, ElementsAre("a", "bc"));
  EXPECT_EQ(checkpoint->tokenizer.kind, "ranks");
  EXPECT_THAT(checkpoint->notes, ElementsAre());
}

TEST(Ggml, LeavesTheEndOfTextTokenOutOfTheRanks) {
  const auto checkpoint = read(g::head({.tokens = {"a", "<|endoftext|>"}}));
  EXPECT_THAT(checkpoint->tokenizer.tokens, ElementsAre("a"));
}

TEST(Ggml, NotesThatBlocksAreDequantized) {
  const auto checkpoint =
      read(g::head({.ftype = 2008}) + g::tensor("w", {32}, 6, std::string(22, '\1')));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->tensors.find("w")->format, StorageFormat::q5_0);
  EXPECT_THAT(checkpoint->notes, ElementsAre(HasSubstr("stored as q5_0")));
}

TEST(Ggml, RefusesOtherBlockLayoutsAndTypesByName) {
  EXPECT_THAT(refusal(g::head({.ftype = 1002}) + g::tensor("w", {32}, 2, std::string(18, '\1'))),
              HasSubstr("layout of version 1"));
  EXPECT_THAT(refusal(g::head({.ftype = 2}) + g::tensor("w", {32}, 2, std::string(18, '\1'))),
              HasSubstr("layout of version 0"));
  EXPECT_THAT(refusal(g::head() + g::tensor("w", {256}, 12, std::string(144, '\1'))),
              HasSubstr("stored as q4_k"));
  EXPECT_THAT(refusal(g::head() + g::tensor("w", {1}, 77, "1234")), HasSubstr("unknown type 77"));
}

TEST(Ggml, RefusesAbsurdDimensions) {
  EXPECT_THAT(refusal(g::head({.n_vocab = -1})), HasSubstr("n_vocab is -1"));
  EXPECT_THAT(refusal(g::head({.n_vocab = INT32_MAX})), HasSubstr("n_vocab is 2147483647"));
  EXPECT_THAT(refusal(g::head({.n_vocab = 1})), HasSubstr("number of tokens is 2"));
  EXPECT_THAT(refusal(g::head({.n_mels = 80})), HasSubstr("2 mel filters, but n_mels is 80"));
  const auto tensor = [](std::initializer_list<std::int32_t> extents, std::int32_t type = 0) {
    return refusal(g::head({.ftype = 2002}) + g::tensor("w", extents, type, kData));
  };
  EXPECT_EQ(tensor({6}), "");
  EXPECT_THAT(tensor({0}), HasSubstr("extent of a tensor is 0"));
  EXPECT_THAT(tensor({-6}), HasSubstr("extent of a tensor is -6"));
  EXPECT_THAT(tensor({INT32_MAX}), HasSubstr("ends inside the tensor 'w' [2147483647]"));
  EXPECT_THAT(tensor({INT32_MAX, INT32_MAX, INT32_MAX}), HasSubstr("too large"));
  EXPECT_THAT(tensor({1, 1, 1, 1, 6}), HasSubstr("number of axes is 5"));
  EXPECT_THAT(tensor({}), HasSubstr("number of axes is 0"));
  EXPECT_THAT(tensor({31}, 2), HasSubstr("multiple of 32"));
  auto header = g::head();
  header.replace(12 * 4 + 4, 4, le<std::int32_t>(INT32_MAX));
  EXPECT_THAT(refusal(header), HasSubstr("width of the mel filters"));
  auto token = g::head();
  token.replace(token.size() - 6, 4, le<std::int32_t>(INT32_MAX));
  EXPECT_THAT(refusal(token), HasSubstr("length of a token"));
}

TEST(Ggml, RefusesDuplicateAndOddNames) {
  const auto w = g::tensor("w", {1}, 0, "1234");
  EXPECT_THAT(refusal(g::head() + w + w), HasSubstr("'w' appears twice"));
  EXPECT_THAT(refusal(g::head() + g::tensor("", {1}, 0, "1234")),
              HasSubstr("length of a tensor's name is 0"));
  EXPECT_THAT(refusal(g::head() + g::tensor("a\n", {1}, 0, "1234")),
              HasSubstr("control characters"));
}

TEST(Ggml, RefusesEveryTruncationButThatBetweenTensors) {
  const auto head = g::head();
  const auto file = head + g::tensor("w", {3, 2}, 0, kData);
  for (std::size_t size = 0; size < file.size(); ++size) {
    // A file may end after any tensor: that the model is whole is known by the names (strict load).
    EXPECT_EQ(refusal(file.substr(0, size)).empty(), size == head.size()) << size;
  }
}

TEST(Ggml, SurvivesEveryByteMutation) {
  const auto file = g::head({.ftype = 2008}) + g::tensor("w", {32}, 6, std::string(22, '\1'));
  for (std::size_t at = 0; at < file.size(); ++at) {
    if (at > 60 && at < 60 + 2 * 201 * 4) continue;  // filter values
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      auto changed = file;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      (void)refusal(changed);
    }
  }
}

}  // namespace
}  // namespace oasr

#include <gtest/gtest.h>

#include "base/fs.h"
#include "base/json.h"
#include "testing/paths.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace oasr {
namespace {

using Ids = std::vector<TokenId>;

TokenizerSource table(std::string text, std::string model = {}) {
  return {.kind = "units",
          .origin = "units.txt",
          .units_txt = std::move(text),
          .sentencepiece_model = std::move(model)};
}

std::shared_ptr<const Tokenizer> tokenizer_of(const TokenizerSource& source) {
  auto made = make_tokenizer(source);
  EXPECT_TRUE(made) << made.error().message();
  return made ? *made : nullptr;
}

// The seed's model: <unk>, <s>, </s>, ▁, a, b, ab, ▁ab.
std::string tiny_model() {
  return read_text_file(testing::project_dir() / "tests/fuzz/seeds/units/bpe.bin")->substr(1);
}

TEST(Units, DecodeWithSpacesForTheirMarkAndWithoutSpecialTokens) {
  const auto units =
      tokenizer_of(table("<blank> 0\n<unk> 1\n<sos/eos> 2\n▁HE 3\nLLO 4\n▁ 5\nA 6\n▁▁B 7\n"));
  EXPECT_EQ(units->decode(Ids{2, 3, 4, 0, 5, 6, 1, 7, 2, 99, -1}), " HELLO A  B");
  EXPECT_EQ(units->token_bytes(3), " HE");
  EXPECT_EQ(units->token_bytes(2), "<sos/eos>");
  EXPECT_EQ(units->id_of(" HE"), 3);
  EXPECT_EQ(units->id_of("<blank>"), 0);
  EXPECT_FALSE(units->id_of("HE"));
  EXPECT_TRUE(units->is_special(0) && units->is_special(1) && units->is_special(2));
  EXPECT_FALSE(units->is_special(3));
  EXPECT_EQ(units->size(), 8);
  EXPECT_EQ(units->special_tokens().size(), 3u);
}

TEST(Units, JoinIdeographsWithoutSpaces) {
  const auto units = tokenizer_of(table("<blank> 0\n<unk> 1\n你 2\n好 3\n<sos/eos> 4\n"));
  EXPECT_EQ(units->decode(Ids{2, 3}), "你好");
}

TEST(Units, DecodeByteUnitsToTheirBytes) {
  const auto units = tokenizer_of(table("<blank> 0\n<0xE4> 1\n<0xBD> 2\n<0xA0> 3\n"));
  EXPECT_EQ(units->decode(Ids{1, 2, 3}), "你");
}

TEST(Units, IdsThatTheTableLeavesOutSpellNothing) {
  const auto units = tokenizer_of(table("<blank> 0\na 5\n"));
  EXPECT_EQ(units->size(), 6);
  EXPECT_EQ(units->decode(Ids{1, 2, 5}), "a");
  EXPECT_FALSE(units->id_of(""));
}

TEST(Units, ATableOfCharactersEncodesCharacterByCharacter) {
  const auto units = tokenizer_of(table("<blank> 0\n<unk> 1\nH 2\nI 3\n▁ 4\n你 5\n<sos/eos> 6\n"));
  EXPECT_TRUE(units->can_encode());
  EXPECT_EQ(units->encode(" hi  HI 你x"), (Ids{2, 3, 4, 4, 2, 3, 4, 5, 1}));
  const auto named = tokenizer_of(table("<blank> 0\na 1\n<space> 2\n"));
  EXPECT_EQ(named->encode("a a"), (Ids{1, 2, 1}));
  EXPECT_EQ(named->decode(Ids{1, 2, 1}), "a a");
  const auto without_spaces = tokenizer_of(table("你 0\n好 1\n"));
  EXPECT_EQ(without_spaces->encode("你 好吗"), (Ids{0, 1, -1}));
}

TEST(Units, ATableOfPiecesAloneSaysThatItCanNotEncode) {
  const auto units = tokenizer_of(table("<blank> 0\n▁HE 1\nLLO 2\n"));
  const auto refused = units->can_encode();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(units->encode("HELLO").empty());
}

TEST(Units, AModelDividesTextAndTheTableGivesItsOwnIds) {
  const auto units =
      tokenizer_of(table("<blank> 0\n<unk> 1\n▁ab 10\nab 11\n▁ 12\na 13\n你 14\n", tiny_model()));
  EXPECT_EQ(units->encode("abab ab"), (Ids{10, 11, 10}));
  EXPECT_EQ(units->encode("ABab"), (Ids{10, 11}));  // the table has small letters only
  EXPECT_EQ(units->encode("ab你 a"), (Ids{10, 14, 12, 13}));
  EXPECT_EQ(units->encode("b"), (Ids{12, 1}));  // the model's piece, not in the table
  EXPECT_EQ(units->encode(""), Ids{});
}

TEST(Units, SpecialTokensOfTheArchitectureMustBeSpecialInTheTable) {
  const TokenizerSource source = table("<blank> 0\n<unk> 1\n<sos/eos> 2\na 3\n");
  std::vector<std::pair<std::string, TokenId>> names = {{"<sos>", 2}, {"<eos>", 2}};
  const auto made = *make_tokenizer(source, names);
  EXPECT_EQ(made->id_of("<eos>"), 2);
  names = {{"<eos>", 3}};
  EXPECT_NE(make_tokenizer(source, names).error().what.find("ordinary token 'a'"),
            std::string::npos);
  names = {{"<eos>", 9}};
  EXPECT_FALSE(make_tokenizer(source, names));
}

TEST(SentencePiece, IdsAreTheModels) {
  const auto made = tokenizer_of(
      {.kind = "sentencepiece", .origin = "bpe.model", .sentencepiece_model = tiny_model()});
  EXPECT_EQ(made->size(), 8);
  EXPECT_EQ(made->encode("abab"), (Ids{7, 6}));
  EXPECT_EQ(made->decode(Ids{1, 7, 6, 2}), " abab");
  EXPECT_TRUE(made->is_special(0) && made->is_special(1) && made->is_special(2));
  EXPECT_FALSE(made->is_special(3));
}

TEST(SentencePiece, RefusesDamagedModels) {
  const std::string whole = tiny_model();
  const auto refused = [](std::string model) {
    const auto made = make_tokenizer(
        {.kind = "sentencepiece", .origin = "bpe.model", .sentencepiece_model = std::move(model)});
    return made ? std::string() : made.error().message();
  };
  EXPECT_NE(refused(whole.substr(0, whole.size() / 2)), "");
  EXPECT_NE(refused(""), "");
  EXPECT_NE(refused("no model"), "");
  const std::string outside =
      read_text_file(testing::project_dir() / "tests/fuzz/seeds/units/charsmap_outside.bin")
          ->substr(1);
  EXPECT_NE(refused(outside).find("outside itself"), std::string::npos);
}

TEST(SentencePiece, EncodesAsARealModelWasTrained) {
  OASR_REQUIRE_FULL_DATA();
  const auto folder = *testing::full_data() / "models/u2pp_en";
  const auto units = tokenizer_of(
      table(*read_text_file(folder / "units.txt"), *read_text_file(folder / "bpe.model")));
  EXPECT_EQ(units->size(), 500);
  EXPECT_EQ(units->encode("Enter two nine eight one"), (Ids{221, 455, 333, 215, 345}));
  EXPECT_EQ(units->encode("REPEAT"), (Ids{379, 91, 31, 19}));
  EXPECT_EQ(units->encode("RÉSUMÉ ?").back(), *units->id_of("<unk>"));
  int lines = 0;
  const std::string text =
      *read_text_file(*testing::full_data() / "goldens/u2pp_real/an4.full.jsonl");
  for (std::size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    const Json line = *parse_json(std::string_view(text).substr(begin, end - begin), "golden");
    const Json& best = line.at("attention_rescoring");
    const std::string decoded = units->decode(best.at("tokens").get<Ids>());
    EXPECT_EQ(strip(decoded), best.at("text").get<std::string>());
    const std::string again = units->decode(units->encode(decoded));
    EXPECT_EQ(again, decoded.empty() || decoded.front() == ' ' ? decoded : " " + decoded);
    ++lines;
  }
  EXPECT_GT(lines, 100);
}

TEST(SentencePiece, OtherRealTablesAreRead) {
  OASR_REQUIRE_FULL_DATA();
  const auto folder = *testing::full_data() / "data/tokenizers_vocab/wenet";
  const auto chinese = tokenizer_of(table(*read_text_file(folder / "aishell2_units.txt")));
  EXPECT_EQ(chinese->size(), 5235);
  EXPECT_EQ(chinese->decode(Ids{5233}), "龟");
  EXPECT_EQ(chinese->encode("龟"), Ids{5233});
  const auto english =
      tokenizer_of(table(*read_text_file(folder / "librispeech_units.txt"),
                         *read_text_file(folder / "librispeech_unigram5000.model")));
  EXPECT_EQ(english->size(), 5002);
  EXPECT_EQ(english->decode(english->encode("the quick brown fox's")), " THE QUICK BROWN FOX'S");
  EXPECT_TRUE(make_tokenizer(table(*read_text_file(folder / "paraformer_tokens.txt"))));
}

}  // namespace
}  // namespace oasr

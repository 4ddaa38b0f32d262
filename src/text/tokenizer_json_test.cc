#include <gtest/gtest.h>

#include "base/json.h"
#include "text/tokenizer.h"

namespace oasr {
namespace {

using Ids = std::vector<TokenId>;

// A small tokenizer.json; tests change one thing of it.
Json small() {
  return *parse_json(R"({
    "added_tokens": [{"id": 8, "content": "<|endoftext|>", "special": true}, {"id": 9, "content": "[noise]", "special": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "model": {"type": "BPE", "vocab": {"t": 0, "e": 1, "s": 2, "Ġ": 3, "te": 4, "st": 5, "test": 6, "Ġtest": 7},
              "merges": ["t e", "s t", ["te", "st"], "Ġ test"]}})",
                     "test");
}

Result<std::shared_ptr<const Tokenizer>> make(const Json& json, std::string added = {}) {
  TokenizerSource source{.kind = "tokenizer_json",
                         .tokenizer_json = json.dump(),
                         .added_tokens_json = std::move(added)};
  source.origin = "tokenizer.json";
  return make_tokenizer(source);
}

void expect_refused(const Json& json, ErrorCode code, std::string_view part_of_message) {
  const auto made = make(json);
  ASSERT_FALSE(made) << json;
  EXPECT_EQ(made.error().code, code) << json;
  EXPECT_NE(made.error().what.find(part_of_message), std::string::npos) << made.error().message();
  EXPECT_EQ(made.error().where, "tokenizer.json");
}

TEST(TokenizerJson, TakesBothSpellingsOfMerges) {
  const auto made = make(small());
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ((*made)->encode("test tests"), (Ids{6, 7, 2}));
  EXPECT_EQ((*made)->decode(Ids{6, 8, 7, 9}), "test test[noise]");
  EXPECT_EQ((*made)->size(), 10);
  EXPECT_TRUE((*made)->is_special(8));
  EXPECT_FALSE((*made)->is_special(9));
}

TEST(TokenizerJson, AddsThePrefixSpaceWhenItSaysSo) {
  Json json = small();
  json["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ((*make(json))->encode("test"), Ids{7});
  EXPECT_EQ((*make(json))->encode(" test"), Ids{7});
}

TEST(TokenizerJson, SplitsByItsOwnPattern) {
  Json json = small();
  json["pre_tokenizer"] = *parse_json(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "s"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})",
                                      "test");
  EXPECT_EQ((*make(json))->encode("test"), (Ids{4, 2, 0}));
  json["pre_tokenizer"] = *parse_json(
      R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})", "test");
  json["model"]["merges"].push_back("s Ġtest");
  json["model"]["vocab"]["sĠtest"] = 10;
  EXPECT_EQ((*make(json))->encode("s test"), Ids{10});  // no division at all
}

TEST(TokenizerJson, TakesAWholeWordWithIgnoreMerges) {
  Json json = small();
  json["model"]["merges"] = Json::array();
  EXPECT_EQ((*make(json))->encode("test"), (Ids{0, 1, 2, 0}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ((*make(json))->encode("test"), Ids{6});
}

TEST(TokenizerJson, TakesMoreAddedTokensInEverySpelling) {
  for (const char* added :
       {R"({"<|en|>": 12})", R"({"12": {"content": "<|en|>", "special": true}})",
        R"([{"id": 12, "content": "<|en|>"}])"}) {
    const auto made = make(small(), added);
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ((*made)->id_of("<|en|>"), 12);
    EXPECT_EQ((*made)->size(), 13);
    EXPECT_EQ((*made)->token_bytes(11), "");  // a hole
  }
}

TEST(TokenizerJson, KnowsTheArchitecturesNamesOfItsSpecialTokens) {
  TokenizerSource source{.kind = "tokenizer_json", .tokenizer_json = small().dump()};
  const std::vector<std::pair<std::string, TokenId>> names = {{"<|eot|>", 8}, {"<|nospeech|>", 10}};
  const auto made = make_tokenizer(source, names);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ((*made)->id_of("<|eot|>"), 8);
  EXPECT_EQ((*made)->id_of("<|endoftext|>"), 8);
  EXPECT_EQ((*made)->token_bytes(8), "<|endoftext|>");
  EXPECT_EQ((*made)->id_of("<|nospeech|>"), 10);
}

TEST(TokenizerJson, RefusesHostileIds) {
  const auto with_id = [](Json id) {
    Json json = small();
    json["model"]["vocab"]["x"] = std::move(id);
    return json;
  };
  expect_refused(with_id(1'000'000'000), ErrorCode::bad_checkpoint, "1000000000");
  expect_refused(with_id(-1), ErrorCode::bad_checkpoint, "-1");
  expect_refused(with_id(std::uint64_t{1} << 63), ErrorCode::bad_checkpoint, "not an integer");
  expect_refused(with_id(1.5), ErrorCode::bad_checkpoint, "not an integer");
  expect_refused(with_id("7"), ErrorCode::bad_checkpoint, "not an integer");
  expect_refused(with_id(nullptr), ErrorCode::bad_checkpoint, "not an integer");
  expect_refused(with_id(3), ErrorCode::bad_checkpoint, "two tokens");
  Json json = small();
  json["added_tokens"][0]["id"] = 1'000'000'000;
  expect_refused(json, ErrorCode::bad_checkpoint, "1000000000");
  json["added_tokens"][0]["id"] = 0;
  expect_refused(json, ErrorCode::bad_checkpoint, "two tokens");
  json["added_tokens"][0].erase("id");
  expect_refused(json, ErrorCode::bad_checkpoint, "added token");
}

TEST(TokenizerJson, RefusesWrongTypes) {
  const auto with = [](const char* pointer, Json value) {
    Json json = small();
    json[Json::json_pointer(pointer)] = std::move(value);
    return json;
  };
  expect_refused(with("/model", 3), ErrorCode::bad_checkpoint, "model.vocab");
  expect_refused(with("/model/vocab", Json::array({1})), ErrorCode::bad_checkpoint,
                 "not an object");
  expect_refused(with("/model/merges", "a b"), ErrorCode::bad_checkpoint, "not a list");
  expect_refused(with("/model/merges/0", 3), ErrorCode::bad_checkpoint, "merge 0");
  expect_refused(with("/model/merges/0", "te"), ErrorCode::bad_checkpoint, "merge 0");
  expect_refused(with("/model/merges/0", "t e s"), ErrorCode::bad_checkpoint, "merge 0");
  expect_refused(with("/model/merges/0", "t s"), ErrorCode::bad_checkpoint, "merge 0");
  expect_refused(with("/added_tokens", 1), ErrorCode::bad_checkpoint, "added_tokens");
  expect_refused(with("/added_tokens/0", Json::object()), ErrorCode::bad_checkpoint, "added token");
  expect_refused(Json::array(), ErrorCode::bad_checkpoint, "model.vocab");
}

TEST(TokenizerJson, RefusesOtherTokenizersByName) {
  const auto with = [](const char* pointer, Json value) {
    Json json = small();
    json[Json::json_pointer(pointer)] = std::move(value);
    return json;
  };
  const ErrorCode code = ErrorCode::unsupported;
  expect_refused(with("/model/type", "Unigram"), code, "Unigram");
  expect_refused(with("/model/byte_fallback", true), code, "byte_fallback");
  expect_refused(with("/model/end_of_word_suffix", "</w>"), code, "end_of_word_suffix");
  expect_refused(with("/normalizer", Json{{"type", "Lowercase"}}), code, "Lowercase");
  expect_refused(with("/pre_tokenizer", Json{{"type", "Metaspace"}}), code, "Metaspace");
  expect_refused(with("/pre_tokenizer", nullptr), code, "byte-level");
  expect_refused(with("/pre_tokenizer/type", "Split"), code, "Split");
}

TEST(TokenizerJson, RefusesWhatIsNotJson) {
  TokenizerSource source{
      .kind = "tokenizer_json", .tokenizer_json = "{\"model\":", .origin = "tokenizer.json"};
  EXPECT_FALSE(make_tokenizer(source));
  source.tokenizer_json = std::string(100000, '[');
  EXPECT_FALSE(make_tokenizer(source));
}

TEST(VocabMerges, ReadsTheTwoFiles) {
  TokenizerSource source{
      .kind = "vocab_merges",
      .vocab_json = R"({"t":0,"e":1,"s":2,"Ġ":3,"te":4,"st":5,"test":6,"Ġtest":7})",
      .merges_txt = "#version: 0.2\r\nt e\r\ns t\nte st\nĠ test\n",
      .added_tokens_json = R"({"<|endoftext|>":8})"};
  const auto made = make_tokenizer(source);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ((*made)->encode("test test"), (Ids{6, 7}));
  EXPECT_EQ((*made)->id_of("<|endoftext|>"), 8);
  source.merges_txt += "only\n";
  EXPECT_FALSE(make_tokenizer(source));
  source.merges_txt = "t x\n";
  EXPECT_FALSE(make_tokenizer(source));
}

}  // namespace
}  // namespace oasr

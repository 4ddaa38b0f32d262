// oasr_config.json and tokens.txt: what is written, what is read, what is refused.
#include "checkpoint/native_config.h"

#include "checkpoint/native.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "checkpoint/token_lines.h"

namespace oasr {
namespace {

using ::testing::HasSubstr;

NativeConfig sample() {
  NativeConfig config;
  config.architecture = "whisper";
  config.source_container = "ggml";
  config.source_facts = {{"ftype", "q5_0"}};
  config.notes = {"weights are stored as q5_0", ""};
  config.documents = {{"dims", R"({"n_mels": 1e0, "a":[]})"},
                      {"config.json", " {\"\xC3\xA4\":\"\\u0000\"}\n"}};
  config.tokenizer_kind = "ranks";
  config.tokenizer_origin = "the vocabulary inside the ggml file";
  config.tokenizer_pattern = R"(\s+|\p{L})";
  config.tokenizer_files = {{"tokens.txt", 0x0123abcd}};
  config.tensors = {{"a.weight", 0}, {"b", 0xffffffff}};
  return config;
}

// The sample's text with its top-level `key` replaced; null removes it.
std::string with(const char* pointer, Json value) {
  auto json = Json::parse(native_config_text(sample()).value());
  json[Json::json_pointer(pointer)] = std::move(value);
  return json.dump();
}
std::string without(const char* parent, const char* key) {
  auto json = Json::parse(native_config_text(sample()).value());
  json[Json::json_pointer(parent)].erase(key);
  return json.dump();
}
std::string refusal(const std::string& text) {
  const auto config = parse_native_config(text);
  return config ? "" : config.error().message();
}

TEST(NativeConfig, ComesBackExactly) {
  auto config = sample();
  for (const auto& quantization : {std::optional<std::string>(), std::optional<std::string>("{}"),
                                   std::optional<std::string>(R"({"a":0.1,"b":[1,"x"]})")}) {
    config.quantization = quantization;
    const auto text = native_config_text(config).value();
    EXPECT_EQ(parse_native_config(text).value(), config);
    EXPECT_EQ(Json::parse(text)["format_version"], quantization ? 2 : 1);
    EXPECT_TRUE(names_native_format(text));
  }
}

TEST(NativeConfig, RefusesOtherVersionsByName) {
  EXPECT_EQ(refusal(with("/format_version", 3)),
            "is format version 3; this oasr reads 1 and 2 (use a newer oasr, or convert the source "
            "again with this one)");
  EXPECT_THAT(refusal(with("/format_version", 0)), HasSubstr("is format version 0;"));
  EXPECT_THAT(refusal(with("/format_version", -1)), HasSubstr("is format version -1;"));
  EXPECT_THAT(refusal(with("/format_version", UINT64_MAX)), HasSubstr("18446744073709551615;"));
  EXPECT_EQ(parse_native_config(with("/format_version", 3)).error().code, ErrorCode::unsupported);
  for (const Json& version : {Json("1"), Json(1.0), Json(true), Json()}) {
    EXPECT_THAT(refusal(with("/format_version", version)), HasSubstr("not a whole number"));
  }
  // A newer version may have other keys: the version is what is wrong.
  auto newer = Json::parse(with("/new", 1));
  newer["format_version"] = 3;
  EXPECT_THAT(refusal(newer.dump()), HasSubstr("is format version 3"));
}

TEST(NativeConfig, TiesQuantizationToVersionTwo) {
  EXPECT_THAT(refusal(with("/quantization", Json::object())), HasSubstr("is version 2"));
  EXPECT_THAT(refusal(with("/format_version", 2)), HasSubstr("without a \"quantization\""));
  auto json = Json::parse(with("/format_version", 2));
  for (const Json& value : {Json(), Json("{}"), Json::array(), Json(1)}) {
    json["quantization"] = value;
    EXPECT_THAT(refusal(json.dump()), HasSubstr("\"quantization\" is not a JSON object"));
  }
  json["quantization"] = Json::parse(R"({"b":1,"a":{"z":1,"y":2}})");
  EXPECT_EQ(parse_native_config(json.dump()).value().quantization, R"({"a":{"y":2,"z":1},"b":1})");
}

TEST(NativeConfig, RefusesUnknownMissingAndRepeatedKeysByName) {
  EXPECT_THAT(refusal(with("/extra", 1)), HasSubstr("the file has the unknown key \"extra\""));
  EXPECT_THAT(refusal(with("/source/extra", 1)), HasSubstr("\"source\" has the unknown key"));
  EXPECT_THAT(refusal(with("/tokenizer/extra", 1)), HasSubstr("\"tokenizer\" has the unknown key"));
  EXPECT_THAT(refusal(with("/tensors/extra", 1)), HasSubstr("\"tensors\" has the unknown key"));
  for (const char* key : {"architecture", "source", "documents", "tokenizer", "tensors"}) {
    EXPECT_THAT(refusal(without("", key)), HasSubstr("has no \"" + std::string(key) + "\""));
  }
  EXPECT_THAT(refusal(without("/source", "container")), HasSubstr("has no \"container\""));
  EXPECT_THAT(refusal(without("/tokenizer", "files")), HasSubstr("has no \"files\""));
  EXPECT_THAT(refusal(without("/tensors", "checksums")), HasSubstr("has no \"checksums\""));
  auto text = native_config_text(sample()).value();
  text.insert(text.find("\"a.weight\""), "\"b\": \"crc32:00000000\", ");
  EXPECT_THAT(refusal(text), HasSubstr("a key twice"));
}

TEST(NativeConfig, RefusesValuesOfOtherTypesByName) {
  for (const char* key : {"/architecture", "/source/container", "/tokenizer/kind",
                          "/tokenizer/origin", "/tokenizer/pattern", "/tensors/file"}) {
    const std::string name(std::string_view(key).substr(std::string_view(key).rfind('/') + 1));
    EXPECT_THAT(refusal(with(key, 1)), HasSubstr("\"" + name + "\" is not a text"));
  }
  EXPECT_THAT(refusal(with("/architecture", "")), HasSubstr("\"architecture\" is empty"));
  EXPECT_THAT(refusal(with("/source/container", "")), HasSubstr("\"container\" is empty"));
  EXPECT_THAT(refusal(with("/source", Json::array())),
              HasSubstr("\"source\" is not a JSON object"));
  EXPECT_THAT(refusal(with("/source/facts/ftype", 1)), HasSubstr("\"ftype\" of \"facts\" is not a text"));
  EXPECT_THAT(refusal(with("/source/notes", "x")), HasSubstr("\"notes\" is not a list"));
  EXPECT_THAT(refusal(with("/source/notes/0", 1)), HasSubstr("\"notes\" is not a list of texts"));
  EXPECT_THAT(refusal(with("/documents", 1)), HasSubstr("\"documents\" is not a JSON object"));
  EXPECT_THAT(refusal(with("/documents/dims", Json::object())),
              HasSubstr("\"dims\" of \"documents\" is not a text"));
  EXPECT_THAT(refusal(with("/tokenizer/kind", "bpe")),
              HasSubstr("\"bpe\" is no kind of tokenizer"));
}

TEST(NativeConfig, RefusesDocumentsThatAreNoJsonObjects) {
  for (const char* document : {"", "[]", "1", "{", "{} {}"}) {
    EXPECT_THAT(refusal(with("/documents/dims", document)),
                HasSubstr("the document \"dims\" is no JSON object"));
  }
  EXPECT_THAT(refusal(with("/documents/quantization", "{}")), HasSubstr("must not be among"));
}

TEST(NativeConfig, RefusesOtherSpellingsOfChecksumsAndFileNames) {
  for (const char* checksum :
       {"", "crc32:", "0123abcd", "crc32:0123ABCD", "crc32:0123abc", "crc32:0123abcde",
        "crc32:-123abcd", "crc32:0x23abcd", "md5:0123abcd"}) {
    EXPECT_THAT(refusal(with("/tensors/checksums/b", checksum)), HasSubstr("\"b\" has \""));
    EXPECT_FALSE(parse_checksum(checksum));
  }
  EXPECT_EQ(parse_checksum("crc32:0123abcd"), 0x0123abcdu);
  for (const std::string& name :
       {std::string("../m.safetensors"), std::string("/m.safetensors"),
        std::string("a/m.safetensors"), std::string("m.bin"), std::string(),
        std::string("a\0.safetensors", 14), std::string(".safetensors")}) {
    EXPECT_THAT(refusal(with("/tensors/file", name)), HasSubstr("not a plain"));
  }
}

TEST(NativeConfig, RefusesOtherTexts) {
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("does not say \"format\": \"oasr\""));
  EXPECT_THAT(refusal(R"({"format":"x"})"), HasSubstr("does not say"));
  EXPECT_THAT(refusal(std::string(100, '[')), HasSubstr("deeper than 64"));
  EXPECT_THAT(refusal(std::string(kMaxNativeConfig + 1, ' ')), HasSubstr("larger than 16 MiB"));
  EXPECT_FALSE(names_native_format("[]"));
  EXPECT_FALSE(names_native_format(R"({"format":1})"));
  EXPECT_FALSE(names_native_format("{"));
}

TEST(NativeConfig, IsNotWrittenIfItWouldNotBeRead) {
  const auto error = [](auto change) {
    auto config = sample();
    change(config);
    const auto text = native_config_text(config);
    if (text) return std::string();
    EXPECT_EQ(text.error().code, ErrorCode::invalid_argument);
    return text.error().message();
  };
  EXPECT_THAT(error([](auto& c) { c.notes = {"\xFF"}; }), HasSubstr("not UTF-8"));
  EXPECT_THAT(error([](auto& c) { c.tokenizer_origin = "\xC3"; }), HasSubstr("not UTF-8"));
  EXPECT_THAT(error([](auto& c) { c.documents["x"] = "{\"\xFF\":1}"; }), HasSubstr("not UTF-8"));
  EXPECT_THAT(error([](auto& c) { c.documents["x"] = "[]"; }), HasSubstr("no JSON object"));
  EXPECT_THAT(error([](auto& c) { c.documents["quantization"] = "{}"; }), HasSubstr("must not"));
  EXPECT_THAT(error([](auto& c) { c.architecture = ""; }), HasSubstr("is empty"));
  EXPECT_THAT(error([](auto& c) { c.tokenizer_kind = "bpe"; }), HasSubstr("no kind"));
  EXPECT_THAT(error([](auto& c) { c.quantization = "[]"; }), HasSubstr("not a JSON object"));
  EXPECT_THAT(error([](auto& c) { c.notes = {std::string(kMaxNativeConfig, 'x')}; }),
              HasSubstr("16 MiB"));
}

TEST(TokenLines, KeepEveryByte) {
  std::vector<std::string> tokens = {"",   "a",     " the",        "\n",
                                     "\\", "\\x41", "\xC4\xA0the", std::string(2, '\0')};
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  const auto text = write_token_lines(tokens);
  EXPECT_TRUE(text.starts_with(
      "\na\n the\n\\x0a\n\\\\\n\\\\x41\n\\xc4\\xa0the\n\\x00\\x00\n\\x00\n\\x01\n"))
      << text;
  EXPECT_EQ(read_token_lines(text).value(), tokens);
  EXPECT_EQ(write_token_lines({}), "");
  EXPECT_TRUE(read_token_lines("").value().empty());
}

TEST(TokenLines, RefuseEveryOtherSpellingByItsLine) {
  for (const char* line : {"\\", "\\x", "\\x0", "\\x41", "\\x5c", "\\x0A", "\\n", "\t", "\x7F",
                           "\xC4", "\r", "\\xg0"}) {
    EXPECT_THAT(read_token_lines("a\n" + std::string(line) + "\nb\n").error().message(),
                HasSubstr("line 2 is not a token"))
        << line;
  }
  EXPECT_THAT(read_token_lines("a\nb").error().message(), HasSubstr("line 2 has no end"));
}

}  // namespace
}  // namespace oasr

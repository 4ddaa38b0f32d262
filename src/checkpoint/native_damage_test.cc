// Every way in which a native checkpoint can be broken, and what the reader says of it.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "checkpoint/containers.h"
#include "checkpoint/native_testing.h"
#include "checkpoint/test_files.h"
#include "testing/paths.h"

namespace oasr {
namespace {

using ::testing::HasSubstr;

class NativeDamage : public NativeFolder {
 protected:
  NativeDamage() { model_ = folder_.path() / "model"; }
  testing::TemporaryFolder folder_;
};

TEST_F(NativeDamage, RefusesEveryFileCutShort) {
  for (const int version : {1, 2}) {
    fs::remove_all(model_);
    ASSERT_TRUE(write_native(model_, sample(version)));
    for (const auto& [name, text] : files_of(model_)) {
      // oasr_config.json ends with a line end, without which it is the same.
      std::vector<std::size_t> sizes = {text.size() - (name == "oasr_config.json" ? 2 : 1)};
      for (std::size_t size = 0; size < sizes[0]; size += 64) sizes.push_back(size);
      for (const auto size : sizes) {
        put(name, text.substr(0, size));
        EXPECT_THAT(refusal(), HasSubstr(name)) << size;
      }
      fs::remove(model_ / name);
      EXPECT_NE(refusal(), "") << name;
      put(name, text);
    }
    EXPECT_EQ(refusal(), "");
  }
}

TEST_F(NativeDamage, NamesTheTensorThatHoldsAFlippedByte) {
  const auto content = sample(2);
  ASSERT_TRUE(write_native(model_, content));
  const auto text = get("model.safetensors");
  std::size_t flipped = 0;
  for (const auto& source : content.tensors) {
    const auto bytes = bytes_of(source);
    const auto begin = text.find(bytes);
    ASSERT_NE(begin, text.npos);
    for (std::size_t at = begin; at < begin + bytes.size(); ++at, ++flipped) {
      auto changed = text;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      put("model.safetensors", changed);
      EXPECT_THAT(refusal(), HasSubstr("the tensor '" + source.name + "'"));
      EXPECT_THAT(refusal(), HasSubstr("it is corrupt"));
    }
  }
  EXPECT_EQ(flipped, 24u + 10 + 12 + 32 + 8 + 4);
}

TEST_F(NativeDamage, IsNeverReadAsSomethingElseWhenAByteOfTheHeaderChanges) {
  const auto content = sample(1);
  ASSERT_TRUE(write_native(model_, content));
  const auto text = get("model.safetensors");
  for (std::size_t at = 0; at < text.size() - 46; ++at) {
    for (const int flip : {0x01, 0x20, 0x29, 0x80}) {
      auto changed = text;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      put("model.safetensors", changed);
      // A space may become a tab.
      if (const auto checkpoint = open_checkpoint(model_)) expect_same(*checkpoint, content);
    }
  }
}

TEST_F(NativeDamage, NamesTensorsOfAnotherTypeNameOrShape) {
  ASSERT_TRUE(write_native(model_, sample(1)));
  const auto text = get("model.safetensors");
  const auto changed = [&](std::string_view from, std::string_view to) {
    auto header = text;
    header.replace(header.find(from), from.size(), to);
    put("model.safetensors", header);
    return refusal();
  };
  EXPECT_THAT(changed("F32", "I32"),
              HasSubstr("model.safetensors: the tensor 'decoder.embed_tokens.weight' is int32 [3, 2] instead of "
                        "float32 [3, 2], which the checksum in oasr_config.json is of"));
  EXPECT_THAT(changed("\"BF16\"", "\"F16\" "),
              HasSubstr("'encoder.conv1.weight' is float16 [2, 3, 1] instead of bfloat16 [2, 3, 1]"));
  EXPECT_THAT(changed("[3,2]", "[2,3]"),
              HasSubstr("'decoder.embed_tokens.weight', float32 [2, 3]"));
  EXPECT_THAT(changed("encoder.conv1.bias", "encoder.conv9.bias"),
              HasSubstr("model.safetensors: lacks the tensor 'encoder.conv1.bias' of "
                        "oasr_config.json and holds 'encoder.conv9.bias', which is not in"));
}

// As a program does that loads all tensors, casts them and saves them: the numbers are the same.
TEST_F(NativeDamage, NamesTheDtypeOfATensorThatWasCast) {
  for (const StorageFormat before : {StorageFormat::i8, StorageFormat::f16, StorageFormat::bf16}) {
    const std::string was(enum_name(storage_format_names(), before));
    fs::remove_all(model_);
    auto content = sample(1);
    content.tensors = {tensor("a.weight", before, {2, 3}, 5)};
    ASSERT_TRUE(write_native(model_, content));
    const auto config = get("oasr_config.json");
    std::vector<float> values(6);
    {
      const auto checkpoint = open_checkpoint(model_).value();  // the tensor is borrowed from it
      ASSERT_TRUE(decode_to_float(checkpoint.tensors.find("a.weight").value(), values));
    }
    content.tensors = {{"a.weight", StorageFormat::f32, {2, 3}, [&](std::int64_t row, std::span<std::byte> out) {
                          std::memcpy(out.data(), values.data() + 3 * row, out.size());
                        }}};
    fs::remove_all(model_);
    ASSERT_TRUE(write_native(model_, content));
    put("oasr_config.json", config);
    EXPECT_THAT(refusal(), HasSubstr("the tensor 'a.weight' is float32 [2, 3] instead of " + was + " [2, 3]"));
    values[1] += 0.25f;  // another number: it is not only the dtype
    fs::remove_all(model_);
    ASSERT_TRUE(write_native(model_, content));
    put("oasr_config.json", config);
    EXPECT_THAT(refusal(), HasSubstr("'a.weight', float32 [2, 3], has the checksum"));
  }
}

TEST_F(NativeDamage, NamesATensorThatWasTakenOut) {
  ASSERT_TRUE(write_native(model_, sample(2)));
  const auto text = get("model.safetensors");
  std::uint64_t size = 0;
  std::memcpy(&size, text.data(), sizeof size);
  const auto header = text.substr(sizeof size, size);
  const auto names = Json::parse(header);
  ASSERT_EQ(names.size(), sample(2).tensors.size());
  for (const auto& [name, entry] : names.items()) {
    auto left = names;
    left.erase(name);
    auto shorter = left.dump();
    ASSERT_LE(shorter.size(), size);
    shorter.resize(size, ' ');  // the data stays, and the tensor's bytes are a hole
    put("model.safetensors", text.substr(0, sizeof size) + shorter + text.substr(sizeof size + size));
    EXPECT_THAT(refusal(), HasSubstr("model.safetensors: lacks the tensor '" + name + "' of oasr_config.json"));
  }
}

TEST_F(NativeDamage, SaysThatItsConfigurationIsMissing) {
  ASSERT_TRUE(write_native(model_, sample(1)));
  fs::remove(model_ / "oasr_config.json");
  EXPECT_THAT(refusal(), HasSubstr("model: has weights, but neither the oasr_config.json of an oasr folder nor"));
}

TEST_F(NativeDamage, NamesMissingAndExtraTensors) {
  ASSERT_TRUE(write_native(model_, sample(1)));
  const auto config = get("oasr_config.json");
  set("/tensors/checksums/other", "crc32:00000000");
  EXPECT_THAT(refusal(), HasSubstr("model.safetensors: lacks the tensor 'other' of oasr_config"));
  put("oasr_config.json", config);
  auto json = Json::parse(config);
  json["tensors"]["checksums"].erase("encoder.conv1.bias");
  put("oasr_config.json", json.dump());
  EXPECT_THAT(refusal(), HasSubstr("holds the tensor 'encoder.conv1.bias', which is not in"));
}

TEST_F(NativeDamage, RefusesOtherVersionsByName) {
  ASSERT_TRUE(write_native(model_, sample(1)));
  set("/format_version", 3);
  EXPECT_THAT(refusal(),
              HasSubstr("oasr_config.json: is format version 3; this oasr reads 1 and 2"));
  EXPECT_EQ(open_checkpoint(model_).error().code, ErrorCode::unsupported);
}

TEST_F(NativeDamage, RefusesTokenizerFilesThatAreNotAsWritten) {
  ASSERT_TRUE(write_native(model_, sample(2)));
  const auto config = get("oasr_config.json"), tokens = get("tokens.txt");
  put("tokens.txt", "b" + tokens.substr(1));
  EXPECT_THAT(refusal(), HasSubstr("tokens.txt: does not match its checksum"));
  const std::string spelled = "\\x61" + tokens.substr(1);
  put("tokens.txt", spelled);
  set("/tokenizer/files/tokens.txt", checksum_text(testing::crc_of(spelled)));
  EXPECT_THAT(refusal(), HasSubstr("tokens.txt: line 1 is not a token"));
  fs::remove(model_ / "tokens.txt");
  EXPECT_THAT(refusal(), HasSubstr("tokens.txt: is missing"));
  ASSERT_EQ(::mkfifo((model_ / "tokens.txt").c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("tokens.txt: is not a regular file"));
  for (const char* name : {"../tokens.txt", "/etc/passwd", "tokens", ""}) {
    put("oasr_config.json", config);
    set("/tokenizer/files", {{name, "crc32:00000000"}});
    EXPECT_THAT(refusal(),
                HasSubstr("oasr_config.json: \"" + std::string(name) + "\" is no file of"));
  }
}

}  // namespace
}  // namespace oasr

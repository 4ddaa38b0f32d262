#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "checkpoint/test_files.h"
#include "testing/paths.h"

namespace oasr {
namespace {

using ::testing::HasSubstr;
using testing::le;
using testing::safetensors_file;

Result<StateDict> read(const std::string& file) {
  return read_safetensors({"x.safetensors", testing::as_bytes(file), nullptr});
}

std::string refusal(std::string_view header, std::string_view data = "12345678") {
  const auto file = safetensors_file(header, data);
  const auto dict = read(file);
  return dict ? "" : dict.error().message();
}

const std::string kHeader =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2],"data_offsets":[4,8]},)"
    R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )";
const std::string kData = le(1.5f) + le<std::uint16_t>(0x3C00) + le<std::uint16_t>(0xC000);

TEST(Safetensors, ReadsTensorsInPlace) {
  const auto file = safetensors_file(kHeader, kData);
  auto dict = read(file);
  ASSERT_TRUE(dict) << dict.error().message();
  ASSERT_EQ(dict->tensors.size(), 2u);
  const auto b = *dict->find("b");
  EXPECT_EQ(b.format, StorageFormat::f16);
  EXPECT_EQ(b.shape, Shape{2});
  EXPECT_EQ(static_cast<const void*>(b.bytes.data()), file.data() + file.size() - 4);
  float values[2] = {};
  ASSERT_TRUE(decode_to_float(b, values));
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(dict->find("a")->shape.rank(), 0u);
  EXPECT_EQ(dict->find("c").error().code, ErrorCode::not_found);
}

TEST(Safetensors, ReadsAnEmptyFileOfTensors) {
  const auto file = safetensors_file("{}", "");
  EXPECT_TRUE(read(file));
}

TEST(Safetensors, RefusesEveryTruncationAndEveryExtraByte) {
  const auto file = safetensors_file(kHeader, kData);
  for (std::size_t size = 0; size < file.size(); ++size) {
    const auto cut = file.substr(0, size);
    EXPECT_FALSE(read(cut)) << size;
  }
  EXPECT_FALSE(read(file + "x"));
}

TEST(Safetensors, SurvivesEveryByteMutation) {
  const auto file = safetensors_file(kHeader, kData);
  for (std::size_t at = 0; at < file.size() - kData.size(); ++at) {
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      auto changed = file;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      if (auto dict = read(changed)) {
        for (auto& [name, tensor] : dict->tensors) {
          std::vector<float> out(static_cast<std::size_t>(tensor.shape.elements()));
          (void)decode_to_float(tensor, out);
        }
      }
    }
  }
}

TEST(Safetensors, RefusesOverlapsHolesAndOffsetsOutsideTheFile) {
  const auto two = [](const char* first, const char* second) {
    return refusal(std::string(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)") + first +
                   R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + second + "}}");
  };
  EXPECT_EQ(two("[0,4]", "[4,8]"), "");
  EXPECT_EQ(two("[4,8]", "[0,4]"), "");
  EXPECT_THAT(two("[0,4]", "[0,4]"), HasSubstr("overlap"));
  EXPECT_THAT(two("[0,4]", "[2,6]"), HasSubstr("overlap"));
  EXPECT_THAT(two("[0,4]", "[5,9]"), HasSubstr("outside the file"));
  EXPECT_THAT(two("[0,4]", "[8,4]"), HasSubstr("outside the file"));
  EXPECT_THAT(two("[0,4]", "[9223372036854775808,9223372036854775812]"),
              HasSubstr("outside the file"));
  EXPECT_THAT(two("[0,4]", "[18446744073709551612,0]"), HasSubstr("outside the file"));
  EXPECT_THAT(two("[0,4]", "[18446744073709551616,4]"), HasSubstr("no whole number"));
  EXPECT_THAT(two("[0,4]", "[4,8,8]"), HasSubstr("more than two"));
  EXPECT_THAT(two("[0,4]", "[4]"), HasSubstr("lacks"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
              HasSubstr("hole"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
              HasSubstr("end at byte 4"));
}

TEST(Safetensors, RefusesShapesThatDoNotMatch) {
  const auto shape = [](const char* text) {
    return refusal(std::string(R"({"a":{"dtype":"F32","data_offsets":[0,8],"shape":)") + text +
                   "}}");
  };
  EXPECT_EQ(shape("[2]"), "");
  EXPECT_EQ(shape("[1,2,1]"), "");
  EXPECT_THAT(shape("[3]"), HasSubstr("needs 12"));
  EXPECT_THAT(shape("[0]"), HasSubstr("needs 0"));
  EXPECT_THAT(shape("[4611686018427387905]"), HasSubstr("too large"));
  EXPECT_THAT(shape("[4294967296,4294967296]"), HasSubstr("too large"));
  EXPECT_THAT(shape("[9223372036854775808]"), HasSubstr("2^63"));
  EXPECT_THAT(shape("[1,1,1,1,1,1,1,1,2]"), HasSubstr("more than 8 axes"));
  EXPECT_THAT(shape("[-2]"), HasSubstr("negative"));
  EXPECT_THAT(shape("[-0]"), HasSubstr("negative"));
  EXPECT_THAT(shape("[2.0]"), HasSubstr("no whole number"));
  EXPECT_THAT(shape("[2e0]"), HasSubstr("no whole number"));
  EXPECT_THAT(shape("[[2]]"), HasSubstr("list"));
  EXPECT_THAT(shape("2"), HasSubstr("number where"));
  EXPECT_THAT(shape("null"), HasSubstr("null"));
}

TEST(Safetensors, RefusesUnknownAndDuplicateKeys) {
  const std::string entry = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(refusal(R"({"a":)" + entry + "}"), "");
  EXPECT_THAT(refusal(R"({"a":)" + entry + R"(,"a":)" + entry + "}"),
              HasSubstr("'a' appears twice"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("'dtype' appears twice"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":{}}})"),
              HasSubstr("unknown key 'x'"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})"), HasSubstr("lacks"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":{"b":"c"}}})"), HasSubstr("object"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})"), HasSubstr("number"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})"),
              HasSubstr("dtype C64"));
  EXPECT_THAT(refusal(R"({"a\u0000":)" + entry + "}"), HasSubstr("control"));
  EXPECT_THAT(refusal("{\"" + std::string(513, 'n') + "\":" + entry + "}"), HasSubstr("512"));
}

TEST(Safetensors, RefusesHeadersThatAreNoPlainJson) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(refusal(good + "  "), "");
  EXPECT_THAT(refusal(" " + good), HasSubstr("begin with"));
  EXPECT_THAT(refusal(""), HasSubstr("begin with"));
  EXPECT_THAT(refusal(good + std::string("\0", 1)), HasSubstr("zero byte"));
  EXPECT_THAT(refusal(good + "{}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"\xFF\":{}}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{" + std::string(100000, '[')), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(R"({"a":)" + std::string(1000000, '[')), HasSubstr("list"));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += R"({"a":)";
  EXPECT_THAT(refusal(deep), HasSubstr("unknown key"));
  const auto huge = le<std::uint64_t>(100'000'001) + "{}";
  EXPECT_THAT(read(huge).error().message(), HasSubstr("header of 100000001 bytes"));
  const auto wrapping = le<std::uint64_t>(~std::uint64_t{0} - 7) + "{}";
  EXPECT_FALSE(read(wrapping));
}

class Shards : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_text_file(folder_.path() / name, text));
  }
  std::string load() {
    files_.clear();
    auto dict = read_safetensors_shards(folder_.path() / "model.safetensors.index.json", files_);
    return dict ? std::to_string(dict->tensors.size()) : dict.error().message();
  }
  static std::string shard(const std::string& name) {
    return safetensors_file(
        R"({")" + name + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  }
  testing::TemporaryFolder folder_;
  std::vector<fs::path> files_;
};

TEST_F(Shards, AreJoinedWhenTheyHoldWhatTheIndexSays) {
  put("1.safetensors", shard("a"));
  put("2.safetensors", shard("b"));
  const auto index = [&](const std::string& map) {
    put("model.safetensors.index.json",
        R"({"metadata":{"total_size":16},"weight_map":)" + map + "}");
    return load();
  };
  EXPECT_EQ(index(R"({"a":"1.safetensors","b":"2.safetensors"})"), "2");
  EXPECT_EQ(files_.size(), 2u);
  EXPECT_THAT(index(R"({"a":"2.safetensors","b":"1.safetensors"})"),
              HasSubstr("does not place here"));
  EXPECT_THAT(index(R"({"a":"1.safetensors"})"), "1");
  EXPECT_THAT(index(R"({"a":"1.safetensors","c":"1.safetensors"})"), HasSubstr("lacks 'c'"));
  EXPECT_THAT(index(R"({"a":"../1.safetensors"})"), HasSubstr("not a plain"));
  EXPECT_THAT(index(R"({"a":"/etc/x.safetensors"})"), HasSubstr("not a plain"));
  EXPECT_THAT(index(R"({"a":"3.safetensors"})"), HasSubstr("No such file"));
  EXPECT_THAT(index(R"({"a":"1.safetensors","a":"2.safetensors"})"), HasSubstr("twice"));
  EXPECT_THAT(index(R"({"a":1})"), HasSubstr("no file name"));
  EXPECT_THAT(index("[]"), HasSubstr("no weight_map"));
  EXPECT_THAT(index("{}"), HasSubstr("names no shard"));
}

}  // namespace
}  // namespace oasr

// What a folder with 4-bit layers may not hold: errors name the layer, and of numbers the channel, the group
// and the rule.
#include <gmock/gmock.h>

#include <functional>

#include "checkpoint/checkpoint.h"
#include "load/convert.h"
#include "load/testing.h"
#include "models/whisper/test_support.h"
#include "testing/paths.h"

namespace oasr::load {
namespace {

using ::testing::HasSubstr;

const std::string kLayer = "model.decoder.layers.1.fc2";  // [64, 128]

struct W4A8Folder : LoadFixture {
  oasr::testing::TemporaryFolder temporary;
  Checkpoint checkpoint;
  std::map<std::string, std::vector<std::byte>> changed;  // tensors that the checkpoint borrows from here

  // A converted folder, in memory.
  void open(const std::string& scheme) {
    const auto folder = temporary.path() / scheme;
    if (!std::filesystem::exists(folder)) {
      models::whisper::write_hugging_face(models::whisper::RandomCheckpoint(models::whisper::small_config()),
                                          temporary.path() / "source");
      const LoadedModel loaded = load_all(temporary.path() / "source", {.quantization = {.scheme = scheme}});
      CHECK(save_native(loaded, folder).has_value(), "the folder is written");
    }
    checkpoint = open_checkpoint(folder).value();
  }
  StoredTensor& tensor(const std::string& suffix) {
    return checkpoint.tensors.tensors.at(kLayer + "." + suffix);
  }
  std::vector<std::byte>& bytes(const std::string& suffix) {
    auto& own = changed[suffix];
    own.assign(tensor(suffix).bytes.begin(), tensor(suffix).bytes.end());
    tensor(suffix).bytes = own;
    return own;
  }
  void set(const std::string& suffix, std::size_t at, int value) {
    bytes(suffix)[at] = static_cast<std::byte>(value);
  }
  void rename_in_specification(const std::string& from, const std::string& to) {
    std::string& text = checkpoint.documents.at("quantization");
    text.replace(text.find(from), from.size(), to);
  }
  std::string message() {
    const auto loaded = load_checkpoint(checkpoint, {}, context);
    if (loaded) return "loaded";
    EXPECT_EQ(loaded.error().code, ErrorCode::bad_checkpoint);
    return loaded.error().message();
  }
};

TEST_F(W4A8Folder, IsRefusedWithEveryDamageByNameOfLayerAndRule) {
  struct Damage {
    const char *scheme, *what;
    std::function<void()> damage;
    std::string message;
  };
  const auto groups = "w4a8_g128", channels = "w4a8_chn";
  const Damage rows[] = {
      {groups, "nothing", [] {}, "loaded"},
      {channels, "nothing", [] {}, "loaded"},
      {groups, "a group scale of 0", [&] { set("s2_scales", 0, 0); },
       kLayer + ": channel 0, group 0: rule group_scale: 0 is outside 1..127"},
      {groups, "codes that make 128",
       [&] {
         set("s2_scales", 0, 16);
         set("s2_zeros", 0, -112);
         std::ranges::fill(bytes("qweight"), std::byte{0xFF});
         changed["qweight"][0] = std::byte{0xF0};
       },
       kLayer + ": channel 0, group 0: rule value: 15 · 16 - 112 = 128 is no int8"},
      {groups, "a channel scale that is NaN", [&] { set("s1_scales", 5, 0x7E); },
       kLayer + ": channel 2: rule channel_scale: nan is no positive float16"},
      {channels, "a channel scale that is NaN", [&] { set("s1_scales", 5, 0x7E); },
       kLayer + ": channel 2: rule channel_scale: nan is no positive float16"},
      {channels, "a zero that is no code", [&] { set("s1_szeros", 5, 0x40); },
       kLayer + ": channel 2: rule channel_zero: "},
      {groups, "zeros of another domain",
       [&] { rename_in_specification("\"zero_domain\":\"post_scaled\"", "\"zero_domain\":\"pre_scaled\""); },
       "is no zero of the domain pre_scaled"},
      {groups, "a domain that is none", [&] { rename_in_specification("post_scaled", "scaled"); },
       "zero_domain: 'scaled' is not a domain of zeros"},
      {groups, "no domain", [&] { rename_in_specification(",\"zero_domain\":\"post_scaled\"", ""); },
       "zero_domain: the key is missing"},
      {groups, "codes of another shape",
       [&] {
         tensor("qweight").shape = {128, 32};
       },
       "1 misshapen: " + kLayer + ".qweight is [128, 32] instead of [64, 64]"},
      {groups, "channels before groups",
       [&] {
         tensor("s2_zeros").shape = {32, 2};
       },
       "1 misshapen: " + kLayer + ".s2_zeros is [32, 2] instead of [1, 64]"},
      {groups, "codes of another dtype", [&] { tensor("qweight").format = StorageFormat::u8; },
       kLayer + ".qweight is uint8 instead of int8"},
      {groups, "no zeros", [&] { checkpoint.tensors.tensors.erase(kLayer + ".s2_zeros"); },
       "1 missing: " + kLayer + ".s2_zeros"},
  };
  for (const Damage& row : rows) {
    SCOPED_TRACE(row.scheme + std::string(", ") + row.what);
    open(row.scheme);
    row.damage();
    EXPECT_THAT(message(), HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace oasr::load

// What is asked of 4-bit weights of others beyond reading them, and what is refused by its name.
#include <gmock/gmock.h>

#include "load/foreign_testing.h"
#include "load/import_w4.h"
#include "testing/paths.h"

namespace oasr::load {
namespace {

using ::testing::HasSubstr;

constexpr auto kGroups = W4Form::per_group, kChannels = W4Form::per_channel;
constexpr auto kPre = ZeroDomain::pre_scaled, kPost = ZeroDomain::post_scaled;
const std::string kLayer = "model.decoder.layers.1.fc2";  // [128, 256]

struct ImportW4Claims : LoadFixture {
  oasr::testing::TemporaryFolder temporary;
  int folders = 0;

  fs::path folder_of(const ForeignModel& model, const ForeignFile& file) {
    const auto folder = temporary.path() / std::to_string(folders++);
    model.write_documents(folder);
    file.write_safetensors_file(folder / "model.safetensors");
    return folder;
  }
  Result<LoadedModel> import(const fs::path& folder, const std::string& text) {
    const W4Claims claims = TRY(parse_w4_claims(text));
    return load_for_conversion(folder, {}, text.empty() ? nullptr : &claims, context);
  }
  void expect_refused(const fs::path& folder, const std::string& text, ErrorCode code, const std::string& message) {
    const auto loaded = import(folder, text);
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().code, code) << loaded.error().message();
    EXPECT_THAT(loaded.error().message(), HasSubstr(message));
  }
};

// Of channel 3, group 1 only codes up to 14 occur: 15 · 16 - 112 would be 128.
TEST_F(ImportW4Claims, AllCodesHaveToBeInt8OnlyWhereThatIsAskedFor) {
  ForeignModel model(kGroups, kPost);
  W4Weight& weight = model.weights.at(kLayer);
  weight.group_scale[7] = 16;
  weight.scaled_zero[7] = 112;
  for (std::size_t k = 0; k < 128; ++k) weight.codes[3 * 256 + 128 + k] = static_cast<std::uint8_t>(k % 15);
  const auto folder = folder_of(model, as_qserve(model));
  const std::string said = "zeros=post_scaled,order=quads";
  for (const char* codes : {"", ",codes=occurring"}) {
    const auto loaded = import(folder, said + codes);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_THAT(loaded->quantization.producer.options.at("w4"), HasSubstr(codes));
  }
  expect_refused(folder, said + ",codes=all", ErrorCode::bad_checkpoint,
                 kLayer + ": channel 3, group 1: rule value: 15 · 16 - 112 = 128 is no int8");
  for (const W4Form form : {kGroups, kChannels}) {
    const ForeignModel whole(form, kPost);  // of each group the encoder gives all codes an int8
    const auto loaded = import(folder_of(whole, as_qserve(whole)),
                               std::string(form == kGroups ? said : "zeros=post_scaled") + ",codes=all");
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_THAT(loaded->quantization.producer.options.at("w4"), HasSubstr("codes=all"));
  }
}

// spec case: 5/16 with the sum of codes, 7/20 with that of inputs (formats/w4_weight_test.cc).
TEST_F(ImportW4Claims, TheSumOfInputsIsRefusedByNameAndTheSumOfCodesIsWhatThereIs) {
  for (const ZeroDomain domain : {kPre, kPost}) {
    const ForeignModel model(kChannels, domain);
    const std::string said = "zeros=" + std::string(enum_name(formats::zero_domain_names(), domain));
    const auto folder = folder_of(model, as_qserve(model));
    expect_refused(folder, said + ",sum=inputs", ErrorCode::unsupported,
                   "sum=inputs: zeros are multiplied by the exact sum of the int8 input");
    const auto loaded = import(folder, said + ",sum=codes"), unsaid = import(folder, said);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(loaded->quantization.producer.options.at("w4"), said + ",sum=codes");
    EXPECT_TRUE(logits(*aed(*loaded)) == logits(*aed(*unsaid)));
  }
  const ForeignModel groups(kGroups, kPost);
  for (const char* sum : {",sum=codes", ",sum=inputs"}) {
    expect_refused(folder_of(groups, as_qserve(groups)), std::string("zeros=post_scaled,order=quads") + sum,
                   ErrorCode::invalid_argument, "zeros of groups are multiplied by no sum");
  }
}

TEST_F(ImportW4Claims, EveryClaimIsReadAndWrittenAlike) {
  for (const char* text : {"", "group=128,zeros=post_scaled,order=pairs,codes=all",
                           "group=channel,zeros=pre_scaled,codes=occurring,sum=inputs", "sum=codes"}) {
    const auto claims = parse_w4_claims(text);
    ASSERT_TRUE(claims) << claims.error().message();
    EXPECT_EQ(w4_claims_text(*claims), text);
  }
  for (const auto& [text, message] : {std::pair("codes=some", "codes can not be 'some'"),
                                      {"sum=rows", "sum can not be 'rows' (it is one of codes, inputs)"},
                                      {"sum=codes,sum=codes", "'sum' is given twice"}}) {
    const auto claims = parse_w4_claims(text);
    ASSERT_FALSE(claims) << text;
    EXPECT_THAT(claims.error().message(), HasSubstr(message));
  }
}

// Without zeros a code of -8..7 counts from 0: the only zero is 8.
TEST_F(ImportW4Claims, SymmetricWeightsAreReadAsPackQuantizedAndAsIntQuantized) {
  for (const auto& [form, strategy] : {std::pair(kGroups, "\"strategy\": \"group\", \"group_size\": 128"),
                                       {kChannels, "\"strategy\": \"channel\", \"group_size\": null"}}) {
    ForeignModel model(form, kPre);
    for (auto& [path, weight] : model.weights) {
      for (std::size_t i = 0; i < weight.scaled_zero.size(); ++i) {
        weight.scaled_zero[i] = static_cast<std::int16_t>(8 * weight.group_scale[i]);
      }
      for (std::size_t n = 0; n < weight.channel_zero.size(); ++n) {
        weight.channel_zero[n] = 8 * weight.channel_scale[n];
      }
    }
    for (const bool packed : {true, false}) {
      ForeignFile file = as_compressed(model, packed);
      std::erase_if(file.tensors, [](const auto& entry) { return entry.first.ends_with(".weight_zero_point"); });
      const auto folder = folder_of(model, file);
      std::string config = replaced(kCompressedConfig, "\"strategy\": \"group\", \"group_size\": 128", strategy);
      config = replaced(config, "\"symmetric\": false", "\"symmetric\": true");
      if (!packed) config = replaced(config, "pack-quantized", "int-quantized");
      model.add_to_config(folder, config.c_str());
      SCOPED_TRACE(config);
      const auto loaded = import(folder, "");
      ASSERT_TRUE(loaded) << loaded.error().message();
      const W4Weight& expected = model.weights.at(kLayer);
      const quant::QuantizedLayer& layer = loaded->quantization.layers.at(kLayer);
      quant::StoredSlots slots;
      for (const auto& slot : quant::storage_slots(layer)) {
        slots.emplace(slot.suffix, loaded->source.tensors.find(kLayer + "." + std::string(slot.suffix)).value());
      }
      EXPECT_EQ(layer.scheme, "w4a8_g128");  // a scale a channel is a group scale of 1
      const W4Weight found = quant::read_w4(kGroups, *layer.zero_domain, slots).value();
      EXPECT_TRUE(found.codes == expected.codes);
      EXPECT_TRUE(formats::decoded(found) == formats::decoded(expected));
    }
  }
}

TEST_F(ImportW4Claims, AnArchitectureThatIsNotServedIsNamed) {
  const ForeignModel model(kGroups, kPost);
  const auto folder = folder_of(model, as_qserve(model));
  const std::string config = read_text_file(folder / "config.json").value();
  write_text_file(folder / "config.json", replaced(config, "\"whisper\"", "\"qwen2_audio\"")).value();
  expect_refused(folder, "zeros=post_scaled,order=quads", ErrorCode::unsupported,
                 "the model is of no architecture that is served: it calls itself \"qwen2_audio\" (served: conformer, "
                 "whisper)");
}

}  // namespace
}  // namespace oasr::load

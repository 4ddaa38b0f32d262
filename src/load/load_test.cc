// The load sequence on real files: four containers, one model.
#include "load/load.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/fs.h"
#include "load/testing.h"
#include "testing/paths.h"

namespace oasr::load {
namespace {

using models::AedModel;
using Loaded = LoadFixture;

// One test a container, so that one that is not here is seen as skipped.
class LoadedContainer : public LoadFixture, public ::testing::WithParamInterface<const char*> {};

TEST_P(LoadedContainer, GivesTheBitsAndTokensOfTheHuggingFaceFolder) {
  for (const std::string name : {"tiny.en", "base"}) {
    const auto first_path = oasr::testing::real_weights(name, "hf");
    const auto path = oasr::testing::real_weights(name, GetParam());
    if (!first_path || !path) {
      GTEST_SKIP() << "no real weights of " << name << " as " << GetParam() << " (set OASR_TEST_WEIGHTS)";
    }
    SCOPED_TRACE(name);
    const auto reference = load(*first_path);
    EXPECT_EQ(reference->info().size_name, name);
    EXPECT_EQ(reference->info().weight_dtype, DType::f16);
    const auto model = load(*path);
    expect_same_tokens(reference->tokens(), model->tokens());
    EXPECT_EQ(model->info().parameters, reference->info().parameters);
    EXPECT_EQ(model->info().size_name, name);
    EXPECT_EQ(model->multilingual(), reference->multilingual());
    EXPECT_EQ(model->tokenizer().encode(" Hello, wörld"), reference->tokenizer().encode(" Hello, wörld"));
    EXPECT_EQ(logits(*model), logits(*reference));
  }
}

INSTANTIATE_TEST_SUITE_P(Whisper, LoadedContainer, ::testing::Values("openai-pt", "ct2", "ggml"));

TEST_F(Loaded, SixteenBitWeightsWidenedToFloat32GiveTheSameBits) {
  const auto path = oasr::testing::real_weights("tiny.en", "hf");
  if (!path) GTEST_SKIP() << "no real weights (set OASR_TEST_WEIGHTS)";
  const auto narrow = load(*path), wide = load(*path, {.dtype = DType::f32});
  EXPECT_EQ(wide->info().weight_dtype, DType::f32);
  EXPECT_GT(wide->info().weight_bytes, narrow->info().weight_bytes * 19 / 10);
  EXPECT_EQ(logits(*narrow), logits(*wide));
  EXPECT_NE(logits(*load(*path, {.dtype = DType::bf16})), logits(*narrow));
}

// A copy of the tiny random checkpoint, with another config.json.
struct Copy {
  explicit Copy(const std::string& from = "", const std::string& to = "") {
    const fs::path source = *oasr::testing::full_data() / "goldens" / "whisper";
    fs::copy_file(source / "model.safetensors", folder.path() / "model.safetensors");
    std::string config = read_text_file(source / "config.json").value();
    if (!from.empty()) {
      const auto at = config.find(from);
      CHECK(at != config.npos, "the text to replace");
      config.replace(at, from.size(), to);
    }
    write_text_file(folder.path() / "config.json", config).value();
  }
  oasr::testing::TemporaryFolder folder;
};

TEST_F(Loaded, SaysWhatIsWrongWithAFolder) {
  OASR_REQUIRE_FULL_DATA();
  const auto message = [&](const Copy& copy) {
    const auto model = load_model(copy.folder.path(), {}, context);
    return model ? std::string("loaded") : model.error().message();
  };
  EXPECT_NE(message(Copy()).find("has no tokenizer"), std::string::npos) << message(Copy());
  const Copy heads("\"encoder_attention_heads\": 4", "\"encoder_attention_heads\": 3");
  EXPECT_NE(message(heads).find("3 encoder heads"), std::string::npos) << message(heads);
  const Copy huge("\"d_model\": 64", "\"d_model\": 99999999999");
  EXPECT_NE(message(huge).find("'d_model' must be an integer from 1 to"), std::string::npos) << message(huge);
  const Copy absent("\"d_model\"", "\"e_model\"");
  EXPECT_NE(message(absent).find("has no 'd_model'"), std::string::npos) << message(absent);
  const Copy other("\"model_type\": \"whisper\"", "\"model_type\": \"bart\"");
  EXPECT_NE(message(other).find("served: conformer, whisper"), std::string::npos) << message(other);
  const Copy relu("\"activation_function\": \"gelu\"", "\"activation_function\": \"relu\"");
  EXPECT_NE(message(relu).find("activation_function \"relu\" is not served"), std::string::npos);
}

TEST_F(Loaded, RefusesADtypeThatWeightsCanNotHave) {
  const auto model = load_model("anywhere", {.dtype = DType::i8}, context);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::invalid_argument);
}

TEST_F(Loaded, RefusesTheArithmeticOfGpusOnTheProcessor) {
  const auto path = oasr::testing::test_data("wenet/old_config");
  ASSERT_TRUE(load_model(path, {}, context));
  EXPECT_EQ(load_model(path, {}, context)->report.arithmetic, "float32");
  context.arithmetic = Arithmetic::bfloat16;
  const auto model = load_model(path, {}, context);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::unsupported);
  EXPECT_EQ(model.error().where, "arithmetic");
}

TEST_F(Loaded, SaysThatAPathDoesNotExist) {
  const auto model = load_model("/nowhere/at/all", {}, context);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message().find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace oasr::load

// Whisper checkpoints with a number that is none, or with numbers that overflow: an error that says
// where, never a text.
#include <gtest/gtest.h>

#include "engine/engine_fixture.h"
#include "load/load.h"
#include "models/whisper/test_support.h"

namespace oasr::engine {
namespace {

using models::whisper::RandomCheckpoint;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

models::whisper::Config window_of_thirty_seconds() {
  auto config = models::whisper::small_config();
  config.max_source_positions = 1500;
  config.vocab_size = 1600;
  return config;
}

struct BrokenModel : ::testing::Test {
  RandomCheckpoint random{window_of_thirty_seconds()};
  ThreadPool pool{2};
  ExecContext context{.pool = &pool, .isa = detected_isa()};

  Result<load::LoadedModel> load(const std::string& scheme) {
    return load::load_checkpoint(random.checkpoint, {.quantization = {.scheme = scheme}}, context);
  }
  // "" for a transcript, else what the error says.
  std::string error(const std::string& scheme, bool word_timestamps = false, int beam_size = 1) {
    const auto loaded = load(scheme);
    if (!loaded) return "load: " + loaded.error().message();
    auto options = english();
    options.temperatures = {0.0};
    options.max_new_tokens = 12;
    options.logprob_threshold = options.compression_ratio_threshold = options.no_speech_threshold =
        std::nullopt;
    options.word_timestamps = word_timestamps;
    options.beam_size = beam_size;
    const auto model = std::dynamic_pointer_cast<const models::AedModel>(loaded->model);
    const auto transcriber = *Transcriber::create(model, context);
    TestAudio audio(babble(3));
    const auto transcript = transcriber->transcribe(audio, options);
    if (transcript) return "";
    EXPECT_EQ(transcript.error().code, ErrorCode::bad_checkpoint);
    return transcript.error().what;
  }
  // A matrix whose products with anything but zero overflow, in every other row upwards.
  void make_huge(const std::string& name) {
    const Shape shape = random.checkpoint.tensors.tensors.at(name).shape;
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      random.set(name, static_cast<std::size_t>(i), i / shape[1] % 2 == 0 ? 3e38f : -3e38f);
    }
  }
};

TEST_F(BrokenModel, IsNoneAsItComes) {
  for (const char* scheme : {"", "int8_w8a8"}) {
    EXPECT_EQ(error(scheme), "");
    EXPECT_EQ(error(scheme, true), "");
    EXPECT_EQ(error(scheme, false, 3), "");
  }
}

TEST_F(BrokenModel, WithANanInTheEncoderSaysSo) {
  random.set("model.encoder.layers.0.fc1.weight", 70, kNan);
  EXPECT_EQ(error(""), "the model computed NaN or infinity in the encoder");
}

TEST_F(BrokenModel, WithANanInTheDecoderNamesTheOutputHead) {
  random.set("model.decoder.layers.1.fc2.weight", 3, kNan);
  for (const int beams : {1, 3}) {
    EXPECT_EQ(error("", false, beams), "the model computed NaN or infinity in the output head");
  }
}

TEST_F(BrokenModel, WithANanInALayerToQuantizeDoesNotLoad) {
  random.set("model.decoder.layers.1.fc2.weight", 3 * 128 + 5, kNan);
  const std::string message = error("int8_w8a8");
  EXPECT_NE(message.find("load: "), message.npos) << message;
  EXPECT_NE(message.find("model.decoder.layers.1.fc2"), message.npos) << message;
  EXPECT_NE(message.find("row 3"), message.npos) << message;
}

TEST_F(BrokenModel, WithANanBiasDoesNotLoad) {
  random.set("model.encoder.layers.0.fc1.bias", 3, kNan);
  for (const char* scheme : {"", "int8_w8a8"}) {
    const std::string message = error(scheme);
    EXPECT_NE(message.find("load: model.encoder.layers.0.fc1.bias: element 3 is nan"), message.npos) << message;
  }
}

TEST_F(BrokenModel, WhoseActivationsOverflowNamesTheLayer) {
  make_huge("model.encoder.layers.1.fc1.weight");
  EXPECT_EQ(error(""), "the model computed NaN or infinity in the encoder");
  EXPECT_EQ(error("int8_w8a8"), "the model computed NaN or infinity in model.encoder.layers.1.fc2");
}

TEST_F(BrokenModel, WhoseDecoderOverflowsNamesTheLayer) {
  make_huge("model.decoder.layers.0.fc1.weight");
  EXPECT_EQ(error(""), "the model computed NaN or infinity in the output head");
  EXPECT_EQ(error("int8_w8a8"), "the model computed NaN or infinity in model.decoder.layers.0.fc2");
}

}  // namespace
}  // namespace oasr::engine

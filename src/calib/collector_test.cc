#include "calib/collector.h"

#include <gmock/gmock.h>

#include "kernels/testing.h"
#include "models/conformer/model.h"
#include "models/whisper/test_support.h"

namespace oasr::calib {
namespace {

using models::whisper::RandomCheckpoint;
using models::whisper::Runner;

std::vector<float> noise(std::size_t count, unsigned seed) {
  return kernels::random_floats(static_cast<std::int64_t>(count), seed, 1.0f);
}

std::vector<WatchedLayer> watched(const layers::LayerList& layers, bool histograms = false) {
  std::vector<WatchedLayer> all;
  for (const auto* layer : layers.linears)
    all.push_back({layer->path(), layer->method().in_features(), histograms});
  return all;
}

struct WhisperRun {
  RandomCheckpoint random{models::whisper::small_config()};
  std::shared_ptr<const models::whisper::Network> network = random.network();
  std::vector<float> mel =
      noise(static_cast<std::size_t>(random.config.window_frames() * random.config.num_mel_bins), 7);

  Statistics run(std::int64_t audio_frames, int threads = 2, bool decode = true) {
    ThreadPool pool(threads);
    auto layers = watched(network->layers);
    layers.push_back({"model.encoder.conv1", random.config.num_mel_bins});
    layers.push_back({"model.encoder.conv2", random.config.d_model});
    Collector collector(pool, layers, 0);
    models::whisper::State state(network, {.pool = &pool, .isa = detected_isa(), .observer = &collector}, {});
    const auto window = state.encode({.mel = mel, .audio_frames = audio_frames});
    if (decode) {
      const std::vector<TokenId> tokens = {1, 2, 3};
      const decode::StepScorer::Input input{state.open_row(window), tokens};
      std::vector<float> logits(static_cast<std::size_t>(state.vocabulary_size()));
      state.score({&input, 1}, logits);
    }
    EXPECT_TRUE(collector.status().has_value());
    return collector.take();
  }
};

TEST(Collector, LeavesOutThePaddingOfAWindow) {
  WhisperRun whisper;
  const std::int64_t frames = whisper.random.config.window_frames(), some = frames / 4 + 1;
  const auto seen = whisper.run(some);
  EXPECT_EQ(seen.at("model.encoder.conv1").rows(), some);
  EXPECT_EQ(seen.at("model.encoder.conv2").rows(), some);
  for (const char* layer : {"self_attn.qkv_proj", "self_attn.out_proj", "fc1", "fc2"}) {
    EXPECT_EQ(seen.at(std::string("model.encoder.layers.0.") + layer).rows(), (some + 1) / 2) << layer;
  }
  EXPECT_EQ(seen.at("model.decoder.layers.0.encoder_attn.kv_proj").rows(), (some + 1) / 2);
  EXPECT_EQ(seen.at("model.decoder.layers.0.fc1").rows(), 3);  // tokens are never padding
  const auto all = whisper.run(frames);
  EXPECT_EQ(all.at("model.encoder.layers.0.fc2").rows(), frames / 2);
}

TEST(Collector, KeepsPaddingApartWhereItIsAskedFor) {
  ThreadPool pool(1);
  Collector collector(pool, {{.path = "fc2", .channels = 2, .channel_histograms = true, .padding = true}}, 0);
  const float rows[] = {1, 2, 3, 4, 50, 60};
  collector.audio_rows(2);
  collector.layer_input("fc2", {rows, 1, 2, 2});
  collector.layer_input("fc2", {rows + 2, 2, 2, 2});
  EXPECT_EQ(collector.statistics().at("fc2").rows(), 2);
  EXPECT_EQ(collector.statistics().at("fc2").amax(1), 4);
  EXPECT_EQ(collector.statistics().at(padding_of("fc2")).rows(), 1);
  EXPECT_EQ(collector.statistics().at(padding_of("fc2")).amax(1), 60);
  EXPECT_EQ(collector.statistics().at(padding_of("fc2")).sample().rows, 0);
}

TEST(Collector, SeesTheSameWithAnyNumberOfThreads) {
  WhisperRun whisper;
  const auto one = whisper.run(100, 1), three = whisper.run(100, 3);
  ASSERT_EQ(one.size(), three.size());
  for (const auto& [path, statistics] : one) EXPECT_TRUE(statistics == three.at(path)) << path;
}

TEST(Collector, NamesTheLayerThatMetNaN) {
  ThreadPool pool(1);
  Collector collector(pool, {{"fc1", 2}}, 0);
  const float bad[] = {1, std::nanf("")};
  collector.layer_input("fc1", {bad, 1, 2, 2});
  const auto status = collector.status();
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message(), ::testing::HasSubstr("fc1"));
}

TEST(Collector, KeepsNothingOfOtherLayers) {
  ThreadPool pool(1);
  Collector collector(pool, {{"fc1", 2}}, 0);
  const float good[] = {1, 2};
  collector.layer_input("fc2", {good, 1, 2, 2});
  EXPECT_EQ(collector.statistics().at("fc1").rows(), 0);
  EXPECT_EQ(collector.statistics().size(), 1u);
}

}  // namespace
}  // namespace oasr::calib

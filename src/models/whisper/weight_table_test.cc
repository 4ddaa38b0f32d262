#include "models/whisper/weight_table.h"

#include <gtest/gtest.h>

#include "models/whisper/test_support.h"

namespace oasr::models::whisper {
namespace {

std::string error_of(const RandomCheckpoint& random) {
  const auto network = Network::load(random.config, random.checkpoint, {});
  return network ? "" : network.error().message();
}

// The random checkpoint, spelled as another container.
RandomCheckpoint respelled(const std::string& container, Spelling spelling) {
  RandomCheckpoint random(small_config());
  std::map<std::string, StoredTensor, std::less<>> tensors;
  const auto from = weight_table(random.config, Spelling::hugging_face);
  for (const auto& spec : weight_table(random.config, spelling)) {
    for (const auto& source : from) {
      if (source.name != spec.name || !random.checkpoint.tensors.tensors.contains(source.stored)) continue;
      tensors[spec.stored] = random.checkpoint.tensors.tensors.at(source.stored);
    }
  }
  random.checkpoint.tensors.tensors = std::move(tensors);
  random.checkpoint.container = container;
  return random;
}

TEST(WeightTable, TakesHuggingFaceWithAndWithoutTheHeadAndOpenAi) {
  EXPECT_EQ(error_of(RandomCheckpoint(small_config())), "");
  EXPECT_EQ(error_of(respelled("huggingface", Spelling::hugging_face_bare)), "");
  const auto openai = respelled("openai", Spelling::openai);
  EXPECT_TRUE(openai.checkpoint.tensors.tensors.contains("decoder.blocks.1.cross_attn_ln.weight"));
  EXPECT_EQ(error_of(openai), "");
}

TEST(WeightTable, NamesWhatIsMissingInTheCheckpointsOwnSpelling) {
  auto openai = respelled("openai", Spelling::openai);
  openai.checkpoint.tensors.tensors.erase("encoder.blocks.0.attn.key.weight");
  EXPECT_NE(error_of(openai).find("1 missing: encoder.blocks.0.attn.key.weight"), std::string::npos)
      << error_of(openai);
}

TEST(WeightTable, NamesALayerTooMany) {
  RandomCheckpoint random(small_config());
  random.config.encoder_layers = 1;
  EXPECT_NE(error_of(random).find("15 extra: model.encoder.layers.1.fc1.bias"), std::string::npos)
      << error_of(random);
}

TEST(WeightTable, NamesAKeyBiasWhichWhisperDoesNotHave) {
  RandomCheckpoint random(small_config());
  auto& tensors = random.checkpoint.tensors.tensors;
  tensors["model.encoder.layers.0.self_attn.k_proj.bias"] =
      tensors.at("model.encoder.layers.0.self_attn.q_proj.bias");
  EXPECT_NE(error_of(random).find("1 extra: model.encoder.layers.0.self_attn.k_proj.bias"),
            std::string::npos);
}

TEST(WeightTable, ReadsAnUntiedHeadOnlyWhenTheConfigurationSaysSo) {
  RandomCheckpoint random(small_config());
  auto& tensors = random.checkpoint.tensors.tensors;
  StoredTensor reversed = tensors.at("model.decoder.embed_tokens.weight");
  const auto other = std::make_shared<std::vector<float>>(
      kernels::random_floats(reversed.shape.elements(), 99, 0.1f));
  reversed.bytes = std::as_bytes(std::span(*other));
  tensors["proj_out.weight"] = reversed;
  const auto logits = [](std::shared_ptr<const Network> network) {
    Runner runner(std::move(network));
    const auto& config = runner.network->config;
    const auto window = runner.state.encode(
        std::vector<float>(static_cast<std::size_t>(config.num_mel_bins * config.window_frames()), 0.1f));
    return runner.score(runner.state.open_row(window), {1});
  };
  const auto tied = random.network();
  EXPECT_TRUE(tied->repeats_tied_head);
  EXPECT_EQ(logits(tied), logits(RandomCheckpoint(small_config()).network()));
  random.config.tie_word_embeddings = false;
  EXPECT_NE(logits(random.network()), logits(tied));
  tensors.erase("proj_out.weight");
  EXPECT_NE(error_of(random).find("1 missing: proj_out.weight"), std::string::npos);
}

}  // namespace
}  // namespace oasr::models::whisper

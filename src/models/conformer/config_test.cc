// train.yaml: what is read of it, what is refused by name, and the layers that follow from it.
#include "models/conformer/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/conformer/layer_table.h"
#include "models/conformer/test_support.h"
#include "quant/selection.h"

namespace oasr::models::conformer {
namespace {

using ::testing::HasSubstr;

Checkpoint with(const std::string& train_yaml) {
  Checkpoint checkpoint;
  checkpoint.container = "wenet";
  checkpoint.documents["train.yaml"] = train_yaml;
  return checkpoint;
}

// The LibriSpeech recipe of U2++: 12 blocks of 256, a decoder of 3 + 3.
constexpr const char* kLibriSpeech =
    R"({"encoder": "conformer", "encoder_conf": {"output_size": 256, "attention_heads": 4, "linear_units": 2048,
        "num_blocks": 12, "cnn_module_kernel": 15, "causal": true, "cnn_module_norm": "layer_norm"},
        "decoder": "bitransformer", "decoder_conf": {"num_blocks": 3, "r_num_blocks": 3, "attention_heads": 4,
        "linear_units": 2048}, "model_conf": {"reverse_weight": 0.3}, "input_dim": 80, "output_dim": 5002})";

TEST(ConformerConfig, ReadsTheRecipe) {
  const Config config = read_config(with(kLibriSpeech)).value();
  EXPECT_EQ(config.encoder.num_blocks, 12);
  EXPECT_FALSE(config.encoder.batch_norm);
  EXPECT_EQ(config.decoder->r_num_blocks, 3);
  EXPECT_EQ(config.sos, 5001);
  EXPECT_EQ(config.reverse_weight, 0.3);
  EXPECT_EQ(config.subsampling_rate(), 4);
  EXPECT_EQ(config.right_context(), 6);
  EXPECT_EQ(config.subsampled_bins(), 19);
  EXPECT_EQ(config.encoder_frames(67), 16);
  EXPECT_EQ(config.encoder_frames(6), 0);
}

TEST(ConformerConfig, KnowsTheRatesOfTheInputLayers) {
  const auto config = [](const char* layer) {
    return read_config(with(small_train_yaml(std::string(R"("input_layer": ")") + layer + "\""))).value();
  };
  EXPECT_EQ(config("conv2d6").subsampling_rate(), 6);
  EXPECT_EQ(config("conv2d6").right_context(), 10);
  EXPECT_EQ(config("conv2d8").subsampling_rate(), 8);
  EXPECT_EQ(config("conv2d8").right_context(), 14);
}

TEST(ConformerConfig, RefusesOtherNetworksByTheKey) {
  const std::pair<const char*, const char*> refused[] = {
      {R"("concat_after": true)", "encoder_conf.concat_after is true"},
      {R"("macaron_style": false)", "encoder_conf.macaron_style is false"},
      {R"("use_cnn_module": false)", "encoder_conf.use_cnn_module is false"},
      {R"("pos_enc_layer_type": "abs_pos")", "encoder_conf.pos_enc_layer_type is \"abs_pos\""},
      {R"("selfattention_layer_type": "rel_selfattn_v2")", "selfattention_layer_type"},
      {R"("input_layer": "linear")", "encoder_conf.input_layer is \"linear\""},
      {R"("norm_eps": 1e-6)", "encoder_conf.norm_eps is not 1e-5"},
      {R"("output_size": 0)", "encoder_conf.output_size is 0"},
      {R"("output_size": "wide")", "encoder_conf.output_size is no whole number"},
      {R"("attention_heads": 5)", "does not divide"},
      {R"("cnn_module_norm": "rms_norm")", "encoder_conf.cnn_module_norm"},
      {R"("causal": false, "cnn_module_kernel": 8)", "is even"},
  };
  for (const auto& [line, what] : refused) {
    // The later of two equal keys counts for the JSON parser.
    const auto config = read_config(with(small_train_yaml(line)));
    ASSERT_FALSE(config) << line;
    EXPECT_THAT(config.error().message(), HasSubstr(what));
    EXPECT_THAT(config.error().message(), HasSubstr("train.yaml"));
  }
}

TEST(ConformerConfig, RefusesAnotherEncoderAndAMissingVocabulary) {
  EXPECT_THAT(read_config(with(R"({"encoder": "transformer"})")).error().message(), HasSubstr("served is conformer"));
  EXPECT_THAT(read_config(with(R"({"encoder": "conformer"})")).error().message(), HasSubstr("output_dim is missing"));
  EXPECT_THAT(read_config(with(R"({"encoder": "conformer", "decoder": "transformer", "output_dim": 9,
                                   "model_conf": {"reverse_weight": 0.3}})")).error().message(),
              HasSubstr("no right-to-left decoder"));
}

TEST(ConformerConfig, RefusesASectionThatIsNoMapping) {
  EXPECT_THAT(read_config(with(R"({"encoder_conf": {}, "decoder_conf": [1], "output_dim": 9})")).error().message(),
              HasSubstr("decoder_conf is not a mapping"));
}

TEST(ConformerLayers, AreTheNinetySixAndSixtyProductsThatAreQuantized) {
  const Config config = read_config(with(kLibriSpeech)).value();
  const auto spec = quant::select({.scheme = "int8_w8a8"}, layer_facts(config), quant::Origin::online).value();
  int encoder = 0, decoder = 0;
  for (const auto& [path, layer] : spec.layers) {
    encoder += path.starts_with("encoder.encoders.");
    decoder += path.starts_with("decoder.");
  }
  EXPECT_EQ(encoder, 96);
  EXPECT_EQ(decoder, 60);
  EXPECT_EQ(spec.layers.size(), 156u);
  for (const char* path : {"encoder.embed.out.0", "encoder.encoders.0.self_attn.linear_pos", "ctc.ctc_lo",
                           "decoder.left_decoder.output_layer"}) {
    EXPECT_EQ(spec.find(path), nullptr) << path;
  }
}

TEST(ConformerLayers, FoldAsTheStructureAllows) {
  const quant::QuantLayout layout = quantization_layout(read_config(with(kLibriSpeech)).value());
  const auto group = [&](const std::string& consumer) -> const quant::SmoothGroup& {
    return *std::ranges::find_if(layout.groups, [&](const auto& g) {
      return std::ranges::find(g.consumers, consumer) != g.consumers.end();
    });
  };
  using quant::Fold;
  const std::string block = "encoder.encoders.5.";
  EXPECT_EQ(group(block + "feed_forward_macaron.w_1").producer, block + "norm_ff_macaron");
  EXPECT_TRUE(group(block + "feed_forward.w_1").fuse_output_quant);
  EXPECT_EQ(group(block + "feed_forward.w_2").fold, Fold::runtime);  // swish
  EXPECT_EQ(group(block + "self_attn.linear_qkv").fold, Fold::norm_affine);
  EXPECT_EQ(group(block + "self_attn.linear_out").fold, Fold::v_to_o);
  EXPECT_EQ(group(block + "conv_module.pointwise_conv1").fold, Fold::norm_affine);
  EXPECT_FALSE(group(block + "conv_module.pointwise_conv1").fuse_output_quant);
  EXPECT_EQ(group(block + "conv_module.pointwise_conv2").fold, Fold::runtime);
  const std::string decoder = "decoder.right_decoder.decoders.2.";
  EXPECT_EQ(group(decoder + "feed_forward.w_2").fold, Fold::producer_rows);  // ReLU
  EXPECT_EQ(group(decoder + "src_attn.linear_k").fold, Fold::runtime);
  EXPECT_EQ(group(decoder + "src_attn.linear_q").producer, decoder + "norm2");
  EXPECT_EQ(group(decoder + "self_attn.linear_q").consumers.size(), 3u);
  // pos_bias_u, pos_bias_v and linear_pos stand in the scores of the encoder's attention too.
  for (const quant::AttentionScores& attention : layout.attention)
    EXPECT_TRUE(attention.key.starts_with("decoder.")) << attention.key;
  EXPECT_EQ(layout.attention.size(), 6u * 2);
  EXPECT_EQ(layout.chains.size(), 12u * 2 + 6);
  EXPECT_EQ(layout.batch_invariant.size(), 13u);  // out.0 and twelve linear_pos
}

}  // namespace
}  // namespace oasr::models::conformer

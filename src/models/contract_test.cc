// What every architecture of the table promises of its layers, on a random checkpoint of each.
#include <gtest/gtest.h>

#include <set>

#include "layers/links.h"
#include "models/conformer/test_support.h"
#include "models/registry.h"
#include "models/whisper/test_support.h"

namespace oasr::models {
namespace {

Checkpoint whisper_checkpoint(bool tied) {
  auto config = whisper::small_config();
  config.vocab_size = 304;
  config.tie_word_embeddings = tied;
  return whisper::RandomCheckpoint(config).checkpoint;
}

// A new row of the table needs a row here.
struct Sample {
  std::string_view architecture;
  std::string_view what;
  Checkpoint (*make)();
};
constexpr Sample kSamples[] = {
    {"whisper", "tied head", [] { return whisper_checkpoint(true); }},
    {"whisper", "head of its own", [] { return whisper_checkpoint(false); }},
    {"conformer", "U2++", [] { return conformer::random_checkpoint(conformer::small_train_yaml()); }},
    {"conformer", "U2", [] { return conformer::random_checkpoint(conformer::small_train_yaml({}, "transformer")); }},
    {"conformer", "batch norm, looks ahead, three convolutions",
     [] {
       return conformer::random_checkpoint(conformer::small_train_yaml(
           R"("causal": false, "cnn_module_norm": "batch_norm", "input_layer": "conv2d8")"));
     }},
};

// A sample, loaded at full precision or with every layer of the default kinds in int8.
struct Loaded {
  explicit Loaded(const Sample& sample, const std::string& scheme = {}) : checkpoint(sample.make()) {
    architecture = find_architecture(checkpoint).value();
    facts = architecture->layer_facts(checkpoint).value();
    spec = quant::select({.scheme = scheme}, facts, quant::Origin::online).value();
    model = architecture->load(checkpoint,
                               {.quantization = &spec,
                                .methods = {.scaled_mm = &kernels::scaled_mm_implementation(
                                                kernels::ScaledMMBackend::native)}},
                               {.pool = &pool, .isa = detected_isa()}).value();
  }
  ThreadPool pool{1};
  Checkpoint checkpoint;
  const Architecture* architecture;
  std::vector<quant::LayerFacts> facts;
  quant::QuantizationSpec spec;
  std::shared_ptr<const SpeechModel> model;
};

TEST(Architectures, EachHasASampleThatIsItsOwn) {
  for (const Architecture& row : architectures()) {
    EXPECT_TRUE(std::ranges::any_of(kSamples, [&](const Sample& s) { return s.architecture == row.name; }))
        << row.name;
  }
  for (const Sample& sample : kSamples) {
    const Checkpoint checkpoint = sample.make();
    for (const Architecture& row : architectures()) {
      EXPECT_EQ(row.detect(checkpoint), row.name == sample.architecture) << row.name;
    }
  }
}

TEST(Architectures, FactsAreTheLayersOfTheLoadedModel) {
  for (const Sample& sample : kSamples) {
    SCOPED_TRACE(sample.what);
    const Loaded loaded(sample);
    const layers::LayerList& layers = loaded.model->layers();
    std::set<std::string> paths;
    for (const quant::LayerFacts& fact : loaded.facts) {
      SCOPED_TRACE(fact.path);
      EXPECT_TRUE(paths.insert(fact.path).second) << "twice";
      if (fact.kind == quant::QuantKind::conv1d) {
        const layers::Conv1d* convolution = layers.find_convolution(fact.path);
        ASSERT_NE(convolution, nullptr);
        const Shape weight = convolution->method().state(fact.path)[0].shape;
        EXPECT_EQ(weight[0], fact.out_features);
        EXPECT_EQ(weight[1] * fact.groups, fact.in_features);
        continue;
      }
      if (fact.kind == quant::QuantKind::conv2d) {
        const layers::Conv2d* convolution = layers.find_image_convolution(fact.path);
        ASSERT_NE(convolution, nullptr);
        EXPECT_EQ(convolution->method().shape().c_out, fact.out_features);
        EXPECT_EQ(convolution->method().shape().c_in * fact.groups, fact.in_features);
        continue;
      }
      const layers::Linear* linear = layers.find_linear(fact.path);
      if (linear == nullptr) {  // numbers that are another layer's
        EXPECT_NE(fact.not_quantizable, "");
        continue;
      }
      EXPECT_EQ(linear->method().in_features(), fact.in_features);
      EXPECT_EQ(linear->method().out_features(), fact.out_features);
    }
    for (const layers::Linear* linear : layers.linears)
      EXPECT_TRUE(paths.contains(linear->path())) << linear->path();
    for (const layers::Conv1d* conv : layers.convolutions)
      EXPECT_TRUE(paths.contains(conv->path())) << conv->path();
    for (const layers::Conv2d* conv : layers.image_convolutions)
      EXPECT_TRUE(paths.contains(conv->path())) << conv->path();
  }
}

TEST(Architectures, LayoutsNameRealLayers) {
  for (const Sample& sample : kSamples) {
    const Loaded loaded(sample);
    const layers::LayerList& layers = loaded.model->layers();
    const auto layout = loaded.architecture->quantization_layout(loaded.checkpoint).value();
    std::set<std::string> consumed;
    for (const quant::SmoothGroup& group : layout.groups) {
      ASSERT_FALSE(group.consumers.empty());
      std::int64_t width = 0;
      for (const std::string& path : group.consumers) {
        const layers::Linear* consumer = layers.find_linear(path);
        ASSERT_NE(consumer, nullptr) << path;
        EXPECT_TRUE(consumed.insert(path).second) << path << " has two smoothers";
        if (width == 0) width = consumer->method().in_features();
        EXPECT_EQ(consumer->method().in_features(), width) << path << " reads another input";
      }
      switch (group.fold) {
        case quant::Fold::norm_affine:
          EXPECT_NE(layers.find_norm(group.producer), nullptr) << group.producer;
          break;
        case quant::Fold::v_to_o:
        case quant::Fold::producer_rows:
          EXPECT_NE(layers.find_linear(group.producer), nullptr) << group.producer;
          break;
        case quant::Fold::runtime: EXPECT_EQ(group.producer, "");
      }
      EXPECT_TRUE(!group.fuse_output_quant || group.fold == quant::Fold::norm_affine);
    }
    for (const quant::GemmChain& chain : layout.chains) {
      const layers::Linear *producer = layers.find_linear(chain.producer),
                           *consumer = layers.find_linear(chain.consumer);
      ASSERT_NE(producer, nullptr) << chain.producer;
      ASSERT_NE(consumer, nullptr) << chain.consumer;
      EXPECT_EQ(producer->method().out_features(), consumer->method().in_features());
    }
    for (const quant::AttentionScores& attention : layout.attention) {
      const auto outputs = [&](const std::string& path) {
        const layers::Linear* product = layers.find_linear(path);
        EXPECT_NE(product, nullptr) << path;
        return product == nullptr ? 0 : product->method().out_features();
      };
      const std::int64_t d = attention.head_dim;
      EXPECT_GT(d, 0) << attention.key;
      EXPECT_EQ(attention.query_heads % attention.kv_heads, 0) << attention.key;
      EXPECT_LE(attention.query_row + attention.query_heads * d, outputs(attention.query)) << attention.query;
      EXPECT_LE(attention.key_row + attention.key_channels(), outputs(attention.key)) << attention.key;
    }
    for (const std::string& path : layout.batch_invariant)
      EXPECT_NE(layers.find_linear(path), nullptr) << path;
  }
}

TEST(Architectures, QuantizeEveryLayerThatSelectionChoosesAndNoOther) {
  for (const Sample& sample : kSamples) {
    SCOPED_TRACE(sample.what);
    const Loaded loaded(sample, "int8_w8a8");
    const layers::LayerList& layers = loaded.model->layers();
    std::size_t quantized = 0;
    for (const layers::Linear* linear : layers.linears) {
      const auto* chosen = loaded.spec.find(linear->path());
      EXPECT_EQ(linear->method().info(Isa::scalar).scheme, chosen == nullptr ? "" : chosen->scheme)
          << linear->path();
      quantized += chosen != nullptr;
    }
    EXPECT_EQ(quantized, loaded.spec.layers.size());
    EXPECT_EQ(loaded.spec.find("proj_out") != nullptr, sample.what == "head of its own");
    const auto layout = loaded.architecture->quantization_layout(loaded.checkpoint).value();
    EXPECT_FALSE(layers::link(layout, layers).value().empty());
  }
}

TEST(Architectures, CountTheModelsNumbersAndNotWhatAContainerAdds) {
  for (const Sample& sample : kSamples) {
    if (sample.what.starts_with("batch norm")) continue;  // folded away
    const Loaded loaded(sample);
    std::int64_t stored = 0;
    for (const auto& [name, tensor] : loaded.checkpoint.tensors.tensors) stored += tensor.shape.elements();
    EXPECT_EQ(loaded.model->info().parameters, stored);
    EXPECT_EQ(Loaded(sample, "int8_w8a8").model->info().parameters, stored);
  }
}

}  // namespace
}  // namespace oasr::models

// Two versions of a small random model, number by number.
#include "calib/probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "calib/plan.h"
#include "load/convert.h"
#include "load/load.h"
#include "models/conformer/test_support.h"
#include "models/registry.h"
#include "models/whisper/test_support.h"
#include "testing/paths.h"

namespace oasr::calib {
namespace {

std::vector<float> tone(double seconds, double pitch) {
  std::vector<float> samples(static_cast<std::size_t>(seconds * 16000));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double t = static_cast<double>(i) / 16000;
    samples[i] =
        static_cast<float>((0.2 + 0.1 * std::sin(20 * t)) * std::sin(2 * std::numbers::pi * pitch * t));
  }
  return samples;
}

Checkpoint whisper_checkpoint() {
  auto config = models::whisper::small_config();
  config.max_source_positions = 1500;
  config.vocab_size = 1600;
  return models::whisper::RandomCheckpoint(config).checkpoint;
}

Checkpoint conformer_checkpoint(const std::string& decoder = "bitransformer") {
  return models::conformer::random_checkpoint(models::conformer::small_train_yaml({}, decoder));
}

// The same checkpoint with noise of this size, times each value, on the matrices of its products.
Checkpoint with_noise(Checkpoint checkpoint, float size) {
  std::uint32_t random = 1;
  for (auto& [name, tensor] : checkpoint.tensors.tensors) {
    // What is not finite in a table or a depthwise filter is found when it is loaded.
    const bool table = name.find("embed_positions") != name.npos;
    if (tensor.shape.rank() != 2 || !name.ends_with(".weight") || table) continue;
    auto values = std::make_shared<std::vector<float>>(models::whisper::floats_of(tensor));
    for (float& value : *values) {
      random = random * 1664525u + 1013904223u;
      value *= 1 + size * (static_cast<float>(random >> 8) * 0x1p-23f - 1.0f);
    }
    tensor.bytes = std::as_bytes(std::span(*values));
    checkpoint.tensors.owners.push_back(std::move(values));
  }
  return checkpoint;
}

struct ProbeTest : ::testing::TestWithParam<Checkpoint (*)()> {
  ThreadPool pool{2};
  ExecContext context{.pool = &pool, .isa = detected_isa()};
  std::vector<std::vector<float>> recordings = {tone(1.5, 300), tone(0.8, 900)};

  std::shared_ptr<const models::SpeechModel> load(const Checkpoint& checkpoint,
                                                  const std::string& scheme = {}) {
    return load::load_checkpoint(checkpoint, {.quantization = {.scheme = scheme}}, context).value().model;
  }
};

TEST_P(ProbeTest, TheSameModelSaysTheSameBits) {
  const auto model = load(GetParam()());
  const Probe probe = Probe::make(*model, context, recordings).value();
  ASSERT_EQ(probe.reference().utterances.size(), 2u);
  const Outputs again = probe.run(*model).value();
  EXPECT_TRUE(same_bits(probe.reference(), again));
  EXPECT_EQ(divergence(probe.reference(), again), 0);
  EXPECT_EQ(greatest_difference(probe.reference(), again), 0);
}

TEST_P(ProbeTest, RowsAreDistributionsWhichTheHypothesisDoesNotLeave) {
  const Probe probe = Probe::make(*load(GetParam()()), context, recordings).value();
  for (const UtteranceOutputs& utterance : probe.reference().utterances) {
    ASSERT_GT(utterance.rows, 0);
    const std::size_t width = utterance.log_probs.size() / static_cast<std::size_t>(utterance.rows);
    EXPECT_EQ(width * static_cast<std::size_t>(utterance.rows), utterance.log_probs.size());
    for (std::size_t at = 0; at < utterance.log_probs.size(); at += width) {
      double sum = 0;
      for (std::size_t k = 0; k < width; ++k) sum += std::exp(double{utterance.log_probs[at + k]});
      // Logits and norms below 16 in size: the norm and the difference are rounded by 2^-21 each, and
      // log_sum_exp() is right to 3e-7.
      EXPECT_NEAR(sum, 1, 0x1p-20 + 3e-7);
    }
    for (const float score : utterance.token_scores) EXPECT_LE(score, 0);
  }
}

TEST_P(ProbeTest, ThreadsDoNotChangeABit) {
  const auto model = load(GetParam()());
  ThreadPool one{1}, three{3};
  const Probe alone = Probe::make(*model, {.pool = &one, .isa = detected_isa()}, recordings).value();
  const Probe together = Probe::make(*model, {.pool = &three, .isa = detected_isa()}, recordings).value();
  EXPECT_TRUE(same_bits(alone.reference(), together.reference()));
}

TEST_P(ProbeTest, MoreNoiseDivergesMore) {
  const Checkpoint checkpoint = GetParam()();
  const Probe probe = Probe::make(*load(checkpoint), context, recordings).value();
  double last = 0;
  for (const float size : {1e-3f, 1e-2f, 1e-1f}) {
    const Outputs other = probe.run(*load(with_noise(checkpoint, size))).value();
    EXPECT_FALSE(same_bits(probe.reference(), other));
    const double nats = divergence(probe.reference(), other);
    EXPECT_GT(nats, last) << size;
    EXPECT_GT(greatest_difference(probe.reference(), other), 0);
    last = nats;
  }
}

TEST_P(ProbeTest, ALayerSwappedInPlaceIsHeardAndGivesTheBitsBackWhenItReturns) {
  const Checkpoint checkpoint = GetParam()();
  const auto model = load(checkpoint), int8 = load(checkpoint, "int8_w8a8");
  recordings.pop_back();
  const Probe probe = Probe::make(*model, context, recordings).value();
  int shown = 0;
  for (layers::Linear* linear : model->layers().linears) {
    layers::Linear* other = int8->layers().find_linear(linear->path());
    if (other->method().info(context.isa).scheme.empty()) continue;
    std::swap(*linear, *other);
    const Outputs swapped = probe.run(*model).value();
    shown += divergence(probe.reference(), swapped) > 0 && !same_bits(probe.reference(), swapped);
    std::swap(*linear, *other);
  }
  EXPECT_GT(shown, 0);
  EXPECT_TRUE(same_bits(probe.reference(), probe.run(*model).value()));
}

TEST_P(ProbeTest, OfALongRecordingTheFirstThirtySecondsCount) {
  const auto model = load(GetParam()());
  const std::vector<std::vector<float>> longer = {tone(31, 300)}, cut = {tone(30, 300)};
  const Probe a = Probe::make(*model, context, longer).value(), b = Probe::make(*model, context, cut).value();
  EXPECT_TRUE(same_bits(a.reference(), b.reference()));
}

TEST_P(ProbeTest, WhatCanNotBeProbedIsRefused) {
  const auto model = load(GetParam()());
  EXPECT_EQ(Probe::make(*model, context, {}).error().code, ErrorCode::invalid_argument);
  recordings.push_back(std::vector<float>(100));
  const auto error = Probe::make(*model, context, recordings).error();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.where, "recording 3");
}

TEST_P(ProbeTest, NumbersThatAreNoneAreAnError) {
  Checkpoint checkpoint = GetParam()();
  const Probe probe = Probe::make(*load(checkpoint), context, recordings).value();
  const auto broken = load(with_noise(checkpoint, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_EQ(probe.run(*broken).error().code, ErrorCode::bad_checkpoint);
  EXPECT_EQ(Probe::make(*broken, context, recordings).error().code, ErrorCode::bad_checkpoint);
}

// Of all attention that the architecture declares; with powers of two, which round nothing, the same bits.
TEST_P(ProbeTest, SmoothedKeysSayTheSame) {
  const auto loaded = load::load_checkpoint(GetParam()(), {}, context).value();
  const auto layout =
      models::find_architecture(loaded.source).value()->quantization_layout(loaded.source).value();
  const Probe probe = Probe::make(*loaded.model, context, recordings).value();
  std::vector<WatchedLayer> keys;
  for (const quant::AttentionScores& attention : layout.attention) {
    keys.push_back({.path = attention.key,
                    .channels = attention.key_channels(),
                    .output = true,
                    .first_channel = attention.key_row});
  }
  Collector collector(pool, keys, 0);
  ASSERT_TRUE(probe.run(*loaded.model, &collector));
  const Weights weights(loaded.model->layers());
  const Statistics statistics = collector.take();
  Planner planner(loaded.model->layers(), weights, layout, statistics, {.key_alpha = 1.0}, context);
  const Plan plan = planner.make({}, {}).value();
  ASSERT_FALSE(layout.attention.empty());
  EXPECT_EQ(plan.keys.size(), layout.attention.size());
  Folds folds;
  for (KeyPlan smoothed : plan.keys) {
    EXPECT_GT(smoothed.scales.moved, 0) << smoothed.attention.key;
    for (double& lambda : smoothed.scales.lambda) lambda = std::exp2(std::nearbyint(std::log2(lambda)));
    ASSERT_TRUE(fold_keys(smoothed, weights, folds));
  }
  const oasr::testing::TemporaryFolder temporary;
  NativeContent content = load::content_of(loaded);
  content.tensors = folded(loaded.model->layers().state(), folds);
  write_native(temporary.path() / "folded", content).value();
  const auto folded_model = load::load_model(temporary.path() / "folded", {}, context).value();
  EXPECT_TRUE(same_bits(probe.reference(), probe.run(*folded_model.model).value()));
}

INSTANTIATE_TEST_SUITE_P(Families, ProbeTest,
                         ::testing::Values([] { return whisper_checkpoint(); },
                                           [] { return conformer_checkpoint(); },
                                           [] { return conformer_checkpoint("transformer"); }));

struct ProbeFamilies : ProbeTest {};

TEST_F(ProbeFamilies, AModelOfAnotherIsNoVersion) {
  const Probe probe = Probe::make(*load(whisper_checkpoint()), context, recordings).value();
  EXPECT_EQ(probe.run(*load(conformer_checkpoint())).error().code, ErrorCode::invalid_argument);
}

TEST_F(ProbeFamilies, DecodersOfACtcModelAreHeardInEachDirection) {
  const auto model = load(conformer_checkpoint()), int8 = load(conformer_checkpoint(), "int8_w8a8");
  const Probe probe = Probe::make(*model, context, recordings).value();
  for (const char* path : {"decoder.left_decoder.decoders.0.feed_forward.w_1",
                           "decoder.right_decoder.decoders.0.feed_forward.w_1"}) {
    layers::Linear *linear = model->layers().find_linear(path), *other = int8->layers().find_linear(path);
    ASSERT_NE(linear, nullptr) << path;
    std::swap(*linear, *other);
    const Outputs swapped = probe.run(*model).value();
    std::swap(*linear, *other);
    EXPECT_GT(divergence(probe.reference(), swapped), 0) << path;
    EXPECT_EQ(probe.reference().utterances[0].log_probs, swapped.utterances[0].log_probs) << path;  // of CTC
  }
}

TEST(Divergence, IsTheMeanOfRowsPlusTheMeanOfScores) {
  const auto ln = [](double p) { return static_cast<float>(std::log(p)); };
  const Outputs a{{{2, {ln(0.5), ln(0.5), ln(0.25), ln(0.75)}, {-1, -2}}}};
  const Outputs b{{{2, {ln(0.25), ln(0.75), ln(0.25), ln(0.75)}, {-1.5, -1.5}}}};
  const double row = 0.5 * std::log(2.0) + 0.5 * std::log(0.5 / 0.75);
  EXPECT_NEAR(divergence(a, b), row / 2 + 0.5, 1e-6);  // the logarithms are floats
  EXPECT_NEAR(greatest_difference(a, b), std::log(2.0), 1e-6);
  EXPECT_FALSE(same_bits(a, b));
}

}  // namespace
}  // namespace oasr::calib

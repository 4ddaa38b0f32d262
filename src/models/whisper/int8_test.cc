// int8 Whisper on a small random network: the bits do not depend on lane, threads, backend, links or
// neighbours, and steps allocate nothing.
#include <gtest/gtest.h>

#include "layers/links.h"
#include "models/whisper/int8_support.h"
#include "testing/allocations.h"
#include "testing/environment.h"

namespace oasr::models::whisper {
namespace {

std::vector<float> random_mel(unsigned seed) {
  const Config config = small_config();
  return kernels::random_floats(config.num_mel_bins * config.window_frames(), seed);
}

// What a network computes of a window: the encoder's output, then the logits of a prompt and of steps.
std::vector<float> computed(const std::shared_ptr<const Network>& network, int threads = 2,
                            Isa isa = detected_isa()) {
  Runner runner(network, threads, 1, 1, DType::f16, isa);
  const WindowId window = runner.state.encode(random_mel(3));
  const auto hidden = runner.state.encoder_output();
  std::vector<float> all(hidden.begin(), hidden.end());
  const decode::RowId row = runner.state.open_row(window);
  for (const std::vector<TokenId>& tokens : {std::vector<TokenId>{28, 7, 300, 12, 5}, {9}, {200}}) {
    const auto logits = runner.score(row, tokens);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  EXPECT_FALSE(runner.state.take_fault());
  EXPECT_TRUE(std::ranges::all_of(all, [](float v) { return std::isfinite(v); }));
  return all;
}

std::vector<layers::Link> linked(const Network& network) {
  return layers::link(quantization_layout(network.config), network.layers).value();
}

// A way to have an int8 network: made afresh, so that one can be linked and another not.
struct Case {
  const char* name;
  std::shared_ptr<const Network> (*make)(kernels::ScaledMMBackend backend);

  friend void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }
};
constexpr Case kCases[] = {
    {"online",
     [](kernels::ScaledMMBackend backend) { return online_int8(RandomCheckpoint(small_config()), backend); }},
    {"static with convolutions",
     [](kernels::ScaledMMBackend backend) { return calibrated_network(small_config(), backend); }},
};
constexpr auto kNative = kernels::ScaledMMBackend::native, kReference = kernels::ScaledMMBackend::reference;

class WhisperInt8 : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Networks, WhisperInt8, ::testing::ValuesIn(kCases), [](const auto& test) {
  return std::string(test.param.name).substr(0, 6);
});

TEST_P(WhisperInt8, HasTheSameBitsOnEveryLaneAndAnyNumberOfThreads) {
  const auto network = GetParam().make(kNative);
  const auto expected = computed(network, 1, Isa::scalar);
  for (const auto& [isa, name] : isa_names()) {
    if (!isa_supported(isa)) continue;
    for (const int threads : {1, 2, 5}) {
      EXPECT_EQ(computed(network, threads, isa), expected) << name << ", threads " << threads;
    }
  }
}

TEST_P(WhisperInt8, HasTheSameBitsLinkedAndNot) {
  const auto plain = GetParam().make(kNative), fused = GetParam().make(kNative);
  EXPECT_FALSE(linked(*fused).empty());
  const auto expected = computed(plain);
  for (const auto& [isa, name] : isa_names()) {
    if (!isa_supported(isa)) continue;
    EXPECT_EQ(computed(fused, 3, isa), expected) << name;
  }
  const testing::Variable off("OASR_QUANT_FUSION", "0");
  const auto unfused = GetParam().make(kNative);
  EXPECT_TRUE(linked(*unfused).empty());
  EXPECT_EQ(computed(unfused), expected);
}

TEST_P(WhisperInt8, HasTheSameBitsOnTheReferenceBackend) {
  const auto reference = GetParam().make(kReference);
  EXPECT_TRUE(reference->layers.linears[0]->method().info(Isa::scalar).reference);
  const auto expected = computed(GetParam().make(kNative));
  EXPECT_EQ(computed(reference), expected);
  linked(*reference);
  EXPECT_EQ(computed(reference), expected);
}

// Definitions allocate, and lanes do not (below): that they do shows that they ran.
TEST_P(WhisperInt8, HasTheSameBitsWithEveryOpOnItsReference) {
  const auto reference = GetParam().make(kReference);
  linked(*reference);
  EXPECT_EQ(computed(reference, 2, Isa::reference), computed(GetParam().make(kNative)));
  Runner runner(reference, 1, 1, 1, DType::f16, Isa::reference);
  const decode::RowId row = runner.state.open_row(runner.state.encode(random_mel(1)));
  std::vector<TokenId> token = {5};
  const decode::StepScorer::Input input{row, token};
  std::vector<float> logits(301);
  runner.state.score({&input, 1}, logits);
  const std::int64_t before = testing::allocations();
  runner.state.score({&input, 1}, logits);
  EXPECT_GT(testing::allocations() - before, 0);
}

TEST_P(WhisperInt8, ComputesARowWithoutItsNeighbours) {
  const auto network = GetParam().make(kNative);
  linked(*network);
  const std::vector<std::vector<TokenId>> prompts = {
      {28, 3, 9}, {28}, std::vector<TokenId>(90, 17), {28, 30, 31, 5}};
  Runner together(network, 2, 2, 4, DType::f16);
  const WindowId windows[] = {together.state.encode(random_mel(1)), together.state.encode(random_mel(2))};
  std::vector<decode::StepScorer::Input> inputs;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    inputs.push_back({together.state.open_row(windows[i % 2]), prompts[i]});
  }
  std::vector<float> logits(prompts.size() * 301);
  together.state.score(inputs, logits);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Runner alone(network, 1, 1, 1, DType::f16);
    const auto expected =
        alone.score(alone.state.open_row(alone.state.encode(random_mel(i % 2 == 0 ? 1 : 2))), prompts[i]);
    EXPECT_TRUE(
        std::equal(expected.begin(), expected.end(), logits.begin() + static_cast<std::ptrdiff_t>(301 * i)))
        << i;
  }
}

TEST_P(WhisperInt8, StepsAndWindowsAllocateNothing) {
  const auto network = GetParam().make(kNative);
  linked(*network);
  Runner runner(network, 2, 2, 2, DType::f16);
  const auto mel = random_mel(1);
  const WindowId window = runner.state.encode(mel);
  const decode::RowId row = runner.state.open_row(window);
  std::vector<TokenId> token = {5};
  const decode::StepScorer::Input input{row, token};
  std::vector<float> logits(301);
  runner.state.score({&input, 1}, logits);
  const std::int64_t before = testing::allocations();
  for (int step = 0; step < 100; ++step) runner.state.score({&input, 1}, logits);
  runner.state.release(runner.state.encode(mel));
  EXPECT_EQ(testing::allocations() - before, 0);
}

// The links that Whisper's structure allows, on a network where every method allows them.
TEST(WhisperLinks, AreAllNormsBeforeDynamicProductsAndTheEncodersStaticFc2) {
  const auto network = calibrated_network(small_config(), kNative);
  std::vector<std::string> expected;
  for (const std::string side : {"encoder", "decoder"}) {
    for (const std::string layer : {"0", "1"}) {
      const std::string block = "model." + side + ".layers." + layer + ".";
      expected.push_back(block + "self_attn_layer_norm>" + block + "self_attn.qkv_proj");
      if (side == "decoder")
        expected.push_back(block + "encoder_attn_layer_norm>" + block + "encoder_attn.q_proj");
      expected.push_back(block + "final_layer_norm>" + block + "fc1");
      if (side == "encoder") expected.push_back(block + "fc1>" + block + "fc2");
    }
  }
  std::vector<std::string> armed;
  for (const layers::Link& link : linked(*network)) armed.push_back(link.producer + ">" + link.consumer);
  std::ranges::sort(expected);
  std::ranges::sort(armed);
  EXPECT_EQ(armed, expected);
}

TEST(WhisperFaults, NameTheLayerAndOnlyTheRowThatIsBad) {
  RandomCheckpoint random(small_config());
  random.set("model.decoder.embed_tokens.weight", 77 * 64, std::nanf(""));  // what token 77 reads
  const RandomCheckpoint other(small_config(), 50);  // a head of its own, without the NaN
  random.checkpoint.tensors.tensors["proj_out.weight"] =
      other.checkpoint.tensors.tensors.at("model.decoder.embed_tokens.weight");
  random.config.tie_word_embeddings = false;
  for (const bool quantized : {false, true}) {
    const auto network = quantized ? online_int8(random, kNative) : random.network();
    Runner runner(network, 2, 1, 2, DType::f16);
    const WindowId window = runner.state.encode(random_mel(1));
    const decode::RowId good = runner.state.open_row(window), bad = runner.state.open_row(window);
    const std::vector<TokenId> clean = {28, 5}, broken = {28, 77};
    const std::vector<decode::StepScorer::Input> inputs = {{good, clean}, {bad, broken}};
    std::vector<float> logits(2 * 301);
    runner.state.score(inputs, logits);
    const auto fault = runner.state.take_fault();
    ASSERT_TRUE(fault) << quantized;
    EXPECT_EQ(fault->row, bad);
    EXPECT_EQ(fault->layer, quantized ? "model.decoder.layers.0.self_attn.qkv_proj" : "the output head");
    EXPECT_FALSE(runner.state.take_fault());
    Runner alone(network, 1, 1, 1, DType::f16);
    const auto expected = alone.score(alone.state.open_row(alone.state.encode(random_mel(1))), clean);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), logits.begin()));
  }
}

TEST(WhisperFaults, OfTheEncoderAreToldByTheWindow) {
  RandomCheckpoint random(small_config());
  random.set("model.encoder.layers.1.fc1.weight", 10, std::nanf(""));
  Runner runner(random.network());
  runner.state.encode(random_mel(1));
  const auto fault = runner.state.take_fault();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->layer, "the encoder");
  EXPECT_EQ(fault->row, -1);
  EXPECT_FALSE(runner.state.take_fault());
}

}  // namespace
}  // namespace oasr::models::whisper

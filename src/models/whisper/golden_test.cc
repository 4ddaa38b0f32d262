// A tiny random checkpoint, every tensor compared with what transformers computes in float32.
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/safetensors.h"
#include "models/whisper/test_support.h"
#include "testing/paths.h"

namespace oasr::models::whisper {
namespace {

namespace fs = std::filesystem;

struct Golden {
  StateDict tensors;
  fs::path folder;

  const StoredTensor& get(const std::string& name) const { return tensors.tensors.at(name); }
  std::vector<TokenId> ids(const std::string& name, std::int64_t row) const {
    const StoredTensor tensor = layers::row_range(get(name), row, 1);
    std::vector<std::int64_t> wide(static_cast<std::size_t>(tensor.shape.elements()));
    std::memcpy(wide.data(), tensor.bytes.data(), tensor.bytes.size());
    return {wide.begin(), wide.end()};
  }
};

Golden golden() {
  const fs::path folder = *testing::full_data() / "goldens" / "whisper";
  return {read_safetensors(FileBytes::map(folder / "golden.safetensors").value()).value(), folder};
}

// Two float32 computations of the same sums in other orders. A hidden vector is a sum of some
// thousand products through `layers` blocks, normalised to about one: the error is the rounding
// unit times the square root of the number of sums, with a factor of ten for the growth through
// norms and softmax.
float bound(const Config& config) {
  const double sums = static_cast<double>(config.d_model + config.encoder_ffn_dim) *
                      (config.encoder_layers + config.decoder_layers);
  return static_cast<float>(10 * std::sqrt(sums) * 6e-8);
}

float largest_difference(std::span<const float> a, std::span<const float> b) {
  CHECK(a.size() == b.size(), "arrays of one size");
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

TEST(WhisperGolden, EncoderLogitsAndGreedyPathAreTheReferences) {
  OASR_REQUIRE_FULL_DATA();
  const Golden reference = golden();
  const auto network = load_network(reference.folder);
  const float tolerance = bound(network->config);
  const std::int64_t clips = reference.get("input_features").shape[0];
  for (std::int64_t clip = 0; clip < clips; ++clip) {
    Runner runner(network);
    const auto mel = floats_of(layers::row_range(reference.get("input_features"), clip, 1));
    const WindowId window = runner.state.encode(mel);
    const auto hidden = floats_of(layers::row_range(reference.get("encoder_hidden"), clip, 1));
    const float encoder_error = largest_difference(runner.state.encoder_output(), hidden);
    EXPECT_LT(encoder_error, tolerance);

    const auto expected = floats_of(layers::row_range(reference.get("logits"), clip, 1));
    const auto prompt = reference.ids("decoder_input_ids", clip);
    std::vector<float> logits(expected.size());
    runner.state.alignment(window, prompt, logits);
    const float logit_error = largest_difference(logits, expected);
    EXPECT_LT(logit_error, tolerance);
    RecordProperty("encoder_error", std::to_string(encoder_error));
    RecordProperty("logit_error", std::to_string(logit_error));

    const auto path = reference.ids("greedy_ids", clip);
    const decode::RowId row = runner.state.open_row(window);
    std::vector<TokenId> greedy = {path[0]};
    while (greedy.size() < path.size()) greedy.push_back(argmax(runner.score(row, {greedy.back()})));
    EXPECT_EQ(greedy, path);
  }
}

}  // namespace
}  // namespace oasr::models::whisper

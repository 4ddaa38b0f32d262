// Real Whisper weights against openai-whisper in float32: encoder, greedy paths, top logits.
#include <gtest/gtest.h>

#include <cmath>

#include "models/whisper/test_support.h"
#include "testing/paths.h"

namespace oasr::models::whisper {
namespace {

namespace fs = std::filesystem;

struct Clip {
  std::vector<float> mel;  // [mels, 3000]
  std::vector<float> encoder;
  std::vector<TokenId> prompt, tokens;
  std::vector<TokenId> top_ids;   // [steps, 10]
  std::vector<float> top_logits;
};

// The golden keeps the frames of the clip; a frame after its end has one value in all bins.
Clip read_clip(const fs::path& path, const Config& config) {
  const auto arrays = read_npz(path);
  const NpyArray& mel = arrays.at("mel");
  const auto values = mel.as<float>();
  const std::size_t frames = static_cast<std::size_t>(mel.shape[1]);
  const auto window = static_cast<std::size_t>(config.window_frames());
  Clip clip;
  clip.mel.assign(static_cast<std::size_t>(config.num_mel_bins) * window, values[frames - 1]);
  for (std::size_t bin = 0; bin < static_cast<std::size_t>(config.num_mel_bins); ++bin) {
    std::copy_n(values.data() + bin * frames, frames, clip.mel.data() + bin * window);
  }
  clip.encoder = arrays.at("encoder").half_floats();
  clip.prompt = arrays.at("prompt").as<std::int32_t>();
  const auto ids = arrays.at("tokens").as<std::int32_t>();  // begins with the prompt
  clip.tokens.assign(ids.begin() + static_cast<std::ptrdiff_t>(clip.prompt.size()), ids.end());
  clip.top_ids = arrays.at("top10_ids").as<std::int32_t>();
  clip.top_logits = arrays.at("top10_logits").as<float>();
  return clip;
}

struct Errors {
  double encoder = 0;  // largest, relative to the larger of one and the value
  double logits = 0;   // largest absolute
};

// Follows the clip's greedy path and measures.
Errors compare(Runner& runner, const Clip& clip) {
  Errors errors;
  const WindowId window = runner.state.encode(clip.mel);
  const auto output = runner.state.encoder_output();
  for (std::size_t i = 0; i < clip.encoder.size(); ++i) {
    const double scale = std::max(1.0, std::abs(static_cast<double>(clip.encoder[i])));
    errors.encoder = std::max(errors.encoder, std::abs(double{output[i]} - clip.encoder[i]) / scale);
  }
  const decode::RowId row = runner.state.open_row(window);
  auto logits = runner.score(row, clip.prompt);
  const std::size_t steps = clip.top_ids.size() / 10;
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t i = step * 10; i < step * 10 + 10; ++i) {
      const double got = logits[static_cast<std::size_t>(clip.top_ids[i])];
      errors.logits = std::max(errors.logits, std::abs(got - clip.top_logits[i]));
    }
    if (step < clip.tokens.size()) logits = runner.score(row, {clip.tokens[step]});
  }
  runner.state.close_row(row);
  runner.state.release(window);
  return errors;
}

// The golden encoder output is rounded to float16, half a unit in the last place. The rest is two
// float32 computations apart: against float64, base's output is 1.1e-4 off at worst with PyTorch and
// 4.9e-4 with one accumulator a sum (of 768000 numbers; 3.5e-6 in the mean).
constexpr double kEncoderBound = 0x1p-11 + 6e-4;
// Measured 1.2e-4: a logit is a sum of d_model products of about one.
constexpr double kLogitBound = 5e-4;
// Keys and values rounded to float16 have 2^-12 of relative error each, and the blocks add up:
// measured 3.3e-3.
constexpr double kHalfCacheBound = 1e-2;

class RealWeights : public ::testing::TestWithParam<const char*> {};

TEST_P(RealWeights, EncoderAndTopLogitsAreTheReferences) {
  OASR_REQUIRE_FULL_DATA();
  const auto folder = testing::real_weights(GetParam(), "hf");
  if (!folder) GTEST_SKIP() << "no real weights (set OASR_TEST_WEIGHTS)";
  Runner runner(load_network(*folder));
  Runner half(runner.network, 2, 1, 1, DType::f16);
  for (const auto& entry :
       fs::directory_iterator(*testing::full_data() / "goldens" / "whisper_real" / GetParam())) {
    if (entry.path().extension() != ".npz") continue;
    const Clip clip = read_clip(entry.path(), runner.network->config);
    const Errors errors = compare(runner, clip);
    EXPECT_LT(errors.encoder, kEncoderBound) << entry.path();
    EXPECT_LT(errors.logits, kLogitBound) << entry.path();
    EXPECT_LT(compare(half, clip).logits, kHalfCacheBound) << entry.path();
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, RealWeights, ::testing::Values("tiny.en", "base"),
                         [](const auto& info) { return std::string(info.param).substr(0, 4); });

}  // namespace
}  // namespace oasr::models::whisper

// Every variant of U2 and U2++ that is served against WeNet's own outputs: the folders of tests/data/wenet,
// which tools/make_wenet_goldens.py writes.
#include "base/fs.h"
#include "decode/scores.h"
#include "models/conformer/testing.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr::models::conformer {
namespace {

namespace fs = std::filesystem;
using testing::Array;
using testing::read_array;

// All of them, or those whose convolutions do not look ahead.
std::vector<fs::path> variants(bool only_causal = false) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(testing::test_data("wenet"))) {
    if (!entry.is_directory()) continue;
    const std::string text = read_text_file(entry.path() / "train.yaml").value();
    if (!only_causal || text.find("causal: true") != text.npos) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

struct Variant : ConformerFixture, ::testing::WithParamInterface<fs::path> {
  void SetUp() override {
    load(GetParam());
    features = read_array(testing::test_data("wenet") / "features.npz", "features").floats();
  }
  Array array(const char* name) const { return read_array(folder / "golden.npz", name); }

  std::vector<float> features;
};
struct CausalVariant : Variant {};

TEST_P(Variant, HasTheReferencesEncoderOutputAndLogProbabilities) {
  std::vector<float> log_probs;
  const UtteranceId id = run(features, {}, true, 0, &log_probs);
  expect_close(state->encoder_output(id), array("encoder").values);
  expect_close(log_probs, array("ctc").values);
}

TEST_P(Variant, HasTheSameBitsWithEveryOpOnItsDefinition) {
  // The utterance, and in chunks of a stream where it can be one.
  const auto numbers = [&] {
    std::vector<float> all;
    run(features, {}, true, 0, &all);
    if (config.encoder.causal) run(features, {4, 2}, false, 13, &all);
    return all;
  };
  const auto expected = numbers();
  load(folder, nullptr, Arithmetic::float32, Isa::reference);
  EXPECT_TRUE(numbers() == expected);
}

TEST_P(CausalVariant, HasTheReferencesOutputInChunks) {
  expect_close(state->encoder_output(run(features, {4, -1}, true, 0)), array("chunk4").values);
  expect_close(state->encoder_output(run(features, {4, -1}, false, 13)), array("streamed4").values);
  expect_close(state->encoder_output(run(features, {4, 2}, false, 13)), array("streamed4_left2").values);
}

TEST_P(Variant, TellsTheLikeliestTokensOfItsLogProbabilities) {
  std::vector<float> log_probs;
  run(features, {}, true, 0, &log_probs);
  const auto vocabulary = static_cast<std::size_t>(config.output_dim);
  for (const int width : {1, 5, config.output_dim}) {
    std::vector<float> want;
    std::vector<decode::ScoredToken> best, before;
    for (std::size_t at = 0; at < log_probs.size(); at += vocabulary) {
      const auto row = std::span(log_probs).subspan(at, vocabulary);
      decode::top_k(row, width, best);
      for (const auto& [token, logit] : best) {
        want.push_back(static_cast<float>(token));
        want.push_back(logit);
      }
      for (const auto& [token, logit] : before) want.push_back(row[static_cast<std::size_t>(token)]);
      want.push_back(row[static_cast<std::size_t>(config.blank)]);
      before = best;
    }
    EXPECT_TRUE(run_likeliest(features, {}, true, 0, width) == want) << width;
  }
}

TEST_P(CausalVariant, StreamsTellTheLikeliestTokensOfTheWhole) {
  for (const ChunkMask mask : {ChunkMask{4, -1}, {1, 0}, {3, 1}}) {
    const std::vector<float> whole = run_likeliest(features, mask, true, 0, 4);
    for (const std::size_t piece : {1u, 9u, 50u}) {
      EXPECT_TRUE(run_likeliest(features, mask, false, piece, 4) == whole) << mask.chunk_size << ", " << piece;
    }
  }
}

TEST_P(CausalVariant, StreamsGiveTheBitsOfTheWhole) {
  for (const ChunkMask mask : {ChunkMask{4, -1}, {4, 2}, {1, 0}, {3, 1}, {16, -1}}) {
    std::vector<float> whole_scores;
    const UtteranceId whole = run(features, mask, true, 0, &whole_scores);
    for (const std::size_t piece : {1u, 9u, 50u, 1000u}) {
      std::vector<float> scores;
      const UtteranceId stream = run(features, mask, false, piece, &scores);
      EXPECT_TRUE(scores == whole_scores) << mask.chunk_size << ", " << piece;
      EXPECT_TRUE(std::ranges::equal(state->encoder_output(stream), state->encoder_output(whole)));
      state->close(stream);
    }
    state->close(whole);
  }
}

TEST_P(Variant, DecodersScoreHypothesesAsTheReferenceDoes) {
  const UtteranceId id = run(features, {}, true, 0);
  const Array hypotheses = array("hyps"), sizes = array("lengths"), left = array("left");
  const bool both = state->has_right_to_left();
  ASSERT_EQ(both, config.decoder->r_num_blocks > 0);
  const Array right = both ? array("right") : Array{};
  const auto width = static_cast<std::size_t>(hypotheses.shape[1]);
  const auto vocabulary = static_cast<std::size_t>(config.output_dim);
  for (std::size_t i = 0; i < sizes.values.size(); ++i) {
    const auto n = static_cast<std::size_t>(sizes.values[i]) - 1;  // without sos
    const auto first = hypotheses.values.begin() + static_cast<std::ptrdiff_t>(i * width);
    EXPECT_EQ(*first, config.sos);
    const std::vector<TokenId> tokens(first + 1, first + 1 + static_cast<std::ptrdiff_t>(n));
    std::vector<float> lefts(n + 1), rights(both ? n + 1 : 0);
    const decode::SequenceScorer::Item item{id, tokens, lefts, rights};
    state->score({&item, 1});
    // What the reference gives a token at a step: position t of the right-to-left decoder is its step n - 1 - t.
    const auto at = [&](const Array& from, std::size_t step, TokenId token) {
      return from.values[(i * width + step) * vocabulary + static_cast<std::size_t>(token)];
    };
    std::vector<double> want_left, want_right;
    for (std::size_t t = 0; t < n; ++t) {
      want_left.push_back(at(left, t, tokens[t]));
      if (both) want_right.push_back(at(right, n - 1 - t, tokens[t]));
    }
    want_left.push_back(at(left, n, config.eos));
    if (both) want_right.push_back(at(right, n, config.eos));
    expect_close(lefts, want_left);
    expect_close(rights, want_right);
  }
}

std::string name_of(const ::testing::TestParamInfo<fs::path>& test) { return test.param.filename().string(); }
INSTANTIATE_TEST_SUITE_P(WeNet, Variant, ::testing::ValuesIn(variants()), name_of);
INSTANTIATE_TEST_SUITE_P(WeNet, CausalVariant, ::testing::ValuesIn(variants(true)), name_of);

}  // namespace
}  // namespace oasr::models::conformer

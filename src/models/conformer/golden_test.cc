// The network against WeNet's own outputs, float32: a small random U2++ (goldens/wenet_u2pp).
#include "models/conformer/testing.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr::models::conformer {
namespace {

using testing::Array;
using testing::read_array;

struct ConformerGolden : ConformerFixture {
  void SetUp() override {
    OASR_REQUIRE_FULL_DATA();
    load(*testing::full_data() / "goldens/wenet_u2pp");
    features = array("feats");
    lengths = array("feats_lengths");
  }
  Array array(const std::string& name) { return read_array(folder / "golden.safetensors", name); }

  std::vector<float> utterance(std::size_t index) const {
    const auto stride = static_cast<std::size_t>(features.shape[1] * features.shape[2]);
    const auto count = static_cast<std::size_t>(lengths.values[index]) * static_cast<std::size_t>(features.shape[2]);
    const auto begin = features.values.begin() + static_cast<std::ptrdiff_t>(index * stride);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }

  UtteranceId run(std::size_t index, const ChunkMask& mask, bool whole, std::size_t piece,
                  std::vector<float>* log_probs = nullptr) {
    return ConformerFixture::run(utterance(index), mask, whole, piece, log_probs);
  }

  // Row `index` of a batch of outputs [B, T, D], as long as the utterance.
  static std::vector<double> row(const Array& batch, std::size_t index, std::size_t frames) {
    const auto width = static_cast<std::size_t>(batch.shape[2]);
    const auto begin = batch.values.begin() +
                       static_cast<std::ptrdiff_t>(index * static_cast<std::size_t>(batch.shape[1]) * width);
    return {begin, begin + static_cast<std::ptrdiff_t>(frames * width)};
  }

  Array features, lengths;
};

TEST_F(ConformerGolden, EncoderAndCtcInFullContext) {
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<float> log_probs;
    const UtteranceId id = run(i, {}, true, 0, &log_probs);
    const auto frames = static_cast<std::size_t>(array("encoder_lengths").values[i]);
    ASSERT_EQ(state->frames(id), static_cast<std::int64_t>(frames));
    expect_close(state->encoder_output(id), row(array("encoder_out.full"), i, frames));
    expect_close(log_probs, row(array("ctc_logprobs.full"), i, frames));
  }
}

TEST_F(ConformerGolden, EncoderWithChunkMasks) {
  const std::pair<const char*, ChunkMask> masks[] = {{"encoder_out.chunk16_leftall", {16, -1}},
                                                     {"encoder_out.chunk8_left4", {8, 4}}};
  for (const auto& [name, mask] : masks) {
    for (std::size_t i = 0; i < 2; ++i) {
      const UtteranceId id = run(i, mask, true, 0);
      expect_close(state->encoder_output(id),
                   row(array(name), i, static_cast<std::size_t>(array("encoder_lengths").values[i])));
    }
  }
}

TEST_F(ConformerGolden, StreamsAsTheReferenceDoes) {
  const std::pair<const char*, ChunkMask> masks[] = {{"encoder_out_streamed_utt0.chunk4_leftall", {4, -1}},
                                                     {"encoder_out_streamed_utt0.chunk8_left4", {8, 4}}};
  for (const auto& [name, mask] : masks) {
    const UtteranceId id = run(0, mask, false, 13);
    const Array want = array(name);
    expect_close(state->encoder_output(id), row(want, 0, static_cast<std::size_t>(want.shape[1])));
  }
}

TEST_F(ConformerGolden, StreamsGiveTheBitsOfTheWholeWithTheSameMask) {
  for (const ChunkMask mask : {ChunkMask{16, -1}, {4, -1}, {8, 4}, {5, 2}, {1, 0}, {7, 1}}) {
    std::vector<float> whole_scores;
    const UtteranceId whole = run(0, mask, true, 0, &whole_scores);
    for (const std::size_t piece : {1u, 7u, 50u, 1000u}) {
      std::vector<float> scores;
      const UtteranceId stream = run(0, mask, false, piece, &scores);
      EXPECT_TRUE(scores == whole_scores) << mask.chunk_size << ", " << piece;
      EXPECT_TRUE(std::ranges::equal(state->encoder_output(stream), state->encoder_output(whole)));
      state->close(stream);
    }
    state->close(whole);
  }
}

TEST_F(ConformerGolden, AnUtterancesBitsDoNotDependOnItsNeighbours) {
  for (const ChunkMask mask : {ChunkMask{}, ChunkMask{8, 2}}) {
    const bool whole = mask.chunk_size == 0;
    std::vector<float> alone[2], together[2];
    for (std::size_t i = 0; i < 2; ++i) run(i, mask, whole, 0, &alone[i]);
    std::vector<UtteranceId> ids;
    for (std::size_t i = 0; i < 2; ++i) {
      ids.push_back(state->open(mask, whole));
      state->accept(ids.back(), utterance(i));
      state->finish(ids.back());
    }
    while (true) {
      std::vector<UtteranceId> ready;
      std::ranges::copy_if(ids, std::back_inserter(ready), [&](UtteranceId id) { return state->ready(id); });
      if (ready.empty()) break;
      state->step(ready);
      for (std::size_t i = 0; i < 2; ++i) {
        if (std::ranges::find(ready, ids[i]) == ready.end()) continue;
        const auto scores = state->scores(ids[i]).values;
        together[i].insert(together[i].end(), scores.begin(), scores.end());
      }
    }
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(alone[i] == together[i]) << i;
  }
}

TEST_F(ConformerGolden, DecodersScoreHypotheses) {
  const UtteranceId id = run(0, {}, true, 0);
  const Array hypotheses = array("decoder_hyps_with_sos"), sizes = array("decoder_hyps_lengths");
  const Array left = array("decoder_logprobs"), right = array("decoder_reverse_logprobs");
  const auto width = static_cast<std::size_t>(hypotheses.shape[1]);
  const auto vocabulary = static_cast<std::size_t>(config.output_dim);
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::vector<float>> lefts, rights;
  std::vector<decode::SequenceScorer::Item> items;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto count = static_cast<std::size_t>(sizes.values[i]) - 1;  // without sos
    const auto begin = hypotheses.values.begin() + static_cast<std::ptrdiff_t>(i * width + 1);
    tokens.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    lefts.emplace_back(count + 1);
    rights.emplace_back(count + 1);
  }
  for (std::size_t i = 0; i < 3; ++i) items.push_back({id, tokens[i], lefts[i], rights[i]});
  state->score(items);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t n = tokens[i].size();
    const auto value = [&](const Array& from, std::size_t step, TokenId token) {
      return from.values[(i * width + step) * vocabulary + static_cast<std::size_t>(token)];
    };
    for (std::size_t t = 0; t < n; ++t) {
      EXPECT_NEAR(lefts[i][t], value(left, t, tokens[i][t]), 1e-4 * 10);
      EXPECT_NEAR(rights[i][t], value(right, n - 1 - t, tokens[i][t]), 1e-4 * 10);
    }
    EXPECT_NEAR(lefts[i][n], value(left, n, config.eos), 1e-4 * 10);
    EXPECT_NEAR(rights[i][n], value(right, n, config.eos), 1e-4 * 10);
  }
}

TEST_F(ConformerGolden, StepsOfTheDecoderAreItsTeacherForcedPass) {
  const UtteranceId id = run(0, {}, true, 0);
  const std::vector<TokenId> tokens = {18, 52, 18, 50};
  std::vector<float> left(5), right(5);
  const decode::SequenceScorer::Item item{id, tokens, left, right};
  state->score({&item, 1});
  const auto steps = state->open_decoder(id, 2, 8);
  std::vector<float> logits(static_cast<std::size_t>(config.output_dim));
  std::vector<TokenId> input = {config.sos};
  for (std::size_t t = 0; t <= tokens.size(); ++t) {
    const decode::StepScorer::Input one{.row = 1, .tokens = input};
    steps->score({&one, 1}, logits);
    const TokenId next = t < tokens.size() ? tokens[t] : config.eos;
    float sum = 0;
    for (const float logit : logits) sum += std::exp(logit - logits[static_cast<std::size_t>(next)]);
    EXPECT_NEAR(-std::log(sum), left[t], 1e-5 * 10);
    input = {next};
  }
}

}  // namespace
}  // namespace oasr::models::conformer

// The Conformer on a GPU gives the bits of the processor: every variant, whole and in chunks.
#include "base/fs.h"
#include "kernels/testing.h"
#include "models/conformer/testing.h"
#include "testing/arrays.h"
#include "testing/paths.h"

namespace oasr::models::conformer {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> variants() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(testing::test_data("wenet"))) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

class ConformerOnGpu : public ConformerFixture, public ::testing::WithParamInterface<fs::path> {
 protected:
  void SetUp() override {
    auto opened = Gpu::open(0);
    if (!opened) GTEST_SKIP() << "no GPU: " << opened.error().what;
    gpu = std::move(*opened);
    features = testing::read_array(testing::test_data("wenet") / "features.npz", "features").floats();
  }
  void TearDown() override {
    state.reset();  // before the GPU that they are on
    network.reset();
  }

  // Everything that leaves a state: utterances under some masks, whole and in pieces, two in one pass, and the
  // scores of hypotheses.
  std::vector<float> all_numbers() {
    std::vector<float> all;
    const auto keep = [&](std::span<const float> values) { all.insert(all.end(), values.begin(), values.end()); };
    std::vector<ChunkMask> masks = {ChunkMask{}};
    if (config.encoder.causal) masks.insert(masks.end(), {{4, -1}, {4, 2}, {3, 1}, {16, -1}});
    UtteranceId last = 0;
    for (const ChunkMask& mask : masks) {
      for (const std::size_t piece : {0u, 9u}) {
        std::vector<float> scores;
        last = run(features, mask, mask.chunk_size == 0, piece, &scores);
        keep(scores);
        keep(state->encoder_output(last));
        for (const int width : {1, 4, config.output_dim}) {
          keep(run_likeliest(features, mask, mask.chunk_size == 0, piece, width));
        }
      }
    }
    const UtteranceId both[] = {state->open({}, true), state->open({}, true)};
    state->accept(both[0], features);
    state->accept(both[1], std::span(features).first(40 * static_cast<std::size_t>(config.input_dim)));
    for (const UtteranceId id : both) state->finish(id);
    state->step(both);
    for (const UtteranceId id : both) keep(state->scores(id).values);
    const std::vector<TokenId> tokens = {5, 3, 9}, none;
    std::vector<float> left(4), right(state->has_right_to_left() ? 4 : 0), empty(1);
    const decode::SequenceScorer::Item items[] = {{last, tokens, left, right}, {both[1], none, empty, {}}};
    state->score(items);
    keep(left), keep(right), keep(empty);
    const auto decoder = state->open_decoder(both[0], 2, 8);
    std::vector<float> logits(2 * static_cast<std::size_t>(config.output_dim));
    const TokenId sos[] = {config.sos};
    const decode::StepScorer::Input inputs[] = {{0, sos}, {1, tokens}};
    decoder->score(inputs, logits);
    keep(logits);
    EXPECT_FALSE(state->take_fault().has_value());
    return all;
  }

  // One utterance: its scores, those of hypotheses, and a step of the decoder.
  std::vector<float> request() {
    std::vector<float> all;
    const UtteranceId id = run(features, {}, true, 0, &all);
    const std::vector<TokenId> tokens = {5, 3, 9};
    std::vector<float> left(4), right(state->has_right_to_left() ? 4 : 0);
    const decode::SequenceScorer::Item item{id, tokens, left, right};
    state->score({&item, 1});
    all.insert(all.end(), left.begin(), left.end());
    all.insert(all.end(), right.begin(), right.end());
    const auto decoder = state->open_decoder(id, 1, 8);
    std::vector<float> logits(static_cast<std::size_t>(config.output_dim));
    const decode::StepScorer::Input input{0, tokens};
    decoder->score({&input, 1}, logits);
    all.insert(all.end(), logits.begin(), logits.end());
    return all;
  }

  std::unique_ptr<Gpu> gpu;
  std::vector<float> features;
};

// Wherever a kernel fails, that request is lost and the next one is not.
TEST_P(ConformerOnGpu, LosesOneRequestToAKernelThatFailsAnywhere) {
  load(GetParam());
  const std::vector<float> expected = request();
  constexpr int kStep = 5;  // launches
  int lost = 0;
  for (bool failed = true; failed;) {
    load(GetParam(), gpu.get());
    gpu->fail_launch(kStep * lost);
    failed = false;
    try {
      request();
    } catch (const GpuError&) {
      failed = true;
      ++lost;
    }
    gpu->fail_launch(-1);
    load(GetParam(), gpu.get());
    EXPECT_EQ(kernels::first_difference(request(), expected), -1) << lost;
  }
  EXPECT_GT(lost, 10);
}

// A request that found numbers which are not finite may have failed before it told them.
TEST_P(ConformerOnGpu, IsNotBlamedForWhatAFailedRequestFound) {
  load(GetParam(), gpu.get());
  const std::string layer = "encoder.after_norm";
  const std::int32_t row = 3;
  gpu->at_layer(layer);
  gpu->upload(gpu->not_finite_row(), &row, sizeof row);
  load(GetParam(), gpu.get());
  request();
  EXPECT_FALSE(state->take_fault().has_value());
}

TEST_P(ConformerOnGpu, GivesTheBitsOfTheProcessor) {
  load(GetParam());
  const std::vector<float> expected = all_numbers();
  load(GetParam(), gpu.get());
  const std::vector<float> got = all_numbers();
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_EQ(kernels::first_difference(got, expected), -1);
}

TEST_P(ConformerOnGpu, SearchesWithTheBitsOfTheHost) {
  load(GetParam(), gpu.get());
  const auto frame = static_cast<std::size_t>(config.input_dim);
  std::vector<UtteranceId> ids;
  for (std::size_t length = static_cast<std::size_t>(config.right_context()) + 6; length * frame <= features.size(); length += 9) {
    ids.push_back(state->open({}, true));
    state->accept(ids.back(), std::span(features).first(length * frame));
    state->finish(ids.back());
  }
  ASSERT_GT(ids.size(), 2u);
  state->step(ids, std::min(10, config.output_dim));
  ids.erase(ids.begin() + 1);  // not all of a step's need be searched
  for (const int beam : {1, 4, 10}) {
    const decode::CtcBeamOptions options{
        .vocabulary = config.output_dim, .blank = config.blank, .first_beam = beam, .second_beam = beam};
    std::vector<std::vector<decode::CtcHypothesis>> got(ids.size());
    ASSERT_TRUE(state->search(ids, options, got));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto search = decode::CtcPrefixBeam::make(options).value();
      search.accept(state->likeliest(ids[i]));
      const auto want = search.results();
      ASSERT_EQ(got[i].size(), want.size());
      for (std::size_t k = 0; k < want.size(); ++k) {
        EXPECT_EQ(got[i][k].tokens, want[k].tokens) << beam << ", " << i;
        EXPECT_EQ(got[i][k].score, want[k].score) << beam << ", " << i;
      }
    }
  }
  std::vector<std::vector<decode::CtcHypothesis>> none(ids.size());
  const decode::CtcBeamOptions wide{.vocabulary = config.output_dim, .blank = config.blank, .second_beam = 64};
  EXPECT_FALSE(state->search(ids, wide, none));
}

// In mixed precision the bits are the card's own; they are those of the whole, though, however it comes in.
TEST_P(ConformerOnGpu, GivesPiecesAndNeighboursTheBitsOfTheWholeInMixedPrecision) {
  load(GetParam(), gpu.get());
  run(features, {}, true, 0);
  const std::vector<float> exact = all_numbers();
  for (const Arithmetic arithmetic : {Arithmetic::float16, Arithmetic::bfloat16}) {
    load(GetParam(), gpu.get(), arithmetic);
    std::vector<ChunkMask> masks = {ChunkMask{}};
    if (config.encoder.causal) masks.insert(masks.end(), {{4, -1}, {4, 2}, {3, 1}, {16, -1}});
    for (const ChunkMask& mask : masks) {
      std::vector<float> whole, pieces, beside;
      run(features, mask, true, 0, &whole);
      run(features, mask, mask.chunk_size == 0, 9, &pieces);
      EXPECT_EQ(kernels::first_difference(pieces, whole), -1) << "chunks of " << mask.chunk_size;
      const UtteranceId both[] = {state->open(mask, true), state->open(mask, true)};
      state->accept(both[0], std::span(features).first(40 * static_cast<std::size_t>(config.input_dim)));
      state->accept(both[1], features);
      for (const UtteranceId id : both) state->finish(id);
      state->step(both);
      const auto scores = state->scores(both[1]).values;
      beside.assign(scores.begin(), scores.end());
      EXPECT_EQ(kernels::first_difference(beside, whole), -1) << "chunks of " << mask.chunk_size;
    }
    EXPECT_NE(kernels::first_difference(all_numbers(), exact), -1) << "nothing was computed in mixed precision";
    EXPECT_FALSE(state->take_fault().has_value());
  }
}

INSTANTIATE_TEST_SUITE_P(WeNet, ConformerOnGpu, ::testing::ValuesIn(variants()),
                         [](const auto& test) { return test.param.filename().string(); });

}  // namespace
}  // namespace oasr::models::conformer

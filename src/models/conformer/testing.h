// For tests of the Conformer: a network of a folder, and utterances that run through it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "models/conformer/state.h"

namespace oasr::models::conformer {

struct ConformerFixture : ::testing::Test {
  std::filesystem::path folder;
  Config config;
  ThreadPool pool{2};
  std::shared_ptr<const Network> network;
  std::unique_ptr<State> state;

  // gpu: where it runs, unless null.
  void load(const std::filesystem::path& path, Gpu* gpu = nullptr, Arithmetic arithmetic = Arithmetic::float32,
            Isa isa = detected_isa()) {
    folder = path;
    const Checkpoint checkpoint = open_checkpoint(folder).value();
    config = read_config(checkpoint).value();
    network = Network::load(config, checkpoint, {}).value();
    if (gpu != nullptr) network->layers.place(*gpu);
    state = std::make_unique<State>(
        network, ExecContext{.pool = &pool, .isa = isa, .gpu = gpu, .arithmetic = arithmetic});
  }

  // Feeds features [n, input_dim], `piece` frames at a time (all of them for 0), to the end. The log-probabilities
  // of all frames are appended to log_probs.
  UtteranceId run(std::span<const float> features, const ChunkMask& mask, bool whole, std::size_t piece,
                  std::vector<float>* log_probs = nullptr) {
    return run(features, mask, whole, piece, [&](UtteranceId id) {
      state->step({&id, 1});
      const auto scores = state->scores(id).values;
      if (log_probs != nullptr) log_probs->insert(log_probs->end(), scores.begin(), scores.end());
    });
  }

  // The same for the `width` likeliest tokens of each frame: tokens and what they are worth, then what the tokens of
  // the frame before are, then the blank. Of the first frame no frame before is told.
  std::vector<float> run_likeliest(std::span<const float> features, const ChunkMask& mask, bool whole, std::size_t piece,
                                   int width) {
    std::vector<float> all;
    const UtteranceId run_through = run(features, mask, whole, piece, [&](UtteranceId id) {
      state->step({&id, 1}, width);
      const decode::CtcFrames frames = state->likeliest(id);
      EXPECT_EQ(frames.width, width);
      for (int t = 0; t < frames.frames; ++t) {
        for (const auto& [token, logit] : frames.tokens(t)) {
          all.push_back(static_cast<float>(token));
          all.push_back(logit);
        }
        const auto again = frames.tokens_before(t);
        if (all.size() > 2 * static_cast<std::size_t>(width)) all.insert(all.end(), again.begin(), again.end());
        all.push_back(frames.blanks[static_cast<std::size_t>(t)]);
      }
    });
    state->close(run_through);
    return all;
  }

  // Calls step(utterance) when it is ready.
  template <class Step>
  UtteranceId run(std::span<const float> features, const ChunkMask& mask, bool whole, std::size_t piece, const Step& one_step)
    requires std::invocable<Step, UtteranceId>
  {
    const UtteranceId id = state->open(mask, whole);
    const std::size_t step = piece == 0 ? features.size() : piece * static_cast<std::size_t>(config.input_dim);
    const auto advance = [&] {
      while (state->ready(id)) one_step(id);
    };
    for (std::size_t at = 0; at < features.size(); at += step) {
      state->accept(id, features.subspan(at, std::min(step, features.size() - at)));
      advance();
    }
    state->finish(id);
    advance();
    return id;
  }

  // Within 1e-4 of the greatest value, the bound that is promised for a float32 network against another
  // order of sums.
  static void expect_close(std::span<const float> got, const std::vector<double>& want) {
    ASSERT_EQ(got.size(), want.size());
    double greatest = 0, worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      greatest = std::max(greatest, std::abs(want[i]));
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]));
    }
    EXPECT_LE(worst, 1e-4 * greatest) << "of " << greatest;
  }
};

}  // namespace oasr::models::conformer

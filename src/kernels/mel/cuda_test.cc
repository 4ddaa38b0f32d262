#include "kernels/mel/cuda.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "features/mel_testing.h"
#include "kernels/cuda/testing.h"
#include "kernels/mel/gpu_mel.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

class MelOnGpu : public OnGpu {
 protected:
  // The kernel alone, between guards.
  MelResult run(const MelRecipe& recipe, const std::vector<float>& samples, std::size_t frames, bool logs,
                bool greatest) {
    const MelTables tables(recipe);
    auto window = upload(tables.window), weights = upload(tables.filter_weights), x = upload(samples);
    auto roots = upload(tables.roots);
    auto spans = upload(tables.filters);
    MelResult result(recipe, frames);
    auto logs_there = upload(result.logs), greatest_there = upload(result.greatest);
    mel_frames_cuda(*gpu_, {.samples = x.data(),
                            .frames = static_cast<std::int64_t>(frames),
                            .hop = static_cast<std::int64_t>(recipe.hop),
                            .window = static_cast<unsigned>(recipe.window),
                            .transform = static_cast<unsigned>(recipe.transform),
                            .filters = static_cast<unsigned>(recipe.filters.size()),
                            .emphasised = recipe.emphasised,
                            .scale = recipe.scale,
                            .floor = recipe.floor,
                            .log = recipe.log,
                            .window_weights = window.data(),
                            .roots = roots.data(),
                            .spans = spans.data(),
                            .filter_weights = weights.data(),
                            .logs = logs ? logs_there.data() : nullptr,
                            .greatest = greatest ? greatest_there.data() : nullptr});
    result.logs = logs_there.values();
    result.greatest = greatest_there.values();
    return result;
  }

  std::unique_ptr<GpuMel> open(const MelRecipe& recipe) {
    auto mel = GpuMel::open(0, recipe);
    EXPECT_TRUE(mel) << mel.error().message();
    return std::move(*mel);
  }
};

void expect_same(const MelResult& there, const MelResult& here, const std::string& what) {
  EXPECT_EQ(first_difference(there.logs, here.logs), -1) << what;
  EXPECT_EQ(first_difference(there.greatest, here.greatest), -1) << what;
}

MelResult on_processor(const MelRecipe& recipe, const float* samples, std::size_t frames) {
  MelFrames mel(recipe);
  MelResult result(recipe, frames);
  mel.compute(samples, frames, result.out());
  return result;
}

TEST_F(MelOnGpu, GivesTheBitsOfTheProcessorForEverySignal) {
  for (const auto& [name, recipe] : mel_recipes()) {
    ASSERT_TRUE(GpuMel::serves(recipe)) << name;
    for (const std::size_t frames : {1, 2, 3, 7, 8, 9, 31, 33, 260}) {
      for (const auto& [kind, samples] : mel_signals((frames - 1) * recipe.hop + recipe.window)) {
        expect_same(run(recipe, samples, frames, true, true), on_processor(recipe, samples.data(), frames),
                    name + ", " + kind + ", " + std::to_string(frames) + " frames");
      }
    }
  }
}

TEST_F(MelOnGpu, WritesOnlyWhatIsWanted) {
  const MelRecipe recipe = whisper_recipe(80);
  const auto samples = mel_signals(400 + 19 * 160).front().samples;
  const MelResult here = on_processor(recipe, samples.data(), 20), untouched(recipe, 20);
  const MelResult logs = run(recipe, samples, 20, true, false),
                  greatest = run(recipe, samples, 20, false, true);
  EXPECT_EQ(logs.logs, here.logs);
  EXPECT_EQ(logs.greatest, untouched.greatest);
  EXPECT_EQ(greatest.logs, untouched.logs);
  EXPECT_EQ(greatest.greatest, here.greatest);
}

TEST_F(MelOnGpu, GivesTheSameBitsInPiecesAndAlone) {
  for (const MelRecipe& recipe : {whisper_recipe(80), *fbank_recipe({})}) {
    const auto mel = open(recipe);
    const std::size_t frames = 20'011;  // several pieces
    const auto samples = mel_signals((frames - 1) * recipe.hop + recipe.window).front().samples;
    const MelResult here = on_processor(recipe, samples.data(), frames);
    MelResult whole(recipe, frames), parts(recipe, frames);
    mel->compute(samples.data(), frames, whole.out());
    expect_same(whole, here, "whole");
    const std::size_t sizes[] = {1, 2, 200, 3, 8192, 6553, 6554, 31};
    for (std::size_t at = 0, i = 0; at < frames; ++i) {
      const std::size_t count = std::min(sizes[i % std::size(sizes)], frames - at);
      mel->compute(samples.data() + at * recipe.hop, count,
                   {.logs = &parts.logs[at * recipe.filters.size()], .greatest = &parts.greatest[at]});
      at += count;
    }
    expect_same(parts, here, "parts");
  }
}

TEST_F(MelOnGpu, ServesMoreThreadsThanItHasQueues) {
  const MelRecipe recipe = *fbank_recipe({});
  const auto mel = open(recipe);
  const std::size_t frames = 3000;
  const auto signals = mel_signals((frames - 1) * recipe.hop + recipe.window);
  std::vector<MelResult> results(signals.size(), MelResult(recipe, frames));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int again = 0; again < 5; ++again)
        mel->compute(signals[i].samples.data(), frames, results[i].out());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_GT(signals.size(), static_cast<std::size_t>(GpuMel::kMostQueues));
  for (std::size_t i = 0; i < signals.size(); ++i) {
    expect_same(results[i], on_processor(recipe, signals[i].samples.data(), frames), signals[i].name);
  }
}

TEST_F(MelOnGpu, StreamsGiveTheFramesOfTheProcessor) {
  const auto samples = mel_signals(16'000 * 61 + 77).front().samples;
  for (const bool snip : {true, false}) {
    const FbankOptions options{.snip_edges = snip};
    const auto mel = open(*fbank_recipe(options));
    EXPECT_EQ(*fbank(samples, options, mel.get()), *fbank(samples, options));
  }
  const auto mel = open(whisper_recipe(128));
  EXPECT_EQ(whisper_log_mel(samples, 128, mel.get()), whisper_log_mel(samples, 128));
  for (const std::size_t push : {16'000, 480'000}) {
    LogMelStream here(128), there(128, mel.get());
    LogMelMaximum maximum(128, mel.get());
    std::vector<float> expected, frames;
    for (std::size_t at = 0; at < samples.size(); at += push) {
      const auto part = std::span(samples).subspan(at, std::min(push, samples.size() - at));
      here.push(part, expected);
      there.push(part, frames);
      maximum.push(part);
    }
    here.finish(expected);
    there.finish(frames);
    EXPECT_EQ(frames, expected) << push;
    EXPECT_EQ(there.max_value(), here.max_value()) << push;
    EXPECT_EQ(maximum.finish(), here.max_value()) << push;
  }
}

TEST_F(MelOnGpu, FailsTheCallThatAKernelFailsIn) {
  const MelRecipe recipe = whisper_recipe(80);
  const auto mel = open(recipe);
  const auto samples = mel_signals(400 + 299 * 160).front().samples;
  for (int again = 0; again < GpuMel::kMostQueues + 2; ++again) {  // a queue that failed is not lost for good
    MelResult result(recipe, 300);
    mel->fail_launch();
    EXPECT_THROW(mel->compute(samples.data(), 300, result.out()), GpuError);
    mel->compute(samples.data(), 300, result.out());
    expect_same(result, on_processor(recipe, samples.data(), 300), "after a failure");
  }
}

}  // namespace
}  // namespace oasr::kernels

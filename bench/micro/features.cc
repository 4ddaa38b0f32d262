// The time of a frame of features on one thread, for every lane that the processor has.
//
//   oasr_bench_features [--benchmark_filter=fbank]
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "features/fbank.h"
#include "features/log_mel.h"
#include "features/mel_frames.h"
#include "features/silero_vad.h"

namespace oasr {
namespace {

constexpr std::size_t kFrames = 1000;

std::vector<float> noise(std::size_t count) {
  std::mt19937 random(3);
  std::vector<float> samples(count);
  for (float& v : samples) v = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-33f;
  return samples;
}

void report(benchmark::State& state, double frames) {
  state.counters["per_frame"] =
      benchmark::Counter(frames, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void frames_of(benchmark::State& state, const MelRecipe& recipe, const MelLane* lane) {
  const auto samples = noise((kFrames - 1) * recipe.hop + recipe.window);
  MelFrames mel(recipe, nullptr, lane);
  std::vector<float> logs(kFrames * mel.filters()), greatest(kFrames);
  for (auto _ : state)
    mel.compute(samples.data(), kFrames, {.logs = logs.data(), .greatest = greatest.data()});
  report(state, kFrames);
}

void utterance(benchmark::State& state) {
  const auto samples = noise(16'000 * 10);
  for (auto _ : state) benchmark::DoNotOptimize(fbank(samples, {}));
  report(state, 998);
}

// A step of 32 ms of voice activity detection.
void voice_activity(benchmark::State& state) {
  const auto samples = noise(kVadStep);
  SileroVad network;
  for (auto _ : state) benchmark::DoNotOptimize(network.step(std::span(samples).first<kVadStep>()));
}

// The same where steps come together, as those of a recording do.
void voice_activity_together(benchmark::State& state) {
  constexpr std::size_t kSteps = 64;
  const auto samples = noise(kSteps * kVadStep);
  SileroVad network;
  std::vector<float> probabilities;
  for (auto _ : state) {
    probabilities.clear();
    network.steps(samples, probabilities);
    benchmark::DoNotOptimize(probabilities.data());
  }
  state.counters["step"] = benchmark::Counter(static_cast<double>(state.iterations() * kSteps),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace
}  // namespace oasr

int main(int argc, char** argv) {
  using namespace oasr;
  const std::pair<std::string, MelRecipe> recipes[] = {
      {"fbank", *fbank_recipe({})}, {"whisper_80", whisper_recipe(80)}, {"whisper_128", whisper_recipe(128)}};
  for (const auto& [name, recipe] : recipes) {
    for (const MelLane* lane : mel_lanes()) {
      benchmark::RegisterBenchmark((name + "/" + mel_lane_name(*lane)).c_str(), frames_of, recipe, lane);
    }
  }
  benchmark::RegisterBenchmark("fbank_of_10_s", utterance);
  benchmark::RegisterBenchmark("voice_activity_step", voice_activity);
  benchmark::RegisterBenchmark("voice_activity_together", voice_activity_together);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

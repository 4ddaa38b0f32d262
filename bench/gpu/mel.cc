// Times of log mel energies, Kaldi's fbank and Whisper's spectrogram: oasr_bench_gpu_mel
//
// kernel: as replays of a CUDA graph. gpu: samples and frames in host memory, so with both copies, one
// caller. processor: one thread. The first number of frames where gpu is the faster is what
// GpuMel::kLeastFrames is about. Then the same of many callers at a time.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "features/fbank.h"
#include "features/log_mel.h"
#include "features/mel_frames.h"
#include "kernels/mel/cuda.h"
#include "kernels/mel/gpu_mel.h"
#include "replay.h"

namespace oasr::bench {
namespace {

std::vector<float> noise(std::size_t count) {
  std::mt19937 random(3);
  std::vector<float> samples(count);
  for (float& v : samples) v = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-33f;
  return samples;
}

template <class T>
Memory placed(Gpu& gpu, const std::vector<T>& values) {
  Memory memory(&gpu, values.size() * sizeof(T));
  gpu.upload(memory.data(), values.data(), values.size() * sizeof(T));
  return memory;
}

double kernel_us(Gpu& gpu, const MelRecipe& recipe, const std::vector<float>& samples, std::size_t frames) {
  const MelTables tables(recipe);
  Memory window = placed(gpu, tables.window), roots = placed(gpu, tables.roots),
         spans = placed(gpu, tables.filters);
  Memory weights = placed(gpu, tables.filter_weights), x = placed(gpu, samples);
  Memory logs(&gpu, frames * recipe.filters.size() * sizeof(float)), greatest(&gpu, frames * sizeof(float));
  const kernels::MelFramesArgs args{.samples = reinterpret_cast<float*>(x.data()),
                                    .frames = static_cast<std::int64_t>(frames),
                                    .hop = static_cast<std::int64_t>(recipe.hop),
                                    .window = static_cast<unsigned>(recipe.window),
                                    .transform = static_cast<unsigned>(recipe.transform),
                                    .filters = static_cast<unsigned>(recipe.filters.size()),
                                    .emphasised = recipe.emphasised,
                                    .scale = recipe.scale,
                                    .floor = recipe.floor,
                                    .log = recipe.log,
                                    .window_weights = reinterpret_cast<float*>(window.data()),
                                    .roots = reinterpret_cast<fourier::Twiddle*>(roots.data()),
                                    .spans = reinterpret_cast<MelTables::Filter*>(spans.data()),
                                    .filter_weights = reinterpret_cast<float*>(weights.data()),
                                    .logs = reinterpret_cast<float*>(logs.data()),
                                    .greatest = reinterpret_cast<float*>(greatest.data())};
  return microseconds(gpu, 5, [&](int) { kernels::mel_frames_cuda(gpu, args); });
}

// Microseconds until all of `threads` callers have their frames.
double together_us(int threads, const std::function<void()>& call) {
  return median_call([&] {
    std::vector<std::thread> callers;
    for (int i = 0; i < threads; ++i) callers.emplace_back(call);
    for (std::thread& caller : callers) caller.join();
  });
}

void compare(Gpu& gpu, const char* name, const MelRecipe& recipe) {
  auto opened = kernels::GpuMel::open(0, recipe);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message().c_str());
    std::exit(1);
  }
  kernels::GpuMel& there = **opened;
  MelFrames here(recipe);
  const std::size_t filters = recipe.filters.size();
  for (const std::size_t frames : {50, 100, 150, 200, 300, 400, 800, 1600, 3000, 6000, 60'000}) {
    const auto samples = noise((frames - 1) * recipe.hop + recipe.window);
    std::vector<float> logs(frames * filters), greatest(frames);
    const MelOutput out{.logs = logs.data(), .greatest = greatest.data()};
    std::printf("%-16s %6zu frames %10.1f us kernel %10.1f us gpu %10.1f us processor\n", name, frames,
                kernel_us(gpu, recipe, samples, frames),
                median_call([&] { there.compute(samples.data(), frames, out); }),
                median_call([&] { here.compute(samples.data(), frames, out); }));
  }
  constexpr std::size_t kFrames = 3000;
  const auto samples = noise((kFrames - 1) * recipe.hop + recipe.window);
  for (const int threads : {1, 2, 4, 8, 16}) {
    const auto on_gpu = [&] {
      std::vector<float> logs(kFrames * filters);
      there.compute(samples.data(), kFrames, {.logs = logs.data(), .greatest = nullptr});
    };
    const auto on_processor = [&] {
      MelFrames own(recipe);
      std::vector<float> logs(kFrames * filters);
      own.compute(samples.data(), kFrames, {.logs = logs.data(), .greatest = nullptr});
    };
    std::printf("%-16s %2d callers of %zu frames %10.1f us gpu %10.1f us processor\n", name, threads, kFrames,
                together_us(threads, on_gpu), together_us(threads, on_processor));
  }
}

int run() {
  auto opened = Gpu::open(0);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message().c_str());
    return 1;
  }
  std::printf("%s; processor: vectors of %s\n", (*opened)->info().name.c_str(),
              mel_lane_name(*mel_lanes().front()));
  compare(**opened, "fbank 80", *fbank_recipe({}));
  compare(**opened, "whisper 80", whisper_recipe(80));
  compare(**opened, "whisper 128", whisper_recipe(128));
  return 0;
}

}  // namespace
}  // namespace oasr::bench

int main() { return oasr::bench::run(); }

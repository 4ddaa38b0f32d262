// Times of what follows a CTC head, for a batch of utterances of 10 s (250 frames) of a vocabulary of 5000: oasr_bench_gpu_ctc
//
// frames: ctc_frames() with its launches; beside it the copy of all logits to page-locked memory that it
// spares. search: ctc_prefix_beam() of 10 hypotheses with its copy to the host, and the host's search on all threads.
// The first batch where the GPU's search is the faster is what CtcTranscriber's choice is about.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "decode/ctc_prefix_beam.h"
#include "device/memory.h"
#include "kernels/ctc_beam/op.h"
#include "kernels/ctc_frames/op.h"
#include "replay.h"

namespace oasr::bench {
namespace {

constexpr int kFrames = 250, kVocabulary = 5000, kBeam = 10;

float* floats_of(Memory& memory) { return reinterpret_cast<float*>(memory.data()); }

// A frame in five belongs to a token with a rival, the others to the blank.
std::vector<float> logits(int utterances) {
  std::vector<float> all;
  std::uint64_t state = 1;
  for (int row = 0; row < utterances * kFrames; ++row) {
    const std::size_t first = all.size();
    for (int v = 0; v < kVocabulary; ++v) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      all.push_back(6.0f * static_cast<float>(state >> 40) * 0x1p-24f);
    }
    const bool spoken = row % 5 == 2;
    all[first] += spoken ? 10.0f : 15.0f;
    if (spoken) {
      all[first + 1 + (state >> 33) % (kVocabulary - 1)] += 14.0f;
      all[first + 1 + (state >> 13) % (kVocabulary - 1)] += 12.0f;
    }
  }
  return all;
}

// Microseconds of the host's search, whose results are those that were found.
double search_on_threads(ThreadPool& pool, const kernels::CtcFrameRows& all,
                         const std::vector<std::vector<decode::CtcHypothesis>>& found) {
  return median_call([&] {
    pool.parallel_for(static_cast<std::int64_t>(found.size()), [&](std::int64_t i, int) {
      const std::size_t first = static_cast<std::size_t>(i) * kFrames, tokens = std::size_t{kFrames} * kBeam;
      auto search = decode::CtcPrefixBeam::make(
                        {.vocabulary = kVocabulary, .blank = 0, .first_beam = kBeam, .second_beam = kBeam})
                        .value();
      search.accept({.frames = kFrames, .width = kBeam, .vocabulary = kVocabulary, .blank = 0,
                     .likeliest = {all.likeliest + first * kBeam, tokens}, .again = {all.again + first * kBeam, tokens},
                     .blanks = {all.blanks + first, kFrames}});
      if (search.results().front().score != found[static_cast<std::size_t>(i)].front().score) std::abort();
    });
  });
}

void measure(Gpu& gpu, ThreadPool& pool, int utterances) {
  const std::int64_t rows = std::int64_t{utterances} * kFrames;
  const std::vector<float> given = logits(utterances);
  const std::size_t bytes = given.size() * sizeof(float);
  Memory x(&gpu, bytes), frames(&gpu, static_cast<std::size_t>(kernels::CtcFrameRows::floats(rows, kBeam)) * sizeof(float));
  gpu.upload(x.data(), given.data(), bytes);
  const std::vector<kernels::CtcPiece> pieces(static_cast<std::size_t>(utterances), {.rows = kFrames, .before = {}});
  ExecContext context{.pool = &pool, .isa = detected_isa(), .gpu = &gpu};
  const kernels::CtcFramesArgs reduce{.logits = {floats_of(x), rows, kVocabulary, kVocabulary},
                                      .blank = 0,
                                      .width = kBeam,
                                      .pieces = pieces,
                                      .out = {floats_of(frames), rows, kBeam}};
  const double frames_us = median_call([&] {
    kernels::ctc_frames(context, reduce);
    gpu.wait();
  });
  HostFloats whole(&gpu), read(&gpu);
  const double copy_us = median_call([&] { gpu.download(whole.room(given.size()).data(), x.data(), bytes); });

  std::vector<kernels::CtcBeamUtterance> places;
  for (int i = 0; i < utterances; ++i) places.push_back({i * kFrames, kFrames});
  Memory memory(&gpu, static_cast<std::size_t>(kernels::CtcBeamMemory::floats(rows, utterances, kBeam)) * sizeof(float));
  const kernels::CtcBeamArgs search{.frames = reduce.out,
                                    .rows = rows,
                                    .width = kBeam,
                                    .blank = 0,
                                    .first_beam = kBeam,
                                    .second_beam = kBeam,
                                    .utterances = places,
                                    .memory = {floats_of(memory), rows, utterances, kBeam}};
  const auto results = read.room(static_cast<std::size_t>(kernels::CtcBeamMemory::read_floats(rows, utterances, kBeam)));
  std::vector<std::vector<decode::CtcHypothesis>> found(places.size());
  const double gpu_us = median_call([&] {
    kernels::ctc_prefix_beam(gpu, search);
    gpu.download(results.data(), search.memory.results, results.size_bytes());
    const auto at = kernels::CtcBeamMemory::read_at(results.data(), utterances, kBeam);
    pool.parallel_for(utterances, [&](std::int64_t i, int) {
      const auto index = static_cast<std::size_t>(i);
      found[index] = kernels::ctc_hypotheses(at, kBeam, i, places[index]);
    });
  });

  HostFloats host_frames(&gpu);
  const auto numbers = host_frames.room(static_cast<std::size_t>(kernels::CtcFrameRows::floats(rows, kBeam)));
  gpu.download(numbers.data(), frames.data(), numbers.size_bytes());
  const double host_us = search_on_threads(pool, kernels::CtcFrameRows(numbers.data(), rows, kBeam), found);
  std::printf("| %d | %.0f | %.0f | %.0f | %.0f |\n", utterances, frames_us, copy_us, gpu_us, host_us);
  std::fflush(stdout);
}

}  // namespace
}  // namespace oasr::bench

int main() {
  auto gpu = oasr::Gpu::open(0);
  if (!gpu) {
    std::fprintf(stderr, "%s\n", gpu.error().message().c_str());
    return 1;
  }
  oasr::ThreadPool pool(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  std::printf("%s, %d threads; microseconds\n\n", (*gpu)->info().name.c_str(), pool.threads());
  std::printf("| utterances | frames | copy of the logits | search on the GPU | on the threads |\n|---|---|---|---|---|\n");
  for (const int utterances : {1, 4, 8, 16, 32, 64, 128}) oasr::bench::measure(**gpu, pool, utterances);
}

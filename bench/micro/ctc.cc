// The time of a frame in the searches over CTC posteriors, and of making of a row of logits what they read; one core.
//
//   oasr_bench_ctc [--benchmark_filter=prefix_beam/5000]
//
// The posteriors are made, and look like a model's: most frames belong to the blank, every fifth to
// a token with a rival. bench/peers/ctc_search.py makes the same ones for other decoders.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "decode/ctc_greedy.h"
#include "decode/ctc_prefix_beam.h"
#include "decode/ctc_testing.h"
#include "decode/random.h"
#include "kernels/ctc_frames/op.h"

namespace oasr::decode {
namespace {

constexpr int kFrames = 500;

TokenId drawn(int frame, int salt, int vocabulary) {
  const auto key = static_cast<std::uint64_t>(frame) * 2 + static_cast<std::uint64_t>(salt);
  return static_cast<TokenId>(1 + mix64(key) % static_cast<std::uint64_t>(vocabulary - 1));
}

// Log-probabilities [kFrames, vocabulary].
std::vector<float> posteriors(int vocabulary) {
  std::vector<float> rows;
  std::vector<double> logits(static_cast<std::size_t>(vocabulary));
  for (int t = 0; t < kFrames; ++t) {
    for (int v = 0; v < vocabulary; ++v) {
      const auto key = static_cast<std::uint64_t>(t) * 65536 + static_cast<std::uint64_t>(v);
      logits[static_cast<std::size_t>(v)] = 6 * static_cast<double>(mix64(key) >> 11) * 0x1.0p-53;
    }
    const bool spoken = t % 5 == 2;
    logits[0] += spoken ? 10 : 15;
    if (spoken) {
      logits[static_cast<std::size_t>(drawn(t, 0, vocabulary))] += 14;
      logits[static_cast<std::size_t>(drawn(t, 1, vocabulary))] += 12;
    }
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    for (const double logit : logits) rows.push_back(static_cast<float>(logit - std::log(sum)));
  }
  return rows;
}

// What searches read of them.
CtcReduced frames_of(int vocabulary, int width) {
  return CtcRows{posteriors(vocabulary), vocabulary}.reduced(0, kFrames, width);
}

void report(benchmark::State& state) {
  state.counters["per_frame"] = benchmark::Counter(
      kFrames, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Vocabulary, tokens of a frame. The copy of the logits is not counted.
void frames(benchmark::State& state) {
  const int vocabulary = static_cast<int>(state.range(0)), width = static_cast<int>(state.range(1));
  const std::vector<float> given = posteriors(vocabulary);
  std::vector<float> x, out(static_cast<std::size_t>(kernels::CtcFrameRows::floats(kFrames, width)));
  const kernels::CtcPiece piece{.rows = kFrames, .before = {}};
  ThreadPool pool(1);
  ExecContext context{.pool = &pool, .isa = detected_isa()};
  for (auto _ : state) {
    state.PauseTiming();
    x = given;
    state.ResumeTiming();
    kernels::ctc_frames(context, {.logits = {x.data(), kFrames, vocabulary, vocabulary},
                                  .blank = 0,
                                  .width = width,
                                  .pieces = {&piece, 1},
                                  .out = {out.data(), kFrames, width}});
    benchmark::DoNotOptimize(out.data());
  }
  report(state);
}
BENCHMARK(frames)->ArgNames({"vocabulary", "width"})->Args({500, 10})->Args({5000, 1})->Args({5000, 10})->Args({5000, 32});

void greedy(benchmark::State& state) {
  const CtcReduced frames = frames_of(static_cast<int>(state.range(0)), 1);
  CtcGreedy search;
  for (auto _ : state) {
    search.reset();
    search.accept(frames);
    benchmark::DoNotOptimize(search.result().score);
  }
  report(state);
}
BENCHMARK(greedy)->Arg(500)->Arg(5000);

// Vocabulary, beam, phrases of three tokens, blank_skip in percent (0: off).
void prefix_beam(benchmark::State& state) {
  CtcBeamOptions options;
  options.vocabulary = static_cast<int>(state.range(0));
  options.first_beam = options.second_beam = static_cast<int>(state.range(1));
  const int phrases = static_cast<int>(state.range(2));
  if (phrases > 0) {
    std::vector<ContextPhrase> list;
    for (int i = 0; i < phrases; ++i) {
      ContextPhrase phrase{{}, 1.5};
      for (int k = 0; k < 3; ++k) phrase.tokens.push_back(drawn(3 * i + k, 0, options.vocabulary));
      list.push_back(phrase);
    }
    options.context = *ContextGraph::make(list, options.vocabulary, 0);
  }
  if (state.range(3) > 0) options.blank_skip = static_cast<double>(state.range(3)) / 100;
  const CtcReduced frames = frames_of(options.vocabulary, options.first_beam);
  CtcPrefixBeam search = *CtcPrefixBeam::make(options);
  for (auto _ : state) {
    search.reset();
    search.accept(frames);
    benchmark::DoNotOptimize(search.frames());
  }
  state.SetLabel("score " + std::to_string(search.results().front().score));
  report(state);
}
BENCHMARK(prefix_beam)
    ->ArgNames({"vocabulary", "beam", "phrases", "blank_skip"})
    ->Args({500, 10, 0, 0})
    ->Args({5000, 10, 0, 0})
    ->Args({5000, 4, 0, 0})
    ->Args({5000, 32, 0, 0})
    ->Args({5000, 10, 1000, 0})
    ->Args({5000, 10, 0, 98});

}  // namespace
}  // namespace oasr::decode

BENCHMARK_MAIN();

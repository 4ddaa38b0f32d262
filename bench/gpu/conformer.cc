// Time of a Conformer's encoder on a GPU: oasr_bench_gpu_conformer MODEL [arithmetic]
//
// One step of open utterances: features in host memory, log-probabilities back in host memory. `queue` is the time
// between events around it in the queue, copies and waits for the processor included. `a block`: the encoder's blocks
// alone and the norm behind them, as passes that follow each other in the queue, each one section that starts as a
// graph; the time of a pass over the number of blocks.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/cuda/check.h"
#include "load/load.h"
#include "models/conformer/model.h"
#include "replay.h"

namespace oasr::bench {
namespace {

struct Times {
  double queue_us = 0, wall_us = 0;  // medians
  double launches = 0, graphs = 0;   // of a step
};

// `utterances` of `rows` encoder frames each.
Times measure(Gpu& gpu, models::CtcState& state, const models::CtcModel& model, int utterances, int rows) {
  const auto bins = static_cast<std::size_t>(model.front_end().num_mel_bins);
  const auto frames = static_cast<std::size_t>((rows - 1) * model.subsampling_rate() + model.right_context() + 1);
  std::vector<float> features(frames * bins);
  std::mt19937 engine(1);
  for (float& value : features) value = static_cast<float>(engine() % 2000) * 0.01f - 10.0f;
  const auto stream = static_cast<cudaStream_t>(gpu.stream());
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<double> queue, wall;
  Times times;
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<models::UtteranceId> ids;
    for (int i = 0; i < utterances; ++i) {
      ids.push_back(state.open({}, true));
      state.accept(ids.back(), features);
      state.finish(ids.back());
    }
    const Gpu::Counts before = gpu.counts();
    const auto start = std::chrono::steady_clock::now();
    check(cudaEventRecord(begin, stream), "event");
    state.step(ids);
    check(cudaEventRecord(end, stream), "event");
    check(cudaEventSynchronize(end), "wait");
    const auto took = std::chrono::steady_clock::now() - start;
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    times.launches = static_cast<double>(gpu.counts().kernels - before.kernels);
    times.graphs = static_cast<double>(gpu.counts().graphs - before.graphs);
    if (round >= kRounds / 3) {  // graphs and memory are there
      queue.push_back(1e3 * ms);
      wall.push_back(std::chrono::duration<double, std::micro>(took).count());
    }
    for (const models::UtteranceId id : ids) state.close(id);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  times.queue_us = median(queue);
  times.wall_us = median(wall);
  return times;
}

struct BlockTimes {
  double block_us = 0;   // on the GPU
  double put_in_us = 0;  // what the processor takes for a block
  double kernels = 0;    // of a pass
};

BlockTimes measure_blocks(Gpu& gpu, ExecContext& context, const models::conformer::Network& network,
                                         int utterances, int rows) {
  namespace conformer = models::conformer;
  constexpr int kRounds = 7, kPasses = 16;  // a pass is put in while the one before runs
  const std::int64_t all = std::int64_t{utterances} * rows, d = network.config.encoder.output_size;
  conformer::PositionTable positions = network.encoder.make_positions();
  conformer::EncoderBuffers buffers(&gpu);
  layers::Buffer x(all * d, &gpu);
  std::vector<float> values(static_cast<std::size_t>(all * d));
  std::mt19937 engine(1);
  for (float& value : values) value = static_cast<float>(engine() % 2000) * 1e-3f - 1;
  to_device(&gpu, x.matrix(all, d).data, values);
  std::vector<conformer::EncoderCache> caches;
  caches.reserve(static_cast<std::size_t>(utterances));
  const auto pass = [&] {
    std::vector<conformer::Piece> pieces;
    caches.clear();
    for (int i = 0; i < utterances; ++i) {
      pieces.push_back({.cache = &caches.emplace_back(network.config, models::ChunkMask{}, true), .rows = rows});
    }
    gpu.as_graph(all <= 64 ? Starts::early : Starts::after,
                 [&] { network.encoder.forward(context, x.matrix(all, d), pieces, positions, buffers); });
  };
  const auto stream = static_cast<cudaStream_t>(gpu.stream());
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  const double blocks = kPasses * network.config.encoder.num_blocks;
  std::vector<double> on_gpu, put_in;
  BlockTimes times;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 3; ++i) pass();
    check(cudaEventRecord(begin, stream), "event");
    const std::int64_t before = gpu.counts().kernels;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kPasses; ++i) pass();
    put_in.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / blocks);
    times.kernels = static_cast<double>(gpu.counts().kernels - before) / kPasses;
    check(cudaEventRecord(end, stream), "event");
    check(cudaEventSynchronize(end), "wait");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    on_gpu.push_back(1e3 * ms / blocks);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  times.block_us = median(on_gpu);
  times.put_in_us = median(put_in);
  return times;
}

int run(const char* path, const std::string& arithmetic) {
  auto gpu = Gpu::open(0);
  if (!gpu) {
    std::fprintf(stderr, "%s\n", gpu.error().what.c_str());
    return 1;
  }
  ThreadPool pool(8);
  ExecContext context{.pool = &pool, .isa = detected_isa(), .gpu = gpu->get()};
  if (arithmetic == "float16") context.arithmetic = Arithmetic::float16;
  const auto loaded = load::load_model(path, {}, context);
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.error().what.c_str());
    return 1;
  }
  const auto* model = dynamic_cast<const models::CtcModel*>(loaded->model.get());
  if (model == nullptr) {
    std::fprintf(stderr, "%s is not a CTC model\n", path);
    return 1;
  }
  const auto* conformer = dynamic_cast<const models::conformer::Model*>(model);
  auto state = model->new_state(context);
  if (conformer == nullptr || !state) return 1;
  std::printf("%s, %s, %d blocks\n", (*gpu)->info().name.c_str(), arithmetic.c_str(),
              conformer->network().config.encoder.num_blocks);
  std::printf("%10s %6s %12s %12s %9s %7s %12s %12s %9s\n", "utterances", "rows", "queue, us", "wall, us", "kernels",
              "graphs", "a block, us", "put in, us", "kernels");
  for (const auto& [utterances, rows] : {std::pair{1, 16}, {1, 64}, {1, 128}, {1, 256}, {1, 512}, {4, 128}, {8, 64},
                                         {16, 128}, {64, 80}, {64, 256}}) {
    const Times times = measure(**gpu, **state, *model, utterances, rows);
    const BlockTimes alone = measure_blocks(**gpu, context, conformer->network(), utterances, rows);
    std::printf("%10d %6d %12.1f %12.1f %9.0f %7.0f %12.1f %12.1f %9.0f\n", utterances, rows, times.queue_us,
                times.wall_us, times.launches, times.graphs, alone.block_us, alone.put_in_us, alone.kernels);
  }
  return 0;
}

}  // namespace
}  // namespace oasr::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: oasr_bench_gpu_conformer MODEL [float32|float16]\n");
    return 1;
  }
  return oasr::bench::run(argv[1], argc > 2 ? argv[2] : "float32");
}

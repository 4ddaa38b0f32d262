// Rates of the kernels on one core, per lane: linear, attention, layer norm, convolutions, gates.
//
//   oasr_bench_kernels [--benchmark_filter=avx512/linear]
//
// The time of a call is CPU time of the thread. Before and after every call a register-only loop measures the
// roof; a call counts only if both loops ran at the best rate seen (within 5 %), so that a neighbour
// on the core does not make a kernel look slow, or fast. "of_peak" is the median call's share of the
// roof, "best_of_peak" the fastest call's: on a busy machine the truth lies between.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "kernels/activate/op.h"
#include "kernels/attention/op.h"
#include "kernels/conv2d/op.h"
#include "kernels/depthwise_conv1d/op.h"
#include "kernels/norm/op.h"
#include "kernels/peak/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The rate of the register-only loop now, operations a second; about 0.2 ms.
double peak_now(Isa isa) { return 1e9 * peak_gops(PeakKind::float32, isa, 0); }

// Runs `call` under the rule above and sets the counters.
void measure(benchmark::State& state, Isa isa, double operations, double bytes,
             const std::function<void()>& call) {
  static std::map<Isa, double> best_peak;
  double& best = best_peak[isa];
  for (int i = 0; i < 200; ++i) best = std::max(best, peak_now(isa));
  call();
  std::vector<double> quiet, all;
  double before = peak_now(isa);
  for (auto _ : state) {
    const double begin = thread_seconds();
    call();
    const double seconds = thread_seconds() - begin;
    const double after = peak_now(isa);
    best = std::max(best, after);
    all.push_back(seconds);
    if (std::min(before, after) > 0.95 * best) quiet.push_back(seconds);
    before = after;
    state.SetIterationTime(seconds);
  }
  auto& used = quiet.empty() ? all : quiet;
  std::nth_element(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(used.size() / 2), used.end());
  const double median = used[used.size() / 2];
  const double fastest = *std::min_element(used.begin(), used.end());
  state.counters["us"] = median * 1e6;
  if (operations > 0) state.counters["GFLOPS"] = operations / median * 1e-9;
  if (operations > 0) state.counters["of_peak"] = operations / median / best;
  if (operations > 0) state.counters["best_of_peak"] = operations / fastest / best;
  if (bytes > 0) state.counters["GB/s"] = bytes / median * 1e-9;
  state.counters["peak"] = best * 1e-9;
  state.counters["quiet"] = static_cast<double>(quiet.size());
}

void linear_case(benchmark::State& state, const LinearLane& lane, DType storage, std::int64_t m,
                 std::int64_t n, std::int64_t k) {
  const std::int64_t ldx = row_stride(k);
  const auto x = random_floats(m * ldx, 1), bias = random_floats(n, 2);
  const PackedWeight weight = pack_rows(random_floats(n * k, 3), n, k, storage);
  std::vector<float> y(static_cast<std::size_t>(m * row_stride(n)));
  const LinearArgs args{.x = x.data(), .ldx = ldx, .m = m, .weight = &weight, .bias = bias.data(),
                        .activation = n > k && n < 10'000 ? Activation::gelu : Activation::none,
                        .y = y.data(), .ldy = row_stride(n)};
  const auto operations = 2.0 * static_cast<double>(m * n * k);
  measure(state, lane.isa, operations, m < 48 ? static_cast<double>(weight.bytes()) : 0,
          [&] { lane.run(args, 0, m, 0, (n + 31) / 32); });
}

void attention_case(benchmark::State& state, const AttentionLane& lane, DType storage,
                    std::int64_t queries, std::int64_t length) {
  constexpr int kHeads = 8, kDim = 64;
  constexpr std::int64_t kWidth = kHeads * kDim;
  ThreadPool pool(1);
  ExecContext context{&pool, lane.isa};
  const auto q = random_floats(queries * kWidth, 1), k = random_floats(length * kWidth, 2),
             v = random_floats(length * kWidth, 3);
  AlignedBuffer memory(kv_cache_bytes(kHeads, kDim, length, storage));
  KvCache kv{.heads = kHeads, .head_dim = kDim, .capacity = length, .storage = storage, .data = memory.data()};
  kv_append(context, kv, k.data(), kWidth, v.data(), kWidth, length);
  std::vector<float> out(static_cast<std::size_t>(queries * kWidth));
  const AttentionArgs args{.q = q.data(), .ldq = kWidth, .queries = queries, .kv = &kv, .scale = 0.125f,
                           .out = out.data(), .ldo = kWidth};
  const auto operations = 4.0 * static_cast<double>(queries * length * kWidth);
  measure(state, lane.isa, operations, queries < 48 ? static_cast<double>(memory.size()) : 0,
          [&] { attention(context, {&args, 1}); });
}

void norm_case(benchmark::State& state, const LayerNormLane& lane) {
  constexpr std::int64_t kRows = 300, kWidth = 512;
  const auto x = random_floats(kRows * kWidth, 1), gamma = random_floats(kWidth, 2);
  std::vector<float> y(x.size());
  const LayerNormArgs args{.x = x.data(), .ldx = kWidth, .m = kRows, .d = kWidth, .gamma = gamma.data(),
                           .beta = gamma.data(), .y = y.data(), .ldy = kWidth};
  measure(state, lane.isa, 0, 2.0 * static_cast<double>(x.size() * sizeof(float)),
          [&] { lane.run(args, 0, kRows); });
}

// `count` random floats at the start of a cache line, as layers have them.
AlignedBuffer aligned_floats(std::int64_t count, unsigned seed) {
  const auto values = random_floats(count, seed);
  AlignedBuffer memory(values.size() * sizeof(float));
  std::memcpy(memory.data(), values.data(), memory.size());
  return memory;
}

void depthwise_case(benchmark::State& state, const DepthwiseConv1dLane& lane, std::int64_t frames, std::int64_t width,
                    std::int64_t taps) {
  const AlignedBuffer x = aligned_floats((frames + taps - 1) * width, 1), bias = aligned_floats(width, 2);
  const auto w = random_floats(taps, 3);
  const auto weight = DepthwiseWeight::pack(width, taps, [&](std::int64_t, std::span<float> row) {
    std::copy_n(w.begin(), row.size(), row.begin());
  });
  AlignedBuffer y(static_cast<std::size_t>(frames * width) * sizeof(float));
  const DepthwiseConv1dArgs args{.x = reinterpret_cast<const float*>(x.data()), .ldx = width, .frames = frames,
                                 .weight = &weight, .bias = reinterpret_cast<const float*>(bias.data()),
                                 .y = reinterpret_cast<float*>(y.data()), .ldy = width};
  measure(state, lane.isa, 2.0 * static_cast<double>(frames * width * taps),
          static_cast<double>(x.size() + y.size()), [&] { lane.run(args, 0, frames); });
}

// A convolution of a Conformer's subsampling, 3x3 with stride 2, without padding.
void conv2d_case(benchmark::State& state, const LinearLane& lane, DType storage, std::int64_t height, std::int64_t width,
                 std::int64_t channels, std::int64_t c_out) {
  ThreadPool pool(1);
  ExecContext context{&pool, lane.isa};
  const auto x = random_floats(height * width * channels, 1), bias = random_floats(c_out, 2);
  const auto w = random_floats(c_out * channels * 9, 3);
  const PackedWeight weight = pack_conv2d(c_out, channels, 3, 3, storage, [&](std::int64_t n, std::span<float> row) {
    std::copy_n(w.begin() + n * channels * 9, row.size(), row.begin());
  });
  const ConvAxis axis{.taps = 3, .stride = 2};
  Conv2dArgs args{.x = x.data(),
                  .geometry = {.height = height, .width = width, .channels = channels, .stride_row = width * channels,
                               .stride_pixel = channels, .vertical = axis, .horizontal = axis},
                  .weight = &weight, .bias = bias.data(), .activation = Activation::relu, .ldy = c_out};
  std::vector<float> y(static_cast<std::size_t>(args.geometry.rows() * c_out));
  args.y = y.data();
  measure(state, lane.isa, 2.0 * static_cast<double>(args.geometry.rows() * c_out * weight.k()),
          static_cast<double>((x.size() + y.size()) * sizeof(float)), [&] { conv2d(context, args); });
}

void glu_case(benchmark::State& state, const ActivateLane& lane) {
  constexpr std::int64_t kRows = 300, kWidth = 256;
  const auto x = random_floats(kRows * 2 * kWidth, 1);
  std::vector<float> y(x.size() / 2);
  const GluArgs args{.x = x.data(), .ldx = 2 * kWidth, .m = kRows, .d = kWidth, .y = y.data(), .ldy = kWidth};
  measure(state, lane.isa, 0, static_cast<double>((x.size() + y.size()) * sizeof(float)),
          [&] { lane.glu(args, 0, kRows); });
}

void swish_case(benchmark::State& state, const ActivateLane& lane) {
  constexpr std::int64_t kRows = 300, kWidth = 256;
  const auto from = random_floats(kRows * kWidth, 1);
  auto x = from;
  const ActivateRowsArgs args{.x = x.data(), .ldx = kWidth, .m = kRows, .d = kWidth, .activation = Activation::swish};
  measure(state, lane.isa, 0, 2.0 * static_cast<double>(x.size() * sizeof(float)), [&] {
    lane.activate_rows(args, 0, kRows);
    x = from;  // swish of swish of … would end in subnormal numbers
  });
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->MinTime(0.1)->Unit(benchmark::kMicrosecond);
}

void add_linear(const LinearLane& lane) {
  const bool fast = lane.isa != Isa::scalar;
  for (const DType storage : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{512, 512}, {2048, 512}, {512, 2048}, {51865, 512}}) {
      for (const std::int64_t m : {1, 5, 16, 48, 192, 1500}) {
        if (n > 10'000 && m > 16) continue;
        if (!fast && m * n > 100'000) continue;
        add(std::string(lane.name) + "/linear/" + std::string(dtype_name(storage)) + "/" + std::to_string(m) +
                "x" + std::to_string(n) + "x" + std::to_string(k),
            [=](benchmark::State& state) { linear_case(state, lane, storage, m, n, k); });
      }
    }
  }
}

void add_attention(const AttentionLane& lane) {
  for (const DType storage : {DType::f32, DType::f16}) {
    for (const auto& [queries, length] : {std::pair<std::int64_t, std::int64_t>{1, 100}, {1, 1500}, {5, 1500},
                                          {48, 1500}, {1500, 1500}}) {
      if (lane.isa == Isa::scalar && queries > 5) continue;
      add(std::string(lane.name) + "/attention/" + std::string(dtype_name(storage)) + "/" +
              std::to_string(queries) + "x" + std::to_string(length),
          [=](benchmark::State& state) { attention_case(state, lane, storage, queries, length); });
    }
  }
}

void add_conv2d(const LinearLane& lane) {
  struct Size {
    std::int64_t height, width, channels;
  };
  for (const DType storage : {DType::f32, DType::f16}) {
    for (const Size& size : {Size{67, 80, 1}, {999, 80, 1}, {33, 39, 256}, {499, 39, 256}}) {
      if (lane.isa == Isa::scalar && size.height * size.channels > 1000) continue;
      add(std::string(lane.name) + "/conv2d/" + std::string(dtype_name(storage)) + "/" + std::to_string(size.height) +
              "x" + std::to_string(size.width) + "x" + std::to_string(size.channels) + "to256",
          [=](benchmark::State& state) {
            conv2d_case(state, lane, storage, size.height, size.width, size.channels, 256);
          });
    }
  }
}

}  // namespace
}  // namespace oasr::kernels

int main(int argc, char** argv) {
  using namespace oasr::kernels;
  for (const LinearLane& lane : runnable(linear_lanes())) add_linear(lane);
  for (const LinearLane& lane : runnable(linear_lanes())) add_conv2d(lane);
  for (const AttentionLane& lane : runnable(attention_lanes())) add_attention(lane);
  for (const LayerNormLane& lane : runnable(layer_norm_lanes())) {
    add(std::string(lane.name) + "/layer_norm/300x512",
        [=](benchmark::State& state) { norm_case(state, lane); });
  }
  for (const DepthwiseConv1dLane& lane : runnable(depthwise_conv1d_lanes())) {
    for (const auto& [frames, width, taps] : {std::tuple<int, int, int>{16, 256, 15}, {300, 256, 15}, {300, 512, 31}}) {
      add(std::string(lane.name) + "/depthwise_conv1d/" + std::to_string(frames) + "x" + std::to_string(width) + "x" +
              std::to_string(taps),
          [=](benchmark::State& state) { depthwise_case(state, lane, frames, width, taps); });
    }
  }
  for (const ActivateLane& lane : runnable(activate_lanes())) {
    add(std::string(lane.name) + "/glu/300x256", [=](benchmark::State& state) { glu_case(state, lane); });
    add(std::string(lane.name) + "/swish/300x256", [=](benchmark::State& state) { swish_case(state, lane); });
  }
  benchmark::Initialize(&argc, argv);
  const oasr::CpuInfo cpu = oasr::cpu_info();
  benchmark::AddCustomContext("processor", cpu.model + " (" + cpu.features + ")");
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

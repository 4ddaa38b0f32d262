// Attention, its caches and the small operations beside it, on a GPU.
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>

#include "device/memory.h"
#include "kernels/activate/op.h"
#include "kernels/attention/op.h"
#include "kernels/depthwise_conv1d/op.h"
#include "kernels/rows/op.h"
#include "replay.h"

namespace oasr::bench {
namespace {

using kernels::AttentionArgs;
using kernels::KvCache;

class Numbers {
 public:
  Numbers(Gpu& gpu, std::int64_t count) : memory_(&gpu, static_cast<std::size_t>(count) * sizeof(float)) {
    static std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    std::vector<float> some(4099);  // repeated, out of step with any shape
    for (float& value : some) value = normal(engine);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = some[i % some.size()];
    gpu.upload(memory_.data(), values.data(), memory_.size());
  }
  float* data() { return reinterpret_cast<float*>(memory_.data()); }

 private:
  Memory memory_;
};

struct Shape {
  const char* name;
  int sequences, heads, dim;
  std::int64_t queries, length;
  bool causal, positions;
  DType storage;
  int sets;  // of memory to rotate
  bool encoder = false;  // also in mixed precision
};

struct Set {
  Set(ExecContext& context, const Shape& s)
      : width(std::int64_t{s.heads} * s.dim),
        rows(s.sequences * s.queries),
        q(*context.gpu, rows * width),
        q_position(*context.gpu, s.positions ? rows * width : 1),
        out(*context.gpu, rows * width),
        keys(*context.gpu, s.length * width) {
    const std::size_t bytes = kernels::kv_cache_bytes(s.heads, s.dim, s.length, s.storage);
    for (int i = 0; i < 2 * s.sequences; ++i) {
      memory.emplace_back(context.gpu, bytes);
      caches.push_back({.heads = s.heads,
                        .head_dim = s.dim,
                        .capacity = s.length,
                        .length = 0,
                        .storage = s.storage,
                        .data = memory.back().data()});
    }
    for (KvCache& cache : caches) kv_append(context, cache, keys.data(), width, keys.data(), width, s.length);
    for (int i = 0; i < s.sequences; ++i) {
      const std::int64_t at = i * s.queries * width;
      args.push_back({.q = q.data() + at,
                      .ldq = width,
                      .queries = s.queries,
                      .kv = &caches[static_cast<std::size_t>(2 * i)],
                      .causal = s.causal,
                      .scale = 0.125f,
                      .q_position = s.positions ? q_position.data() + at : nullptr,
                      .positions = s.positions ? &caches[static_cast<std::size_t>(2 * i + 1)] : nullptr,
                      .out = out.data() + at,
                      .ldo = width,
                      .mixed = s.encoder});
    }
  }
  std::int64_t width, rows;
  Numbers q, q_position, out, keys;
  std::vector<Memory> memory;
  std::vector<KvCache> caches;
  std::vector<AttentionArgs> args;
};

void attention_of(ExecContext context, const Shape& s, Arithmetic arithmetic) {
  context.arithmetic = arithmetic;
  std::vector<std::unique_ptr<Set>> sets;
  for (int i = 0; i < s.sets; ++i) sets.push_back(std::make_unique<Set>(context, s));
  const int calls = s.queries > 100 ? 4 : 24;
  const double us = microseconds(*context.gpu, calls, [&](int i) {
    kernels::attention(context, sets[static_cast<std::size_t>(i % s.sets)]->args);
  });
  const double products = s.positions ? 3 : 2;
  const double flops =
      2.0 * products * s.sequences * s.heads * static_cast<double>(s.queries * s.length) * s.dim;
  const double bytes = static_cast<double>(s.sequences * s.heads * s.length * s.dim) * products *
                       static_cast<double>(dtype_size(s.storage));
  std::printf("%-52s %-8s %9.2f us %8.2f TFLOP/s %8.0f GB/s of caches\n", s.name,
              std::string(arithmetic_name(arithmetic)).c_str(), us, flops / us * 1e-6, bytes / us * 1e-3);
}

void appends(ExecContext& context, int sequences, std::int64_t count, DType storage) {
  const Shape s{"", sequences, 8, 64, 1, 1500, false, false, storage, 1};
  Set set(context, s);
  Numbers rows(*context.gpu, sequences * count * 3 * set.width);
  std::vector<kernels::AppendArgs> args;
  for (int i = 0; i < sequences; ++i) {
    const float* at = rows.data() + i * count * 3 * set.width;
    args.push_back({.kv = &set.caches[static_cast<std::size_t>(2 * i)],
                    .k = at + set.width,
                    .ldk = 3 * set.width,
                    .v = at + 2 * set.width,
                    .ldv = 3 * set.width,
                    .count = count});
  }
  const double us = microseconds(*context.gpu, 8, [&](int) {
    for (const auto& arg : args) arg.kv->length = 1500 - count;
    kv_append(context, args);
  });
  std::printf("kv_append %2d sequences x %4lld positions %-21s %9.2f us\n", sequences,
              static_cast<long long>(count), storage == DType::f32 ? "f32" : "f16", us);
}

void small_operations(ExecContext& context) {
  constexpr std::int64_t kRows = 12'000, kD = 256;
  Gpu& gpu = *context.gpu;
  Numbers x(gpu, (kRows + 14) * 2 * kD), y(gpu, kRows * 2 * kD);
  kernels::DepthwiseWeight weight =
      kernels::DepthwiseWeight::pack(kD, 15, [](std::int64_t, std::span<float> row) {
        for (float& value : row) value = 0.1f;
      });
  weight.place(gpu);
  const auto tell = [](const char* name, double us, double bytes) {
    std::printf("%-52s %9.2f us %8.0f GB/s\n", name, us, bytes / us * 1e-3);
  };
  const double row = kRows * kD * sizeof(float);
  tell("glu 12000 x 256",
       microseconds(gpu, 8,
                    [&](int) {
                      kernels::glu(
                          context,
                          {.x = x.data(), .ldx = 2 * kD, .m = kRows, .d = kD, .y = y.data(), .ldy = kD});
                    }),
       3 * row);
  tell("swish 12000 x 256",
       microseconds(
           gpu, 8,
           [&](int) {
             kernels::activate_rows(
                 context,
                 {.x = y.data(), .ldx = kD, .m = kRows, .d = kD, .activation = kernels::Activation::swish});
           }),
       2 * row);
  tell("depthwise 12000 x 256, 15 taps",
       microseconds(gpu, 8,
                    [&](int) {
                      kernels::depthwise_conv1d(context, {.x = x.data(),
                                                          .ldx = kD,
                                                          .frames = kRows,
                                                          .weight = &weight,
                                                          .bias = nullptr,
                                                          .y = y.data(),
                                                          .ldy = kD});
                    }),
       2 * row);
  tell("shift and scale 12000 x 256",
       microseconds(gpu, 8,
                    [&](int) {
                      kernels::shift_scale_rows(context, {.x = {x.data(), kRows, kD, kD},
                                                          .shift = y.data(),
                                                          .y = {y.data(), kRows, kD, kD}});
                    }),
       2 * row);
  tell("look for NaN 16 x 51865",
       microseconds(gpu, 8,
                    [&](int) {
                      static_cast<void>(kernels::first_not_finite(context, {x.data(), 16, 51'865, 51'865}));
                    }),
       16.0 * 51'865 * 4);
}

int run() {
  auto gpu = Gpu::open(0);
  if (!gpu) {
    std::printf("no GPU: %s\n", gpu.error().what.c_str());
    return 1;
  }
  ThreadPool pool(1);
  ExecContext context{.pool = &pool, .isa = detected_isa(), .observer = nullptr, .gpu = gpu->get()};
  const Shape shapes[] = {
      {"encoder, 1 window: 8 x 64, 1500 x 1500", 1, 8, 64, 1500, 1500, false, false, DType::f32, 2, true},
      {"encoder, 8 windows: 8 x 64, 1500 x 1500", 8, 8, 64, 1500, 1500, false, false, DType::f32, 2, true},
      {"prompt, 64 tokens: 8 x 64, 1500 f16", 1, 8, 64, 64, 1500, false, false, DType::f16, 4},
      {"prompt, 4 tokens: 8 x 64, 1500 f16", 1, 8, 64, 4, 1500, false, false, DType::f16, 4},
      {"decoder cross, 1 row: 8 x 64, 1500 f16", 1, 8, 64, 1, 1500, false, false, DType::f16, 6},
      {"decoder cross, 1 row: 8 x 64, 1500 f32", 1, 8, 64, 1, 1500, false, false, DType::f32, 6},
      {"decoder cross, 16 rows: 8 x 64, 1500 f16", 16, 8, 64, 1, 1500, false, false, DType::f16, 6},
      {"decoder cross, 16 rows: 8 x 64, 1500 f32", 16, 8, 64, 1, 1500, false, false, DType::f32, 6},
      {"decoder cross, 5 rows of a window: 8 x 64, 1500 f16", 1, 8, 64, 5, 1500, false, false, DType::f16, 6},
      {"decoder self, 1 row: 8 x 64, 32 f32", 1, 8, 64, 1, 32, true, false, DType::f32, 6},
      {"decoder self, 1 row: 8 x 64, 448 f32", 1, 8, 64, 1, 448, true, false, DType::f32, 6},
      {"decoder self, 16 rows: 8 x 64, 448 f32", 16, 8, 64, 1, 448, true, false, DType::f32, 6},
      {"Conformer, 8 utterances: 4 x 64, 300 x 300", 8, 4, 64, 300, 300, false, true, DType::f32, 4, true},
      {"Conformer, 40 utterances: 4 x 64, 300 x 300", 40, 4, 64, 300, 300, false, true, DType::f32, 2, true},
      {"Conformer, 64 streams: 4 x 64, 16 x 80", 64, 4, 64, 16, 80, false, true, DType::f32, 4, true},
  };
  for (const Shape& shape : shapes) {
    attention_of(context, shape, Arithmetic::float32);
    if (!shape.encoder) continue;
    attention_of(context, shape, Arithmetic::float16);
    attention_of(context, shape, Arithmetic::bfloat16);
  }
  for (const DType storage : {DType::f32, DType::f16}) {
    appends(context, 8, 1500, storage);
    appends(context, 1, 1, storage);
    appends(context, 16, 1, storage);
  }
  small_operations(context);
  return 0;
}

}  // namespace
}  // namespace oasr::bench

int main() { return oasr::bench::run(); }

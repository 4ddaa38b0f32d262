// Times of the products, norms and quantize steps on a GPU: oasr_bench_gpu_products [all]
// `all` runs every tile, not only the one that the op chooses.
#include <cstdio>
#include <cstring>
#include <string>

#include "kernels/linear/cuda.h"
#include "kernels/norm/op.h"
#include "kernels/quantize/norm.h"
#include "kernels/scaled_mm/cuda.h"
#include "timing.h"

namespace oasr::bench {
namespace {

using namespace kernels;

// As many sets as are a few times the cache.
int sets_for(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>((256 << 20) / bytes, 1, 20));
}

struct Bench {
  Gpu& gpu;
  bool all;
  double copy_tbs;  // measured
  ExecContext context{};

  void row(const std::string& op, std::int64_t m, std::int64_t n, std::int64_t k, double us, double ops,
           double bytes) {
    std::printf("%-44s %6ld %6ld %5ld %10.2f us %8.1f TOP/s %7.2f TB/s = %3.0f %% of copy\n", op.c_str(),
                static_cast<long>(m), static_cast<long>(n), static_cast<long>(k), us, ops / us / 1e6,
                bytes / us / 1e6, 100 * bytes / us / 1e6 / copy_tbs);
  }

  std::vector<PackedInt8Weight> int8_weights(int sets, std::int64_t n, std::int64_t k) {
    std::vector<PackedInt8Weight> weights;
    std::vector<std::int8_t> w(static_cast<std::size_t>(n * k));
    std::mt19937 engine(7);
    for (auto& value : w) value = static_cast<std::int8_t>(static_cast<std::int32_t>(engine()) % 128);
    const std::vector<float> scale(static_cast<std::size_t>(n), 0.01f);
    for (int i = 0; i < sets; ++i) {
      weights.push_back(PackedInt8Weight::pack(n, k, w, scale));
      weights.back().place(gpu);
    }
    return weights;
  }

  void int8(std::int64_t m, std::int64_t n, std::int64_t k) {
    const int sets = m > 256 ? 1 : sets_for(n * k);
    RandomSets<std::int8_t> a(gpu, sets, m * k, 1);
    RandomSets<float> x(gpu, sets, m * k, 3), scale(gpu, 1, std::max(m, n), 2);
    Memory y(&gpu, static_cast<std::size_t>(sets * m * n) * sizeof(float));
    const std::vector<PackedInt8Weight> weights = int8_weights(sets, n, k);
    const auto args = [&](int i) {
      return ScaledMMArgs{.a = a.at(i),
                          .lda = k,
                          .a_scale = ActivationScale::per_token(scale.at(0)),
                          .m = m,
                          .weight = &weights[static_cast<std::size_t>(i)],
                          .bias = scale.at(0)};
    };
    const auto to = [&](int i) {
      return FloatOutput{.y = reinterpret_cast<float*>(y.data()) + i * m * n, .ldy = n};
    };
    const auto to_int8 = [&](int i) {
      return Int8Output{
          .multiplier = scale.at(0), .q = reinterpret_cast<std::int8_t*>(y.data()) + i * m * n, .ldq = n};
    };
    const auto floats = [&](int i) {
      return DynamicScaledMMArgs{.x = x.at(i),
                                 .ldx = k,
                                 .m = m,
                                 .weight = &weights[static_cast<std::size_t>(i)],
                                 .bias = scale.at(0)};
    };
    const double ops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const auto bytes = static_cast<double>(m * k + n * k + 4 * m * n);
    const ScaledMMTile chosen = scaled_mm_tile(m, n, k, gpu.info());
    for (const ScaledMMTile tile : kScaledMMTiles) {
      if (!all && tile != chosen) continue;
      if (m > 256 && (tile == ScaledMMTile::m16n32 || tile == ScaledMMTile::m64n32)) continue;
      if (m <= 64 && tile > ScaledMMTile::m64n64) continue;
      const double us = median_us(gpu, sets, [&](int i) { scaled_mm_cuda(gpu, args(i), to(i), tile); });
      row("scaled_mm tile " + std::to_string(static_cast<int>(tile)) + (tile == chosen ? " (chosen)" : ""), m,
          n, k, us, ops, bytes);
    }
    row("scaled_mm, int8 output", m, n, k,
        median_us(gpu, sets, [&](int i) { scaled_mm_cuda(gpu, args(i), to_int8(i)); }), ops,
        bytes - 3.0 * static_cast<double>(m * n));
    auto with_gelu = [&](int i) {
      ScaledMMArgs gelu = args(i);
      gelu.activation = Activation::gelu;
      scaled_mm_cuda(gpu, gelu, to_int8(i));
    };
    row("scaled_mm, gelu, int8 output", m, n, k, median_us(gpu, sets, with_gelu), ops,
        bytes - 3.0 * static_cast<double>(m * n));
    row("scaled_mm_dynamic", m, n, k,
        median_us(gpu, sets, [&](int i) { scaled_mm_cuda(gpu, floats(i), to(i)); }), ops,
        bytes + 3.0 * static_cast<double>(m * k));
  }

  void linear(std::int64_t m, std::int64_t n, std::int64_t k, DType storage) {
    const int sets = m > 256 ? 1 : sets_for(n * k * static_cast<std::int64_t>(dtype_size(storage)));
    RandomSets<float> x(gpu, sets, m * k, 1), bias(gpu, 1, n, 2);
    Memory y(&gpu, static_cast<std::size_t>(sets * m * n) * sizeof(float));
    std::vector<PackedWeight> weights;
    for (int i = 0; i < sets; ++i) {
      weights.push_back(PackedWeight::pack(n, k, storage, [](std::int64_t row, std::span<float> out) {
        for (std::size_t j = 0; j < out.size(); ++j) {
          out[j] =
              static_cast<float>((static_cast<std::size_t>(row) * 7919 + j * 104'729) % 1009) * 0.001f - 0.5f;
        }
      }));
      weights.back().place(gpu);
    }
    const double ops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const double bytes = static_cast<double>(n * k) * static_cast<double>(dtype_size(storage)) +
                         4.0 * static_cast<double>(m * k + m * n);
    const auto args = [&](int i) {
      return LinearArgs{.x = x.at(i),
                        .ldx = k,
                        .m = m,
                        .weight = &weights[static_cast<std::size_t>(i)],
                        .bias = bias.at(0),
                        .y = reinterpret_cast<float*>(y.data()) + i * m * n,
                        .ldy = n};
    };
    const LinearTile chosen = linear_tile(m, n, gpu.info().multiprocessors);
    for (const LinearTile tile : kLinearTiles) {
      if (tile != chosen && (!all || m <= 16 || m * n > 4'000'000)) continue;
      const double us = median_us(gpu, sets, [&](int i) { linear_cuda(gpu, args(i), tile); });
      row("linear " + std::string(dtype_name(storage)) + " tile " + std::to_string(static_cast<int>(tile)) +
              (tile == chosen ? " (chosen)" : ""),
          m, n, k, us, ops, bytes);
    }
    for (const Arithmetic arithmetic : {Arithmetic::float16, Arithmetic::bfloat16}) {
      linear_mixed(m, n, k, storage, arithmetic, sets, args, ops, bytes);
    }
  }

  void linear_mixed(std::int64_t m, std::int64_t n, std::int64_t k, DType storage, Arithmetic arithmetic, int sets,
                    const std::function<LinearArgs(int)>& args, double ops, double bytes) {
    const MixedTile chosen = mixed_tile(m, n, gpu.info().multiprocessors);
    for (const MixedTile tile : kMixedTiles) {
      if (tile != chosen && (!all || arithmetic != Arithmetic::float16 || (tile == MixedTile::few_rows && m > 256))) continue;
      const double us =
          median_us(gpu, sets, [&](int i) { linear_mixed_cuda(gpu, args(i), arithmetic, tile); });
      row("linear " + std::string(dtype_name(storage)) + " in " + std::string(arithmetic_name(arithmetic)) + " tile " +
              std::to_string(static_cast<int>(tile)) + (tile == chosen ? " (chosen)" : ""),
          m, n, k, us, ops, bytes);
    }
  }

  // Rows of floats and where their results go.
  struct Rows {
    Rows(Gpu& gpu, std::int64_t m, std::int64_t d)
        : m(m),
          d(d),
          sets(sets_for(m * d * 4)),
          x(gpu, sets, m * d, 1),
          factors(gpu, 1, d, 2),
          y(gpu, sets, m * d, 3),
          q(gpu, sets, m * d, 4),
          scale(gpu, 1, m, 5) {}
    std::int64_t m, d;
    int sets;
    RandomSets<float> x, factors, y;
    RandomSets<std::int8_t> q;
    RandomSets<float> scale;
  };

  // bytes: of an element, read and written.
  void rows_row(const std::string& op, const Rows& r, int bytes, const std::function<void(int)>& run) {
    row(op, r.m, 0, r.d, median_us(gpu, r.sets, run), 0, bytes * static_cast<double>(r.m * r.d));
  }

  void quantize_rows(Rows& r) {
    const auto per_token = [&](int i, const float* smooth_inv) {
      (void)quantize_per_token(context, {.x = r.x.at(i),
                                         .ldx = r.d,
                                         .m = r.m,
                                         .k = r.d,
                                         .smooth_inv = smooth_inv,
                                         .q = r.q.at(i),
                                         .ldq = r.d,
                                         .scale = r.scale.at(0)})
          .row;
    };
    rows_row("quantize_per_token", r, 5, [&](int i) { per_token(i, nullptr); });
    rows_row("quantize_per_token, smoothed", r, 5, [&](int i) { per_token(i, r.factors.at(0)); });
    rows_row("quantize_static", r, 5, [&](int i) {
      (void)quantize_static(context, {.x = r.x.at(i),
                                      .ldx = r.d,
                                      .m = r.m,
                                      .k = r.d,
                                      .multiplier = r.factors.at(0),
                                      .q = r.q.at(i),
                                      .ldq = r.d})
          .row;
    });
  }

  void norm_rows(Rows& r) {
    const float* factors = r.factors.at(0);
    rows_row("layer_norm", r, 8, [&](int i) {
      layer_norm(context, {.x = r.x.at(i),
                           .ldx = r.d,
                           .m = r.m,
                           .d = r.d,
                           .gamma = factors,
                           .beta = factors,
                           .y = r.y.at(i),
                           .ldy = r.d});
    });
    const auto quant = [&](int i, float* addend) {
      (void)layer_norm_quant(context, {.x = r.x.at(i),
                                       .ldx = r.d,
                                       .m = r.m,
                                       .d = r.d,
                                       .addend = addend,
                                       .ld_addend = r.d,
                                       .sum = addend,
                                       .ld_sum = r.d,
                                       .gamma = factors,
                                       .beta = factors,
                                       .q = r.q.at(i),
                                       .ldq = r.d,
                                       .scale = r.scale.at(0)})
          .row;
    };
    rows_row("layer_norm_quant", r, 5, [&](int i) { quant(i, nullptr); });
    rows_row("layer_norm_quant, addend", r, 13, [&](int i) { quant(i, r.y.at(i)); });
  }
};

int run(bool all) {
  auto opened = Gpu::open(0);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().what.c_str());
    return 1;
  }
  Gpu& gpu = **opened;
  Bench bench{.gpu = gpu, .all = all, .copy_tbs = copy_rate(gpu)};
  bench.context.gpu = &gpu;
  std::printf("%s, copy %.2f TB/s\n", gpu.info().name.c_str(), bench.copy_tbs);
  for (const auto& [m, d] :
       {std::pair{16'384, 2048}, {512, 2048}, {64, 2048}, {16'384, 512}, {1500, 512}, {5, 512}}) {
    Bench::Rows rows(gpu, m, d);
    bench.quantize_rows(rows);
    bench.norm_rows(rows);
  }
  for (const auto& [m, n, k] : {std::tuple{1500, 2048, 512},
                                {12'000, 512, 512},
                                {1500, 512, 512},
                                {1500, 512, 2048},
                                {12'000, 2048, 512},
                                {64, 2048, 512},
                                {200, 512, 512},
                                {8, 512, 512},
                                {1, 512, 512},
                                {1, 2048, 512},
                                {5, 512, 2048},
                                {16, 512, 512},
                                {16, 2048, 512},
                                {16, 512, 2048},
                                {64, 512, 2048}}) {
    bench.linear(m, n, k, DType::f16);
  }
  bench.linear(12'000, 512, 512, DType::f32);
  for (const auto& [m, n, k] : {std::tuple{1500, 1536, 512}, {3000, 512, 240}, {1500, 512, 1536}}) {
    bench.linear(m, n, k, DType::f16);  // queries, keys and values; the convolutions
  }
  for (const std::int64_t m : {1, 3, 5, 8, 40}) bench.linear(m, 51'865, 512, DType::f16);
  for (const auto& [m, n, k] : {std::tuple{8192, 8192, 8192},
                                {4096, 4096, 4096},
                                {16'384, 2048, 2048},
                                {1024, 4096, 4096},
                                {1024, 1024, 1024},
                                {12'000, 2048, 512},
                                {12'000, 512, 2048},
                                {1500, 2048, 512},
                                {1500, 512, 512},
                                {256, 4096, 4096},
                                {64, 4096, 4096},
                                {16, 4096, 4096},
                                {1, 4096, 4096},
                                {1, 512, 512},
                                {5, 2048, 512},
                                {5, 512, 2048}}) {
    bench.int8(m, n, k);
  }
  return 0;
}

}  // namespace
}  // namespace oasr::bench

int main(int argc, char** argv) { return oasr::bench::run(argc > 1 && std::strcmp(argv[1], "all") == 0); }

// Rates of the int8 kernels on one core, per lane, beside the roofs of the same process.
//
//   oasr_bench_int8 [seconds for each case, default 0.3] [lane]
//
// Calls and runs of a register-only loop (a product), or a plain read of as many bytes (a decoder
// step, whose weights do not fit the second-level cache), take turns. Each side counts with its best
// CPU time, so that a neighbour on the core slows neither, or both alike.
#include <time.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "int8_roofs.h"
#include "kernels/peak/op.h"
#include "kernels/quantize/norm.h"
#include "kernels/scaled_mm/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

double budget = 0.3;        // seconds a case
std::string_view only = "";  // a lane
bool wanted(std::string_view lane) { return only.empty() || lane == only; }

double seconds_now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds_of(const std::function<void()>& call) {
  const double begin = seconds_now();
  call();
  return seconds_now() - begin;
}

// The best time of each of two calls, run in turns.
struct Pair {
  double first = 1e9, second = 1e9;
};
Pair interleave(const std::function<void()>& first, const std::function<void()>& second) {
  first();
  second();
  Pair best;
  const double end = seconds_now() + budget;
  do {
    best.first = std::min(best.first, seconds_of(first));
    best.second = std::min(best.second, seconds_of(second));
  } while (seconds_now() < end);
  return best;
}

std::vector<std::int8_t> some_int8(std::int64_t count) {
  std::mt19937 engine(1);
  std::vector<std::int8_t> values(static_cast<std::size_t>(count));
  for (std::int8_t& value : values) value = static_cast<std::int8_t>(static_cast<int>(engine() % 255) - 127);
  return values;
}

// A product with its memory.
struct Product {
  Product(std::int64_t m, std::int64_t n, std::int64_t k)
      : m(m), n(n), k(k), a(some_int8(m * k)), scales(static_cast<std::size_t>(std::max(m, n)), 0.01f),
        bias(random_floats(n, 1)), y(static_cast<std::size_t>(m * row_stride(n))), q(static_cast<std::size_t>(m * n)),
        x(random_floats(m * k, 2)),
        weight(PackedInt8Weight::pack(n, k, some_int8(n * k), std::span(scales).first(static_cast<std::size_t>(n)))) {}
  ScaledMMArgs args(Activation activation) const {
    return {.a = a.data(), .lda = k, .a_scale = ActivationScale::per_token(scales.data()), .m = m,
            .weight = &weight, .bias = bias.data(), .activation = activation};
  }
  FloatOutput out() { return {.y = y.data(), .ldy = row_stride(n)}; }
  std::int64_t m, n, k;
  std::vector<std::int8_t> a;
  std::vector<float> scales, bias, y;
  std::vector<std::int8_t> q;
  std::vector<float> x;
  PackedInt8Weight weight;
};

void many_rows(ThreadPool& pool, const ScaledMMLane& lane, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (!wanted(lane.name)) return;
  ExecContext context{&pool, lane.isa};
  Product p(m, n, k);
  struct Form {
    const char* name;
    std::function<void()> call;
  };
  const Form forms[] = {
      {"bias", [&] { scaled_mm(context, p.args(Activation::none), p.out()); }},
      {"bias, GELU", [&] { scaled_mm(context, p.args(Activation::gelu), p.out()); }},
      {"GELU, int8", [&] {
         (void)scaled_mm_quant(context, p.args(Activation::gelu), {.multiplier = p.scales.data(), .q = p.q.data(), .ldq = n}).row;
       }},
      {"dynamic, bias", [&] {
         (void)scaled_mm_dynamic(context, {.x = p.x.data(), .ldx = k, .m = m, .weight = &p.weight, .bias = p.bias.data()}, p.out()).row;
       }},
  };
  const PeakLane& peak = peak_lane(PeakKind::int8, lane.isa);
  for (const Form& form : forms) {
    double operations = 0;
    const Pair best = interleave([&] { operations = peak.run(peak.rounds); }, form.call);
    const double rate = 2.0 * static_cast<double>(m * n * k) / best.second;
    const double roof = operations / best.first;
    std::printf("%-12s %5ld x %5ld x %5ld  %-14s %9.1f us  %7.0f GOPS  %5.1f %% of %.0f\n",
                std::string(lane.name).c_str(), m, n, k, form.name, best.second * 1e6, rate * 1e-9,
                100 * rate / roof, roof * 1e-9);
    if (lane.isa == Isa::scalar) break;
  }
}

// Decoder steps: `count` weights one after the other, together too big for the second-level cache.
void few_rows(ThreadPool& pool, const ScaledMMLane& lane, std::int64_t m, std::int64_t n, std::int64_t k, int count) {
  if (!wanted(lane.name)) return;
  ExecContext context{&pool, lane.isa};
  Product p(m, n, k);
  std::vector<PackedInt8Weight> weights;
  const auto rows = some_int8(n * k);
  for (int i = 0; i < count; ++i) {
    weights.push_back(PackedInt8Weight::pack(n, k, rows, std::span(p.scales).first(static_cast<std::size_t>(n))));
  }
  const auto size = static_cast<std::size_t>(n * k / 256 * 256);
  const auto read = isa_supported(Isa::avx512) ? bench::read_all_avx512 : bench::read_all_avx2;
  const Pair best = interleave(
      [&] {
        for (const auto& w : weights) read(reinterpret_cast<const std::byte*>(w.panel(0)), size);
      },
      [&] {
        for (const auto& w : weights) {
          ScaledMMArgs args = p.args(Activation::none);
          args.weight = &w;
          scaled_mm(context, args, p.out());
        }
      });
  const double bytes = static_cast<double>(size) * count;
  std::printf("%-12s %5ld x %5ld x %5ld  %3d weights    %9.1f us  %7.1f GB/s  %5.1f %% of %.1f\n",
              std::string(lane.name).c_str(), m, n, k, count, best.second * 1e6, bytes / best.second * 1e-9,
              100 * best.first / best.second, bytes / best.first * 1e-9);
}

void quantize_rows(ThreadPool& pool, Isa isa, std::string_view name) {
  ExecContext context{&pool, isa};
  const std::int64_t m = 96, k = 512;
  const auto x = random_floats(m * k, 1), gamma = random_floats(k, 2);
  std::vector<std::int8_t> q(static_cast<std::size_t>(m * k));
  std::vector<float> scale(static_cast<std::size_t>(m)), y(static_cast<std::size_t>(m * k));
  const Pair best = interleave(
      [&] {
        (void)quantize_per_token(context, {.x = x.data(), .ldx = k, .m = m, .k = k, .q = q.data(), .ldq = k, .scale = scale.data()}).row;
      },
      [&] {
        (void)layer_norm_quant(context, {.x = x.data(), .ldx = k, .m = m, .d = k, .gamma = gamma.data(), .beta = gamma.data(),
                                         .q = q.data(), .ldq = k, .scale = scale.data()}).row;
      });
  const double elements = static_cast<double>(m * k);
  std::printf("%-12s quantize_per_token %.2f, layer_norm_quant %.2f elements a ns\n", std::string(name).c_str(),
              elements / best.first * 1e-9, elements / best.second * 1e-9);
}

void run() {
  ThreadPool pool(1);
  for (const QuantizeLane& lane : runnable(quantize_lanes())) quantize_rows(pool, lane.isa, lane.name);
  const PeakLane& peak = peak_lane(PeakKind::int8, Isa::avx2);
  double widened = 0, split = 0;
  const Pair avx2 = interleave([&] { widened = peak.run(20'000); },
                               [&] { split = bench::int8_peak_avx2_sign_split(20'000); });
  std::printf("avx2, registers only: widened %.0f, sign split %.0f GOPS\n", widened / avx2.first * 1e-9,
              split / avx2.second * 1e-9);
  for (const ScaledMMLane& lane : runnable(scaled_mm_lanes())) {
    many_rows(pool, lane, 60, 512, 512);
    if (lane.isa == Isa::scalar) continue;
    many_rows(pool, lane, 96, 2048, 512);
    many_rows(pool, lane, 96, 512, 2048);
    many_rows(pool, lane, 1500, 512, 512);
    many_rows(pool, lane, 1500, 2048, 512);
    many_rows(pool, lane, 1500, 512, 2048);
    for (const std::int64_t m : {1, 2, 4, 8, 16}) few_rows(pool, lane, m, 2048, 512, 32);
    few_rows(pool, lane, 1, 512, 2048, 32);
    few_rows(pool, lane, 1, 51865, 384, 1);
  }
}

}  // namespace
}  // namespace oasr::kernels

int main(int argc, char** argv) {
  if (argc > 1) oasr::kernels::budget = std::atof(argv[1]);
  if (argc > 2) oasr::kernels::only = argv[2];
  oasr::kernels::run();
}

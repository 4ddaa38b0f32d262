// Products with 4-bit weights against the same shapes in int8, on one core, per lane.
//
//   oasr_bench_int4 [seconds for each case, default 0.3] [lane]
//
// A case multiplies by several weights one after the other, together of 64 MB in int8, so that few rows are
// bound by memory as in a decoder. int8, groups of 128 and whole channels take turns; each counts with its
// best CPU time.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "kernels/scaled_mm_int4/op.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

constexpr std::int64_t kBytes = std::int64_t{64} << 20;
double budget = 0.3;         // seconds a case
std::string_view only = "";  // a lane

double seconds_now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

template <class T>
std::vector<T> some(std::int64_t count, unsigned values, int first) {
  std::mt19937 engine(1);
  std::vector<T> numbers(size(count));
  for (T& number : numbers) number = static_cast<T>(static_cast<int>(engine() % values) + first);
  return numbers;
}

PackedInt4Weight in_groups(std::int64_t n, std::int64_t k, std::span<const std::uint8_t> codes,
                           std::span<const float> scale) {
  const std::int64_t count = n * (k / PackedInt4Weight::kGroup);
  auto group_scale = some<std::uint8_t>(count, 16, 1);
  std::vector<std::int16_t> zero(group_scale.begin(), group_scale.end());
  for (std::int16_t& z : zero) z = static_cast<std::int16_t>(8 * z);
  return PackedInt4Weight::pack_groups(n, k, codes, scale, group_scale, zero);
}

template <class Weight>
struct Timed {
  std::vector<Weight> weights;
  double best = 1e9;

  void run(ExecContext& context, ScaledMMArgsOf<Weight> args, const FloatOutput& out) {
    const double begin = seconds_now();
    for (const Weight& weight : weights) {
      args.weight = &weight;
      scaled_mm(context, args, out);
    }
    best = std::min(best, seconds_now() - begin);
  }
  double microseconds() const { return best * 1e6 / static_cast<double>(weights.size()); }
};

void shape(std::int64_t n, std::int64_t k) {
  const std::int64_t count = std::max<std::int64_t>(1, kBytes / (n * k));
  const auto scale = std::vector<float>(size(n), 0.01f);
  const auto codes = some<std::uint8_t>(n * k, 16, 0);
  const auto int8 = some<std::int8_t>(n * k, 255, -127);
  const auto zero = std::vector<std::uint8_t>(size(n), 8);
  Timed<PackedInt8Weight> eight;
  Timed<PackedInt4Weight> groups, channels;
  for (std::int64_t i = 0; i < count; ++i) {
    eight.weights.push_back(PackedInt8Weight::pack(n, k, int8, scale));
    groups.weights.push_back(in_groups(n, k, codes, scale));
    channels.weights.push_back(PackedInt4Weight::pack_channels(n, k, codes, scale, zero));
  }
  constexpr std::int64_t kMost = 256;
  const auto a = some<std::int8_t>(kMost * k, 255, -127);
  const std::vector<float> a_scale(kMost, 0.01f);
  std::vector<float> y(size(kMost * row_stride(n)));
  ThreadPool pool(1);
  for (const Int4MMLane& lane : runnable(int4_mm_lanes())) {
    if (only.empty() ? lane.isa == Isa::scalar : lane.name != only) continue;
    ExecContext context{&pool, lane.isa};
    const FloatOutput out{.y = y.data(), .ldy = row_stride(n)};
    for (const std::int64_t m : {1, 2, 4, 8, 16, 32, 64, 256}) {
      const auto args = [&]<class Weight>(const Timed<Weight>&) {
        return ScaledMMArgsOf<Weight>{
            .a = a.data(), .lda = k, .a_scale = ActivationScale::per_token(a_scale.data()), .m = m};
      };
      eight.best = groups.best = channels.best = 1e9;
      const double end = seconds_now() + budget;
      do {
        eight.run(context, args(eight), out);
        groups.run(context, args(groups), out);
        channels.run(context, args(channels), out);
      } while (seconds_now() < end);
      std::printf(
          "%-12s %4ld x %5ld x %5ld  int8 %9.1f us  groups %9.1f us %5.2f x  channels %9.1f us %5.2f x\n",
          std::string(lane.name).c_str(), m, n, k, eight.microseconds(), groups.microseconds(),
          eight.best / groups.best, channels.microseconds(), eight.best / channels.best);
    }
  }
}

}  // namespace
}  // namespace oasr::kernels

int main(int argc, char** argv) {
  if (argc > 1) oasr::kernels::budget = std::atof(argv[1]);
  if (argc > 2) oasr::kernels::only = argv[2];
  for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{4096, 4096},
                             {512, 512},
                             {2048, 512},
                             {512, 2048},
                             {256, 2048},
                             {2048, 256},
                             {256, 256}}) {
    oasr::kernels::shape(n, k);
  }
}

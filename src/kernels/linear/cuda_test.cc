#include "kernels/linear/cuda.h"

#include <limits>
#include <string>

#include "kernels/cuda/testing.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

constexpr DType kStorages[] = {DType::f32, DType::f16, DType::bf16};

struct Problem {
  std::int64_t m, n, k;
  DType storage = DType::f32;
  unsigned seed = 1;
  std::int64_t gap = 0;  // between rows
  bool epilogue = false;
};

class LinearOnGpu : public OnGpu {
 protected:
  // Every one of `tiles` against the result of the processor, of `context` if given, else of the reference.
  // edit changes x before.
  void expect_equal(const Problem& p, std::span<const LinearTile> tiles, ExecContext* context = nullptr,
                    const std::function<void(std::vector<float>&)>& edit = {}) {
    const std::int64_t ldx = p.k + p.gap, ldy = p.n + p.gap;
    auto x = random_floats(p.m * ldx, p.seed);
    if (edit) edit(x);
    const auto rows = random_floats(p.n * p.k, p.seed + 1);
    const auto bias = random_floats(p.n, p.seed + 2), residual = random_floats(p.m * ldy, p.seed + 3);
    auto weight = pack_rows(rows, p.n, p.k, p.storage);
    std::vector<float> expected(static_cast<std::size_t>(p.m * ldy), 77.0f);
    LinearArgs args{.x = x.data(), .ldx = ldx, .m = p.m, .weight = &weight, .y = expected.data(), .ldy = ldy};
    if (p.epilogue) {
      args.bias = bias.data();
      args.activation = some_activation(p.seed / 2);
      if (p.seed % 3 != 0) args.residual = residual.data();
      args.ldr = ldy;
      args.alpha = p.m % 2 == 0 ? 1.0f : 0.3f;
    }
    if (context != nullptr) {
      linear(*context, args);
    } else {
      linear_reference(args);
    }
    auto placed = pack_rows(rows, p.n, p.k, p.storage);
    placed.place(*gpu_);
    auto gpu_x = upload(x), gpu_bias = upload(bias);
    args.x = gpu_x.data();
    args.weight = &placed;
    if (args.bias != nullptr) args.bias = gpu_bias.data();
    for (const LinearTile tile : tiles) {
      const std::string what = "m " + std::to_string(p.m) + " n " + std::to_string(p.n) + " k " +
                               std::to_string(p.k) + " " + std::string(dtype_name(p.storage)) + " gap " +
                               std::to_string(p.gap) + " tile " + std::to_string(static_cast<int>(tile));
      // The residual is y itself where there is one.
      auto y = upload(args.residual != nullptr ? residual : std::vector<float>(expected.size(), 77.0f));
      LinearArgs on_gpu = args;
      if (args.residual != nullptr) on_gpu.residual = y.data();
      on_gpu.y = y.data();
      linear_cuda(*gpu_, on_gpu, tile);
      auto got = y.values();
      if (args.residual != nullptr) {  // gaps keep what they had
        for (std::int64_t m = 0; m < p.m; ++m) {
          std::fill_n(got.begin() + m * ldy + p.n, p.gap, 77.0f);
        }
      }
      const std::int64_t at = first_difference(got, expected);
      EXPECT_EQ(at, -1) << what << ": " << got[static_cast<std::size_t>(std::max<std::int64_t>(at, 0))]
                        << " for " << expected[static_cast<std::size_t>(std::max<std::int64_t>(at, 0))];
    }
  }

  std::span<const LinearTile> chosen(std::int64_t m, std::int64_t n) {
    tile_ = linear_tile(m, n, gpu_->info().multiprocessors);
    return {&tile_, 1};
  }

 private:
  LinearTile tile_{};
};

constexpr std::int64_t kRowCounts[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,   15,  16,
                                       17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 130};

class RaggedLinearOnGpu : public LinearOnGpu, public ::testing::WithParamInterface<std::int64_t> {};

TEST_P(RaggedLinearOnGpu, EqualsTheReferenceWithEveryTile) {
  const std::int64_t m = GetParam();
  unsigned seed = 1 + 10 * place_in(kRowCounts, m);
  for (const auto& [n, k] : {std::pair{1, 1}, {5, 67}, {31, 2}, {32, 33}, {33, 64}, {64, 80}, {67, 193}, {128, 16}, {160, 7}, {96, 300}}) {
    ++seed;
    const std::int64_t gap = seed % 3 == 0 ? 0 : (seed % 3 == 1 ? 3 : (4 - k % 4) % 4 + 4);
    expect_equal({m, n, k, kStorages[seed % 3], seed, gap, seed % 2 == 0}, kLinearTiles);
    expect_equal({m, n, k, kStorages[(seed / 3) % 3], seed + 1, 0, seed % 4 < 2}, kLinearTiles);
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, RaggedLinearOnGpu, ::testing::ValuesIn(kRowCounts));

TEST_F(LinearOnGpu, EqualsTheProcessorOnTheModelsShapes) {
  ThreadPool pool(8);
  ExecContext context{.pool = &pool, .isa = detected_isa(), .observer = nullptr, .gpu = nullptr};
  unsigned seed = 300;
  for (const auto& [m, n, k] : {std::tuple{1500, 2048, 512},
                                {1500, 512, 2048},
                                {3000, 512, 240},
                                {1500, 512, 1536},
                                {1, 512, 512},
                                {5, 2048, 512},
                                {8, 512, 2048},
                                {1, 51'865, 512},
                                {5, 51'865, 384},
                                {50, 1536, 512},
                                {200, 51'865, 384}}) {
    for (const DType storage : kStorages) {
      if (n > 10'000 && storage != DType::f16) continue;
      expect_equal({m, n, k, storage, ++seed, 0, seed % 2 == 0}, chosen(m, n), &context);
    }
  }
}

TEST_F(LinearOnGpu, KeepsTheSignOfZero) {
  // The sum is -0 after a product that underflows; a padded step of +0 would make +0 of it.
  for (const std::int64_t k : {1, 2, 3, 5, 17}) {
    expect_equal({9, 40, k, DType::f32, 5, 0, false}, kLinearTiles, nullptr, [](std::vector<float>& x) {
      for (float& value : x) value = -1e-45f * (value > 0 ? 1.0f : 0.0f);
    });
  }
}

TEST_F(LinearOnGpu, KeepsWhatIsNotFiniteInItsRow) {
  for (const std::int64_t k : {67, 512}) {
    expect_equal({70, 96, k, DType::f16, 8, 0, true}, kLinearTiles, nullptr, [&](std::vector<float>& x) {
      x[static_cast<std::size_t>(k + 3)] = std::nanf("");
      x[static_cast<std::size_t>(40 * k)] = std::numeric_limits<float>::infinity();
      x[static_cast<std::size_t>(69 * k)] = 3e38f;
    });
  }
}

TEST_F(LinearOnGpu, TakesNoRows) {
  auto weight = pack_rows(random_floats(64, 1), 8, 8, DType::f32);
  weight.place(*gpu_);
  linear(context_, {.m = 0, .weight = &weight});
  gpu_->wait();
}

}  // namespace
}  // namespace oasr::kernels

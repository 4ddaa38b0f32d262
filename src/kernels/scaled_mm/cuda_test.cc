#include "kernels/scaled_mm/cuda.h"

#include "kernels/cuda/testing.h"
#include "kernels/scaled_mm/testing.h"

namespace oasr::kernels {

template <>
struct WeightKind<PackedInt8Weight> {
  static PackedInt8Weight make(std::int64_t n, std::int64_t k, unsigned seed) {
    return PackedInt8Weight::pack(n, k, random_int8(n * k, seed + 2), random_scales(n, seed + 3));
  }
};

namespace {

using Case = ScaledMMCase<PackedInt8Weight>;
using QuantizingCase = QuantizingScaledMMCase<PackedInt8Weight>;

std::string text(const Case& c, int tile = -1) {
  return "m " + std::to_string(c.m) + " n " + std::to_string(c.n) + " k " + std::to_string(c.k) + " tile " +
         std::to_string(tile);
}

class ScaledMMOnGpu : public OnGpu {
 protected:
  // What of a case lies on the GPU.
  struct Placed {
    Array<float> a_scale, bias, residual, multiplier;
    PackedInt8Weight weight;
  };
  Placed place(const Case& c, PackedInt8Weight weight) {
    weight.place(*gpu_);
    return {upload(c.a_scale), upload(c.bias), upload(c.residual), upload(c.multiplier), std::move(weight)};
  }
  static ScaledMMArgs on_gpu(const Case& c, Placed& placed, const std::int8_t* a, std::int64_t lda) {
    ScaledMMArgs args = c.args();
    args.a = a;
    args.lda = lda;
    args.a_scale = c.per_token ? ActivationScale::per_token(placed.a_scale.data())
                               : ActivationScale::per_tensor(placed.a_scale.data());
    args.weight = &placed.weight;
    args.bias = c.with_bias ? placed.bias.data() : nullptr;
    return args;
  }
  static FloatOutput on_gpu(FloatOutput out, Placed& placed, float* y) {
    if (out.residual != nullptr) out.residual = placed.residual.data();
    out.y = y;
    return out;
  }
  static Int8Output on_gpu(Int8Output out, Placed& placed, std::int8_t* q) {
    out.multiplier = placed.multiplier.data();
    out.q = q;
    return out;
  }

  // Both outputs with each of `tiles` against the results of the processor, which `context` computes if
  // given, else the references. `dense` rows lie as kernels like them; else their strides are odd.
  void expect_equal(Case& c, PackedInt8Weight weight, std::span<const ScaledMMTile> tiles, bool dense,
                    ExecContext* context = nullptr) {
    std::vector<float> expected;
    std::vector<std::int8_t> expected_q;
    const auto dense_out = [&](FloatOutput out) {
      if (dense) out.ldy = out.ldr = c.n;
      return out;
    };
    const auto dense_q = [&](Int8Output out) {
      if (dense) out.ldq = c.n;
      return out;
    };
    const FloatOutput out = dense_out(c.to(expected));
    const Int8Output out_q = dense_q(c.to(expected_q));
    NotFinite found;
    if (context != nullptr) {
      scaled_mm(*context, c.args(), out);
      found = scaled_mm_quant(*context, c.args(), out_q);
    } else {
      scaled_mm_reference(c.args(), out);
      found = scaled_mm_quant_reference(c.args(), out_q);
    }
    const std::int64_t lda = dense ? (c.k + 15) / 16 * 16 : c.args().lda;
    std::vector<std::int8_t> rows(static_cast<std::size_t>(c.m * lda), 55);
    for (std::int64_t m = 0; m < c.m; ++m) {
      std::copy_n(c.a.data() + m * c.args().lda, c.k, rows.data() + m * lda);
    }
    Placed placed = place(c, std::move(weight));
    auto a = upload(rows);
    const ScaledMMArgs args = on_gpu(c, placed, a.data(), lda);
    for (const ScaledMMTile tile : tiles) {
      auto y = upload(std::vector<float>(expected.size(), 77.0f));
      auto q = upload(std::vector<std::int8_t>(expected_q.size(), 99));
      scaled_mm_cuda(*gpu_, args, on_gpu(out, placed, y.data()), tile);
      scaled_mm_cuda(*gpu_, args, on_gpu(out_q, placed, q.data()), tile);
      EXPECT_EQ(reported_row(), found.row) << text(c, static_cast<int>(tile));
      EXPECT_EQ(first_difference(y.values(), expected), -1)
          << text(c, static_cast<int>(tile)) << " dense " << dense;
      EXPECT_TRUE(q.values() == expected_q) << text(c, static_cast<int>(tile)) << " dense " << dense;
    }
  }
  void expect_equal(std::int64_t m, std::int64_t n, std::int64_t k, unsigned seed,
                    std::span<const ScaledMMTile> tiles, bool dense, ExecContext* context = nullptr) {
    Case c(m, n, k, seed);
    expect_equal(c, WeightKind<PackedInt8Weight>::make(n, k, seed), tiles, dense, context);
  }

  std::span<const ScaledMMTile> chosen(std::int64_t m, std::int64_t n, std::int64_t k) {
    tile_ = scaled_mm_tile(m, n, k, gpu_->info());
    return {&tile_, 1};
  }

 private:
  ScaledMMTile tile_{};
};

TEST_F(ScaledMMOnGpu, EqualsTheReferenceOnRaggedShapesWithEveryTile) {
  unsigned seed = 1;
  for (const std::int64_t m :
       {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 130}) {
    for (const auto& [n, k] : {std::pair{1, 1},
                               {5, 67},
                               {8, 16},
                               {31, 2},
                               {32, 33},
                               {33, 64},
                               {64, 80},
                               {67, 193},
                               {128, 48},
                               {160, 7},
                               {256, 272},
                               {260, 128}}) {
      ++seed;
      expect_equal(m, n, k, seed, kScaledMMTiles, seed % 2 == 0);
    }
  }
}

TEST_F(ScaledMMOnGpu, EqualsTheProcessorOnTheModelsShapes) {
  ThreadPool pool(8);
  ExecContext context{.pool = &pool, .isa = detected_isa(), .observer = nullptr, .gpu = nullptr};
  unsigned seed = 100;
  for (const auto& [m, n, k] : {std::tuple{1500, 2048, 512},
                                {1500, 512, 2048},
                                {1500, 512, 512},
                                {1, 512, 512},
                                {5, 2048, 512},
                                {16, 4096, 4096},
                                {64, 4096, 4096},
                                {65, 1536, 384},
                                {300, 256, 2048},
                                {40, 512, 240},
                                {3000, 768, 256},
                                {1, 51'865, 384},
                                {4097, 1024, 1024}}) {
    expect_equal(m, n, k, ++seed, chosen(m, n, k), true, &context);
  }
}

TEST_F(ScaledMMOnGpu, EqualsTheReferenceOnExtremes) {
  // Sums far beyond 2²⁴, of one sign.
  for (const int a : {127, -127}) {
    for (const int w : {127, -128}) {
      for (const std::int64_t k : {2048, 131'071}) {
        Case c(17, 40, k, 6);
        std::fill(c.a.begin(), c.a.end(), static_cast<std::int8_t>(a));
        const std::vector<std::int8_t> values(size(40 * k), static_cast<std::int8_t>(w));
        const auto scales = random_scales(40, 9);
        c.weight = PackedInt8Weight::pack(40, k, values, scales);
        expect_equal(c, PackedInt8Weight::pack(40, k, values, scales), kScaledMMTiles, true);
      }
    }
  }
}

TEST_F(ScaledMMOnGpu, ReportsTheLowestRowThatIsNotFinite) {
  for (const std::int64_t n : {33, 128}) {
    Case c(70, n, 64, 4);
    c.per_token = true;
    c.a_scale[66] = std::nanf("");
    c.a_scale[41] = kInf;
    expect_equal(c, WeightKind<PackedInt8Weight>::make(n, 64, 4), kScaledMMTiles, true);
  }
}

TEST_F(ScaledMMOnGpu, WritesOverItsResidual) {
  Case c(70, 96, 128, 5);
  c.with_residual = true;
  std::vector<float> expected = c.residual;
  expected.resize(size(70 * 97));
  const FloatOutput out{
      .residual = expected.data(), .ldr = 96, .alpha = 0.5f, .y = expected.data(), .ldy = 96};
  std::vector<float> before = expected;
  scaled_mm_reference(c.args(), out);
  Placed placed = place(c, WeightKind<PackedInt8Weight>::make(96, 128, 5));
  auto a = upload(c.a);
  auto y = upload(before);
  scaled_mm(context_, on_gpu(c, placed, a.data(), c.args().lda),
            {.residual = y.data(), .ldr = 96, .alpha = 0.5f, .y = y.data(), .ldy = 96});
  EXPECT_EQ(first_difference(y.values(), expected), -1);
}

// Both ways to quantize, both outputs.
class QuantizingScaledMMOnGpu : public ScaledMMOnGpu {
 protected:
  void expect_equal(const QuantizingCase& q, unsigned seed) {
    const Case& c = q.product;
    Placed placed = place(c, WeightKind<PackedInt8Weight>::make(c.n, c.k, seed));
    auto x = upload(q.x), smooth = upload(q.smooth_inv), multiplier = upload(q.multiplier);
    auto scale = upload(std::vector<float>{q.input_scale});
    DynamicScaledMMArgs dynamic = q.dynamic();
    StaticScaledMMArgs fixed = q.fixed();
    std::vector<float> expected;
    std::vector<std::int8_t> expected_q;
    const FloatOutput out = c.to(expected);
    const Int8Output out_q = c.to(expected_q);
    const auto compare = [&](auto& on_host, auto& on_device, const char* form) {
      const auto run = [&](const auto& args, const auto& to) {
        if constexpr (std::is_same_v<std::decay_t<decltype(args)>, DynamicScaledMMArgs>) {
          return scaled_mm_dynamic(context_, args, to);
        } else {
          return scaled_mm_static(context_, args, to);
        }
      };
      const auto reference = [&](const auto& args, const auto& to) {
        if constexpr (std::is_same_v<std::decay_t<decltype(args)>, DynamicScaledMMArgs>) {
          return scaled_mm_dynamic_reference(args, to);
        } else {
          return scaled_mm_static_reference(args, to);
        }
      };
      auto y = upload(std::vector<float>(expected.size(), 77.0f));
      auto bytes = upload(std::vector<std::int8_t>(expected_q.size(), 99));
      c.to(expected);
      c.to(expected_q);
      const NotFinite found = reference(on_host, out);
      EXPECT_FALSE(run(on_device, on_gpu(out, placed, y.data())));
      EXPECT_EQ(reported_row(), found.row) << text(c) << form;
      EXPECT_EQ(first_difference(y.values(), expected), -1) << text(c) << form;
      const NotFinite found_q = reference(on_host, out_q);
      EXPECT_FALSE(run(on_device, on_gpu(out_q, placed, bytes.data())));
      EXPECT_EQ(reported_row(), found_q.row) << text(c) << form;
      EXPECT_TRUE(bytes.values() == expected_q) << text(c) << form;
    };
    auto dynamic_gpu = dynamic;
    auto fixed_gpu = fixed;
    dynamic_gpu.x = fixed_gpu.x = x.data();
    if (dynamic.smooth_inv != nullptr) dynamic_gpu.smooth_inv = smooth.data();
    fixed_gpu.multiplier = multiplier.data();
    fixed_gpu.input_scale = scale.data();
    dynamic_gpu.weight = fixed_gpu.weight = &placed.weight;
    if (dynamic.bias != nullptr) dynamic_gpu.bias = fixed_gpu.bias = placed.bias.data();
    compare(dynamic, dynamic_gpu, " dynamic");
    compare(fixed, fixed_gpu, " static");
  }
};

TEST_F(QuantizingScaledMMOnGpu, EqualsTheReferences) {
  unsigned seed = 40;
  for (const std::int64_t m : {1, 3, 16, 33, 70, 130}) {
    for (const auto& [n, k] : {std::pair{1, 1}, {32, 64}, {33, 67}, {64, 240}, {128, 512}, {160, 30}}) {
      ++seed;
      expect_equal(QuantizingCase(m, n, k, k + 4 * (seed % 2), seed), seed);
    }
  }
}

TEST_F(QuantizingScaledMMOnGpu, ReportsTheLowestRowOfBothSteps) {
  expect_equal(QuantizingCase(20, 48, 64, 64, 7, {5 * 64 + 3, 18 * 64}), 7);
  expect_equal(QuantizingCase(20, 48, 67, 67, 8, {4 * 67 + 3, 18 * 67}), 8);
}

TEST_F(QuantizingScaledMMOnGpu, TakesRowsThatOverlap) {
  expect_equal(QuantizingCase(50, 64, 240, 80, 9), 9);
  expect_equal(QuantizingCase(50, 64, 240, 160, 10), 10);
}

TEST_F(QuantizingScaledMMOnGpu, TakesNoRows) {
  QuantizingCase c(1, 8, 8, 8, 3);
  c.product.weight.place(*gpu_);
  DynamicScaledMMArgs args{.m = 0, .weight = &c.product.weight};
  EXPECT_FALSE(scaled_mm_dynamic(context_, args, FloatOutput{}));
  gpu_->wait();
}

}  // namespace
}  // namespace oasr::kernels

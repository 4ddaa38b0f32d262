#include "kernels/scaled_mm/cuda.h"

#include <algorithm>
#include <set>

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

  // Both outputs of a backend against the references; rows may be few, and lie anywhere.
  void expect_backend_equal(const ScaledMMImplementation& backend, Case& c, PackedInt8Weight weight) {
    std::vector<float> expected;
    std::vector<std::int8_t> expected_q;
    const FloatOutput out = c.to(expected);
    const Int8Output out_q = c.to(expected_q);
    scaled_mm_reference(c.args(), out);
    const NotFinite found = scaled_mm_quant_reference(c.args(), out_q);
    Placed placed = place(c, std::move(weight));
    auto a = upload(c.a);
    auto y = upload(std::vector<float>(expected.size(), 77.0f));
    auto q = upload(std::vector<std::int8_t>(expected_q.size(), 99));
    const ScaledMMArgs args = on_gpu(c, placed, a.data(), c.args().lda);
    backend.mm(context_, args, on_gpu(out, placed, y.data()));
    EXPECT_FALSE(backend.mm_quant(context_, args, on_gpu(out_q, placed, q.data())));
    EXPECT_EQ(reported_row(), found.row) << text(c);
    EXPECT_EQ(first_difference(y.values(), expected), -1) << text(c);
    EXPECT_TRUE(q.values() == expected_q) << text(c);
  }

  std::span<const ScaledMMTile> chosen(std::int64_t m, std::int64_t n, std::int64_t k) {
    tile_ = scaled_mm_tile(m, n, k, gpu_->info());
    return {&tile_, 1};
  }

 private:
  ScaledMMTile tile_{};
};

constexpr std::int64_t kRowCounts[] = {1,  2,  3,  4,  5,  7,  8,  9,   15,  16, 17,
                                       31, 32, 33, 63, 64, 65, 127, 128, 129, 130};

class RaggedScaledMMOnGpu : public ScaledMMOnGpu, public ::testing::WithParamInterface<std::int64_t> {};

TEST_P(RaggedScaledMMOnGpu, EqualsTheReferenceWithEveryTile) {
  const std::int64_t m = GetParam();
  unsigned seed = 1 + 12 * place_in(kRowCounts, m);
  for (const auto& [n, k] : {std::pair{1, 1}, {5, 67}, {8, 16}, {31, 2}, {32, 33}, {33, 64}, {64, 80}, {67, 193},
                             {128, 48}, {160, 7}, {256, 272}, {260, 128}}) {
    ++seed;
    expect_equal(m, n, k, seed, kScaledMMTiles, seed % 2 == 0);
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, RaggedScaledMMOnGpu, ::testing::ValuesIn(kRowCounts));

struct Shape {
  std::int64_t m, n, k;
};
const Shape kModelsShapes[] = {
    {1500, 2048, 512},
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
    {4097, 1024, 1024}};

class ModelsScaledMMOnGpu : public ScaledMMOnGpu, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(ModelsScaledMMOnGpu, EqualsTheProcessor) {
  ThreadPool pool(8);
  ExecContext context{.pool = &pool, .isa = detected_isa(), .observer = nullptr, .gpu = nullptr};
  const auto [m, n, k] = kModelsShapes[GetParam()];
  expect_equal(m, n, k, 101 + static_cast<unsigned>(GetParam()), chosen(m, n, k), true, &context);
}
INSTANTIATE_TEST_SUITE_P(Shapes, ModelsScaledMMOnGpu, ::testing::Range(std::size_t{0}, std::size(kModelsShapes)));

// Sums far beyond 2²⁴, of one sign: an activation, a weight, k.
class ExtremeScaledMMOnGpu : public ScaledMMOnGpu,
                             public ::testing::WithParamInterface<std::tuple<int, int, std::int64_t>> {};

TEST_P(ExtremeScaledMMOnGpu, EqualsTheReference) {
  const auto [a, w, k] = GetParam();
  Case c(17, 40, k, 6);
  std::fill(c.a.begin(), c.a.end(), static_cast<std::int8_t>(a));
  const std::vector<std::int8_t> values(size(40 * k), static_cast<std::int8_t>(w));
  const auto scales = random_scales(40, 9);
  c.weight = PackedInt8Weight::pack(40, k, values, scales);
  expect_equal(c, PackedInt8Weight::pack(40, k, values, scales), kScaledMMTiles, true);
}
INSTANTIATE_TEST_SUITE_P(Extremes, ExtremeScaledMMOnGpu,
                         ::testing::Combine(::testing::Values(127, -127), ::testing::Values(127, -128),
                                            ::testing::Values(2048, 131'071)));

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
  const ScaledMMImplementation* backend_ = &scaled_mm_implementation(ScaledMMBackend::native);

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
        constexpr bool kQuant = std::is_same_v<std::decay_t<decltype(to)>, Int8Output>;
        if constexpr (std::is_same_v<std::decay_t<decltype(args)>, DynamicScaledMMArgs>) {
          if constexpr (kQuant) {
            return backend_->dynamic_quant(context_, args, to);
          } else {
            return backend_->dynamic(context_, args, to);
          }
        } else if constexpr (kQuant) {
          return backend_->fixed_quant(context_, args, to);
        } else {
          return backend_->fixed(context_, args, to);
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

// Every backend of GPUs; that of a library only where the library is.
class OfBackendOnGpu : public QuantizingScaledMMOnGpu {
 protected:
  virtual ScaledMMBackend backend() const = 0;
  void SetUp() override {
    QuantizingScaledMMOnGpu::SetUp();
    if (IsSkipped()) return;
    backend_ = &scaled_mm_implementation(backend());
    const Status prepared = prepare(*backend_, *gpu_);
    if (!prepared) GTEST_SKIP() << prepared.error().message();
  }
  bool takes(std::int64_t n, std::int64_t k) const { return check_product(*backend_, n, k).has_value(); }
};
class ScaledMMBackendOnGpu : public OfBackendOnGpu, public ::testing::WithParamInterface<ScaledMMBackend> {
  ScaledMMBackend backend() const override { return GetParam(); }
};
class RaggedScaledMMBackendOnGpu : public OfBackendOnGpu,
                                   public ::testing::WithParamInterface<std::tuple<ScaledMMBackend, std::int64_t>> {
  ScaledMMBackend backend() const override { return std::get<0>(GetParam()); }
};

constexpr ScaledMMBackend kBackends[] = {ScaledMMBackend::native, ScaledMMBackend::mma_sync, ScaledMMBackend::cublaslt};
constexpr std::int64_t kBackendRows[] = {1, 2, 7, 16, 17, 31, 32, 33, 64, 65, 127, 130, 300};

TEST_P(RaggedScaledMMBackendOnGpu, EqualsTheReference) {
  const std::int64_t m = std::get<1>(GetParam());
  unsigned seed = 500 + 14 * place_in(kBackendRows, m);
  int taken = 0;
  for (const auto& [n, k] : {std::pair{8, 16}, {16, 48}, {24, 32}, {32, 64}, {72, 192}, {128, 512}, {256, 272},
                             {264, 128}, {1000, 96}, {1, 1}, {5, 67}, {33, 64}, {67, 193}, {160, 7}}) {
    ++seed;
    if (!takes(n, k)) continue;
    ++taken;
    Case c(m, n, k, seed);
    expect_backend_equal(*backend_, c, WeightKind<PackedInt8Weight>::make(n, k, seed));
  }
  EXPECT_GE(taken, 9);
}
INSTANTIATE_TEST_SUITE_P(Backends, RaggedScaledMMBackendOnGpu,
                         ::testing::Combine(::testing::ValuesIn(kBackends), ::testing::ValuesIn(kBackendRows)));

TEST_P(ScaledMMBackendOnGpu, EqualsTheProcessorOnManyRows) {
  ThreadPool pool(8);
  ExecContext context{.pool = &pool, .isa = detected_isa(), .observer = nullptr, .gpu = nullptr};
  // The last has more sums than cublaslt has memory for at once.
  for (const auto& [m, n, k] : {std::tuple{1500, 2048, 512}, {4097, 1024, 1024}, {9000, 2048, 64}}) {
    Case c(m, n, k, 77);
    std::vector<float> expected;
    const FloatOutput out = c.to(expected);
    scaled_mm(context, c.args(), out);
    Placed placed = place(c, WeightKind<PackedInt8Weight>::make(n, k, 77));
    for (const bool dense : {false, true}) {
      const std::int64_t lda = dense ? k : c.args().lda;
      std::vector<std::int8_t> rows(static_cast<std::size_t>(m * lda), 55);
      for (std::int64_t i = 0; i < m; ++i) std::copy_n(c.a.data() + i * c.args().lda, k, rows.data() + i * lda);
      auto a = upload(rows);
      auto y = upload(std::vector<float>(expected.size(), 77.0f));
      backend_->mm(context_, on_gpu(c, placed, a.data(), lda), on_gpu(out, placed, y.data()));
      EXPECT_EQ(first_difference(y.values(), expected), -1) << text(c) << " dense " << dense;
    }
  }
}

TEST_P(ScaledMMBackendOnGpu, EqualsTheReferencesOnFloats) {
  unsigned seed = 600;
  for (const std::int64_t m : {1, 3, 16, 33, 70, 130}) {
    for (const auto& [n, k] : {std::pair{32, 64}, {64, 240}, {128, 512}, {24, 32}, {33, 67}, {160, 30}}) {
      ++seed;
      if (takes(n, k)) expect_equal(QuantizingCase(m, n, k, k + 4 * (seed % 2), seed), seed);
    }
  }
  expect_equal(QuantizingCase(50, 64, 240, 80, 9), 9);  // rows that overlap
  expect_equal(QuantizingCase(20, 48, 64, 64, 7, {5 * 64 + 3, 18 * 64}), 7);
}

TEST_P(ScaledMMBackendOnGpu, EqualsTheReferenceOnExtremesAndReportsTheLowestRow) {
  Case c(40, 48, 2048, 6);
  std::fill(c.a.begin(), c.a.end(), std::int8_t{-127});
  const std::vector<std::int8_t> values(size(48 * 2048), std::int8_t{-128});
  const auto scales = random_scales(48, 9);
  c.weight = PackedInt8Weight::pack(48, 2048, values, scales);
  c.per_token = true;
  c.a_scale[37] = std::nanf("");
  c.a_scale[33] = kInf;
  expect_backend_equal(*backend_, c, PackedInt8Weight::pack(48, 2048, values, scales));
}

// A section is cut where a library multiplies, and goes on behind it.
TEST_P(ScaledMMBackendOnGpu, GivesTheSameBitsInASection) {
  constexpr std::int64_t kM = 70, kN = 64, kK = 128;
  const QuantizingCase q(kM, kN, kK, kK, 11);
  Placed placed = place(q.product, WeightKind<PackedInt8Weight>::make(kN, kK, 11));
  auto x = upload(q.x), smooth = upload(q.smooth_inv);
  std::vector<float> expected;
  const FloatOutput out = q.product.to(expected);
  EXPECT_FALSE(scaled_mm_dynamic_reference(q.dynamic(), out));
  DynamicScaledMMArgs args = q.dynamic();
  args.x = x.data();
  if (args.smooth_inv != nullptr) args.smooth_inv = smooth.data();
  args.weight = &placed.weight;
  if (args.bias != nullptr) args.bias = placed.bias.data();
  std::vector<std::string> kernels;
  gpu_->trace(&kernels);
  for (const Starts starts : {Starts::after, Starts::early}) {
    for (int turn = 0; turn < 4; ++turn) {  // as kernels, then as graphs
      auto first = upload(std::vector<float>(expected.size(), 77.0f)), second = upload(first.values());
      kernels.clear();
      gpu_->as_graph(starts, [&] {
        EXPECT_FALSE(backend_->dynamic(context_, args, on_gpu(out, placed, first.data())));
        EXPECT_FALSE(backend_->dynamic(context_, args, on_gpu(out, placed, second.data())));
      });
      EXPECT_EQ(first_difference(first.values(), expected), -1) << turn;
      EXPECT_EQ(first_difference(second.values(), expected), -1) << turn;
      EXPECT_EQ(std::ranges::count(kernels, "cublaslt"), GetParam() == ScaledMMBackend::cublaslt ? 2 : 0);
    }
  }
  gpu_->trace(nullptr);
}

TEST_P(ScaledMMBackendOnGpu, LosesOneProductToAKernelThatFails) {
  constexpr std::int64_t kM = 40, kN = 64, kK = 64;
  Case c(kM, kN, kK, 12);
  Placed placed = place(c, WeightKind<PackedInt8Weight>::make(kN, kK, 12));
  std::vector<float> expected;
  const FloatOutput out = c.to(expected);
  scaled_mm_reference(c.args(), out);
  auto a = upload(c.a);
  auto y = upload(std::vector<float>(expected.size(), 77.0f));
  const ScaledMMArgs args = on_gpu(c, placed, a.data(), c.args().lda);
  for (const int launch : {0, 1}) {
    gpu_->fail_launch(launch);
    EXPECT_THROW(backend_->mm(context_, args, on_gpu(out, placed, y.data())), GpuError) << launch;
    gpu_->fail_launch(-1);
    backend_->mm(context_, args, on_gpu(out, placed, y.data()));
    EXPECT_EQ(first_difference(y.values(), expected), -1);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ScaledMMBackendOnGpu,
                         ::testing::ValuesIn(kBackends),
                         [](const auto& test) { return std::string(enum_name(scaled_mm_backend_names(), test.param)); });

// These need no card.
GpuInfo card(int major, int minor, int multiprocessors, std::size_t shared_kib) {
  GpuInfo gpu;
  gpu.major = major;
  gpu.minor = minor;
  gpu.multiprocessors = multiprocessors;
  gpu.shared_bytes = shared_kib << 10;
  return gpu;
}
const std::vector<GpuInfo> kCards = {card(8, 0, 108, 163), card(8, 6, 28, 99),   card(8, 9, 142, 99), card(9, 0, 132, 227),
                                     card(10, 0, 148, 227), card(12, 0, 170, 99)};

// Calls f(m, n, k) for products of many sizes.
template <class F>
void for_sizes(const F& f) {
  for (const std::int64_t m : {1, 16, 17, 32, 64, 128, 256, 512, 1000, 1500, 4096, 24'000}) {
    for (const std::int64_t n : {64, 256, 512, 2048, 8192}) {
      for (const std::int64_t k : {64, 256, 512, 2048, 8192}) f(m, n, k);
    }
  }
}

TEST(ScaledMMTiles, AreThoseOfMmaSyncWhereItIsAskedFor) {
  const GpuInfo h200 = card(9, 0, 132, 227);
  int wide = 0;
  for_sizes([&](std::int64_t m, std::int64_t n, std::int64_t k) {
    wide += is_wide(scaled_mm_tile(m, n, k, h200));
    EXPECT_FALSE(is_wide(scaled_mm_tile(m, n, k, h200, ScaledMMBackend::mma_sync))) << m << " " << n << " " << k;
  });
  EXPECT_EQ(wide > 0, scaled_mm_has_wgmma(h200));
}

TEST(ScaledMMTiles, OfACardAreThoseThatItRuns) {
  std::set<ScaledMMTile> chosen;
  for (const GpuInfo& gpu : kCards) {
    for (const ScaledMMBackend backend : {ScaledMMBackend::native, ScaledMMBackend::mma_sync}) {
      for_sizes([&](std::int64_t m, std::int64_t n, std::int64_t k) {
        const ScaledMMTile tile = scaled_mm_tile(m, n, k, gpu, backend);
        EXPECT_TRUE(scaled_mm_runs(tile, gpu)) << gpu.major << gpu.minor << ": " << m << " " << n << " " << k;
        chosen.insert(tile);
      });
    }
  }
  std::set<ScaledMMTile> all(kScaledMMTiles.begin(), kScaledMMTiles.end());
  if (!scaled_mm_has_wgmma(card(9, 0, 132, 227))) std::erase_if(all, is_wide);
  EXPECT_EQ(chosen, all);
  for (const ScaledMMTile tile : kScaledMMTiles) {
    const bool much = tile == ScaledMMTile::m64n32 || tile == ScaledMMTile::m128n256;
    EXPECT_EQ(scaled_mm_runs(tile, card(8, 6, 84, 99)), !much && !is_wide(tile));
  }
}

}  // namespace
}  // namespace oasr::kernels

// The products of cuBLASLt are what the class says: on small whole numbers every type gives them exactly.
#include "kernels/cuda/cublaslt.h"

#include <algorithm>
#include <bit>
#include <random>

#include "kernels/cuda/testing.h"
#include "tensor/dtype.h"

namespace oasr::kernels {
namespace {

using Type = CublasLt::Type;

struct Shape {
  std::int64_t m, n, k;
};

class CublasLtOnGpu : public OnGpu, public ::testing::WithParamInterface<CublasLt::Choice> {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    auto opened = CublasLt::open(*gpu_, GetParam());
    if (!opened) GTEST_SKIP() << opened.error().message();
    library_ = std::move(*opened);
  }
  void TearDown() override { library_.reset(); }  // before the queue

  // One of -1, 0, 1 for each element.
  static std::vector<int> digits(std::int64_t count, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_int_distribution<int> any(-1, 1);
    std::vector<int> values(static_cast<std::size_t>(count));
    for (int& value : values) value = any(engine);
    return values;
  }
  // -1, 0 or 1 in a type's bits: e4m3 has its exponent at bit 3 with a bias of 7.
  template <class Element>
  static std::vector<Element> coded(const std::vector<int>& values, Element minus, Element zero,
                                    Element one) {
    std::vector<Element> codes;
    for (const int value : values) codes.push_back(value == 0 ? zero : (value > 0 ? one : minus));
    return codes;
  }
  static std::vector<int> product(const Shape& s, const std::vector<int>& a, const std::vector<int>& w) {
    std::vector<int> y(static_cast<std::size_t>(s.m * s.n));
    for (std::int64_t m = 0; m < s.m; ++m) {
      for (std::int64_t n = 0; n < s.n; ++n) {
        int sum = 0;
        for (std::int64_t k = 0; k < s.k; ++k) {
          sum += a[static_cast<std::size_t>(m * s.k + k)] * w[static_cast<std::size_t>(n * s.k + k)];
        }
        y[static_cast<std::size_t>(m * s.n + n)] = sum;
      }
    }
    return y;
  }

  // Sums of at most 128 in magnitude are exact in every output type.
  template <class Element, class Out, class Value>
  void expect_exact(Type type, const Shape& s, Element minus, Element zero, Element one, Value value) {
    const auto a = digits(s.m * s.k, 1), w = digits(s.n * s.k, 2);
    auto on_a = upload(coded(a, minus, zero, one)), on_w = upload(coded(w, minus, zero, one));
    auto y = room<Out>(s.m * s.n);
    for (int turn = 0; turn < 2; ++turn) {  // the plan is made, then used
      const Status done = library_->product(type, s.m, s.n, s.k, on_a.data(), on_w.data(), y.data());
      ASSERT_TRUE(done) << done.error().message();
      const auto expected = product(s, a, w);
      const auto got = y.values();
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(value(got[i]), expected[i]) << "type " << static_cast<int>(type) << " m " << s.m << " n "
                                              << s.n << " k " << s.k << " at " << i;
      }
    }
  }

  std::unique_ptr<CublasLt> library_;
};

constexpr Shape kShapes[] = {{32, 16, 32}, {64, 128, 128}, {100, 48, 64}, {300, 272, 112}, {1500, 512, 128}};

TEST_P(CublasLtOnGpu, MultipliesInt8Exactly) {
  for (const Shape& s : kShapes) {
    expect_exact<std::int8_t, std::int32_t>(Type::int8, s, -1, 0, 1, [](std::int32_t v) { return v; });
  }
}

TEST_P(CublasLtOnGpu, MultipliesFloat16AndBfloat16) {
  for (const Shape& s : kShapes) {
    expect_exact<std::uint16_t, std::uint16_t>(Type::float16, s, 0xbc00, 0, 0x3c00,
                                               [](std::uint16_t v) { return to_float(Half{v}); });
    expect_exact<std::uint16_t, std::uint16_t>(Type::bfloat16, s, 0xbf80, 0, 0x3f80, [](std::uint16_t v) {
      return std::bit_cast<float>(std::uint32_t{v} << 16);
    });
  }
}

TEST_P(CublasLtOnGpu, MultipliesFp8WhereTheCardDoes) {
  const GpuInfo& info = gpu_->info();
  if (10 * info.major + info.minor < 89) GTEST_SKIP() << "no fp8 on " << info.name;
  for (const Shape& s : kShapes) {
    expect_exact<std::uint8_t, std::uint16_t>(Type::fp8_e4m3, s, 0xb8, 0, 0x38, [](std::uint16_t v) {
      return std::bit_cast<float>(std::uint32_t{v} << 16);
    });
  }
}

TEST_P(CublasLtOnGpu, TakesRowsWithGaps) {
  constexpr std::int64_t kM = 40, kN = 32, kK = 48, kLda = 80, kLdw = 64;
  const auto a = digits(kM * kLda, 3), w = digits(kN * kLdw, 4);
  std::vector<int> dense_a, dense_w;
  for (std::int64_t m = 0; m < kM; ++m)
    dense_a.insert(dense_a.end(), a.begin() + m * kLda, a.begin() + m * kLda + kK);
  for (std::int64_t n = 0; n < kN; ++n)
    dense_w.insert(dense_w.end(), w.begin() + n * kLdw, w.begin() + n * kLdw + kK);
  const std::int8_t minus = -1, zero = 0, one = 1;
  auto on_a = upload(coded(a, minus, zero, one)), on_w = upload(coded(w, minus, zero, one));
  auto y = room<std::int32_t>(kM * kN);
  const Status done =
      library_->product(Type::int8, kM, kN, kK, on_a.data(), on_w.data(), y.data(), {kLda, kLdw});
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(y.values(), product({kM, kN, kK}, dense_a, dense_w));
}

TEST_P(CublasLtOnGpu, RefusesShapesAndMemoryThatItDoesNotTake) {
  auto memory = room<std::int8_t>(64 * 64 * 4);
  std::int8_t* at = memory.data();
  const auto refused = [&](Type type, std::int64_t m, std::int64_t n, std::int64_t k, const void* a,
                           CublasLt::Strides strides = {}) {
    const Status done = library_->product(type, m, n, k, a, at, at, strides);
    EXPECT_FALSE(done.has_value()) << m << " " << n << " " << k;
    return done.has_value() ? ErrorCode::internal : done.error().code;
  };
  constexpr auto kInvalid = ErrorCode::invalid_argument;
  EXPECT_EQ(refused(Type::int8, 32, 32, 24, at), kInvalid);
  EXPECT_EQ(refused(Type::int8, 32, 20, 32, at), kInvalid);
  EXPECT_EQ(refused(Type::fp8_e4m3, 32, 24, 32, at), kInvalid);
  EXPECT_EQ(refused(Type::float16, 32, 32, 20, at), kInvalid);
  EXPECT_EQ(refused(Type::bfloat16, 32, 12, 32, at), kInvalid);
  EXPECT_EQ(refused(Type::int8, 0, 32, 32, at), kInvalid);
  EXPECT_EQ(refused(Type::int8, 32, 32, 32, at + 4), kInvalid);
  EXPECT_EQ(refused(Type::int8, 32, 32, 32, at, {.a = 40}), kInvalid);
  EXPECT_EQ(refused(Type::int8, 32, 32, 32, at, {.w = 16}), kInvalid);
}

TEST_P(CublasLtOnGpu, IsNamedCountedAndLostAsAKernel) {
  EXPECT_EQ(std::ranges::count(library_->version(), '.'), 2) << library_->version();
  auto a = room<std::int8_t>(32 * 32), w = room<std::int8_t>(32 * 32);
  auto y = room<std::int32_t>(32 * 32);
  const auto multiply = [&] {
    return library_->product(Type::int8, 32, 32, 32, a.data(), w.data(), y.data());
  };
  std::vector<std::string> kernels;
  gpu_->trace(&kernels);
  const std::int64_t before = gpu_->counts().kernels;
  gpu_->fail_launch(0);
  EXPECT_THROW((void)multiply().has_value(), GpuError);
  gpu_->fail_launch(-1);
  EXPECT_TRUE(multiply());
  gpu_->trace(nullptr);
  EXPECT_EQ(gpu_->counts().kernels - before, 2);
  EXPECT_EQ(kernels, std::vector<std::string>{"cublaslt"});
  EXPECT_EQ(y.values(), std::vector<std::int32_t>(32 * 32, 32 * 127 * 127));
}

INSTANTIATE_TEST_SUITE_P(Choices, CublasLtOnGpu,
                         ::testing::Values(CublasLt::Choice::first, CublasLt::Choice::fastest),
                         [](const auto& test) {
                           return test.param == CublasLt::Choice::first ? "first" : "fastest";
                         });

}  // namespace
}  // namespace oasr::kernels

#include <limits>
#include <string>

#include "kernels/cuda/testing.h"
#include "kernels/quantize/norm.h"
#include "kernels/testing.h"

namespace oasr::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::int64_t kRows[] = {1, 2, 3, 5, 8, 9, 31, 33, 64, 130};
constexpr std::int64_t kColumns[] = {1, 3, 4, 16, 31, 32, 80, 130, 384, 512, 516, 1000, 2048, 2052};

std::string text(std::int64_t m, std::int64_t k, std::int64_t ld) {
  return "m " + std::to_string(m) + " k " + std::to_string(k) + " ld " + std::to_string(ld);
}

class QuantizeOnGpu : public OnGpu {
 protected:
  // Rows with values that are not finite at `odd`; results of the GPU and the reference, their reports too.
  void expect_equal(std::int64_t m, std::int64_t k, std::int64_t ld,
                    std::initializer_list<std::int64_t> odd = {}, float deviation = 2.0f) {
    auto x = random_floats((m - 1) * ld + k, static_cast<unsigned>(m * 131 + k), deviation);
    for (const std::int64_t i : odd) x[static_cast<std::size_t>(i)] = i % 2 == 0 ? kInf : std::nanf("");
    per_token(x, m, k, ld, true);
    per_token(x, m, k, ld, false);
    fixed(x, m, k, ld);
  }

  void per_token(const std::vector<float>& x, std::int64_t m, std::int64_t k, std::int64_t ld, bool smooth) {
    const std::int64_t ldq = k + ld % 4;
    const auto smooth_inv = random_floats(k, 5);
    std::vector<std::int8_t> q(static_cast<std::size_t>(m * ldq), 99);
    const auto untouched = q;
    std::vector<float> scale(static_cast<std::size_t>(m));
    QuantizePerTokenArgs args{.x = x.data(),
                              .ldx = ld,
                              .m = m,
                              .k = k,
                              .smooth_inv = smooth ? smooth_inv.data() : nullptr,
                              .q = q.data(),
                              .ldq = ldq,
                              .scale = scale.data()};
    const NotFinite found = quantize_per_token_reference(args);
    auto gpu_x = upload(x), gpu_smooth = upload(smooth_inv);
    for (int run = 0; run < 2; ++run) {
      auto gpu_q = upload(untouched);
      auto gpu_scale = room<float>(m);
      args.x = gpu_x.data();
      if (smooth) args.smooth_inv = gpu_smooth.data();
      args.q = gpu_q.data();
      args.scale = gpu_scale.data();
      EXPECT_FALSE(quantize_per_token(context_, args));
      EXPECT_EQ(reported_row(), found.row) << "per token " << text(m, k, ld);
      EXPECT_TRUE(gpu_q.values() == q) << "per token " << text(m, k, ld);
      EXPECT_EQ(first_difference(gpu_scale.values(), scale), -1) << "per token " << text(m, k, ld);
    }
  }

  void fixed(const std::vector<float>& x, std::int64_t m, std::int64_t k, std::int64_t ld) {
    const std::int64_t ldq = k + ld % 4;
    const auto multiplier = static_multiplier(random_floats(k, 6), 0.02f, k);
    std::vector<std::int8_t> q(static_cast<std::size_t>(m * ldq), 99);
    auto gpu_q = upload(q);
    QuantizeStaticArgs args{
        .x = x.data(), .ldx = ld, .m = m, .k = k, .multiplier = multiplier.data(), .q = q.data(), .ldq = ldq};
    const NotFinite found = quantize_static_reference(args);
    auto gpu_x = upload(x), gpu_multiplier = upload(multiplier);
    args.x = gpu_x.data();
    args.multiplier = gpu_multiplier.data();
    args.q = gpu_q.data();
    EXPECT_FALSE(quantize_static(context_, args));
    EXPECT_EQ(reported_row(), found.row) << "static " << text(m, k, ld);
    EXPECT_TRUE(gpu_q.values() == q) << "static " << text(m, k, ld);
  }
};

TEST_F(QuantizeOnGpu, EqualsTheReferenceOnRaggedShapes) {
  for (const std::int64_t m : kRows) {
    for (const std::int64_t k : kColumns) {
      for (const std::int64_t gap : {0, 3, 4}) expect_equal(m, k, k + gap);
    }
  }
  expect_equal(1500, 512, 512);
  expect_equal(300, 2048, 2048);
}

TEST_F(QuantizeOnGpu, EqualsTheReferenceOnRowsThatNoBlockHolds) {
  for (const std::int64_t k : {8192, 16'384, 16'388, 20'001, 131'071, 131'072}) expect_equal(3, k, k);
}

TEST_F(QuantizeOnGpu, ReportsTheLowestRowThatIsNotFinite) {
  for (const std::int64_t k : {37, 512, 2048, 20'000}) {
    expect_equal(9, k, k, {2 * k + 1, 5 * k + 4});
    expect_equal(9, k, k + 1, {4 * (k + 1), 8 * (k + 1) + k - 1});
  }
  expect_equal(1, 64, 64, {63});
}

TEST_F(QuantizeOnGpu, EqualsTheReferenceOnExtremes) {
  expect_equal(5, 512, 512, {}, 1e38f);
  expect_equal(5, 512, 512, {}, 1e-30f);
  expect_equal(5, 511, 512, {}, 1e-44f);
  // Ties, both infinities of a product, signed zeros.
  std::vector<float> x;
  for (int i = 0; i < 256; ++i) x.push_back(static_cast<float>(i - 127) / 2);
  x[17] = -0.0f;
  x[18] = 3e38f;
  per_token(x, 1, 256, 256, false);
  fixed(x, 1, 256, 256);
}

TEST_F(QuantizeOnGpu, TakesRowsThatOverlap) {
  expect_equal(40, 240, 80);
  expect_equal(40, 240, 160);
}

class LayerNormQuantOnGpu : public OnGpu {
 protected:
  enum class Sum { none, own, in_x, in_addend };

  void expect_equal(std::int64_t m, std::int64_t d, std::int64_t gap, Sum sum, bool odd = false) {
    const std::string what = text(m, d, d + gap) + " sum " + std::to_string(static_cast<int>(sum));
    const std::int64_t ld = d + gap, ldq = d + gap % 4;
    auto x = random_floats(m * ld, static_cast<unsigned>(m * 131 + d), 2.0f);
    const auto addend = random_floats(m * ld, static_cast<unsigned>(m + d));
    if (odd) x[static_cast<std::size_t>(m / 2 * ld + d / 2)] = kInf;
    if (odd) x[static_cast<std::size_t>((m - 1) * ld)] = std::nanf("");
    const auto gamma = random_floats(d, 1), beta = random_floats(d, 2);
    std::vector<float> own(x.size(), 5.0f), scale(static_cast<std::size_t>(m));
    std::vector<std::int8_t> q(static_cast<std::size_t>(m * ldq), 99);
    auto gpu_x = upload(x), gpu_addend = upload(addend), gpu_own = upload(own), gpu_gamma = upload(gamma);
    auto gpu_beta = upload(beta), gpu_scale = room<float>(m);
    auto gpu_q = upload(q);
    auto host_x = x, host_addend = addend;
    const auto args = [&](float* x, float* addend, float* own, const float* gamma, const float* beta,
                          std::int8_t* q, float* scale) {
      return LayerNormQuantArgs{.x = x,
                                .ldx = ld,
                                .m = m,
                                .d = d,
                                .addend = sum == Sum::none ? nullptr : addend,
                                .ld_addend = ld,
                                .addend_scale = 0.3f,
                                .sum = sum == Sum::own ? own : (sum == Sum::in_x ? x : addend),
                                .ld_sum = ld,
                                .gamma = gamma,
                                .beta = beta,
                                .q = q,
                                .ldq = ldq,
                                .scale = scale};
    };
    const NotFinite found = layer_norm_quant_reference(args(
        host_x.data(), host_addend.data(), own.data(), gamma.data(), beta.data(), q.data(), scale.data()));
    EXPECT_FALSE(
        layer_norm_quant(context_, args(gpu_x.data(), gpu_addend.data(), gpu_own.data(), gpu_gamma.data(),
                                        gpu_beta.data(), gpu_q.data(), gpu_scale.data())));
    EXPECT_EQ(reported_row(), found.row) << what;
    EXPECT_TRUE(gpu_q.values() == q) << what;
    EXPECT_EQ(first_difference(gpu_scale.values(), scale), -1) << what;
    EXPECT_EQ(first_difference(gpu_x.values(), host_x), -1) << what;
    EXPECT_EQ(first_difference(gpu_addend.values(), host_addend), -1) << what;
    EXPECT_EQ(first_difference(gpu_own.values(), own), -1) << what;
  }
};

TEST_F(LayerNormQuantOnGpu, EqualsTheReferenceOnRaggedShapes) {
  int number = 0;
  for (const std::int64_t m : kRows) {
    for (const std::int64_t d : kColumns) {
      for (const std::int64_t gap : {0, 3, 4}) expect_equal(m, d, gap, static_cast<Sum>(number++ % 4));
    }
  }
  expect_equal(1500, 512, 0, Sum::in_x);
  expect_equal(300, 2048, 0, Sum::own);
}

TEST_F(LayerNormQuantOnGpu, EqualsTheReferenceOnLongRowsAndMany) {
  int number = 0;
  for (const std::int64_t m : {1, 3, 4, 9}) {
    for (const std::int64_t d : {2052, 2064, 4096}) {
      for (int sum = 0; sum < 4; ++sum) expect_equal(m, d, 4, static_cast<Sum>(sum), ++number % 3 == 0 && m == 9);
    }
  }
  for (int sum = 0; sum < 4; ++sum) expect_equal(2051, 516 + 128 * sum, 0, static_cast<Sum>(sum));
  expect_equal(2051, 512, 4, Sum::own);
}

// Of more rows than a GPU holds at once the kernels of the models' widths keep less in registers.
TEST_F(LayerNormQuantOnGpu, EqualsTheReferenceOfFewAndManyRowsOfTheModelsWidths) {
  for (const std::int64_t d : {256, 384, 512, 768, 1024, 1280, 2048}) {
    for (int sum = 0; sum < 4; ++sum) {
      expect_equal(7, d, 4, static_cast<Sum>(sum), sum % 2 == 0);
      expect_equal(4801, d, 0, static_cast<Sum>(sum), sum % 2 == 1);
    }
  }
}

TEST_F(LayerNormQuantOnGpu, EqualsTheReferenceWhereRowsDoNotFitIntoSharedMemory) {
  for (const Sum sum : {Sum::none, Sum::own, Sum::in_x, Sum::in_addend}) {
    expect_equal(5, 20'000, 0, sum);
    expect_equal(3, 20'001, 0, sum);
  }
}

TEST_F(LayerNormQuantOnGpu, ReportsTheLowestRowThatIsNotFinite) {
  for (const Sum sum : {Sum::none, Sum::own}) {
    expect_equal(9, 384, 0, sum, true);
    expect_equal(9, 37, 3, sum, true);
  }
}

}  // namespace
}  // namespace oasr::kernels

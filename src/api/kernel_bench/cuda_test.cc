// `oasr bench kernels` on a GPU.
#include <gtest/gtest.h>

#include <map>

#include "device/gpu.h"
#include "oasr/kernel_bench.h"

namespace oasr {
namespace {

class KernelBenchOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const GpuReport report = gpu_report();
    if (report.gpus.empty()) GTEST_SKIP() << "no GPU: " << report.problem;
  }
  KernelBenchReport measured(std::vector<std::string> ops, std::vector<KernelShape> shapes) {
    KernelBenchOptions options;
    options.ops = std::move(ops);
    options.shapes = std::move(shapes);
    options.device = "cuda";
    options.repeat = 3;
    auto report = bench_kernels(options);
    if (!report) {
      ADD_FAILURE() << report.error().message();
      return {};
    }
    return std::move(*report);
  }
};

TEST_F(KernelBenchOnGpu, MeasuresTheTilesBesideCublasLt) {
  const auto report = measured({"scaled_mm"}, {{1500, 2048, 512}, {64, 4096, 4096}, {1, 512, 512}, {33, 100, 70}});
  std::map<std::int64_t, int> chosen, compared;
  for (const KernelTime& time : report.times) {
    chosen[time.shape.m] += time.chosen ? 1 : 0;
    if (time.missing.empty()) {
      EXPECT_EQ(time.rounds, 3) << time.kernel;
      EXPECT_GT(time.median_us, 0.5) << time.kernel;
      EXPECT_GT(time.roof_us, 0) << time.kernel;
      // Nothing is faster than the ceilings, but for what a cache holds.
      if (time.shape.m >= 64) {
        EXPECT_LT(time.roof_us, 1.5 * time.min_us) << time.kernel;
      }
      compared[time.shape.m] += time.to_cublaslt_int8 > 0 ? 1 : 0;
    } else {
      EXPECT_FALSE(time.kernel.starts_with("scaled_mm mma_sync")) << time.kernel << ": " << time.missing;
    }
  }
  for (const auto& [m, count] : chosen) EXPECT_EQ(count, 1) << m;
  EXPECT_EQ(compared[33], 0) << "cuBLASLt does not take k = 70";
  if (!report.cublaslt.empty()) {
    EXPECT_GT(compared[1500], 4);
  } else {
    EXPECT_FALSE(report.no_cublaslt.empty());
  }
  EXPECT_FALSE(report.compute_capability.empty());
  EXPECT_GT(report.clock_mhz, 100);
}

TEST_F(KernelBenchOnGpu, MeasuresTheOtherOperations) {
  const auto products = measured({"linear"}, {{1500, 512, 512}, {1, 512, 512}});
  int chosen = 0;
  for (const KernelTime& time : products.times) chosen += time.chosen && time.median_us > 0 ? 1 : 0;
  EXPECT_EQ(chosen, 2 * 3) << "float32, float16, bfloat16";
  const auto rows = measured({"quantize", "norm"}, {{16'384, 0, 2048}, {5, 0, 70}});
  EXPECT_EQ(rows.times.size(), 2u * 5);
  for (const KernelTime& time : rows.times) {
    EXPECT_GT(time.median_us, 0.5) << time.kernel;
    EXPECT_TRUE(time.memory_bound) << time.kernel;
    if (time.shape.m > 1000) {
      // A cache may hold a third of the 100 MB and more that a call moves.
      EXPECT_LT(time.roof_us, 1.5 * time.min_us) << time.kernel << ": faster than copies";
    }
  }
}

TEST_F(KernelBenchOnGpu, RefusesAShapeThatDoesNotFit) {
  KernelBenchOptions options;
  options.ops = {"linear"};
  options.shapes = {{1 << 24, 1 << 20, 64}};
  options.device = "cuda";
  const auto report = bench_kernels(options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::unsupported);
  EXPECT_NE(report.error().what.find("MiB of memory"), std::string::npos) << report.error().what;
}

}  // namespace
}  // namespace oasr

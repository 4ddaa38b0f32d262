#include "kernels/peak/cuda.h"

#include <cstdio>
#include <map>

#include "device/gpu_timing.h"
#include "kernels/cuda/testing.h"
#include "kernels/rows/op.h"

namespace oasr::kernels {
namespace {

using PeakOnGpu = OnGpu;

// A loop that the compiler removed, or that waits for itself, would be far from these.
TEST_F(PeakOnGpu, IsBetweenWhatNoCardReachesAndWhatEveryOneDoes) {
  std::map<GpuPeak, double> best;
  for (const auto& [peak, name] : gpu_peak_names()) {
    for (const GpuPeakUnit unit : {GpuPeakUnit::fma, GpuPeakUnit::mma_sync, GpuPeakUnit::wgmma}) {
      const double gops = gpu_peak_gops(*gpu_, peak, unit);
      std::printf("%s, unit %d: %.1f TOP/s\n", std::string(name).c_str(), static_cast<int>(unit), 1e-3 * gops);
      EXPECT_TRUE(gops == 0 || gops > 1000) << name;
      EXPECT_LT(gops, peak == GpuPeak::float32 ? 3e5 : 3e7) << name;
      best[peak] = std::max(best[peak], gops);
    }
    EXPECT_GT(best[peak], 0) << name;
  }
  EXPECT_GT(best[GpuPeak::int8], best[GpuPeak::float16]);
  EXPECT_GT(best[GpuPeak::float16], best[GpuPeak::float32]);
  EXPECT_NEAR(best[GpuPeak::bfloat16] / best[GpuPeak::float16], 1, 0.15) << "the same units";
}

TEST_F(PeakOnGpu, CopiesAndMarksAreOfThisWorld) {
  const double copy = copy_bytes_per_second(*gpu_, std::size_t{256} << 20), mark = mark_microseconds(*gpu_);
  std::printf("copy %.0f GB/s, mark %.2f us\n", 1e-9 * copy, mark);
  EXPECT_GT(copy, 50e9);
  EXPECT_LT(copy, 30e12);
  EXPECT_GT(mark, 0.01);
  EXPECT_LT(mark, 50);
}

TEST_F(PeakOnGpu, AReplayIsAsLongAsItsCalls) {
  constexpr std::int64_t kColumns = 1000, kRows = 20'000;
  const std::vector<float> values(kRows * kColumns, 1.0f);
  auto x = upload(values), y = upload(values);
  const auto rows = [&](std::int64_t count) {
    return [&, count](int) {
      shift_scale_rows(context_, {.x = {x.data(), count, kColumns, kColumns}, .factor = 2.0f, .y = {y.data(), count, kColumns, kColumns}});
    };
  };
  rows(kRows)(0);
  GpuReplay whole(*gpu_, 10, rows(kRows)), half(*gpu_, 10, rows(kRows / 2)), more(*gpu_, 40, rows(kRows));
  double ratio_of_rows = 0, ratio_of_calls = 0;
  for (int i = 0; i < 3; ++i) {
    ratio_of_rows = whole.run() / half.run();
    ratio_of_calls = more.run() / whole.run();
  }
  // 160 MB a call: twice as many rows take about twice as long, more where a cache holds a part of the half; and a call
  // takes what it takes.
  EXPECT_GT(ratio_of_rows, 1.3);
  EXPECT_LT(ratio_of_rows, 8);
  EXPECT_GT(ratio_of_calls, 0.6);
  EXPECT_LT(ratio_of_calls, 1.6);
}

}  // namespace
}  // namespace oasr::kernels

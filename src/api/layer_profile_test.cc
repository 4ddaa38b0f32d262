#include "api/layer_profile.h"

#include <gtest/gtest.h>

namespace oasr {
namespace {

load::LayerReport layer(std::string path, std::string operands, std::int64_t in, std::int64_t out, std::int64_t bytes) {
  load::LayerReport report;
  report.path = std::move(path);
  report.storage = operands == "int8" ? "int8" : "float16";
  report.operands = std::move(operands);
  report.in_features = in;
  report.out_features = out;
  report.weight_bytes = bytes;
  return report;
}

// fc1 writes the int8 input of fc2; the head's numbers are those of an embedding.
load::QuantizationReport report() {
  load::QuantizationReport report;
  report.layers = {layer("fc1", "int8", 512, 2048, 1'060'000), layer("fc2", "int8", 2048, 512, 1'050'000),
                   layer("conv", "float32", 80, 512, 245'760), layer("head", "float32", 512, 51'865, 0)};
  report.layers[0].input = "norm";
  report.layers[1].input = "fc1";
  report.layers[2].taps = 3;
  return report;
}

const LayerTime& find(const std::vector<LayerTime>& times, const std::string& layer) {
  for (const LayerTime& time : times) {
    if (time.layer == layer) return time;
  }
  ADD_FAILURE() << layer;
  return times.front();
}

TEST(LayerProfile, KnowsOperationsAndBytesOfEveryKindOfLayer) {
  LayerProfile profile;
  profile.measure(true);
  for (int step = 0; step < 3; ++step) {
    profile.layer_time("fc1", {.rows = 1, .seconds = 1e-6, .kernels = 1, .work = {}});
    profile.layer_time("fc2", {.rows = 1, .seconds = 2e-6, .kernels = 2, .work = {}});
  }
  profile.layer_time("conv", {.rows = 1500, .seconds = 1e-5, .kernels = 1, .work = {}});
  profile.layer_time("head", {.rows = 2, .seconds = 1e-5, .kernels = 1, .work = {}});
  profile.layer_time("attention", {.rows = 5, .seconds = 1e-6, .kernels = 2,
                                   .work = {.operations = 100, .bytes = 50, .operands = "float16"}});
  const auto times = profile.times(report());
  ASSERT_EQ(times.size(), 5u) << "no GPU: nothing between layers";
  const LayerTime& fc1 = find(times, "fc1");
  EXPECT_EQ(fc1.calls, 3);
  EXPECT_EQ(fc1.kernels, 3);
  EXPECT_DOUBLE_EQ(fc1.seconds, 3e-6);
  EXPECT_DOUBLE_EQ(fc1.operations, 3 * 2.0 * 512 * 2048);
  // A step of one row reads the weights; its rows are int8 in, and int8 out for fc2.
  EXPECT_DOUBLE_EQ(fc1.bytes, 3 * (1'060'000.0 + 512 + 2048));
  EXPECT_EQ(fc1.operands, "int8");
  EXPECT_DOUBLE_EQ(find(times, "fc2").bytes, 3 * (1'050'000.0 + 2048 + 4 * 512));
  EXPECT_DOUBLE_EQ(find(times, "conv").operations, 2.0 * 1500 * 3 * 80 * 512);
  EXPECT_DOUBLE_EQ(find(times, "conv").bytes, 245'760.0 + 1500 * 4.0 * (80 + 512));
  EXPECT_DOUBLE_EQ(find(times, "head").bytes, 2.0 * 512 * 51'865 + 2 * 4.0 * (512 + 51'865)) << "read, if not its own";
  const LayerTime& attention = find(times, "attention");
  EXPECT_EQ(attention.operations, 100);
  EXPECT_EQ(attention.bytes, 50);
  EXPECT_EQ(attention.operands, "float16");
}

TEST(LayerProfile, HasWhatAGpuDoesBetweenTheLayers) {
  LayerProfile profile;
  profile.measure(true);
  profile.layer_time("fc1", {.rows = 1, .seconds = 3e-6, .kernels = 2, .work = {}});
  profile.section_time(4e-6, 3);
  profile.section_time(1e-6, 1);
  const LayerTime between = profile.times(report()).back();
  EXPECT_EQ(between.layer, kBetweenLayers);
  EXPECT_EQ(between.calls, 2);
  EXPECT_EQ(between.kernels, 2);
  EXPECT_NEAR(between.seconds, 2e-6, 1e-12);
  profile.measure(true);
  EXPECT_TRUE(profile.times(report()).empty()) << "measured anew";
}

}  // namespace
}  // namespace oasr

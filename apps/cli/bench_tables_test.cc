// The tables and JSON of `oasr bench --per-layer` and `oasr bench kernels`, of numbers that are known.
#include <gtest/gtest.h>

#include "cli/bench_parts.h"
#include "cli/kernel_report.h"
#include "cli/layer_table.h"

namespace oasr::cli {
namespace {

using Json = nlohmann::ordered_json;

Ceilings ceilings() {
  return {.operands = {{.name = "int8", .gops = 2'000'000}, {.name = "float32", .gops = 60'000}},
          .copy_gbs = 4000,
          .mark_us = 1.25};
}

TEST(LayerTable, OfAGpuHasTheRoofThatBinds) {
  // One row: the weights' bytes are what takes the time; many rows: the operations.
  LayerTime step;
  step.layer = "fc1";
  step.kernel = "scaled_mm cuda";
  step.calls = step.rows = 10;
  step.seconds = 50e-6;
  step.operations = 10 * 2.0 * 2048 * 512;
  step.operands = "int8";
  step.bytes = 10 * 2048.0 * 512;
  step.kernels = 20;
  LayerTime encoder = step;
  encoder.rows = 15'000;
  encoder.seconds = 100e-6;
  encoder.operations = 15'000 * 2.0 * 2048 * 512;
  LayerTime plain;
  plain.layer = kBetweenLayers;
  plain.calls = 3;
  plain.seconds = 1e-6;
  const Json rows = layer_table({step, encoder, plain}, ceilings());
  EXPECT_EQ(rows[0]["bound"], "bytes");
  EXPECT_NEAR(rows[0]["roof_percent"].get<double>(), 100 * (10 * 2048.0 * 512 / 4000e9) / 50e-6, 1e-9);
  EXPECT_NEAR(rows[0]["gbs"].get<double>(), 10 * 2048.0 * 512 / 50e-6 * 1e-9, 1e-9);
  EXPECT_EQ(rows[0]["kernels"], 20);
  EXPECT_EQ(rows[1]["bound"], "operations");
  EXPECT_NEAR(rows[1]["roof_percent"].get<double>(), 100 * (15'000 * 2.0 * 2048 * 512 / 2e15) / 100e-6, 1e-9);
  EXPECT_NEAR(rows[1]["peak_percent"].get<double>(), rows[1]["roof_percent"].get<double>(), 1e-9);
  for (const char* key : {"gops", "peak_percent", "gbs", "roof_percent", "bound"}) EXPECT_TRUE(rows[2][key].is_null()) << key;
  const Json report = {{"model", {{"graphs", true}}}, {"ceilings", ceilings_json(ceilings(), true)}, {"layers", rows}};
  const std::string text = layer_table_text(report);
  EXPECT_NE(text.find("(between layers)"), std::string::npos);
  EXPECT_NE(text.find("A mark takes 1.2 us"), std::string::npos) << text;
  EXPECT_NE(text.find("operations"), std::string::npos);
}

TEST(LayerTable, OfACpuHasNoRoof) {
  LayerTime attention;
  attention.seconds = 1e-3;
  attention.operations = 2e6;
  const Json rows = layer_table({attention}, 2);
  EXPECT_NEAR(rows[0]["gops"].get<double>(), 2, 1e-9);
  EXPECT_TRUE(rows[0]["peak_percent"].is_null());
  EXPECT_FALSE(rows[0].contains("roof_percent"));
  EXPECT_EQ(layer_table_text({{"layers", rows}}).find("roof"), std::string::npos);
}

TEST(Launches, AreGivenForAPassAndItsParts) {
  Timings pass;
  pass.launches = {.kernels = 1000, .graphs = 11, .alone = 90};
  pass.windows = 2;
  pass.encode_launches = {.kernels = 160, .graphs = 1, .alone = 80};
  pass.steps = 8;
  pass.step_launches = {.kernels = 800, .graphs = 8, .alone = 0};
  const Json json = launches_json(pass);
  EXPECT_EQ(json["kernels"], 1000);
  EXPECT_EQ(json["window"]["kernels"], 80.0);
  EXPECT_EQ(json["window"]["alone"], 40.0);
  EXPECT_EQ(json["step"]["graphs"], 1.0);
  EXPECT_FALSE(json.contains("prompt"));
  EXPECT_NE(launches_text(json).find("a step   100.0 kernels, 1.00 starts"), std::string::npos) << launches_text(json);
}

KernelTime time_of(const char* op, KernelShape shape, const char* kernel, double median_us) {
  KernelTime time;
  time.op = op;
  time.shape = shape;
  time.kernel = kernel;
  time.rounds = 15;
  time.calls = 20;
  time.sets = 10;
  time.median_us = median_us;
  time.min_us = median_us - 0.5;
  time.max_us = median_us + 1;
  return time;
}

KernelBenchReport report() {
  const KernelShape shape{.m = 64, .n = 4096, .k = 4096};
  KernelTime ours = time_of("scaled_mm", shape, "scaled_mm mma_sync m64n32", 8);
  ours.chosen = true;
  ours.operations = 2.0 * 64 * 4096 * 4096;
  ours.bytes = 18e6;
  ours.roof_us = 4;
  ours.memory_bound = true;
  ours.to_cublaslt_int8 = 1.25;
  KernelTime other = time_of("scaled_mm", shape, "cublaslt int8", 0);
  other.missing = "it is not there";
  KernelTime rows = time_of("quantize", {.m = 512, .n = 0, .k = 2048}, "quantize_static cuda", 4);
  rows.bytes = 5e6;
  KernelBenchReport made;
  made.device = "cuda";
  made.name = "NVIDIA H200 (80 GB)";
  made.driver = "580.1";
  made.runtime = "13.0";
  made.no_cublaslt = "it is not there";
  made.ceilings = ceilings();
  made.times = {ours, other, rows};
  return made;
}

TEST(KernelReport, IsJsonWithTheCardTheCommitAndEveryRow) {
  const Json json = kernel_report_json(report(), "2026-12-02T00:00:00Z", "abc");
  EXPECT_EQ(json["commit"], "abc");
  EXPECT_EQ(json["date"], "2026-12-02T00:00:00Z");
  EXPECT_FALSE(json["oasr"].get<std::string>().empty());
  EXPECT_EQ(json["device"]["name"], "NVIDIA H200 (80 GB)");
  EXPECT_EQ(json["device"]["driver"], "580.1");
  EXPECT_EQ(json["device"]["runtime_cuda"], "13.0");
  EXPECT_TRUE(json["device"]["cublaslt"].is_null());
  EXPECT_EQ(json["device"]["no_cublaslt_because"], "it is not there");
  EXPECT_EQ(json["ceilings"]["gops"]["int8"], 2'000'000.0);
  const Json& ours = json["kernels"][0];
  EXPECT_EQ(ours["n"], 4096);
  EXPECT_EQ(ours["chosen"], true);
  EXPECT_EQ(ours["median_us"], 8.0);
  EXPECT_NEAR(ours["gops"].get<double>(), 2.0 * 64 * 4096 * 4096 / 8e-6 * 1e-9, 1e-6);
  EXPECT_NEAR(ours["gbs"].get<double>(), 18e6 / 8e-6 * 1e-9, 1e-9);
  EXPECT_EQ(ours["roof_percent"], 50.0);
  EXPECT_EQ(ours["bound"], "bytes");
  EXPECT_EQ(ours["to_cublaslt_int8"], 1.25);
  const Json& other = json["kernels"][1];
  EXPECT_EQ(other["missing_because"], "it is not there");
  EXPECT_FALSE(other.contains("median_us"));
  const Json& rows = json["kernels"][2];
  EXPECT_FALSE(rows.contains("n"));
  EXPECT_TRUE(rows["gops"].is_null());
  EXPECT_TRUE(rows["roof_percent"].is_null());
  EXPECT_TRUE(kernel_report_json(report(), "", "")["commit"].is_null());
}

TEST(KernelReport, IsATableWithWhatIsMissing) {
  const std::string text = kernel_report_text(report());
  EXPECT_NE(text.find("scaled_mm 64 x 4096 x 4096"), std::string::npos) << text;
  EXPECT_NE(text.find("quantize 512 x 2048"), std::string::npos);
  EXPECT_NE(text.find("-  it is not there"), std::string::npos);
  EXPECT_NE(text.find("50 %"), std::string::npos);
}

TEST(KernelReport, IsNamedAfterTheDevice) {
  EXPECT_EQ(kernel_report_name(report()), "kernels-nvidia-h200-80-gb.json");
}

}  // namespace
}  // namespace oasr::cli

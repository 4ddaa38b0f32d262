#include "quantize/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "quantize/report_parts.h"
#include "quantize/report_testing.h"

namespace oasr::quantize {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Of which no value is missing.
Report full_report() {
  auto entry = layer("a.0.fc1", 30);
  entry.reason = "none";
  entry.rows = 7;
  entry.input_min = -0.1F;
  entry.input_max = 0.7F;
  entry.ranges = {{.observer = "mse", .amax = 0.3F, .clipped = 0.125, .relative_error = 1e-5}};
  entry.input_scale = 0.0123F;
  entry.observer = "mse";
  entry.weight_scale_min = 1e-8F;
  entry.weight_scale_max = 16777216;
  entry.smoothing = SmoothingReport{.fold = "norm_affine",
                                    .producer = "a.0.norm",
                                    .alpha = 0.3,
                                    .least = 0.25F,
                                    .greatest = 8,
                                    .moved = 3,
                                    .idle = 1,
                                    .clamped = 2,
                                    .error_before = 0.5,
                                    .error_after = 0.25};
  entry.effect = 0.002;
  entry.cause = "c";
  auto report = report_of({entry});
  report.ignore = {"b.*"};
  report.module_types = {"linear"};
  report.quantize_passes = 5;
  report.fused_inputs = 3;
  report.calibration = CalibrationReport{.manifest = "m",
                                         .manifest_hash = "h",
                                         .selection = "s",
                                         .utterances = 1,
                                         .available = 3,
                                         .asked = 2,
                                         .seconds = 1.5,
                                         .ids = {"u"},
                                         .notes = {"n"}};
  report.keys = {{.key = "a.0.k", .query = "a.0.q", .pairing = "none", .alpha = 0.5, .least = 0.5F,
                  .greatest = 4, .moved = 2, .idle = 1, .clamped = 3}};
  report.proof = FoldProof{.utterances = 1, .values = 9, .greatest_difference = 0.125};
  report.divergence = 0.0625;
  report.gate = GateReport{.manifest = "g",
                           .normalizer = "none",
                           .limit = 0.1,
                           .utterances = 20,
                           .seconds = 60,
                           .modes = {},
                           .increase = 0.1,
                           .passed = true,
                           .verdict = "v",
                           .back_off = {{{"x"}, 0.5, false, 12}}};
  report.gate->modes.push_back({.name = "offline",
                                .groups = {difference("all", 40, 41, 0.5)},
                                .full = {1, 2, 3},
                                .quantized = {4, 5, 6},
                                .worse = {"w"},
                                .better = {"b"}});
  report.notes = {"note"};
  return report;
}

constexpr const char* kFullJson =
    R"({"format":"oasr-quantization-report","version":1,"source":"full","destination":"int8",)"
    R"("architecture":"Toy","tool":"oasr 0.1.0","recipe":"smoothquant_w8a8",)"
    R"("options":{"smoothquant.alpha":"0.5"},"ignore":["b.*"],"module_types":["linear"],)"
    R"("calib_dtype":"float32","bytes_before":104857600,"bytes_after":41943040,"quantize_passes":5,"fused_inputs":3,)"
    R"("calibration":{"manifest":"m","manifest_hash":"h","selection":"s","utterances":1,)"
    R"("available":3,"asked":2,"seconds":1.5,"ids":["u"],"notes":["n"]},)"
    R"("keys":[{"key":"a.0.k","query":"a.0.q","pairing":"none","alpha":0.5,"least":0.5,"greatest":4.0,)"
    R"("moved":2,"idle":1,"clamped":3}],)"
    R"("proof":{"utterances":1,"values":9,"greatest_difference":0.125},"divergence":0.0625,)"
    R"("gate":{"manifest":"g","normalizer":"none","limit":0.1,"utterances":20,"seconds":60.0,)"
    R"("modes":[{"name":"offline","groups":[{"name":"all","utterances":20,)"
    R"("full":{"reference":1000,"substitutions":40,"deletions":0,"insertions":0},)"
    R"("quantized":{"reference":1000,"substitutions":41,"deletions":0,"insertions":0},)"
    R"("full_percent":4.0,"quantized_percent":4.1,"difference":0.1,"low":-0.4,"high":0.6,)"
    R"("p":0.25}],"full":{"empty":1,"repeating":2,"failed":3},)"
    R"("quantized":{"empty":4,"repeating":5,"failed":6},"worse":["w"],"better":["b"]}],)"
    R"("increase":0.1,"passed":true,"verdict":"v","returned_to":"full precision",)"
    R"("back_off":[{"layers":["x"],"increase":0.5,"passed":false,"bytes":12}]},)"
    R"("unmet":"","notes":["note"],"layers":[{"path":"a.0.fc1","kind":"linear","scheme":"int8_w8a8",)"
    R"("reason":"none","in_features":4,"out_features":8,"taps":1,"bytes_before":4194304,)"
    R"("bytes_after":1048576,"rows":7,"input_min":-0.1,"input_max":0.7,)"
    R"("channel_amax":[1.0,1.0,2.0,64.0],"channel_amax_smoothed":[1.0,1.0,2.0,8.0],)"
    R"("ranges":[{"observer":"mse","amax":0.3,"clipped":0.125,"relative_error":1e-05}],)"
    R"("input_scale":0.0123,"observer":"mse","weight_scale_min":1e-08,)"
    R"("weight_scale_max":16777216.0,"smoothing":{"fold":"norm_affine","producer":"a.0.norm",)"
    R"("alpha":0.3,"least":0.25,"greatest":8.0,"moved":3,"idle":1,"clamped":2,)"
    R"("error_before":0.5,"error_after":0.25},"alone":{"snr_db":30.0,"cosine":0.5},)"
    R"("cumulative":{"snr_db":29.0,"cosine":0.25},"effect":0.002,"cause":"c"}]})";

TEST(ReportJson, HoldsEveryValueInOneOrder) {
  EXPECT_EQ(dump_json(to_json(full_report())), kFullJson);
  EXPECT_THAT(key_sentence(full_report()), HasSubstr("1 attention are divided by 0.5 to 4, and their queries"));
  EXPECT_THAT(to_html(full_report()), HasSubstr("a.0.k"));
}

TEST(ReportJson, WhatWasNotMeasuredIsNull) {
  auto entry = layer("a", kExact);
  entry.cumulative.reset();
  const auto json = to_json(report_of({entry}));
  EXPECT_TRUE(json["calibration"].is_null() && json["gate"].is_null() && json["proof"].is_null() &&
              json["divergence"].is_null());
  EXPECT_THAT(dump_json(json["layers"][0]),
              AllOf(HasSubstr(R"("snr_db":null)"), HasSubstr(R"("cumulative":null,"effect":null)"),
                    HasSubstr(R"("input_scale":null)")));
}

TEST(ReportJson, HasNoTimes) {
  auto report = report_of({layer("a", 20)});
  const auto before = dump_json(to_json(report));
  report.layers[0].ms_before = 3;
  report.layers[0].ms_after = 1;
  EXPECT_EQ(dump_json(to_json(report)), before);
}

TEST(ReportParts, ASpreadIsOfActiveChannelsByNearestRank) {
  std::vector<float> amax = {0, std::numeric_limits<float>::infinity()};
  for (int i = 200; i >= 1; --i) amax.push_back(static_cast<float>(i));
  const auto spread = spread_of(amax);
  ASSERT_TRUE(spread);
  EXPECT_EQ(spread->median, 100);  // 50 % of 200 values are at most 100
  EXPECT_EQ(spread->p99, 198);
  EXPECT_EQ(spread->greatest, 200);
  EXPECT_EQ(spread->ratio(), 2);
  EXPECT_FALSE(spread_of({0, 0}));
  EXPECT_EQ(spread_of({5})->p99, 5);
}

TEST(ReportParts, WorstLayersComeFirstAndEqualOnesInOrder) {
  auto without = layer("d", 0);
  without.alone.reset();
  const auto report =
      report_of({layer("a", kExact), layer("b", 20), layer("c", 10), without, layer("e", 20)});
  std::vector<std::string> paths;
  for (const auto* entry : worst_first(report)) paths.push_back(entry->path);
  EXPECT_THAT(paths, ElementsAre("c", "b", "e", "a"));
}

TEST(ReportParts, WordsAreWrapped) {
  EXPECT_EQ(wrapped("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(wrapped("one two three", 2, 8), "one\n  two\n  three");
  EXPECT_EQ(wrapped("incomprehensibility is long", 2, 9), "incomprehensibility\n  is long");
}

// With the lines of a label joined.
std::string joined(const std::string& text) {
  return std::regex_replace(text, std::regex("\n {14}"), " ");
}

TEST(ReportText, SaysWhatBecameOfTheModel) {
  auto report = report_of({layer("a.0.fc1", 30), layer("a.0.fc2", 12), skipped("x", "it is odd"),
                           skipped("y", "it is tied"), skipped("z", "it is tied")});
  report.layers[1].cause = "channel 3 is 64 x the median channel";
  const auto text = joined(to_text(report));
  EXPECT_THAT(text, HasSubstr("full -> int8"));
  EXPECT_THAT(text, HasSubstr("smoothquant.alpha 0.5"));
  EXPECT_THAT(text, HasSubstr("2 of 5 layers are quantized, 3 of the same kinds are not"));
  EXPECT_THAT(text, HasSubstr("40.0 MiB in place of 100.0 MiB: 40 %"));
  EXPECT_THAT(text, HasSubstr("not quantized 2 x it is tied 1 x it is odd"));
  EXPECT_THAT(text, HasSubstr("was not asked for"));
  // The greatest channel is 64 times the median of 1; smoothed 8 times.
  EXPECT_THAT(text,
              HasSubstr("was 64 times the median one, of the worst layer 64 times; smoothed"));
  EXPECT_THAT(text, HasSubstr("8.0 times, at worst"));
  EXPECT_LT(text.find("a.0.fc2"), text.find("channel 3 is 64 x"));
  EXPECT_LT(text.find("channel 3 is 64 x"), text.find("a.0.fc1"));
}

TEST(ReportText, LayersInAnotherSchemeAreNamedWithTheReason) {
  auto report = large_report();
  EXPECT_THAT(joined(to_text(report)), Not(HasSubstr("instead of the recipe's scheme")));
  EXPECT_THAT(to_html(report), Not(HasSubstr("In another scheme")));
  report.layers[0].scheme = "int8_w8a8";
  report.layers[0].reason = "4 bits would cost too much";
  EXPECT_THAT(joined(to_text(report)), HasSubstr("1 of them in int8_w8a8 instead of the recipe's scheme"));
  EXPECT_THAT(to_html(report), AllOf(HasSubstr("In another scheme"), HasSubstr("4 bits would cost too much")));
}

TEST(ReportText, FitsATerminal) {
  const auto lines = lines_of(to_text(large_report()));
  EXPECT_LE(lines.size(), 30u);
  for (const auto& line : lines) EXPECT_LE(line.size(), 100) << line;
}

TEST(ReportText, TheGateSpeaksOfItsIntervals) {
  auto report = report_of({layer("a", 20)});
  report.gate = GateReport{};
  report.gate->passed = false;
  report.gate->increase = 0.5;
  report.gate->verdict = "streaming hears worse";
  for (const auto& [name, quantized] : {std::pair{"same", 41}, {"worse", 50}, {"better", 30}}) {
    report.gate->modes.push_back({.name = name,
                                  .groups = {difference("all", 40, quantized, 0.2)},
                                  .full = {},
                                  .quantized = {},
                                  .worse = {},
                                  .better = {}});
  }
  const auto text = joined(to_text(report));
  EXPECT_THAT(
      text,
      HasSubstr(
          "Refused: word error changes by +0.50 points in the worst mode, the limit is +0.10"));
  EXPECT_THAT(text, HasSubstr("streaming hears worse"));
  EXPECT_THAT(text,
              HasSubstr("same: word error 4.00 % at full precision, 4.10 % quantized; +0.10 points "
                        "(95 % interval -0.10 to +0.30): no difference is shown."));
  EXPECT_THAT(text, HasSubstr("(95 % interval +0.80 to +1.20): it hears worse."));
  EXPECT_THAT(text, HasSubstr("(95 % interval -1.20 to -0.80): it hears better."));
}

// Backing off tries fewer layers after the first that passed.
TEST(ReportText, TheLayersThatWentBackAreThoseOfTheShortestStepThatPassed) {
  auto report = report_of({layer("a", 20)});
  report.gate = GateReport{};
  report.gate->back_off = {{.layers = {}, .increase = 3},
                           {.layers = {"a", "b", "c", "d"}, .increase = 0.05, .passed = true, .bytes = 4 << 20},
                           {.layers = {"a", "b"}, .increase = 2, .passed = false, .bytes = 2 << 20},
                           {.layers = {"a", "b", "c"}, .increase = 1, .passed = false, .bytes = 3 << 20}};
  EXPECT_THAT(joined(to_text(report)), HasSubstr("4 layers back at full precision, 4.0 MiB more: +0.05 points"));
  EXPECT_THAT(to_html(report), HasSubstr("The gate put 4 layers back to full precision, which costs 4.0 MiB"));
}

TEST(ReportText, OneReasonMoreIsNamed) {
  std::vector<LayerEntry> layers = {layer("a", 20), skipped("b", "one"), skipped("c", "two"), skipped("d", "three")};
  layers.push_back(skipped("e", "four"));
  EXPECT_THAT(to_text(report_of(layers)), HasSubstr("1 x four"));
  layers.push_back(skipped("f", "five"));
  EXPECT_THAT(joined(to_text(report_of(layers))), HasSubstr("2 x another reason"));
}

TEST(ReportText, AnalysisListsAllLayersWithTheCause) {
  const auto report = large_report();
  const auto text = analysis_text(report);
  EXPECT_EQ(lines_of(text).size(), 1 + 2 * worst_first(report).size());
  EXPECT_EQ(analysis_text(report_of({skipped("a", "r")})), "no layer was analyzed\n");
}

TEST(ReportHtml, IsOnePageWithoutScriptsOrOtherFiles) {
  const auto html = to_html(large_report());
  expect_balanced(html);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("http")));
  EXPECT_THAT(html, Not(HasSubstr("<link")));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
}

TEST(ReportHtml, NamesAreEscaped) {
  auto report = large_report();
  const std::string evil = "<script>alert(\"&\")</script>";
  report.source = report.destination = report.architecture = report.recipe = report.tool = evil;
  report.options = {{evil, evil}};
  report.notes = report.ignore = report.module_types = {evil};
  auto& first = report.layers.front();
  first.path = first.kind = first.scheme = first.cause = first.observer = evil;
  first.alone->snr_db = -5;
  first.smoothing = SmoothingReport{};
  first.smoothing->fold = first.smoothing->producer = evil;
  first.ranges = {{.observer = evil}};
  report.layers.push_back(skipped(evil, evil));
  report.calibration = CalibrationReport{
      .manifest = evil, .manifest_hash = evil, .selection = evil, .ids = {evil}, .notes = {evil}};
  auto& gate = *report.gate;
  gate.manifest = gate.normalizer = gate.verdict = evil;
  gate.modes[0].name = gate.modes[0].groups[0].name = evil;
  gate.modes[0].worse = gate.modes[0].better = {evil};
  gate.back_off = {{{evil}, 0.5, false, 12}};
  const auto html = to_html(report);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  expect_balanced(html);
}

TEST(ReportHtml, TheVerdictIsTheGates) {
  auto report = large_report();
  EXPECT_THAT(to_html(report), HasSubstr("class=\"verdict failed\"><p><b>Refused</b>"));
  report.gate->passed = true;
  EXPECT_THAT(to_html(report), HasSubstr("class=\"verdict passed\"><p><b>Passed</b>"));
  report.gate.reset();
  EXPECT_THAT(to_html(report), HasSubstr("Not judged."));
  report.unmet = "The budget bytes=1M can not be met.";
  EXPECT_THAT(to_html(report), HasSubstr("class=\"verdict failed\"><b>Refused.</b> The budget bytes=1M"));
  EXPECT_THAT(to_text(report), HasSubstr("The budget bytes=1M"));
}

TEST(ReportHtml, SectionsWithoutNumbersAreLeftOut) {
  auto report = report_of({layer("a", 20)});
  EXPECT_THAT(to_html(report), Not(HasSubstr("Milliseconds by layer")));
  report.layers[0].ms_before = 2;
  EXPECT_THAT(to_html(report), HasSubstr("Milliseconds by layer"));
  report.layers[0] = skipped("a", "r");
  const auto html = to_html(report);
  for (const auto* title :
       {"Word error", "Error by layer", "Ranges of the inputs", "Bytes by layer", "Calibration"}) {
    EXPECT_THAT(html, Not(HasSubstr("<h2>" + std::string(title)))) << title;
  }
  EXPECT_THAT(html, HasSubstr("<h2>Kept at full precision"));
}

TEST(ReportHtml, ColumnsOfWhatWasNotMeasuredAreLeftOut) {
  auto report = report_of({layer("a", 20), layer("b", 30)});
  EXPECT_THAT(to_html(report), AllOf(HasSubstr("cumulative"), Not(HasSubstr("effect on output"))));
  report.layers[1].effect = 0.5;
  EXPECT_THAT(to_html(report), HasSubstr("effect on output"));
  EXPECT_THAT(analysis_text(report), HasSubstr("cumulative"));
  for (auto& entry : report.layers) entry.cumulative.reset(), entry.effect.reset();
  EXPECT_THAT(to_html(report), AllOf(Not(HasSubstr(">cumulative<")), Not(HasSubstr("effect on output")),
                                     Not(HasSubstr("everything before"))));
  EXPECT_THAT(analysis_text(report), AllOf(Not(HasSubstr("cumulative")), Not(HasSubstr("effect"))));
}

TEST(ReportHtml, TextsThatLookWrongMoreOftenAreInTheSummary) {
  auto report = large_report();
  report.gate->modes[0].full.repeating = 2;
  report.gate->modes[0].quantized.repeating = 2;
  EXPECT_THAT(to_html(report), Not(HasSubstr("more texts look wrong")));
  report.gate->modes[0].quantized.repeating = 3;
  EXPECT_THAT(to_html(report), HasSubstr("offline: more texts look wrong"));
}

}  // namespace
}  // namespace oasr::quantize

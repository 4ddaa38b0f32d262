#include <gmock/gmock.h>

#include "quantize/report_parts.h"
#include "quantize/report_testing.h"

namespace oasr::quantize {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReportPlots, HaveAColumnALayerAndStayInside) {
  auto report = large_report();
  const auto quantized = quantized_layers(report).size();
  for (auto& entry : report.layers) entry.ms_after = 1;
  for (const auto& svg : {error_plot(report, 8), bytes_plot(report), time_plot(report)}) {
    EXPECT_EQ(count_of(svg, "<title>"), quantized);
    expect_inside(svg);
  }
  EXPECT_EQ(count_of(range_plots(report), "<title>"), 2 * quantized);
  EXPECT_EQ(count_of(error_plot(report, 8), "class=\"worst\""), 8);
  // Each block's number, and the stage once.
  EXPECT_THAT(error_plot(report, 8),
              AllOf(HasSubstr(">29</text>"), HasSubstr(">decoder.left_decoder.decoders</text>")));
}

TEST(ReportPlots, ExactAndEqualLayersAreDrawn) {
  for (const double snr : {kExact, 20.0, -300.0}) {
    auto report = report_of({layer("a", snr), layer("b", snr)});
    for (auto& entry : report.layers) entry.cumulative->snr_db = snr;
    for (auto& entry : report.layers) entry.channel_amax = entry.channel_amax_smoothed = {1e-44F};
    const auto svg = error_plot(report, 1);
    EXPECT_EQ(count_of(svg, "<title>"), 2);
    expect_inside(svg);
    expect_inside(range_plots(report));
  }
}

TEST(ReportPlots, ABarFarAboveAllOthersLeavesThemTheirHeight) {
  auto report = report_of({layer("a", 20), layer("b", 20), layer("c", 20), layer("d", 20)});
  for (auto& entry : report.layers) entry.ms_before = 1, entry.ms_after = 0.5;
  EXPECT_THAT(time_plot(report), Not(HasSubstr("beyond")));
  report.layers[2].ms_before = 90, report.layers[2].ms_after = 70;
  const auto svg = time_plot(report);
  expect_inside(svg);
  // The axis ends at 1.5: bars of half a millisecond have a third of it.
  EXPECT_THAT(svg, AllOf(HasSubstr(">1.5</text>"), HasSubstr("height=\"56.7\"")));
  EXPECT_THAT(svg, HasSubstr("class=\"beyond\""));
  EXPECT_EQ(count_of(svg, "before 90 ms, after 70 ms"), 2);
}

TEST(ReportPlots, ABarThatGrewDoesNotHideTheOneBefore) {
  auto report = report_of({layer("a", 20), layer("b", 20)});
  report.layers[0].ms_before = 2, report.layers[0].ms_after = 1;
  report.layers[1].ms_before = 1, report.layers[1].ms_after = 2;
  const auto svg = time_plot(report);
  std::vector<std::string> kinds;  // the later lies in front
  for (std::size_t at = 0; (at = svg.find("class=\"", at)) != svg.npos;) {
    at += 7;
    const auto kind = svg.substr(at, svg.find('"', at) - at);
    if (kind == "before" || kind == "after") kinds.push_back(kind);
  }
  EXPECT_THAT(kinds, ::testing::ElementsAre("before", "after", "after", "before"));
}

TEST(ReportPlots, StagesAreNamedByTheLastPartsThatFit) {
  std::vector<LayerEntry> layers;
  for (int i = 0; i < 90; ++i) layers.push_back(layer("encoder.layers." + std::to_string(i / 30) + ".w", 20));
  for (int i = 0; i < 18; ++i) layers.push_back(layer("decoder.left_decoder.layers." + std::to_string(i / 6) + ".w", 20));
  EXPECT_THAT(error_plot(report_of(layers), 1),
              AllOf(HasSubstr(">encoder.layers</text>"), HasSubstr(">left_decoder.layers</text>")));
}

TEST(ReportPlots, WideIntervalsEndAtTheEdge) {
  GateMode mode{.name = "offline",
                .groups = {difference("all", 40, 41, 0.2)},
                .full = {},
                .quantized = {},
                .worse = {},
                .better = {}};
  const auto alone = gate_plot(mode, 0.1);
  expect_inside(alone);
  mode.groups.push_back(difference("small", 0, 1000, 50));
  mode.groups.push_back(difference("other", 1000, 0, 50));
  const auto both = gate_plot(mode, 0.1);
  expect_inside(both);
  EXPECT_THAT(both, HasSubstr("difference +100.00 points [50.00, 150.00]"));
  // The panel of differences spans -1.2 … 1.2 with margins: its ticks are tenths, not tens.
  EXPECT_THAT(both, HasSubstr(">0.5</text>"));
  for (const double limit : {0.0, 5.0}) {
    mode.groups = {difference("all", 40, 40, 0)};
    expect_inside(gate_plot(mode, limit));
  }
}

TEST(ReportPlots, AGroupWithoutWordsHasNoDots) {
  EvalDifference silent;
  silent.name = "silence";
  const GateMode mode{.name = "offline",
                      .groups = {silent},
                      .full = {},
                      .quantized = {},
                      .worse = {},
                      .better = {}};
  EXPECT_EQ(count_of(gate_plot(mode, 0.1), "<circle"), 0);
}

}  // namespace
}  // namespace oasr::quantize

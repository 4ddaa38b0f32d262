// Reports for tests, and what every page and plot must be.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "quantize/report.h"

namespace oasr::quantize {

inline constexpr double kExact = std::numeric_limits<double>::infinity();

inline EvalDifference difference(const std::string& name, std::int64_t full, std::int64_t quantized,
                          double half_width) {
  EvalDifference group;
  group.name = name;
  group.utterances = 20;
  group.a = {.reference = 1000, .substitutions = full};
  group.b = {.reference = 1000, .substitutions = quantized};
  group.difference = static_cast<double>(quantized - full) / 10;
  group.low = *group.difference - half_width;
  group.high = *group.difference + half_width;
  group.p = 0.25;
  return group;
}

inline LayerEntry layer(const std::string& path, double snr_db) {
  LayerEntry layer;
  layer.path = path;
  layer.kind = "linear";
  layer.scheme = "int8_w8a8";
  layer.in_features = 4;
  layer.out_features = 8;
  layer.bytes_before = 4 << 20;
  layer.bytes_after = 1 << 20;
  layer.channel_amax = {1, 1, 2, 64};
  layer.channel_amax_smoothed = {1, 1, 2, 8};
  layer.alone = ErrorReport{.snr_db = snr_db, .cosine = 0.5};
  layer.cumulative = ErrorReport{.snr_db = snr_db - 1, .cosine = 0.25};
  return layer;
}

inline LayerEntry skipped(const std::string& path, const std::string& reason) {
  LayerEntry layer;
  layer.path = path;
  layer.kind = "linear";
  layer.reason = reason;
  return layer;
}

inline Report report_of(std::vector<LayerEntry> layers) {
  Report report;
  report.source = "full";
  report.destination = "int8";
  report.architecture = "Toy";
  report.tool = "oasr 0.1.0";
  report.recipe = "smoothquant_w8a8";
  report.options = {{"smoothquant.alpha", "0.5"}};
  report.layers = std::move(layers);
  report.bytes_before = 100 << 20;
  report.bytes_after = 40 << 20;
  return report;
}

// A Conformer's worth of layers, with long names.
inline Report large_report() {
  std::vector<LayerEntry> layers;
  for (int block = 0; block < 30; ++block) {
    for (const auto* name : {"self_attn.linear_qkv", "self_attn.linear_out", "feed_forward.w_1",
                             "feed_forward.w_2", "conv_module.pointwise_conv1"}) {
      layers.push_back(layer("decoder.left_decoder.decoders." + std::to_string(block) + "." + name,
                             20 + (block * 7 + static_cast<int>(layers.size()) * 3) % 31));
      layers.back().cause = "channel 3 is 64 x the median channel";
      layers.push_back(
          skipped(layers.back().path + ".table", "reason " + std::to_string(block % 9)));
    }
  }
  auto report = report_of(std::move(layers));
  report.options["algorithms"] = "smoothquant, static_inputs, static_conv_inputs, rtn";
  report.options["static_inputs.observer"] = report.options["static_conv_inputs.observer"] = "mse";
  report.calibration = CalibrationReport{};
  report.calibration->manifest = "a/rather/long/folder/of/some/data/set/dev-clean/manifest.jsonl";
  report.proof = FoldProof{.utterances = 8, .values = 123456, .greatest_difference = 1.5e-5};
  GateReport gate;
  gate.limit = 0.1;
  gate.modes.push_back(
      {.name = "offline",
       .groups = {difference("all", 40, 41, 0.2), difference("20 s and more", 4, 5, 9)},
       .full = {},
       .quantized = {},
       .worse = {"w"},
       .better = {}});
  report.gate = gate;
  return report;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Every element that is opened is closed, in order.
inline void expect_balanced(const std::string& html) {
  static const std::regex kTag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
  std::vector<std::string> open;
  for (std::sregex_iterator at(html.begin(), html.end(), kTag), end; at != end; ++at) {
    const std::string name = (*at)[2];
    if ((*at)[3].length() > 0 || name == "meta") continue;
    if ((*at)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name) << html.substr(static_cast<std::size_t>(at->position()), 80);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

// Every coordinate of a plot is a number, and lies in it.
inline void expect_inside(const std::string& svg) {
  static const std::regex kSize("viewBox=\"0 0 ([0-9]+) ([0-9]+)\"");
  static const std::regex kPlace(" (x|x1|x2|cx|y|y1|y2|cy)=\"([^\"]*)\"");
  std::smatch size;
  ASSERT_TRUE(std::regex_search(svg, size, kSize));
  for (std::sregex_iterator at(svg.begin(), svg.end(), kPlace), end; at != end; ++at) {
    const bool is_x = (*at)[1].str().find('x') != std::string::npos;
    const double value = std::stod((*at)[2]);
    EXPECT_GE(value, 0) << (*at)[0];
    EXPECT_LE(value, std::stod(size[is_x ? 1 : 2])) << (*at)[0];
  }
}

}  // namespace oasr::quantize

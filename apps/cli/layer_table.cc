#include "cli/layer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace oasr::cli {
namespace {

using Json = nlohmann::ordered_json;

// What both tables have, the peak in 10⁹ operations a second (0: not known).
Json common_row(const LayerTime& time, double peak) {
  Json row = {{"layer", time.layer},
              {"scheme", time.scheme},
              {"kernel", time.kernel},
              {"calls", time.calls},
              {"rows", time.rows},
              {"milliseconds", 1e3 * time.seconds},
              {"gops", nullptr},
              {"peak_percent", nullptr}};
  if (time.operations <= 0 || time.seconds <= 0) return row;
  const double gops = time.operations / time.seconds / 1e9;
  row["gops"] = gops;
  if (peak > 0) row["peak_percent"] = 100 * gops / peak;
  return row;
}

std::string number(const Json& value, const char* format) {
  return value.is_null() ? "-" : fmt::format(fmt::runtime(format), value.get<double>());
}

std::string gpu_columns(const Json& row) {
  return fmt::format(" {:>7} {:>7} {:>6} {:<10}", row["kernels"].get<std::int64_t>(), number(row["gbs"], "{:.0f}"),
                     number(row["roof_percent"], "{:.0f} %"),
                     row["bound"].is_null() ? "-" : row["bound"].get_ref<const std::string&>());
}

// How a GPU's layers were timed.
std::string gpu_notes(const Json& report) {
  const double mark = report["ceilings"]["mark_us"].get<double>();
  const bool graphs = report["model"]["graphs"].get<bool>();
  return fmt::format(
      "\nms: the GPU's own time from mark to mark. {} A mark takes {:.1f} us by itself, and no kernel takes its place\n"
      "before the layer in front of it has ended, as it does otherwise in a decoder's step: such a pass takes longer than above.\n"
      "roof: share of what copies of {:.0f} GB/s and products of registers allow, both measured now.\n",
      graphs ? "The kernels of a section and the marks start together, as a graph that is not kept."
             : "OASR_GPU_GRAPHS=0: kernels start one by one, and a layer may wait for the processor.",
      mark, report["ceilings"]["copy_gbs"].get<double>());
}

}  // namespace

Json layer_table(const std::vector<LayerTime>& times, int threads) {
  std::map<std::string, double> peaks;
  auto rows = Json::array();
  for (const auto& time : times) {
    auto known = peaks.find(time.kernel);
    if (known == peaks.end()) known = peaks.emplace(time.kernel, kernel_peak_gops(time.kernel)).first;
    rows.push_back(common_row(time, known->second * threads));
  }
  return rows;
}

Json layer_table(const std::vector<LayerTime>& times, const Ceilings& ceilings) {
  auto rows = Json::array();
  for (const auto& time : times) {
    Json& row = rows.emplace_back(common_row(time, ceilings.gops(time.operands)));
    row["kernels"] = time.kernels;
    row["gbs"] = row["roof_percent"] = row["bound"] = nullptr;
    if (time.bytes <= 0 || time.seconds <= 0) continue;
    const Roof roof = roof_of(ceilings, time.operands, time.operations, time.bytes);
    row["gbs"] = 1e-9 * time.bytes / time.seconds;
    row["roof_percent"] = 100 * roof.seconds / time.seconds;
    row["bound"] = roof.memory ? "bytes" : "operations";
  }
  return rows;
}

std::string layer_table_text(const Json& report) {
  const Json& rows = report["layers"];
  const bool gpu = report.contains("ceilings");
  std::size_t width = 5;
  double total = 0;
  for (const auto& row : rows) {
    width = std::max(width, row["layer"].get_ref<const std::string&>().size());
    total += row["milliseconds"].get<double>();
  }
  auto text = fmt::format("{:<{}}  {:<24} {:>6} {:>8} {:>9} {:>8} {:>6}", "layer", width, "kernel", "calls", "rows", "ms",
                          "GOPS", "peak");
  if (gpu) text += fmt::format(" {:>7} {:>7} {:>6} {:<10}", "kernels", "GB/s", "roof", "bound by");
  for (const auto& row : rows) {
    const auto& kernel = row["kernel"].get_ref<const std::string&>();
    text += fmt::format("\n{:<{}}  {:<24} {:>6} {:>8} {:>9.2f} {:>8} {:>6}", row["layer"].get_ref<const std::string&>(),
                        width, kernel.empty() ? "-" : kernel, row["calls"].get<std::int64_t>(),
                        row["rows"].get<std::int64_t>(), row["milliseconds"].get<double>(), number(row["gops"], "{:.0f}"),
                        number(row["peak_percent"], "{:.0f} %"));
    if (gpu) text += gpu_columns(row);
  }
  text += fmt::format("\n{:<{}}  {:<24} {:>6} {:>8} {:>9.2f}\n", "all of these", width, "", "", "", total);
  return gpu ? text + gpu_notes(report) : text;
}

}  // namespace oasr::cli

#include "cli/layer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace oasr::cli {

nlohmann::ordered_json layer_table(const std::vector<LayerTime>& times, int threads) {
  std::map<std::string, double> peaks;
  auto rows = nlohmann::ordered_json::array();
  for (const auto& time : times) {
    nlohmann::ordered_json row = {{"layer", time.layer},
                                  {"scheme", time.scheme},
                                  {"kernel", time.kernel},
                                  {"calls", time.calls},
                                  {"rows", time.rows},
                                  {"milliseconds", 1e3 * time.seconds},
                                  {"gops", nullptr},
                                  {"peak_percent", nullptr}};
    if (time.operations > 0 && time.seconds > 0) {
      const double gops = time.operations / time.seconds / 1e9;
      row["gops"] = gops;
      auto known = peaks.find(time.kernel);
      if (known == peaks.end()) known = peaks.emplace(time.kernel, kernel_peak_gops(time.kernel)).first;
      if (known->second > 0) row["peak_percent"] = 100 * gops / (known->second * threads);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string layer_table_text(const nlohmann::ordered_json& rows) {
  std::size_t width = 5;
  double total = 0;
  for (const auto& row : rows) {
    width = std::max(width, row["layer"].get_ref<const std::string&>().size());
    total += row["milliseconds"].get<double>();
  }
  auto text = fmt::format("{:<{}}  {:<24} {:>6} {:>8} {:>9} {:>8} {:>6}\n", "layer", width, "kernel",
                          "calls", "rows", "ms", "GOPS", "peak");
  for (const auto& row : rows) {
    const auto& kernel = row["kernel"].get_ref<const std::string&>();
    text += fmt::format("{:<{}}  {:<24} {:>6} {:>8} {:>9.2f} {:>8} {:>6}\n",
                        row["layer"].get_ref<const std::string&>(), width, kernel.empty() ? "-" : kernel,
                        row["calls"].get<std::int64_t>(), row["rows"].get<std::int64_t>(),
                        row["milliseconds"].get<double>(),
                        row["gops"].is_null() ? "-" : fmt::format("{:.0f}", row["gops"].get<double>()),
                        row["peak_percent"].is_null()
                            ? "-" : fmt::format("{:.0f} %", row["peak_percent"].get<double>()));
  }
  return text + fmt::format("{:<{}}  {:<24} {:>6} {:>8} {:>9.2f}\n", "all of these", width, "", "", "", total);
}

}  // namespace oasr::cli

#include "cli/kernel_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "oasr/version.h"

namespace oasr::cli {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json or_null(double value) { return value > 0 ? Json(value) : Json(); }

Json device_json(const KernelBenchReport& report) {
  Json device = {{"kind", report.device}, {"name", report.name}};
  if (report.device == "cpu") {
    device["isa"] = report.isa;
    device["threads"] = report.threads;
  } else {
    device["compute_capability"] = report.compute_capability;
    device["multiprocessors"] = report.multiprocessors;
    device["most_clock_mhz"] = report.clock_mhz;
    device["most_memory_clock_mhz"] = report.memory_clock_mhz;
    device["driver"] = or_null(report.driver);
    device["driver_cuda"] = or_null(report.driver_cuda);
    device["runtime_cuda"] = or_null(report.runtime);
    device["cublaslt"] = or_null(report.cublaslt);
    device["no_cublaslt_because"] = or_null(report.no_cublaslt);
  }
  device["memory_bytes"] = report.memory_bytes;
  return device;
}

// 10⁹ a second.
double rate(double count, const KernelTime& time) { return time.median_us > 0 ? 1e-3 * count / time.median_us : 0; }

double roof_percent(const KernelTime& time) { return time.median_us > 0 ? 100 * time.roof_us / time.median_us : 0; }

const char* bound(const KernelTime& time) { return time.memory_bound ? "bytes" : "operations"; }

Json time_json(const KernelTime& time) {
  Json row = {{"op", time.op}, {"m", time.shape.m}};
  if (time.shape.n > 0) row["n"] = time.shape.n;
  row["k"] = time.shape.k;
  row["kernel"] = time.kernel;
  row["chosen"] = time.chosen;
  if (!time.missing.empty()) {
    row["missing_because"] = time.missing;
    return row;
  }
  row["rounds"] = time.rounds;
  row["calls_a_round"] = time.calls;
  row["sets_of_memory"] = time.sets;
  row["median_us"] = time.median_us;
  row["min_us"] = time.min_us;
  row["max_us"] = time.max_us;
  row["gops"] = or_null(rate(time.operations, time));
  row["gbs"] = or_null(rate(time.bytes, time));
  row["roof_percent"] = or_null(roof_percent(time));
  row["bound"] = time.roof_us > 0 ? Json(bound(time)) : Json();
  row["to_cublaslt_int8"] = or_null(time.to_cublaslt_int8);
  return row;
}

std::string shape_text(const KernelTime& time) {
  const KernelShape& s = time.shape;
  return s.n > 0 ? fmt::format("{} x {} x {}", s.m, s.n, s.k) : fmt::format("{} x {}", s.m, s.k);
}

// Speeds of processors are shown in 10⁹ operations a second, those of GPUs in 10¹².
std::string speed_text(const KernelTime& time, bool gpu) {
  if (time.operations <= 0) return "-";
  const double gops = rate(time.operations, time);
  return gpu ? fmt::format("{:.1f}", 1e-3 * gops) : fmt::format("{:.1f}", gops);
}

std::string time_text(const KernelTime& time, std::size_t width, bool gpu) {
  const std::string head = fmt::format("  {:<{}} {}", time.kernel, width, time.chosen ? "*" : " ");
  if (!time.missing.empty()) return head + "  -  " + time.missing + "\n";
  return head + fmt::format("{:>10.2f} {:>10.2f} {:>9} {:>9.0f} {:>6} {:<10} {:>5}\n", time.median_us, time.min_us, speed_text(time, gpu),
                            rate(time.bytes, time), time.roof_us > 0 ? fmt::format("{:.0f} %", roof_percent(time)) : "-",
                            time.roof_us > 0 ? bound(time) : "-",
                            time.to_cublaslt_int8 > 0 ? fmt::format("{:.2f}", time.to_cublaslt_int8) : "-");
}

// "copy 4270 GB/s, int8 1979.0 TOP/s, …"
std::string ceilings_text(const Ceilings& ceilings, bool gpu) {
  std::string text = fmt::format("copy {:.0f} GB/s", ceilings.copy_gbs);
  for (const auto& row : ceilings.operands) {
    if (row.gops <= 0) continue;
    text += gpu ? fmt::format(", {} {:.1f} TOP/s", row.name, 1e-3 * row.gops)
                : fmt::format(", {} {:.1f} GOPS", row.name, row.gops);
  }
  return text;
}

std::string head_text(const KernelBenchReport& report) {
  if (report.device == "cpu") return fmt::format("{}, {} threads, {}\n", report.name, report.threads, report.isa);
  std::string text = fmt::format("{}, driver {}, CUDA {}\n", report.name,
                                 report.driver.empty() ? "unknown" : report.driver, report.runtime);
  return text + (report.cublaslt.empty() ? "cuBLASLt is not there: " + report.no_cublaslt
                                         : "cuBLASLt " + report.cublaslt) + "\n";
}

}  // namespace

Json ceilings_json(const Ceilings& ceilings, bool gpu) {
  Json gops = Json::object();
  for (const auto& row : ceilings.operands) gops[row.name] = or_null(row.gops);
  Json json = {{"copy_gbs", ceilings.copy_gbs}, {"gops", std::move(gops)}};
  if (gpu) json["mark_us"] = ceilings.mark_us;
  return json;
}

Json kernel_report_json(const KernelBenchReport& report, const std::string& date, const std::string& commit) {
  Json rows = Json::array();
  for (const KernelTime& time : report.times) rows.push_back(time_json(time));
  return {{"oasr", version()},
          {"commit", or_null(commit)},
          {"date", date},
          {"method", report.method},
          {"device", device_json(report)},
          {"ceilings", ceilings_json(report.ceilings, report.device != "cpu")},
          {"kernels", std::move(rows)}};
}

std::string kernel_report_text(const KernelBenchReport& report) {
  const bool gpu = report.device != "cpu";
  std::string text = head_text(report) + "ceilings: " + ceilings_text(report.ceilings, gpu) + "\n";
  std::size_t width = 6;
  for (const KernelTime& time : report.times) width = std::max(width, time.kernel.size());
  std::string shape;
  for (const KernelTime& time : report.times) {
    if (const std::string now = time.op + " " + shape_text(time); now != shape) {
      shape = now;
      text += fmt::format("\n{:<{}}  {:>10} {:>10} {:>9} {:>9} {:>6} {:<10} {:>5}\n", shape, width + 3, "median us", "min us",
                          gpu ? "TOP/s" : "GOPS", "GB/s", "roof", "bound by", "x int8");
    }
    text += time_text(time, width, gpu);
  }
  text += "\n* what the operation runs by itself; roof: share of what the ceilings allow";
  if (gpu) text += "; x int8: speed beside\ncuBLASLt's int8 product without an epilogue";
  return text + ".\n" + report.method + "\n";
}

std::string kernel_report_name(const KernelBenchReport& report) {
  std::string name = "kernels-";
  for (const char c : report.name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (name.back() != '-') {
      name += '-';
    }
  }
  while (name.back() == '-') name.pop_back();
  return name + ".json";
}

}  // namespace oasr::cli

#include "cli/bench_parts.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

namespace oasr::cli {
namespace {

double wall_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_now() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// "float16 weights", "int8_w8a8 (66 layers), float16 elsewhere"; ", float16 arithmetic" where it is not float32.
std::string weights_text(const nlohmann::ordered_json& model) {
  const auto dtype = model["weights"].get<std::string>();
  const auto schemes = model["schemes"].get<std::vector<std::string>>();
  const auto arithmetic = model["arithmetic"].get<std::string>();
  const std::string last = arithmetic.substr(arithmetic.rfind(' ') + 1);  // "int8 (60 layers) and float16"
  const std::string in = last == "float32" ? "" : ", " + last + " arithmetic";
  if (schemes.empty()) return dtype + " weights" + in;
  return fmt::format("{} ({} layers), {} elsewhere{}", fmt::join(schemes, " and "),
                     model["quantized_layers"].get<int>(), dtype, in);
}

}  // namespace

Clock::Clock() : wall_start_(wall_now()), cpu_start_(cpu_now()) {}
double Clock::wall() const { return wall_now() - wall_start_; }
double Clock::cpu() const { return cpu_now() - cpu_start_; }

double peak_mib() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

Launches launches_between(const Launches& after, const Launches& before) {
  return {.kernels = after.kernels - before.kernels,
          .graphs = after.graphs - before.graphs,
          .alone = after.alone - before.alone};
}

namespace {

nlohmann::ordered_json mean(const Launches& all, std::int64_t count) {
  const auto of = [count](std::int64_t value) { return static_cast<double>(value) / static_cast<double>(count); };
  return {{"kernels", of(all.kernels)}, {"graphs", of(all.graphs)}, {"alone", of(all.alone)}};
}

}  // namespace

nlohmann::ordered_json launches_json(const Timings& pass) {
  const Launches& all = pass.launches;
  nlohmann::ordered_json json = {{"kernels", all.kernels}, {"graphs", all.graphs}, {"alone", all.alone}};
  if (pass.windows > 0) json["window"] = mean(pass.encode_launches, pass.windows);
  if (pass.prompts > 0) json["prompt"] = mean(pass.prompt_launches, pass.prompts);
  if (pass.steps > 0) json["step"] = mean(pass.step_launches, pass.steps);
  return json;
}

std::string launches_text(const nlohmann::ordered_json& launches) {
  auto text = fmt::format("  launches {} kernels, {} starts as a graph, {} kernels alone\n", launches["kernels"].get<std::int64_t>(),
                          launches["graphs"].get<std::int64_t>(), launches["alone"].get<std::int64_t>());
  for (const char* part : {"window", "prompt", "step"}) {
    if (!launches.contains(part)) continue;
    const auto& row = launches[part];
    text += fmt::format("           a {:<6} {:.1f} kernels, {:.2f} starts as a graph, {:.1f} kernels alone\n", part,
                        row["kernels"].get<double>(), row["graphs"].get<double>(), row["alone"].get<double>());
  }
  return text;
}

namespace {

// "2 threads, avx2", or the GPU.
std::string device_text(const nlohmann::ordered_json& model) {
  const auto& device = model["device"].get_ref<const std::string&>();
  if (device != "cpu") return device;
  return fmt::format("{} threads, {}", model["threads"].get<int>(), model["isa"].get<std::string>());
}

}  // namespace

std::string bench_head(const nlohmann::ordered_json& report) {
  const auto& model = report["model"];
  return fmt::format(
      "model      {} {}, {}, {}\nload       {:.2f} s wall, {:.2f} s CPU\n"
      "peak       {:.0f} MiB\n",
      model["architecture"].get<std::string>(), model["size"].get<std::string>(), weights_text(model),
      device_text(model), report["load_seconds"].get<double>(),
      report["load_cpu_seconds"].get<double>(), report["peak_mib"].get<double>());
}

}  // namespace oasr::cli

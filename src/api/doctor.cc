#include "oasr/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "api/libraries.h"
#include "api/model_cache.h"
#include "base/env.h"
#include "base/fs.h"
#include "base/json.h"
#include "device/cpu.h"
#include "device/driver.h"
#include "device/gpu.h"
#include "device/gpu_graphs.h"
#include "device/kernel_gaps.h"
#include "kernels/scaled_mm/backend.h"
#include "layers/links.h"
#include "oasr/version.h"

namespace oasr {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr std::size_t kLowMemory = std::size_t{512} << 20;  // base needs about 300 MiB
constexpr std::uintmax_t kLowDisk = std::uintmax_t{500} << 20;

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string mib(double bytes) { return fmt::format("{:.0f} MiB", bytes / kMiB); }

// The report as it is written, one group after the other.
class Examination {
 public:
  DoctorReport report() && { return std::move(report_); }

  void processor(const CpuInfo& cpu) {
    const auto selected = selected_isa();
    std::string lanes;
    for (const auto& row : isa_names()) {
      if (isa_supported(row.value)) lanes += (lanes.empty() ? "" : " ") + std::string(row.name);
    }
    group("processor", {{"model", cpu.model},
                        {"features", cpu.features},
                        {"lanes", lanes},
                        {"lane in use", selected ? std::string(isa_name(*selected)) : selected.error().what},
                        {"caches", fmt::format("L1d {} KiB, L2 {} KiB, L3 {} KiB",
                                               cpu.l1d_bytes / 1024, cpu.l2_bytes / 1024,
                                               cpu.l3_bytes / 1024)}});
    if (!selected) {
      problem(selected.error().message(), "unset " + selected.error().where);
    } else if (*selected == Isa::reference) {
      remark("OASR_LAYERS_BACKEND runs the definitions of all ops, many times slower than lanes",
             "unset OASR_LAYERS_BACKEND");
    } else if (*selected < detected_isa()) {
      remark("OASR_ISA lowers the instruction set", "unset OASR_ISA for full speed");
    } else if (*selected == Isa::scalar) {
      problem("this processor has no AVX2 with FMA: only the scalar lanes run, many times slower",
              "use a processor with AVX2");
    }
  }

  void threads(const CpuInfo& cpu) {
    const auto count = thread_count(0);
    group("threads",
          {{"cores", std::to_string(cpu.online_cores)},
           {"cgroup quota", cpu.cgroup_quota > 0 ? fmt::format("{:.2f} cores", cpu.cgroup_quota)
                                                 : std::string("none")},
           {"threads in use", count ? std::to_string(*count) : count.error().what}});
    if (!count) {
      problem(count.error().message(), "unset OASR_THREADS");
    } else if (cpu.cgroup_quota > 0 && *count > cpu.cgroup_quota + 1) {
      problem(fmt::format("{} threads share a quota of {:.2f} cores", *count, cpu.cgroup_quota),
              "unset OASR_THREADS, or raise the container's quota");
    } else if (*count > cpu.online_cores) {
      problem(fmt::format("{} threads on {} cores", *count, cpu.online_cores),
              "unset OASR_THREADS");
    }
  }

  void memory(const CpuInfo& cpu) {
    group("memory", {{"available to this process", mib(static_cast<double>(cpu.memory_bytes))}});
    if (cpu.memory_bytes < kLowMemory) {
      problem("less than 512 MiB of memory", "use a tiny model, or raise the container's limit");
    }
  }

  void libraries() {
    Rows rows = {{"oasr", version()}};
    for (auto& row : library_versions()) rows.push_back(std::move(row));
    group("versions", std::move(rows));
    gpus();
  }

  void gpus() {
    const GpuReport report = gpu_report();
    const auto unusable = unusable_driver();
    Rows rows;
    if (report.built) {
      rows = {{"CUDA of this build", report.runtime + ", for sm_" + report.architectures},
              {"CUDA of the driver", !report.driver.empty() ? report.driver : unusable ? "unknown" : "no driver"}};
    }
    for (const GpuInfo& gpu : report.gpus) {
      rows.emplace_back(fmt::format("cuda:{}", gpu.index),
                        fmt::format("{}, sm_{}{}, {} multiprocessors, {}", gpu.name, gpu.major, gpu.minor,
                                    gpu.multiprocessors, mib(static_cast<double>(gpu.memory_bytes))));
      if (const auto opened = Gpu::open(gpu.index); !opened) problem(opened.error().message(), opened.error().remedy);
    }
    if (report.gpus.empty()) rows.emplace_back("devices", "none: " + report.problem);
    group("gpu", std::move(rows));
    judge_driver(report, unusable);
    group("gpu kernel gaps", kernel_gap_report(report.gpus));
  }

  void cache() {
    const auto cache = ModelCache::of_user();
    Rows rows = {{"folder", cache.root().string()}};
    std::error_code unknown, unreadable;
    const auto space = fs::space(existing_parent(cache.root()), unknown);
    if (!unknown) rows.emplace_back("free", mib(static_cast<double>(space.available)));
    for (const auto& item : fs::directory_iterator(cache.root() / "models", unreadable)) {
      const auto name = item.path().filename().string();
      const bool complete = cache.find(name).has_value();
      rows.emplace_back(name, complete ? mib(folder_bytes(item.path())) : "incomplete");
      if (!complete) problem("the cached model '" + name + "' is incomplete", "oasr pull " + name);
    }
    if (const auto bytes = folder_bytes(cache.root() / "partial"); bytes > 0) {
      rows.emplace_back("partial downloads", mib(bytes));
    }
    group("cache", std::move(rows));
    judge_cache(cache, unknown ? kLowDisk : space.available);
  }

  void environment() {
    Rows rows;
    for (const auto& variable : env_variables()) {
      if (const auto value = env(variable.name)) rows.emplace_back(variable.name, *value);
    }
    if (rows.empty()) rows.emplace_back("variables", "none is set");
    group("environment", std::move(rows));
    for (const auto& checked : {scaled_mm_backend(),
                                status_of(layers::quantization_fusion()), status_of(gpu_graphs())}) {
      if (!checked) problem(checked.error().where + ": " + checked.error().what, checked.error().remedy);
    }
  }

 private:
  template <class T>
  static Status status_of(Result<T> result) {
    if (result) return {};
    return unexpected(std::move(result).error());
  }

  // One that only the other device has is no problem where that device is.
  static Status scaled_mm_backend() {
    const Status on_cpu = status_of(kernels::selected_scaled_mm_backend());
    const bool on_gpu = kernels::selected_scaled_mm_backend(true).has_value() && !gpu_report().gpus.empty();
    return on_gpu ? Status{} : on_cpu;
  }

  void judge_driver(const GpuReport& report, const std::optional<Error>& unusable) {
    if (unusable) {
      problem(unusable->what, unusable->remedy);
    } else if (report.built && report.gpus.empty() && !report.driver.empty()) {
      remark(report.problem, "on a machine with a GPU: look at nvidia-smi and CUDA_VISIBLE_DEVICES");
    } else if (!report.built && driver_library().found) {
      remark("this machine has an NVIDIA driver, and oasr was built without CUDA", "to use a GPU: docs/building.md");
    }
  }

  static fs::path existing_parent(const fs::path& folder) {
    std::error_code failed;
    fs::path path = fs::absolute(folder, failed);
    while (!fs::exists(path, failed) && path.has_parent_path() && path != path.parent_path()) {
      path = path.parent_path();
    }
    return path;
  }

  static double folder_bytes(const fs::path& folder) {
    std::error_code failed;
    double bytes = 0;
    for (const auto& item : fs::recursive_directory_iterator(folder, failed)) {
      std::error_code unreadable;
      if (item.is_regular_file(unreadable)) {
        bytes += static_cast<double>(item.file_size(unreadable));
      }
    }
    return bytes;
  }

  void judge_cache(const ModelCache& cache, std::uintmax_t free_bytes) {
    const auto& name = builtin_catalogue().default_model;
    const bool cached = cache.find(name).has_value();
    const fs::path existing = existing_parent(cache.root());
    std::error_code failed;
    if (!fs::is_directory(existing, failed)) {
      problem("the cache folder can not be made: '" + existing.string() + "' is no folder",
              "set OASR_CACHE_DIR to a folder of yours");
    } else if (::access(existing.c_str(), W_OK | X_OK) != 0) {
      problem("the cache folder can not be written", "set OASR_CACHE_DIR to a folder of yours");
    }
    if (free_bytes < kLowDisk) {
      problem("less than 500 MiB are free on the cache's disk", "free some space");
    }
    const auto offline = env_flag("OASR_OFFLINE");
    if (!offline) problem(offline.error().where + ": " + offline.error().what, offline.error().remedy);
    if (!cached && offline && *offline) {
      problem("the default model is not in the cache, and OASR_OFFLINE forbids to pull it",
              "unset OASR_OFFLINE once and run: oasr pull " + name);
    } else if (!cached) {
      remark("the default model is not in the cache", "oasr pull " + name);
    }
  }

  void group(std::string name, Rows rows) {
    report_.groups.push_back({std::move(name), std::move(rows)});
  }
  void problem(std::string what, std::string remedy) {
    report_.findings.push_back({true, std::move(what), std::move(remedy)});
  }
  void remark(std::string what, std::string remedy) {
    report_.findings.push_back({false, std::move(what), std::move(remedy)});
  }

  DoctorReport report_;
};

}  // namespace

bool DoctorReport::healthy() const {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& f) { return f.problem; });
}

DoctorReport doctor() {
  const auto cpu = cpu_info();
  Examination examination;
  examination.processor(cpu);
  examination.threads(cpu);
  examination.memory(cpu);
  examination.libraries();
  examination.cache();
  examination.environment();
  return std::move(examination).report();
}

std::string to_json(const DoctorReport& report, int indent) {
  OrderedJson json;
  for (const auto& group : report.groups) {
    auto& rows = json[group.name] = OrderedJson::object();
    for (const auto& [name, value] : group.rows) rows[name] = value;
  }
  json["findings"] = OrderedJson::array();
  for (const auto& finding : report.findings) {
    json["findings"].push_back(
        {{"problem", finding.problem}, {"what", finding.what}, {"remedy", finding.remedy}});
  }
  json["healthy"] = report.healthy();
  return dump_json(json, indent) + "\n";
}

}  // namespace oasr

#include <fmt/format.h>

#include <algorithm>

#include "api/device.h"
#include "api/guard.h"
#include "api/kernel_bench/ceilings.h"
#include "api/kernel_bench/problem.h"
#include "api/kernel_bench/run.h"
#include "base/fs.h"
#include "device/cpu.h"

namespace oasr {

using kernel_bench::Op;
using kernel_bench::Place;

namespace {

constexpr std::int64_t kMostOfM = std::int64_t{1} << 24, kMostOfN = std::int64_t{1} << 20;
constexpr const char* kCublasLtInt8 = "cublaslt int8";

std::string text_of(const KernelShape& s) {
  return s.n != 0 ? fmt::format("{}x{}x{}", s.m, s.n, s.k) : fmt::format("{}x{}", s.m, s.k);
}

std::string names_of_ops() {
  std::string names;
  for (const Op& op : kernel_bench::ops()) names += (names.empty() ? "" : ", ") + op.info.name;
  return names;
}

Result<std::vector<const Op*>> chosen_ops(const std::vector<std::string>& names) {
  std::vector<const Op*> ops;
  for (const std::string& name : names) {
    ops.push_back(kernel_bench::find_op(name));
    if (ops.back() == nullptr) {
      return unexpected(ErrorCode::invalid_argument, "'" + name + "' is not an operation that can be measured", "op",
                        "use " + names_of_ops());
    }
  }
  if (names.empty()) {
    for (const Op& op : kernel_bench::ops()) ops.push_back(&op);
  }
  return ops;
}

Status check_shape(const Op& op, const KernelShape& s) {
  const auto bad = [&](const std::string& what, const std::string& remedy) {
    return unexpected(ErrorCode::invalid_argument, fmt::format("{} of {}: {}", op.info.name, text_of(s), what),
                      "shapes", remedy);
  };
  if (op.info.product != (s.n != 0)) {
    return bad(op.info.product ? "a product has three extents" : "rows have two extents",
               op.info.product ? "give MxNxK" : "give MxK: rows and columns");
  }
  if (s.m < 1 || s.k < 1 || s.n < 0) return bad("extents are at least 1", "give larger ones");
  if (s.m > kMostOfM || s.n > kMostOfN || s.k > op.most_k) {
    return bad(fmt::format("M is at most {}, N {} and K {}", kMostOfM, kMostOfN, op.most_k), "give smaller ones");
  }
  return {};
}

// An operation of one shape.
struct Task {
  const Op* op;
  KernelShape shape;
};

Result<std::vector<Task>> tasks_of(const KernelBenchOptions& options, const Place& place) {
  std::vector<Task> tasks;
  for (const Op* op : TRY(chosen_ops(options.ops))) {
    const auto& own = place.gpu != nullptr ? op->gpu_shapes : op->info.shapes;
    for (const KernelShape& shape : options.shapes.empty() ? own : options.shapes) {
      TRY(check_shape(*op, shape));
      tasks.push_back({op, shape});
    }
  }
  return tasks;
}

// Refuses what does not fit before anything is reserved.
Status check_memory(const std::vector<Task>& tasks, const Place& place) {
  const auto mib = [](double bytes) { return bytes / (1 << 20); };
  const double there = place.gpu != nullptr ? static_cast<double>(place.gpu->free_bytes())
                                            : static_cast<double>(cpu_info().memory_bytes);
  for (const Task& task : tasks) {
    const double needed = task.op->bytes(place, task.shape);
    if (needed <= 0.8 * there) continue;
    return unexpected(ErrorCode::unsupported,
                      fmt::format("{} of {} takes {:.0f} MiB of memory, and of {:.0f} MiB four fifths can be used",
                                  task.op->info.name, text_of(task.shape), mib(needed), mib(there)),
                      "shapes", "give a smaller shape, or another device");
  }
  return {};
}

// "580.159.04" of the driver's own file: the first word of digits and dots.
std::string driver_version() {
  const auto text = read_text_file("/proc/driver/nvidia/version", 1 << 16);
  if (!text) return {};
  std::size_t at = 0;
  while (at < text->size()) {
    const std::size_t end = std::min(text->find_first_of(" \n\t", at), text->size());
    const std::string word = text->substr(at, end - at);
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
    at = end + 1;
  }
  return {};
}

void describe_gpu(const Gpu& gpu, KernelBenchReport& report) {
  const GpuInfo& info = gpu.info();
  const GpuReport all = gpu_report();
  report.device = "cuda";
  report.name = info.name;
  report.compute_capability = fmt::format("{}.{}", info.major, info.minor);
  report.multiprocessors = info.multiprocessors;
  report.clock_mhz = info.clock_mhz;
  report.memory_clock_mhz = info.memory_clock_mhz;
  report.memory_bytes = static_cast<std::int64_t>(info.memory_bytes);
  report.driver = driver_version();
  report.driver_cuda = all.driver;
  report.runtime = all.runtime;
}

void describe_host(const Place& place, KernelBenchReport& report) {
  const CpuInfo info = cpu_info();
  report.device = "cpu";
  report.name = info.model;
  report.isa = isa_name(place.isa);
  report.threads = place.pool->threads();
  report.memory_bytes = static_cast<std::int64_t>(info.memory_bytes);
}

std::string method_of(const Place& place, int rounds) {
  return fmt::format(
      "{} rounds, in each of which every kernel of a shape runs in turn, about a millisecond {}. Each call takes the next of "
      "sets_of_memory, so that weights of up to 256 rows do not stay in a cache. The first round does not count. Kernels of "
      "oasr gave the same bits before. A product has its scales, bias and float32 output{}.",
      rounds, place.gpu != nullptr ? "as a CUDA graph" : "on all threads",
      place.gpu != nullptr ? "; cuBLASLt has no epilogue" : "");
}

// Shares of roofs and of cuBLASLt, of one shape's kernels.
void relate(std::span<KernelTime> times, const Ceilings& ceilings) {
  const auto base = std::ranges::find_if(times, [](const KernelTime& time) {
    return time.kernel == kCublasLtInt8 && time.rounds > 0;
  });
  for (KernelTime& time : times) {
    if (time.rounds == 0) continue;
    const bool bare = time.operations > 0 && ceilings.gops(time.ceiling) <= 0;  // a definition: no roof
    const Roof roof = bare ? Roof() : roof_of(ceilings, time.ceiling, time.operations, time.bytes);
    time.roof_us = 1e6 * roof.seconds;
    time.memory_bound = roof.memory;
    if (base != times.end()) time.to_cublaslt_int8 = base->median_us / time.median_us;
  }
}

Status measure(const std::vector<Task>& tasks, const Place& place, const KernelBenchOptions& options,
               KernelBenchReport& report) {
  for (const Task& task : tasks) {
    kernel_bench::Problem problem = task.op->make(place, task.shape);
    TRY(kernel_bench::run_rounds(problem, place, options.repeat, options.cancelled));
    const std::size_t first = report.times.size();
    for (kernel_bench::Case& c : problem.cases) report.times.push_back(std::move(c.time));
    relate(std::span(report.times).subspan(first), report.ceilings);
  }
  return {};
}

}  // namespace

const std::vector<KernelBenchOp>& kernel_bench_ops() {
  static const std::vector<KernelBenchOp> kOps = [] {
    std::vector<KernelBenchOp> rows;
    for (const Op& op : kernel_bench::ops()) rows.push_back(op.info);
    return rows;
  }();
  return kOps;
}

Result<KernelBenchReport> bench_kernels(const KernelBenchOptions& options) {
  return guarded([&]() -> Result<KernelBenchReport> {
    if (options.repeat < 1) {
      return unexpected(ErrorCode::invalid_argument, "at least one round is needed", "repeat");
    }
    TRY(chosen_ops(options.ops));
    const Device device = TRY(open_device(options.device));
    ThreadPool pool(TRY(thread_count(options.threads)));
    Place place{.pool = &pool, .isa = TRY(selected_isa()), .gpu = device.gpu.get()};
    KernelBenchReport report;
    std::unique_ptr<kernels::CublasLt> cublaslt;
    if (place.gpu != nullptr) {
      describe_gpu(*place.gpu, report);
      auto opened = kernels::CublasLt::open(*place.gpu);
      if (opened) {
        cublaslt = std::move(*opened);
        place.cublaslt = cublaslt.get();
        report.cublaslt = cublaslt->version();
      } else {
        place.no_cublaslt = report.no_cublaslt = opened.error().message();
      }
    } else {
      describe_host(place, report);
    }
    report.method = method_of(place, options.repeat);
    const auto tasks = TRY(tasks_of(options, place));
    TRY(check_memory(tasks, place));
    report.ceilings = place.gpu != nullptr ? kernel_bench::gpu_ceilings(*place.gpu)
                                           : kernel_bench::host_ceilings(pool, place.isa);
    TRY(measure(tasks, place, options, report));
    return report;
  });
}

}  // namespace oasr

#include "api/kernel_bench/run.h"

#include <chrono>
#include <cstring>
#include <map>
#include <optional>

#include "device/gpu_timing.h"

namespace oasr::kernel_bench {
namespace {

constexpr double kRoundMicroseconds = 1000;  // of one kernel, about
constexpr int kMostCalls = kMostSets;        // of a round

using Bytes = std::vector<std::byte>;

Bytes result_of(const Case& c, const Place& place) {
  Bytes all;
  for (const std::span<const std::byte> part : c.result) {
    const std::size_t at = all.size();
    all.resize(at + part.size());
    if (place.gpu != nullptr) {
      place.gpu->download(all.data() + at, part.data(), part.size());
    } else {
      std::memcpy(all.data() + at, part.data(), part.size());
    }
  }
  return all;
}

// The first calls, in which memory of kernels grows to its size; and whether the results are the same.
Status warm(Problem& problem, const Place& place) {
  struct First {
    std::string kernel;
    Bytes result;
  };
  std::map<std::string, First> groups;
  const int sets = place.gpu != nullptr ? problem.sets : 1;
  for (Case& c : problem.cases) {
    for (int set = sets - 1; set >= 0 && c.time.missing.empty(); --set) {
      if (const Status good = c.call(set); !good) c.time.missing = good.error().what;
    }
    if (!c.time.missing.empty() || c.group.empty()) continue;
    Bytes result = result_of(c, place);
    const auto [first, is_new] = groups.try_emplace(c.group, First{c.time.kernel, {}});
    if (is_new) {
      first->second.result = std::move(result);
    } else if (first->second.result != result) {
      return unexpected(ErrorCode::internal, "gives other bits than " + first->second.kernel, c.time.kernel,
                        "this is a bug in oasr: report it");
    }
  }
  return {};
}

// Microseconds of one call in a round.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual int calls() const = 0;
  virtual double run() = 0;
};

class HostTimer final : public Timer {
 public:
  HostTimer(const Case& c, int sets) : case_(c), sets_(sets) {
    const double once = time(1);
    calls_ = static_cast<int>(std::clamp(kRoundMicroseconds / std::max(once, 0.1), 1.0, double{kMostCalls}));
  }
  int calls() const override { return calls_; }
  double run() override { return time(calls_); }

 private:
  double time(int calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i, set_ = (set_ + 1) % sets_) static_cast<void>(case_.call(set_));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    return took.count() / calls;
  }

  const Case& case_;
  int sets_, set_ = 0, calls_ = 1;
};

class GpuTimer final : public Timer {
 public:
  GpuTimer(Gpu& gpu, const Case& c, int sets) {
    const auto call = [&](int i) { static_cast<void>(c.call(i % sets)); };
    const double once = GpuReplay(gpu, sets, call).run();
    const int turns = static_cast<int>(std::clamp(kRoundMicroseconds / std::max(once * sets, 1.0), 1.0,
                                                  static_cast<double>(std::max(1, kMostCalls / sets))));
    calls_ = turns * sets;
    replay_.emplace(gpu, calls_, call);
  }
  int calls() const override { return calls_; }
  double run() override { return replay_->run(); }

 private:
  int calls_ = 1;
  std::optional<GpuReplay> replay_;
};

// Null where the kernel can not be timed; `missing` then says why.
std::unique_ptr<Timer> timer_of(Case& c, const Problem& problem, const Place& place) {
  if (!c.time.missing.empty()) return nullptr;
  if (place.gpu == nullptr) return std::make_unique<HostTimer>(c, problem.sets);
  const auto leave_out = [&](const std::exception& error) {
    if (!c.group.empty()) throw;  // ours
    c.time.missing = error.what();
  };
  try {
    return std::make_unique<GpuTimer>(*place.gpu, c, problem.sets);
  } catch (const GpuError& error) {
    leave_out(error);
  } catch (const GpuOutOfMemory& error) {
    leave_out(error);
  }
  return nullptr;
}

void summarize(KernelTime& time, std::vector<double> us, int calls, int sets) {
  std::ranges::sort(us);
  time.rounds = static_cast<int>(us.size());
  time.calls = calls;
  time.sets = sets;
  time.min_us = us.front();
  time.max_us = us.back();
  const std::size_t half = us.size() / 2;
  time.median_us = us.size() % 2 == 1 ? us[half] : (us[half - 1] + us[half]) / 2;
}

}  // namespace

Status run_rounds(Problem& problem, const Place& place, int rounds, const std::function<bool()>& cancelled) {
  if (Status good = warm(problem, place); !good) return good;
  std::vector<std::unique_ptr<Timer>> timers;
  for (Case& c : problem.cases) timers.push_back(timer_of(c, problem, place));
  std::vector<std::vector<double>> times(timers.size());
  for (int round = -1; round < rounds; ++round) {  // the first does not count
    for (std::size_t i = 0; i < timers.size(); ++i) {
      if (cancelled && cancelled()) return unexpected(ErrorCode::cancelled, "stopped");
      if (timers[i] == nullptr) continue;
      const double us = timers[i]->run();
      if (round >= 0) times[i].push_back(us);
    }
  }
  for (std::size_t i = 0; i < timers.size(); ++i) {
    if (timers[i] != nullptr) summarize(problem.cases[i].time, std::move(times[i]), timers[i]->calls(), problem.sets);
  }
  return {};
}

}  // namespace oasr::kernel_bench

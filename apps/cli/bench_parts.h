// What the parts of `oasr bench` share: clocks, medians, the head of a report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "oasr/recognizer.h"

namespace oasr::cli {

// Wall and processor time since its making, seconds.
class Clock {
 public:
  Clock();
  double wall() const;
  double cpu() const;

 private:
  double wall_start_, cpu_start_;
};

// Peak resident memory of the process.
double peak_mib();

// Of at least one value.
double median(std::vector<double> values);
// The smallest value that at least `percent` of them do not exceed (nearest rank).
double percentile(std::vector<double> values, double percent);

Launches launches_between(const Launches& after, const Launches& before);
// Of a pass on a GPU: {"kernels", "graphs", "alone"} of all of it, and where they are known of an encoder's window
// ("window"), a prompt ("prompt") and a step of a decoder ("step"), on average.
nlohmann::ordered_json launches_json(const Timings& pass);
std::string launches_text(const nlohmann::ordered_json& launches);

// Model, load and peak memory of a report of `oasr bench`, as text.
std::string bench_head(const nlohmann::ordered_json& report);

}  // namespace oasr::cli

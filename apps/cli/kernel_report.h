// What `oasr bench kernels` shows and writes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "oasr/kernel_bench.h"

namespace oasr::cli {

// {copy_gbs, mark_us of a GPU, gops: {"int8": …}}
nlohmann::ordered_json ceilings_json(const Ceilings& ceilings, bool gpu);

// docs/performance.md has the keys. `date`: when the run began, in UTC; `commit`: empty where it is not known.
nlohmann::ordered_json kernel_report_json(const KernelBenchReport& report, const std::string& date,
                                          const std::string& commit);
std::string kernel_report_text(const KernelBenchReport& report);

// "kernels-nvidia-h200.json"
std::string kernel_report_name(const KernelBenchReport& report);

}  // namespace oasr::cli

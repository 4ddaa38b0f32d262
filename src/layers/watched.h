// Runs a layer's method and tells the observer of the run, if there is one.
#pragma once

#include <chrono>
#include <string_view>

#include "device/thread_pool.h"
#include "kernels/quantize/op.h"

namespace oasr::layers {

// run() returns what was not finite.
template <class Run>
void watched(const ExecContext& context, std::string_view path, std::int64_t rows, Run run) {
  RunObserver* observer = context.observer;
  if (observer == nullptr || !observer->wants_times()) {
    const kernels::NotFinite found = run();
    if (found && observer != nullptr) observer->not_finite(path, found.row);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const kernels::NotFinite found = run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  observer->layer_time(path, rows, took.count());
  if (found) observer->not_finite(path, found.row);
}

}  // namespace oasr::layers

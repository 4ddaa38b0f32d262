// What the observer of a run is told, if there is one: how a layer's method went, what it is given
// and what it makes of that.
#pragma once

#include <chrono>
#include <string_view>

#include "device/gpu.h"
#include "device/thread_pool.h"
#include "kernels/quantize/op.h"
#include "quant/activation.h"

namespace oasr::layers {

// run() returns what was not finite; a GPU keeps it until Gpu::tell(), and with it the time. work: of a layer without
// a matrix.
template <class Run>
void watched(const ExecContext& context, std::string_view path, std::int64_t rows, Run run, const LayerWork& work = {}) {
  RunObserver* observer = context.observer;
  const bool timed = observer != nullptr && observer->wants_times();
  const auto tell = [&](kernels::NotFinite found) {
    if (found && observer != nullptr) observer->not_finite(path, found.row);
  };
  if (context.gpu != nullptr) {
    timed ? context.gpu->begin_timed_layer(path) : context.gpu->at_layer(path);
    tell(run());
    if (timed) context.gpu->end_timed_layer(rows, work);
    return;
  }
  if (!timed) return tell(run());
  const auto start = std::chrono::steady_clock::now();
  const kernels::NotFinite found = run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  observer->layer_time(path, {.rows = rows, .seconds = took.count(), .kernels = 0, .work = work});
  tell(found);
}

// Shows the observer, if it asks, the rows that a layer is about to multiply.
inline void show_input(const ExecContext& context, std::string_view path, const quant::Activation& x) {
  RunObserver* observer = context.observer;
  if (observer == nullptr || !observer->wants_inputs() || quant::ActivationAccess::is_int8(x)) return;
  CHECK(context.gpu == nullptr, "inputs are shown where they can be read");
  observer->layer_input(path, quant::ActivationAccess::floats(x));
}

// The same of the rows that it has written.
inline void show_output(const ExecContext& context, std::string_view path, ConstMatrix y) {
  RunObserver* observer = context.observer;
  if (observer != nullptr && observer->wants_outputs()) observer->layer_output(path, y);
}

}  // namespace oasr::layers

// Times of what is put into the queue of a Gpu, without the time that the processor takes to put it in.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "device/gpu.h"

namespace oasr {

// Calls of an operation as one CUDA graph, to be replayed. Throws GpuError as Gpu does.
class GpuReplay {
 public:
  // Of body(0) … body(calls - 1), which put their work into the queue of `gpu`, outside a section, and neither copy nor
  // wait: each has run before, so that scratch memory is as large as it gets.
  GpuReplay(Gpu& gpu, int calls, const std::function<void(int)>& body);
  ~GpuReplay();
  GpuReplay(GpuReplay&&) noexcept;
  GpuReplay& operator=(GpuReplay&&) = delete;

  // Replays the graph, waits, and returns the microseconds of one call.
  double run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of copies of `bytes` within the device; what is read and what is written counts. Not as a graph, where a copy is
// slower. Takes twice as much memory (GpuOutOfMemory).
double copy_bytes_per_second(Gpu& gpu, std::size_t bytes);

// What a mark between two timed layers takes of a section, in microseconds: a chain of marks with nothing between.
double mark_microseconds(Gpu& gpu);

}  // namespace oasr

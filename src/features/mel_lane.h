// Between mel_frames.cc and the files that are compiled for one instruction set each.
#pragma once

#include <cstddef>

#include "features/fourier.h"
#include "features/logarithm.h"
#include "features/mel_frames.h"

namespace oasr {

// What a lane reads: plain pointers, so that no code of a library gets into its file.
struct MelTask {
  unsigned window, transform, filters;
  bool emphasised;
  float scale, floor;
  LogBase log;
  const float* window_weights;
  const fourier::Twiddle* roots;
  const MelTables::Filter* spans;
  const float* filter_weights;
};

struct MelLane {
  const char* name;
  std::size_t width;  // frames side by side: floats of a vector
  // `count` frames, 1 to width, each a pointer to `window` samples. work: work_floats(task, width) floats,
  // aligned to 64 bytes. logs: [count, filters] or null; greatest: [count] or null.
  void (*run)(const MelTask& task, const float* const* frames, std::size_t count, float* work, float* logs,
              float* greatest);
};

// Two buffers of the transform, one of which first holds the samples, the powers, and the energies.
inline std::size_t work_floats(const MelTask& task, std::size_t width) {
  return (3 * std::size_t{task.transform} + task.filters) * width;
}

extern const MelLane kMelLane4;
#if defined(__x86_64__)
extern const MelLane kMelLaneAvx2, kMelLaneAvx512;
#endif

}  // namespace oasr

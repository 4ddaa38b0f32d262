// The kernel of gpu_mel.cc.
#pragma once

#include <cstdint>

#include "device/gpu.h"
#include "features/mel_frames.h"

namespace oasr::kernels {

// All memory is the GPU's; the tables are those of MelTables.
struct MelFramesArgs {
  const float* samples = nullptr;  // [(frames - 1) · hop + window]
  std::int64_t frames = 0, hop = 0;
  unsigned window = 0, transform = 0, filters = 0;
  bool emphasised = false;
  float scale = 1, floor = 0;
  LogBase log = LogBase::e;
  const float* window_weights = nullptr;
  const fourier::Twiddle* roots = nullptr;
  const MelTables::Filter* spans = nullptr;
  const float* filter_weights = nullptr;
  float* logs = nullptr;      // [frames, filters]
  float* greatest = nullptr;  // [frames]
};

// A warp holds two buffers of `transform` floats in shared memory.
inline constexpr std::size_t kMostMelTransform = 4096;

// The bits of MelFrames::compute(). args.transform: kMostMelTransform at most.
void mel_frames_cuda(Gpu& gpu, const MelFramesArgs& args);

}  // namespace oasr::kernels

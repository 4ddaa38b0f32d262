// Log mel energies on a GPU, with the bits of the processor.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "device/gpu.h"
#include "device/memory.h"
#include "features/mel_frames.h"

namespace oasr::kernels {

// Samples and results are host memory. Has queues of its own on the GPU, which a model may use at the same
// time: as many as threads ask at a time, up to kMostQueues, then they wait for one another.
//
// compute() throws what a Gpu throws, and GpuError where no first queue can be opened (without a further one threads wait); the frames are lost, and the
// next call starts with another queue.
class GpuMel final : public MelDevice {
 public:
  static constexpr int kMostQueues = 4;
  // Below, copies and a launch take longer than a thread of the processor.
  static constexpr std::size_t kLeastFrames = 64;

  // Whether a recipe's transform fits the kernel; the processor computes those of others.
  static bool serves(const MelRecipe& recipe);
  // Errors: those of Gpu::open(). Throws GpuOutOfMemory.
  static Result<std::unique_ptr<GpuMel>> open(int gpu, const MelRecipe& recipe);
  ~GpuMel() override;

  const MelRecipe& recipe() const override { return recipe_; }
  bool worth(std::size_t frames) const override { return frames >= kLeastFrames; }
  void compute(const float* samples, std::size_t frames, const MelOutput& out) override;

  // Tests: the next launch fails as a broken kernel would.
  void fail_launch();

 private:
  struct Queue;
  class Lease;

  GpuMel(int gpu, const MelRecipe& recipe);
  Result<std::unique_ptr<Queue>> open_queue();
  std::unique_ptr<Queue> take();
  void give_back(std::unique_ptr<Queue> queue);
  void compute_piece(Queue& queue, const float* samples, std::size_t frames, const MelOutput& out);

  int index_;
  MelRecipe recipe_;
  std::mutex mutex_;
  std::condition_variable returned_;
  int open_ = 0;                              // queues that exist
  int most_ = kMostQueues;                    // of them
  std::vector<std::unique_ptr<Queue>> free_;  // those that nobody uses
};

}  // namespace oasr::kernels

// Log mel energies of frames of samples: what Whisper's spectrogram and Kaldi's fbank have in common.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "features/fourier.h"
#include "features/logarithm.h"
#include "features/mel_filters.h"

namespace oasr {

// How the samples of a frame become log mel energies. x: the samples, y: what is transformed.
struct MelRecipe {
  std::size_t window = 0;     // samples of a frame
  std::size_t hop = 0;        // samples from frame to frame
  std::size_t transform = 0;  // points, is_transform_size(); zeros follow the window
  // y[i] = x[i] · weights[i]; or, emphasised, with x[i] · scale for x[i] and the mean over the frame:
  // y[i] = ((x[i] - mean) - 0.97 · (x[i-1] - mean)) · weights[i], x[-1] is x[0].
  bool emphasised = false;
  float scale = 1;
  std::vector<float> weights;      // of the window
  std::vector<MelFilter> filters;  // of |DFT(y)|²
  float floor = 0;                 // of energies, a positive normal number
  LogBase log = LogBase::e;

  bool operator==(const MelRecipe&) const = default;
};

// A recipe as tables that a kernel reads, flat.
struct MelTables {
  struct Filter {
    unsigned first_bin, first_weight, count;
  };

  explicit MelTables(const MelRecipe& recipe);

  std::vector<float> window;
  std::vector<fourier::Twiddle> roots;
  std::vector<Filter> filters;
  std::vector<float> filter_weights;
};

// Where results go; null: they are not wanted.
struct MelOutput {
  float* logs = nullptr;  // [frames, filters]: log(max(energy, floor))
  float* greatest =
      nullptr;  // [frames]: the greatest energy of a frame, `floor` at least; NaN is passed over
};

// Another device that computes what MelFrames does, with the same bits. Thread-safe.
class MelDevice {
 public:
  virtual ~MelDevice() = default;
  virtual const MelRecipe& recipe() const = 0;
  // Whether it is faster than a thread of the processor, copies included.
  virtual bool worth(std::size_t frames) const = 0;
  // As MelFrames::compute(). May throw what the device reports.
  virtual void compute(const float* samples, std::size_t frames, const MelOutput& out) = 0;
};

// A set of vectors that frames are computed in, side by side; the bits do not depend on it.
struct MelLane;
std::span<const MelLane* const> mel_lanes();  // those that this processor has, the widest first
const char* mel_lane_name(const MelLane& lane);

// Computes frames on the thread that asks; many at a time on a device where there is one. A frame's bits
// depend on its samples only. Not thread-safe.
class MelFrames {
 public:
  // device: null, or of the same recipe and outlives this. lane: null for the fastest.
  explicit MelFrames(MelRecipe recipe, MelDevice* device = nullptr, const MelLane* lane = nullptr);
  ~MelFrames();
  MelFrames(MelFrames&&) noexcept;
  MelFrames& operator=(MelFrames&&) noexcept;

  const MelRecipe& recipe() const;
  std::size_t filters() const { return recipe().filters.size(); }
  // Frames that the processor computes at a time: fewer cost as much.
  std::size_t side_by_side() const;
  // Null where the processor is as good for so many frames.
  MelDevice* device_for(std::size_t frames) const;

  // Frame t is samples[t · hop, t · hop + window).
  void compute(const float* samples, std::size_t frames, const MelOutput& out);
  // Frames anywhere, always on the processor.
  void compute(std::span<const float* const> frames, const MelOutput& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace oasr

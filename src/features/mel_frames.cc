#include "features/mel_frames.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/check.h"
#include "features/mel_lane.h"
#include "features/power_spectrum.h"

namespace oasr {
namespace {

constexpr std::size_t kMostLanes = 16;
constexpr std::align_val_t kAlignment{64};

struct FreeAligned {
  void operator()(float* memory) const { ::operator delete(memory, kAlignment); }
};
using AlignedFloats = std::unique_ptr<float, FreeAligned>;

AlignedFloats aligned_floats(std::size_t count) {
  return AlignedFloats(static_cast<float*>(::operator new(count * sizeof(float), kAlignment)));
}

void check_recipe(const MelRecipe& recipe) {
  CHECK(recipe.window >= 1 && recipe.window <= recipe.transform && recipe.hop >= 1,
        "frames that a transform holds");
  CHECK(is_transform_size(recipe.transform), "a size that the passes divide");
  CHECK(recipe.weights.size() == recipe.window, "a weight for every sample");
  for (const MelFilter& filter : recipe.filters) {
    CHECK(filter.first_bin >= 0 &&
              static_cast<std::size_t>(filter.first_bin) + filter.weights.size() <= recipe.transform / 2 + 1,
          "filters of bins that are there");
  }
}

}  // namespace

MelTables::MelTables(const MelRecipe& recipe)
    : window(recipe.weights), roots(roots_of_unity(recipe.transform)) {
  check_recipe(recipe);
  for (const MelFilter& filter : recipe.filters) {
    filters.push_back({.first_bin = static_cast<unsigned>(filter.first_bin),
                       .first_weight = static_cast<unsigned>(filter_weights.size()),
                       .count = static_cast<unsigned>(filter.weights.size())});
    filter_weights.insert(filter_weights.end(), filter.weights.begin(), filter.weights.end());
  }
}

std::span<const MelLane* const> mel_lanes() {
  static constexpr const MelLane* kAll[] = {
#if defined(__x86_64__)
    &kMelLaneAvx512,
    &kMelLaneAvx2,
#endif
    &kMelLane4
  };
  std::size_t skipped = 0;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  skipped = avx512 ? 0 : (avx2 ? 1 : 2);
#endif
  return std::span(kAll).subspan(skipped);
}

const char* mel_lane_name(const MelLane& lane) { return lane.name; }

struct MelFrames::State {
  State(MelRecipe with, MelDevice* on, const MelLane* in)
      : recipe(std::move(with)), tables(recipe), device(on) {
    task = {.window = static_cast<unsigned>(recipe.window),
            .transform = static_cast<unsigned>(recipe.transform),
            .filters = static_cast<unsigned>(recipe.filters.size()),
            .emphasised = recipe.emphasised,
            .scale = recipe.scale,
            .floor = recipe.floor,
            .log = recipe.log,
            .window_weights = tables.window.data(),
            .roots = tables.roots.data(),
            .spans = tables.filters.data(),
            .filter_weights = tables.filter_weights.data()};
    lane = in != nullptr ? in : best_lane();
    CHECK(lane->width <= kMostLanes, "no lane is wider");
    work = aligned_floats(work_floats(task, lane->width));
  }

  // The widest whose work stays in the cache.
  const MelLane* best_lane() const {
    constexpr std::size_t kCached = 512 << 10;
    const auto lanes = mel_lanes();
    const auto fits = [&](const MelLane* one) {
      return work_floats(task, one->width) * sizeof(float) <= kCached;
    };
    const auto found = std::ranges::find_if(lanes, fits);
    return found != lanes.end() ? *found : lanes.back();
  }

  // Calls run for groups of frames, frame(i) being the samples of frame i.
  template <class Frame>
  void compute(std::size_t frames, const MelOutput& out, const Frame& frame) {
    std::array<const float*, kMostLanes> group{};
    for (std::size_t begin = 0; begin < frames; begin += lane->width) {
      const std::size_t count = std::min(lane->width, frames - begin);
      for (std::size_t i = 0; i < count; ++i) group[i] = frame(begin + i);
      lane->run(task, group.data(), count, work.get(),
                out.logs == nullptr ? nullptr : out.logs + begin * task.filters,
                out.greatest == nullptr ? nullptr : out.greatest + begin);
    }
  }

  MelRecipe recipe;
  MelTables tables;
  MelDevice* device;
  const MelLane* lane = nullptr;
  MelTask task;
  AlignedFloats work;
};

MelFrames::MelFrames(MelRecipe recipe, MelDevice* device, const MelLane* lane)
    : state_(std::make_unique<State>(std::move(recipe), device, lane)) {
  CHECK(device == nullptr || device->recipe() == state_->recipe, "a device of the same recipe");
}
MelFrames::~MelFrames() = default;
MelFrames::MelFrames(MelFrames&&) noexcept = default;
MelFrames& MelFrames::operator=(MelFrames&&) noexcept = default;

const MelRecipe& MelFrames::recipe() const { return state_->recipe; }

std::size_t MelFrames::side_by_side() const { return state_->lane->width; }

MelDevice* MelFrames::device_for(std::size_t frames) const {
  return state_->device != nullptr && state_->device->worth(frames) ? state_->device : nullptr;
}

void MelFrames::compute(const float* samples, std::size_t frames, const MelOutput& out) {
  if (MelDevice* device = device_for(frames)) return device->compute(samples, frames, out);
  state_->compute(frames, out, [&](std::size_t i) { return samples + i * state_->recipe.hop; });
}

void MelFrames::compute(std::span<const float* const> frames, const MelOutput& out) {
  state_->compute(frames.size(), out, [&](std::size_t i) { return frames[i]; });
}

}  // namespace oasr

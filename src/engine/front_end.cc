#include "engine/front_end.h"

#include "device/gpu.h"
#include "features/mel_frames.h"
#include "kernels/mel/gpu_mel.h"

namespace oasr::engine {

Result<std::unique_ptr<MelDevice>> open_front_end(const ExecContext& context, const MelRecipe& recipe) {
  if (context.gpu == nullptr || !kernels::GpuMel::serves(recipe)) return std::unique_ptr<MelDevice>();
  auto gpu = TRY(kernels::GpuMel::open(context.gpu->info().index, recipe));
  return std::unique_ptr<MelDevice>(std::move(gpu));
}

}  // namespace oasr::engine

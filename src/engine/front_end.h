// Where the features of recordings are computed.
#pragma once

#include <memory>

#include "base/result.h"
#include "device/thread_pool.h"

namespace oasr {
class MelDevice;  // features/mel_frames.h
struct MelRecipe;
}  // namespace oasr

namespace oasr::engine {

// The GPU of the context, with queues beside the model's; null: the processor, also where the kernel does not
// serve the recipe. Features are the same bits on both. Errors: those of Gpu::open().
Result<std::unique_ptr<MelDevice>> open_front_end(const ExecContext& context, const MelRecipe& recipe);

}  // namespace oasr::engine

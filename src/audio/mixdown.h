// Many channels to one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "audio/decoder.h"

namespace oasr {

// Replaces `mono` by the mean of the block's channels (summed in double, rounded once), or by one
// channel, [frames]. Errors: NaN or infinity in any channel that is used (`first_frame`, the
// position of the block in the stream, is for that message); no such channel.
Status mix_down(const SampleBlock& block, std::optional<int> channel, std::uint64_t first_frame,
                std::vector<float>& mono);

}  // namespace oasr

// Many channels to one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "audio/decoder.h"

namespace oasr {

// Samples of up to this magnitude have features that are finite: the greatest power in fbank is that of 400 samples, scaled
// by 32768 and doubled by preemphasis, 6.9e14 of a sample's square, of which a filter sums 512 at most: 3.4e38 is reached
// at 3e10.
inline constexpr float kLoudest = 1e9f;
inline bool usable_sample(float sample) { return sample >= -kLoudest && sample <= kLoudest; }  // NaN is not

// Replaces `mono` by the mean of the block's channels (summed in double, rounded once), or by one
// channel, [frames]. Errors: NaN, infinity or more than kLoudest in any channel that is used (`first_frame`,
// the position of the block in the stream, is for that message); no such channel.
Status mix_down(const SampleBlock& block, std::optional<int> channel, std::uint64_t first_frame,
                std::vector<float>& mono);

}  // namespace oasr

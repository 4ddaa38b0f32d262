// FFmpeg's decoded frames as SampleBlocks.
#pragma once

#include "audio/decoder.h"

struct AVFrame;

namespace oasr {

// Replaces `block` by the samples of `frame`, of any FFmpeg sample format. Errors: absurd rate or
// channel count.
Status copy_frame(const AVFrame& frame, SampleBlock& block);

}  // namespace oasr

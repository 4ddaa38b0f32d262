// Encoded audio in memory: for tests and the fuzz target, and for callers that hold a whole file.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "audio/audio_source.h"

namespace oasr {

// As open_audio, of the bytes of a file; `bytes` must outlive the source.
Result<std::unique_ptr<AudioSource>> open_audio_bytes(std::span<const std::byte> bytes,
                                                      const AudioOptions& options = {});

}  // namespace oasr

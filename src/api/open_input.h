// From the facade's AudioInput to an open recording.
#pragma once

#include <memory>

#include "audio/audio_source.h"
#include "oasr/recognizer.h"

namespace oasr {

// Samples at `sample_rate`, Hz. Errors: open_audio()'s.
Result<std::unique_ptr<AudioSource>> open_input(const AudioInput& input, int sample_rate,
                                                const Callbacks& callbacks);

}  // namespace oasr

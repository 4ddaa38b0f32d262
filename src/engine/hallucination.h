// Text that Whisper invents in silence: found by its odd words, skipped with the silence around it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/segments.h"
#include "oasr/transcript.h"

namespace oasr::engine {

// Where a window lies; times in seconds, frames of 10 ms.
struct WindowPlace {
  std::int64_t seek = 0;
  int frames = 0;                            // within the recording and the clip
  std::optional<std::int64_t> total_frames;  // of the recording, when known
  double last_speech = 0;                    // end of the last word before this window
};

// The end of the last word, or of the last segment when no word is there; nothing without segments.
std::optional<double> speech_end(const std::vector<Segment>& segments);

// A window ends at its last word, so that a cut word is decoded again, unless its last segment is
// known to be complete.
void seek_to_last_word(WindowSegments& window, const WindowPlace& place);

// The reference's rules for hallucination_silence_threshold (seconds): drops segments that are odd
// and surrounded by silence, and moves window.seek behind the silence. False when the whole window
// must be dropped and decoded again from window.seek.
bool skip_hallucinations(WindowSegments& window, const WindowPlace& place, double threshold);

}  // namespace oasr::engine

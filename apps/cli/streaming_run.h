// `oasr transcribe --streaming`: one recording or microphone, text while it is spoken.
#pragma once

#include "cli/inputs.h"
#include "cli/terminal.h"
#include "cli/transcribe_options.h"

namespace oasr::cli {

// On a terminal the text of the utterance at hand is redrawn as it grows, and every utterance that is over
// becomes a line. In a pipe every event is a JSON object on a line, or, with --output-format txt, every
// utterance a line of text. Returns the exit status.
int run_streaming(const TranscribeArguments& arguments, const Input& input, const std::string& model,
                  Terminal& terminal);

}  // namespace oasr::cli

// Pulling with messages and progress on the terminal; `transcribe` does it on first use.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "oasr/models.h"

namespace oasr::cli {

// pull_model() with what is tried as notes, a progress line, and Ctrl-C as cancellation.
Result<std::string> pull_with_progress(const std::string& name, Terminal& terminal,
                                       PullOptions options = {});

}  // namespace oasr::cli

// Messages of the library on the terminal.
#pragma once

#include "cli/terminal.h"

namespace oasr::cli {

// While it lives warnings of the library are shown, each once, and what else it says when verbose. The terminal has to
// live longer.
class Messages {
 public:
  explicit Messages(Terminal& terminal);
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
};

}  // namespace oasr::cli

#include "cli/exit_codes.h"

#include "cli/signals.h"

namespace oasr::cli {

int exit_code_of(const Error& error) {
  if (error.code == ErrorCode::cancelled) return interrupted() ? interrupt_code() : kInterrupted;
  return error.code == ErrorCode::invalid_argument ? kUsage : kError;
}

}  // namespace oasr::cli

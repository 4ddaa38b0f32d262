#include "cli/exit_codes.h"

#include <algorithm>

#include "cli/signals.h"
#include "cli/terminal.h"

namespace oasr::cli {

int exit_code_of(const Error& error) {
  if (error.code == ErrorCode::cancelled) return interrupted() ? interrupt_code() : kInterrupted;
  return error.code == ErrorCode::invalid_argument ? kUsage : kError;
}

int end_with(const Error& error, Terminal& terminal) {
  terminal.error(error);
  return exit_code_of(error);
}

Error as_command_line(Error error) {
  if (error.where == "temperatures") error.where = "temperature";
  if (error.where == "ignore" || error.where == "module_types") error.where = "quantization_option";
  const bool is_variable = error.where.rfind("OASR_", 0) == 0;
  if (!error.where.empty() && !is_variable) {
    std::replace_if(error.where.begin(), error.where.end(), [](char c) { return c == '_' || c == '.'; }, '-');
    error.where = "--" + error.where;
  }
  if (error.code == ErrorCode::unsupported) error.code = ErrorCode::invalid_argument;
  return error;
}

}  // namespace oasr::cli

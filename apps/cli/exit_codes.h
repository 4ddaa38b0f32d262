// Exit statuses of `oasr`: part of its interface (docs/cli.md).
#pragma once

#include "oasr/result.h"

namespace oasr::cli {

class Terminal;

enum ExitCode : int {
  kOk = 0,
  kError = 1,         // the model, the network, a folder for outputs, standard output, or a bug
  kUsage = 2,         // the command line is wrong; nothing was done
  kSomeFailed = 3,    // of several inputs, some gave no result, or none that could be written
  kAllFailed = 4,     // no input gave a result
  kTruncated = 5,     // everything was transcribed, but some audio was damaged or ended early
  kNoText = 6,        // everything was transcribed, but some input has no text
  kGateRefused = 7,   // a quantized model hears worse than allowed, or meets no budget: nothing was written
  kInterrupted = 130  // Ctrl-C (128 + the signal's number)
};

// An error of check_options() under the option's name on the command line ("--batch-size"), and as an
// error of usage: what is not served can not be asked for.
Error as_command_line(Error error);

// The status of a command that ends with `error`.
int exit_code_of(const Error& error);

// Says what went wrong; that status.
int end_with(const Error& error, Terminal& terminal);

}  // namespace oasr::cli

// Options by name and text, for the C API and other bindings.
#pragma once

#include <string_view>

#include "base/result.h"
#include "oasr/options.h"

namespace oasr {

struct NamedOptions {
  EngineConfig engine;
  TranscribeOptions transcribe;
};

// Sets the option `name` (dashes or underscores) from `value`. An invalid_argument error for an
// unknown name or a value of the wrong kind.
Status set_option(NamedOptions& options, std::string_view name, std::string_view value);

}  // namespace oasr

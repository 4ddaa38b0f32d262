// Environment variables. They are read here and nowhere else, and listed by `oasr doctor`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace oasr {

struct EnvVariable {
  std::string_view name;  // "OASR_CACHE_DIR"
  std::string_view what;  // one sentence for help and doctor
};

// Every variable that oasr reads.
std::span<const EnvVariable> env_variables();

// The value of a variable of the table above; nothing if unset or empty.
std::optional<std::string> env(std::string_view name);

// True for 1, true, yes, on (any case); false for unset, empty, 0, false, no, off; invalid_argument for
// everything else, so that a typing error does not switch a protection off.
Result<bool> env_flag(std::string_view name);

}  // namespace oasr

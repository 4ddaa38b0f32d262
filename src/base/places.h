// Where folders lie to each other.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace oasr {

// invalid_argument if one of them is the other or lies in it, through links or not; a destination need not
// exist.
Status check_apart(const std::filesystem::path& destination, const std::filesystem::path& source);

}  // namespace oasr

// Versions of the libraries that oasr runs with.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace oasr {

// (name, version) as the loaded libraries report them, not as they were at compile time.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace oasr

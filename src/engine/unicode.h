// The little of Unicode that word splitting and stripping need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oasr::engine {

// Without Unicode white space at both ends. Borrowed from `text`, valid UTF-8.
std::string_view strip(std::string_view text);

// Code points; ill-formed sequences become U+FFFD (one per maximal subpart).
std::u32string code_points(std::string_view bytes);

}  // namespace oasr::engine

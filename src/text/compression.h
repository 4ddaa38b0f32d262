// How repetitive a text is.
#pragma once

#include <string_view>

namespace oasr {

// Bytes of `utf8` divided by the bytes of its zlib stream at the default level: Whisper's measure
// of a decoder that repeats itself (above 2.4). 0 for an empty text.
double compression_ratio(std::string_view utf8);

}  // namespace oasr

// The id of a token of a text vocabulary.
#pragma once

#include <cstdint>

namespace oasr {

using TokenId = std::int32_t;

}  // namespace oasr

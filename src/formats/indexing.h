// Positions in the arrays of a 4-bit weight.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oasr::formats {

constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace oasr::formats

// Counts the program's allocations. Tests that promise none list testing/allocations.cc as a source.
#pragma once

#include <cstdint>

namespace oasr::testing {

// Calls of operator new so far, by all threads.
std::int64_t allocations();

}  // namespace oasr::testing

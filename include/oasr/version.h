// Version of the library.
#pragma once

namespace oasr {

// "0.1.0"
const char* version() noexcept;

}  // namespace oasr

// CHECK: an invariant that only a bug in oasr can break. Never reachable by user input.
#pragma once

#include <stdexcept>
#include <string>

namespace oasr {

// Thrown by CHECK; caught at the facade and the C API, where it becomes ErrorCode::internal.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& why);

}  // namespace oasr

#define CHECK(condition, why)                                                   \
  do {                                                                          \
    if (!(condition)) ::oasr::check_failed(#condition, __FILE__, __LINE__, why); \
  } while (false)

// The border of the library: no exception passes.
#pragma once

#include <exception>
#include <new>

#include "base/check.h"
#include "base/result.h"

namespace oasr {

// Calls `body`, which returns a Result, and turns what it throws (bugs and lack of memory: nothing
// else throws) into an Error.
template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return unexpected(ErrorCode::internal, "out of memory");
  } catch (const std::exception& error) {
    return unexpected(ErrorCode::internal, error.what(), {}, "this is a bug in oasr: report it");
  }
}

}  // namespace oasr

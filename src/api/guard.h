// The border of the library: no exception passes.
#pragma once

#include <exception>
#include <new>

#include "base/check.h"
#include "base/result.h"
#include "device/gpu.h"

namespace oasr {

// Calls `body`, which returns a Result, and turns what it throws (bugs, lack of memory and a GPU
// that fails: nothing else throws) into an Error.
template <class Body>
auto guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const GpuOutOfMemory& error) {
    return unexpected(ErrorCode::unsupported, error.what(), "device",
                      "use a smaller batch or model, another GPU, or --device cpu");
  } catch (const GpuError& error) {
    return unexpected(ErrorCode::internal, error.what(), "device", "look at nvidia-smi and the kernel's log");
  } catch (const std::bad_alloc&) {
    return unexpected(ErrorCode::internal, "out of memory");
  } catch (const std::exception& error) {
    return unexpected(ErrorCode::internal, error.what(), {}, "this is a bug in oasr: report it");
  }
}

}  // namespace oasr

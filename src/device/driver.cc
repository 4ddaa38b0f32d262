#include "device/driver.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>

namespace oasr {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

}  // namespace

DriverLibrary driver_library() {
  // Never closed: the runtime has it open as well, if it is of use.
  if (dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL) != nullptr) return {.found = true, .problem = {}};
  const char* said = dlerror();
  const std::string problem = said != nullptr ? said : "it does not load";
  // A library that it needs may be missing as well, and is named then.
  const bool missing = problem.find(std::string(kLibrary) + ": ") != std::string::npos &&
                       problem.ends_with(std::strerror(ENOENT));
  if (missing) return {};
  return {.found = true, .problem = problem};
}

}  // namespace oasr

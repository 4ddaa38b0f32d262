// The NVIDIA driver as a process meets it, before there is a card.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace oasr {

// libcuda.so.1, which the driver installs, as the loader finds it.
struct DriverLibrary {
  bool found = false;
  std::string problem;  // why what was found does not load; empty: it does
};
DriverLibrary driver_library();

// Why the driver that is there can not be used: it is too old, damaged, or not the one of its kernel module. Nothing
// where there is no driver, where it works (with a card or without), and in a build without CUDA.
std::optional<Error> unusable_driver();

}  // namespace oasr

// File descriptors, of which a process may have so many.
#pragma once

#include <array>
#include <string>

#include "base/result.h"

namespace oasr {

// The remedy of an error of the system (errno) that is for want of descriptors; empty for other errors.
std::string descriptor_remedy(int system_error);
// Whether an error has that remedy: what was tried works once something else is closed.
bool lacks_descriptor(const Error& error);

// Descriptors that nobody else gets while it lives, as far as there are any: free afterwards, for what comes then.
class SpareDescriptors {
 public:
  explicit SpareDescriptors(bool wanted);
  ~SpareDescriptors();
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

 private:
  static constexpr int kSpare = 4;  // a file that is written, its folder, and two more
  std::array<int, kSpare> kept_;
};

}  // namespace oasr

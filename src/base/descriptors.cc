#include "base/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace oasr {
namespace {

constexpr std::string_view kOfProcess = "raise the limit of open files (ulimit -n), or lower --batch-size";
constexpr std::string_view kOfSystem = "close other programs, or lower --batch-size";

}  // namespace

std::string descriptor_remedy(int system_error) {
  if (system_error == EMFILE) return std::string(kOfProcess);
  return system_error == ENFILE ? std::string(kOfSystem) : std::string();
}

bool lacks_descriptor(const Error& error) { return error.remedy == kOfProcess || error.remedy == kOfSystem; }

SpareDescriptors::SpareDescriptors(bool wanted) {
  for (int& kept : kept_) kept = wanted ? ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

SpareDescriptors::~SpareDescriptors() {
  for (const int kept : kept_) {
    if (kept >= 0) ::close(kept);
  }
}

}  // namespace oasr

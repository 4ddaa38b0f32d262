#include "base/check.h"

namespace oasr {

void check_failed(const char* condition, const char* file, int line, const std::string& why) {
  const std::string path(file);
  const auto slash = path.find_last_of('/');
  throw InternalError(path.substr(slash + 1) + ":" + std::to_string(line) + ": " + condition +
                      ": " + why);
}

}  // namespace oasr

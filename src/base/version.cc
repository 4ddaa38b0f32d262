#include "oasr/version.h"

namespace oasr {

const char* version() noexcept { return OASR_VERSION; }

}  // namespace oasr

// The error of a file that is not what its kind says.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace oasr {

// "ggml file: the file ends inside a tensor", and what helps.
inline Unexpected damaged(std::string_view kind, const std::string& what) {
  return unexpected(ErrorCode::bad_checkpoint, std::string(kind) + ": " + what, {},
                    "download or copy the file again");
}

}  // namespace oasr

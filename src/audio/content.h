// What a file that is not audio looks like, for error messages.
#pragma once

#include <optional>
#include <string>

#include "audio/byte_source.h"

namespace oasr {

// "a PDF document", "a text file", …; nothing for bytes that tell nothing.
std::optional<std::string> describe_content(ByteSource& bytes);

// Why a file of a known kind can not be decoded, where that can be told; else nothing.
std::optional<std::string> explain_damage(ByteSource& bytes);

}  // namespace oasr

// Digests of files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "api/catalogue.h"
#include "base/result.h"

namespace oasr {

// Lower-case hexadecimal SHA-256, or SHA-1 of the git blob, of a file. `cancelled` is polled.
Result<std::string> file_digest(const std::filesystem::path& path, Digest::Kind kind,
                                const std::function<bool()>& cancelled = {});

// Lower-case hexadecimal SHA-256 of a text.
std::string text_digest(std::string_view text);

// An io error naming both digests when the file does not have `want`; nothing pinned is success.
Status check_digest(const std::filesystem::path& path, const Digest& want,
                    const std::function<bool()>& cancelled = {});

}  // namespace oasr

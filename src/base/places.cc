#include "base/places.h"

#include <string>
#include <system_error>

namespace oasr {
namespace {

namespace fs = std::filesystem;

// Whether `inner` is `outer` or lies in it.
bool lies_in(const fs::path& inner, const fs::path& outer) {
  const fs::path relative = inner.lexically_relative(outer);
  return !relative.empty() && *relative.begin() != "..";
}

// "out/" is "out".
fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

}  // namespace

Status check_apart(const fs::path& destination, const fs::path& source) {
  std::error_code failed;
  const fs::path to = fs::weakly_canonical(without_slash(destination), failed);
  const fs::path from = failed ? fs::path() : fs::weakly_canonical(without_slash(source), failed);
  if (failed) return unexpected(ErrorCode::io, failed.message(), destination.string());
  if (!lies_in(to, from) && !lies_in(from, to)) return {};
  return unexpected(ErrorCode::invalid_argument, "the destination is the source, or one lies in the other",
                    destination.string(), "write to a folder of its own");
}

}  // namespace oasr

#include "checkpoint/tensor_checksums.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace oasr {
namespace {

constexpr std::size_t kVerifyBytes = std::size_t{32} << 20;  // resident at once while verifying

Unexpected bad(std::string what) { return unexpected(ErrorCode::bad_checkpoint, std::move(what)); }

// The names of the file and of the table must be the same.
Status check_names(const StateDict& dict, const Checksums& table, std::string_view document) {
  std::string missing, extra;
  for (const auto& [name, checksum] : table) {
    if (missing.empty() && !dict.tensors.contains(name)) missing = name;
  }
  for (const auto& [name, tensor] : dict.tensors) {
    if (extra.empty() && !table.contains(name)) extra = name;
  }
  if (missing.empty() && extra.empty()) return {};
  std::string what;
  if (!missing.empty()) what = "lacks the tensor '" + missing + "' of " + std::string(document);
  if (!extra.empty()) {
    what += (what.empty() ? "holds the tensor '" : " and holds '") + extra + "', which is not in " +
            std::string(document);
  }
  return bad(std::move(what));
}

// Walks the bytes of all tensors from the front of the file to its end; the pages of a mapped file
// are let go on the way.
Status check_checksums(const StateDict& dict, const Checksums& table, std::string_view document) {
  std::vector<std::pair<std::string, StoredTensor>> all(dict.tensors.begin(), dict.tensors.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::less<>()(a.second.bytes.data(), b.second.bytes.data());
  });
  std::size_t resident = 0;
  for (const auto& [name, tensor] : all) {
    auto checksum = begin_tensor_checksum(tensor.format, tensor.shape);
    for (auto left = tensor.bytes; !left.empty();) {
      const auto part = left.first(std::min(left.size(), kVerifyBytes - resident));
      checksum = crc32_of(part, checksum);
      left = left.subspan(part.size());
      resident += part.size();
      if (resident < kVerifyBytes) continue;
      dict.release_pages();
      resident = 0;
    }
    const auto expected = table.find(name)->second;
    if (checksum == expected) continue;
    return bad("the tensor '" + name + "', " + std::string(enum_name(storage_format_names(), tensor.format)) +
               " " + tensor.shape.to_string() + ", has the checksum " + checksum_text(checksum) + ", not " +
               checksum_text(expected) + " as in " + std::string(document) + ": it is corrupt");
  }
  dict.release_pages();
  return {};
}

}  // namespace

Status check_tensors(const StateDict& dict, const Checksums& table, std::string_view document) {
  TRY(check_names(dict, table, document));
  return check_checksums(dict, table, document);
}

}  // namespace oasr

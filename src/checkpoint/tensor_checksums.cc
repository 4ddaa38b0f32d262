#include "checkpoint/tensor_checksums.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "tensor/dtype.h"

namespace oasr {
namespace {

constexpr std::size_t kVerifyBytes = std::size_t{32} << 20;  // resident at once while verifying

Unexpected bad_checksums(std::string what) { return unexpected(ErrorCode::bad_checkpoint, std::move(what)); }

std::string name_of(StorageFormat format) { return std::string(enum_name(storage_format_names(), format)); }

template <class T, class Convert>
std::vector<std::byte> converted(std::span<const float> values, const Convert& convert) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

// The values in a format that native checkpoints have; nothing for values that it does not hold.
std::vector<std::byte> encoded(std::span<const float> values, StorageFormat format) {
  switch (format) {
    case StorageFormat::f32: return converted<float>(values, [](float v) { return v; });
    case StorageFormat::f16: return converted<Half>(values, to_half);
    case StorageFormat::bf16: return converted<BFloat16>(values, to_bfloat16);
    case StorageFormat::i8:
      if (!std::ranges::all_of(values, [](float v) { return v >= -128 && v <= 127 && v == std::trunc(v); })) return {};
      return converted<std::int8_t>(values, [](float v) { return static_cast<std::int8_t>(v); });
    default: return {};
  }
}

// The format that the tensor had, if its checksum tells: the same bytes under another name, or the same values
// in another type. Nothing where the numbers themselves are others.
std::optional<StorageFormat> format_before(const StoredTensor& tensor, std::uint32_t checksum) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  const bool numbers = decode_to_float(tensor, values).has_value();
  for (const auto& row : storage_format_names()) {
    if (row.value == tensor.format || !safetensors_dtype(row.value)) continue;
    const std::uint32_t begin = begin_tensor_checksum(row.value, tensor.shape);
    const bool as_long = storage_bytes(row.value, tensor.shape) == tensor.bytes.size();
    if (as_long && crc32_of(tensor.bytes, begin) == checksum) return row.value;
    if (!numbers) continue;
    const auto bytes = encoded(values, row.value);
    if (!bytes.empty() && crc32_of(bytes, begin) == checksum) return row.value;
  }
  return std::nullopt;
}

Unexpected not_as_written(const std::string& name, const StoredTensor& tensor, std::uint32_t found,
                          std::uint32_t expected, std::string_view document) {
  const std::string shape = " " + tensor.shape.to_string();
  if (const auto before = format_before(tensor, expected)) {
    return bad_checksums("the tensor '" + name + "' is " + name_of(tensor.format) + shape + " instead of " + name_of(*before) +
               shape + ", which the checksum in " + std::string(document) + " is of");
  }
  return bad_checksums("the tensor '" + name + "', " + name_of(tensor.format) + shape + ", has the checksum " +
             checksum_text(found) + ", not " + checksum_text(expected) + " as in " + std::string(document) +
             ": it is corrupt");
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
    return not_as_written(name, tensor, checksum, expected, document);
  }
  dict.release_pages();
  return {};
}

}  // namespace

Status check_tensor_names(const std::set<std::string, std::less<>>& names, const Checksums& table,
                          std::string_view document) {
  std::string missing, extra;
  for (const auto& [name, checksum] : table) {
    if (missing.empty() && !names.contains(name)) missing = name;
  }
  for (const auto& name : names) {
    if (extra.empty() && !table.contains(name)) extra = name;
  }
  if (missing.empty() && extra.empty()) return {};
  std::string what;
  if (!missing.empty()) what = "lacks the tensor '" + missing + "' of " + std::string(document);
  if (!extra.empty()) {
    what += (what.empty() ? "holds the tensor '" : " and holds '") + extra + "', which is not in " +
            std::string(document);
  }
  return bad_checksums(std::move(what));
}

Status check_tensors(const StateDict& dict, const Checksums& table, std::string_view document) {
  std::set<std::string, std::less<>> names;
  for (const auto& [name, tensor] : dict.tensors) names.insert(name);
  TRY(check_tensor_names(names, table, document));
  return check_checksums(dict, table, document);
}

}  // namespace oasr

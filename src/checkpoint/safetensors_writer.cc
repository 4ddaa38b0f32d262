#include "checkpoint/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "text/utf8.h"

namespace oasr {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

// A tensor in its place.
struct Placed {
  const TensorSource* source;
  std::size_t element_bytes;
  std::size_t bytes;
};

Result<Placed> sized(const TensorSource& tensor) {
  if (!is_safetensors_name(tensor.name) || to_valid_utf8(tensor.name) != tensor.name) {
    return unexpected(ErrorCode::invalid_argument,
                      "is no name for a tensor: names are UTF-8 without control characters, of at "
                      "most 512 bytes",
                      tensor.name);
  }
  if (!safetensors_dtype(tensor.format)) {
    return unexpected(ErrorCode::unsupported,
                      "safetensors files hold no tensors of format " +
                          std::string(enum_name(storage_format_names(), tensor.format)),
                      tensor.name, "dequantize it to float");
  }
  const auto element = storage_bytes(tensor.format, Shape{});
  const auto bytes = storage_bytes(tensor.format, tensor.shape);
  CHECK(element && bytes, "a tensor that no memory can hold");
  return Placed{&tensor, *element, *bytes};
}

// In the order of the file.
Result<std::vector<Placed>> placed(std::span<const TensorSource> tensors) {
  std::vector<Placed> all;
  for (const auto& tensor : tensors) all.push_back(TRY(sized(tensor)));
  std::sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) {
    return a.element_bytes != b.element_bytes ? a.element_bytes > b.element_bytes
                                              : a.source->name < b.source->name;
  });
  std::vector<std::string_view> names;
  for (const auto& one : all) names.push_back(one.source->name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    return unexpected(ErrorCode::invalid_argument, "two tensors have this name",
                      std::string(*twice));
  }
  return all;
}

// The header's size and text, padded with spaces so that the data begins at a multiple of 64.
Result<std::string> header_of(std::span<const Placed> tensors) {
  std::string json = "{";
  std::uint64_t at = 0;
  for (const auto& tensor : tensors) {
    json += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        json.size() > 1 ? "," : "", dump_json(tensor.source->name),
                        *safetensors_dtype(tensor.source->format),
                        fmt::join(tensor.source->shape.extents(), ","), at, at + tensor.bytes);
    at += tensor.bytes;
  }
  json += "}";
  const auto used = sizeof(std::uint64_t) + json.size();
  json.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  if (json.size() > kMaxSafetensorsHeader) {
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("{} tensors are too many for one file", tensors.size()));
  }
  const std::uint64_t size = json.size();
  std::string text(sizeof size, '\0');
  std::memcpy(text.data(), &size, sizeof size);
  return text + json;
}

// Rows on their way into the file.
class RowWriter {
 public:
  RowWriter(AtomicFile& file, std::uint64_t total, const WriteProgress& progress)
      : file_(file), total_(total), progress_(progress) {}

  // The checksum of the tensor.
  Result<std::uint32_t> write(const Placed& tensor) {
    const Shape& shape = tensor.source->shape;
    auto checksum = begin_tensor_checksum(tensor.source->format, shape);
    if (tensor.bytes == 0) return checksum;
    const std::int64_t rows = shape.rank() < 2 ? 1 : shape[0];
    const auto row_bytes = tensor.bytes / static_cast<std::size_t>(rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto out = TRY(room(row_bytes));
      tensor.source->row(row, out);
      checksum = crc32_of(out, checksum);
    }
    return checksum;
  }

  Status flush() {
    if (used_ == 0) return {};
    TRY(file_.write(std::span(std::as_const(buffer_)).first(used_)));
    done_ += used_;
    used_ = 0;
    if (progress_ && !progress_(done_, total_)) {
      return unexpected(ErrorCode::cancelled, "the writing was stopped");
    }
    return {};
  }

 private:
  // `bytes` of the buffer, which go to the file next.
  Result<std::span<std::byte>> room(std::size_t bytes) {
    if (used_ + bytes > buffer_.size()) TRY(flush());
    if (bytes > buffer_.size()) buffer_.resize(std::max(bytes, kBufferBytes));
    const auto out = std::span(buffer_).subspan(used_, bytes);
    used_ += bytes;
    return out;
  }

  AtomicFile& file_;
  std::uint64_t total_;
  const WriteProgress& progress_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace

Result<Checksums> write_safetensors(const std::filesystem::path& path,
                                    std::span<const TensorSource> tensors,
                                    const WriteProgress& progress) {
  const auto all = TRY(placed(tensors));
  const auto header = TRY(header_of(all));
  auto file = TRY(AtomicFile::create(path));
  TRY(file.write(header));
  std::uint64_t total = 0;
  for (const auto& tensor : all) total += tensor.bytes;
  RowWriter rows(file, total, progress);
  Checksums checksums;
  for (const auto& tensor : all) {
    checksums.emplace(tensor.source->name, TRY(rows.write(tensor)));
  }
  TRY(rows.flush());
  TRY(file.commit());
  return checksums;
}

}  // namespace oasr

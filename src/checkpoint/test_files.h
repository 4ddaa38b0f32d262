// Builders of small files for tests: what a correct writer would write, and ways to be wrong.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oasr::testing {

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// `value` as little-endian bytes.
template <class T>
std::string le(T value) {
  std::string text(sizeof value, '\0');
  std::memcpy(text.data(), &value, sizeof value);
  return text;
}

template <class T>
std::string le_all(std::initializer_list<T> values) {
  std::string text;
  for (const T value : values) text += le(value);
  return text;
}

inline std::uint32_t crc_of(std::string_view text) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

inline std::string deflated(std::string_view text) {
  z_stream stream{};
  ::deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

struct ZipMember {
  std::string name;
  std::string content = {};
  bool deflate = false;
  bool zip64 = false;                    // sizes and offset in the extra field
  std::uint16_t flags = 0;
  std::uint16_t method = 0;              // 0: as `deflate` says
  std::uint32_t crc_error = 0;           // xor-ed onto the CRC-32
  std::int64_t size_error = 0;           // added to the uncompressed size
  std::string local_name = {};           // when it differs from `name`
};

// A zip archive of `members`; with zip64 end records if any member asks for them.
inline std::string zip_file(const std::vector<ZipMember>& members, std::string_view comment = {}) {
  std::string out, directory;
  bool any64 = false;
  for (const auto& member : members) {
    const auto data = member.deflate ? deflated(member.content) : member.content;
    const auto offset = out.size();
    const auto size = member.content.size() + static_cast<std::uint64_t>(member.size_error);
    const auto crc = crc_of(member.content) ^ member.crc_error;
    const auto method = static_cast<std::uint16_t>(member.method ? member.method : (member.deflate ? 8 : 0));
    const auto local = member.local_name.empty() ? member.name : member.local_name;
    const auto length = [](const std::string& text) { return le(static_cast<std::uint16_t>(text.size())); };
    const auto small = [&](std::uint64_t v) {
      return le(member.zip64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(v));
    };
    out += "PK\3\4" + le_all<std::uint16_t>({45, member.flags, method, 0, 0}) + le(crc) +
           le(static_cast<std::uint32_t>(data.size())) + le(static_cast<std::uint32_t>(size)) +
           length(local) + le<std::uint16_t>(0) + local + data;
    std::string extra;
    if (member.zip64) {
      extra = le_all<std::uint16_t>({1, 24}) + le_all<std::uint64_t>({size, data.size(), offset});
    }
    directory += "PK\1\2" + le_all<std::uint16_t>({45, 45, member.flags, method, 0, 0}) + le(crc) +
                 small(data.size()) + small(size) + length(member.name) + length(extra) +
                 le_all<std::uint16_t>({0, 0, 0}) + le<std::uint32_t>(0) + small(offset) + member.name + extra;
    any64 |= member.zip64;
  }
  const std::uint64_t start = out.size(), size = directory.size(), count = members.size();
  out += directory;
  if (any64) {
    const std::uint64_t end64 = out.size();
    out += "PK\6\6" + le<std::uint64_t>(44) + le_all<std::uint16_t>({45, 45}) + le_all<std::uint32_t>({0, 0}) +
           le_all<std::uint64_t>({count, count, size, start});
    out += "PK\6\7" + le<std::uint32_t>(0) + le(end64) + le<std::uint32_t>(1);
  }
  const auto short_count = static_cast<std::uint16_t>(any64 ? 0xFFFF : count);
  out += "PK\5\6" + le_all<std::uint16_t>({0, 0, short_count, short_count}) +
         le(any64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(size)) +
         le(any64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(start)) +
         le(static_cast<std::uint16_t>(comment.size())) + std::string(comment);
  return out;
}

}  // namespace oasr::testing

// Builders of small files for tests: what a correct writer would write, and ways to be wrong.
#pragma once

#include <cstddef>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  bool zip64 = false;  // sizes and offset in the extra field
  std::uint16_t flags = 0;
  std::uint16_t method = 0;     // 0: as `deflate` says
  std::uint32_t crc_error = 0;  // xor-ed onto the CRC-32
  std::int64_t size_error = 0;  // added to the uncompressed size
  std::string local_name = {};  // when it differs from `name`
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
    const auto method =
        static_cast<std::uint16_t>(member.method ? member.method : (member.deflate ? 8 : 0));
    const auto local = member.local_name.empty() ? member.name : member.local_name;
    const auto length = [](const std::string& text) {
      return le(static_cast<std::uint16_t>(text.size()));
    };
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
                 le_all<std::uint16_t>({0, 0, 0}) + le<std::uint32_t>(0) + small(offset) +
                 member.name + extra;
    any64 |= member.zip64;
  }
  const std::uint64_t start = out.size(), size = directory.size(), count = members.size();
  out += directory;
  if (any64) {
    const std::uint64_t end64 = out.size();
    out += "PK\6\6" + le<std::uint64_t>(44) + le_all<std::uint16_t>({45, 45}) +
           le_all<std::uint32_t>({0, 0}) + le_all<std::uint64_t>({count, count, size, start});
    out += "PK\6\7" + le<std::uint32_t>(0) + le(end64) + le<std::uint32_t>(1);
  }
  const auto short_count = static_cast<std::uint16_t>(any64 ? 0xFFFF : count);
  out += "PK\5\6" + le_all<std::uint16_t>({0, 0, short_count, short_count}) +
         le(any64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(size)) +
         le(any64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(start)) +
         le(static_cast<std::uint16_t>(comment.size())) + std::string(comment);
  return out;
}

// A safetensors file.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  return le<std::uint64_t>(header.size()) + std::string(header) + std::string(data);
}

// Python's pickle opcodes, as text to be joined.
namespace pickle {

inline std::string text(std::string_view value) {  // BINUNICODE
  return "X" + le(static_cast<std::uint32_t>(value.size())) + std::string(value);
}
inline std::string integer(std::int32_t value) { return "J" + le(value); }
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string tuple(std::string_view items) { return "(" + std::string(items) + "t"; }
inline std::string call(std::string_view callee, std::string_view arguments) {
  return std::string(callee) + tuple(arguments) + "R";
}
inline std::string dict(std::string_view items) { return "}(" + std::string(items) + "u"; }
inline std::string ordered_dict(std::string_view items) {
  return call(global("collections", "OrderedDict"), "") + "(" + std::string(items) + "u";
}
inline std::string whole(std::string_view value) { return "\x80\x02" + std::string(value) + "."; }

inline std::string storage(std::string_view type, std::string_view key, std::int32_t numel) {
  return tuple(text("storage") + global("torch", type) + text(key) + text("cpu") + integer(numel)) +
         "Q";
}
inline std::string integers(std::initializer_list<std::int32_t> values) {
  std::string items;
  for (const auto value : values) items += integer(value);
  return tuple(items);
}
inline std::string tensor(std::string_view storage, std::int32_t offset,
                          std::initializer_list<std::int32_t> shape,
                          std::initializer_list<std::int32_t> stride) {
  return call(global("torch._utils", "_rebuild_tensor_v2"), std::string(storage) + integer(offset) +
                                                                integers(shape) + integers(stride) +
                                                                "\x89" + ordered_dict(""));
}
inline std::string dims() {
  std::string items;
  for (const char* name :
       {"n_mels", "n_vocab", "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer",
        "n_text_ctx", "n_text_state", "n_text_head", "n_text_layer"}) {
    items += text(name) + integer(2);
  }
  return dict(items);
}
// OpenAI's checkpoint around the items of a state dict.
inline std::string checkpoint(std::string_view state) {
  return whole(dict(text("dims") + dims() + text("model_state_dict") + ordered_dict(state)));
}

}  // namespace pickle

// A torch file: `pickle`, and storages by key.
inline std::string torch_file(std::string_view pickle,
                              const std::vector<std::pair<std::string, std::string>>& storages) {
  std::vector<ZipMember> members = {{.name = "archive/data.pkl", .content = std::string(pickle)},
                                    {.name = "archive/byteorder", .content = "little"}};
  for (const auto& [key, bytes] : storages)
    members.push_back({.name = "archive/data/" + key, .content = bytes});
  members.push_back({.name = "archive/version", .content = "3\n"});
  return zip_file(members);
}

// CTranslate2's model.bin.
namespace ct2 {

enum Type : std::uint8_t { f32 = 0, i8 = 1, i16 = 2, i32 = 3, f16 = 4, bf16 = 5 };

inline std::string text(std::string_view value) {
  return le(static_cast<std::uint16_t>(value.size() + 1)) + std::string(value) +
         std::string(1, '\0');
}
inline std::string variable(std::string_view name, std::initializer_list<std::uint32_t> shape,
                            std::uint8_t type, std::string_view data) {
  return text(name) + le(static_cast<std::uint8_t>(shape.size())) + le_all(shape) + le(type) +
         le(static_cast<std::uint32_t>(data.size())) + std::string(data);
}
inline std::string model(const std::vector<std::string>& variables,
                         const std::vector<std::pair<std::string, std::string>>& aliases = {},
                         std::uint32_t version = 6, std::string_view spec = "WhisperSpec",
                         std::uint32_t revision = 3) {
  std::string out =
      le(version) + text(spec) + le(revision) + le(static_cast<std::uint32_t>(variables.size()));
  for (const auto& one : variables) out += one;
  out += le(static_cast<std::uint32_t>(aliases.size()));
  for (const auto& [alias, name] : aliases) out += text(alias) + text(name);
  return out;
}

}  // namespace ct2

// whisper.cpp's files.
namespace ggml {

struct Header {
  std::uint32_t magic = 0x67676d6c;
  std::int32_t n_vocab = 4;
  std::int32_t n_mels = 2;
  std::int32_t ftype = 1;
  std::vector<std::string> tokens = {"a", "bc"};
};
inline std::string head(const Header& header = {}) {
  std::string out = le(header.magic) + le(header.n_vocab);
  for (int i = 0; i < 8; ++i) out += le<std::int32_t>(2);
  out += le(header.n_mels) + le(header.ftype);
  out += le<std::int32_t>(2) + le<std::int32_t>(201) + std::string(2 * 201 * 4, '\0');
  out += le(static_cast<std::int32_t>(header.tokens.size()));
  for (const auto& token : header.tokens)
    out += le(static_cast<std::int32_t>(token.size())) + token;
  return out;
}
// `extents` innermost first, as in the file.
inline std::string tensor(std::string_view name, std::initializer_list<std::int32_t> extents,
                          std::int32_t type, std::string_view data) {
  return le(static_cast<std::int32_t>(extents.size())) +
         le(static_cast<std::int32_t>(name.size())) + le(type) + le_all(extents) +
         std::string(name) + std::string(data);
}

}  // namespace ggml

}  // namespace oasr::testing
